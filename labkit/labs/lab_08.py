"""08: one value of a graph that is ready: a scalar, a pointer, a size."""
import numpy as np

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import axpy, launch
from labkit.labs.judging import Lab
from labkit.labs.kernels import axpy_counting
from labkit.update import launched

LAB = Lab("08_one_value", "One value", lesson="05", minutes=8)
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


def _ready(t, y, x, *counter):
    """(graph, executable, node) of y += 2 x over all elements."""
    ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
    ok(launch(t.stream, axpy_counting if counter else axpy, -(-t.size // 256), 256, y, x, 2.0, t.size, *counter))
    graph = t.own(ok(cudart.cudaStreamEndCapture(t.stream)))
    return graph, t.executable(graph), graphs.nodes(graph)[0]


def _as_captured(t, graph, node, before):
    """The graph is the plan of many executables; an update of one of them does not change it."""
    now = launched(node)
    t.want((now.grid, now.args) == before and graphs.kinds(graph) == ["Kernel"], f"the graph as it was: {before}", f"a changed graph: {(now.grid, now.args)}")


@LAB.part(points=2, hints=(
    "Where does the 2.0 stand now: in the graph, in the executable, or in both? Which of them is launched?",
    "What does labkit's helper for one node need to know: which executable, which node, and which of the arguments?",
    "Arguments are counted from 0: y, x, a, n. Lesson 05 sets one of them by its position."))
def set_factor(t, answer):
    """An executable that does y += factor x from the next launch on; the graph stays as it was."""
    y, x = t.buffer(), t.buffer()
    graph, executable, node = _ready(t, y, x)
    before = launched(node).grid, launched(node).args
    for which, factor in enumerate((3.0, 0.5, float(t.random.integers(4, 9))), 1):
        t.run(answer, executable, node, factor)
        for _ in range(2):
            old, plus = t.fresh(y, x)
            t.launch(executable, which)
            t.expect(f"after set_factor(..., {factor:g}) and a launch", "y", y, old + factor * plus)
    _as_captured(t, graph, node, before)


@LAB.part(points=3, hints=(
    "The node holds two addresses. Which of them must change, and what may not happen to the buffer that it wrote to before?",
    "Is a buffer an argument like a number, for the helper that sets one?",
    "Position 0 is y. Pass the new buffer itself."))
def set_target(t, answer):
    """An executable that adds to the new buffer from the next launch on, and leaves the old one alone."""
    y, x, other = t.buffer(), t.buffer(), t.buffer()
    graph, executable, node = _ready(t, y, x)
    before = launched(node).grid, launched(node).args
    for which, (target, left) in enumerate(((other, y), (y, other)), 1):
        t.run(answer, executable, node, target)
        old, plus, stays = t.fresh(target, x, left)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "the new target", target, old + 2 * plus)
        t.expect(f"after launch {which}", "the old target", left, stays)
    _as_captured(t, graph, node, before)


@LAB.part(points=4, sizes=(8, 1000, 3000), hints=(
    "Two values of the launch depend on how many elements there are. Which?",
    "What happens to the elements that lie beyond n in the last block, and what to those that no block reaches?",
    "The grid is the count of blocks of 256 threads, rounded up, and n is argument 3. One call of the helper can set both."))
def set_size(t, answer):
    """An executable that goes over the first n elements only, with no more blocks of 256 threads than these need."""
    y, x, ran = t.buffer(), t.buffer(), t.buffer([0], np.int32)
    graph, executable, node = _ready(t, y, x, ran)
    before = launched(node).grid, launched(node).args
    for which, n in enumerate((t.size // 2, 1, *range(256, t.size + 1, 256)[:2], t.size - 1, t.size), 1):
        t.run(answer, executable, node, n)
        old, plus = t.fresh(y, x)
        t.put(ran, [0])
        t.launch(executable, which)
        t.expect(f"after set_size(..., {n}) and a launch", "y", y, old + 2 * plus * (np.arange(t.size) < n))
        t.expect(f"after set_size(..., {n}) and a launch", "the count of blocks", ran, [-(-n // 256)])
    _as_captured(t, graph, node, before)
