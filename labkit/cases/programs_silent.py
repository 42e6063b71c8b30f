"""Cases 09 to 16 as they were reported: broken programs without an error, whose values are wrong.

Lesson 19 shows the same text; a test holds the two together.
"""
import numpy as np

from labkit import cases, cudart, graph, kernels, launch, launched, ok, to_device, to_host

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
TO_HOST = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


def case_09(stream, y, bias):
    """Returns the graph: y = 2 * y, then y = y + bias."""
    def add_bias(y, bias, stream=0):
        return launch(stream, kernels.axpy, 8, 256, y, bias, 1.0, y.size)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    ok(add_bias(y, bias))
    return ok(cudart.cudaStreamEndCapture(stream))


def case_10(stream, y, batch):
    """Returns (graph, feed): after feed(new) a launch makes y = 2 * new."""
    x = to_device(batch)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.add, 8, 256, y, x, x, y.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    def feed(new):
        nonlocal x
        x = to_device(new)
    return recorded, feed


def case_11(stream, y, table):
    """Returns the graph: y = 2 * table, the table (NumPy) as it is now. The caller uses his array again."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(y.ptr, table.ctypes.data, table.nbytes, TO_DEVICE, stream))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def case_12(stream, w, grad):
    """Returns (graph, executable, set_rate): after set_rate(r) each launch makes w = w + r * grad."""
    rate = [1.0]
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, 8, 256, w, grad, rate[0], w.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    def set_rate(r):
        rate[0] = r
    return recorded, ok(cudart.cudaGraphInstantiate(recorded, 0)), set_rate


def case_13(stream, y):
    """Returns the graph: each launch fills y with noise from 0 to 1 that was not there before."""
    seed = int(np.random.randint(2 ** 30))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, cases.noise, 8, 256, y, seed, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def case_14(stream, executable, x, y, batches):
    """executable: y = 2 * x. Returns a list: the y of each batch."""
    results = []
    for batch in batches:
        ok(cudart.cudaMemcpyAsync(x.ptr, batch.ctypes.data, batch.nbytes, TO_DEVICE, stream))
        ok(cudart.cudaGraphLaunch(executable, stream))
        results.append(y)
    ok(cudart.cudaStreamSynchronize(stream))
    return [to_host(result) for result in results]


def case_15(stream, y, log):
    """Returns the graph: y = 2 * y, then y[0] is added to the list log, at each launch."""
    first = np.zeros(1, np.float32)
    def note():
        cudart.cudaMemcpy(first.ctypes.data, y.ptr, 4, TO_HOST)
        log.append(float(first[0]))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    cases.host_node(recorded, note)               # calls note() after all other nodes
    return recorded


def case_16(stream, y):
    """Returns (graph, executable, set_count): after set_count(n) a launch doubles the first n of y."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(recorded, 0))
    node, = graph.nodes(recorded)
    def set_count(n):
        ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={2: n})))
    return recorded, executable, set_count
