"""What the programs of the cases use besides CUDA: small kernels, a Step, a host node, a progress bar."""
import ctypes
import weakref

import numpy as np

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.errors import LabError, ok
from labkit.kernels import Kernel, _elementwise

_HASH = "unsigned int h = ((unsigned int)({seed}) + i) * 2654435761u; h ^= h >> 15; h *= 2246822519u; h ^= h >> 13; y[i] = (h >> 8) / 16777216.0f;"


def _numbers(seed, count):
    """What _HASH makes, for elements 0 to count - 1."""
    h = (np.arange(count, dtype=np.uint64) + np.uint64(int(seed) % 2 ** 32)) * np.uint64(2654435761) % np.uint64(2 ** 32)
    h ^= h >> np.uint64(15)
    h = h * np.uint64(2246822519) % np.uint64(2 ** 32)
    h ^= h >> np.uint64(13)
    return (h >> np.uint64(8)).astype(np.float32) / np.float32(16777216)


def _shift(i, y, a, n):
    y[i] += a


def _noise(i, y, seed, n):
    y[i] = _numbers(seed, i.stop)


def _noise_at(i, y, seed, n):
    y[i] = _numbers(seed[0], i.stop)


def _advance(i, seed, by):
    seed[0] += int(by)


shift = _elementwise("shift", "float* y, float a, int n", "y[i] += a;", _shift)
noise = _elementwise("noise", "float* y, int seed, int n", "{ " + _HASH.format(seed="seed") + " }", _noise)
noise_at = _elementwise("noise_at", "float* y, const int* seed, int n", "{ " + _HASH.format(seed="seed[0]") + " }", _noise_at)
advance = Kernel('extern "C" __global__ void advance(int* seed, int by) {\n    if (blockIdx.x + threadIdx.x == 0) seed[0] += by;\n}\n',
                 "advance", ["int*", "int"], _advance)


class Step:
    """A graph that is ready to be launched, as PyTorch's and CuPy's graph objects are: it owns graph and executable.

    .graph, .executable. Both are destroyed when Python lets go of the Step.
    """

    def __init__(self, graph):
        self.graph, self.executable = graph, ok(cudart.cudaGraphInstantiate(graph, 0))
        weakref.finalize(self, _destroy, graph, self.executable)


_refused = []                   # executables that could not be destroyed when their Step went


def _destroy(graph, executable):
    if int(cudart.cudaGraphExecDestroy(executable)[0]):
        _refused.append(executable)
    cudart.cudaGraphDestroy(graph)


_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_called = []                    # [(what keeps a host node's function alive, what it raised)]


def host_node(graph, function):
    """Add a host node that calls function() after all other nodes, at each launch, and keep it alive. Stands for: cudaGraphAddHostNode."""
    if not callable(function):
        raise LabError(f"host_node() got {type(function).__name__} as its function.", "It calls a Python function without arguments.",
                       "Pass the function itself, without brackets.")
    raised = []

    def call(_):
        try:
            function()
        except BaseException as error:              # nobody above could take it
            raised.append(error)
    made = _Function(call)
    params = cudart.cudaHostNodeParams()
    params.fn, params.userData = cudart.cudaHostFn_t(ctypes.cast(made, ctypes.c_void_p).value), 0
    _called.append((made, params, raised))
    before = [node for node in graphs.nodes(graph) if not graphs.dependents(node)]
    return ok(cudart.cudaGraphAddHostNode(graph, before, len(before), params))


def raised_in_host_nodes():
    """What functions of host nodes raised."""
    return [error for *_, raised in _called for error in raised]


def tidy():
    """After a check: nothing of it is launched any more."""
    while _refused:
        cudart.cudaGraphExecDestroy(_refused.pop())
    _called.clear()


def show(text):
    """A progress bar that nobody looks at."""
