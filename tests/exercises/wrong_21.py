"""Wrong answers to exercise 21, and what check() says of each."""
import numpy as np

from labkit import LabError, cudart, exec_update, graph, kernel_params, kernels, launch, launched, ok

EXPECT = {
    "diamond_by_hand__no_edges": "expected a graph with",
    "diamond_by_hand__in_a_row": "expected a graph with",
    "diamond_by_hand__waits_for_one": "expected a graph with",
    "diamond_by_hand__the_count_says_none": "expected a graph with",
    "diamond_by_hand__left_out": "found    a graph with fill, axpy, add",
    "diamond_by_hand__another_factor": "found:    scale(y, 2, n)",
    "diamond_by_hand__for_four_floats": "n of fill is 1000",
    "diamond_by_hand__two_that_race": "found:    axpy(y, x, 0.333333, n)",
    "diamond_by_hand__other_arithmetic": "found:    fill(x, 2, n)",
    "diamond_by_hand__one_block": "threads of fill",
    "diamond_by_hand__two_rows": "in one row",
    "diamond_by_hand__destroyed": "a graph that the function has destroyed",
    "diamond_by_hand__captured": "without any capture",
    "diamond_by_hand__runs_it": "found    a graph with no nodes",
    "diamond_by_hand__an_executable": "expected back: graph",
    "diamond_by_hand__with_its_nodes": "expected: the graph, and nothing else",
    "must_wait__the_edges": "for the edges",
    "must_wait__two_steps_only": "for the edges",
    "must_wait__both_ways": "for the edges",
    "must_wait__by_position": "for the edges",
    "must_wait__turned_round": "for the edges",
    "must_wait__the_count": "int",
    "must_wait__nodes": "for the edges",
    "must_wait__without_the_edges": "for the edges",
    "must_wait__two_rounds": "without [",
    "must_wait__four_rounds": "without [",
    "must_wait__a_list": "found:    list",
    "must_wait__lists_of_letters": "in the set",
    "must_wait__no_direction": "frozenset({",
    "must_wait__floats": "in the set",
    "must_wait__halves": "in the set",
    "must_wait__what_cannot_be_read": "found:    Odd in the set",
    "must_wait__destroys_it": "a call of cudaGraphDestroy",
    "same__kinds": "False for this pair",
    "same__counts": "False for this pair",
    "same__counts_for_each": "two that wait have changed places",
    "same__levels": "False for this pair",
    "same__who_waits_is_not_said": "two that wait have changed places",
    "same__kernel_pairs": "is waited for",
    "same__pairs_without_sizes": "is waited for",
    "same__no_kernel": "kernel",
    "same__no_grid": "grid",
    "same__first_numbers": "second number",
    "same__as_many_threads": "split into grid and block",
    "same__no_second_argument": "second argument",
    "same__pairs_and_a_count": "waits for nobody",
    "same__no_direction": "False for this pair",
    "same__first_and_last": "False for this pair",
    "same__two_rounds": "True for this pair",
    "same__not_with_itself": "True for a graph and itself",
    "same__destroys_one": "a call of cudaGraphDestroy",
    "same__kernels_only": "False for this pair",
    "same__edges_by_position": "True for this pair",
    "same__edges_by_name": "True for this pair",
    "same__launches_only": "False for this pair",
    "same__order_only": "for this pair",
    "same__always": "False for this pair",
    "same__never": "True for this pair",
    "same__by_update": "False for this pair",
    "same__no_differences": "True for this pair",
    "same__number_of_paths": "False for this pair",
    "same__one_way_only": "False for this pair",
    "same__changes_them": "False for this pair",
    "same__changes_and_knows": "both graphs as they were",
    "same__a_word": "True or False",
}
RIGHT = ("diamond_by_hand__edges_later", "diamond_by_hand__an_edge_more", "diamond_by_hand__y_plus_x", "must_wait__by_walking", "must_wait__with_numpy",
         "same__by_their_text", "same__by_pairing_nodes")


