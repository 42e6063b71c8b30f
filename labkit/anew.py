"""Handing an exercise out anew, whatever stands in its place: `labkit reset 05`.

What the learner wrote is never gone at any moment: a notebook is copied before the new one takes its place, and what
can not be read as a file (a folder, a pipe, a link to nowhere, somebody else's) is renamed as it is.
"""
import os

from labkit import solved, terminal, workcopy
from labkit.errors import LabError
from labkit.raised import why


def reset(lab):
    """Hand out an exercise anew: the path of the kept attempt, or None where nothing had been written. Its parts count as open again."""
    folder = terminal.work() / "exercises"
    path = folder / f"{lab.slug}.ipynb"
    fresh = _fresh(path.name)
    try:
        number = _free(folder, lab)
        kept = _set(path, fresh, folder / f"{lab.slug}.attempt-{number}.ipynb")
    except OSError as no:
        raise LabError(f"labkit could not hand out {path.name} anew: {why(no)}.", "What you wrote is where it was.",
                       f"Make {folder} a folder in which you may write: change its owner or rights, or move it away. Then reset again.") from None
    solved.forget(lab, number)
    return kept


def _fresh(name):
    """The clone's notebook, as it is handed out."""
    source = workcopy.clone() / "exercises" / name
    try:
        data = workcopy.read(source)
    except OSError:
        data = None
    if not data:
        raise LabError(f"The kit's own {name} can not be read.", "It is what a reset hands out; your copy is as it was.", f"`git checkout exercises/{name}` in {source.parents[1]} brings it back.")
    return workcopy.unanswered(data)


def _set(path, fresh, kept):
    """Put the new notebook in its place. kept: where the attempt goes. Returns that, or None where there was none."""
    try:
        old = workcopy.read(path)
    except OSError:
        os.rename(path, kept)                  # not to be read: as it is, under another name
        try:
            workcopy.write(path, fresh)
        except BaseException:
            os.rename(kept, path)
            raise
        return kept
    if old == fresh:
        return None
    attempt = old is not None and workcopy.sources(old) != workcopy.sources(fresh)
    if attempt:
        workcopy.write(kept, old)              # first the copy, then the new one
    workcopy.write(path, fresh)
    return kept if attempt else None


def _free(folder, lab):
    """The first number that no earlier attempt has, of notebook or records."""
    names = [name for name in _listed(folder) if name.startswith(f"{lab.slug}.attempt-")]
    try:
        names += [name for name in _listed(folder.parent / solved.FOLDER) if name.startswith(f"{lab.number}.")]
    except OSError:
        pass                                   # no records to set aside there
    numbers = [int(word) for name in names if (word := name.partition(".attempt-")[2].partition(".")[0]).isdecimal() and len(word) < 20]
    return max(numbers, default=0) + 1


def _listed(folder):
    return os.listdir(folder) if os.path.lexists(folder) else []
