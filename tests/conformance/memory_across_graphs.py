"""Graphs that free what another graph, or a pool, allocated."""
from tests.conformance.building import fill
from tests.conformance.counting import GraphMemory, captured, from_pool, make_pool
from tests.conformance.harness import scenario
from tests.conformance.memory_nodes import add_to, alloc_node, free_node

ORDERS = ("abab", "ab", "aab", "abb", "bab", "ba", "abba", "aba", "aabb", "abaab")


@scenario("A graph that allocates and one that frees are launched in turn; anything else is refused at the call.", control="abab",
          variants={order: dict(order=order) for order in ORDERS}, each={"made": ("by hand", "captured"), "waiting": ("between", "at the end")})
def launching_in_turn(t, order, made, waiting):
    stream, count, x = t.stream(), GraphMemory(t), t.device([0] * 4)
    if made == "by hand":
        (_, a), (_, b) = t.cudaGraphCreate(0), t.cudaGraphCreate(0)
        node, buffer = alloc_node(t, a)
        fill(t, buffer, 3).add(a, [node])
        free_node(t, b, [add_to(t, x, buffer).add(b, [])], buffer.ptr)
    else:
        a, places = captured(t, stream, "a16", 1)
        b = _freeing(t, stream, places["a"])
    t.graph(b)
    executables = {"a": t.instantiate(a), "b": t.instantiate(b)}
    for which in order:
        t.cudaGraphLaunch(executables[which], stream)
        if waiting == "between":
            t.cudaStreamSynchronize(stream)
        count(which)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


def _freeing(t, stream, ptr):
    """A captured graph that frees an address."""
    t.begin(stream)
    t.cudaFreeAsync(ptr, stream)
    return t.end(stream)


@scenario("The graph that frees may be made before, and launched after the end of, the one that allocates.", control="both alive",
          variants={"both alive": dict(gone=""), "allocating executable destroyed": dict(gone="e"), "allocating graph destroyed": dict(gone="eg"),
                    "freeing one made before": dict(gone="", early=True), "launched twice": dict(gone="", times=2),
                    "launched twice, all gone": dict(gone="eg", times=2)})
def freeing_for_a_graph_that_is_gone(t, gone, times=1, early=False):
    stream, count = t.stream(), GraphMemory(t)
    a, places = captured(t, stream, "a20")
    if early:
        second = t.instantiate(_freeing(t, stream, places["a"]))
    first = t.instantiate(a)
    t.cudaGraphLaunch(first, stream)
    t.cudaStreamSynchronize(stream)
    if not early:
        second = t.instantiate(_freeing(t, stream, places["a"]))
    if "e" in gone:
        t.cudaGraphExecDestroy(first)
    if "g" in gone:
        t.cudaGraphDestroy(a)
    for _ in range(times):
        t.cudaGraphLaunch(second, stream)
        t.cudaStreamSynchronize(stream)
        count("freed")
    t.cudaDeviceGraphMemTrim(0)
    count("trimmed")
    t.recovered(stream)


@scenario("Several graphs may free one allocation; each launch frees it once.", control="one",
          variants={"one": dict(order="ab"), "each in turn": dict(order="abac"), "both": dict(order="abc"), "freed outside": dict(order="afb")}, open=True)
def two_graphs_that_free_the_same(t, order):
    stream = t.stream()
    a, places = captured(t, stream, "a4")
    executables = {which: t.instantiate(a if which == "a" else _freeing(t, stream, places["a"])) for which in sorted(set(order) - {"f"})}
    for which in order:
        if which == "f":
            t.cudaFreeAsync(places["a"], stream)
        else:
            t.cudaGraphLaunch(executables[which], stream)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("Freeing what a pool gave is no part of a graph; a captured allocation from a pool is.", control="captured",
          variants={"captured": dict(inside=True), "before the capture": dict(inside=False)}, each={"pool": ("default", "own")})
def freeing_a_pools_memory_in_a_graph(t, inside, pool):
    stream = t.stream()
    source = t._put("cudaDeviceGetDefaultMemPool", 0) if pool == "default" else make_pool(t)
    ptr = None if inside else from_pool(t, 4096, source, stream)
    t.begin(stream)
    if inside:
        ptr = from_pool(t, 4096, source, stream)
    t.cudaFreeAsync(ptr, stream)
    t.status(stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream, 2)
    t.recovered(stream)
