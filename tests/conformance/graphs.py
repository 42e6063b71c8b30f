"""Graphs built by hand, read back, changed, cloned and destroyed."""
import os
import tempfile

from labkit import graph as graphs
from labkit import kernels
from tests.conformance.harness import scenario

BOTH = {"made": ("by hand", "captured")}


@scenario("A graph built by hand does what the captured one does.", control="captured",
          variants={"captured": dict(hand=False), "by hand": dict(hand=True)},
          each={"what": ("kernels", "memset", "copy", "copy from host", "event record", "empty")})
def a_graph_built_by_hand(t, hand, what):
    stream, x, event = t.stream(), t.device([0] * 4), t.event()
    y, host = t.device([5, 6, 7, 8]), t.pinned([1, 2, 3, 4])
    if hand:
        _, graph = t.cudaGraphCreate(0)
        _, last = t.cudaGraphAddKernelNode(graph, [], 0, t.fill_params(x, 1))
        if what == "kernels":
            t.cudaGraphAddKernelNode(graph, [last], 1, t.axpy_params(x, y, 2))
        elif what == "memset":
            t.cudaGraphAddMemsetNode(graph, [last], 1, t.memset_params(x, 0, width=2))
        elif what == "copy":
            t.cudaGraphAddMemcpyNode1D(graph, [last], 1, x.ptr, y.ptr, 16, t.copies("DeviceToDevice"))
        elif what == "copy from host":
            t.cudaGraphAddMemcpyNode1D(graph, [last], 1, x.ptr, host.ptr, 16, t.copies("HostToDevice"))
        elif what == "event record":
            t.cudaGraphAddEventRecordNode(graph, [last], 1, event)
        else:
            t.cudaGraphAddEmptyNode(graph, [last], 1)
    else:
        t.begin(stream)
        t.fill(stream, x, 1)
        if what == "kernels":
            t.axpy(stream, x, y, 2)
        elif what == "memset":
            t.cudaMemsetAsync(x.ptr, 0, 8, stream)
        elif what == "copy":
            t.cudaMemcpyAsync(x.ptr, y.ptr, 16, t.copies("DeviceToDevice"), stream)
        elif what == "copy from host":
            t.cudaMemcpyAsync(x.ptr, host.ptr, 16, t.copies("HostToDevice"), stream)
        elif what == "event record":
            t.cudaEventRecordWithFlags(event, stream, 1)
        graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream, 2)
    t.values(x, stream)
    if what == "event record":
        t.cudaEventQuery(event)


def _chain(t, count):
    """(graph, nodes): a chain of empty nodes built by hand."""
    _, graph = t.cudaGraphCreate(0)
    nodes = []
    for _ in range(count):
        nodes.append(t.cudaGraphAddEmptyNode(graph, nodes[-1:], len(nodes[-1:]))[1])
    return graph, nodes


@scenario("Edges are added and removed; each only once.", control="new edge",
          variants={"new edge": dict(pair=(0, 2)), "edge that is there": dict(pair=(0, 1)), "to itself": dict(pair=(1, 1)),
                    "none": dict(pair=None), "foreign node": dict(pair=(0, "foreign")), "twice in one call": dict(pair="twice"),
                    "null node": dict(pair=(0, "null"))}, open=True)
def adding_edges(t, pair):
    graph, nodes = _chain(t, 3)
    other, foreign = _chain(t, 1)
    if pair is None:
        t.add_edges(graph, [], [])
    elif pair == "twice":
        t.add_edges(graph, [nodes[0]] * 2, [nodes[2]] * 2)
    else:
        to = {"foreign": foreign[0], "null": t.raw.cudaGraphNode_t(0)}.get(pair[1])
        t.add_edges(graph, [nodes[pair[0]]], [nodes[pair[1]] if to is None else to])
    t.graph(graph)
    t.instantiate(graph)
    t.recovered()