# ---- by hand -------------------------------------------------------------------------------------

def _made(x, y, z, edges, factor=3.0, names=("fill", "axpy", "scale", "add"), count=None, n=None):
    n = n or x.size
    grid = -(-n // 256)
    works = {"fill": (kernels.fill, grid, 256, x, 1.0, n), "axpy": (kernels.axpy, grid, 256, x, x, 1.0, n),
             "scale": (kernels.scale, grid, 256, y, factor, n), "add": (kernels.add, grid, 256, z, x, y, n)}
    plan, nodes = ok(cudart.cudaGraphCreate(0)), {}
    for name in names:
        before = [nodes[a] for a, b in edges if b == name and a in nodes]
        nodes[name] = ok(cudart.cudaGraphAddKernelNode(plan, before, len(before) if count is None else count, kernel_params(*works[name])))
    return plan


DIAMOND = (("fill", "axpy"), ("fill", "scale"), ("axpy", "add"), ("scale", "add"))


def diamond_by_hand__no_edges(x, y, z):
    return _made(x, y, z, ())


def diamond_by_hand__in_a_row(x, y, z):
    return _made(x, y, z, (("fill", "axpy"), ("axpy", "scale"), ("scale", "add")))


def diamond_by_hand__waits_for_one(x, y, z):
    return _made(x, y, z, DIAMOND[:3])


def diamond_by_hand__the_count_says_none(x, y, z):
    return _made(x, y, z, DIAMOND, count=0)


def diamond_by_hand__left_out(x, y, z):
    return _made(x, y, z, DIAMOND, names=("fill", "axpy", "add"))


def diamond_by_hand__another_factor(x, y, z):
    return _made(x, y, z, DIAMOND, factor=2.0)


def diamond_by_hand__for_four_floats(x, y, z):
    return _made(x, y, z, DIAMOND, n=4)


def diamond_by_hand__runs_it(x, y, z):
    n, grid = x.size, -(-x.size // 256)
    for work in ((kernels.fill, grid, 256, x, 1.0, n), (kernels.axpy, grid, 256, x, x, 1.0, n), (kernels.scale, grid, 256, y, 3.0, n),
                 (kernels.add, grid, 256, z, x, y, n)):
        ok(launch(0, *work))
    return ok(cudart.cudaGraphCreate(0))


def diamond_by_hand__an_executable(x, y, z):
    plan = _made(x, y, z, DIAMOND)
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    ok(cudart.cudaGraphDestroy(plan))
    return executable


def diamond_by_hand__with_its_nodes(x, y, z):
    plan = _made(x, y, z, DIAMOND)
    return plan, graph.nodes(plan)


def diamond_by_hand__captured(x, y, z):
    """It gives the same graph, and is not what is asked."""
    from tests.exercises.wrong_05 import diamond__other_way
    streams = [ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2)]
    events = [ok(cudart.cudaEventCreate()) for _ in range(2)]
    plan = diamond__other_way(*streams, *events, x, y, z)
    for stream, event in zip(streams, events):
        ok(cudart.cudaStreamDestroy(stream))
        ok(cudart.cudaEventDestroy(event))
    return plan


def diamond_by_hand__edges_later(x, y, z):
    plan = _made(x, y, z, (), names=("add", "scale", "axpy", "fill"))
    add, scale, axpy, fill = graph.nodes(plan)
    graph.add_dependencies(plan, [fill, fill, axpy, scale], [axpy, scale, add, add])
    return plan


def diamond_by_hand__an_edge_more(x, y, z):
    return _made(x, y, z, (*DIAMOND, ("fill", "add")))


def _by_hand(*four):
    """The diamond of these four launches."""
    plan = ok(cudart.cudaGraphCreate(0))
    first, left, right, last = (ok(cudart.cudaGraphAddKernelNode(plan, [], 0, kernel_params(*work))) for work in four)
    graph.add_dependencies(plan, [first, first, left, right], [left, right, last, last])
    return plan


def _four(x, y, z, grid=None, block=256):
    n, grid = x.size, grid or -(-x.size // 256)
    return [(kernels.fill, grid, block, x, 1.0, n), (kernels.axpy, grid, block, x, x, 1.0, n), (kernels.scale, grid, block, y, 3.0, n), (kernels.add, grid, block, z, x, y, n)]


def diamond_by_hand__two_that_race(x, y, z):
    """axpy and scale both write y, side by side."""
    first, _, right, last = _four(x, y, z)
    return _by_hand(first, (kernels.axpy, first[1], 256, y, x, 1 / 3, x.size), right, last)


def diamond_by_hand__other_arithmetic(x, y, z):
    _, left, right, last = _four(x, y, z)
    return _by_hand((kernels.fill, left[1], 256, x, 2.0, x.size), (*left[:5], 0.0, x.size), right, last)


def diamond_by_hand__one_block(x, y, z):
    return _by_hand(*_four(x, y, z, 1, 2))


def diamond_by_hand__two_rows(x, y, z):
    """Each element twice."""
    return _by_hand(*_four(x, y, z, (-(-x.size // 256), 2)))


def diamond_by_hand__destroyed(x, y, z):
    plan = _by_hand(*_four(x, y, z))
    ok(cudart.cudaGraphDestroy(plan))
    return plan


def diamond_by_hand__y_plus_x(x, y, z):
    *most, last = _four(x, y, z)
    return _by_hand(*most, (*last[:4], y, x, x.size))


# ---- who waits -----------------------------------------------------------------------------------

def _paths(plan):
    found = set(graph.edges(plan))
    for _ in graph.nodes(plan):
        found |= {(a, d) for a, b in found for c, d in found if b == c}
    return found


def must_wait__the_edges(plan):
    return set(graph.edges(plan))


def must_wait__two_steps_only(plan):
    edges = set(graph.edges(plan))
    return edges | {(a, d) for a, b in edges for c, d in edges if b == c}


def must_wait__both_ways(plan):
    return _paths(plan) | {(b, a) for a, b in _paths(plan)}


def must_wait__by_position(plan):
    """As if nodes waited for all that were made before them."""
    count = len(graph.nodes(plan))
    return {(i, j) for j in range(count) for i in range(j)}


def must_wait__turned_round(plan):
    return {(b, a) for a, b in _paths(plan)}


def must_wait__the_count(plan):
    return len(_paths(plan))


def must_wait__nodes(plan):
    nodes = graph.nodes(plan)
    return {(int(nodes[a]), int(nodes[b])) for a, b in _paths(plan)}


def must_wait__without_the_edges(plan):
    return _paths(plan) - set(graph.edges(plan))


def must_wait__two_rounds(plan):
    found = set(graph.edges(plan))
    for _ in range(2):
        found |= {(a, d) for a, b in found for c, d in found if b == c}
    return found


def must_wait__a_list(plan):
    return sorted(_paths(plan))


def must_wait__lists_of_letters(plan):
    return {f"{a}{b}" for a, b in _paths(plan)}


def must_wait__no_direction(plan):
    return {frozenset(pair) for pair in _paths(plan)}


def must_wait__floats(plan):
    return {(float(a), float(b)) for a, b in _paths(plan)}


def must_wait__halves(plan):
    return {(a + 0.5, b + 0.5) for a, b in _paths(plan)}


class Odd:
    """Nothing can be asked of it."""

    def __repr__(self):
        raise RuntimeError
    __iter__ = __len__ = __int__ = __repr__


def must_wait__what_cannot_be_read(plan):
    return {Odd()}


def must_wait__destroys_it(plan):
    found = _paths(plan)
    ok(cudart.cudaGraphDestroy(plan))
    return found


def must_wait__with_numpy(plan):
    """A matrix, and so numpy's own ints."""
    count = len(graph.nodes(plan))
    reach = np.zeros((count, count), bool)
    for a, b in graph.edges(plan):
        reach[a, b] = True
    for k in range(count):
        reach |= np.outer(reach[:, k], reach[k])
    return {tuple(pair) for pair in np.argwhere(reach)}


def must_wait__by_walking(plan):
    """From each node forwards."""
    nodes = graph.nodes(plan)
    place = {int(node): k for k, node in enumerate(nodes)}

    def after(node):
        for other in graph.dependents(node):
            yield place[int(other)]
            yield from after(other)
    return frozenset((k, j) for k, node in enumerate(nodes) for j in after(node))


# ---- the same ------------------------------------------------------------------------------------

def _names(plan):
    return [(f.kernel.name, f.grid, f.block, tuple(f.args)) for f in map(launched, graph.nodes(plan))]


def _pairs(plan, pairs):
    names = _names(plan)
    return {(names[a], names[b]) for a, b in pairs}


def same__kinds(one, other):
    return sorted(graph.kinds(one)) == sorted(graph.kinds(other))


def same__counts(one, other):
    return len(graph.nodes(one)) == len(graph.nodes(other)) and len(_paths(one)) == len(_paths(other))


def _alike(one, other, how):
    """Whether how(launches, paths) is the same for both."""
    first, second = (how(_names(plan), _paths(plan)) for plan in (one, other))
    return first == second


def same__counts_for_each(one, other):
    """For each launch how many it waits for, and how many wait for it; not which."""
    return _alike(one, other, lambda names, pairs: {(name, sum(b == k for _, b in pairs), sum(a == k for a, _ in pairs)) for k, name in enumerate(names)})


def same__levels(one, other):
    def levels(names, pairs):
        def level(k):
            return max((1 + level(a) for a, b in pairs if b == k), default=0)
        return {(name, level(k)) for k, name in enumerate(names)}
    return _alike(one, other, levels)


def same__who_waits_is_not_said(one, other):
    """What is waited for, by somebody."""
    return _alike(one, other, lambda names, pairs: (set(names), sorted(sorted(names[a] for a, b in pairs if b == k) for k in range(len(names)))))


def same__kernel_pairs(one, other):
    """All launches; but who waits by the kernels' names only."""
    return _alike(one, other, lambda names, pairs: (set(names), sorted((names[a][0], names[b][0]) for a, b in pairs)))


def same__pairs_without_sizes(one, other):
    return _alike(one, other, lambda names, pairs: (set(names), sorted(((names[a][0], names[a][3]), (names[b][0], names[b][3])) for a, b in pairs)))


def _by(one, other, key):
    """As it should be, but that only key(launch) of a launch is looked at."""
    return _alike(one, other, lambda names, pairs: (sorted(map(key, names)), sorted((key(names[a]), key(names[b])) for a, b in pairs)))


def same__no_kernel(one, other):
    return _by(one, other, lambda name: name[1:])


def same__no_grid(one, other):
    return _by(one, other, lambda name: (name[0], *name[2:]))


def same__first_numbers(one, other):
    """A grid and a block may have more than one number."""
    return _by(one, other, lambda name: (name[0], name[1][0], name[2][0], name[3]))


def same__as_many_threads(one, other):
    return _by(one, other, lambda name: (name[0], name[1][0] * name[2][0] * name[1][1] * name[2][1] * 8 + name[1][1] + 3 * name[2][1], name[3]))


def same__no_second_argument(one, other):
    return _by(one, other, lambda name: (*name[:3], name[3][0], name[3][2:]))


def same__pairs_and_a_count(one, other):
    """Who waits for nobody, and for whom nobody waits, is counted only."""
    return _alike(one, other, lambda names, pairs: (len(names), {(names[a], names[b]) for a, b in pairs}))


def same__no_direction(one, other):
    return _alike(one, other, lambda names, pairs: (set(names), {frozenset((names[a], names[b])) for a, b in pairs}))


def same__first_and_last(one, other):
    return _alike(one, other, lambda names, pairs: (set(names), {name for k, name in enumerate(names) if all(b != k for _, b in pairs)},
                                                    {name for k, name in enumerate(names) if all(a != k for a, _ in pairs)}))


def same__two_rounds(one, other):
    return set(_names(one)) == set(_names(other)) and _pairs(one, must_wait__two_rounds(one)) == _pairs(other, must_wait__two_rounds(other))


def same__not_with_itself(one, other):
    return int(one) != int(other) and same__by_their_text(one, other)


def same__destroys_one(one, other):
    right = same__by_their_text(one, other)
    ok(cudart.cudaGraphDestroy(other))
    return right


def same__kernels_only(one, other):
    """The kernels' names and who waits; no arguments, no sizes."""
    def read(plan):
        names = [launched(node).kernel.name for node in graph.nodes(plan)]
        return sorted(names), sorted((names[a], names[b]) for a, b in _paths(plan))
    return read(one) == read(other)


def same__edges_by_position(one, other):
    return sorted(_names(one)) == sorted(_names(other)) and graph.edges(one) == graph.edges(other)


def same__edges_by_name(one, other):
    """An edge too many is taken for a difference."""
    return set(_names(one)) == set(_names(other)) and _pairs(one, graph.edges(one)) == _pairs(other, graph.edges(other))


def same__launches_only(one, other):
    return set(_names(one)) == set(_names(other))


def same__order_only(one, other):
    return _paths(one) == _paths(other)


def same__always(one, other):
    return True


def same__never(one, other):
    return False


def same__by_update(one, other):
    """CUDA accepts the update: it takes other parameters as well."""
    executable = ok(cudart.cudaGraphInstantiate(one, 0))
    try:
        ok(exec_update(executable, other))
        return True
    except LabError:
        return False
    finally:
        ok(cudart.cudaGraphExecDestroy(executable))


def same__no_differences(one, other):
    """The kit's own comparison goes by the order of making, and sees every edge."""
    from labkit.changes import differences
    return not differences(one, other)


def same__number_of_paths(one, other):
    return sorted(_names(one)) == sorted(_names(other)) and len(_paths(one)) == len(_paths(other))


def same__one_way_only(one, other):
    """What the first has the second has too; the second may have more."""
    return set(_names(one)) <= set(_names(other)) and _pairs(one, _paths(one)) <= _pairs(other, _paths(other))


def same__changes_them(one, other):
    """It sets all kernels alike, and then finds no difference."""
    first = launched(graph.nodes(one)[0])
    for plan in (one, other):
        for node in graph.nodes(plan):
            ok(cudart.cudaGraphKernelNodeSetParams(node, first))
    return len(graph.nodes(one)) == len(graph.nodes(other))


def same__changes_and_knows(one, other):
    right = same__by_their_text(one, other)
    node = graph.nodes(one)[0]
    ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(grid=7, args={0: 0})))
    return right


def same__a_word(one, other):
    return "same" if same__by_their_text(one, other) else "different"


def same__by_their_text(one, other):
    """repr() of what was launched says kernel, sizes and arguments."""
    def read(plan):
        names = [repr(launched(node)) for node in graph.nodes(plan)]
        return sorted(names), sorted((names[a], names[b]) for a, b in _paths(plan))
    return read(one) == read(other)


def same__by_pairing_nodes(one, other):
    """Each node of one is paired with its like, and the paths are translated."""
    first, second = _names(one), _names(other)
    if sorted(first, key=repr) != sorted(second, key=repr):
        return False
    partner = [second.index(name) for name in first]
    return {(partner[a], partner[b]) for a, b in _paths(one)} == _paths(other)


def must_wait__four_rounds(plan):
    pairs = set(graph.edges(plan))
    for _ in range(4):
        pairs |= {(a, d) for a, b in pairs for c, d in pairs if b == c}
    return pairs
