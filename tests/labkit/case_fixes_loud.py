"""Repaired programs of cases 01 to 08, each in two ways (fix, other), and cheats that must be refused.

A learner finds the answers here only by looking for them.
"""
from labkit import cases, cudart, graph as graphs, kernel_params, kernels, launch, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
THREAD_LOCAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
RELAXED = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
DEVICE_TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice


def begin(stream, mode=GLOBAL):
    ok(cudart.cudaStreamBeginCapture(stream, mode))


def end(stream):
    return ok(cudart.cudaStreamEndCapture(stream))


def scale(stream, y, a):
    ok(launch(stream, kernels.scale, 8, 256, y, a, y.size))


def axpy(stream, y, x, a=1.0):
    ok(launch(stream, kernels.axpy, 8, 256, y, x, a, y.size))


def nothing(stream):
    """A graph without nodes."""
    begin(stream)
    return end(stream)


def ready(graph):
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))


# 01: the query goes

def fix_01(stream, y, x):
    begin(stream)
    scale(stream, y, 2.0)
    axpy(stream, y, x)
    return end(stream)


def other_01(stream, y, x):
    cases.show("busy" if int(cudart.cudaStreamQuery(stream)[0]) else "done")
    graph = ok(cudart.cudaGraphCreate(0))                     # no capture at all
    first = ok(cudart.cudaGraphAddKernelNode(graph, [], 0, kernel_params(kernels.scale, 8, 256, y, 2.0, y.size)))
    ok(cudart.cudaGraphAddKernelNode(graph, [first], 1, kernel_params(kernels.axpy, 8, 256, y, x, 1.0, y.size)))
    return graph


def cheat_01(stream, y, x):
    scale(stream, y, 2.0)                                     # at once, and not in the graph
    begin(stream)
    axpy(stream, y, x)
    return end(stream)


def cheat_01_no_graph(stream, y, x):
    scale(stream, y, 2.0)
    axpy(stream, y, x)


# 02: another mode

def fix_02(stream, y, model, mode=THREAD_LOCAL):
    begin(stream, mode)
    ok(model(stream))
    scale(stream, y, 0.5)
    return end(stream)


def other_02(stream, y, model):
    return fix_02(stream, y, model, RELAXED)


def cheat_02(stream, y, model):
    ok(model(stream))
    begin(stream)
    scale(stream, y, 0.5)
    return end(stream)


# 03: the allocation is freed

def add_twice(stream, y, x, free):
    begin(stream)
    work = ok(cudart.cudaMallocAsync(x.nbytes, stream))
    ok(cudart.cudaMemcpyAsync(work, x.ptr, x.nbytes, DEVICE_TO_DEVICE, stream))
    ok(launch(stream, kernels.scale, 8, 256, work, 2.0, x.size))
    ok(launch(stream, kernels.axpy, 8, 256, y, work, 1.0, x.size))
    if free:
        ok(cudart.cudaFreeAsync(work, stream))
    return end(stream)


def fix_03(stream, y, x):
    return ready(add_twice(stream, y, x, True))


def other_03(stream, y, x):
    graph = add_twice(stream, y, x, False)
    return graph, ok(cudart.cudaGraphInstantiate(graph, int(cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagAutoFreeOnLaunch)))


def cheat_03(stream, y, x):
    axpy(stream, y, x, 2.0)
    return ready(nothing(stream))


# 04: the event is recorded after the last kernel

def fork_and_join(stream, side, fork, join, y, x):
    begin(stream)
    ok(cudart.cudaEventRecord(fork, stream)), ok(cudart.cudaStreamWaitEvent(side, fork, 0))
    scale(stream, y, 2.0)
    scale(side, x, 3.0)
    ok(launch(side, cases.shift, 8, 256, x, 1.0, x.size))
    ok(cudart.cudaEventRecord(join, side)), ok(cudart.cudaStreamWaitEvent(stream, join, 0))
    axpy(stream, y, x)
    return end(stream)


fix_04 = fork_and_join


def other_04(stream, side, fork, join, y, x):
    begin(stream)                                             # one stream, and its dependencies by hand
    scale(stream, y, 2.0)
    left = graphs.capture_state(stream).dependencies
    graphs.update_capture_dependencies(stream, [], replace=True)
    scale(stream, x, 3.0)
    ok(launch(stream, cases.shift, 8, 256, x, 1.0, x.size))
    graphs.update_capture_dependencies(stream, left)
    axpy(stream, y, x)
    return end(stream)


def cheat_04(stream, side, fork, join, y, x):
    begin(stream)                                             # right, and nothing beside anything
    scale(stream, y, 2.0)
    scale(stream, x, 3.0)
    ok(launch(stream, cases.shift, 8, 256, x, 1.0, x.size))
    axpy(stream, y, x)
    return end(stream)


