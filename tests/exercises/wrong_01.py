"""Wrong answers to exercise 01, and what check() says of each."""
from labkit import cudart, kernels, launch, ok

MODES = cudart.cudaStreamCaptureMode
GLOBAL = MODES.cudaStreamCaptureModeGlobal
EXPECT = {
    "capture_one__runs_at_once": "before any launch",
    "capture_one__runs_as_well": "before any launch",
    "capture_one__nothing_in_it": "no nodes",
    "capture_one__twice": "2 axpy",
    "capture_one__elsewhere": "before any launch",
    "capture_one__one_block": "expected: 4 blocks of 256 threads",
    "capture_one__four_elements": "expected y",
    "capture_one__too_many_elements": "stays within its buffers",
    "capture_one__wrong_factor": "expected y",
    "capture_one__swapped": "expected y",
    "capture_one__other_kernel": "expected a graph with axpy",
    "capture_one__tuple": "found: cudaError_t, cudaGraph_t",
    "capture_one__left_open": "left a capture open",
    "capture_one__executable": "found: cudaGraphExec_t",
    "capture_one__grid_and_block_swapped": "1 block of 256 threads",
    "capture_one__large_blocks": "block (1024, 1, 1)",
    "capture_one__one_thread_a_block": "block (1, 1, 1)",
    "capture_one__small_blocks": "block (64, 1, 1)",
    "capture_one__executable_left": "1 executable not destroyed",
    "capture_one__destroyed": "has destroyed",
    "replay__once": "expected y",
    "replay__no_wait": "still had work to do",
    "replay__waits_before_each": "still had work to do",
    "replay__many_executables": "1 instantiation",
    "replay__not_destroyed": "1 executable not destroyed",
    "replay__graph_destroyed": "the graph is left alone",
    "replay__clone_left": "1 graph not destroyed",
    "replay__destroyed_before": "destroyed executable",
    "replay__one_too_many": "expected y",
    "replay__default_stream": "in another stream",
    "replay__only_uploaded": "expected y",
    "replay__launches_the_graph": "expected y",
}
RIGHT = ("capture_one__other_way", "replay__other_way", "replay__waits_each_time", "replay__waits_by_asking", "replay__a_clone")


def _capture(stream, *launches):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for one in launches:
        ok(launch(stream, *one))
    return ok(cudart.cudaStreamEndCapture(stream))


def _axpy(y, x, a=2.0, n=None, grid=None):
    return kernels.axpy, grid or -(-y.size // 256), 256, y, x, a, n or y.size


def capture_one__runs_at_once(stream, y, x):
    ok(launch(stream, *_axpy(y, x)))
    return _capture(stream)


def capture_one__runs_as_well(stream, y, x):
    ok(launch(stream, *_axpy(y, x)))             # "a warm-up"
    return _capture(stream, _axpy(y, x))


def capture_one__nothing_in_it(stream, y, x):
    return _capture(stream)


def capture_one__twice(stream, y, x):
    return _capture(stream, _axpy(y, x, 1.0), _axpy(y, x, 1.0))


def capture_one__elsewhere(stream, y, x):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    ok(launch(other, *_axpy(y, x)))
    return ok(cudart.cudaStreamEndCapture(stream))


def capture_one__one_block(stream, y, x):
    return _capture(stream, _axpy(y, x, grid=1))


def capture_one__four_elements(stream, y, x):
    return _capture(stream, _axpy(y, x, n=4))


def capture_one__too_many_elements(stream, y, x):
    return _capture(stream, _axpy(y, x, n=2048))


def capture_one__wrong_factor(stream, y, x):
    return _capture(stream, _axpy(y, x, 1.0))


def capture_one__swapped(stream, y, x):
    return _capture(stream, _axpy(x, y))


def capture_one__other_kernel(stream, y, x):
    return _capture(stream, (kernels.add, -(-y.size // 256), 256, y, y, x, y.size))


def capture_one__tuple(stream, y, x):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, *_axpy(y, x)))
    return cudart.cudaStreamEndCapture(stream)


def capture_one__left_open(stream, y, x):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, *_axpy(y, x)))


def capture_one__executable(stream, y, x):
    return ok(cudart.cudaGraphInstantiate(_capture(stream, _axpy(y, x)), 0))


def capture_one__destroyed(stream, y, x):
    graph = _capture(stream, _axpy(y, x))
    ok(cudart.cudaGraphDestroy(graph))
    return graph


