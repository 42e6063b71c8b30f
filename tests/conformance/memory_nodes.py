"""Memory nodes added by hand, and what they were given."""
from labkit import kernels
from tests.conformance.building import chain, copy, fill, in_order, kernel, memset, plus
from tests.conformance.counting import HUGE, MIB, GraphMemory, captured, make_pool, pool_props, write_offsets
from tests.conformance.harness import Buffer, scenario


def alloc_node(t, graph, after=(), size=16):
    """(node, buffer) of an allocation added by hand."""
    params = t.alloc_params(size)
    _, node = t.cudaGraphAddMemAllocNode(graph, list(after), len(after), params)
    return node, Buffer(int(params.dptr), 4)


def add_to(t, x, buffer):
    """x += buffer, as a kernel."""
    return kernel(t, kernels.axpy, 1, 32, x.ptr, buffer.ptr, 1.0, 4)


def free_node(t, graph, after, ptr):
    """The node of a free added by hand."""
    return t.cudaGraphAddMemFreeNode(graph, list(after), len(after), ptr)[1]


@scenario("A graph that allocates and frees is built by hand like any other, and relaunches.", control="once",
          variants={"once": dict(times=1), "three times": dict(times=3)}, each={"free": ("freed", "kept")})
def building_memory_nodes(t, times, free):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    first, buffer = alloc_node(t, graph)
    second = fill(t, buffer, 3).add(graph, [first])
    third = add_to(t, x, buffer).add(graph, [second])
    last = plus(t, x, 1).add(graph, [third])
    if free == "freed":
        free_node(t, graph, [last], buffer.ptr)
    t.graph(graph)
    executable = t.instantiate(graph)
    for number in range(times):
        t.cudaGraphLaunch(executable, stream)
        t.values(x, stream)
        if free == "kept":
            t.values(buffer, stream)
            t.cudaFreeAsync(buffer.ptr, stream)
    t.recovered(stream)


@scenario("Copies and memsets added by hand work on memory that their graph allocates, and on no other that is not there yet.", control="a kernel",
          variants={"a kernel": dict(what="kernel"), "a copy": dict(what="copy"), "a copy from x": dict(what="from x"), "a memset": dict(what="memset"),
                    "a copy past the end": dict(what="too far")}, each={"where": ("its graph", "another graph", "another graph, launched")}, open=True)
def nodes_on_graph_memory(t, what, where):
    stream, x = t.stream(), t.device([0] * 8)
    _, graph = t.cudaGraphCreate(0)
    node, buffer = alloc_node(t, graph)
    target, after = graph, [node]
    if where != "its graph":
        if "launched" in where:
            t.replay(graph, stream)
        (_, target), after = t.cudaGraphCreate(0), []
    _add(t, what, x, buffer, target, after)
    t.graph(target)
    t.recovered(stream)


def _add(t, what, x, buffer, graph, after):
    """One node that works on a buffer; a refusal is an answer too."""
    step = {"kernel": lambda: add_to(t, x, buffer), "copy": lambda: copy(t, x, buffer, 16, "DeviceToDevice"), "memset": lambda: memset(t, buffer, 0, 4),
            "from x": lambda: copy(t, buffer, x, 16, "DeviceToDevice"), "too far": lambda: copy(t, x, buffer, 32, "DeviceToDevice")}[what]()
    return step.add(graph, after)


@scenario("Nodes added by hand are placed like captured ones, in the order of adding.", control="in a chain",
          variants={"in a chain": dict(edges="chain"), "beside each other": dict(edges="beside"), "freed between": dict(edges="freed")},
          each={"size": ("4 KiB", "20 MiB")})
