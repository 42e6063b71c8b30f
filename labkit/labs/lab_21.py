"""21: a graph made by hand, node by node; and when two graphs are the same."""
import numpy as np

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import add, axpy, fill, scale
from labkit.labs.calls import kind
from labkit.labs.judging import Lab
from labkit.params import kernel_params
from labkit.update import launched

LAB = Lab("21_by_hand", "By hand", lesson="13", minutes=15)


@LAB.part(points=4, hints=(
    "Without a stream, what says that one node comes after another?",
    "Which node waits for nothing, which two for one node, and which for two? When is a node's handle there to be waited for?",
    "Lesson 13 makes a graph with every kind of node. The call for a kernel gets the graph, the nodes to wait for, their count, and prepared parameters."))
def diamond_by_hand(t, answer):
    """A graph of four kernels, made without a capture: fill, then axpy and scale side by side, then add, which waits for both."""
    x, y, z = (t.buffer() for _ in range(3))
    result = t.run(answer, x, y, z)
    t.just(result, 1, "the graph, and nothing else")
    graph = t.parts_of(result, "graph")
    t.shape(graph, {"fill": "fill", "axpy": "axpy", "scale": "scale", "add": "add"},
            [("fill", "axpy"), ("fill", "scale"), ("axpy", "add"), ("scale", "add")])
    executable = t.executable(graph)
    for which in (1, 2):
        _, right, _ = t.fresh(x, y, z)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "z", z, 2 * np.ones(t.size) + 3 * right)


# ---- graphs to read ------------------------------------------------------------------------------

def built(t, works, edges, order=None):
    """A graph of these kernel parameters and edges between them, its nodes made in this order."""
    graph, nodes = t.own(ok(cudart.cudaGraphCreate(0))), {}
    for k in order if order is not None else range(len(works)):
        nodes[k] = ok(cudart.cudaGraphAddKernelNode(graph, [], 0, works[k]))
    if edges:
        graphs.add_dependencies(graph, [nodes[a] for a, _ in edges], [nodes[b] for _, b in edges])
    return graph


def paths(count, edges):
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
        reached = paths(count, edges)
        if any((a, b) not in edges for a, b in reached) and len(reached) < count * (count - 1) // 2:
            return edges


def _state(graph):
    return [(graphs.kind(node), launched(node).args) for node in graphs.nodes(graph)], graphs.edges(graph)


