"""Memory: allocations captured into graphs, and what may be done with them."""
from tests.conformance.harness import MODES, Buffer, scenario

ALL = {"mode": MODES}
AUTO_FREE = 1


def _allocating(t, stream, free, mode="Global", value=3):
    """(graph, buffer): a captured graph that allocates 4 floats, fills them, and frees them or not."""
    t.begin(stream, mode)
    _, ptr = t.cudaMallocAsync(16, stream)
    buffer = Buffer(int(ptr), 4)
    t.fill(stream, buffer, value)
    if free:
        t.cudaFreeAsync(buffer.ptr, stream)
    return t.end(stream), buffer


def _give_back(t, stream, buffer):
    """Free what a launch allocated, outside of all graphs, and say what CUDA answered."""
    t.cudaFreeAsync(buffer.ptr, stream)
    t.cudaStreamSynchronize(stream)


@scenario("A captured allocation is a MemAlloc node; its memory is there from the launch on.", control="eager",
          variants={"eager": dict(capture=False), "captured": dict(capture=True)}, each=ALL)
def a_captured_allocation_is_a_node(t, capture, mode):
    stream = t.stream()
    if capture:
        graph, buffer = _allocating(t, stream, free=False, mode=mode)
        t.graph(graph)
        t.replay(graph, stream)
    else:
        buffer = Buffer(int(t.cudaMallocAsync(16, stream)[1]), 4)
        t.fill(stream, buffer, 3)
    t.values(buffer, stream)
    _give_back(t, stream, buffer)


@scenario("A captured free of it is a MemFree node, and the graph relaunches at will.", control="once",
          variants={"once": dict(times=1), "three times": dict(times=3)}, each=ALL)
