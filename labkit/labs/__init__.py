"""The exercises: how each part is judged, its hints, its points. One file an exercise; the tasks themselves are in authoring/labs.

    all_labs()            # [Lab(01_first_graph), ...]
    find("05")            # Lab(05_diamond)
    part_named("diamond") # Part(05 diamond)
"""
import functools
import importlib
import pkgutil

from labkit.errors import LabError


@functools.cache
def all_labs():
    """Every Lab, in order."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.name.startswith("lab_"))
    return [importlib.import_module(f"{__name__}.{name}").LAB for name in names]


def find(number):
    """The Lab of a number: "05", 5, or its file's name. Raises LabError for one that is not there."""
    word = f"{number:02d}" if isinstance(number, int) and not isinstance(number, bool) else str(number).strip()
    word = word.removesuffix(".ipynb").rpartition("/")[2]
    for lab in all_labs():
        if word in (lab.slug, lab.number) or word.isdecimal() and word.zfill(2) == lab.number:
            return lab
    raise LabError(f"There is no exercise {number!r:.40}.", f"There are the exercises {all_labs()[0].number} to {all_labs()[-1].number}.",
                   'Write a number, for example check("05").')


@functools.cache
def parts():
    """{name of a function: its Part}, of all exercises in order."""
    return {name: part for lab in all_labs() for name, part in lab.parts.items()}


def part_named(name):
    """The Part whose function has this name. Raises LabError where there is none."""
    if name in parts():
        return parts()[name]
    raise LabError(f"No exercise asks for a function {name!r:.60}.", "A part is known by the name of its function.",
                   "Give it the name from the notebook back; check() without anything checks all of them that are there.")
