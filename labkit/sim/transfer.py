"""Copies, memsets, and memory that is allocated and freed in stream order.

The rules of "API synchronization behavior" in the Runtime API: which copies the host waits for,
and when a host buffer is read.
"""
from labkit.errors import Undefined
from . import capture, device_pools as pools, engine, graph as graphs, graph_addresses, memory, stream as streams, work
from .world import Refused

HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, DEFAULT = range(5)
_SAYS = {HOST_TO_HOST: ("host", "host"), HOST_TO_DEVICE: ("host", "device"),
         DEVICE_TO_HOST: ("device", "host"), DEVICE_TO_DEVICE: ("device", "device")}


def ends(dst, src, count, kind, graph):
    """(where the bytes come from, where they go): each "device", "pinned" or "pageable"."""
    if kind not in range(5):
        raise Refused("InvalidMemcpyDirection")
    found = memory.side(src, count, graph), memory.side(dst, count, graph)
    if kind != DEFAULT:
        for is_at, said in zip(found, _SAYS[kind]):
            if said == "device" and is_at == "pageable":
                raise Refused("InvalidValue")
            if said == "host" and is_at == "device":
                raise Undefined("A copy says that a device address is a host address.",
                                "CUDA leaves open what happens when the kind of a copy does not match its pointers.",
                                "Pass the right cudaMemcpyKind, or cudaMemcpyDefault.")
    return found


def copy_job(dst, src, count, kind, graph=None):
    """(the work of a copy, from, to). Nothing to copy is no work."""
    if count == 0:
        return None, None, None
    source, target = ends(dst, src, count, kind, graph)
    direction = tuple("device" if end == "device" else "host" for end in (source, target))
    return work.Memcpy(dst, src, count, direction, memory.owners(dst, src) if graph is not None else ()), source, target


def copy(dst, src, count, kind):
    """A copy in the legacy stream. The host waits for it, except from device to device. Returns
    the ops to wait for."""
    job, source, target = copy_job(dst, src, count, kind)
    if job is None:
        return []
    op = streams.submit(streams.legacy(), job)
    return [] if source == target == "device" else [op]


def copy_async(dst, src, count, kind, stream):
    """A copy in a stream. A pageable source is read before the call returns, and the host waits for
    a pageable target; in a capture, host memory is read and written at replay. Returns the ops to wait for."""
    job, source, target = copy_job(dst, src, count, kind, capture.graph_of(stream))
    if job is None:
        return []
    if stream.capture is None and source == "pageable" and target == "device":
        streams.submit(stream, work.Staged(dst, src, count))
        return []
    op = streams.submit(stream, job)
    return [op] if op is not None and target == "pageable" else []


def fill(dst, value, count, stream):
    """A memset in a stream; the host does not wait. Nothing to set is no work."""
    graph = capture.graph_of(stream)
    if count:
        if stream.legacy:
            capture.forbid_legacy()
        if graph is None:                   # a capture takes any address; the replay will see
            memory.on_device(dst, count)
        streams.submit(stream, work.Memset(dst, value % 256, 1, count))


def copy_node(graph, dst, src, count, kind):
    """The work of a copy node. A node must copy something."""
    if count == 0:
        raise Refused("InvalidValue")
    return copy_job(dst, src, count, kind, graph)[0]


def copy_node_told(made, dst, src, count, kind):
    """The same for a node of an executable, whose setter must be told the direction: the default is none."""
    if kind == DEFAULT:
        raise Refused("InvalidValue")
    return copy_node(made, dst, src, count, kind)


def fill_job(graph, dst, value, size, width, height, pitch):
    """The work of a memset node: `height` rows of `width` elements of `size` bytes, all on the device."""
    if size not in (1, 2, 4) or not width or not height:
        raise Refused("InvalidValue")
    memory.on_device(dst, (height - 1) * pitch + width * size, graph)
    return work.Memset(dst, value, size, width, height, pitch)


def allocate(size, kind):
    """Memory at once, outside every stream: its address. No bytes are no memory."""
    if size == 0:
        return 0
    block = memory.allocate(size, kind)
    block.live = True
    return block.start


def free(address, kinds=("device", "async", "graph")):
    """Free waits for the whole device, so that no work still uses the memory; but not where the memory is a graph's or a pool's. A
    graph's stays as it is for what is under way, a pool's is gone at once, and then pools give back pages. Null is nothing to free."""
    if address == 0:
        return []
    block = memory.owned_at(address, kinds)
    pools.check_free(block)
    op = engine.Op(block.end, ()) if block.kind == "async" else engine.Op(block.release, streams.everything())
    op.light = block.kind == "graph"
    streams.orphan(op)
    memory.give_back(block, op)
    if block.kind == "graph":
        return []
    return pools.waited([op], op) if block.kind == "async" else [op]


def allocate_async(size, stream, source=None):
    """Stream-ordered memory: its address, valid for work that follows in stream order. It comes from a pool, the device's
    current one or `source`. In a capture it becomes memory of the graph: a node, and an address for the life of the graph."""
    graph = capture.graph_of(stream)
    if size == 0:
        return 0
    if graph is not None:
        block = _place(graph, size, stream.next_after)
        capture.add(stream, work.Alloc(block))
        return _allocated(graph, block)
    block, frees = (source or pools.current()).allocate(size, stream)
    streams.push(stream, block.begin, also=frees).light = True
    return block.start


def _place(graph, size, before):
    graphs.check(graph, before)
    graph.memory = True                             # an allocation that is refused for its size marks the graph as well
    return graph_addresses.place_of(graph).allocate(size, before)


def _allocated(graph, block):
    graph.allocates[block] = None
    return block.start


def free_async(address, stream):
    """Free in stream order; null is nothing to free. In a capture only memory of a graph can be
    freed, and only once."""
    if address == 0:
        return
    if stream.capture is None:
        if memory.freed_async(address):
            streams.push(stream, _twice)
            return
        block = memory.owned_at(address, ("device", "async", "graph"))
        pools.check_free(block)
        op = streams.push(stream, block.release)
        op.light = True
        memory.give_back(block, op, stream)
        return
    graph = capture.active(stream).graph
    graph.memory = True                             # a free that is refused marks the graph as well
    block = to_free(graph, address)
    freed(graph, block, capture.add(stream, work.Free(block)))


def _twice():
    raise Undefined("cudaFreeAsync freed memory of cudaMalloc twice.",
                    "CUDA takes both calls; with driver 580.159.04 the process crashed at the next wait.", "Free each allocation once.")


def to_free(graph, address):
    """The block that a free node of a graph frees: memory of a graph, this one or another, that neither this one nor the one that
    allocates it frees yet."""
    block = graph_addresses.at(address)
    if block is None or block in graph.frees or block in block.region.home.graph.frees:
        raise Refused("InvalidValue")
    return block


def freed(graph, block, node):
    """A node of a graph frees a block; where the graph allocated it, its place is free for later nodes."""
    graph.frees[block] = None
    if block in graph.allocates:
        graph.place.free(block, node)


def allocate_node(graph, size, before):
    """A node that allocates, and its address. It must allocate something."""
    if size == 0:
        raise Refused("InvalidValue")
    block = _place(graph, size, before)
    return graphs.add(graph, work.Alloc(block), before), _allocated(graph, block)


def free_node(graph, address, before):
    """A node that frees. It need not wait for the allocation: nobody looks."""
    block = to_free(graph, address)
    node = graphs.add(graph, work.Free(block), before)
    graph.memory = True
    freed(graph, block, node)
    return node
