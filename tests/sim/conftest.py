"""A fresh simulated machine for every test, on the 12.9 line unless a test asks for another."""
import ctypes
import threading

import numpy as np
import pytest

from labkit import kernels, sim
from labkit.errors import ok
from labkit.sim import runtime


@pytest.fixture(autouse=True)
def fresh_world():
    before = sim.line()
    sim.set_line(12)
    sim.reset()
    yield
    sim.reset()
    sim.set_line(before)


class Lab:
    """Short names for what most tests do, over the simulator's runtime module."""
    N = 64

    def __init__(self):
        self.cudart = runtime
        self.GLOBAL, self.THREAD_LOCAL, self.RELAXED = runtime.cudaStreamCaptureMode
        kinds = runtime.cudaMemcpyKind
        self.H2D, self.D2H, self.D2D = kinds.cudaMemcpyHostToDevice, kinds.cudaMemcpyDeviceToHost, kinds.cudaMemcpyDeviceToDevice

    def stream(self, blocking=False):
        return ok(runtime.cudaStreamCreateWithFlags(0 if blocking else runtime.cudaStreamNonBlocking))

    def event(self):
        return ok(runtime.cudaEventCreate())

    def buffer(self, n=N, value=None):
        address = ok(runtime.cudaMalloc(4 * n))
        if value is not None:
            host = np.full(n, value, np.float32)
            ok(runtime.cudaMemcpy(address, host, 4 * n, self.H2D))
        return address

    def launch(self, stream, kernel, *args, grid=1, block=64, shared=0):
        return kernels.launch_on(runtime, stream, kernel, grid, block, *args, shared=shared)[0]

    def step(self, stream, buffer, n=N):
        """One kernel on the buffer: y *= 2."""
        return self.launch(stream, kernels.scale, buffer, 2.0, n)

    def read(self, address, n=N):
        host = np.empty(n, np.float32)
        ok(runtime.cudaMemcpy(host, address, 4 * n, self.D2H))
        return host

    def kinds(self, graph):
        count = runtime.cudaGraphGetNodes(graph)[-1]
        return [runtime.cudaGraphNodeGetType(node)[1].name.removeprefix("cudaGraphNodeType")
                for node in runtime.cudaGraphGetNodes(graph, count)[1]]

    def edges(self, graph):
        place = {n: i for i, n in enumerate(runtime.cudaGraphGetNodes(graph, runtime.cudaGraphGetNodes(graph)[-1])[1])}
        count = runtime.cudaGraphGetEdges(graph)[-1]
        from_, to = runtime.cudaGraphGetEdges(graph, count)[1:3]
        return sorted((place[a], place[b]) for a, b in zip(from_, to))

    def status(self, stream):
        return runtime.cudaStreamIsCapturing(stream)[1].name.removeprefix("cudaStreamCaptureStatus")

    def run(self, graph, stream, times=1):
        made = ok(runtime.cudaGraphInstantiate(graph, 0))
        for _ in range(times):
            ok(runtime.cudaGraphLaunch(made, stream))
        ok(runtime.cudaStreamSynchronize(stream))
        return made

    def elsewhere(self, function):
        """Run a function in another thread and give back what it returned."""
        found = []
        other = threading.Thread(target=lambda: found.append(function()))
        other.start()
        other.join(10)
        assert found, "the other thread did not come back"
        return found[0]

    def host_function(self, function):
        """A host function as (handle, what keeps it alive)."""
        made = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda argument: function())
        return runtime.cudaHostFn_t(ctypes.cast(made, ctypes.c_void_p).value), made


@pytest.fixture
def lab():
    return Lab()
