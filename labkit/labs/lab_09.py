"""09: two buffers that change places at each replay: by an update, by two executables, in one graph."""
import numpy as np

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.cases.parts import advance
from labkit.errors import ok
from labkit.kernels import add, launch
from labkit.labs.calls import Calls, shown
from labkit.labs.caution import beyond, within
from labkit.labs.judging import Lab
from labkit.labs.shapes import Found, words
from labkit.update import launched

LAB = Lab("09_swap", "Swap", lesson="05", minutes=12)
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


def _step(t, a, b, x, ran):
    """(graph, executable, node) of b = a + x, behind which a second node counts the launches in `ran`."""
    ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
    ok(launch(t.stream, add, -(-t.size // 256), 256, b, a, x, t.size))
    ok(launch(t.stream, advance, 1, 1, ran, 1))
    graph = t.own(ok(cudart.cudaStreamEndCapture(t.stream)))
    first, = (node for node in graphs.nodes(graph) if not graphs.dependencies(node))
    return graph, t.executable(graph), first


def _state(t, when, x, plus, **buffers):
    """The buffers by name, each beside what it must hold; and x, which nothing writes."""
    for name, (buffer, values) in buffers.items():
        t.expect(when, name, buffer, values)
    t.expect(when, "x", x, plus)


@LAB.part(points=4, hints=(
    "Which two arguments of the kernel must change for the second step, and which for the third?",
    "When has the executable to know its new buffers: before a launch, or after it? Does a launch that is queued already still change?",
    "Lesson 05 sets several arguments of one node by their positions, in one call. Two Python names for old and new can swap after each launch."))
def swap_by_update(t, answer):
    """The executable launched once for each step, with its two buffers swapped in between, and the buffer that the last step wrote."""
    a, b, x = (t.buffer() for _ in range(3))
    for steps in (1, 2, int(t.random.integers(3, 6)) * 2 - 1, 4):
        ran = t.buffer([0], np.int32)
        graph, executable, node = _step(t, a, b, x, ran)
        before, (start, _, plus) = launched(node).args, t.fresh(a, b, x)
        calls = Calls(t, keep=[graph, executable])
        back = calls.run(answer, t.stream, executable, node, a, b, steps)
        when = f"after {steps} step{'s' * (steps > 1)}"
        t.expect(when, "the count of launches of the executable", ran, [steps])
        name, last, other = ("b", b, a) if steps % 2 else ("a", a, b)
        named = {id(a): "buffer a", id(b): "buffer b", id(x): "buffer x"}
        t.want(back is last, f"back from {steps} step{'s' * (steps > 1)}: buffer {name}", named.get(id(back), shown(back, 40)))
        _state(t, when, x, plus, **{f"{name}, the last state": (last, start + steps * plus), f"{'a' if name == 'b' else 'b'}, the state before": (other, start + (steps - 1) * plus)})
        calls.launches(steps, made=0)
        t.want(not any(calls.destroyed(one) for one in (graph, executable)), "the executable and its graph stay: they were not made here", "one of them destroyed")
        t.want(launched(node).args == before, "the graph as it was: an update is for the executable", "another node in the graph")


@LAB.part(points=3, hints=(
    "How many captures are there to be, and what differs between them?",
    "Is there anything in the second graph that the first one would not let you copy and change? Which buffer is read, and which one is written?",
    "A loop over the two orders of the buffers saves half of the lines. An executable lives on when its graph is destroyed."))
def swap_by_two(t, answer):
    """Two executables: one that makes b = a + x, one that makes a = b + x."""
    a, b, x = (t.buffer() for _ in range(3))
    made = []

    def look(graph):
        made.append(words(Found(graph).labels))
        return beyond(graph, a=a, b=b, x=x)
    calls = Calls(t, look=look)
    there, again = calls.alive(calls.run(answer, t.stream, a, b, x), "executable", "executable")
    t.want(int(there) != int(again), "two executables", "the same one twice")
    for which in (1, 2, 3):
        start, rest, plus = t.fresh(a, b, x)
        t.launch(there, 2 * which - 1)
        _state(t, f"after there (launch {2 * which - 1})", x, plus, b=(b, start + plus), a=(a, start))
        if which == 2:                                       # the other way round too: each stands for itself
            start, rest, plus = t.fresh(a, b, x)
            t.launch(again, 2 * which)
            _state(t, "after back, with new numbers in a and b", x, plus, a=(a, rest + plus), b=(b, rest))
            continue
        t.launch(again, 2 * which)
        _state(t, f"after there and back (launch {2 * which})", x, plus, a=(a, start + 2 * plus), b=(b, start + plus))
    other = [one for one in made if one != "add"]
    t.want(not other, "a graph of one add for each executable: no buffer is copied", f"one with {other[0] if other else ''}")


@LAB.part(points=3, hints=(
    "What does Python do during a capture with a loop: is the loop in the graph, or what it did?",
    "Which buffer does the second node write, and why does no node have to change later?",
    "One turn of the loop launches two kernels, there and back, in one stream. What is captured in one stream is a row."))
def swap_in_one_graph(t, answer):
    """A graph of add nodes in a row, twice as many as pairs, which write b and a in turn."""
    a, b, x = (t.buffer() for _ in range(3))
    for pairs in (1, int(t.random.integers(2, 5))):
        poison = t.fresh(a, b, x)
        calls = Calls(t)
        graph = calls.alive(calls.run(answer, t.stream, a, b, x, pairs), "graph")
        _state(t, "after the capture and before any launch", x, poison[2], a=(a, poison[0]), b=(b, poison[1]))
        names = [f"step {k}" for k in range(1, 2 * pairs + 1)]
        t.shape(graph, dict.fromkeys(names, "add"), list(zip(names, names[1:])))
        within(t, graph, a=a, b=b, x=x)
        executable = t.executable(graph)
        for which in (1, 2):
            start, _, plus = t.fresh(a, b, x)
            t.launch(executable, which)
            _state(t, f"pairs = {pairs}, after launch {which}", x, plus, a=(a, start + 2 * pairs * plus), b=(b, start + (2 * pairs - 1) * plus))
