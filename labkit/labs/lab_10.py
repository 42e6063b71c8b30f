"""10: nodes switched off and on again, and the setter that fits a node's kind."""
import numpy as np

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import axpy, fill, launch
from labkit.labs.calls import shown
from labkit.labs.judging import Lab
from labkit.update import launched

LAB = Lab("10_switch_off", "Switch off", lesson="05", minutes=6)
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice


def _same_graph(t, graph, before):
    """The graph is the plan; what an executable leaves out or writes elsewhere does not change it."""
    now = [launched(node).args for node in graphs.nodes(graph) if graphs.kind(node) == "Kernel"]
    t.want((graphs.kinds(graph), now) == before, "the graph as it was", f"a changed graph: {', '.join(graphs.kinds(graph)) or 'no nodes'}")


@LAB.part(points=3, hints=(
    "How many nodes have to be told something: the chosen one, or the others, or all of them?",
    "What is left of an earlier choice in the executable when the next one comes?",
    "Lesson 05 switches a node of an executable with one call, off with 0 and on with 1. Every branch needs it, each time."))
def only_one(t, answer):
    """An executable that runs the chosen branch only: the other branches switched off, the chosen one on, whatever was chosen before."""
    y, x = t.buffer(), t.buffer()
    factors = [float(f) for f in t.random.permutation(np.arange(2, 9))[:4]]
    ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
    for kernel, *args in ((fill, y, 1.0), *((axpy, y, x, f) for f in factors)):
        ok(launch(t.stream, kernel, -(-t.size // 256), 256, *args, t.size))
    graph = t.own(ok(cudart.cudaStreamEndCapture(t.stream)))
    executable = t.executable(graph)
    by_factor = {launched(node).args[2]: node for node in graphs.nodes(graph) if launched(node).kernel is axpy}
    branches = [by_factor[f] for f in factors]
    before = graphs.kinds(graph), [launched(node).args for node in graphs.nodes(graph)]
    row = [int(k) for k in t.random.permutation(4)]
    for which, chosen in enumerate([*row, row[0], row[0], row[2]], 1):
        t.run(answer, executable, list(branches), chosen)
        t.want(len(graphs.nodes(graph)) == 5, "the graph as it was, with 5 nodes", f"a graph with {len(graphs.nodes(graph))}")
        on = [bool(ok(cudart.cudaGraphNodeGetEnabled(executable, node))) for node in branches]
        wanted = [k == chosen for k in range(4)]
        t.want(on == wanted, f"after only_one(..., {chosen}), branches switched on: {_numbers(wanted)}", _numbers(on))
        _, plus = t.fresh(y, x)
        t.launch(executable, which)
        t.expect(f"after only_one(..., {chosen}) and a launch", "y", y, 1 + factors[chosen] * plus)
    _same_graph(t, graph, before)


def _numbers(on):
    return ", ".join(str(k) for k, yes in enumerate(on) if yes) or "none"


def _five_nodes(t, buffers, a, byte, source):
    """A graph that fills the first buffer, sets the bytes of the second, copies source to the third; with an event and an empty node."""
    ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
    steps = [lambda: ok(launch(t.stream, fill, -(-t.size // 256), 256, buffers["Kernel"], a, t.size)),
             lambda: ok(cudart.cudaMemsetAsync(buffers["Memset"].ptr, byte, buffers["Memset"].nbytes, t.stream)),
             lambda: ok(cudart.cudaMemcpyAsync(buffers["Memcpy"].ptr, source.ptr, source.nbytes, TO_DEVICE, t.stream))]
    for k in t.random.permutation(3):                        # a node is known by its kind, not by its number
        steps[k]()
    graph = t.own(ok(cudart.cudaStreamEndCapture(t.stream)))
    last = [node for node in graphs.nodes(graph) if not graphs.dependents(node)]
    mark = ok(cudart.cudaGraphAddEventRecordNode(graph, last, 1, t.event()))
    ok(cudart.cudaGraphAddEmptyNode(graph, [mark], 1))
    return graph, {graphs.kind(node): node for node in graphs.nodes(graph)}


@LAB.part(points=4, hints=(
    "Whom can you ask for the kind of a node, and what does a setter for another kind answer?",
    "A setter of a memset or of a copy is told everything about the node, also what stays. Where can you read the value of the memset, and what do you know about the copy?",
    "Lesson 05 has a table of setters. Three of its rows are enough. For the memset, read the parameters of the node, change the destination, and set them."))
def write_to(t, answer):
    """The node of any of the three kinds writes into its new buffer from the next launch on, and nodes of other kinds are left alone."""
    kinds = ("Kernel", "Memset", "Memcpy")
    buffers, source = {kind: t.buffer() for kind in kinds}, t.buffer()
    a, byte = float(t.random.integers(2, 9)), int(t.random.integers(0x40, 0x44))
    graph, nodes = _five_nodes(t, buffers, a, byte, source)
    executable, targets = t.executable(graph), dict(buffers)
    before = graphs.kinds(graph), [launched(nodes["Kernel"]).args]
    asked = [str(kind) for kind in t.random.permutation([*kinds, "EventRecord", "Empty"])]
    for which, kind in enumerate([*asked, *kinds], 1):
        new = t.buffer() if kind in kinds else buffers["Kernel"]
        back = t.run(answer, executable, nodes[kind], new, source)
        t.want(isinstance(back, (bool, np.bool_)), f"back for a node of kind {kind}: {kind in kinds}", shown(back, 40))
        t.want(bool(back) is (kind in kinds), f"back for a node of kind {kind}: {kind in kinds}", f"{bool(back)}")
        left = dict(targets)
        if kind in kinds:
            targets[kind] = new
        old = dict(zip(kinds, t.fresh(*(left[kind] for kind in kinds))))
        values = dict(zip(kinds, (np.full(t.size, a), np.frombuffer(bytes([byte]) * 4 * t.size, np.float32), *t.fresh(source))))
        if kind in kinds:
            t.fresh(new)
        t.launch(executable, which)
        for other in kinds:
            t.expect(f"after write_to(...) for the {kind} node and a launch", f"the buffer of the {other} node", targets[other], values[other])
        if kind in kinds:
            t.expect(f"after write_to(...) for the {kind} node and a launch", "the old buffer of it, which is left alone", left[kind], old[kind])
    _same_graph(t, graph, before)
    values["Memcpy"], = t.fresh(source)
    t.fresh(*buffers.values())
    t.launch(t.executable(graph))
    for kind in kinds:                                       # of a copy's node nothing can be read back
        t.expect("after a launch of a new executable of the graph, which is to be as it was", f"the first buffer of the {kind} node", buffers[kind], values[kind])
