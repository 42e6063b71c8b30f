"""The Python side of the comparison: what a lesson can write, with nothing between it and the calls of cudart."""
import time

from labkit import cudart, graph, kernel_params, kernels, launch, ok, prepare_update
from twins import LARGEST, ROW, THREADS, Times


def captured(stream, count, batch, y, x):
    """A graph of `count` launches of axpy for a batch."""
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    for _ in range(count):
        ok(launch(stream, kernels.axpy, batch * ROW // THREADS, THREADS, y, x, 1.0, batch * ROW))
    return ok(cudart.cudaStreamEndCapture(stream))


def launches(executable, stream):
    """One launch and the wait for it, as a function of a batch that it does not need."""
    clock, start, wait = time.perf_counter_ns, cudart.cudaGraphLaunch, cudart.cudaStreamSynchronize

    def one_round(batch):
        begin = clock()
        start(executable, stream)
        returned = clock()
        wait(stream)
        finished = clock()
        return Times(-1, (returned - begin) / 1000, (finished - begin) / 1000)
    return one_round


def empty(batch):
    """What the clock itself takes: nothing happens between two looks at it."""
    clock = time.perf_counter_ns
    begin = clock()
    end = clock()
    return Times(-1, (end - begin) / 1000, (end - begin) / 1000)


def _to_update(stream, count, y, x):
    """What ten updates work on: (graph, executable, its nodes, {batch: the parameters that each node gets})."""
    made = captured(stream, count, LARGEST, y, x)
    params = {batch: kernel_params(kernels.axpy, batch * ROW // THREADS, THREADS, y, x, 1.0, batch * ROW) for batch in range(1, LARGEST + 1)}
    return made, ok(cudart.cudaGraphInstantiate(made, 0)), graph.nodes(made), params


def in_one_call(stream, count, y, x):
    """One cudaGraphExecUpdate with a graph from prepare_update, the next launch and the wait, as a function of a batch."""
    made, executable, nodes, params = _to_update(stream, count, y, x)
    copies = {batch: prepare_update(made, dict.fromkeys(nodes, p)) for batch, p in params.items()}
    clock, update, start, wait = time.perf_counter_ns, cudart.cudaGraphExecUpdate, cudart.cudaGraphLaunch, cudart.cudaStreamSynchronize

    def one_round(batch):
        copy = copies[batch]
        begin = clock()
        update(executable, copy)
        ready = clock()
        start(executable, stream)
        launched = clock()
        wait(stream)
        finished = clock()
        return Times((ready - begin) / 1000, (launched - ready) / 1000, (finished - begin) / 1000)
    return one_round


def node_by_node(stream, count, y, x):
    """`count` setters with parameters prepared before, the next launch and the wait, as a function of a batch."""
    made, executable, nodes, params = _to_update(stream, count, y, x)
    todo = {batch: [(node, p) for node in nodes] for batch, p in params.items()}
    clock, set_node, start, wait = time.perf_counter_ns, cudart.cudaGraphExecKernelNodeSetParams, cudart.cudaGraphLaunch, cudart.cudaStreamSynchronize

    def one_round(batch):
        pairs = todo[batch]
        begin = clock()
        for node, p in pairs:
            set_node(executable, node, p)
        ready = clock()
        start(executable, stream)
        launched = clock()
        wait(stream)
        finished = clock()
        return Times((ready - begin) / 1000, (launched - ready) / 1000, (finished - begin) / 1000)
    return one_round
