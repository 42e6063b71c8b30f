"""Values that cross the border: enumerations and handles that look like those of the bindings.

`line()` is the line of the bindings that the simulator speaks: 12 (12.9) or 13 (13.x).
"""
import ctypes
import os

from . import convert, enums

_line = None
_classes = {12: {}, 13: {}}


def line():
    """12 or 13: LABKIT_SIM_CUDA, else the line of the installed bindings, else 12."""
    global _line
    if _line is None:
        _line = _first_line()
    return _line


def set_line(number):
    """Speak the 12.9 line (12) or the 13.x line (13) from now on."""
    global _line
    if number not in (12, 13):
        raise ValueError(f"the simulator speaks the lines 12 and 13 of the CUDA bindings, not {number!r}")
    _line = number


def _first_line():
    wanted = os.environ.get("LABKIT_SIM_CUDA")
    if wanted:
        if wanted not in ("12", "13"):
            from labkit.errors import LabError
            raise LabError(f"LABKIT_SIM_CUDA is {wanted!r}.", "The simulator speaks the lines 12 and 13 of the CUDA bindings.",
                           "Set it to 12 or 13, or unset it.")
        return int(wanted)
    from importlib import metadata
    try:
        return 13 if metadata.version("cuda-bindings").startswith("13.") else 12
    except metadata.PackageNotFoundError:
        return 12


# ---- enumerations ----

class _EnumType(type):
    """The class side of an enumeration: its length, its members in turn, and what it calls itself."""

    def __repr__(cls):
        return f"<enum '{cls.__name__}'>"

    def __len__(cls):
        return len(cls.__singletons__)

    def __iter__(cls):
        return iter(cls.__singletons__.values())

    def __contains__(cls, item):
        return item in cls.__singletons__


class Enum(int, metaclass=_EnumType):
    """An int with a name; one object for each value, and two names for one value are one member."""
    __singletons__, __members__ = {}, {}

    def __new__(cls, value):
        member = cls.__singletons__.get(value)
        if member is None:
            raise ValueError(f"{value} is not a valid {cls.__name__}")
        return member

    def __repr__(self):
        return f"<{type(self).__name__}.{self._name}: {int(self)}>"

    @property
    def name(self):
        return self._name

    @property
    def value(self):
        return int(self)


def _build(name, members):
    cls = _EnumType(name, (Enum,), {"__singletons__": {}, "__members__": {}, "__module__": "labkit.sim.runtime"})
    for label, value in members.items():
        member = cls.__singletons__.get(value)
        if member is None:
            member = cls.__singletons__[value] = int.__new__(cls, value)
            member._name = label
        cls.__members__[label] = member
        setattr(cls, label, member)
    return cls


def enum(name):
    """The enumeration class of this name on the current line, or None. Made when first asked for."""
    built = _classes[line()]
    if name not in built:
        members = enums.MORE_IN_13.get(name) if line() == 13 else None
        members = members or enums.ENUMS.get(name)
        built[name] = _build(name, members) if members else None
    return built[name]


def enum_names():
    """The names of all enumerations of the current line."""
    return enums.ENUMS.keys() | (enums.MORE_IN_13.keys() if line() == 13 else set())


def error(name):
    """The code of a refusal: error("InvalidValue") is cudaErrorInvalidValue."""
    return getattr(enum("cudaError_t"), "cudaError" + name)


def constants():
    """The integer constants of the current line."""
    if line() == 12:
        return enums.CONSTANTS
    return {k: v for k, v in {**enums.CONSTANTS, **enums.CONSTANTS_IN_13}.items() if k not in enums.NOT_IN_13}


# ---- handles ----

class Handle:
    """An address that stands for an object. Equal to a handle of the same type and address only."""
    __slots__ = ("_value",)
    _shown = None

    def __init__(self, init_value=0, _ptr=0):
        self._value = init_value if type(init_value) is int and 0 <= init_value < 2 ** 64 else convert.void_ptr(init_value)

    def __repr__(self):
        return f"<{self._shown or type(self).__name__} {self._value:#x}>"

    def __int__(self):
        return self._value

    __index__ = __int__

    def getPtr(self):
        from labkit.errors import NotSimulated
        raise NotSimulated("getPtr() asks for the address of a C structure.", "The simulator's objects have none in memory.",
                           "Use int(handle) for the handle's own value.")


class _Compared(Handle):
    """The driver's handles compare by value; the runtime's own kinds by identity."""
    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, type(self)._family) and other._value == self._value

    def __hash__(self):
        return hash(self._value)


def _handle(name, shown=None, base=_Compared):
    cls = type(name, (base,), {"__slots__": (), "_shown": shown or name, "__module__": "labkit.sim.runtime"})
    cls._family = cls
    return cls


cudaStream_t = _handle("cudaStream_t", "CUstream")
cudaStream_t.__cuda_stream__ = lambda self: (0, self._value)
cudaEvent_t = _handle("cudaEvent_t", "CUevent")
cudaGraph_t = _handle("cudaGraph_t", "CUgraph")
cudaGraphNode_t = _handle("cudaGraphNode_t", "CUgraphNode")
cudaGraphExec_t = _handle("cudaGraphExec_t", "CUgraphExec")
cudaMemPool_t = _handle("cudaMemPool_t", "CUmemoryPool")
cudaUserObject_t = _handle("cudaUserObject_t", "CUuserObject")
cudaKernel_t = _handle("cudaKernel_t")
cudaHostFn_t = _handle("cudaHostFn_t", base=Handle)
cudaGraphConditionalHandle = _handle("cudaGraphConditionalHandle", base=Handle)
cudaGraphConditionalHandle.__repr__ = lambda self: f"<cudaGraphConditionalHandle {self._value}>"
# What structures show and no simulated call takes.
SHOWN = {c.__name__: c for c in (_handle("cudaArray_t"), _handle("cudaFunction_t", "CUfunction"), _handle("cudaExecutionContext_t"),
                                 cudaGraphConditionalHandle)}
HANDLES = {c.__name__: c for c in (cudaStream_t, cudaEvent_t, cudaGraph_t, cudaGraphNode_t, cudaGraphExec_t, cudaMemPool_t, cudaUserObject_t, cudaKernel_t, cudaHostFn_t)}


# ---- a number in memory of its own ----

class cuuint64_t:
    """What attributes of memory take and give: a whole number below 2**64 at an address, as in `cuda.bindings.driver`.

    int() reads it. It compares as an object does: two of them are never equal, whatever their numbers.
    """
    __slots__ = ("_number",)

    def __init__(self, init_value=0, _ptr=0):
        self._number = ctypes.c_uint64(convert.uint64(init_value))

    def __int__(self):
        return self._number.value

    def __repr__(self):
        return f"<cuuint64_t {self._number.value}>"

    def getPtr(self):
        """The address of the number: eight bytes that live as long as this object."""
        return ctypes.addressof(self._number)
