"""Wrong answers to exercise 03, and what check() says of each."""
from labkit import cudart, kernels, launch, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "chain__memset_outside": "before any launch",
    "chain__memset_at_once": "before any launch",
    "chain__no_memset": "expected a graph with Memset",
    "chain__fill_for_memset": "found    a graph with fill",
    "chain__memset_last": "found    a graph with",
    "chain__one_kernel": "expected a graph with Memset, 3 axpy",
    "chain__other_order": "in this order",
    "chain__frozen_factor": "in this order",
    "chain__elements_for_bytes": "expected y",
    "chain__too_many_bytes": "stays within its buffers",
    "chain__memset_to_one": "each byte to 0",
    "chain__runs_at_once": "before any launch",
    "chain__last_only": "expected a graph with Memset, 3 axpy",
    "n_times__no_graph": "2 launches",
    "n_times__many_kernels": "2 launches",
    "n_times__instantiates_each_time": "1 instantiation",
    "n_times__runs_once": "expected y",
    "n_times__counts_the_capture": "expected y",
    "n_times__no_wait": "still had work to do",
    "n_times__waits_too_early": "still had work to do",
    "n_times__graph_left": "1 graph not destroyed",
    "n_times__executable_left": "1 executable not destroyed",
    "n_times__destroys_in_the_loop": "destroyed executable",
    "n_times__too_many_elements": "would go wrong",
    "n_times__memset_too": "expected y",
    "n_times__two_kernels": "one kernel in the graph",
    "n_times__default_stream": "in another stream",
}
RIGHT = ("chain__other_way", "n_times__other_way", "n_times__graph_goes_first")


def _grid(x):
    return -(-x.size // 256)


def _begin(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))


def _end(stream):
    return ok(cudart.cudaStreamEndCapture(stream))


def _zero(stream, y, value=0, count=None):
    ok(cudart.cudaMemsetAsync(y.ptr, value, count or y.nbytes, stream))


def _add(stream, y, x, factor=1.0, n=None):
    ok(launch(stream, kernels.axpy, _grid(y), 256, y, x, factor, n or y.size))


def _chain(stream, y, x, factors, value=0, count=None):
    _begin(stream)
    _zero(stream, y, value, count)
    for factor in factors:
        _add(stream, y, x, factor)
    return _end(stream)


def chain__memset_outside(stream, y, x, factors):
    _zero(stream, y)
    _begin(stream)
    for factor in factors:
        _add(stream, y, x, factor)
    return _end(stream)


def chain__memset_at_once(stream, y, x, factors):
    _begin(stream)
    ok(cudart.cudaMemset(y.ptr, 0, y.nbytes))
    for factor in factors:
        _add(stream, y, x, factor)
    return _end(stream)


def chain__no_memset(stream, y, x, factors):
    _begin(stream)
    for factor in factors:
        _add(stream, y, x, factor)
    return _end(stream)


def chain__fill_for_memset(stream, y, x, factors):
    _begin(stream)
    ok(launch(stream, kernels.fill, _grid(y), 256, y, 0.0, y.size))
    for factor in factors:
        _add(stream, y, x, factor)
    return _end(stream)


def chain__memset_last(stream, y, x, factors):
    _begin(stream)
    for factor in factors:
        _add(stream, y, x, factor)
    _zero(stream, y)
    return _end(stream)


def chain__one_kernel(stream, y, x, factors):
    return _chain(stream, y, x, [sum(factors)])


def chain__other_order(stream, y, x, factors):
    return _chain(stream, y, x, factors[::-1])


def chain__frozen_factor(stream, y, x, factors):
    return _chain(stream, y, x, [sum(factors) / len(factors)] * len(factors))


def chain__elements_for_bytes(stream, y, x, factors):
    return _chain(stream, y, x, factors, count=y.size)


def chain__too_many_bytes(stream, y, x, factors):
    return _chain(stream, y, x, factors, count=4 * y.nbytes)


def chain__memset_to_one(stream, y, x, factors):
    return _chain(stream, y, x, factors, value=1)


