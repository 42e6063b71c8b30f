"""Wrong answers to exercise 12, and what check() says of each."""
import functools

from labkit import cudart, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "serving__plain_stream": "without a call of work",
    "serving__captured_again": "without a call of work",
    "serving__captured_and_updated": "without a call of work",
    "serving__pads": "which are left alone",
    "serving__last_size_only": "after serving a batch",
    "serving__served_before": "the first",
    "serving__one_batch_late": "the first",
    "serving__returns_the_table": "expected back: function",
    "serving__at_first_use": "without a call of work",
    "serving__forgets_to_launch": "the first",
    "serving__launches_twice": "the first",
    "serving__in_a_stream_of_its_own": "every launch in the stream that was given",
    "serving__in_the_default_stream": "every launch in the stream that was given",
    "serving__instantiates_each_time": "an executable that is there is launched",
    "serving__destroyed_them": "was given the handle of a destroyed executable",
    "cache__in_a_stream_of_its_own": "every launch in the stream that was given",
    "cache__keeps_the_graphs_only": "an executable that is there is launched",
    "cache__keeps_nothing": "no call of work",
    "cache__keeps_the_last": "no call of work",
    "cache__all_in_advance": "no call of work before a batch comes",
    "cache__plain_stream": "work called in a capture",
    "cache__plain_at_first": "one call of work",
    "cache__forgets_the_first_launch": "the first",
    "cache__one_for_all": "after serving a batch",
    "cache__shared_by_all": "an earlier call of the outer function",
    "cache__pads": "which are left alone",
}
RIGHT = ("serving__other_way", "cache__other_way")
SIM_ONLY = ("cache__shared_by_all",)


def _record(stream, work, batch):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(batch)
    return ok(cudart.cudaStreamEndCapture(stream))


def _made(stream, work, batch):
    graph = _record(stream, work, batch)
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphDestroy(graph))
    return executable


def _launch(executable, stream):
    ok(cudart.cudaGraphLaunch(executable, stream))


def serving__plain_stream(stream, work, sizes):
    return work


def serving__captured_again(stream, work, sizes):
    def serve(batch):
        executable = _made(stream, work, batch)
        _launch(executable, stream)
        ok(cudart.cudaGraphExecDestroy(executable))
    return serve


def serving__captured_and_updated(stream, work, sizes):
    executable = _made(stream, work, max(sizes))

    def serve(batch):
        graph = _record(stream, work, batch)
        ok(cudart.cudaGraphExecUpdate(executable, graph))
        ok(cudart.cudaGraphDestroy(graph))
        _launch(executable, stream)
    return serve


def serving__pads(stream, work, sizes):
    executable = _made(stream, work, max(sizes))
    return lambda batch: _launch(executable, stream)


def serving__last_size_only(stream, work, sizes):
    ready = {}
    for size in sizes:
        executable = _made(stream, work, size)
        ready[size] = lambda: _launch(executable, stream)       # the name, not what it stood for
    return lambda batch: ready[batch]()


def serving__served_before(stream, work, sizes):
    for size in sizes:
        _launch(_made(stream, work, size), stream)
    return lambda batch: None


def serving__one_batch_late(stream, work, sizes):
    ready, waiting = {size: _made(stream, work, size) for size in sizes}, []

    def serve(batch):
        waiting.append(batch)
        if len(waiting) > 1:
            _launch(ready[waiting.pop(0)], stream)
    return serve


def serving__returns_the_table(stream, work, sizes):
    return {size: _made(stream, work, size) for size in sizes}


def serving__at_first_use(stream, work, sizes):
    return _cached(stream, work, {})


def serving__forgets_to_launch(stream, work, sizes):
    ready = {size: _made(stream, work, size) for size in sizes}
    return lambda batch: ready[batch]


def serving__launches_twice(stream, work, sizes):
    ready = {size: _made(stream, work, size) for size in sizes}

    def serve(batch):
        _launch(ready[batch], stream)
        _launch(ready[batch], stream)
    return serve


