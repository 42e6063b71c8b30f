"""Wrong answers to exercise 06, and what check() says of each."""
from labkit import cudart, kernels, launch, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "wide_fork__a_chain": "found    a graph with",
    "wide_fork__last_helper_not_joined": "904",
    "wide_fork__one_wait_for_all": "904",
    "wide_fork__never_joined": "904",
    "wide_fork__fill_before_the_join": "found    a graph with",
    "wide_fork__fork_before_scale": "found    a graph with",
    "wide_fork__one_helper_only": "found    a graph with",
    "wide_fork__two_branches": "found    a graph with",
    "wide_fork__one_more": "found    a graph with",
    "wide_fork__helpers_not_in_it": "before any launch",
    "wide_fork__same_buffer": "side by side",
    "wide_fork__joined_in_a_row": "found    a graph with",
    "wide_fork__wrong_numbers": "found:    axpy(outs[0], x, 2, n)",
    "wide_fork__other_factors": "expected: scale(x, 2, n)",
    "wide_fork__runs_at_once": "before any launch",
    "tree__a_chain": "axpy 0 -> axpy 1",
    "tree__all_into_the_first": "found    a graph with",
    "tree__rounds_wait_for_all": "found    a graph with",
    "tree__same_pair": "expected buffers[0]",
    "tree__does_not_wait": "904",
    "tree__first_round_only": "904",
    "tree__four_only": "found    a graph with",
    "tree__waits_for_the_left_one": "904",
    "tree__one_buffer_for_all": "side by side",
    "tree__into_the_right_one": "expected buffers[0]",
    "tree__runs_at_once": "before any launch",
    "tree__wrong_step": "expected buffers[0]",
}
RIGHT = ("wide_fork__other_way", "wide_fork__helper_after_helper", "tree__recursive", "tree__halves", "tree__events_of_its_own")


def _begin(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))


def _end(stream):
    return ok(cudart.cudaStreamEndCapture(stream))


def _wait(waits, event, other):
    ok(cudart.cudaEventRecord(event, other))
    ok(cudart.cudaStreamWaitEvent(waits, event, 0))