def chain__runs_at_once(stream, y, x, factors):
    _zero(stream, y)
    for factor in factors:
        _add(stream, y, x, factor)
    return _chain(stream, y, x, factors)


def chain__last_only(stream, y, x, factors):
    return _chain(stream, y, x, factors[-1:])


def chain__other_way(stream, y, x, factors):
    """Other blocks; and an event that adds nothing."""
    _begin(stream)
    _zero(stream, y)
    event = ok(cudart.cudaEventCreate())
    for factor in factors:
        ok(launch(stream, kernels.axpy, -(-y.size // 32), 32, y, x, factor, y.size))
        ok(cudart.cudaEventRecord(event, stream))
        ok(cudart.cudaStreamWaitEvent(stream, event, 0))
    return _end(stream)


def _one(stream, y, x, n=None, kernels_in_it=1, factor=1.0):
    _begin(stream)
    for _ in range(kernels_in_it):
        _add(stream, y, x, factor, n)
    graph = _end(stream)
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))


def _launch(stream, executable, times):
    for _ in range(times):
        ok(cudart.cudaGraphLaunch(executable, stream))


def _tidy(stream, graph, executable):
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(graph))


def n_times__no_graph(stream, y, x, times):
    for _ in range(times):
        _add(stream, y, x)
    ok(cudart.cudaStreamSynchronize(stream))


def n_times__many_kernels(stream, y, x, times):
    graph, executable = _one(stream, y, x, kernels_in_it=times)
    _launch(stream, executable, 1)
    _tidy(stream, graph, executable)


def n_times__instantiates_each_time(stream, y, x, times):
    for _ in range(times):
        graph, executable = _one(stream, y, x)
        _launch(stream, executable, 1)
        _tidy(stream, graph, executable)


def n_times__runs_once(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    _launch(stream, executable, 1)
    _tidy(stream, graph, executable)


def n_times__counts_the_capture(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    _launch(stream, executable, times - 1)       # "the capture was the first time"
    _tidy(stream, graph, executable)


def n_times__no_wait(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    _launch(stream, executable, times)
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(graph))


def n_times__waits_too_early(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    ok(cudart.cudaStreamSynchronize(stream))
    _launch(stream, executable, times)
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(graph))


def n_times__graph_left(stream, y, x, times):
    _, executable = _one(stream, y, x)
    _launch(stream, executable, times)
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))


def n_times__executable_left(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    ok(cudart.cudaGraphDestroy(graph))
    _launch(stream, executable, times)
    ok(cudart.cudaStreamSynchronize(stream))


def n_times__destroys_in_the_loop(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    for _ in range(times):
        ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(graph))


def n_times__too_many_elements(stream, y, x, times):
    graph, executable = _one(stream, y, x, n=2048)
    _launch(stream, executable, times)
    _tidy(stream, graph, executable)


def n_times__memset_too(stream, y, x, times):
    _begin(stream)
    _zero(stream, y)
    _add(stream, y, x)
    graph = _end(stream)
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    _launch(stream, executable, times)
    _tidy(stream, graph, executable)


def n_times__two_kernels(stream, y, x, times):
    graph, executable = _one(stream, y, x, kernels_in_it=2, factor=0.5)
    _launch(stream, executable, times)
    _tidy(stream, graph, executable)


def n_times__default_stream(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    _launch(0, executable, times)
    ok(cudart.cudaStreamSynchronize(0))
    _tidy(stream, graph, executable)


def n_times__other_way(stream, y, x, times):
    """Captured on a stream of its own; waits by an event."""
    own, event = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)), ok(cudart.cudaEventCreate())
    graph, executable = _one(own, y, x)
    _launch(stream, executable, times)
    ok(cudart.cudaEventRecord(event, stream))
    ok(cudart.cudaEventSynchronize(event))
    _tidy(own, graph, executable)


def n_times__graph_goes_first(stream, y, x, times):
    graph, executable = _one(stream, y, x)
    ok(cudart.cudaGraphDestroy(graph))
    _launch(stream, executable, times)
    ok(cudart.cudaDeviceSynchronize())
    ok(cudart.cudaGraphExecDestroy(executable))