@scenario("An edge that makes a cycle is taken, and the graph then refuses to instantiate.", control="no cycle",
          variants={"no cycle": dict(pair=(0, 2)), "cycle of two": dict(pair=(1, 0)), "cycle of three": dict(pair=(2, 0))})
def a_cycle_is_found_when_instantiating(t, pair):
    graph, nodes = _chain(t, 3)
    t.add_edges(graph, [nodes[pair[0]]], [nodes[pair[1]]])
    t.instantiate(graph)
    if pair != (0, 2):
        t.remove_edges(graph, [nodes[pair[0]]], [nodes[pair[1]]])
        t.instantiate(graph)
    t.graph(graph)
    t.recovered()


@scenario("Only an edge that is there can be removed.", control="there",
          variants={"there": dict(pair=(0, 1)), "not there": dict(pair=(0, 2)), "turned round": dict(pair=(1, 0)),
                    "foreign": dict(pair=(0, "foreign"))}, open=True)
def removing_edges(t, pair):
    graph, nodes = _chain(t, 3)
    other, foreign = _chain(t, 1)
    t.remove_edges(graph, [nodes[pair[0]]], [foreign[0] if pair[1] == "foreign" else nodes[pair[1]]])
    t.graph(graph)
    t.recovered()


@scenario("Destroying a node takes its edges along, and joins nothing.", control="last",
          variants={"last": dict(place=2), "middle": dict(place=1), "first": dict(place=0)})
def destroying_a_node(t, place):
    graph, nodes = _chain(t, 3)
    t.cudaGraphDestroyNode(nodes[place])
    t.graph(graph)
    t.replay(graph, t.stream())


@scenario("A node is added after nodes of its own graph only.", control="own",
          variants={"own": dict(what="own"), "foreign": dict(what="foreign"), "twice": dict(what="twice"), "null": dict(what="null")}, open=True)
def adding_a_node_after_another(t, what):
    graph, nodes = _chain(t, 1)
    other, foreign = _chain(t, 1)
    after = {"own": nodes, "foreign": foreign, "twice": nodes * 2, "null": [t.raw.cudaGraphNode_t(0)]}[what]
    t.cudaGraphAddEmptyNode(graph, after, len(after))
    t.graph(graph)
    t.recovered()


@scenario("A kernel node with an impossible shape is refused when it is added.", control="good",
          variants={"good": dict(grid=1, block=32, shared=0), "grid of 0": dict(grid=0, block=32, shared=0),
                    "block of 4096": dict(grid=1, block=4096, shared=0), "1 MiB shared": dict(grid=1, block=32, shared=1 << 20),
                    "no function": dict(grid=1, block=32, shared=0, function=False)})
def an_impossible_kernel_node(t, grid, block, shared, function=True):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    params = t.kernel_params(kernels.fill, grid, block, x.ptr, 2.0, 4, shared=shared)
    if not function:
        params.func = 0
    t.cudaGraphAddKernelNode(graph, [], 0, params)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
    t.recovered(stream)


@scenario("A memset node takes elements of 1, 2 and 4 bytes.", control="4",
          variants={"4": dict(element=4), "2": dict(element=2), "1": dict(element=1), "3": dict(element=3), "8": dict(element=8),
                    "width 0": dict(element=4, width=0), "null": dict(element=4, null=True)}, open=True)
def a_memset_node(t, element, width=2, null=False):
    stream, x = t.stream(), t.device([9] * 4)
    _, graph = t.cudaGraphCreate(0)
    params = t.memset_params(x, 0, width, element)
    if null:
        params.dst = 0
    t.cudaGraphAddMemsetNode(graph, [], 0, params)
    t.graph(graph)
    t.replay(graph, stream)
    t.note("values", [repr(value) for value in t.peek(x, stream)])
    t.recovered(stream)


@scenario("A copy node of nothing, or of wrong addresses.", control="good",
          variants={"good": dict(count=16), "zero bytes": dict(count=0), "null target": dict(to=0), "null source": dict(frm=0),
                    "turned round": dict(way="DeviceToHost")}, open=True, undefined=["turned round"])
