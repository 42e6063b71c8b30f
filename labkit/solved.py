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
from labkit.raised import why

FOLDER = ".labkit-progress"
EMPTY = {"solved": None, "tries": 0, "hints": 0, "on": ""}
_memory = {}           # {part's name: record} where there is no folder


def folder():
    """Where progress is kept: LABKIT_WORK's folder, the work/ around this directory, or the clone's; None where there is none."""
    given = os.environ.get("LABKIT_WORK", "")
    if given.strip():
        return Path(os.path.expanduser(given)) / FOLDER
    with contextlib.suppress(OSError):
        here = Path.cwd()
        for place in (here, *here.parents):
            if (place / workcopy.MANIFEST).is_file():
                return place / FOLDER
    with contextlib.suppress(LabError):
        work = workcopy.clone() / "work"
        return work / FOLDER if os.path.isdir(work) else None
    return None


def path(part):
    """The file of a part, or None where nothing is kept."""
    place = folder()
    return place / f"{part.lab.number}.{part.name}.json" if place else None


def of(part):
    """The record of a part: {"solved": the day or None, "tries": int, "hints": int, "on": "gpu" or "sim"}. What is broken counts as none."""
    file = path(part)
    if file is None:
        return dict(_memory.get(part.name, EMPTY))
    try:
        found = json.loads(workcopy.read(file) or b"")
        return {"solved": _word(found["solved"]) or None, "tries": _count(found["tries"]), "hints": min(_count(found["hints"]), len(part.hints)), "on": _word(found["on"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return dict(EMPTY)


def _keep(part, what, **changed):
    """Whether it was kept; where not, why is said."""
    record = {**of(part), **changed}
    file = path(part)
    if file is None:
        _memory[part.name] = record
        return True
    try:
        workcopy.write(file, (json.dumps({"part": part.name, **record}) + "\n").encode())
        return True
    except OSError as no:
        print(f"labkit could not keep your progress in {file.parent}: {why(no)}. {what} If you may not write there, make it yours; if {file.name} is a folder, move it away.")
        return False


def note(part, solved):
    """Keep that a part was checked. What was solved once stays solved."""
    before = of(part)
    today = datetime.date.today().isoformat()
    _keep(part, "The verdict stands all the same.", tries=before["tries"] + 1, solved=before["solved"] or (today if solved else None), on=before["on"] or (backend.name if solved else ""))


def note_hint(part):
    """Keep that a hint was given: how many so far, this one included; one more than there are means all."""
    given = of(part)["hints"] + 1
    kept = _keep(part, "So here are all hints at once.", hints=min(given, len(part.hints)))
    return given if kept else len(part.hints) + 1


def _count(value):
    return value if type(value) is int and 0 <= value < 10**9 else 0


def _word(value):
    return value if isinstance(value, str) and len(value) < 40 else ""


def forget(lab, number):
    """Set the records of an exercise aside, as attempt `number`: it counts as open again."""
    for part in lab.parts.values():
        file = path(part)
        _memory.pop(part.name, None)
        try:
            if file is not None and os.path.lexists(file):
                os.replace(file, file.with_name(f"{file.stem}.attempt-{number}.json"))
        except OSError as no:
            print(f"labkit could not set your progress aside in {file.parent}: {why(no)}. {part.name} counts as it did.")


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
