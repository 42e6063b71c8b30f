"""Kernels: CUDA C text with a NumPy twin, and `launch`.

The runtime bindings have no launch call. `Kernel` and `launch` fill that gap with the driver's
own: NVRTC compiles the text, `cudaLibraryLoadData` loads it, `cuLaunchKernel` queues it.

    launch(stream, axpy, 4, 256, y, x, 2.0, 1000)     # y += 2.0 * x for 1000 floats

On the simulator the twin runs in place of the compiled text: `twin(i, *args)`, where `i` holds
the global thread index of every thread of the launch, and a pointer is indexed like an array.
"""
import ctypes
import math
import operator
import re
import threading
from typing import NamedTuple

import numpy as np

from labkit.arrays import DeviceArray
from labkit.backend import cudart as _chosen
from labkit.compiling import compile_source, load  # noqa: F401
from labkit.errors import LabError

_SCALARS = {
    "float": (np.float32, ctypes.c_float), "double": (np.float64, ctypes.c_double),
    "int": (np.int32, ctypes.c_int32), "unsigned int": (np.uint32, ctypes.c_uint32),
    "long long": (np.int64, ctypes.c_int64), "unsigned long long": (np.uint64, ctypes.c_uint64),
}


class Param(NamedTuple):
    """One kernel parameter: its C type, whether it is a pointer, to const, and the NumPy dtype."""
    ctype: str
    pointer: bool
    const: bool
    dtype: np.dtype


def _param(ctype):
    base = re.sub(r"\bconst\b|\*|\b__restrict__\b", " ", ctype)
    base = " ".join(base.split())
    if base not in _SCALARS or ctype.count("*") > 1:
        raise LabError(f"A kernel parameter has the type {ctype!r}.", f"labkit passes {', '.join(_SCALARS)} and pointers to them.",
                       "Write one of these, for example 'const float*'.")
    return Param(ctype, "*" in ctype, "const" in ctype, np.dtype(_SCALARS[base][0]))


def _pointer(param):
    """A function that gives the device address of a buffer as int, or raises LabError."""
    def address(value):
        if type(value) is DeviceArray and value.dtype is param.dtype or type(value) is int:
            return int(value)
        if hasattr(value, "__cuda_array_interface__"):
            shape = value.__cuda_array_interface__           # raises LabError for a freed labkit buffer
            if shape.get("strides") is not None and not getattr(getattr(value, "flags", None), "c_contiguous", False):
                raise LabError(f"{type(value).__name__} with gaps between its elements was passed for {param.ctype}.",
                               "The kernel would read the gaps.", "Pass a contiguous copy of it.")
            if np.dtype(shape["typestr"]) != param.dtype:
                raise LabError(f"A buffer of {np.dtype(shape['typestr'])} was passed for {param.ctype}.",
                               "The kernel would read its bytes as another type.", f"Pass a buffer of {param.dtype}.")
            return shape["data"][0]
        if isinstance(value, np.integer):
            return int(value)
        where = "lives in host memory; to_device(array) gives a device buffer" if isinstance(value, np.ndarray) else "is no device buffer"
        raise LabError(f"{type(value).__name__} was passed for {param.ctype}.", f"This {where}.",
                       "Pass a buffer from to_device() or empty(), a CuPy or PyTorch array, or an address as int.")
    return address


def _scalar(param):
    """A function that gives a number as a NumPy scalar of the parameter's type, or raises LabError where it does not fit."""
    whole, make = param.dtype.kind in "iu", param.dtype.type
    largest = 0 if whole else float(np.finfo(param.dtype).max)
    low, high = (int(np.iinfo(param.dtype).min), int(np.iinfo(param.dtype).max)) if whole else (0, 0)

    def number(value):
        if not whole and type(value) is float and -largest <= value <= largest:
            return make(value)
        try:
            found = operator.index(value) if whole else float(operator.pos(value))    # pos: text has none
        except (TypeError, ValueError, OverflowError):
            raise LabError(f"{value!r:.40} was passed for {param.ctype}.", f"It is a {type(value).__name__}, not a number of that kind.",
                           f"Pass {'a whole number' if whole else 'a number'}.") from None
        if whole and not low <= found <= high:
            raise LabError(f"{found} was passed for {param.ctype}.", "The number does not fit in that type.", "Use a smaller number.")
        if not whole and math.isfinite(found) and abs(found) > largest:
            raise LabError(f"{found} was passed for {param.ctype}.", "The number does not fit in that type.", "Use a smaller number.")
        return make(found)
    return number