class _Served:
    def __init__(self, stream, work, sizes):
        self.stream, self.ready = stream, [None] * (max(sizes) + 1)
        for size in sizes:
            self.ready[size] = _made(stream, work, size)
            ok(cudart.cudaGraphUpload(self.ready[size], stream))

    def __call__(self, batch):
        _launch(self.ready[batch], self.stream)
        ok(cudart.cudaStreamSynchronize(self.stream))
        return "served"


def serving__other_way(stream, work, sizes):
    """An object that can be called, with a list; it uploads, waits, and returns something."""
    return _Served(stream, work, sizes)


def _cached(stream, work, ready):
    def serve(batch):
        if batch not in ready:
            ready[batch] = _made(stream, work, batch)
        _launch(ready[batch], stream)
    return serve


def _own_stream():
    return ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))


def serving__in_a_stream_of_its_own(stream, work, sizes):
    ready, own = {size: _made(stream, work, size) for size in sizes}, _own_stream()
    return lambda batch: _launch(ready[batch], own)


def serving__in_the_default_stream(stream, work, sizes):
    ready = {size: _made(stream, work, size) for size in sizes}
    return lambda batch: _launch(ready[batch], 0)


def serving__instantiates_each_time(stream, work, sizes):
    graphs = {size: _record(stream, work, size) for size in sizes}
    return lambda batch: _launch(ok(cudart.cudaGraphInstantiate(graphs[batch], 0)), stream)


def serving__destroyed_them(stream, work, sizes):
    ready = {size: _made(stream, work, size) for size in sizes}
    for executable in ready.values():
        ok(cudart.cudaGraphExecDestroy(executable))
    return lambda batch: _launch(ready[batch], stream)


def cache__in_a_stream_of_its_own(stream, work):
    ready, own = {}, _own_stream()

    def serve(batch):
        if batch not in ready:
            ready[batch] = _made(stream, work, batch)
        _launch(ready[batch], own)
    return serve


def cache__keeps_the_graphs_only(stream, work):
    graphs = {}

    def serve(batch):
        if batch not in graphs:
            graphs[batch] = _record(stream, work, batch)
        executable = ok(cudart.cudaGraphInstantiate(graphs[batch], 0))
        _launch(executable, stream)
        ok(cudart.cudaGraphExecDestroy(executable))
    return serve


def cache__keeps_nothing(stream, work):
    return lambda batch: _launch(_made(stream, work, batch), stream)


def cache__keeps_the_last(stream, work):
    kept = {}

    def serve(batch):
        if batch not in kept:
            kept.clear()
            kept[batch] = _made(stream, work, batch)
        _launch(kept[batch], stream)
    return serve


def cache__all_in_advance(stream, work):
    return _cached(stream, work, {size: _made(stream, work, size) for size in range(1, 9)})


def cache__plain_stream(stream, work):
    return work


def cache__plain_at_first(stream, work):
    ready = {}

    def serve(batch):
        if batch in ready:
            _launch(ready[batch], stream)
        else:
            work(batch)
            ready[batch] = _made(stream, work, batch)
    return serve


def cache__forgets_the_first_launch(stream, work):
    ready = {}

    def serve(batch):
        if batch in ready:
            _launch(ready[batch], stream)
        else:
            ready[batch] = _made(stream, work, batch)
    return serve


def cache__one_for_all(stream, work):
    made = []

    def serve(batch):
        if not made:
            made.append(_made(stream, work, batch))
        _launch(made[0], stream)
    return serve


def cache__shared_by_all(stream, work, ready={}):
    """One dictionary for all calls: the next work finds the executables of the one before."""
    return _cached(stream, work, ready)


def cache__pads(stream, work):
    largest = []

    def serve(batch):
        if not largest or batch > largest[0]:
            largest[:] = batch, _made(stream, work, batch)
        _launch(largest[1], stream)
    return serve


def cache__other_way(stream, work):
    """Python's own cache, and a graph that is kept."""
    @functools.cache
    def ready(batch):
        return ok(cudart.cudaGraphInstantiateWithFlags(_record(stream, work, batch), 0))
    return lambda batch: _launch(ready(batch), stream)
