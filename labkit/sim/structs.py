"""Structures of the Runtime API, with the fields and the text form that the bindings give them.

A field is written "name kind"; kinds are C integers, `ptr`, `enum X`, `handle X`, `struct X`,
`list`, `list N` (so many zeros), `bytes N` and `params` (kernel arguments). "12:" before it limits it
to that line. node_structs.py has the parameters of nodes of any kind.
"""
import ctypes

from . import convert, values

_INTEGERS = {"u8": convert.c_uchar, "u16": convert.c_ushort, "u32": convert.c_uint, "i32": convert.c_int,
             "size": convert.size_t, "u64": convert.c_ulonglong}


def handle_class(name):
    return values.HANDLES.get(name) or values.SHOWN[name]


class Field:
    """One field as a descriptor: converts what is stored, shows what is read."""

    def __init__(self, spec):
        spec, self.line = (spec[3:], int(spec[:2])) if spec[2:3] == ":" else (spec, None)
        self.name, self.kind, *more = spec.split()
        self.arg = more[0] if more else None

    def first(self):
        if self.kind == "struct":
            return STRUCTS[self.arg]()
        if self.kind == "handle":
            return handle_class(self.arg)(0)
        if self.kind in ("bytes", "list"):
            return b"\0" * int(self.arg) if self.kind == "bytes" else [0] * int(self.arg or 0)
        return (0, None) if self.kind == "params" else 0

    def check_line(self, made):
        if self.line not in (None, values.line()):
            raise AttributeError(f"{type(made).__name__!r} of CUDA {values.line()} has no {self.name!r}")

    def __get__(self, made, owner=None):
        if made is None:
            return self
        if self.line:
            self.check_line(made)
        value = made._stored[self.name]
        if self.kind == "enum":
            cls = values.enum(self.arg)
            return cls(value) if value in cls else value
        return value[0] if self.kind == "params" else value

    def __set__(self, made, value):
        if self.line:
            self.check_line(made)
        if self.kind in _INTEGERS:
            value = _INTEGERS[self.kind](value)
        elif self.kind == "ptr":
            made._alive[self.name], value = value, convert.pointer(value)
        elif self.kind == "enum":
            value = convert.enum(self.arg)(value)
        elif self.kind == "handle":
            cls = handle_class(self.arg)
            value = cls(convert.handle(cls)(value))
        elif self.kind == "struct":
            cls = STRUCTS[self.arg]
            if not isinstance(value, cls):
                raise TypeError(f"Argument '{self.name}' has incorrect type (expected {cls.__module__}.{cls.__name__}, got {type(value).__name__})")
            value = value.copy()
        elif self.kind == "params":
            value = kernel_params(value)
        elif self.kind == "bytes" and len(value) != int(self.arg):
            raise ValueError(f"{self.name} length must be {self.arg}, is {len(value)}")
        made._stored[self.name] = value

    def text(self, value):
        if self.kind == "struct":
            return f"{self.name} :\n" + "\n".join("    " + line for line in str(value).splitlines())
        return f"{self.name} : {hex(value) if self.kind == 'ptr' else value}"


class Struct:
    """Base of the structures. Copies by value, as C does."""
    __slots__ = ("_stored", "_alive")
    _fields = ()

    def __init__(self, _ptr=0):
        object.__setattr__(self, "_alive", {})
        object.__setattr__(self, "_stored", {f.name: f.first() for f in self._fields})

    def copy(self):
        other = type(self)()
        other._alive.update(self._alive)
        other._stored.update({k: v.copy() if isinstance(v, Struct) else v for k, v in self._stored.items()})
        return other

    def __repr__(self):
        return "\n".join(f.text(f.__get__(self)) for f in self._fields if f.line in (None, values.line()))

    def getPtr(self):
        from labkit.errors import NotSimulated
        raise NotSimulated("getPtr() asks for the address of a C structure.", "The simulator's objects have none in memory.",
                           "Read and set its fields by name.")


def declare(name, *specs):
    """A structure class of these fields, known by its name from here on."""
    fields = [Field(spec) if isinstance(spec, str) else spec for spec in specs]
    cls = type(name, (Struct,), {"__slots__": (), "_fields": fields, "__module__": "labkit.sim.runtime", **{f.name: f for f in fields}})
    STRUCTS[name] = cls
    return cls


STRUCTS = {}
dim3 = declare("dim3", "x u32", "y u32", "z u32")
dim3.__init__ = lambda self, _ptr=0: (Struct.__init__(self), self._stored.update(x=1, y=1, z=1)) and None
cudaKernelNodeParams = declare("cudaKernelNodeParams", "func ptr", "gridDim struct dim3", "blockDim struct dim3", "sharedMemBytes u32",
                               "kernelParams params", "extra u64")