def capture_one__other_way(stream, y, x):
    """Another mode; an executable of its own, which it destroys; grid and block with three numbers."""
    ok(cudart.cudaStreamBeginCapture(stream, MODES.cudaStreamCaptureModeRelaxed))
    ok(launch(stream, kernels.axpy, (-(-y.size // 256), 1, 1), (256, 1, 1), y, x, 2.0, y.size))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    ok(cudart.cudaGraphExecDestroy(ok(cudart.cudaGraphInstantiate(graph, 0))))
    return graph


def capture_one__grid_and_block_swapped(stream, y, x):
    return _capture(stream, (kernels.axpy, 256, -(-y.size // 256), y, x, 2.0, y.size))


def capture_one__large_blocks(stream, y, x):
    return _capture(stream, (kernels.axpy, -(-y.size // 1024), 1024, y, x, 2.0, y.size))


def capture_one__small_blocks(stream, y, x):
    return _capture(stream, (kernels.axpy, -(-y.size // 64), 64, y, x, 2.0, y.size))


def capture_one__executable_left(stream, y, x):
    graph = _capture(stream, _axpy(y, x))
    ok(cudart.cudaGraphInstantiate(graph, 0))
    return graph


def capture_one__one_thread_a_block(stream, y, x):
    return _capture(stream, (kernels.axpy, y.size, 1, y, x, 2.0, y.size))


def _run(stream, executable, times):
    for _ in range(times):
        ok(cudart.cudaGraphLaunch(executable, stream))


def _finish(stream, executable):
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))


def replay__once(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    _run(stream, executable, 1)
    _finish(stream, executable)


def replay__no_wait(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    _run(stream, executable, times)
    ok(cudart.cudaGraphExecDestroy(executable))


def replay__many_executables(stream, graph, times):
    for _ in range(times):
        executable = ok(cudart.cudaGraphInstantiate(graph, 0))
        _run(stream, executable, 1)
        _finish(stream, executable)


def replay__not_destroyed(stream, graph, times):
    _run(stream, ok(cudart.cudaGraphInstantiate(graph, 0)), times)
    ok(cudart.cudaStreamSynchronize(stream))


def replay__graph_destroyed(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    _run(stream, executable, times)
    _finish(stream, executable)
    ok(cudart.cudaGraphDestroy(graph))


def replay__destroyed_before(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphExecDestroy(executable))
    _run(stream, executable, times)


def replay__one_too_many(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    _run(stream, executable, times + 1)
    _finish(stream, executable)


def replay__default_stream(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    _run(0, executable, times)
    ok(cudart.cudaStreamSynchronize(stream))
    _finish(0, executable)


def replay__only_uploaded(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    for _ in range(times):
        ok(cudart.cudaGraphUpload(executable, stream))
    _finish(stream, executable)


def replay__launches_the_graph(stream, graph, times):
    for _ in range(times):
        cudart.cudaGraphInstantiate(graph, 0)    # and nobody launches it


def replay__other_way(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiateWithFlags(graph, flags=0))
    ok(cudart.cudaGraphUpload(executable, stream))
    _run(stream, executable, times)
    ok(cudart.cudaDeviceSynchronize())
    ok(cudart.cudaGraphExecDestroy(executable))


def replay__waits_each_time(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiateWithParams(graph, cudart.cudaGraphInstantiateParams()))
    for _ in range(times):
        _run(stream, executable, 1)
        ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))


def replay__waits_by_asking(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    _run(stream, executable, times)
    while int(cudart.cudaStreamQuery(stream)[0]):
        pass
    ok(cudart.cudaGraphExecDestroy(executable))


def _through_a_clone(stream, graph, times):
    clone = ok(cudart.cudaGraphClone(graph))
    executable = ok(cudart.cudaGraphInstantiate(clone, 0))
    _run(stream, executable, times)
    _finish(stream, executable)
    return clone


def replay__clone_left(stream, graph, times):
    _through_a_clone(stream, graph, times)


def replay__a_clone(stream, graph, times):
    """A copy of one's own, which one destroys; the given graph stays."""
    ok(cudart.cudaGraphDestroy(_through_a_clone(stream, graph, times)))


def replay__waits_before_each(stream, graph, times):
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    for _ in range(times):
        ok(cudart.cudaStreamSynchronize(stream))
        _run(stream, executable, 1)
    ok(cudart.cudaGraphExecDestroy(executable))
