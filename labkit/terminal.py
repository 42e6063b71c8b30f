"""Exercises from a terminal: where the learner's copies are, checking one, handing one out anew."""
import os
from pathlib import Path

from labkit import labs, solved, workcopy
from labkit.errors import LabError
from labkit.raised import why

LIMIT = 120            # seconds that a check may take
_ADDRESS = " On a GPU an address that nobody owns can do that."
_CAUSES = {"SIGSEGV": _ADDRESS, "SIGBUS": _ADDRESS, "SIGABRT": _ADDRESS, "SIGKILL": " The system does that where memory runs out.", "SIGTERM": " Somebody ended it from outside."}


def work():
    """The learner's folder, made where it is not there yet. Raises LabError outside of a clone."""
    place = solved.folder()
    target = Path(os.path.abspath(place.parent if place is not None else workcopy.clone() / "work"))
    if not os.path.isdir(target / "exercises"):
        workcopy.refresh(workcopy.clone(), target)
    return target


def named(word):
    """The Lab that a word names: a number, a name, or the path of the learner's copy. Raises LabError."""
    name = word.strip().replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".ipynb")
    try:
        lab = labs.find(int(name) if name.isdecimal() and len(name) < 9 else name)
    except LabError:
        every, part = labs.all_labs(), labs.parts().get(name)
        if part:
            raise LabError(f"{name} is a part of exercise {part.lab.number}.", "A command takes the exercise first.", f"Write `labkit check {part.lab.number}`, or `labkit hint {part.lab.number} {name}`.") from None
        raise LabError(f"There is no exercise {word!r:.60}.", f"There are the exercises {every[0].number} to {every[-1].number}; `labkit progress` lists them.",
                       "Write a number, for example `labkit check 05`.") from None
    path = work() / "exercises" / f"{lab.slug}.ipynb" if "/" in word and os.path.exists(word) else None
    if path and os.path.realpath(word) != os.path.realpath(path):
        raise LabError(f"{word} is not your copy of exercise {lab.number}.", f"labkit reads, checks and resets yours alone: {path}.", f"Write `labkit check {lab.number}`, and what you want checked into your copy.")
    return lab


def notebook(lab):
    """The learner's copy of an exercise: its path. Raises LabError where it is gone or can not be read."""
    path = work() / "exercises" / f"{lab.slug}.ipynb"
    try:
        there = workcopy.read(path) is not None
    except OSError as no:
        raise LabError(f"labkit can not read {path}: {why(no)}.", "The check reads the copy that is yours.",
                       f"Make it readable, or `labkit reset {lab.number}`: that sets it aside as it is, and hands out a new one.") from None
    if not there:
        raise LabError(f"There is no {path.name} in {path.parent}.", "The check reads the copy that is yours.", f"`labkit reset {lab.number}` hands out a new one.")
    return path


def check(lab, limit=LIMIT):
    """Run and check the saved notebook in a process of its own: (what it said, whether all is right)."""
    from labkit.attempt import cells
    from labkit.in_child import LONGEST, in_child
    if not 0 < limit <= LONGEST:
        raise LabError(f"labkit check got --limit {limit:g}.", f"The limit is a number of seconds, at most {LONGEST}.", f"`labkit check {lab.number} --limit 300` waits five minutes.")
    path = notebook(lab)
    cells(path)                                                 # raises what it is about a file that is no notebook
    os.environ["LABKIT_WORK"] = str(path.parents[1])            # the child runs in another folder
    child = in_child(f"from labkit.attempt import finish\nfinish({str(path)!r})\n", limit)
    said = child.printed.rstrip("\n")
    if child.ended.startswith("time limit"):
        longer = f" `labkit check {lab.number} --limit {min(LONGEST, max(300, 2 * limit)):g}` waits longer." if limit < LONGEST else ""
        said += f"\nStopped after {limit:g} s. A loop that does not end?{longer}"
    elif child.ended[:5] not in ("finis", "exit ") or child.last_error:
        said += f"\nThe check ended with {child.ended}{': ' + child.last_error if child.last_error else ''}.{_CAUSES.get(child.ended, '')}"
    judged = [name for name in lab.parts if f"{lab.number} {name}: " in said]
    right = [name for name in judged if f"{lab.number} {name}: right" in said]
    if len(judged) < len(lab.parts):
        said += f"\nThe check ended before it had judged every part.{_perhaps(child)}"
    return said.lstrip("\n"), child.ended == "finished" and len(right) == len(lab.parts)


def _perhaps(child):
    """What may have ended it, as a question, where nothing else says so."""
    if child.printed.endswith("left out\n"):
        return " Does a cell write more than the check reads? Let it write less."
    return " Does a cell end Python?" if child.ended[:5] in ("finis", "exit ") and "The check itself could" not in child.printed else ""


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
    path = work() / "exercises" / f"{lab.slug}.ipynb"
    where = f"It is {path}; `labkit lab` opens JupyterLab, `labkit check {lab.number}` checks what is saved." if os.path.isfile(path) else f"{path} is not there, or no file: `labkit reset {lab.number}` hands it out."
    return f"Exercise {lab.number}, {lab.title}: about {lab.minutes} minutes, after lesson {lab.lesson}.\nOpen: {', '.join(open_parts)}.\n{where}"


def save_picture(name):
    """Save the picture of the course as a PNG: its path. Raises LabError where it can not be."""
    path = Path(name)
    if name and os.path.isdir(path):
        raise LabError(f"{path} is a folder.", "The picture is a file.", f"Write `labkit progress --picture {path / 'course.png'}`.")
    if path.suffix.lower() != ".png":
        raise LabError(f"labkit saves the picture as a PNG, and {name!r:.60} does not end in .png.", "Nothing was saved.", "Write `labkit progress --picture course.png`.")
    if not os.path.isdir(path.parent):
        raise LabError(f"There is no folder {path.parent}.", "Nothing was saved.", "Make the folder first, or name a file in one that is there.")
    try:
        workcopy.write(path, solved.progress().png)
    except OSError as no:
        raise LabError(f"labkit could not save {path}: {why(no)}.", "Nothing was saved.", "Name a file in a folder that you may write in.") from None
    return path