def a_copy_node(t, count=16, to=None, frm=None, way="DeviceToDevice"):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])
    _, graph = t.cudaGraphCreate(0)
    t.cudaGraphAddMemcpyNode1D(graph, [], 0, x.ptr if to is None else to, y.ptr if frm is None else frm, count, t.copies(way))
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
    t.recovered(stream)


@scenario("A clone is a graph of its own.", control="graph",
          variants={"graph": dict(clone=False), "clone": dict(clone=True)}, each=BOTH)
def a_clone_is_a_graph_of_its_own(t, clone, made):
    stream, x = t.stream(), t.device([0] * 4)
    if made == "captured":
        t.begin(stream)
        t.fill(stream, x, 1)
        t.axpy(stream, x, t.ones, 1)
        graph = t.end(stream)
    else:
        _, graph = t.cudaGraphCreate(0)
        _, first = t.cudaGraphAddKernelNode(graph, [], 0, t.fill_params(x, 1))
        t.cudaGraphAddKernelNode(graph, [first], 1, t.axpy_params(x, t.ones, 1))
    use = graph
    if clone:
        _, use = t.cudaGraphClone(graph)
        t.cudaGraphAddEmptyNode(graph, [], 0)
        t.cudaGraphDestroy(graph)
    t.graph(use)
    t.replay(use, stream)
    t.values(x, stream)


@scenario("A child graph is copied into its node.", control="child",
          variants={"child": dict(later="nothing"), "child changed later": dict(later="change"), "child destroyed later": dict(later="destroy")})
def a_child_graph_is_copied(t, later):
    stream, x = t.stream(), t.device([0] * 4)
    _, child = t.cudaGraphCreate(0)
    _, first = t.cudaGraphAddKernelNode(child, [], 0, t.fill_params(x, 1))
    _, graph = t.cudaGraphCreate(0)
    _, node = t.cudaGraphAddChildGraphNode(graph, [], 0, child)
    t.cudaGraphAddKernelNode(graph, [node], 1, t.axpy_params(x, t.ones, 1))
    if later == "change":
        t.cudaGraphAddKernelNode(child, [first], 1, t.axpy_params(x, t.ones, 100))
    elif later == "destroy":
        t.cudaGraphDestroy(child)
    t.graph(graph)
    _, inside = t.cudaGraphChildGraphNodeGetGraph(node)
    t.graph(inside)
    t.replay(graph, stream)
    t.values(x, stream)


@scenario("A graph cannot be its own child; a child cannot be null.", control="another",
          variants={"another": dict(what="other"), "itself": dict(what="self"), "null": dict(what=None)}, open=True)
def a_child_that_cannot_be(t, what):
    _, graph = t.cudaGraphCreate(0)
    _, other = t.cudaGraphCreate(0)
    t.cudaGraphAddChildGraphNode(graph, [], 0, {"other": other, "self": graph}.get(what))
    t.graph(graph)
    t.instantiate(graph)
    t.recovered()


@scenario("The executable does not see what is done to the graph later.", control="untouched",
          variants={"untouched": dict(what=None), "node added": dict(what="add"), "node destroyed": dict(what="destroy node"),
                    "graph destroyed": dict(what="destroy")}, each=BOTH)
def an_executable_does_not_see_later_changes(t, what, made):
    stream, x = t.stream(), t.device([0] * 4)
    if made == "captured":
        t.begin(stream)
        t.axpy(stream, x, t.ones, 1)
        graph = t.end(stream)
    else:
        _, graph = t.cudaGraphCreate(0)
        t.cudaGraphAddKernelNode(graph, [], 0, t.axpy_params(x, t.ones, 1))
    node = graphs.nodes(graph, cudart=t.raw)[0]
    executable = t.instantiate(graph)
    if what == "add":
        t.cudaGraphAddKernelNode(graph, [node], 1, t.axpy_params(x, t.ones, 100))
    elif what == "destroy node":
        t.cudaGraphDestroyNode(node)
    elif what == "destroy":
        t.cudaGraphDestroy(graph)
    for _ in range(2):
        t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)


