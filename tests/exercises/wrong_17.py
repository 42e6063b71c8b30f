"""Wrong answers to exercise 17, and what check() says of each."""
from labkit import cudart, cuuint64_t, kernels, launch, ok

Attr, GLOBAL = cudart.cudaMemPoolAttr, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "own_pool__no_threshold": "found:    0 bytes",
    "own_pool__always_without_limit": "a release threshold of 0 bytes",
    "own_pool__the_default_pool": "the device's default pool",
    "own_pool__made_current": "another pool is current now",
    "own_pool__the_same_again": "a new pool each time",
    "own_pool__destroyed": "one that your function has destroyed",
    "own_pool__no_kind": "1 cudaErrorInvalidValue",
    "own_pool__threshold_as_int": "AttributeError",
    "own_pool__most_it_may_have": "found:    0 bytes",
    "own_pool__code_and_pool": "a pool, a cudaMemPool_t",
    "own_pool__the_default_pool_too": "the default pool as it was",
    "from_your_pool__from_the_current_one": "at most 0 bytes were taken from it",
    "from_your_pool__left_current": "another pool is current now",
    "from_your_pool__current_for_a_moment": "a call of cudaDeviceSetMemPool",
    "from_your_pool__another_threshold": "the pool's threshold as it was",
    "from_your_pool__with_cudaFree": "cudaFree was called with the block",
    "from_your_pool__with_cudaFree_at_once": "cudaFree was called with the block",
    "from_your_pool__in_a_graph": "at most 0 bytes were taken from it",
    "from_your_pool__kept": "bytes as used",
    "from_your_pool__without_the_pool": "at most 0 bytes were taken from it",
    "from_your_pool__more_than_needed": "at most 65,536 bytes were taken from it",
    "from_your_pool__another_value": "after call 1",
    "from_your_pool__stumbles": "ValueError",
    "from_your_pool__on_a_stream_of_its_own": "all of it on the stream that was given",
    "from_your_pool__freed_on_another_stream": "a block freed on another stream",
    "from_your_pool__one_and_three_times": "fill of the block with 3.0",
    "from_your_pool__block_unused": "a block taken, fill, axpy, a block freed, in this order",
    "from_your_pool__freed_before_its_use": "a block that is freed already",
    "from_your_pool__behind_the_end": "floats; ",
    "from_your_pool__destroys_it": "your function has destroyed it",
    "trim_back__without_a_wait": "160 MiB",
    "trim_back__waits_only": "160 MiB",
    "trim_back__trims_first": "160 MiB",
    "trim_back__to_nothing": "found:    32 MiB",
    "trim_back__by_the_threshold": "the pool's threshold as it was",
    "trim_back__returns_nothing": "back: the bytes that are reserved now",
    "trim_back__what_was_asked_before": "back: the bytes that are reserved now",
    "trim_back__used_not_reserved": "back: the bytes that are reserved now",
    "trim_back__as_a_text": "back: the bytes that are reserved now",
    "trim_back__in_mebibytes": "back: the bytes that are reserved now",
}
RIGHT = ("own_pool__in_its_own_way", "own_pool__destroys_nothing", "from_your_pool__wrapped", "trim_back__step_by_step", "trim_back__the_counter_itself")
_kept = []


def _pool(threshold=None, most=0):
    props = cudart.cudaMemPoolProps()
    props.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    props.location.type, props.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    props.maxSize = most
    pool = ok(cudart.cudaMemPoolCreate(props))
    if threshold is not None:
        ok(cudart.cudaMemPoolSetAttribute(pool, Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(threshold)))
    return pool


def own_pool__no_threshold(threshold):
    return _pool()


def own_pool__always_without_limit(threshold):
    return _pool(2 ** 60)


def own_pool__the_default_pool(threshold):
    pool = ok(cudart.cudaDeviceGetDefaultMemPool(0))
    ok(cudart.cudaMemPoolSetAttribute(pool, Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(threshold)))
    return pool


def own_pool__made_current(threshold):
    pool = _pool(threshold)
    ok(cudart.cudaDeviceSetMemPool(0, pool))
    return pool


def own_pool__the_same_again(threshold):
    if not threshold:
        _kept[:] = [_pool(threshold)]
    ok(cudart.cudaMemPoolSetAttribute(_kept[0], Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(threshold)))
    return _kept[0]


def own_pool__destroyed(threshold):
    pool = _pool(threshold)
    ok(cudart.cudaMemPoolDestroy(pool))
    return pool