def _dims(what, value):
    if type(value) is int and 0 <= value < 2 ** 32:
        return (value, 1, 1)
    dims = (value,) if isinstance(value, (int, np.integer)) else value
    if not isinstance(dims, (tuple, list)) or not 1 <= len(dims) <= 3 or not all(isinstance(d, (int, np.integer)) for d in dims):
        raise LabError(f"launch() got {what} = {value!r:.40}.", "It is a whole number, or one to three of them (x, y, z).",
                       "Write for example 4, or (4, 2).")
    if not all(0 <= d < 2 ** 32 for d in dims):
        raise LabError(f"launch() got {what} = {value!r:.40}.", "CUDA takes sizes from 0 to 4294967295.", "Use a size in that range.")
    return tuple(int(d) for d in dims) + (1,) * (3 - len(dims))


class Kernel:
    """A kernel: CUDA C `source`, the function's `name`, the C types of its `args`, a NumPy `twin`.

    Compiled on first use, for the GPU of this machine. `twin=None`: it can be captured anywhere,
    and replayed on a GPU only. Raises LabError for parameter types labkit cannot pass.
    Stands for: CUDA Runtime API, Library Management; NVRTC.
    """

    def __init__(self, source, name, args, twin=None):
        self.source, self.name, self.twin = source, name, twin
        self.params = [_param(ctype) for ctype in args]
        self._converters = [(_pointer if p.pointer else _scalar)(p) for p in self.params]
        self._ctypes = tuple(ctypes.c_void_p if p.pointer else _SCALARS_BY_DTYPE[p.dtype] for p in self.params)
        self._loaded, self._function = {}, None            # cudart module: handle; the driver's view of it
        self._packed = ((), (), -1)                        # the last arguments, packed, and frees so far
        self._block = (None, 0, ())                        # the last packed values as C holds them

    def __repr__(self):
        return f"Kernel({self.name}({', '.join(p.ctype for p in self.params)}))"

    def pack(self, args):
        """The arguments as launch values: an address for a pointer, a NumPy scalar otherwise.

        A loop that launches the same objects again pays for the checks once.
        """
        seen, values, frees = self._packed
        if len(seen) == len(args) and all(map(operator.is_, seen, args)) and frees == DeviceArray.frees:
            return values
        if len(args) != len(self.params):
            raise LabError(f"{self.name} was launched with {len(args)} arguments.", f"It takes {len(self.params)}: "
                           f"{', '.join(p.ctype for p in self.params)}.", "Count them after grid and block.")
        values = tuple([convert(a) for convert, a in zip(self._converters, args)])
        if all(type(a) in _STEADY for a in args):
            self._packed = (args, values, DeviceArray.frees)
        return values

    def address(self, values):
        """Where packed values lie as C's `void* kernelParams[]`; built anew only for other values."""
        if self._block[0] is not values:
            held = [c(v if isinstance(v, int) else v.item()) for c, v in zip(self._ctypes, values)]
            array = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
            self._block = (values, ctypes.addressof(array), (array, held))
        return self._block[1]

    @property
    def func(self):
        """The handle that cudaKernelNodeParams.func takes."""
        return self.func_on(_chosen)

    def func_on(self, cudart):
        """`func` for a given cudart module (the conformance suite drives two)."""
        if cudart not in self._loaded:
            self._loaded[cudart] = _sim_handle(self) if is_simulator(cudart) else load(self, cudart)
        return self._loaded[cudart]


_STEADY = (int, float, DeviceArray)                        # types whose address or value cannot change unseen
_SCALARS_BY_DTYPE = {np.dtype(d): c for d, c in _SCALARS.values()}