def allocation_and_free_relaunch_at_will(t, times, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    _, ptr = t.cudaMallocAsync(16, stream)
    buffer = Buffer(int(ptr), 4)
    t.fill(stream, buffer, 3)
    t.axpy(stream, x, buffer, 1)
    t.cudaFreeAsync(buffer.ptr, stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream, times)
    t.values(x, stream)


@scenario("A second launch is refused while an allocation of the first is not freed.", control="freed between",
          variants={"freed between": dict(free="async"), "not freed": dict(free=None), "freed by cudaFree": dict(free="sync"),
                    "freed in another stream": dict(free="other")})
def relaunching_with_an_unfreed_allocation(t, free):
    stream, other = t.stream(), t.stream()
    graph, buffer = _allocating(t, stream, free=False)
    executable = t.replay(graph, stream)
    if free == "async":
        t.cudaFreeAsync(buffer.ptr, stream)
    elif free == "sync":
        t.cudaFree(buffer.ptr)
    elif free == "other":
        t.cudaFreeAsync(buffer.ptr, other)
        t.cudaStreamSynchronize(other)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    if free is None:
        t.cudaGraphLaunch(executable, stream)
    t.values(buffer, stream)
    _give_back(t, stream, buffer)
    t.cudaGraphLaunch(executable, stream)
    t.values(buffer, stream)
    _give_back(t, stream, buffer)
    t.recovered(stream)


@scenario("With AutoFreeOnLaunch it relaunches; the last allocation is left.", control="freed in the graph",
          variants={"freed in the graph": dict(free=True, flags=0), "AutoFreeOnLaunch": dict(free=False, flags=AUTO_FREE)})
def auto_free_on_launch(t, free, flags):
    stream = t.stream()
    graph, buffer = _allocating(t, stream, free)
    executable = t.instantiate(graph, flags)
    for _ in range(3):
        t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    if not free:
        t.values(buffer, stream)
        _give_back(t, stream, buffer)
        t.cudaGraphLaunch(executable, stream)
        t.values(buffer, stream)
        _give_back(t, stream, buffer)
    t.cudaGraphExecGetFlags(executable)


@scenario("A second free of a captured allocation is refused; the capture goes on.", control="one free",
          variants={"one free": dict(frees=1), "two frees": dict(frees=2)}, each=ALL)
def freeing_twice_in_a_capture(t, frees, mode):
    stream = t.stream()
    t.begin(stream, mode)
    _, ptr = t.cudaMallocAsync(16, stream)
    for _ in range(frees):
        t.cudaFreeAsync(int(ptr), stream)
    t.status(stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream, 2)
    t.recovered(stream)


@scenario("A capture cannot free memory that no graph allocated; it goes on.", control="a graph's",
          variants={"a graph's": dict(whose="graph"), "cudaMalloc's": dict(whose="malloc"), "the pool's": dict(whose="pool"),
                    "nobody's": dict(whose="nobody"), "null": dict(whose="null"), "host memory": dict(whose="host")}, each=ALL)
def freeing_memory_from_outside_in_a_capture(t, whose, mode):
    stream = t.stream()
    pooled = int(t.cudaMallocAsync(16, stream)[1])
    t.cudaStreamSynchronize(stream)
    ptr = {"malloc": t.spare.ptr, "pool": pooled, "nobody": 64, "null": 0, "host": t.pinned([0] * 4).ptr}.get(whose)
    t.begin(stream, mode)
    if whose == "graph":
        ptr = int(t.cudaMallocAsync(16, stream)[1])
    t.fill(stream, t.ones, 1)
    t.cudaFreeAsync(ptr, stream)
    t.status(stream)
    graph = t.end(stream)
    if graph is not None:
        t.graph(graph)
    t.cudaFreeAsync(pooled, stream)
    t.recovered(stream)


@scenario("A refused free leaves its mark: the graph counts as one that frees memory.", control="no free",
          variants={"no free": dict(free=False), "refused": dict(free=True)}, each={"what": ("twice", "clone", "child", "destroy node", "remove edge")})
def a_refused_free_marks_the_graph(t, free, what):
    stream = t.stream()
    t.begin(stream)
    t.fill(stream, t.ones, 1)
    if free:
        t.cudaFreeAsync(t.spare.ptr, stream)
    if what == "remove edge":
        t.fill(stream, t.ones, 1)
    graph = t.end(stream)
    t.graph(graph)
    if what == "remove edge":
        nodes = t.cudaGraphGetNodes(graph, 2)[1]
        t.remove_edges(graph, nodes[:1], nodes[1:])
    elif what == "twice":
        t.instantiate(graph), t.instantiate(graph)
    elif what == "clone":
        t.cudaGraphClone(graph)
    elif what == "child":
        t.cudaGraphAddChildGraphNode(t.cudaGraphCreate(0)[1], [], 0, graph)
    else:
        t.cudaGraphDestroyNode(t.cudaGraphGetNodes(graph, 1)[1][0])
    t.recovered(stream)


@scenario("A graph's memory cannot be used before the graph has run.", control="after",
          variants={"after": dict(when="after"), "before": dict(when="before"), "in the capture": dict(when="inside")},
          each={"call": ("memset", "copy")})
def using_graph_memory_before_the_first_launch(t, when, call):
    stream = t.stream()

    def use(buffer):
        if call == "memset":
            t.cudaMemset(buffer.ptr, 0, 16)
        else:
            t.cudaMemcpy(buffer.ptr, t.ones.ptr, 16, t.copies("DeviceToDevice"))
    if when == "inside":
        t.begin(stream)
        buffer = Buffer(int(t.cudaMallocAsync(16, stream)[1]), 4)
        use(buffer)
        t.status(stream)
        t.fill(stream, buffer, 3)
        graph = t.end(stream)
    else:
        graph, buffer = _allocating(t, stream, free=False)
    if when == "before":
        use(buffer)
    t.replay(graph, stream)
    if when == "after":
        use(buffer)
        t.cudaDeviceSynchronize()
    t.values(buffer, stream)
    _give_back(t, stream, buffer)
    t.recovered(stream)


@scenario("Freeing a graph's memory outside before its first launch is refused.", control="after",
          variants={"after": dict(when="after"), "before": dict(when="before"), "twice after": dict(when="twice")},
          each={"call": ("async", "sync")}, open=True)
def freeing_graph_memory_outside(t, when, call):
    stream = t.stream()
    graph, buffer = _allocating(t, stream, free=False)

    def free():
        t.cudaFreeAsync(buffer.ptr, stream) if call == "async" else t.cudaFree(buffer.ptr)
    if when == "before":
        free()
    t.replay(graph, stream)
    free()
    if when == "twice":
        free()
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("A graph with allocations can be instantiated once at a time.", control="one after the other",
          variants={"one after the other": dict(destroy=True), "two at once": dict(destroy=False)},
          each={"free": ("freed", "kept")})
def instantiating_an_allocating_graph_twice(t, destroy, free):
    stream = t.stream()
    graph, buffer = _allocating(t, stream, free == "freed")
    first = t.instantiate(graph)
    if destroy:
        t.cudaGraphExecDestroy(first)
    t.instantiate(graph)
    t.recovered(stream)


@scenario("A graph with allocations cannot be cloned or added as a child.", control="without allocation",
          variants={"without allocation": dict(allocate=False), "with allocation": dict(allocate=True)},
          each={"call": ("clone", "child")})
def cloning_an_allocating_graph(t, allocate, call):
    stream, x = t.stream(), t.device([0] * 4)
    if allocate:
        graph, _ = _allocating(t, stream, free=True)
    else:
        t.begin(stream)
        t.fill(stream, x, 1)
        graph = t.end(stream)
    if call == "clone":
        _, copy = t.cudaGraphClone(graph)
    else:
        _, copy = t.cudaGraphCreate(0)
        t.cudaGraphAddChildGraphNode(copy, [], 0, graph)
    if copy is not None:
        t.graph(copy)
    t.replay(graph, stream)
    t.recovered(stream)


@scenario("Memory of one graph can be freed in another; the two are then launched in turn.", control="in turn",
          variants={"in turn": dict(order="ababab"), "allocating twice": dict(order="aab"), "freeing twice": dict(order="abb"),
                    "freeing first": dict(order="bab")})
def freeing_in_a_second_graph(t, order):
    stream = t.stream()
    graph, buffer = _allocating(t, stream, free=False)
    t.begin(stream)
    t.axpy(stream, t.spare, buffer, 1)
    t.cudaFreeAsync(buffer.ptr, stream)
    second = t.end(stream)
    t.graph(second)
    executables = {"a": t.instantiate(graph), "b": t.instantiate(second)}
    for which in order:
        if executables[which] is not None:
            t.cudaGraphLaunch(executables[which], stream)
        t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("A replay reads whoever owns the block by then.", control="kept",
          variants={"kept": dict(free=False), "handed on": dict(free=True)})
def a_replay_reads_the_new_owners_values(t, free):
    stream, x, y = t.stream(), t.device([1, 2, 3, 4]), t.device([0] * 4)
    t.begin(stream)
    t.axpy(stream, y, x, 1)
    graph = t.end(stream)
    executable = t.replay(graph, stream)
    t.values(y, stream)
    if free:
        t.cudaFree(x.ptr)
        owner = t.device([50, 60, 70, 80])
        t.note("same address", owner.ptr == x.ptr)
    t.cudaGraphLaunch(executable, stream)
    t.values(y, stream)


@scenario("The address of a freed block is given to the next allocation of its size.", control="not freed",
          variants={"not freed": dict(free=0), "freed": dict(free=1), "two freed": dict(free=2), "two freed in reverse": dict(free=-2),
                    "smaller": dict(free=1, ask=16), "larger": dict(free=1, ask=4096)}, open=True)
def the_address_of_a_freed_block(t, free, ask=64):
    blocks = [t.device([0] * 16) for _ in range(4)]
    chosen = {0: [], 1: [1], 2: [1, 2], -2: [2, 1]}[free]
    for index in chosen:
        t.cudaFree(blocks[index].ptr)
    taken = [t.device([0] * (ask // 4)).ptr for _ in range(2)]
    places = [block.ptr for block in blocks]
    t.note("taken", [places.index(ptr) if ptr in places else "new" for ptr in taken])


@scenario("cudaFree takes null and any block once.", control="null",
          variants={"null": dict(what=0), "None": dict(what=None), "twice": dict(what="twice"), "inside a block": dict(what="inside"),
                    "nobody's": dict(what=64), "pinned": dict(what="pinned"), "pool's": dict(what="pool"), "pageable": dict(what="pageable")}, open=True)
def what_cuda_free_takes(t, what):
    ptr, stream = what, t.stream()
    if what == "twice":
        ptr = t.device([0] * 4).ptr
        t.cudaFree(ptr)
    elif what == "inside":
        ptr = t.device([0] * 16).ptr + 4
    elif what == "pinned":
        ptr = t.pinned([0] * 4).ptr
    elif what == "pageable":
        ptr = t.pageable([0] * 4).ptr
    elif what == "pool":
        ptr = int(t.cudaMallocAsync(16, stream)[1])
    t.cudaFree(ptr)
    t.recovered()


@scenario("cudaFreeHost takes null and pinned memory, once.", control="null",
          variants={"null": dict(what=0), "pinned": dict(what="pinned"), "twice": dict(what="twice"), "device": dict(what="device"),
                    "pageable": dict(what="pageable")}, open=True)
def what_cuda_free_host_takes(t, what):
    ptr = {"device": t.spare.ptr}.get(what, what)
    if what in ("pinned", "twice"):
        ptr = t.pinned([0] * 4).ptr
    elif what == "pageable":
        ptr = t.pageable([0] * 4).ptr
    t.cudaFreeHost(ptr)
    if what == "twice":
        t.cudaFreeHost(ptr)
    t.recovered()


@scenario("What an allocation of nothing, and of too much, answers.", control="some",
          variants={"some": dict(size=64), "nothing": dict(size=0), "too much": dict(size=1 << 50)},
          each={"call": ("cudaMalloc", "cudaMallocHost", "cudaMallocAsync")}, open=True)
def allocating_nothing_and_too_much(t, size, call):
    stream = t.stream()
    extra = {"cudaMallocAsync": (stream,)}.get(call, ())
    _, ptr = getattr(t, call)(size, *extra)
    t.note("address", ptr is not None and int(ptr) != 0)
    if call == "cudaMallocAsync" and ptr is not None:
        t.cudaFreeAsync(ptr, stream)
    t.cudaGetLastError()
    t.recovered(stream)


@scenario("An allocation of nothing, and of too much, inside a capture.", control="some",
          variants={"some": dict(size=64), "nothing": dict(size=0), "too much": dict(size=1 << 50)}, each=ALL, open=True)
def allocating_nothing_and_too_much_in_a_capture(t, size, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    _, ptr = t.cudaMallocAsync(size, stream)
    if ptr is not None and int(ptr):
        t.cudaFreeAsync(ptr, stream)
    t.status(stream)
    graph = t.end(stream)
    if graph is not None:
        t.graph(graph)
    t.recovered(stream)


@scenario("An allocation of a capture that fails is given up with it.", control="whole",
          variants={"whole": dict(broken=False), "broken": dict(broken=True)}, each=ALL)
def an_allocation_in_a_capture_that_fails(t, broken, mode):
    stream = t.stream()
    t.begin(stream, mode)
    _, ptr = t.cudaMallocAsync(16, stream)
    buffer = Buffer(int(ptr), 4)
    t.fill(stream, buffer, 1)
    if broken:
        t.cudaDeviceSynchronize()
    t.cudaFreeAsync(buffer.ptr, stream)
    t.status(stream)
    graph = t.end(stream)
    if graph is not None:
        t.replay(graph, stream)
    else:
        t.cudaFreeAsync(buffer.ptr, stream)
    t.recovered(stream)


@scenario("A captured allocation may be used and freed on a forked stream.", control="one stream",
          variants={"one stream": dict(fork=False), "forked": dict(fork=True)}, each=ALL)
def freeing_on_a_forked_stream(t, fork, mode):
    a, b, x = t.stream(), t.stream(), t.device([0] * 4)
    t.begin(a, mode)
    buffer = Buffer(int(t.cudaMallocAsync(16, a)[1]), 4)
    t.fill(a, buffer, 2)
    if fork:
        t.follow(b, a)
    work = b if fork else a
    t.axpy(work, x, buffer, 1)
    t.cudaFreeAsync(buffer.ptr, work)
    if fork:
        t.follow(a, b)
    graph = t.end(a)
    t.graph(graph)
    t.replay(graph, a, 2)
    t.values(x, a)


@scenario("A captured free must come after the allocation in the graph.", control="after",
          variants={"after": dict(ordered=True), "beside": dict(ordered=False)}, open=True)
def freeing_beside_the_allocation(t, ordered):
    a, b = t.stream(), t.stream()
    t.begin(a)
    event = t.event()
    t.cudaEventRecord(event, a)
    t.cudaStreamWaitEvent(b, event, 0)
    _, ptr = t.cudaMallocAsync(16, a)
    if ordered:
        t.follow(b, a)
    t.cudaFreeAsync(int(ptr), b)
    t.status(a)
    t.follow(a, b)
    graph = t.end(a)
    if graph is not None:
        t.graph(graph)
        t.replay(graph, a)
    t.recovered(a), t.recovered(b)


@scenario("Allocating and freeing in stream order, outside of graphs.", control="once",
          variants={"once": dict(what="once"), "twice": dict(what="twice"), "after use": dict(what="use")}, open=True)
def freeing_in_stream_order(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    _, ptr = t.cudaMallocAsync(16, stream)
    buffer = Buffer(int(ptr), 4)
    if what == "use":
        t.fill(stream, buffer, 6)
        t.axpy(stream, x, buffer, 1)
    t.cudaFreeAsync(buffer.ptr, stream)
    if what == "twice":
        t.cudaFreeAsync(buffer.ptr, stream)
    t.values(x, stream)
    t.recovered(stream)


@scenario("Graph memory that a launch left allocated outlives the executable and the graph.", control="both kept",
          variants={"both kept": dict(destroy=""), "executable destroyed": dict(destroy="e"), "both destroyed": dict(destroy="eg")}, open=True)
def graph_memory_outlives_the_graph(t, destroy):
    stream = t.stream()
    graph, buffer = _allocating(t, stream, free=False)
    executable = t.replay(graph, stream)
    if "e" in destroy:
        t.cudaGraphExecDestroy(executable)
    if "g" in destroy:
        t.cudaGraphDestroy(graph)
    t.values(buffer, stream)
    _give_back(t, stream, buffer)
    t.recovered(stream)