def own_pool__no_kind(threshold):
    return ok(cudart.cudaMemPoolCreate(cudart.cudaMemPoolProps()))


def own_pool__threshold_as_int(threshold):
    pool = _pool()
    ok(cudart.cudaMemPoolSetAttribute(pool, Attr.cudaMemPoolAttrReleaseThreshold, threshold))
    return pool


def own_pool__most_it_may_have(threshold):
    return _pool(most=threshold)


def own_pool__code_and_pool(threshold):
    return cudart.cudaError_t.cudaSuccess, _pool(threshold)


def own_pool__the_default_pool_too(threshold):
    own_pool__the_default_pool(2 ** 30)
    return _pool(threshold)


def own_pool__in_its_own_way(threshold):
    """Another pool is made and destroyed before; the current pool changes and changes back."""
    ok(cudart.cudaMemPoolDestroy(_pool()))
    before, pool = ok(cudart.cudaDeviceGetMemPool(0)), _pool(1)
    ok(cudart.cudaDeviceSetMemPool(0, pool))
    ok(cudart.cudaMemPoolSetAttribute(pool, Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(threshold)))
    ok(cudart.cudaDeviceSetMemPool(0, before))
    return pool


def own_pool__destroys_nothing(threshold):
    """A call that is refused, and whose code nobody looks at."""
    cudart.cudaMemPoolDestroy(None)
    return _pool(threshold)


# ---- taking --------------------------------------------------------------------------------------

