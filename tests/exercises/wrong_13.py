"""Wrong answers to exercise 13, and what check() says of each."""
from labkit import DeviceArray, cudart, empty, kernels, launch, ok

MODES = cudart.cudaStreamCaptureMode
GLOBAL = MODES.cudaStreamCaptureModeGlobal
EXPECT = {
    "scratch__never_freed": "expected a graph with MemAlloc, add, axpy, MemFree",
    "scratch__freed_before_its_last_use": "expected a graph with MemAlloc, add, axpy, MemFree",
    "scratch__block_from_before": "found    a graph with add, axpy",
    "scratch__size_in_elements": "bytes, as many as x has",
    "scratch__room_for_the_largest": "bytes, as many as x has",
    "scratch__malloc_in_relaxed": "found    a graph with add, axpy",
    "scratch__malloc_in_global": "900",
    "scratch__block_unused": "z of add is the block",
    "scratch__two_at_once": "expected: the graph, and nothing else",
    "scratch__at_once_and_an_empty_graph": "found    a graph with no nodes",
    "scratch__for_four_floats": "after launch 1",
    "scratch__behind_the_end": "a graph that stays within its buffers",
    "scratch__destroyed": "a graph that the function has destroyed",
    "kept_block__behind_the_end": "a graph that stays within its buffers",
    "kept_block__destroyed": "a graph that the function has destroyed",
    "kept_block__freed_inside": "found    a graph with MemAlloc, fill, MemFree",
    "kept_block__no_address": "expected: the graph and the address",
    "kept_block__another_address": "the address that its MemAlloc node has",
    "kept_block__size_in_elements": "a block for 4 floats, 16 bytes",
    "kept_block__another_value": "expected the block",
    "kept_block__memory_of_malloc": "found    a graph with fill",
    "kept_block__launched_already": "your function has launched the graph",
    "kept_block__wrong_way_round": "expected back: graph",
}
RIGHT = ("scratch__other_order", "scratch__wrapped", "scratch__by_hand", "kept_block__as_an_array", "kept_block__read_from_the_node")


def _begin(stream, mode=GLOBAL):
    ok(cudart.cudaStreamBeginCapture(stream, mode))


def _end(stream):
    return ok(cudart.cudaStreamEndCapture(stream))


def _work(stream, block, x, y):
    _add(stream, block, x, y)
    _axpy(stream, block, y)