def cheat_04_late_join(stream, side, fork, join, y, x):
    begin(stream)                                             # joined at the end: the last kernel waits for nothing of the side stream
    ok(cudart.cudaEventRecord(fork, stream)), ok(cudart.cudaStreamWaitEvent(side, fork, 0))
    scale(stream, y, 2.0)
    scale(side, x, 3.0)
    ok(launch(side, cases.shift, 8, 256, x, 1.0, x.size))
    axpy(stream, y, x)
    ok(cudart.cudaEventRecord(join, side)), ok(cudart.cudaStreamWaitEvent(stream, join, 0))
    return end(stream)


# 05: a grid of blocks

def fix_05(stream, y, x):
    begin(stream)
    for kernel, args in ((kernels.scale, (y, 2.0)), (kernels.axpy, (y, x, 1.0))):
        ok(launch(stream, kernel, -(-y.size // 256), 256, *args, y.size))
    return ready(end(stream))


def other_05(stream, y, x):
    begin(stream)
    scale(stream, y, 2.0)
    axpy(stream, y, x)
    return ready(end(stream))


def cheat_05(stream, y, x):
    begin(stream)                                             # never more than 1024 of them
    ok(launch(stream, kernels.scale, 1, min(1024, y.size), y, 2.0, y.size))
    ok(launch(stream, kernels.axpy, 1, min(1024, y.size), y, x, 1.0, y.size))
    return ready(end(stream))


# 06: the records become nodes

def fix_06(stream, start, stop, y):
    begin(stream)
    ok(cudart.cudaEventRecordWithFlags(start, stream, cudart.cudaEventRecordExternal))
    scale(stream, y, 2.0)
    ok(cudart.cudaEventRecordWithFlags(stop, stream, cudart.cudaEventRecordExternal))
    return end(stream)


def other_06(stream, start, stop, y):
    graph = ok(cudart.cudaGraphCreate(0))
    first = ok(cudart.cudaGraphAddEventRecordNode(graph, [], 0, start))
    kernel = ok(cudart.cudaGraphAddKernelNode(graph, [first], 1, kernel_params(kernels.scale, 8, 256, y, 2.0, y.size)))
    ok(cudart.cudaGraphAddEventRecordNode(graph, [kernel], 1, stop))
    return graph


def cheat_06(stream, start, stop, y):
    begin(stream)
    scale(stream, y, 2.0)
    graph = end(stream)
    ok(cudart.cudaEventRecord(start, stream)), ok(cudart.cudaEventRecord(stop, stream))     # once, and around nothing
    ok(cudart.cudaStreamSynchronize(stream))
    return graph


# 07: the old Step goes before or after the capture

def fix_07(stream, y, x, held):
    held["step"] = None
    begin(stream)
    scale(stream, y, 2.0)
    axpy(stream, y, x)
    held["step"] = cases.Step(end(stream))


def other_07(stream, y, x, held):
    begin(stream)
    scale(stream, y, 2.0)
    axpy(stream, y, x)
    held["step"] = cases.Step(end(stream))


def cheat_07(stream, y, x, held):
    if held["step"] is None:                                  # the first Step for ever
        other_07(stream, y, x, held)


# 08: the part becomes a child node, or is captured again

def fix_08(stream, y, x, part, executable):
    graph = ok(cudart.cudaGraphCreate(0))
    child = ok(cudart.cudaGraphAddChildGraphNode(graph, [], 0, part))
    ok(cudart.cudaGraphAddKernelNode(graph, [child], 1, kernel_params(kernels.axpy, 8, 256, y, x, 1.0, y.size)))
    return graph


def other_08(stream, y, x, part, executable):
    graph = ok(cudart.cudaGraphCreate(0))
    child = ok(cudart.cudaGraphAddChildGraphNode(graph, [], 0, part))
    ok(cudart.cudaStreamBeginCaptureToGraph(stream, graph, [child], None, 1, GLOBAL))
    axpy(stream, y, x)
    return end(stream)


def cheat_08_no_edge(stream, y, x, part, executable):
    graph = ok(cudart.cudaGraphCreate(0))                     # both are there, and neither waits
    ok(cudart.cudaGraphAddChildGraphNode(graph, [], 0, part))
    ok(cudart.cudaGraphAddKernelNode(graph, [], 0, kernel_params(kernels.axpy, 8, 256, y, x, 1.0, y.size)))
    return graph


def cheat_08(stream, y, x, part, executable):
    ok(cudart.cudaGraphLaunch(executable, stream))            # once
    begin(stream)
    axpy(stream, y, x)
    return end(stream)
