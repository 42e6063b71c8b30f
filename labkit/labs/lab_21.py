"""21: a graph made by hand, node by node; and when two graphs are the same."""
import numpy as np

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import add, axpy, fill, scale
from labkit.labs.calls import Calls, kind, shown
from labkit.labs.caution import as_asked
from labkit.labs.held import later
from labkit.labs.judging import Lab
from labkit.params import kernel_params
from labkit.update import launched

LAB = Lab("21_by_hand", "By hand", lesson="13", minutes=15)
ARGUMENTS = {"fill": ["x, 1"], "axpy": ["x, x, 1"], "scale": ["y, 3"], "add": ["z, x, y", "z, y, x"]}        # all but n


@LAB.part(points=4, hints=(
    "Without a stream, what says that one node comes after another?",
    "Which node waits for nothing, which two for one node, and which for two? When is a node's handle there to be waited for?",
    "Lesson 13 makes a graph with every kind of node. The call for a kernel gets the graph, the nodes to wait for, their count, and prepared parameters."))
def diamond_by_hand(t, answer):
    """A graph of four kernels, made without a capture: fill, then axpy and scale side by side, then add, which waits for both."""
    x, y, z = (t.buffer() for _ in range(3))
    calls = Calls(t)
    result = calls.run(answer, x, y, z)
    t.just(result, 1, "the graph, and nothing else")
    graph = calls.alive(result, "graph")
    captures = [name for name, *_ in calls.of("cudaStreamBeginCapture", "cudaStreamEndCapture")]
    t.want(not captures, "a graph that is made node by node, without any capture", f"a call of {captures[0] if captures else ''}")
    found = t.shape(graph, {name: name for name in ARGUMENTS}, [("fill", "axpy"), ("fill", "scale"), ("axpy", "add"), ("scale", "add")])
    for name, node in found.items():
        as_asked(t, node, *ARGUMENTS[name], x=x, y=y, z=z)
    executable = t.executable(graph)
    for which in (1, 2):
        _, right, _ = t.fresh(x, y, z)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "z", z, 2 * np.ones(t.size) + 3 * right)


# ---- graphs to read ------------------------------------------------------------------------------

def built(t, works, edges, order):
    """A graph of these kernel parameters and edges between them, its nodes made in this order."""
    graph, nodes = t.own(ok(cudart.cudaGraphCreate(0))), {}
    for k in order:
        nodes[k] = ok(cudart.cudaGraphAddKernelNode(graph, [], 0, works[k]))
    if edges:
        graphs.add_dependencies(graph, [nodes[a] for a, _ in edges], [nodes[b] for _, b in edges])
    return graph


def paths(edges):
    """{(a, b)}: b comes after a, by one edge or by several."""
    found = set(edges)
    while True:
        more = found | {(a, d) for a, b in found for c, d in found if b == c}
        if more == found:
            return found
        found = more


def plan(t, count, chance=0.35):
    """Random edges among `count` nodes, with some way through three of them, and two nodes that need not wait for one another."""
    while True:
        edges = [(a, b) for b in range(count) for a in range(b) if t.random.random() < chance]
        reached = paths(edges)
        if any((a, b) not in edges for a, b in reached) and len(reached) < count * (count - 1) // 2:
            return edges


