"""Wrong answers to exercise 24, and what check() says of each."""
import collections
import functools

from labkit import cudart, empty, kernels, launch, ok

GLOBAL, RELAXED = (getattr(cudart.cudaStreamCaptureMode, f"cudaStreamCaptureMode{mode}") for mode in ("Global", "Relaxed"))
DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
EXPECT = {
    "warm__cold": "900 cudaErrorStreamCaptureUnsupported",
    "warm__inside": "900 cudaErrorStreamCaptureUnsupported",
    "warm__other_stream": "900 cudaErrorStreamCaptureUnsupported",
    "warm__other_size": "900 cudaErrorStreamCaptureUnsupported",
    "warm__relaxed": "as a warm-up",
    "warm__relaxed_after_a_warm_up": "a capture of mode Global",
    "warm__catches": "901 cudaErrorStreamCaptureInvalidated",
    "warm__on_y": "after the function has returned",
    "warm__on_y_and_half_back": "after the function has returned",
    "warm__captures_spare": "for y",
    "warm__captures_both": "for y",
    "warm__twice_inside": "for y",
    "warm__no_library": "none in the capture",
    "warm__outside_only": "none in the capture",
    "warm__launches": "after the function has returned",
    "warm__an_executable": "expected back: graph",
    "warm__wrong_way_round": "TypeError",
    "shapes__plain": "work called while nothing was captured",
    "shapes__keeps_nothing": "no call of work",
    "shapes__destroys_at_once": "one that is new",
    "shapes__unbounded": "never more than 2 executables",
    "shapes__forgets_without_destroying": "never more than 2 executables",
    "shapes__lru_cache": "never more than 2 executables",
    "shapes__first_in_first_out": "of the executables",
    "shapes__drops_the_latest": "of the executables",
    "shapes__drops_the_smallest": "of the executables",
    "shapes__drops_the_least_often_used": "of the executables",
    "shapes__drops_all": "of the executables",
    "shapes__makes_first": "never more than 2 executables",
    "shapes__one_too_many": "never more than 2 executables",
    "shapes__one_too_few": "of the executables none is destroyed",
    "shapes__destroys_in_the_capture": "900 cudaErrorStreamCaptureUnsupported",
    "shapes__keeps_what_it_destroyed": ("was given the handle of a destroyed executable", "one call of work"),      # on a GPU the handle comes again
    "shapes__destroys_what_it_keeps": "was given the handle of a destroyed executable",
    "shapes__leaves_the_graphs": "no more graphs than executables",
    "shapes__launches_twice": "one launch",
    "shapes__launches_only_hits": "one launch",
    "shapes__one_for_all": "one call of work",
    "shapes__updates_the_dropped": "is destroyed",
    "shapes__warms_up": "one call of work",
    "shapes__in_advance": "no call of work before a shape comes",
    "shapes__pads": "work",
    "shapes__shared_by_all": "of work",
    "shapes__always_two": "never more than 1 executable",
    "shapes__the_table": "expected back: function",
}
RIGHT = ("warm__other_way", "warm__saves_y", "warm__three_times", "shapes__other_way", "shapes__keeps_graphs_too", "shapes__by_the_clock")
SIM_ONLY = ("shapes__shared_by_all",)


def _record(stream, work, *args, mode=GLOBAL):
    ok(cudart.cudaStreamBeginCapture(stream, mode))
    work(*args)
    return ok(cudart.cudaStreamEndCapture(stream))


def warm__cold(stream, library, y, spare):
    return _record(stream, library, y, stream)


