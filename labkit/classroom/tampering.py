"""Was labkit, NumPy or Python itself changed while a submission ran? Compared are functions and classes, not data.

This finds the plain ways (labkit.exercise.grade = ..., numpy.isclose = ..., a module swapped in sys.modules). It cannot
find a change that is undone before the end: code in the same process can do anything. docs/teaching.md says so.
"""
import sys
import types

WATCHED = ("labkit", "numpy", "builtins")


def _mark(value):
    """What tells whether a function or class is still the same one; None for data."""
    if isinstance(value, types.FunctionType):
        return id(value), id(value.__code__), id(value.__defaults__)
    if isinstance(value, type):
        return id(value), tuple(sorted((name, id(one), id(getattr(one, "__code__", None))) for name, one in list(vars(value).items())
                                       if isinstance(one, (types.FunctionType, staticmethod, classmethod, property))))
    return id(value) if callable(value) else None


def _modules():
    for name, module in sorted(sys.modules.items()):
        if isinstance(module, types.ModuleType) and name.partition(".")[0] in WATCHED:
            yield name, module


def fingerprint():
    """{"module": identity, "module.name": mark, ...} of all that is loaded once every exercise's judge is."""
    from labkit import exercise, labs
    found = {}
    for part in labs.parts().values():
        found[f"the judge of {part.name}"] = (id(part), *map(id, vars(part).values()))
    for name, module in _modules():
        found[name] = id(module)
        for inner, value in list(vars(module).items()):
            if not inner.startswith("__") and (mark := _mark(value)) is not None:
                found[f"{name}.{inner}"] = mark
    for inner in ("__import__", "__build_class__"):
        found[f"builtins.{inner}"] = id(getattr(sys.modules["builtins"], inner))
    found["labkit.exercise.grade"] = _mark(exercise.grade)
    found["_held"] = [module for _, module in _modules()]      # ids stay unique only while their owners live
    return found


def changed(before):
    """The names whose function, class or module is not the one it was; sorted, empty where all are."""
    try:
        after = fingerprint()
    except Exception as error:
        return [f"labkit, so that it no longer works ({type(error).__name__})"]
    return sorted(name for name, mark in before.items() if name != "_held" and after.get(name) != mark)