def _use(stream, y, block, value=3.0, free=True):
    n, grid = y.size, -(-y.size // 256)
    ok(launch(stream, kernels.fill, grid, 256, block, value, n))
    ok(launch(stream, kernels.axpy, grid, 256, y, block, 1.0, n))
    if free:
        ok(cudart.cudaFreeAsync(block, stream))


def from_your_pool__from_the_current_one(pool, stream, y):
    _use(stream, y, ok(cudart.cudaMallocAsync(y.nbytes, stream)))


def from_your_pool__left_current(pool, stream, y):
    ok(cudart.cudaDeviceSetMemPool(0, pool))
    _use(stream, y, ok(cudart.cudaMallocAsync(y.nbytes, stream)))


def from_your_pool__in_a_graph(pool, stream, y):
    """Graph memory, whatever pool is named."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    _use(stream, y, ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream)))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(graph))


def from_your_pool__kept(pool, stream, y):
    _use(stream, y, ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream)), free=False)


def from_your_pool__without_the_pool(pool, stream, y):
    from labkit import empty
    block = empty(y.size)
    _use(stream, y, block, free=False)
    ok(cudart.cudaStreamSynchronize(stream))
    block.free()


def from_your_pool__more_than_needed(pool, stream, y):
    _use(stream, y, ok(cudart.cudaMallocFromPoolAsync(65536, pool, stream)))


def from_your_pool__another_value(pool, stream, y):
    _use(stream, y, ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream)), value=2.0)


def from_your_pool__stumbles(pool, stream, y):
    _use(stream, y, ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream)), free=False)
    raise ValueError("before the free")


def from_your_pool__destroys_it(pool, stream, y):
    _use(stream, y, ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream)))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaMemPoolDestroy(pool))


def from_your_pool__on_a_stream_of_its_own(pool, stream, y):
    other = ok(cudart.cudaStreamCreate())
    _use(other, y, ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, other)))
    ok(cudart.cudaStreamSynchronize(other))
    ok(cudart.cudaStreamDestroy(other))


def from_your_pool__freed_on_another_stream(pool, stream, y):
    block = ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream))
    _use(stream, y, block, free=False)
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaFreeAsync(block, 0))


def from_your_pool__one_and_three_times(pool, stream, y):
    n, grid = y.size, -(-y.size // 256)
    block = ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream))
    ok(launch(stream, kernels.fill, grid, 256, block, 1.0, n))
    ok(launch(stream, kernels.axpy, grid, 256, y, block, 3.0, n))
    ok(cudart.cudaFreeAsync(block, stream))


def from_your_pool__block_unused(pool, stream, y):
    from labkit import to_host
    from labkit.arrays import copy_in
    ok(cudart.cudaFreeAsync(ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream)), stream))
    copy_in(y, to_host(y) + 3)


def from_your_pool__freed_before_its_use(pool, stream, y):
    n, grid = y.size, -(-y.size // 256)
    block = ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream))
    ok(launch(stream, kernels.fill, grid, 256, block, 3.0, n))
    ok(cudart.cudaFreeAsync(block, stream))
    ok(launch(stream, kernels.axpy, grid, 256, y, block, 1.0, n))


def from_your_pool__behind_the_end(pool, stream, y):
    block = ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream))
    ok(launch(stream, kernels.fill, -(-y.nbytes // 256), 256, block, 3.0, y.nbytes))


def from_your_pool__wrapped(pool, stream, y):
    """The block as a DeviceArray, arguments by name, and a wait at the end."""
    from labkit import DeviceArray
    block = DeviceArray(ok(cudart.cudaMallocFromPoolAsync(size=y.nbytes, memPool=pool, stream=stream)), y.size, y.dtype)
    _use(stream, y, block, value=3, free=False)
    ok(cudart.cudaFreeAsync(devPtr=block.ptr, hStream=stream))
    ok(cudart.cudaStreamSynchronize(stream))


def from_your_pool__current_for_a_moment(pool, stream, y):
    before = ok(cudart.cudaDeviceGetMemPool(0))
    ok(cudart.cudaDeviceSetMemPool(0, pool))
    block = ok(cudart.cudaMallocAsync(y.nbytes, stream))
    ok(cudart.cudaDeviceSetMemPool(0, before))
    _use(stream, y, block)


def from_your_pool__another_threshold(pool, stream, y):
    ok(cudart.cudaMemPoolSetAttribute(pool, Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(2 ** 30)))
    _use(stream, y, ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream)))


def from_your_pool__with_cudaFree(pool, stream, y):
    block = ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream))
    _use(stream, y, block, free=False)
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaFree(block))


def from_your_pool__with_cudaFree_at_once(pool, stream, y):
    block = ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream))
    _use(stream, y, block, free=False)
    ok(cudart.cudaFree(block))


# ---- giving back ---------------------------------------------------------------------------------

def _reserved(pool):
    return int(ok(cudart.cudaMemPoolGetAttribute(pool, Attr.cudaMemPoolAttrReservedMemCurrent)))


def trim_back__without_a_wait(pool, stream, keep):
    ok(cudart.cudaMemPoolTrimTo(pool, keep))
    return _reserved(pool)


def trim_back__waits_only(pool, stream, keep):
    ok(cudart.cudaStreamSynchronize(stream))
    return keep


def trim_back__trims_first(pool, stream, keep):
    ok(cudart.cudaMemPoolTrimTo(pool, keep))
    ok(cudart.cudaStreamSynchronize(stream))
    return _reserved(pool)


def trim_back__to_nothing(pool, stream, keep):
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaMemPoolTrimTo(pool, 0))
    return _reserved(pool)


def trim_back__by_the_threshold(pool, stream, keep):
    ok(cudart.cudaMemPoolSetAttribute(pool, Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(keep)))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaMemPoolTrimTo(pool, keep))
    return _reserved(pool)


def _trimmed(pool, stream, keep):
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaMemPoolTrimTo(pool, keep))


def trim_back__returns_nothing(pool, stream, keep):
    _trimmed(pool, stream, keep)


def trim_back__what_was_asked_before(pool, stream, keep):
    before = _reserved(pool)
    _trimmed(pool, stream, keep)
    return before


def trim_back__used_not_reserved(pool, stream, keep):
    _trimmed(pool, stream, keep)
    return int(ok(cudart.cudaMemPoolGetAttribute(pool, Attr.cudaMemPoolAttrUsedMemCurrent)))


def trim_back__in_mebibytes(pool, stream, keep):
    _trimmed(pool, stream, keep)
    return _reserved(pool) // 2 ** 20


def trim_back__as_a_text(pool, stream, keep):
    _trimmed(pool, stream, keep)
    return str(_reserved(pool))


def trim_back__step_by_step(pool, stream, keep):
    ok(cudart.cudaDeviceSynchronize())
    while _reserved(pool) > keep:
        ok(cudart.cudaMemPoolTrimTo(pool, max(keep, _reserved(pool) - 2 ** 25)))
    return _reserved(pool)


def trim_back__the_counter_itself(pool, stream, keep):
    """A cuuint64_t, as the bindings hand it out."""
    _trimmed(pool, stream, keep)
    return ok(cudart.cudaMemPoolGetAttribute(pool, Attr.cudaMemPoolAttrReservedMemCurrent))
