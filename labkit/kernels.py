"""Kernels: CUDA C text with a NumPy twin, and `launch`.

The runtime bindings have no launch call. `Kernel` and `launch` fill that gap with the driver's
own: NVRTC compiles the text, `cudaLibraryLoadData` loads it, `cuLaunchKernel` queues it.

    launch(stream, axpy, 4, 256, y, x, 2.0, 1000)     # y += 2.0 * x for 1000 floats

On the simulator the twin runs in place of the compiled text: `twin(i, *args)`, where `i` holds
the global thread index of every thread of the launch, and a pointer is indexed like an array.
The index is that of x, blockIdx.x * blockDim.x + threadIdx.x. With sizes in y or z several threads have one
index; a kernel that then goes on from what another thread has written is undefined.
"""
import ctypes
import threading

import numpy as np

from labkit.arguments import SCALARS, parameter, pointer, refused, scalar, sizes
from labkit.arrays import DeviceArray
from labkit.backend import cudart as _chosen
from labkit.compiling import compile_source, load  # noqa: F401
from labkit.errors import LabError


class Kernel:
    """A kernel: CUDA C `source`, the function's `name`, the C types of its `args`, a NumPy `twin`.

    Compiled on first use, for the GPU of this machine. `twin=None`: it can be captured anywhere,
    and replayed on a GPU only. Raises LabError for parameter types labkit cannot pass.
    Stands for: CUDA Runtime API, Library Management; NVRTC.
    """

    def __init__(self, source, name, args, twin=None):
        self.source, self.name, self.twin = source, name, twin
        self.params = [parameter(ctype) for ctype in args]
        self._converters = [(pointer if p.pointer else scalar)(p) for p in self.params]
        self._ctypes = tuple(ctypes.c_void_p if p.pointer else _SCALARS_BY_DTYPE[p.dtype] for p in self.params)
        self._loaded, self._function = {}, None            # cudart module: handle; the driver's view of it
        self._recent = ()                                  # the last few launches' arguments, packed: (types, arguments, values, frees)
        self._blocks = ()                                  # packed values as C holds them: (values, address, memory)

    def __repr__(self):
        return f"Kernel({self.name}({', '.join(p.ctype for p in self.params)}))"

    def pack(self, args):
        """The arguments as launch values: an address for a pointer, a NumPy scalar otherwise.

        A loop that launches with the same arguments again pays for the checks once.
        """
        types = tuple(map(type, args))
        for seen in self._recent:                          # types first: 2 == 2.0, and an array has no single answer to ==
            if seen[0] == types and seen[1] == args and seen[3] == DeviceArray.frees:
                return seen[2]
        if len(args) != len(self.params):
            raise LabError(f"{self.name} was launched with {len(args)} arguments.", f"It takes {len(self.params)}: "
                           f"{', '.join(p.ctype for p in self.params)}.", "Count them after grid and block.")
        frees = DeviceArray.frees                          # read first: another thread may free one meanwhile
        try:
            values = tuple([convert(a) for convert, a in zip(self._converters, args)])
        except LabError as no:
            raise refused(self, args, no) from None
        if all(t in _STEADY and (t is not float or a) for t, a in zip(types, args)):       # 0.0 == -0.0
            self._recent = ((types, args, values, frees), *self._recent[:_KEPT - 1])
        return values

    def block(self, values):
        """Packed values in C's form: (values, address of the `void* kernelParams[]`, what keeps it alive).

        Built anew only for other values. Hold on to it during the launch: another thread may launch this kernel too.
        """
        for block in self._blocks:
            if block[0] is values:
                return block
        block = (values, *self.laid_out(values))
        self._blocks = (block, *self._blocks[:_KEPT - 1])
        return block

    def address(self, values):
        """Where packed values lie as C's `void* kernelParams[]`, until some other values are packed."""
        return self.block(values)[1]

    def laid_out(self, values):
        """Packed values in memory of their own, as C's `void* kernelParams[]`: (its address, what keeps it alive)."""
        held = [c(v if isinstance(v, int) else v.item()) for c, v in zip(self._ctypes, values)]
        array = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
        return ctypes.addressof(array), (array, held)

    def read(self, address):
        """The arguments that a `void* kernelParams[]` at this address holds: an address for a pointer, a plain number otherwise."""
        slots = (ctypes.c_void_p * len(self._ctypes)).from_address(address) if self._ctypes else ()
        return tuple([c.from_address(slot).value or 0 for c, slot in zip(self._ctypes, slots)])

    @property
    def func(self):
        """The handle that cudaKernelNodeParams.func takes."""
        return self.func_on(_chosen)

    def func_on(self, cudart):
        """`func` for a given cudart module (the conformance suite drives two)."""
        if cudart not in self._loaded:
            self._loaded[cudart] = _sim_handle(self) if is_simulator(cudart) else load(self, cudart)
            if not is_simulator(cudart):
                on_gpu[int(self._loaded[cudart])] = self
        return self._loaded[cudart]