@scenario("Nodes tell their type, what they follow and what follows them; a graph tells its roots.", control="chain",
          variants={"chain": dict(edges=[(0, 1), (1, 2)]), "fork": dict(edges=[(0, 1), (0, 2)]), "join": dict(edges=[(0, 2), (1, 2)]),
                    "loose": dict(edges=[])})
def reading_a_graph(t, edges):
    _, graph = t.cudaGraphCreate(0)
    nodes = [t.cudaGraphAddEmptyNode(graph, [], 0)[1] for _ in range(3)]
    if edges:
        t.add_edges(graph, [nodes[a] for a, _ in edges], [nodes[b] for _, b in edges])
    place = {int(node): spot for spot, node in enumerate(nodes)}
    t.note("nodes", t.raw.cudaGraphGetNodes(graph)[-1])
    t.note("edges", t.raw.cudaGraphGetEdges(graph)[-1])
    t.cudaGraphGetNodes(graph)
    t.cudaGraphGetNodes(graph, 3)
    t.cudaGraphGetNodes(graph, 2)
    t.cudaGraphGetRootNodes(graph)
    roots = t.cudaGraphGetRootNodes(graph, 3)[1]
    t.note("roots", sorted(place[int(node)] for node in roots if int(node)))
    for node in nodes:
        t.cudaGraphNodeGetType(node)
        t.note("follows", sorted(place[int(one)] for one in graphs.dependencies(node, cudart=t.raw)))
        t.note("followed by", sorted(place[int(one)] for one in graphs.dependents(node, cudart=t.raw)))
    t.graph(graph)


@scenario("Asking for more or fewer nodes and edges than there are.", control="all",
          variants={"all": dict(ask=3), "fewer": dict(ask=1), "more": dict(ask=5), "none": dict(ask=0)}, open=True)
def asking_for_a_number_of_nodes(t, ask):
    graph, nodes = _chain(t, 3)
    answer = t.cudaGraphGetNodes(graph, ask)
    t.note("handles", [int(node) != 0 for node in answer[1] or []])
    t.note("number", answer[2])
    answer = t.cudaGraphGetEdges(graph, min(ask, 4))
    t.note("handles", [int(node) != 0 for node in answer[1] or []])
    t.note("number", answer[-1])


@scenario("The graph prints itself in the DOT language.", control="file",
          variants={"file": dict(where="file"), "no such folder": dict(where="nowhere")}, each={"flags": ("0", "1")}, open=True)
