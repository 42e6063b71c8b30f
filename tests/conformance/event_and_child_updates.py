"""Event and child graph setters of an executable."""
from tests.conformance.building import (BOTH, allocating, chain, child, diamond, empty, fill, finishes, host, is_recorded, memset, plus, record, run,
                                        wait)
from tests.conformance.harness import scenario


@scenario("The record setter lets the executable record another event.", control="the same event",
          variants={"the same event": dict(what="same"), "another": dict(what="other"), "null": dict(what=0), "None": dict(what=None),
                    "destroyed": dict(what="destroyed"), "without timing": dict(what="untimed")}, each=BOTH, open=True,
                    isolated=("null", "None"), undefined=["destroyed"])
def an_event_record_setter(t, what, made):
    stream, x, start, one, two = t.stream(), t.device([0] * 4), t.event(), t.event(), t.event()
    t.cudaEventRecord(start, stream)
    t.cudaStreamSynchronize(stream)
    graph, nodes = chain(t, [record(t, one), plus(t, x, 1)], made)
    executable = t.instantiate(graph)
    is_recorded(t, start, one), is_recorded(t, start, two)
    if what == "destroyed":
        gone = t.event()
        t.cudaEventDestroy(gone)
    event = {"same": one, "other": two, "destroyed": gone if what == "destroyed" else None, "untimed": t.event(2)}.get(what, what)
    t.cudaGraphExecEventRecordNodeSetEvent(executable, nodes[0], event)
    run(t, executable, stream, x)
    is_recorded(t, start, one), is_recorded(t, start, two)
    t.recovered(stream)


@scenario("The wait setter lets the executable wait for another event.", control="the same event",
          variants={"the same event": dict(what="same"), "another": dict(what="other"), "never recorded": dict(what="never"), "null": dict(what=0),
                    "None": dict(what=None), "destroyed": dict(what="destroyed")}, each=BOTH, open=True, isolated=("null", "None"),
          undefined=["destroyed"])
def an_event_wait_setter(t, what, made):
    stream, side, x, held, done = t.stream(), t.stream(), t.device([0] * 4), t.event(), t.event()
    graph, nodes = chain(t, [wait(t, held), plus(t, x, 1)], made)
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    t.cudaEventRecord(done, stream)
    if what == "destroyed":
        gone = t.event()
        t.cudaEventDestroy(gone)
    event = {"same": held, "other": done, "never": t.event(), "destroyed": gone if what == "destroyed" else None}.get(what, what)
    t.cudaGraphExecEventWaitNodeSetEvent(executable, nodes[0], event)
    release = t.gate(side)
    t.cudaEventRecord(held, side)
    t.cudaGraphLaunch(executable, stream)
    finishes(t, stream)
    release()
    t.values(x, stream)
    t.recovered(stream)


def _inside(t, what, x):
    """The graph that a child node is given instead of: x[:] += 1, x[:] += 2."""
    one, two = plus(t, x, 100), plus(t, x, 200)
    made = {"the same": [plus(t, x, 1), plus(t, x, 2)], "other values": [one, two], "one node more": [one, two, plus(t, x, 300)],
            "one node less": [one], "another kind": [one, memset(t, x, 0, 2)], "nothing": [], "an empty node": [one, empty(t)],
            "other function": [fill(t, x, 100), two]}
    if what in made:
        return chain(t, made[what])[0]
    if what == "no edge":
        _, graph = t.cudaGraphCreate(0)
        plus(t, x, 100).add(graph, []), plus(t, t.spare, 200).add(graph, [])
        return graph
    return allocating(t, x, 5)


INSIDE = ("the same", "other values", "other function", "one node more", "one node less", "another kind", "an empty node", "nothing", "no edge",
          "memory nodes")


@scenario("The child setter takes a graph of the same shape.", control="the same",
          variants={what: dict(what=what) for what in INSIDE}, open=True, isolated=("memory nodes",))
def a_child_setter(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 10), child(t, _inside(t, "the same", x)), plus(t, x, 20)])
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    t.cudaGraphExecChildGraphNodeSetParams(executable, nodes[1], _inside(t, what, x))
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Two kinds of nodes in a child keep their order.", control="same order",
          variants={"same order": dict(order=0), "other order": dict(order=1)})