def _works(t, count):
    """Parameters of `count` launches, no two alike."""
    x, y, z = (t.buffer() for _ in range(3))
    grid, n = -(-t.size // 256), t.size
    made = [kernel_params(fill, grid, 256, x, 1.0, n), kernel_params(axpy, grid, 256, y, x, 2.0, n), kernel_params(scale, grid, 256, y, 3.0, n),
            kernel_params(add, grid, 256, z, x, y, n), kernel_params(scale, grid, 256, z, 3.0, n), kernel_params(fill, grid, 256, z, 1.0, n)]
    return [made[k] for k in t.random.permutation(len(made))[:count]]


@LAB.part(points=4, hints=(
    "If b waits for a, and c for b, does c wait for a? Is there an edge between the two?",
    "Put two pairs together where one ends as the other begins: what do you get, and how often must you do it?",
    "Begin with the edges as a set. Add every pair that two pairs of the set make, until the set does not grow any more."))
def must_wait(t, answer):
    """The set of all pairs of positions (i, j) where node j must wait for node i, by one edge or by a way through other nodes."""
    for count in (4, 5, 6, 2):
        works = _works(t, count)
        edges = plan(t, count) if count > 2 else []
        graph = built(t, works, edges, t.random.permutation(count))
        _compare(t, t.run(answer, graph), graph)
    chain = [(k, k + 1) for k in range(5)]
    graph = built(t, _works(t, 6), chain, t.random.permutation(6))
    _compare(t, t.run(answer, graph), graph)


def _compare(t, result, graph):
    edges = graphs.edges(graph)
    expected = paths(len(graphs.nodes(graph)), edges)
    what = f"for the edges {edges} the set {sorted(expected)}"
    t.want(isinstance(result, (set, frozenset)), what, kind(result))
    t.want({_pair(one) for one in result} == expected, what, f"{_shown(result)}")


def _pair(one):
    try:
        return tuple(map(int, one))
    except (TypeError, ValueError):
        return one


def _shown(result):
    return repr(sorted(result, key=repr))[:120]


# ---- the same or not -----------------------------------------------------------------------------

def _another_edge(t, works, edges):
    """One edge moved, so that another node waits: as many edges, other paths."""
    count = len(works)
    for _ in range(1000):
        less = [edge for edge in edges if edge != edges[int(t.random.integers(len(edges)))]]
        a, b = sorted(int(k) for k in t.random.choice(count, 2, replace=False))
        if len(less) == len(edges) - 1 and (a, b) not in edges and paths(count, [*less, (a, b)]) != paths(count, edges):
            return works, [*less, (a, b)]
    return works, edges[1:] if paths(count, edges[1:]) != paths(count, edges) else []


def _an_edge_less(t, works, edges):
    """An edge removed that no other way stands for."""
    needed = [edge for edge in edges if paths(len(works), [e for e in edges if e != edge]) != paths(len(works), edges)]
    gone = needed[int(t.random.integers(len(needed)))]
    return works, [edge for edge in edges if edge != gone]


def _other_parameter(change):
    def make(t, works, edges):
        k = int(t.random.integers(len(works)))
        return [change(t, work) if j == k else work for j, work in enumerate(works)], edges
    return make


def _scalar(t, work):
    n = len(work.args) - 1
    return work.but(args={n: work.args[n] - 1})


def _pointer(t, work):
    return work.but(args={0: t.buffer()})


def _turned(t, works, edges):
    return works, [(b, a) for a, b in edges]


def _one_more(t, works, edges):
    return [*works, kernel_params(fill, 1, 64, t.buffer(), 5.0, 1)], edges


def _swapped(t, works, edges):
    """Two kernels change places; the edges stay."""
    count = len(works)
    reached = paths(count, edges)
    for _ in range(1000):
        a, b = (int(k) for k in t.random.choice(count, 2, replace=False))
        turn = {a: b, b: a}
        if {(turn.get(i, i), turn.get(j, j)) for i, j in reached} != reached:
            return [works[turn.get(k, k)] for k in range(count)], edges
    return works[:-1], [(i, j) for i, j in edges if j < count - 1]


def _alike(t, works, edges):
    return works, edges


def _redundant(t, works, edges):
    ways = sorted(paths(len(works), edges) - set(edges))
    return works, [*edges, ways[int(t.random.integers(len(ways)))]]


def _bare(t, works, edges):
    """Without the edges that add nothing."""
    kept = list(edges)
    for edge in edges:
        less = [other for other in kept if other != edge]
        if paths(len(works), less) == paths(len(works), edges):
            kept = less
    return works, kept


SAME = {"made alike": _alike, "their nodes made in another order": _alike, "an edge more, where there is a way already": _redundant,
        "the edges that add nothing left out": _bare}
OTHER = {"one edge instead of another": _another_edge, "an edge less": _an_edge_less, "the last argument of one kernel": _other_parameter(_scalar),
         "the address that one kernel writes to": _other_parameter(_pointer), "all edges turned round": _turned, "one node more": _one_more,
         "two kernels that have changed places": _swapped, "the grid of one kernel": _other_parameter(lambda t, work: work.but(grid=work.grid[0] + 1)),
         "the block of one kernel": _other_parameter(lambda t, work: work.but(block=128))}


@LAB.part(points=6, hints=(
    "No two nodes of a graph are launched alike here. So what is a better name for a node than its position, if two graphs are compared?",
    "Which two sets must agree: one of what is launched, and one of who must wait for whom? In what words must the second be said, so that positions do not count?",
    "Make a tuple of kernel, grid, block and arguments for each node. Then say the pairs of part 2 in these tuples, and compare both graphs' sets."))
def same(t, answer):
    """True for two graphs with the same launches that must wait for one another in the same way, however they were made; else False."""
    tried = [(words, make, True) for words, make in SAME.items()] + [(words, make, False) for words, make in OTHER.items()]
    for turn in t.random.permutation(len(tried)):
        words, make, expected = tried[turn]
        works = _works(t, 5)
        edges = plan(t, 5)
        one = built(t, works, edges)
        works, edges = make(t, works, edges)
        other = built(t, works, edges, None if words == "made alike" else t.random.permutation(len(works)))
        pair = (one, other) if t.random.random() < 0.5 else (other, one)
        before = [_state(graph) for graph in pair]
        result = t.run(answer, *pair)
        t.want(isinstance(result, (bool, np.bool_)), "True or False", kind(result))
        t.want(bool(result) == expected, f"{expected} for this pair: {words}", f"{bool(result)}")
        t.want([_state(graph) for graph in pair] == before, "both graphs as they were", "a graph that your function has changed")
    t.want(bool(t.run(answer, one, one)), "True for a graph and itself", "False")
