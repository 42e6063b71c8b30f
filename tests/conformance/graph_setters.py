"""Setters of a graph: executables made before keep the old values, those made after have the new. Finding nodes in clones."""
from labkit import graph as graphs
from labkit import kernels
from tests.conformance.building import (BOTH, KINDS, allocating, chain, child, copy, empty, fill, finishes, host, host_params, in_order, is_recorded,
                                        memset, node_params, one_of, plus, record, run, wait)
from tests.conformance.harness import scenario
from tests.conformance.node_kinds import GENERIC, ONE, TWO, _bits, _generic

CHANGES = {"nothing": {}, "scalar": dict(a=7), "grid": dict(grid=4), "block": dict(block=4), "shared memory": dict(shared=1024),
           "function": dict(function="scale"), "grid of 0": dict(grid=0), "block of 4096": dict(block=4096), "1 MiB shared": dict(shared=1 << 20)}


@scenario("The kernel setter of a graph changes executables made later, not those made before.", control="nothing",
          variants={name: dict(change=change) for name, change in CHANGES.items()}, each=BOTH, open=True)
def a_graph_kernel_setter(t, change, made):
    stream, x = t.stream(), t.device([1] * 8)
    graph, nodes = chain(t, [fill(t, x, 2), plus(t, x, 10)], made)
    before = t.instantiate(graph)
    given = {"function": "fill", "grid": 2, "block": 2, "a": 3, "shared": 0, **change}
    function = getattr(kernels, given["function"])
    t.cudaGraphKernelNodeSetParams(nodes[0], t.kernel_params(function, given["grid"], given["block"], x.ptr, float(given["a"]), 8,
                                                             shared=given["shared"]))
    t.graph(graph)
    for executable in (before, t.instantiate(graph)):
        t.write(x, [1] * 8)
        run(t, executable, stream, x)
    t.recovered(stream)


@scenario("The memset setter of a graph.", control="nothing",
          variants={"nothing": {}, "value": dict(value=TWO), "width": dict(width=8), "element size": dict(element=1, value=64),
                    "two rows": dict(height=2, pitch=16, width=2),
                    "width 0": dict(width=0), "elements of 3": dict(element=3)}, open=True)
def a_graph_memset_setter(t, value=ONE, width=4, element=4, height=1, pitch=0):
    stream, x = t.stream(), t.device([9] * 8)
    graph, nodes = chain(t, [memset(t, x, ONE, 4), plus(t, t.spare, 10)])
    before = t.instantiate(graph)
    params = t.memset_params(x, value, width, element)
    params.height, params.pitch = height, pitch
    t.cudaGraphMemsetNodeSetParams(nodes[0], params)
    _, read = t.cudaGraphMemsetNodeGetParams(nodes[0])
    t.note("memset", [int(read.dst) == x.ptr, read.value, read.elementSize, read.width, read.height])
    for executable in (before, t.instantiate(graph)):
        t.write(x, [9] * 8)
        t.cudaGraphLaunch(executable, stream)
        _bits(t, x, stream)
    t.recovered(stream)


@scenario("The copy setter of a graph may change size, places and direction.", control="nothing",
          variants={"nothing": {}, "smaller": dict(nbytes=4), "other source": dict(frm="z"),
                    "from pinned memory": dict(frm="pinned", way="HostToDevice"),
                    "from pageable memory": dict(frm="pageable", way="HostToDevice"), "to pinned memory": dict(to="pinned", way="DeviceToHost"),
                    "nothing to copy": dict(nbytes=0), "null": dict(frm="null"), "direction Default": dict(frm="pinned", way="Default")}, open=True)
def a_graph_copy_setter(t, to="x", frm="y", nbytes=16, way="DeviceToDevice"):
    stream, places = t.stream(), {"x": t.device([0] * 4), "y": t.device([1, 2, 3, 4]), "z": t.device([5, 6, 7, 8])}
    places.update(pinned=t.pinned([50, 60, 70, 80]), pageable=t.pageable([500, 600, 700, 800]))
    graph, nodes = chain(t, [copy(t, places["x"], places["y"], 16, "DeviceToDevice"), plus(t, t.spare, 1)])
    before = t.instantiate(graph)
    t.cudaGraphMemcpyNodeSetParams1D(nodes[0], places[to].ptr, places[frm].ptr if frm != "null" else 0, nbytes, t.copies(way))
    for executable in (before, t.instantiate(graph)):
        t.write(places["x"], [0] * 4)
        run(t, executable, stream, places["x"], places["pinned"])
    t.recovered(stream)


