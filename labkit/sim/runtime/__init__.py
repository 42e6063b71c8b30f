"""The simulator's side of the seam: the names of `cuda.bindings.runtime`, of one line at a time.

A file a chapter of the Runtime API. A name that the real module has and the simulator lacks raises
NotSimulated; any other name is an AttributeError, as for every module.
"""
from labkit.errors import NotSimulated as _NotSimulated
from .. import capture as _capture, guards as _guards, names as _names_of, structs as _structs, values as _values
from ..world import Refused as _Refused, world as _world
from . import _names, capture, device, event, executable, generic, graph, memory, nodes, pools, setters, stream, user_object

_spoken = {}        # names now in this module that another line may not have


def _speak():
    """Put the functions of the current line in place; the rest is made when first asked for."""
    for name in _spoken:
        globals().pop(name, None)
    _spoken.clear()
    _spoken.update(_names.TABLE[_values.line()])
    globals().update(_spoken)


def _real():
    more = _names_of.ONLY_IN_12 if _values.line() == 12 else _names_of.ONLY_IN_13
    return {*_names_of.IN_BOTH, *more}


def _guarded(name):
    """A name whose only simulated side is what it answers inside a capture."""
    kind, gives = _guards.GUARDS[name], int("Malloc" in name)

    def call(*args, **named):
        stream = _names.Stream
        try:
            with _world.lock:
                if kind == "pool":
                    given = named.get("stream", named.get("hStream", args[-1] if args else None))
                    _capture.guard(kind, stream.look(stream.convert(given)))
                else:
                    _capture.guard(kind)
        except _Refused as no:
            return _names.answer(no.code, *[None] * gives)
        raise _missing(name)
    call.__name__ = call.__qualname__ = name
    return call


def _missing(name):
    return _NotSimulated(f"The program uses {name}.", "The real function exists; the simulator does not have it (yet).",
                         "Run this on a GPU, or leave this part out.")


def __getattr__(name):
    found = None
    if not name.startswith("_"):
        found = _values.enum(name) or _structs.STRUCTS.get(name) or _values.HANDLES.get(name)
        if found is None:
            found = _values.constants().get(name)
        if found is None and name in _real():
            if _guards.GUARDS.get(name, "free") == "free":
                raise _missing(name)
            found = _guarded(name)
        if found is None and name in _names_of.TYPES:
            raise _missing(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; neither has cuda.bindings.runtime "
                             f"of CUDA {_values.line()}")
    _spoken[name] = globals()[name] = found
    return found


def __dir__():
    return sorted({*_names.TABLE[_values.line()], *_structs.STRUCTS, *_values.HANDLES, *_values.constants(), *_values.enum_names()})


_speak()