def _add(stream, block, x, y):
    ok(launch(stream, kernels.add, -(-x.size // 256), 256, block, x, y, x.size))


def _axpy(stream, block, y):
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, block, 2.0, y.size))


def _take(stream, size):
    return ok(cudart.cudaMallocAsync(size, stream))


def _free(stream, block):
    ok(cudart.cudaFreeAsync(block, stream))


def scratch__never_freed(stream, x, y):
    _begin(stream)
    _work(stream, _take(stream, x.nbytes), x, y)
    return _end(stream)


def scratch__freed_before_its_last_use(stream, x, y):
    _begin(stream)
    block = _take(stream, x.nbytes)
    _add(stream, block, x, y)
    _free(stream, block)
    _axpy(stream, block, y)
    return _end(stream)


def scratch__block_from_before(stream, x, y):
    block = _take(stream, x.nbytes)
    _begin(stream)
    _work(stream, block, x, y)
    graph = _end(stream)
    _free(stream, block)
    return graph


def _sized(stream, x, y, size):
    _begin(stream)
    block = _take(stream, size)
    _work(stream, block, x, y)
    _free(stream, block)
    return _end(stream)


def scratch__size_in_elements(stream, x, y):
    return _sized(stream, x, y, x.size)


def scratch__room_for_the_largest(stream, x, y):
    return _sized(stream, x, y, 8192)


def scratch__malloc_in_relaxed(stream, x, y):
    _begin(stream, MODES.cudaStreamCaptureModeRelaxed)
    block = empty(x.size)
    _work(stream, block, x, y)
    block.free()
    return _end(stream)


def scratch__malloc_in_global(stream, x, y):
    _begin(stream)
    _work(stream, ok(cudart.cudaMalloc(x.nbytes)), x, y)
    return _end(stream)


def scratch__block_unused(stream, x, y):
    _begin(stream)
    block = _take(stream, x.nbytes)
    ok(launch(stream, kernels.add, -(-x.size // 256), 256, y, y, x, x.size))
    _axpy(stream, y, y)
    _free(stream, block)
    return _end(stream)


def scratch__two_at_once(stream, x, y):
    return _sized(stream, x, y, x.nbytes), 0


def scratch__at_once_and_an_empty_graph(stream, x, y):
    block = _take(stream, x.nbytes)
    _work(stream, block, x, y)
    _free(stream, block)
    _begin(stream)
    return _end(stream)


def scratch__for_four_floats(stream, x, y):
    _begin(stream)
    block = _take(stream, x.nbytes)
    ok(launch(stream, kernels.add, 1, 4, block, x, y, 4))
    ok(launch(stream, kernels.axpy, 1, 4, y, block, 2.0, 4))
    _free(stream, block)
    return _end(stream)


def scratch__behind_the_end(stream, x, y):
    """Twice as many floats as there are: on a GPU they may be somebody else's."""
    _begin(stream)
    block = _take(stream, x.nbytes)
    ok(launch(stream, kernels.add, -(-2 * x.size // 256), 256, block, x, y, 2 * x.size))
    _axpy(stream, block, y)
    _free(stream, block)
    return _end(stream)


def scratch__destroyed(stream, x, y):
    graph = _sized(stream, x, y, x.nbytes)
    ok(cudart.cudaGraphDestroy(graph))
    return graph


def kept_block__behind_the_end(stream, count, value):
    _begin(stream)
    block = _take(stream, 4 * count)
    ok(launch(stream, kernels.fill, -(-4 * count // 256), 256, block, value, 4 * count))
    return _end(stream), block


def kept_block__destroyed(stream, count, value):
    graph, block = _kept(stream, count, value, 4 * count)
    ok(cudart.cudaGraphDestroy(graph))
    return graph, block


def scratch__other_order(stream, x, y):
    """x and y the other way round, and a capture in another mode."""
    _begin(stream, MODES.cudaStreamCaptureModeThreadLocal)
    block = _take(stream, x.nbytes)
    ok(launch(stream, kernels.add, -(-x.size // 64), 64, block, y, x, x.size))
    ok(launch(stream, kernels.axpy, 40, 128, y, block, 2.0, x.size))
    _free(stream, block)
    return _end(stream)


def scratch__wrapped(stream, x, y):
    """The address as a DeviceArray, and the memory taken through the current pool."""
    _begin(stream)
    pool = ok(cudart.cudaDeviceGetMemPool(0))
    block = DeviceArray(ok(cudart.cudaMallocFromPoolAsync(x.nbytes, pool, stream)), x.size, x.dtype)
    _work(stream, block, x, y)
    _free(stream, block.ptr)
    return _end(stream)


def scratch__by_hand(stream, x, y):
    """No capture: nodes and edges."""
    from labkit import kernel_params
    graph, n = ok(cudart.cudaGraphCreate(0)), x.size
    params = cudart.cudaMemAllocNodeParams()
    params.bytesize = x.nbytes
    params.poolProps.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    params.poolProps.location.type, params.poolProps.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    taken = ok(cudart.cudaGraphAddMemAllocNode(graph, [], 0, params))
    add = ok(cudart.cudaGraphAddKernelNode(graph, [taken], 1, kernel_params(kernels.add, 16, 256, int(params.dptr), x, y, n)))
    axpy = ok(cudart.cudaGraphAddKernelNode(graph, [add], 1, kernel_params(kernels.axpy, 16, 256, y, int(params.dptr), 2.0, n)))
    ok(cudart.cudaGraphAddMemFreeNode(graph, [axpy], 1, params.dptr))
    return graph


def _kept(stream, count, value, size, free=False):
    _begin(stream)
    block = _take(stream, size)
    ok(launch(stream, kernels.fill, -(-count // 256), 256, block, value, count))
    if free:
        _free(stream, block)
    return _end(stream), block


def kept_block__freed_inside(stream, count, value):
    return _kept(stream, count, value, 4 * count, free=True)


def kept_block__no_address(stream, count, value):
    return _kept(stream, count, value, 4 * count)[0]


def kept_block__another_address(stream, count, value):
    graph, block = _kept(stream, count, value, 4 * count)
    return graph, block + 4


def kept_block__size_in_elements(stream, count, value):
    return _kept(stream, count, value, count)


def kept_block__another_value(stream, count, value):
    return _kept(stream, count, value + 1, 4 * count)


def kept_block__memory_of_malloc(stream, count, value):
    block = empty(count)
    _begin(stream)
    ok(launch(stream, kernels.fill, -(-count // 256), 256, block, value, count))
    graph = _end(stream)
    address = block.ptr
    block.free()
    return graph, address


def kept_block__launched_already(stream, count, value):
    graph, block = _kept(stream, count, value, 4 * count)
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    return graph, block


def kept_block__wrong_way_round(stream, count, value):
    graph, block = _kept(stream, count, value, 4 * count)
    return block, graph


def kept_block__as_an_array(stream, count, value):
    graph, block = _kept(stream, count, value, 4 * count)
    return graph, DeviceArray(block, count, "float32")


def kept_block__read_from_the_node(stream, count, value):
    from labkit import graph as reading
    graph, _ = _kept(stream, count, value, 4 * count)
    return [graph, ok(cudart.cudaGraphMemAllocNodeGetParams(reading.nodes(graph)[0])).dptr]