def is_simulator(cudart):
    """True when this cudart module is the simulator's."""
    return cudart.__name__.startswith("labkit.sim")


_thread = threading.local()


def _gpu_launcher(cudart):
    """launch() on a GPU: the driver's cuLaunchKernel, its code given as a cudaError_t."""
    from cuda.bindings import driver
    success, launch_kernel = (cudart.cudaError_t.cudaSuccess,), driver.cuLaunchKernel

    def start(stream, kernel, grid, block, shared, values):
        if not hasattr(_thread, "context"):                # a new thread has no context until it asks
            cudart.cudaSetDevice(0)
            _thread.context = True
        if kernel._function is None:
            kernel._function = driver.CUfunction(int(kernel.func_on(cudart)))
        code, = launch_kernel(kernel._function, *grid, *block, shared, stream or 0, kernel.address(values), 0)
        return (cudart.cudaError_t(int(code)),) if code else success
    return start


def _sim_handle(kernel):
    from labkit import sim
    return sim.register(kernel)


def _sim_launcher(cudart):
    """launch() on the simulator."""
    from labkit import sim

    def start(stream, kernel, grid, block, shared, values):
        return sim.launch(stream, kernel.func_on(cudart), grid, block, shared, values)
    return start


_NO_STREAM = (tuple, list, str, bytes, float, DeviceArray, Kernel)
_launchers = {}                                            # cudart module: how to launch there


def launch_on(cudart, stream, kernel, grid, block, *args, shared=0):
    """`launch` on a given cudart module."""
    if not isinstance(kernel, Kernel):
        raise LabError(f"launch() got {type(kernel).__name__} as its kernel.", "The order is launch(stream, kernel, grid, block, *args).",
                       "Pass a labkit.Kernel second.")
    if isinstance(stream, _NO_STREAM) or not isinstance(shared, int):
        raise LabError(f"launch() got {type(stream).__name__} as its stream, and shared={shared!r:.20}.",
                       "A stream is a handle; what cudaStreamCreate returns is a tuple with a code and the handle. shared is bytes.",
                       "Unpack the tuple with ok(...), and pass the handle first.")
    if cudart not in _launchers:
        _launchers[cudart] = (_sim_launcher if is_simulator(cudart) else _gpu_launcher)(cudart)
    return _launchers[cudart](stream, kernel, _dims("grid", grid), _dims("block", block), shared, kernel.pack(args))


def launch(stream, kernel, grid, block, *args, shared=0):
    """Queue `kernel` on `stream`: (err,), like every call of cudart.

    grid, block: threads in blocks, whole numbers or tuples (x, y, z). shared: dynamic shared
    memory in bytes. Raises LabError for an argument of the wrong type; a size that the GPU
    refuses comes back as its code. Stands for: CUDA Driver API, cuLaunchKernel.
    """
    return launch_on(_chosen, stream, kernel, grid, block, *args, shared=shared)


def _elementwise(name, signature, body, twin):
    """A kernel in which thread i handles element i < n."""
    source = f'extern "C" __global__ void {name}({signature}) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) {body}\n}}\n'
    types = [" ".join(p.split()[:-1]) for p in signature.split(",")]
    # i counts 0, 1, 2 ..., so i[i < n] is a slice, which NumPy follows ten times faster than an index
    return Kernel(source, name, types, lambda i, *args: twin(slice(0, max(0, min(i.size, int(args[-1])))), *args))


def _fill(i, y, a, n):
    y[i] = a


def _scale(i, y, a, n):
    y[i] *= a


def _axpy(i, y, x, a, n):
    y[i] += a * x[i]


def _add(i, z, x, y, n):
    z[i] = x[i] + y[i]


fill = _elementwise("fill", "float* y, float a, int n", "y[i] = a;", _fill)
scale = _elementwise("scale", "float* y, float a, int n", "y[i] *= a;", _scale)
axpy = _elementwise("axpy", "float* y, const float* x, float a, int n", "y[i] += a * x[i];", _axpy)
add = _elementwise("add", "float* z, const float* x, const float* y, int n", "z[i] = x[i] + y[i];", _add)