def printing_a_graph(t, where, flags):
    graph, nodes = _chain(t, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.dot" if where == "file" else "missing/graph.dot")
        t.cudaGraphDebugDotPrint(graph, path.encode(), int(flags))
        if os.path.exists(path):
            text = open(path).read()
            t.note("is a digraph", text.lstrip().startswith("digraph"))
            t.note("arrows", text.count("->"))
    t.recovered()


@scenario("Parameters of a memset node can be read; a captured kernel's cannot.", control="memset",
          variants={"memset": dict(kind="memset"), "kernel": dict(kind="kernel")}, each=BOTH, open=True)
def reading_parameters(t, kind, made):
    stream, x = t.stream(), t.device([0] * 4)
    if made == "captured":
        t.begin(stream)
        t.fill(stream, x, 1) if kind == "kernel" else t.cudaMemsetAsync(x.ptr, 1, 16, stream)
        graph = t.end(stream)
    else:
        _, graph = t.cudaGraphCreate(0)
        if kind == "kernel":
            t.cudaGraphAddKernelNode(graph, [], 0, t.fill_params(x, 1))
        else:
            t.cudaGraphAddMemsetNode(graph, [], 0, t.memset_params(x, 1))
    node = graphs.nodes(graph, cudart=t.raw)[0]
    if kind == "kernel":
        _, params = t.cudaGraphKernelNodeGetParams(node)
        if params is not None:
            t.note("grid and block", [params.gridDim.x, params.blockDim.x])
    else:
        _, params = t.cudaGraphMemsetNodeGetParams(node)
        t.note("memset", [int(params.dst) == x.ptr, params.value, params.elementSize, params.width, params.height])
    t.recovered(stream)


@scenario("Reading parameters of another type of node is refused.", control="memset",
          variants={"memset": dict(call="cudaGraphMemsetNodeGetParams"), "kernel": dict(call="cudaGraphKernelNodeGetParams"),
                    "host": dict(call="cudaGraphHostNodeGetParams"), "allocation": dict(call="cudaGraphMemAllocNodeGetParams"),
                    "free": dict(call="cudaGraphMemFreeNodeGetParams"), "event": dict(call="cudaGraphEventRecordNodeGetEvent"),
                    "wait": dict(call="cudaGraphEventWaitNodeGetEvent"), "child": dict(call="cudaGraphChildGraphNodeGetGraph")}, open=True)
def reading_parameters_of_another_type(t, call):
    x = t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    _, node = t.cudaGraphAddMemsetNode(graph, [], 0, t.memset_params(x, 1))
    getattr(t, call)(node)
    t.recovered()


@scenario("The graph of a capture can be added to by hand while it grows.", control="followed",
          variants={"followed": dict(follow=True), "left loose": dict(follow=False)}, open=True)
def adding_a_node_by_hand_while_capturing(t, follow):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream)
    t.fill(stream, x, 1)
    _, _, _, graph, ends, *_ = t.raw.cudaStreamGetCaptureInfo(stream)
    ends = list(ends)
    _, node = t.cudaGraphAddKernelNode(graph, ends, len(ends), t.axpy_params(x, t.ones, 10))
    if follow:
        t.update_dependencies(stream, [node], 1)
    t.info(stream)
    if follow:
        t.axpy(stream, x, x, 1)
    graph = t.end(stream)
    if graph is not None:
        t.graph(graph)
        t.replay(graph, stream)
        t.values(x, stream)
    t.recovered(stream)


@scenario("The graph of a capture can be instantiated before the end only where the mode allows it.", control="after",
          variants={"after": dict(early=False), "before": dict(early=True)}, each={"mode": ("Global", "Relaxed")}, open=True)
def instantiating_the_growing_graph(t, early, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    if early:
        _, _, _, graph, *_ = t.raw.cudaStreamGetCaptureInfo(stream)
        t.instantiate(graph)
        t.status(stream)
    graph = t.end(stream)
    if graph is not None:
        t.replay(graph, stream)
        t.values(x, stream)
    t.recovered(stream)


@scenario("Flags of a graph must be 0.", control="0",
          variants={"0": dict(flags=0), "1": dict(flags=1)}, open=True)
def graph_flags(t, flags):
    t.cudaGraphCreate(flags)
    t.recovered()


@scenario("A deep chain and a wide fan run as they should.", control="chain",
          variants={"chain": dict(wide=False), "fan": dict(wide=True)})
def a_hundred_nodes(t, wide):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    last, middle = [], []
    for step in range(100):
        after = last if not wide or step in (0,) else middle[:1]
        if wide:
            _, node = t.raw.cudaGraphAddEmptyNode(graph, after, len(after))
            middle.append(node)
        else:
            _, node = t.raw.cudaGraphAddKernelNode(graph, after, len(after), t.axpy_params(x, t.ones, 1))
            last = [node]
    if wide:
        t.cudaGraphAddKernelNode(graph, middle, len(middle), t.axpy_params(x, t.ones, 5))
    t.note("nodes", t.raw.cudaGraphGetNodes(graph)[-1])
    t.note("edges", t.raw.cudaGraphGetEdges(graph)[-1])
    t.replay(graph, stream, 2)
    t.values(x, stream)