def warm__inside(stream, library, y, spare):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    library(spare, stream)
    library(y, stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def warm__other_stream(stream, library, y, spare):
    library(spare, 0)
    return _record(stream, library, y, stream)


def warm__other_size(stream, library, y, spare):
    library(empty(2), stream)
    return _record(stream, library, y, stream)


def warm__relaxed(stream, library, y, spare):
    return _record(stream, library, y, stream, mode=RELAXED)


def warm__catches(stream, library, y, spare):
    try:
        return _record(stream, library, y, stream)
    except Exception:
        return ok(cudart.cudaStreamEndCapture(stream))


def warm__on_y(stream, library, y, spare):
    library(y, stream)
    return _record(stream, library, y, stream)


def warm__on_y_and_half_back(stream, library, y, spare):
    library(y, stream)
    graph = _record(stream, library, y, stream)
    ok(launch(stream, kernels.scale, 1, 2, y, 0.5, 2))
    return graph


def warm__captures_spare(stream, library, y, spare):
    library(spare, stream)
    return _record(stream, library, spare, stream)


def warm__captures_both(stream, library, y, spare):
    library(spare, stream)
    return _record(stream, lambda: (library(spare, stream), library(y, stream)))


def warm__twice_inside(stream, library, y, spare):
    library(spare, stream)
    return _record(stream, lambda: (library(y, stream), library(y, stream)))


def warm__no_library(stream, library, y, spare):
    return _record(stream, lambda: ok(launch(stream, kernels.scale, -(-y.size // 256), 256, y, 2.0, y.size)))


def warm__outside_only(stream, library, y, spare):
    library(spare, stream)
    return _record(stream, lambda: None)


def warm__launches(stream, library, y, spare):
    graph = warm__three_times(stream, library, y, spare)
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphLaunch(executable, stream))
    return graph


def warm__an_executable(stream, library, y, spare):
    return ok(cudart.cudaGraphInstantiate(warm__three_times(stream, library, y, spare), 0))


def warm__wrong_way_round(stream, library, y, spare):
    library(stream, spare)
    return _record(stream, library, stream, y)


def warm__other_way(stream, library, y, spare):
    """On a buffer of its own, with a wait."""
    mine = empty(y.size)
    ok(launch(stream, kernels.fill, -(-y.size // 256), 256, mine, 0.0, y.size))
    library(mine, stream)
    ok(cudart.cudaStreamSynchronize(stream))
    mine.free()
    return _record(stream, library, y, stream)


def warm__saves_y(stream, library, y, spare):
    """On y itself, whose numbers are kept in spare meanwhile."""
    ok(cudart.cudaMemcpyAsync(spare.ptr, y.ptr, y.nbytes, DEVICE, stream))
    library(y, stream)
    ok(cudart.cudaMemcpyAsync(y.ptr, spare.ptr, y.nbytes, DEVICE, stream))
    return _record(stream, library, y, stream)


def warm__three_times(stream, library, y, spare):
    """More than once does no harm."""
    for _ in range(3):
        library(spare, stream)
    return _record(stream, library, y, stream)


def warm__relaxed_after_a_warm_up(stream, library, y, spare):
    library(spare, stream)
    return _record(stream, library, y, stream, mode=RELAXED)


# ---- part 2 --------------------------------------------------------------------------------------

def _made(stream, work, shape):
    graph = _record(stream, work, shape)
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphDestroy(graph))
    return executable


def _go(executable, stream):
    ok(cudart.cudaGraphLaunch(executable, stream))


def _end(executable):
    ok(cudart.cudaGraphExecDestroy(executable))


def _cache(stream, work, drop, kept=None, touch=True):
    """serve, with drop(kept) before one is made: it says which shapes go."""
    kept = {} if kept is None else kept

    def serve(shape):
        if shape not in kept:
            for one in drop(kept):
                _end(kept.pop(one))
            kept[shape] = _made(stream, work, shape)
        elif touch:
            kept[shape] = kept.pop(shape)
        _go(kept[shape], stream)
    return serve


def _full(most, which):
    return lambda kept: which(kept) if len(kept) >= most else []


def shapes__plain(stream, work, most):
    return work


def shapes__keeps_nothing(stream, work, most):
    held = []

    def serve(shape):
        made = _made(stream, work, shape)
        _go(made, stream)
        held.append(made)
        if len(held) > most:
            _end(held.pop(0))
    return serve


def shapes__destroys_at_once(stream, work, most):
    def serve(shape):
        executable = _made(stream, work, shape)
        _go(executable, stream)
        _end(executable)
    return serve


def shapes__unbounded(stream, work, most):
    return _cache(stream, work, lambda kept: [])


def shapes__forgets_without_destroying(stream, work, most):
    kept = {}

    def serve(shape):
        if shape not in kept:
            if len(kept) == most:
                del kept[next(iter(kept))]
            kept[shape] = _made(stream, work, shape)
        kept[shape] = kept.pop(shape)
        _go(kept[shape], stream)
    return serve


def shapes__lru_cache(stream, work, most):
    @functools.lru_cache(most)
    def ready(shape):
        return _made(stream, work, shape)
    return lambda shape: _go(ready(shape), stream)


def shapes__first_in_first_out(stream, work, most):
    return _cache(stream, work, _full(most, lambda kept: [next(iter(kept))]), touch=False)


def shapes__drops_the_latest(stream, work, most):
    return _cache(stream, work, _full(most, lambda kept: [list(kept)[-1]]))


def shapes__drops_the_smallest(stream, work, most):
    return _cache(stream, work, _full(most, lambda kept: [min(kept)]))


def shapes__drops_the_least_often_used(stream, work, most):
    times = collections.Counter()
    inner = _cache(stream, work, _full(most, lambda kept: [min(kept, key=times.__getitem__)]))

    def serve(shape):
        times[shape] += 1
        inner(shape)
    return serve


def shapes__drops_all(stream, work, most):
    return _cache(stream, work, _full(most, list))


def shapes__makes_first(stream, work, most):
    kept = {}

    def serve(shape):
        if shape not in kept:
            kept[shape] = _made(stream, work, shape)
            if len(kept) > most:
                _end(kept.pop(next(iter(kept))))
        kept[shape] = kept.pop(shape)
        _go(kept[shape], stream)
    return serve


def shapes__one_too_many(stream, work, most):
    return _cache(stream, work, lambda kept: [next(iter(kept))] if len(kept) > most else [])


def shapes__one_too_few(stream, work, most):
    return _cache(stream, work, lambda kept: [next(iter(kept))] if kept and len(kept) >= most - 1 else [])


def shapes__destroys_in_the_capture(stream, work, most):
    kept = {}

    def serve(shape):
        if shape not in kept:
            ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
            if len(kept) == most:
                _end(kept.pop(next(iter(kept))))
            work(shape)
            graph = ok(cudart.cudaStreamEndCapture(stream))
            kept[shape] = ok(cudart.cudaGraphInstantiate(graph, 0))
            ok(cudart.cudaGraphDestroy(graph))
        kept[shape] = kept.pop(shape)
        _go(kept[shape], stream)
    return serve


def shapes__keeps_what_it_destroyed(stream, work, most):
    kept, order = {}, []

    def serve(shape):
        if shape not in kept:
            if len(order) == most:
                _end(kept[order.pop(0)])            # and it stays in kept
            kept[shape] = _made(stream, work, shape)
        if shape in order:
            order.remove(shape)
        order.append(shape)
        _go(kept[shape], stream)
    return serve


def shapes__destroys_what_it_keeps(stream, work, most):
    kept = {}

    def serve(shape):
        if shape not in kept:
            kept[shape] = _made(stream, work, shape)
            _end(kept[shape])
        _go(kept[shape], stream)
    return serve


def shapes__leaves_the_graphs(stream, work, most):
    kept = {}

    def serve(shape):
        if shape not in kept:
            if len(kept) == most:
                _end(kept.pop(next(iter(kept))))
            kept[shape] = ok(cudart.cudaGraphInstantiate(_record(stream, work, shape), 0))
        kept[shape] = kept.pop(shape)
        _go(kept[shape], stream)
    return serve


def _lru(stream, work, most):
    return _cache(stream, work, _full(most, lambda kept: [next(iter(kept))]))


def shapes__launches_twice(stream, work, most):
    kept = {}
    inner = _cache(stream, work, _full(most, lambda kept: [next(iter(kept))]), kept)

    def serve(shape):
        inner(shape)
        _go(kept[shape], stream)
    return serve


def shapes__launches_only_hits(stream, work, most):
    kept = {}

    def serve(shape):
        if shape in kept:
            return _go(kept[shape], stream)
        if len(kept) == most:
            _end(kept.pop(next(iter(kept))))
        kept[shape] = _made(stream, work, shape)
    return serve


def shapes__one_for_all(stream, work, most):
    made = []

    def serve(shape):
        if not made:
            made.append(_made(stream, work, shape))
        _go(made[0], stream)
    return serve


def shapes__updates_the_dropped(stream, work, most):
    """Saves an instantiation; but it was asked to destroy."""
    kept = {}

    def serve(shape):
        if shape not in kept:
            graph = _record(stream, work, shape)
            if len(kept) == most:
                made = kept.pop(next(iter(kept)))
                ok(cudart.cudaGraphExecUpdate(made, graph))
            else:
                made = ok(cudart.cudaGraphInstantiate(graph, 0))
            ok(cudart.cudaGraphDestroy(graph))
            kept[shape] = made
        kept[shape] = kept.pop(shape)
        _go(kept[shape], stream)
    return serve


def shapes__warms_up(stream, work, most):
    kept = {}
    inner = _cache(stream, work, _full(most, lambda kept: [next(iter(kept))]), kept)

    def serve(shape):
        if shape not in kept:
            work(shape)
        inner(shape)
    return serve


def shapes__in_advance(stream, work, most):
    return _cache(stream, work, _full(most, lambda kept: [next(iter(kept))]), {n: _made(stream, work, n) for n in range(1, most + 1)})


def shapes__pads(stream, work, most):
    inner = _lru(stream, work, most)
    return lambda shape: inner(9)


def shapes__shared_by_all(stream, work, most, kept={}):
    return _cache(stream, work, _full(most, lambda kept: [next(iter(kept))]), kept)


def shapes__the_table(stream, work, most):
    return {n: _made(stream, work, n) for n in range(1, most + 1)}


def shapes__always_two(stream, work, most):
    return _lru(stream, work, 2)


class _Cache(collections.OrderedDict):
    def __init__(self, stream, work, most):
        super().__init__()
        self.stream, self.work, self.most = stream, work, most

    def __missing__(self, shape):
        while len(self) >= self.most:
            _, executable = self.popitem(last=False)
            ok(cudart.cudaStreamSynchronize(self.stream))
            _end(executable)
        self[shape] = _made(self.stream, self.work, shape)
        return self[shape]


def shapes__other_way(stream, work, most):
    """An OrderedDict that makes what is missing, and waits before it destroys."""
    cache = _Cache(stream, work, most)

    def serve(shape):
        executable = cache[shape]
        cache.move_to_end(shape)
        ok(cudart.cudaGraphLaunch(executable, stream))
        return executable
    return serve


def shapes__keeps_graphs_too(stream, work, most):
    """The graph goes with its executable."""
    kept = {}

    def serve(shape):
        if shape not in kept:
            if len(kept) == most:
                graph, executable = kept.pop(next(iter(kept)))
                _end(executable)
                ok(cudart.cudaGraphDestroy(graph))
            graph = _record(stream, work, shape)
            kept[shape] = graph, ok(cudart.cudaGraphInstantiateWithFlags(graph, 0))
        kept[shape] = kept.pop(shape)
        _go(kept[shape][1], stream)
    return serve


def shapes__by_the_clock(stream, work, most):
    """A count of launches beside each, and the capture before the drop."""
    kept, used, now = {}, {}, [0]

    def serve(shape):
        if shape not in kept:
            graph = _record(stream, work, shape)
            if len(kept) == most:
                oldest = min(kept, key=used.__getitem__)
                _end(kept.pop(oldest))
            kept[shape] = ok(cudart.cudaGraphInstantiate(graph, 0))
            ok(cudart.cudaGraphDestroy(graph))
        now[0] += 1
        used[shape] = now[0]
        _go(kept[shape], stream)
    return serve