ROW, LONG = ([(k, k + 1) for k in range(count)] for count in (5, 19))
DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def _launches(t):
    """Parameters of six launches, no two alike."""
    x, y, z = (t.buffer() for _ in range(3))
    grid, n = -(-t.size // 256), t.size
    made = [kernel_params(fill, grid, 256, x, 1.0, n), kernel_params(axpy, grid, 256, z, x, 2.0, n), kernel_params(add, grid, 256, z, x, y, n),
            kernel_params(scale, grid, 256, y, 3.0, n), kernel_params(scale, grid, 256, z, 3.0, n), kernel_params(fill, grid, 256, z, 1.0, n)]
    return [made[k] for k in t.random.permutation(6)]


@LAB.part(points=4, hints=(
    "If b waits for a, and c for b, does c wait for a? Is there an edge between the two?",
    "Put two pairs together where one ends as the other begins: what do you get, and how often must you do it?",
    "Begin with the edges as a set. Add every pair that two pairs of the set make, until the set does not grow any more."))
def must_wait(t, answer):
    """The set of all pairs of positions (i, j) where node j must wait for node i, by one edge or by a way through other nodes."""
    launches = _launches(t)
    for count, edges in [*((count, plan(t, count)) for count in (4, 5, 6)), (2, []), (6, ROW), (20, LONG)]:
        graph = built(t, 4 * launches, edges, t.random.permutation(count))
        edges = graphs.edges(graph)
        expected, (_, result) = paths(edges), later(t, answer, graph)
        what = f"for the edges {_few(edges)} the set {_few(expected)}"
        t.want(type(result) in (set, frozenset), what, kind(result))
        odd = next((one for one in result if not _is_pair(one)), None)
        t.want(all(map(_is_pair, result)), f"{what}, each a tuple of two ints", f"{shown(odd, 60)} in the set")
        t.want(result == expected, what, "; ".join(f"{word} {_few(pairs)}" for word, pairs in (("without", expected - result), ("and also", result - expected)) if pairs))


def _few(pairs):
    """The pairs, or the first twenty of many."""
    return f"{sorted(pairs)[:20]}{f' and {len(pairs) - 20} more' * (len(pairs) > 20)}"


def _is_pair(one):
    return type(one) is tuple and len(one) == 2 and all(isinstance(k, (int, np.integer)) for k in one)


# ---- the same or not -----------------------------------------------------------------------------

def _changes(t):
    """{what is another: two launches that differ in this, and in nothing else}."""
    a, b, c = (t.buffer() for _ in range(3))
    grid, n = -(-t.size // 256), t.size
    one, two = kernel_params(axpy, grid, 256, a, b, 4.0, n), kernel_params(scale, grid, 256, a, 4.0, n)
    return {"kernel": (two, two.but(kernel=fill)), "grid": (one, one.but(grid=grid + 1)), "second number of the grid": (one, one.but(grid=(grid, 2))),
            "block": (one, one.but(block=128)), "second number of the block": (one, one.but(block=(256, 2))),
            "split into grid and block": (one, one.but(grid=2 * grid, block=128)), "first argument": (one, one.but(args={0: c})),
            "second argument": (one, one.but(args={1: c})), "third argument": (one, one.but(args={2: 4.5})), "last argument": (one, one.but(args={3: n - 1}))}


def _pairs(t):
    """[(what the two are, launches and edges of one, of the other, whether they are the same)]."""
    some, drawn = _launches(t), plan(t, 6)
    gone = ROW[int(t.random.integers(5))]
    edges = [("made alike", DIAMOND, DIAMOND, True), ("their nodes made in another order", ROW, ROW, True),
             ("an edge more, where there is a way already", DIAMOND, [*DIAMOND, (0, 3)], True),
             ("an edge more, from the first of a row to its last", ROW, [*ROW, (0, 5)], True),
             ("an edge wherever there is a way", drawn, sorted(paths(drawn)), True),
             ("an edge less", ROW, [edge for edge in ROW if edge != gone], False), ("one edge instead of another", DIAMOND, [*DIAMOND[:3], (4, 5)], False),
             ("two that wait have changed places", [(0, 1), (2, 3)], [(0, 3), (2, 1)], False), ("all edges turned round", drawn, [(b, a) for a, b in drawn], False)]
    pairs = [(words, (some, one), (some, other), same) for words, one, other, same in edges]
    pairs += [("one node more", (some[:5], DIAMOND), (some, DIAMOND), False), ("two launches of a row have changed places", (some, ROW), ([some[1], some[0], *some[2:]], ROW), False)]
    for what, (a, b) in _changes(t).items():
        pairs += [(f"another {what} in one launch", ([a, *some], DIAMOND), ([b, *some], DIAMOND), False),
                  (f"another {what} in one launch, which waits for nobody, and nobody for it", ([*some, a], DIAMOND), ([*some, b], DIAMOND), False),
                  (f"the other one is waited for, of two launches that differ in the {what} only", ([a, b, *some], [(0, 2), (2, 3)]), ([a, b, *some], [(1, 2), (2, 3)]), False)]
    return [pairs[k] for k in t.random.permutation(len(pairs))]


def _state(graph):
    return [repr(launched(node)) for node in graphs.nodes(graph)], graphs.edges(graph)


@LAB.part(points=6, hints=(
    "No two nodes of a graph are launched alike here. So what is a better name for a node than its position, if two graphs are compared?",
    "Which two sets must agree: one of what is launched, and one of who must wait for whom? In what words must the second be said, so that positions do not count?",
    "Make a tuple of kernel, grid, block and arguments for each node. Then say the pairs of part 2 in these tuples, and compare both graphs' sets."))
def same(t, answer):
    """True for two graphs with the same launches that must wait for one another in the same way, however they were made; else False."""
    for words, one, other, expected in _pairs(t):
        order = t.random.permutation(len(one[0]))
        one, other = built(t, *one, order), built(t, *other, order if words == "made alike" else [*range(len(order), len(other[0])), *order[::-1]])
        for pair in ((one, other), (other, one)):
            _asked(t, answer, pair, expected, f"{expected} for this pair: {words}")
    _asked(t, answer, (one, one), True, "True for a graph and itself")


def _asked(t, answer, pair, expected, words):
    before = [_state(graph) for graph in pair]
    _, result = later(t, answer, *pair)
    t.want(isinstance(result, (bool, np.bool_)), "True or False", kind(result))
    t.want(bool(result) == expected, words, f"{bool(result)}")
    t.want([_state(graph) for graph in pair] == before, "both graphs as they were", "a graph that your function has changed")