@scenario("The host setter of a graph.", control="nothing",
          variants={"nothing": dict(data=1), "other data": dict(data=2), "function null": dict(data=1, null=True)}, open=True)
def a_graph_host_setter(t, data, null=False):
    stream, seen = t.stream(), []
    graph, nodes = chain(t, [host(t, seen.append, 1)])
    before = t.instantiate(graph)
    t.cudaGraphHostNodeSetParams(nodes[0], host_params(t, None if null else seen.append, data))
    _, read = t.cudaGraphHostNodeGetParams(nodes[0])
    t.note("data", int(read.userData))
    for executable in (before, t.instantiate(graph)):
        run(t, executable, stream)
        t.cudaStreamSynchronize(stream)
        t.note("seen", list(seen))
    t.recovered(stream)


@scenario("The event setters of a graph change what executables made later record and wait for.", control="the same event",
          variants={"the same event": dict(what="same"), "another": dict(what="other"), "null": dict(what=0), "destroyed": dict(what="destroyed")},
          each={"kind": ("record", "wait")}, open=True, isolated=("null",), undefined=["destroyed"])
def a_graph_event_setter(t, what, kind):
    stream, side, x, start = t.stream(), t.stream(), t.device([0] * 4), t.event()
    t.cudaEventRecord(start, stream)
    t.cudaStreamSynchronize(stream)
    one, two, gone = t.event(), t.event(), t.event()
    graph, nodes = chain(t, [record(t, one) if kind == "record" else wait(t, one), plus(t, x, 1)])
    t.cudaEventDestroy(gone)
    event = {"same": one, "other": two, "destroyed": gone}.get(what, what)
    name = {"record": ("cudaGraphEventRecordNodeSetEvent", "cudaGraphEventRecordNodeGetEvent"),
            "wait": ("cudaGraphEventWaitNodeSetEvent", "cudaGraphEventWaitNodeGetEvent")}[kind]
    getattr(t, name[0])(nodes[0], event)
    read = getattr(t, name[1])(nodes[0])[1]
    t.note("event", {int(one): "one", int(two): "two"}.get(int(read or 0), "another"))
    executable = t.instantiate(graph)
    if kind == "record":
        run(t, executable, stream, x)
        is_recorded(t, start, one), is_recorded(t, start, two)
    else:
        run(t, executable, stream, x)
        release = t.gate(side)
        t.cudaEventRecord(one, side)
        t.cudaGraphLaunch(executable, stream)
        finishes(t, stream)
        release()
        t.values(x, stream)
    t.recovered(stream)


@scenario("The generic setter of a graph does what the typed one does.", control="right type",
          variants={"right type": dict(type=None), "type Kernel": dict(type="Kernel"), "type Memset": dict(type="Memset"),
                    "type Empty": dict(type="Empty"),
                    "None": dict(type="None")}, each={"kind": tuple(kind for kind in GENERIC if kind != "child")}, open=True,
          undefined=[f"type Kernel/{kind}" for kind in ("memset", "host", "record", "wait")])
def the_generic_setter_of_a_graph(t, type, kind):
    stream, x, y, seen = t.stream(), t.device([9] * 4), t.device([1, 2, 3, 4]), []
    step, params = _generic(t, kind, x, y, seen)
    graph, nodes = chain(t, [step, plus(t, x, 10)])
    before = t.instantiate(graph)
    if type not in (None, "None"):
        params.type = getattr(t.raw.cudaGraphNodeType, f"cudaGraphNodeType{type}")
    t.cudaGraphNodeSetParams(nodes[0], None if type == "None" else params)
    for executable in (before, t.instantiate(graph)):
        t.write(x, [9] * 4)
        run(t, executable, stream, x)
    t.note("seen", seen)
    t.recovered(stream)


