"""Was labkit, NumPy or Python itself changed while a submission ran? Compared is what its names stand for; the judges' rooms to the last constant.

This finds the plain ways (labkit.exercise.grade = ..., numpy.isclose = ..., a module swapped in sys.modules, a judge swapped in
labs.parts()). It cannot find a change that is undone before the end: code in the same process can do anything. docs/teaching.md says so.
inside.py keeps a copy of this module that no import finds, and the builtins that it uses are its own.
"""
import builtins
import sys
from types import FunctionType, ModuleType

__builtins__ = dict(vars(builtins))        # who replaces builtins.sorted does not reach the functions below
WATCHED = ("labkit", "numpy", "builtins")
ROOMS = ("labkit.exercise", "labkit.verdict", "labkit.raised", "labkit.labs", "labkit.cases", "labkit.errors", "labkit.asking")      # what judges: here data counts too
CHANGES = "_latest"                        # the part that hint() spoke of last
MODULES = sys.modules


def _mark(value):
    """What tells whether a function or class is still the same one; None for data."""
    if isinstance(value, FunctionType):
        return (id(value), id(value.__code__), id(value.__defaults__), tuple(map(id, (value.__kwdefaults__ or {}).values())),
                tuple(map(_closed, value.__closure__ or ())))
    if isinstance(value, type):
        return id(value), {name: (id(one), _mark(getattr(one, "__func__", getattr(one, "fget", one)))) for name, one in list(vars(value).items())
                           if isinstance(one, (FunctionType, staticmethod, classmethod, property))}
    return (id(value), _mark(getattr(value, "__wrapped__", None))) if callable(value) else None


def _closed(cell):
    """What a function's cell holds, as an identity; None for an empty one."""
    try:
        return id(cell.cell_contents)
    except ValueError:
        return None


def _data(value):
    """The same for data of the judges' rooms: which object it is, and which ones it holds."""
    held = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return (id(value), *map(id, held))


def _modules():
    for name, module in sorted(MODULES.items()):
        if isinstance(module, ModuleType) and name.partition(".")[0] in WATCHED:
            yield name, module


def _judges(labs):
    """{"the judge of diamond": identity, ...} by the name under which it is found, in both tables."""
    tables = {"labs.parts()": labs.parts(), **{f"{lab.slug}.parts": lab.parts for lab in labs.all_labs()}}
    return {f"the judge of {name}" + f" in {where}" * (where != "labs.parts()"): (part.name, id(part), *map(id, vars(part).values()))
            for where, table in tables.items() for name, part in table.items()}


def fingerprint():
    """{"module": identity, "module.name": mark, ...} of all that is loaded once every exercise's judge is."""
    from labkit import exercise, labs
    found = _judges(labs)
    for name, module in _modules():
        found[name] = id(module)
        room = name.startswith(ROOMS)
        for inner, value in list(vars(module).items()):
            mark = _mark(value)
            own = room or name.startswith("labkit") and not inner.startswith("_")
            if not inner.startswith("__") and inner != CHANGES and (mark is not None or own):
                found[f"{name}.{inner}"] = mark or (_data(value) if room else id(value))
    for inner in ("__import__", "__build_class__"):
        found[f"builtins.{inner}"] = id(getattr(MODULES["builtins"], inner))
    found["labkit.exercise.grade"] = _mark(exercise.grade)
    every = [value for _, module in _modules() for value in (module, *vars(module).values())]
    found["_held"] = every, [list(vars(value).values()) for value in every if isinstance(value, type)]      # ids stay unique only while their owners live
    return found


def changed(before):
    """The names whose function, class or module is not the one it was; sorted, empty where all are. Raises MemoryError where there is no room to look."""
    try:
        after = fingerprint()
    except MemoryError:
        raise
    except Exception as error:
        return [f"labkit, so that it no longer works ({type(error).__name__})"]
    return sorted(name for name, mark in before.items() if name != "_held" and after.get(name) != mark)
