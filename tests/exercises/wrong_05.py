"""Wrong answers to exercise 05, and what check() says of each."""
from labkit import cudart, kernels, launch, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "diamond__nothing_forks": "expected a graph with",
    "diamond__runs_at_once": "found    a graph with",
    "diamond__never_joined": "904",
    "diamond__branch_before_the_fork": "found    a graph with",
    "long_branch__same_as_part_1": "expected a graph with",
    "diamond__other_fill": "expected: fill(x, 1, n)",
    "diamond__axpy_into_y": "found:    axpy(y, x, 0.333333, n)",
    "diamond__axpy_into_z": "found:    axpy(z, x, 1, n)",
    "diamond__twice_as_many": "n of fill is 4",
    "diamond__one_block": "threads of fill",
    "diamond__destroyed": "has destroyed",
    "long_branch__wrong_factor": "expected: scale(y, 3, n)",
    "long_branch__other_order": "expected: scale(y, 3, n)",
    "long_branch__axpy_into_y": "expected: axpy(x, x, 1, n)",
    "long_branch__side_by_side": "found    a graph with",
}
RIGHT = ("diamond__other_way", "diamond__smaller_blocks", "long_branch__in_streams_of_its_own")


def _grid(x):
    return -(-x.size // 256)


def _begin(stream, x):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.fill, _grid(x), 256, x, 1.0, x.size))


def _wait(waits, event, other):
    ok(cudart.cudaEventRecord(event, other))
    ok(cudart.cudaStreamWaitEvent(waits, event, 0))


def _axpy(stream, x):
    ok(launch(stream, kernels.axpy, _grid(x), 256, x, x, 1.0, x.size))


def _scale(stream, y, factor=3.0):
    ok(launch(stream, kernels.scale, _grid(y), 256, y, factor, y.size))


def _end(stream, x, y, z):
    ok(launch(stream, kernels.add, _grid(x), 256, z, x, y, x.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def diamond__nothing_forks(stream, helper, fork, join, x, y, z):
    _begin(stream, x)
    _axpy(stream, x)
    _scale(stream, y)
    return _end(stream, x, y, z)


def diamond__runs_at_once(stream, helper, fork, join, x, y, z):
    _begin(stream, x)
    _axpy(stream, x)
    _scale(helper, y)                    # not in the capture: nothing made the helper wait
    return _end(stream, x, y, z)


def diamond__never_joined(stream, helper, fork, join, x, y, z):
    _begin(stream, x)
    _wait(helper, fork, stream)
    _axpy(stream, x)
    _scale(helper, y)
    return _end(stream, x, y, z)


def diamond__branch_before_the_fork(stream, helper, fork, join, x, y, z):
    _begin(stream, x)
    _axpy(stream, x)
    _wait(helper, fork, stream)          # too late: the branch waits for axpy as well
    _scale(helper, y)
    _wait(stream, join, helper)
    return _end(stream, x, y, z)


def diamond__other_way(stream, helper, fork, join, x, y, z):
    """axpy goes to the helper, scale stays; and one event serves twice."""
    _begin(stream, x)
    _wait(helper, fork, stream)
    _axpy(helper, x)
    _scale(stream, y)
    _wait(stream, fork, helper)
    return _end(stream, x, y, z)


def _long(stream, helper, fork, join, x, y, z, factors):
    _begin(stream, x)
    _wait(helper, fork, stream)
    _axpy(stream, x)
    for factor in factors:
        _scale(helper, y, factor)
    _wait(stream, join, helper)
    return _end(stream, x, y, z)


def long_branch__same_as_part_1(*given):
    return _long(*given, [3.0])


def long_branch__wrong_factor(*given):
    return _long(*given, [6.0, 1.0])


def long_branch__side_by_side(stream, helper, fork, join, x, y, z):
    _begin(stream, x)
    _wait(helper, fork, stream)
    _axpy(stream, x)
    _scale(helper, y)
    _scale(stream, y, 2.0)
    _wait(stream, join, helper)
    return _end(stream, x, y, z)


def _two_branches(stream, helper, fork, join, x, y, z, value=1.0, axpy=None, times=1, factors=(3.0,), grid=None, block=256):
    """The diamond with something else in it. axpy: (its target, what it adds, its factor)."""
    def queue(on, kernel, *args):
        ok(launch(on, kernel, grid or -(-x.size * times // block), block, *args, x.size * times))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    queue(stream, kernels.fill, x, value)
    _wait(helper, fork, stream)
    queue(stream, kernels.axpy, *(axpy or (x, x, 1.0)))
    for factor in factors:
        queue(helper, kernels.scale, y, factor)
    _wait(stream, join, helper)
    queue(stream, kernels.add, z, y, x)
    return ok(cudart.cudaStreamEndCapture(stream))


def diamond__other_fill(*given):
    return _two_branches(*given, value=2.0, axpy=(given[4], given[4], 0.0))


def diamond__axpy_into_y(*given):
    return _two_branches(*given, axpy=(given[5], given[4], 1 / 3))       # a race: scale writes y as well


def diamond__axpy_into_z(*given):
    return _two_branches(*given, axpy=(given[6], given[4], 1.0))


def diamond__twice_as_many(*given):
    return _two_branches(*given, times=2)


def diamond__one_block(*given):
    return _two_branches(*given, grid=1)


def diamond__smaller_blocks(*given):
    """Blocks of 64, and add with its two sides the other way round."""
    return _two_branches(*given, block=64)


def diamond__destroyed(*given):
    graph = _two_branches(*given)
    ok(cudart.cudaGraphDestroy(graph))
    return graph


def long_branch__other_order(*given):
    return _long(*given, [2.0, 3.0])


def long_branch__axpy_into_y(*given):
    return _two_branches(*given, axpy=(given[5], given[4], 1 / 6), factors=(3.0, 2.0))


def long_branch__in_streams_of_its_own(stream, helper, *given):
    own = [ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2)]
    graph = _two_branches(*own, *given, factors=(3.0, 2.0))
    for one in own:
        ok(cudart.cudaStreamDestroy(one))
    return graph