cudaMemsetParams = declare("cudaMemsetParams", "dst ptr", "pitch size", "value u32", "elementSize u32", "width size", "height size")
cudaHostNodeParams = declare("cudaHostNodeParams", "fn handle cudaHostFn_t", "userData ptr")
cudaMemLocation = declare("cudaMemLocation", "type enum cudaMemLocationType", "id i32")
cudaMemPoolProps = declare("cudaMemPoolProps", "allocType enum cudaMemAllocationType", "handleTypes enum cudaMemAllocationHandleType",
                           "location struct cudaMemLocation", "win32SecurityAttributes ptr", "maxSize size", "usage u16", "12:reserved bytes 54")
cudaMemAllocNodeParams = declare("cudaMemAllocNodeParams", "poolProps struct cudaMemPoolProps", "accessDescs list", "accessDescCount size",
                                 "bytesize size", "dptr ptr")
cudaGraphInstantiateParams = declare("cudaGraphInstantiateParams", "flags u64", "uploadStream handle cudaStream_t",
                                     "errNode_out handle cudaGraphNode_t", "result_out enum cudaGraphInstantiateResult")
cudaGraphEdgeData = declare("cudaGraphEdgeData", "from_port u8", "to_port u8", "type u8", "12:reserved bytes 5")
cudaGraphExecUpdateResultInfo = declare("cudaGraphExecUpdateResultInfo", "result enum cudaGraphExecUpdateResult",
                                        "errorNode handle cudaGraphNode_t", "errorFromNode handle cudaGraphNode_t")


class cudaDeviceProp:
    """Properties of the simulated device: those that are known of an H200. Any other is not simulated."""
    __slots__ = ("_values",)
    __module__ = "labkit.sim.runtime"

    def __init__(self, _values=None):
        self._values = _values or {}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            from labkit.errors import NotSimulated
            raise NotSimulated(f"The program reads {name} of the device's properties.",
                               "The simulator knows few properties of the device that it stands for, and makes none up.",
                               f"It knows {', '.join(sorted(self._values))}. The rest needs a GPU.") from None

    def __repr__(self):
        return "\n".join(f"{k} : {v}" for k, v in self._values.items())


STRUCTS["cudaDeviceProp"] = cudaDeviceProp


def kernel_params(value):
    """Kernel arguments as (address of an array of addresses, what keeps it alive).

    Takes what the bindings take: a pair of tuples (values, ctypes types), an address, a buffer. Numbers
    are copied here and now, C values too; a structure, an address or a buffer stays where it is.
    """
    if value is None or isinstance(value, int):
        return (value or 0, None)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], tuple):
        if len(value[0]) != len(value[1]):
            raise TypeError("Argument 'kernelParams' has tuples with different length")
        slots = [_slot(v, t) for v, t in zip(*value)]
        if not slots:
            return (0, None)
        array = (ctypes.c_void_p * len(slots))(*[ctypes.addressof(s) for s in slots])
        return (ctypes.addressof(array), (array, slots))
    try:
        return (convert.pointer(value), value)
    except TypeError:
        raise TypeError("Argument 'kernelParams' is not a valid type: tuple[tuple[Any, ...], tuple[Any, ...]] "
                        "or an object with Buffer Protocol or Int") from None


def _slot(value, ctype):
    if ctype is None:
        if isinstance(value, ctypes.Structure):
            return value
        if isinstance(value, values.Enum):
            return ctypes.c_int(value)
        if not isinstance(value, values.Handle):
            raise TypeError(f"Provided argument is of type {type(value)} but expected Type {ctypes.Structure}, {ctypes.c_void_p} "
                            "or CUDA Binding structure with getPtr() attribute")
        return ctypes.c_void_p(int(value))
    if ctype is ctypes.c_void_p:
        if isinstance(value, ctypes.c_void_p):
            return ctypes.c_void_p(value.value)
        if not isinstance(value, (int, values.Handle)):
            raise TypeError(f"Provided argument is of type {type(value)} but expected Type {int}, {ctypes.c_void_p} "
                            "or CUDA Binding structure with getPtr() attribute")
        return ctypes.c_void_p(int(value))
    if not (isinstance(ctype, type) and issubclass(ctype, ctypes._SimpleCData)):
        raise TypeError(f"Unsupported type: {ctype!r}")
    if isinstance(value, ctype):
        return ctype(value.value)
    return ctype(value.item() if hasattr(value, "item") else value)