def places_of_nodes_added_by_hand(t, edges, size):
    number, unit = size.split()
    size, stream, count = int(number) * {"KiB": 1 << 10, "MiB": MIB}[unit], t.stream(), GraphMemory(t)
    _, graph = t.cudaGraphCreate(0)
    a, one = alloc_node(t, graph, size=size)
    after = [free_node(t, graph, [a], one.ptr)] if edges == "freed" else [a] if edges == "chain" else []
    b, two = alloc_node(t, graph, after, size)
    write_offsets(t, {"a": one.ptr, "b": two.ptr}, size)
    executable = t.instantiate(graph)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    count("launched")


WAYS = ("by hand", "captured", "captured from a pool", "captured from a small pool")


@scenario("The parameters of memory nodes are read back: size, address and an ordinary pool.", control="some",
          variants={"some": dict(size=4096), "one byte": dict(size=1), "more": dict(size=20 * MIB + 1)}, each={"made": WAYS})
def parameters_of_memory_nodes(t, size, made):
    stream = t.stream()
    if made == "by hand":
        _, graph = t.cudaGraphCreate(0)
        node, buffer = alloc_node(t, graph, size=size)
        free_node(t, graph, [node], buffer.ptr)
        ptr = buffer.ptr
    else:
        pool = make_pool(t, maxSize=64 * MIB if "small" in made else 0) if "pool" in made else None
        graph, places = captured(t, stream, f"a{size} -a", 1, pool)
        ptr = places["a"]
    first, last = in_order(t, graph)
    _, params = t.cudaGraphMemAllocNodeGetParams(first)
    props = params.poolProps
    t.note("allocation", [int(params.bytesize), props.allocType.name, props.location.type.name, props.location.id, int(props.handleTypes)])
    t.note("limits", [int(props.maxSize), int(params.accessDescCount), len(params.accessDescs)])
    t.note("its address", int(params.dptr) == ptr)
    t.note("the freed address", int(t.cudaGraphMemFreeNodeGetParams(last)[1]) == ptr)
    t.recovered(stream)


def _bad(t, what):
    """Parameters of an allocation that something is wrong with."""
    if what == "None":
        return None
    params = t.raw.cudaMemAllocNodeParams() if what in ("zero struct", "no size") else t.alloc_params(4096)
    if what == "no size":
        params.poolProps = pool_props(t)
    elif what == "allocation type":
        params.poolProps.allocType = t.raw.cudaMemAllocationType.cudaMemAllocationTypeInvalid
    elif what == "location type":
        params.poolProps.location.type = t.raw.cudaMemLocationType.cudaMemLocationTypeInvalid
    elif what in ("device 9", "device -1"):
        params.poolProps.location.id = int(what.split()[1])
    elif what in ("too much", "nothing"):
        params.bytesize = HUGE if what == "too much" else 0
    return params


@scenario("An allocation node wants a size, a device and a kind of memory; a refused one leaves no node.", control="right",
          variants={what: dict(what=what) for what in ("right", "None", "zero struct", "no size", "nothing", "too much", "device 9", "device -1",
                                                       "allocation type", "location type", "node of another graph", "one node twice")})
def what_an_allocation_node_takes(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [fill(t, x, 2)])
    foreign = chain(t, [fill(t, x, 2)])[1]
    after = {"node of another graph": foreign, "one node twice": nodes * 2}.get(what, nodes)
    params = _bad(t, what)
    answer = t.attempt("cudaGraphAddMemAllocNode", graph, after, len(after), params)
    t.note("address", params is not None and int(params.dptr) != 0)
    t.graph(graph)
    executable = t.replay(graph, stream)
    t.values(x, stream)
    if answer and answer[0] == 0:
        t.cudaFreeAsync(int(params.dptr), stream)
        t.cudaGraphLaunch(executable, stream)
    t.recovered(stream)


@scenario("An allocation refused for its size makes the graph one with memory all the same; one of nothing does not.", control="none",
          variants={"none": dict(size=None), "nothing": dict(size=0), "too much": dict(size=HUGE)},
          each={"what": ("twice", "clone", "child", "destroy node")}, open=True)
