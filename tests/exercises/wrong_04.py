"""Wrong answers to exercise 04, and what check() says of each."""
from labkit import cudart, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "one_launch__runs_it": "before any launch",
    "one_launch__runs_at_once_and_returns_an_empty_one": "before any launch",
    "one_launch__launches_it": "before any launch",
    "one_launch__empty": "0 of 200",
    "one_launch__twice": "400 of 200",
    "one_launch__graph": "found: cudaGraph_t",
    "one_launch__graph_left": "1 graph not destroyed",
    "one_launch__destroyed": "has destroyed",
    "one_launch__function": "found: function",
    "one_launch__tuple": "found: cudaError_t",
    "one_launch__in_another_stream": "before any launch",
    "in_pieces__all_in_one": "3 executables",
    "in_pieces__one_each": "3 executables",
    "in_pieces__rest_lost": "3 executables",
    "in_pieces__backwards": "after piece 1",
    "in_pieces__every_third": "another order",
    "in_pieces__more_than_most": "at most 3 nodes",
    "in_pieces__side_by_side": "run side by side",
    "in_pieces__overlapping": "of 7 were queued",
    "in_pieces__grown": "of 7 were queued",
    "in_pieces__same_one_again": "of 7 were queued",
    "in_pieces__empty_ones": "of 7 were queued",
    "in_pieces__runs_them": "before any launch",
    "in_pieces__graphs": "found: cudaGraph_t",
    "in_pieces__graphs_left": "not destroyed",
    "in_pieces__last_only": "a list of executables",
    "in_pieces__generator": "a list of executables",
    "in_pieces__more_than_it_returns": "not destroyed",
    "in_pieces__destroyed": "has destroyed",
}
RIGHT = ("one_launch__other_way", "in_pieces__evenly", "in_pieces__through_part_1")


def _capture(stream, *steps):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for step in steps:
        step(stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def _one(stream, *steps):
    graph = _capture(stream, *steps)
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphDestroy(graph))
    return executable


def one_launch__runs_it(stream, work):
    work(stream)
    return _one(stream, work)


def one_launch__runs_at_once_and_returns_an_empty_one(stream, work):
    work(stream)
    return _one(stream)


def one_launch__launches_it(stream, work):
    executable = _one(stream, work)
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    return executable


def one_launch__empty(stream, work):
    return _one(stream)


def one_launch__twice(stream, work):
    return _one(stream, work, work)


def one_launch__graph(stream, work):
    return _capture(stream, work)


def one_launch__graph_left(stream, work):
    return ok(cudart.cudaGraphInstantiate(_capture(stream, work), 0))


def one_launch__destroyed(stream, work):
    executable = _one(stream, work)
    ok(cudart.cudaGraphExecDestroy(executable))
    return executable


def one_launch__function(stream, work):
    executable = _one(stream, work)
    return lambda: ok(cudart.cudaGraphLaunch(executable, stream))


def one_launch__tuple(stream, work):
    graph = _capture(stream, work)
    made = cudart.cudaGraphInstantiate(graph, 0)
    ok(cudart.cudaGraphDestroy(graph))
    return made


def one_launch__in_another_stream(stream, work):
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    return _one(stream, lambda _: work(other))


def one_launch__other_way(stream, work):
    """Captured in a stream of its own, uploaded as well."""
    own = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    executable = _one(own, work)
    ok(cudart.cudaStreamDestroy(own))
    ok(cudart.cudaGraphUpload(executable, stream))
    return executable


def _cut(steps, most):
    return [steps[first:first + most] for first in range(0, len(steps), most)]


def _pieces(stream, pieces):
    return [_one(stream, *piece) for piece in pieces]


def in_pieces__all_in_one(stream, steps, most):
    return _pieces(stream, [steps])


def in_pieces__one_each(stream, steps, most):
    return _pieces(stream, [[step] for step in steps])


def in_pieces__rest_lost(stream, steps, most):
    return _pieces(stream, [steps[k * most:(k + 1) * most] for k in range(len(steps) // most)])


def in_pieces__backwards(stream, steps, most):
    return _pieces(stream, _cut(steps, most))[::-1]


def in_pieces__every_third(stream, steps, most):
    count = -(-len(steps) // most)
    return _pieces(stream, [steps[k::count] for k in range(count)])


def in_pieces__more_than_most(stream, steps, most):
    first, *rest = _cut(steps, most)
    moved = [first + rest[0][:1], rest[0][1:], *rest[1:]] if rest else [first]
    return _pieces(stream, moved)


def in_pieces__overlapping(stream, steps, most):
    return _pieces(stream, [steps[first:first + most + 1] for first in range(0, len(steps), most)])


def in_pieces__grown(stream, steps, most):
    return _pieces(stream, [steps[:first + most] for first in range(0, len(steps), most)])


def in_pieces__same_one_again(stream, steps, most):
    pieces = _cut(steps, most)
    return [_one(stream, *pieces[0])] * len(pieces)


def in_pieces__empty_ones(stream, steps, most):
    return _pieces(stream, [[]] * len(_cut(steps, most)))


def in_pieces__runs_them(stream, steps, most):
    for step in steps:
        step(stream)
    return _pieces(stream, _cut(steps, most))


def in_pieces__graphs(stream, steps, most):
    return [_capture(stream, *piece) for piece in _cut(steps, most)]


def in_pieces__graphs_left(stream, steps, most):
    return [ok(cudart.cudaGraphInstantiate(_capture(stream, *piece), 0)) for piece in _cut(steps, most)]


def in_pieces__last_only(stream, steps, most):
    return _pieces(stream, _cut(steps, most))[-1]


def in_pieces__destroyed(stream, steps, most):
    pieces = _pieces(stream, _cut(steps, most))
    for piece in pieces:
        ok(cudart.cudaGraphExecDestroy(piece))
    return pieces


def in_pieces__evenly(stream, steps, most):
    """As few, but of nearly one length."""
    count = -(-len(steps) // most)
    ends = [k * len(steps) // count for k in range(count + 1)]
    return tuple(_pieces(stream, [steps[a:b] for a, b in zip(ends, ends[1:])]))


def in_pieces__through_part_1(stream, steps, most):
    def piece(some):
        return one_launch__other_way(stream, lambda on: [step(on) for step in some])
    return [piece(some) for some in _cut(steps, most)]


def in_pieces__generator(stream, steps, most):
    for piece in _cut(steps, most):
        yield _one(stream, *piece)


def in_pieces__more_than_it_returns(stream, steps, most):
    ok(cudart.cudaGraphInstantiate(ok(cudart.cudaGraphCreate(0)), 0))
    return in_pieces__through_part_1(stream, steps, most)


def in_pieces__side_by_side(stream, steps, most):
    """Each step of a piece in a stream of its own, all joined in the end."""
    def piece(some):
        def work(on):
            fork = ok(cudart.cudaEventCreate())
            ok(cudart.cudaEventRecord(fork, on))
            for step in some:
                side, join = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)), ok(cudart.cudaEventCreate())
                ok(cudart.cudaStreamWaitEvent(side, fork, 0))
                step(side)
                ok(cudart.cudaEventRecord(join, side))
                ok(cudart.cudaStreamWaitEvent(on, join, 0))
        return work
    return [_one(stream, piece(some)) for some in _cut(steps, most)]
