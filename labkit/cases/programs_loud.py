"""Cases 01 to 08 as they were reported: broken programs, and a code appears somewhere.

Lesson 18 shows the same text; a test holds the two together. check() judges answers against these,
whatever the learner makes of his own copy.
"""
from labkit import cases, cudart, kernels, launch, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
DEVICE_TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice


def case_01(stream, y, x):
    """Returns the graph: y = 2 * y, then y = y + x."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    busy, = cudart.cudaStreamQuery(stream)        # for the progress bar; "not ready" is fine too
    cases.show("busy" if int(busy) else "done")
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def case_02(stream, y, model):
    """Returns the graph: the model, then y = y / 2. model(stream) queues kernels, slowly: (code,)."""
    ok(model(stream))                             # warm up
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(model(stream))
    ok(launch(stream, kernels.scale, 8, 256, y, 0.5, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def case_03(stream, y, x):
    """Returns (graph, executable): y = y + 2 * x at each launch."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work = ok(cudart.cudaMallocAsync(x.nbytes, stream))
    ok(cudart.cudaMemcpyAsync(work, x.ptr, x.nbytes, DEVICE_TO_DEVICE, stream))
    ok(launch(stream, kernels.scale, 8, 256, work, 2.0, x.size))
    ok(launch(stream, kernels.axpy, 8, 256, y, work, 1.0, x.size))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))


def case_04(stream, side, fork, join, y, x):
    """Returns the graph: y = 2 * y beside x = 3 * x + 1; then y = y + x. fork, join: events."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaEventRecord(fork, stream)), ok(cudart.cudaStreamWaitEvent(side, fork, 0))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    ok(launch(side, kernels.scale, 8, 256, x, 3.0, x.size))
    ok(cudart.cudaEventRecord(join, side))
    ok(launch(side, cases.shift, 8, 256, x, 1.0, x.size))
    ok(cudart.cudaStreamWaitEvent(stream, join, 0))
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def case_05(stream, y, x):
    """Returns (graph, executable): y = 2 * y, then y = y + x, for buffers of any size."""
    cudart.cudaStreamBeginCapture(stream, GLOBAL)
    launch(stream, kernels.scale, 1, y.size, y, 2.0, y.size)
    launch(stream, kernels.axpy, 1, y.size, y, x, 1.0, y.size)
    code, graph = cudart.cudaStreamEndCapture(stream)
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))


def case_06(stream, start, stop, y):
    """Returns the graph: y = 2 * y. After each launch the events tell how long the kernel took."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaEventRecord(start, stream))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    ok(cudart.cudaEventRecord(stop, stream))
    return ok(cudart.cudaStreamEndCapture(stream))


def case_07(stream, y, x, held):
    """Puts a new Step in held["step"]: y = 2 * y, then y = y + x, for these buffers."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    held["step"] = None                           # the old one was for other buffers
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    held["step"] = cases.Step(graph)              # its executable goes when nobody holds the Step


def case_08(stream, y, x, part, executable):
    """part, executable: a graph that doubles y. Returns one graph: the same, then y = y + x."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))