@scenario("The generic setter of a graph puts another graph into a child node.", control="a kernel",
          variants={"a kernel": dict(kind="kernel"), "a child": dict(kind="child")}, open=True)
def the_generic_setter_on_a_child_node(t, kind):
    stream, x = t.stream(), t.device([9] * 4)
    step, params = _generic(t, kind, x, x, [])
    graph, nodes = chain(t, [step, plus(t, x, 10)])
    t.cudaGraphNodeSetParams(nodes[0], params)
    run(t, t.instantiate(graph), stream, x)
    t.recovered(stream)


CHILDREN = {"same shape": "same", "one node more": "more", "another kind": "memset", "nothing": "nothing", "memory nodes": "memory", "null": "null",
            "the graph around": "around", "its own copy": "own"}


@scenario("A child node of a graph is given a graph of any shape.", control="same shape",
          variants={name: dict(what=what) for name, what in CHILDREN.items()}, open=True,
          isolated=("memory nodes", "null", "the graph around", "its own copy"))
def another_graph_for_a_child_node(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [child(t, chain(t, [plus(t, x, 1)])[0]), plus(t, x, 10)])
    before = t.instantiate(graph)
    _, own = t.cudaGraphChildGraphNodeGetGraph(nodes[0])
    params = node_params(t, "Graph")
    if what == "memory":
        params.graph.graph = allocating(t, x, 5)
    elif what in ("around", "own"):
        params.graph.graph = graph if what == "around" else own
    elif what != "null":
        steps = {"same": [plus(t, x, 2)], "more": [plus(t, x, 2), plus(t, x, 3)], "memset": [memset(t, x, 0)], "nothing": []}[what]
        params.graph.graph = chain(t, steps)[0]
    t.cudaGraphNodeSetParams(nodes[0], params)
    t.graph(graph), t.graph(t.cudaGraphChildGraphNodeGetGraph(nodes[0])[1])
    for executable in (before, t.instantiate(graph)):
        if executable is not None:
            run(t, executable, stream, x)
    t.exec_update(before, graph)
    t.recovered(stream)


SETTERS = ("kernel", "memset", "memcpy", "host", "record", "wait")


@scenario("Each setter of a graph takes nodes of its own kind only.", control="own",
          variants={"own": dict(kind=None), **{kind: dict(kind=kind) for kind in KINDS}, "null": dict(kind="null")}, each={"setter": SETTERS},
          open=True, isolated=("null",))
def a_graph_setter_takes_its_own_kind(t, kind, setter):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])
    graph, node = one_of(t, setter if kind in (None, "null") else kind, x, y)
    if kind == "null":
        node = 0
    if setter == "kernel":
        t.cudaGraphKernelNodeSetParams(node, t.fill_params(x, 7))
    elif setter == "memset":
        t.cudaGraphMemsetNodeSetParams(node, t.memset_params(x, TWO, 2))
    elif setter == "memcpy":
        t.cudaGraphMemcpyNodeSetParams1D(node, x.ptr, y.ptr, 8, t.copies("DeviceToDevice"))
    elif setter == "host":
        t.cudaGraphHostNodeSetParams(node, host_params(t, lambda data: None))
    elif setter == "record":
        t.cudaGraphEventRecordNodeSetEvent(node, t.event())
    else:
        t.cudaGraphEventWaitNodeSetEvent(node, t.event())
    t.graph(graph)
    run(t, t.instantiate(graph), stream, x)
    t.recovered(stream)


@scenario("Nodes of a graph with memory nodes are set too.", control="nothing set",
          variants={"nothing set": dict(change=False), "set": dict(change=True)}, each={"made": ("never instantiated", "instantiated",
                                                                                                 "launched")}, open=True)
def a_graph_setter_in_an_allocating_graph(t, change, made):
    stream, x = t.stream(), t.device([0] * 4)
    graph = allocating(t, x, 3)
    executable = t.instantiate(graph) if made != "never instantiated" else None
    if made == "launched":
        run(t, executable, stream, x)
    if change:
        nodes = in_order(t, graph)
        ptr = int(t.cudaGraphMemAllocNodeGetParams(nodes[0])[1].dptr)
        t.cudaGraphKernelNodeSetParams(nodes[1], t.kernel_params(kernels.fill, 1, 32, ptr, 7.0, 4))
    run(t, executable or t.instantiate(graph), stream, x)
    t.recovered(stream)