def a_refused_allocation_and_the_graph(t, size, what):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [fill(t, x, 2)])
    if size is not None:
        alloc_node(t, graph, size=size)
    if what == "twice":
        t.instantiate(graph), t.instantiate(graph)
    elif what == "clone":
        t.cudaGraphClone(graph)
    elif what == "child":
        t.cudaGraphAddChildGraphNode(t.cudaGraphCreate(0)[1], [], 0, graph)
    else:
        t.cudaGraphDestroyNode(nodes[0])
    t.recovered(stream)


@scenario("A free node takes the start of a graph's allocation, once in a graph.", control="its own",
          variants={what: dict(what=what) for what in ("its own", "again", "inside it", "another graph's", "another graph's, freed there",
                                                       "cudaMalloc's", "a pool's", "null", "None", "pageable", "pinned", "nobody's")})
def what_a_free_node_takes(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    node, buffer = alloc_node(t, graph)
    ptr = buffer.ptr
    if what == "again":
        free_node(t, graph, [node], ptr)
    elif what == "inside it":
        ptr += 4
    elif what.startswith("another"):
        _, other = t.cudaGraphCreate(0)
        foreign, there = alloc_node(t, other)
        if "freed" in what:
            free_node(t, other, [foreign], there.ptr)
        ptr = there.ptr
    elif what == "a pool's":
        ptr = int(t.cudaMallocAsync(16, stream)[1])
    else:
        ptr = {"cudaMalloc's": x.ptr, "null": 0, "None": None, "nobody's": 64, "pageable": t.pageable([0] * 4).ptr,
               "pinned": t.pinned([0] * 4).ptr}.get(what, ptr)
    t.attempt("cudaGraphAddMemFreeNode", graph, [node], 1, ptr)
    t.graph(graph)
    t.instantiate(graph)
    t.recovered(stream)


@scenario("A free node need not wait for the allocation: it is taken, whatever it means.", control="after it",
          variants={"after it": dict(after="alloc"), "after what follows it": dict(after="use"), "beside it": dict(after=None)})
def a_free_without_an_edge(t, after):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    first, buffer = alloc_node(t, graph)
    second = add_to(t, x, buffer).add(graph, [first])
    free_node(t, graph, {"alloc": [first], "use": [second], None: []}[after], buffer.ptr)
    t.graph(graph)
    t.instantiate(graph)
    t.recovered(stream)


@scenario("A graph with memory nodes takes new nodes and edges, and loses none.", control="add a node",
          variants={what: dict(what=what) for what in ("add a node", "add an edge", "add a cycle", "remove an edge", "remove that edge",
                                                       "destroy the allocation", "destroy the free", "destroy a kernel")},
          each={"made": ("by hand", "captured")})
def changing_a_graph_with_memory_nodes(t, what, made):
    stream, x = t.stream(), t.device([0] * 4)
    if made == "by hand":
        _, graph = t.cudaGraphCreate(0)
        first, buffer = alloc_node(t, graph)
        middle = fill(t, x, 2).add(graph, [first])
        last = free_node(t, graph, [middle], buffer.ptr)
    else:
        t.begin(stream)
        ptr = int(t.cudaMallocAsync(16, stream)[1])
        t.fill(stream, x, 2)
        t.cudaFreeAsync(ptr, stream)
        graph = t.end(stream)
        first, middle, last = in_order(t, graph)
    if what == "add a node":
        plus(t, x, 1).add(graph, [middle])
    elif what == "add an edge":
        t.add_edges(graph, [first], [last])
    elif what == "add a cycle":
        t.add_edges(graph, [last], [first])
    elif what.startswith("remove"):
        if "that" in what:
            t.add_edges(graph, [first], [last])
        t.remove_edges(graph, [first], [last if "that" in what else middle])
    elif what.startswith("destroy"):
        t.cudaGraphDestroyNode({"allocation": first, "free": last, "kernel": middle}[what.rsplit(" ", 1)[1]])
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
    t.recovered(stream)
