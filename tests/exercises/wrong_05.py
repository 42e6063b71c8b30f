"""Wrong answers to exercise 05, and what check() says of each."""
from labkit import cudart, kernels, launch, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "diamond__nothing_forks": "expected a graph with",
    "diamond__runs_at_once": "found    a graph with",
    "diamond__never_joined": "904",
    "diamond__branch_before_the_fork": "found    a graph with",
    "long_branch__same_as_part_1": "expected a graph with",
    "long_branch__wrong_factor": "one scale by 3 and one by 2",
    "long_branch__side_by_side": "found    a graph with",
}
RIGHT = ("diamond__other_way",)


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