@scenario("A clone is not changed with its original.", control="original",
          variants={"original": dict(which="original"), "clone": dict(which="clone")}, each={"set": ("original", "clone")})
def a_graph_setter_and_a_clone(t, which, set):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [fill(t, x, 2), plus(t, x, 10)])
    _, clone = t.cudaGraphClone(graph)
    node = nodes[0] if set == "original" else t.cudaGraphNodeFindInClone(nodes[0], clone)[1]
    t.cudaGraphKernelNodeSetParams(node, t.fill_params(x, 7))
    run(t, t.instantiate(graph if which == "original" else clone), stream, x)
    t.recovered(stream)


FIND = {"first": "first", "last": "last", "of another graph": "foreign", "of the clone itself": "own", "made after cloning": "later",
        "destroyed in the clone": "gone", "null": "null", "graph null": "no graph", "graph is no clone": "no clone",
        "clone of the clone": "second clone",
        "inside a child": "inside", "in the original's own graph": "itself"}


@scenario("A node is found in a clone by the original's node.", control="first",
          variants={name: dict(what=what) for name, what in FIND.items()}, open=True)
def finding_a_node_in_a_clone(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    inside, _ = chain(t, [plus(t, x, 100)])
    graph, nodes = chain(t, [fill(t, x, 2), plus(t, x, 10), child(t, inside)])
    other, foreign = chain(t, [fill(t, x, 2), plus(t, x, 10), child(t, inside)])
    _, clone = t.cudaGraphClone(graph)
    node = nodes[{"last": 2}.get(what, 0)]
    if what == "foreign":
        node = foreign[0]
    elif what == "own":
        node = in_order(t, clone)[0]
    elif what == "later":
        node = plus(t, x, 1).add(graph, [])
    elif what == "gone":
        t.cudaGraphDestroyNode(t.cudaGraphNodeFindInClone(node, clone)[1])
    elif what == "null":
        node = 0
    elif what == "second clone":
        _, clone = t.cudaGraphClone(clone)
    elif what == "inside":
        node, = graphs.nodes(t.cudaGraphChildGraphNodeGetGraph(nodes[2])[1], cudart=t.raw)
    where = {"no graph": 0, "no clone": other, "itself": graph}.get(what, clone)
    _, found = t.cudaGraphNodeFindInClone(node, where)
    if found is not None and int(found):
        t.note("place", t._spot(clone, found))
        t.note("another handle", int(found) != int(node))
    t.recovered(stream)


@scenario("Nodes are listed in the order in which they were made.", control="by hand",
          variants={"by hand": dict(how="hand"), "captured": dict(how="captured"), "cloned": dict(how="clone"),
                    "one destroyed": dict(how="destroyed")}, open=True)
def the_order_in_which_nodes_are_listed(t, how):
    stream, side, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([0] * 4)
    if how == "captured":
        t.begin(stream)
        t.fill(stream, x, 1)
        t.follow(side, stream)
        t.cudaMemcpyAsync(y.ptr, x.ptr, 16, t.copies("DeviceToDevice"), side)
        t.cudaMemsetAsync(t.spare.ptr, 0, 16, stream)
        t.follow(stream, side)
        t.axpy(stream, x, y, 1)
        graph = t.end(stream)
    else:
        graph, nodes = chain(t, [fill(t, x, 1), memset(t, y, 0), copy(t, y, x, 16, "DeviceToDevice"), empty(t), host(t, lambda data: None)])
        memset(t, t.spare, 0).add(graph, [])
        if how == "clone":
            _, graph = t.cudaGraphClone(graph)
        elif how == "destroyed":
            t.cudaGraphDestroyNode(nodes[1])
            empty(t).add(graph, [])
    t.note("listed", graphs.kinds(graph, cudart=t.raw))
    t.note("edges", [list(edge) for edge in graphs.edges(graph, cudart=t.raw)])
    t.recovered(stream)