def _run(stream, kernel, *args):
    ok(launch(stream, kernel, -(-args[-1] // 256), 256, *args))


def _scale(stream, x, a=2.0):
    _run(stream, kernels.scale, x, a, x.size)


def _axpy(stream, y, x, a=1.0):
    _run(stream, kernels.axpy, y, x, a, x.size)


def _fill(stream, x):
    _run(stream, kernels.fill, x, 0.0, x.size)


def _fork(stream, helpers, event):
    ok(cudart.cudaEventRecord(event, stream))
    for helper in helpers:
        ok(cudart.cudaStreamWaitEvent(helper, event, 0))


def _join(stream, helpers, event):
    for helper in helpers:
        _wait(stream, event, helper)


def _wide(stream, helpers, fork, join, x, outs, joined=None, a=1.0):
    _begin(stream)
    _scale(stream, x)
    _fork(stream, helpers, fork)
    for branch, out in zip([stream, *helpers], outs):
        _axpy(branch, out, x, a)
    _join(stream, helpers if joined is None else joined, join)
    _fill(stream, x)
    return _end(stream)


def wide_fork__a_chain(stream, helpers, fork, join, x, outs):
    _begin(stream)
    _scale(stream, x)
    for out in outs:
        _axpy(stream, out, x)
    _fill(stream, x)
    return _end(stream)


def wide_fork__last_helper_not_joined(stream, helpers, *given):
    return _wide(stream, helpers, *given, joined=helpers[:-1])


def wide_fork__one_wait_for_all(stream, helpers, fork, join, x, outs):
    _begin(stream)
    _scale(stream, x)
    _fork(stream, helpers, fork)
    for branch, out in zip([stream, *helpers], outs):
        _axpy(branch, out, x)
    for helper in helpers:
        ok(cudart.cudaEventRecord(join, helper))
    ok(cudart.cudaStreamWaitEvent(stream, join, 0))        # the last record only
    _fill(stream, x)
    return _end(stream)


def wide_fork__never_joined(*given):
    return _wide(*given, joined=[])


def wide_fork__fill_before_the_join(stream, helpers, fork, join, x, outs):
    _begin(stream)
    _scale(stream, x)
    _fork(stream, helpers, fork)
    for branch, out in zip([stream, *helpers], outs):
        _axpy(branch, out, x)
    _fill(stream, x)
    _join(stream, helpers, join)
    return _end(stream)


def wide_fork__fork_before_scale(stream, helpers, fork, join, x, outs):
    _begin(stream)
    _fork(stream, helpers, fork)
    _scale(stream, x)
    for branch, out in zip([stream, *helpers], outs):
        _axpy(branch, out, x)
    _join(stream, helpers, join)
    _fill(stream, x)
    return _end(stream)


def wide_fork__one_helper_only(stream, helpers, fork, join, x, outs):
    return _wide(stream, [helpers[0]] * len(helpers), fork, join, x, outs)


def wide_fork__two_branches(stream, helpers, fork, join, x, outs):
    return _wide(stream, helpers[:1], fork, join, x, outs[:2])


def wide_fork__one_more(stream, helpers, fork, join, x, outs):
    return _wide(stream, [*helpers, helpers[0]], fork, join, x, [*outs, outs[0]])


def wide_fork__helpers_not_in_it(stream, helpers, fork, join, x, outs):
    _begin(stream)
    _scale(stream, x)
    for branch, out in zip([stream, *helpers], outs):
        _axpy(branch, out, x)                              # nothing made the helpers wait: they run it now
    _fill(stream, x)
    _end(stream)
    ok(cudart.cudaMemset(x.ptr, 0, x.nbytes))              # "so it comes out right"
    return _wide(stream, helpers, fork, join, x, outs)


def wide_fork__same_buffer(stream, helpers, fork, join, x, outs):
    return _wide(stream, helpers, fork, join, x, [outs[0]] * len(outs))


def wide_fork__joined_in_a_row(stream, helpers, fork, join, x, outs):
    """Each branch waits for the one before."""
    _begin(stream)
    _scale(stream, x)
    before = stream
    for branch, out in zip([stream, *helpers], outs):
        _wait(branch, fork, before)
        _axpy(branch, out, x)
        before = branch
    _join(stream, helpers, join)
    _fill(stream, x)
    return _end(stream)


def wide_fork__wrong_numbers(*given):
    return _wide(*given, a=2.0)


def wide_fork__runs_at_once(stream, helpers, fork, join, x, outs):
    _scale(stream, x)
    for out in outs:
        _axpy(stream, out, x)
    _fill(stream, x)
    return _wide(stream, helpers, fork, join, x, outs)


def wide_fork__other_way(stream, helpers, fork, join, x, outs):
    """The stream's own branch is the last; one event for all."""
    _begin(stream)
    _scale(stream, x)
    _fork(stream, helpers, fork)
    for branch, out in zip([*helpers, stream], outs):
        _axpy(branch, out, x)
    _join(stream, helpers, fork)
    _fill(stream, x)
    return _end(stream)


def wide_fork__helper_after_helper(stream, helpers, fork, join, x, outs):
    """Each helper is drawn in by the one before, and they join one another first."""
    _begin(stream)
    _scale(stream, x)
    before = stream
    for helper in helpers:
        _wait(helper, fork, before)
        before = helper
    for branch, out in zip([stream, *helpers], outs):
        _axpy(branch, out, x)
    before = helpers[0]
    for helper in helpers[1:]:
        _wait(helper, join, before)
        before = helper
    _wait(stream, join, before)
    _fill(stream, x)
    return _end(stream)


def _pairs(stream, helpers, event, buffers, partner=lambda k, step: k + step, waits=True, rounds=9, swap=False):
    streams, step = [stream, *helpers], 1
    _begin(stream)
    _fork(stream, helpers, event)
    while step < len(buffers) and rounds:
        for k in range(0, len(buffers), 2 * step):
            left, other = streams[k // 2], partner(k, step)
            if waits:
                _wait(left, event, streams[(k + step) // 2])
            _axpy(left, *((buffers[other], buffers[k]) if swap else (buffers[k], buffers[other])))
        step, rounds = 2 * step, rounds - 1
    return _end(stream)


def tree__a_chain(stream, helpers, event, buffers):
    _begin(stream)
    step = 1
    while step < len(buffers):
        for k in range(0, len(buffers), 2 * step):
            _axpy(stream, buffers[k], buffers[k + step])
        step *= 2
    return _end(stream)


def tree__all_into_the_first(stream, helpers, event, buffers):
    _begin(stream)
    for other in buffers[1:]:
        _axpy(stream, buffers[0], other)
    return _end(stream)


def tree__rounds_wait_for_all(stream, helpers, event, buffers):
    """Before each round all streams wait for all."""
    streams, step = [stream, *helpers], 1
    _begin(stream)
    while step < len(buffers):
        if step > 1:
            _join(stream, helpers, event)
        _fork(stream, helpers, event)
        for k in range(0, len(buffers), 2 * step):
            _axpy(streams[k // 2], buffers[k], buffers[k + step])
        step *= 2
    _join(stream, helpers, event)
    return _end(stream)


def tree__same_pair(*given):
    return _pairs(*given, partner=lambda k, step: 1)


def tree__does_not_wait(*given):
    return _pairs(*given, waits=False)


def tree__first_round_only(*given):
    return _pairs(*given, rounds=1)


def tree__four_only(stream, helpers, event, buffers):
    return _pairs(stream, helpers[:1], event, buffers[:4])


def tree__waits_for_the_left_one(stream, helpers, event, buffers):
    streams, step = [stream, *helpers], 1
    _begin(stream)
    _fork(stream, helpers, event)
    while step < len(buffers):
        for k in range(0, len(buffers), 2 * step):
            _wait(streams[(k + step) // 2], event, streams[k // 2])
            _axpy(streams[k // 2], buffers[k], buffers[k + step])
        step *= 2
    return _end(stream)


def tree__one_buffer_for_all(stream, helpers, event, buffers):
    return _pairs(stream, helpers, event, [buffers[0], *buffers[1:2] * (len(buffers) - 1)])


def tree__into_the_right_one(*given):
    return _pairs(*given, swap=True)


def tree__runs_at_once(stream, helpers, event, buffers):
    for other in buffers[1:]:
        _axpy(stream, buffers[0], other)
    return _pairs(stream, helpers, event, buffers)


def tree__wrong_step(*given):
    return _pairs(*given, partner=lambda k, step: k + 1)


def tree__recursive(stream, helpers, event, buffers):
    """The two halves first, each into its first buffer; the right half in the next stream that is free."""
    streams = iter(helpers)

    def into_first(on, some):
        if len(some) > 2:
            half, other = len(some) // 2, next(streams)
            _wait(other, event, on)
            into_first(on, some[:half])
            into_first(other, some[half:])
            _wait(on, event, other)
            _axpy(on, some[0], some[half])
        else:
            _axpy(on, *some)
    _begin(stream)
    into_first(stream, buffers)
    return _end(stream)


def tree__halves(stream, helpers, event, buffers):
    """Other pairs, which the result does not tell: the first half plus the second, and so on."""
    streams, half = [stream, *helpers], len(buffers) // 2
    _begin(stream)
    _fork(stream, helpers, event)
    for k in range(half):
        _axpy(streams[k], buffers[k], buffers[k + half])
    while half > 1:
        half //= 2
        for k in range(half):
            _wait(streams[k], event, streams[k + half])
            _axpy(streams[k], buffers[k], buffers[k + half])
    return _end(stream)


def tree__events_of_its_own(stream, helpers, event, buffers):
    streams, step = [stream, *helpers], 1
    _begin(stream)
    _fork(stream, helpers, ok(cudart.cudaEventCreate()))
    while step < len(buffers):
        for k in range(0, len(buffers), 2 * step):
            if step > 1:
                _wait(streams[k // 2], ok(cudart.cudaEventCreate()), streams[(k + step) // 2])
            _axpy(streams[k // 2], buffers[k], buffers[k + step])
        step *= 2
    return _end(stream)


def wide_fork__other_factors(stream, helpers, fork, join, x, outs):
    """It comes out the same."""
    _begin(stream)
    _scale(stream, x, 4.0)
    _fork(stream, helpers, fork)
    for branch, out in zip([stream, *helpers], outs):
        _axpy(branch, out, x, 0.5)
    _join(stream, helpers, join)
    _fill(stream, x)
    return _end(stream)
