"""What of the exercises is done: kept in work/, one small file a part, shown as a picture of the course.

    progress()            # a Figure: the lessons, and under each its exercises; filled is solved

A file is written beside its place and then moved there, so a kill at any moment leaves the old one or the
new one. Parts never share a file, so two notebooks at once lose nothing. Outside of a clone nothing is
kept on disk: what this process saw is all there is.
"""
import contextlib
import datetime
import json
import os
from pathlib import Path

from labkit import labs, workcopy
from labkit.backend import backend
from labkit.errors import LabError

FOLDER = ".labkit-progress"
EMPTY = {"solved": None, "tries": 0, "hints": 0, "on": ""}
_memory = {}           # {part's name: record} where there is no folder


def folder():
    """Where progress is kept: LABKIT_WORK's folder, the work/ around this directory, or the clone's; None where there is none."""
    if os.environ.get("LABKIT_WORK"):
        return Path(os.environ["LABKIT_WORK"]) / FOLDER
    with contextlib.suppress(OSError):
        here = Path.cwd()
        for place in (here, *here.parents):
            if (place / workcopy.MANIFEST).is_file():
                return place / FOLDER
    with contextlib.suppress(LabError):
        work = workcopy.clone() / "work"
        return work / FOLDER if work.is_dir() else None
    return None


def path(part):
    """The file of a part, or None where nothing is kept."""
    place = folder()
    return place / f"{part.lab.number}.{part.name}.json" if place else None


def of(part):
    """The record of a part: {"solved": the day or None, "tries": int, "hints": int, "on": "gpu" or "sim"}. A broken file counts as none."""
    file = path(part)
    if file is None:
        return dict(_memory.get(part.name, EMPTY))
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {name: found[name] if isinstance(found[name], (int, str, type(None))) else start for name, start in EMPTY.items()}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return dict(EMPTY)


def _keep(part, **changed):
    record = {**of(part), **changed}
    file = path(part)
    if file is None:
        _memory[part.name] = record
        return record
    try:
        workcopy.write(file, (json.dumps({"part": part.name, **record}) + "\n").encode())
    except OSError as no:
        print(f"labkit could not keep your progress in {file.parent}: {no.strerror or no}. The verdict stands all the same.")
    return record


def note(part, solved):
    """Keep that a part was checked. What was solved once stays solved."""
    before = of(part)
    today = datetime.date.today().isoformat()
    _keep(part, tries=_count(before["tries"]) + 1, solved=before["solved"] or (today if solved else None), on=before["on"] or (backend.name if solved else ""))


def note_hint(part):
    """Keep that a hint was given: how many so far, this one included; one more than there are means all."""
    given = _count(of(part)["hints"]) + 1
    _keep(part, hints=min(given, len(part.hints)))
    return given


def _count(value):
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def forget(lab, number):
    """Set the records of an exercise aside, as attempt `number`: it counts as open again."""
    for part in lab.parts.values():
        file = path(part)
        if file is None:
            _memory.pop(part.name, None)
        elif file.exists():
            os.replace(file, file.with_name(f"{file.stem}.attempt-{number}.json"))


def done():
    """[(Lab, [solved or not, of each part])], in order."""
    return [(lab, [bool(of(part)["solved"]) for part in lab.parts.values()]) for lab in labs.all_labs()]


def following():
    """The first Lab that is not done, or None."""
    return next((lab for lab, parts in done() if not all(parts)), None)


def progress():
    """The course as a Figure: the lessons, under each its exercises, filled where solved. Never raises for a lost or broken file."""
    from labkit import course_chart
    return course_chart.course(done())