_KEPT = 4                                                  # launches whose arguments a kernel remembers
_STEADY = (int, float, DeviceArray)                        # types whose address or value cannot change unseen
_SCALARS_BY_DTYPE = {np.dtype(d): c for d, c in SCALARS.values()}


def is_simulator(cudart):
    """True when this cudart module is the simulator's."""
    return cudart.__name__.startswith("labkit.sim")


_thread = threading.local()
on_gpu = {}                                                # cudaKernel_t as int: the Kernel loaded behind it


def give_context(cudart):
    """A new thread has no CUDA context until it asks for one: ask, once a thread."""
    if not hasattr(_thread, "context"):
        cudart.cudaSetDevice(0)
        _thread.context = True


def _gpu_launcher(cudart):
    """launch() on a GPU: the driver's cuLaunchKernel, its code given as a cudaError_t."""
    from cuda.bindings import driver
    success, launch_kernel = (cudart.cudaError_t.cudaSuccess,), driver.cuLaunchKernel

    def start(stream, kernel, grid, block, shared, values):
        if not hasattr(_thread, "context"):
            give_context(cudart)
        if kernel._function is None:
            kernel._function = driver.CUfunction(int(kernel.func_on(cudart)))
        held = kernel.block(values)
        code, = launch_kernel(kernel._function, *grid, *block, shared, stream or 0, held[1], 0)
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
    return _launchers[cudart](stream, kernel, sizes("grid", grid), sizes("block", block), shared, kernel.pack(args))


def launch(stream, kernel, grid, block, *args, shared=0):
    """Queue `kernel` on `stream`: (err,), like every call of cudart.

    grid, block: threads in blocks, whole numbers or tuples (x, y, z). shared: dynamic shared
    memory in bytes. Raises LabError for an argument of the wrong type; a size that the GPU
    refuses comes back as its code. Stands for: CUDA Driver API, cuLaunchKernel.
    """
    return launch_on(_chosen, stream, kernel, grid, block, *args, shared=shared)


def _elementwise(name, signature, body, twin):
    """A kernel in which thread i handles element i < n; n is the last parameter, a number or a pointer to one."""
    *_, last = types = [" ".join(p.split()[:-1]) for p in signature.split(",")]
    bound = "*n" if "*" in last else "n"
    source = (f'extern "C" __global__ void {name}({signature}) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n'
              f"    if (i < {bound}) {body}\n}}\n")

    def run(i, *args):
        count = int(args[-1][0] if bound == "*n" else args[-1])
        # i counts 0, 1, 2 ..., so i[i < n] is a slice, which NumPy follows ten times faster than an index
        twin(slice(0, max(0, min(i.size, count))), *args)
    return Kernel(source, name, types, run)


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
axpy_n = _elementwise("axpy_n", "float* y, const float* x, float a, const int* n", "y[i] += a * x[i];", _axpy)
add = _elementwise("add", "float* z, const float* x, const float* y, int n", "z[i] = x[i] + y[i];", _add)


def _layer(name, rows):
    """A dense layer, y = x @ w, with relu where asked: thread t makes y[t // cols, t % cols]. rows: how the text reads their number."""
    signature = f"float* y, const float* x, const float* w, {'const int*' if rows == '*rows' else 'int'} rows, int inner, int cols, int relu"
    source = f"""extern "C" __global__ void {name}({signature}) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= {rows} * cols) return;
    float sum = 0.0f;
    for (int k = 0; k < inner; ++k) sum += x[t / cols * inner + k] * w[k * cols + t % cols];
    y[t] = relu && sum < 0.0f ? 0.0f : sum;
}}
"""

    def twin(i, y, x, w, n, inner, cols, relu):
        inner, cols = int(inner), int(cols)
        count = max(0, min(i.size, int(n[0] if rows == "*rows" else n) * cols))
        used = -(-count // cols) if count else 0            # rows that the threads of this launch reach
        if not used:
            return
        out = (x[0:used * inner].reshape(used, inner) @ w[0:inner * cols].reshape(inner, cols)).reshape(-1)[:count]
        y[0:count] = np.where(out < 0, 0, out) if relu else out     # the last bits may differ from the GPU's order of adding
    return Kernel(source, name, [" ".join(p.split()[:-1]) for p in signature.split(",")], twin)


dense = _layer("dense", "rows")
dense_n = _layer("dense_n", "*rows")
