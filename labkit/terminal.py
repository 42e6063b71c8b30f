"""Exercises from a terminal: where the learner's copies are, checking one, handing one out anew."""
import os
from pathlib import Path

from labkit import labs, solved, workcopy
from labkit.errors import LabError

LIMIT = 120            # seconds that a check may take


def work():
    """The learner's folder, made where it is not there yet. Raises LabError outside of a clone."""
    place = solved.folder()
    if place is not None and (place.parent / "exercises").is_dir():
        return place.parent
    root = workcopy.clone()
    target = place.parent if place is not None else root / "work"
    workcopy.refresh(root, target)
    return target


def notebook(lab):
    """The learner's copy of an exercise: its path. Raises LabError where it is gone."""
    path = work() / "exercises" / f"{lab.slug}.ipynb"
    if not path.is_file():
        raise LabError(f"There is no {path.name} in {path.parent}.", "The check reads the copy that is yours.", f"`labkit reset {lab.number}` hands out a new one.")
    return path


def check(lab, limit=LIMIT):
    """Run and check the saved notebook in a process of its own: (what it said, whether all is right)."""
    from labkit.in_child import in_child
    path = notebook(lab)
    os.environ["LABKIT_WORK"] = str(path.resolve().parents[1])            # the child runs in another folder
    child = in_child(f"from labkit.attempt import finish\nfinish({str(path.resolve())!r})\n", limit)
    said = child.printed.rstrip("\n")
    if child.ended.startswith("time limit"):
        said += f"\nStopped after {limit:g} s. A loop that does not end? `labkit check {lab.number} --limit 300` waits longer."
    elif child.ended not in ("finished", "exit 1"):
        said += f"\nThe check ended with {child.ended}{': ' + child.last_error if child.last_error else ''}. On a GPU an address that nobody owns can do that."
    elif child.last_error and not child.last_error.startswith("SystemExit"):
        said += f"\n{child.errors.strip() or child.last_error}"
    judged = [name for name in lab.parts if f"{lab.number} {name}: " in said]
    right = [name for name in judged if f"{lab.number} {name}: right" in said]
    if len(judged) < len(lab.parts):
        said += "\nThe check ended before it had judged every part. Does a cell end Python?"
    return said.lstrip("\n"), child.ended == "finished" and len(right) == len(lab.parts)


def reset(lab):
    """Hand out an exercise anew: the path of the kept attempt, or None where nothing had been written. Its parts count as open again."""
    folder = work() / "exercises"
    path = folder / f"{lab.slug}.ipynb"
    fresh = workcopy.unanswered((workcopy.clone() / "exercises" / path.name).read_bytes())
    old = path.read_bytes() if path.exists() else None
    number, kept = _free(folder, lab), None
    if old is not None and workcopy.sources(old) != workcopy.sources(fresh):
        kept = folder / f"{lab.slug}.attempt-{number}.ipynb"
        workcopy.write(kept, old)          # first the copy, then the new one: at no moment is the work gone
    workcopy.write(path, fresh)
    solved.forget(lab, number)
    return kept


def _free(folder, lab):
    """The first number that no earlier attempt has, of notebook or records."""
    taken = [*folder.glob(f"{lab.slug}.attempt-*"), *Path(folder.parent / solved.FOLDER).glob(f"{lab.number}.*.attempt-*")]
    numbers = [int(word) for path in taken if (word := path.name.split("attempt-")[-1].partition(".")[0]).isdecimal()]
    return max(numbers, default=0) + 1


def part_to_hint(lab, name=None):
    """The part of that name, or the first one that is not solved. Raises LabError for a name that is none of its parts."""
    if name is not None:
        if name not in lab.parts:
            raise LabError(f"Exercise {lab.number} has no part {name!r:.40}.", f"Its parts are {', '.join(lab.parts)}.", "Name one of them.")
        return lab.parts[name]
    return next((part for part in lab.parts.values() if not solved.of(part)["solved"]), next(iter(lab.parts.values())))


def rows():
    """[(number, title, lesson, minutes, marks, hints given)] of all exercises, for the table."""
    return [(lab.number, lab.title, lab.lesson, lab.minutes, "".join("■" if one else "□" for one in each), sum(solved.of(part)["hints"] for part in lab.parts.values()))
            for lab, each in solved.done()]


def following():
    """What comes next, in words."""
    lab = solved.following()
    if lab is None:
        return f"All {len(labs.all_labs())} exercises are done."
    open_parts = [part.name for part in lab.parts.values() if not solved.of(part)["solved"]]
    return (f"Exercise {lab.number}, {lab.title}: about {lab.minutes} minutes, after lesson {lab.lesson}.\n"
            f"Open: {', '.join(open_parts)}.\nIt is {work() / 'exercises' / lab.slug}.ipynb; `labkit lab` opens JupyterLab, `labkit check {lab.number}` checks what is saved.")
