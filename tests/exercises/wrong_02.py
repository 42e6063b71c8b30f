"""Wrong answers to exercise 02, and what check() says of each."""
import numpy as np

from labkit import cudart, graph, ok, to_host

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "kinds_of__runs_it": "which nobody launched",
    "kinds_of__runs_it_before": "which nobody launched",
    "kinds_of__always_the_same": "found:    ['Memset', 'Kernel', 'Kernel']",
    "kinds_of__prints": "a list of words",
    "kinds_of__one_text": "a list of words",
    "kinds_of__counts": "a list of words",
    "kinds_of__array": "a list of words",
    "kinds_of__not_destroyed": "1 graph not destroyed",
    "kinds_of__reads_it_destroyed": "destroyed graph",
    "kinds_of__without_the_capture": "which nobody launched",
    "kinds_of__no_copies": "found:    ['Memset', 'Kernel']",
    "kinds_of__twice": "Kernel', 'Kernel'",
    "left_out__always": "expected: False",
    "left_out__never": "expected: True",
    "left_out__too_early": "expected: True",
    "left_out__waits_for_the_stream": "expected: True",
    "left_out__first_element": "expected: True",
    "left_out__both_ends": "two elements exchanged",
    "left_out__the_sum": "two elements exchanged",
    "left_out__nearly_the_same": "two elements exchanged",
    "left_out__counts_nodes": ("expected: True", "expected: False"),
    "left_out__prints": "found:    None",
    "left_out__looks_before_twice": "expected: True",
    "left_out__not_destroyed": "1 graph not destroyed",
    "left_out__runs_it": "expected: False",
    "left_out__calls_twice": ("work called once", "expected: True"),
    "left_out__plain_and_captured": "work called once",
    "left_out__array": "found:    array(",
    "left_out__guesses_from_the_code": "work is called",
}
RIGHT = ("kinds_of__other_way", "kinds_of__in_a_stream_of_its_own", "left_out__other_way", "left_out__in_a_stream_of_its_own")


def _capture(stream, work):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def _kinds(stream, work):
    captured = _capture(stream, work)
    kinds = graph.kinds(captured)
    ok(cudart.cudaGraphDestroy(captured))
    return kinds


def kinds_of__runs_it(stream, work):
    captured = _capture(stream, work)
    executable = ok(cudart.cudaGraphInstantiate(captured, 0))
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    kinds = graph.kinds(captured)
    ok(cudart.cudaGraphDestroy(captured))
    return kinds


def kinds_of__runs_it_before(stream, work):
    work(stream)
    return _kinds(stream, work)


def kinds_of__always_the_same(stream, work):
    _kinds(stream, work)
    return ["Memset", "Kernel", "Kernel"]


def kinds_of__prints(stream, work):
    str(_kinds(stream, work))


def kinds_of__one_text(stream, work):
    return ", ".join(_kinds(stream, work))


def kinds_of__counts(stream, work):
    return len(_kinds(stream, work))


def kinds_of__not_destroyed(stream, work):
    return graph.kinds(_capture(stream, work))


def kinds_of__reads_it_destroyed(stream, work):
    captured = _capture(stream, work)
    ok(cudart.cudaGraphDestroy(captured))
    return graph.kinds(captured)


def kinds_of__without_the_capture(stream, work):
    work(stream)
    return ["Memset", "Kernel", "Kernel"]


def kinds_of__no_copies(stream, work):
    return [kind for kind in _kinds(stream, work) if kind != "Memcpy"]


def kinds_of__twice(stream, work):
    return _kinds(stream, lambda on: (work(on), work(on)))


def kinds_of__other_way(stream, work):
    """Node by node, as a tuple, backwards."""
    captured = _capture(stream, work)
    kinds = tuple(graph.kind(node) for node in reversed(graph.nodes(captured)))
    ok(cudart.cudaGraphDestroy(captured))
    return kinds


def left_out__always(stream, work, y):
    _kinds(stream, work)
    return True


def left_out__never(stream, work, y):
    _kinds(stream, work)
    return False


def left_out__too_early(stream, work, y):
    before = to_host(y)
    _kinds(stream, work)
    return bool(np.any(to_host(y) != before))


def left_out__waits_for_the_stream(stream, work, y):
    before = to_host(y, stream)
    _kinds(stream, work)
    return bool(np.any(to_host(y, stream) != before))


def left_out__first_element(stream, work, y):
    before = to_host(y)
    _kinds(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    return bool(to_host(y)[0] != before[0])


def left_out__counts_nodes(stream, work, y):
    return not _kinds(stream, work)


def left_out__prints(stream, work, y):
    before = to_host(y)
    _kinds(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    str(np.any(to_host(y) != before))


def left_out__looks_before_twice(stream, work, y):
    before = to_host(y)
    after = to_host(y)
    _kinds(stream, work)
    return bool(np.any(after != before))


def left_out__not_destroyed(stream, work, y):
    before = to_host(y)
    _capture(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    return bool(np.any(to_host(y) != before))


def left_out__runs_it(stream, work, y):
    before = to_host(y)
    work(stream)
    ok(cudart.cudaDeviceSynchronize())
    return bool(np.any(to_host(y) != before))


def left_out__array(stream, work, y):
    before = to_host(y)
    _kinds(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    return to_host(y) != before


def left_out__guesses_from_the_code(stream, work, y):
    names = {name for cell in work.__closure__ if isinstance(cell.cell_contents, tuple) for name in cell.cell_contents}
    return any("once" in name or "elsewhere" in name for name in names)


def left_out__other_way(stream, work, y):
    """With np.array_equal, and with a number of NumPy's own as the answer."""
    before = to_host(y)
    captured = _capture(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    after = to_host(y)
    ok(cudart.cudaGraphDestroy(captured))
    return np.any(np.abs(after - before) > 0)


def kinds_of__array(stream, work):
    return np.array(_kinds(stream, work))


def _in_its_own(function, work, *given):
    own = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    try:
        return function(own, work, *given)
    finally:
        ok(cudart.cudaStreamDestroy(own))


def kinds_of__in_a_stream_of_its_own(stream, work):
    return _in_its_own(_kinds, work)


def left_out__in_a_stream_of_its_own(stream, work, y):
    return _in_its_own(left_out__other_way, work, y)


def _seen(stream, work, y, see):
    before = see(to_host(y))
    _kinds(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    return before, see(to_host(y))


def left_out__both_ends(stream, work, y):
    before, after = _seen(stream, work, y, lambda values: (values[0], values[-1]))
    return before != after


def left_out__the_sum(stream, work, y):
    before, after = _seen(stream, work, y, np.sum)
    return before != after


def left_out__nearly_the_same(stream, work, y):
    before, after = _seen(stream, work, y, np.copy)
    return not np.allclose(before, after, atol=1)


def left_out__calls_twice(stream, work, y):
    """One graph to look at, and one to compare with."""
    _kinds(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    before = to_host(y)
    _kinds(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    return bool(np.any(to_host(y) != before))


def left_out__plain_and_captured(stream, work, y):
    """What it does at once is the same in both; so the capture is compared with the plain run."""
    before = to_host(y)
    _kinds(stream, work)
    ok(cudart.cudaDeviceSynchronize())
    changed = bool(np.any(to_host(y) != before))
    _kinds(stream, work)
    return changed