def the_order_inside_a_child(t, order):
    stream, x = t.stream(), t.device([0] * 4)

    def inside(order):
        steps = [plus(t, x, 1), memset(t, x, 0x40000000, 2)]
        return chain(t, steps[::-1] if order else steps)[0]
    graph, nodes = chain(t, [child(t, inside(0)), plus(t, x, 20)])
    executable = t.instantiate(graph)
    t.cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], inside(order))
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A child within a child is set as a whole.", control="the same",
          variants={"the same": dict(what="the same"), "other values deep inside": dict(what="other values"),
                    "one node more deep inside": dict(what="one node more"), "another kind deep inside": dict(what="another kind")}, open=True)
def a_child_within_a_child_is_set(t, what):
    stream, x = t.stream(), t.device([0] * 4)

    def around(what):
        return chain(t, [child(t, _inside(t, what, x)), plus(t, x, 1000)])[0]
    graph, nodes = chain(t, [child(t, around("the same"))])
    executable = t.instantiate(graph)
    t.cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], around(what))
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A child setter reads the given graph when it is called.", control="left alone",
          variants={"left alone": dict(later=None), "destroyed": dict(later="destroy"), "grown": dict(later="grow"), "changed": dict(later="change")})
def a_child_setter_reads_at_the_call(t, later):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [child(t, chain(t, [plus(t, x, 1)])[0])])
    executable = t.instantiate(graph)
    given, inside = chain(t, [plus(t, x, 5)])
    t.cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], given)
    if later == "destroy":
        t.cudaGraphDestroy(given)
    elif later == "grow":
        plus(t, x, 100).add(given, inside)
    elif later == "change":
        t.cudaGraphKernelNodeSetParams(inside[0], t.axpy_params(x, t.ones, 100))
    run(t, executable, stream, x)
    run(t, t.instantiate(graph), stream, x)
    t.recovered(stream)


@scenario("A child setter may be given the child node's own graph, but no null and not what holds it.", control="another",
          variants={"another": dict(what="other"), "own copy": dict(what="own"), "own copy, changed": dict(what="changed"),
                    "the graph around": dict(what="self"),
                    "null": dict(what=None), "0": dict(what=0)}, open=True, isolated=("the graph around", "null", "0"))
def graphs_for_a_child_setter(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [child(t, chain(t, [plus(t, x, 1)])[0])])
    executable = t.instantiate(graph)
    _, own = t.cudaGraphChildGraphNodeGetGraph(nodes[0])
    if what == "changed":
        inside, = t.raw.cudaGraphGetNodes(own, 1)[1]
        t.cudaGraphKernelNodeSetParams(inside, t.axpy_params(x, t.ones, 5))
    given = {"other": chain(t, [plus(t, x, 5)])[0], "own": own, "changed": own, "self": graph}.get(what, what)
    t.cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], given)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Branches inside a child are paired as they were made.", control="same order",
          variants={"same order": dict(swapped=False), "branches swapped": dict(swapped=True)}, open=True)
def branches_inside_a_child(t, swapped):
    stream, x, y, z = t.stream(), t.device([0] * 4), t.device([0] * 4), t.device([0] * 4)

    def inside(a, swapped=False):
        sides = [plus(t, y, a), plus(t, z, 2 * a)]
        return diamond(t, plus(t, x, a), *(sides[::-1] if swapped else sides), plus(t, x, 10 * a))[0]
    graph, nodes = chain(t, [child(t, inside(1))])
    executable = t.instantiate(graph)
    t.cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], inside(3, swapped))
    run(t, executable, stream, x, y, z)
    t.recovered(stream)


@scenario("A host node inside a child is set with it.", control="the same",
          variants={"the same": dict(data=1), "other data": dict(data=2)})
def a_host_node_inside_a_child_is_set(t, data):
    stream, seen = t.stream(), []

    def inside(data):
        return chain(t, [host(t, lambda data: seen.append(data), data)])[0]
    graph, nodes = chain(t, [child(t, inside(1))])
    executable = t.instantiate(graph)
    run(t, executable, stream)
    t.cudaGraphExecChildGraphNodeSetParams(executable, nodes[0], inside(data))
    run(t, executable, stream)
    t.cudaStreamSynchronize(stream)
    t.note("seen", seen)
    t.recovered(stream)
