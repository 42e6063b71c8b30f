"""Wrong answers to exercise 20, and what check() says of each. The first of each part is the program as it was given."""
import numpy as np

from labkit import DeviceArray, cudart, empty, kernel_params, kernels, launch, ok, to_host

GLOBAL, COPY = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal, cudart.cudaMemcpyKind
TO_DEVICE, TO_HOST, ON_DEVICE = COPY.cudaMemcpyHostToDevice, COPY.cudaMemcpyDeviceToHost, COPY.cudaMemcpyDeviceToDevice
EXPECT = {
    "repair_unjoined__as_it_was": "904",
    "repair_unjoined__right_joined_too_late": "904",
    "repair_unjoined__joined_too_early": "904",
    "repair_unjoined__right_never_forked": "904",
    "repair_unjoined__all_in_one_stream": "found    a graph with",
    "repair_unjoined__side_by_side": "found    a graph with",
    "repair_unjoined__z_left_out": "found    a graph with",
    "repair_unjoined__y_and_z_exchanged": "another address",
    "repair_unjoined__half_as_much": "expected x",
    "repair_legacy_stream__as_it_was": "found    a graph with axpy, scale",
    "repair_legacy_stream__memset_only": "found    a graph with Memset, axpy, scale",
    "repair_legacy_stream__waits_for_all": "900",
    "repair_legacy_stream__fill_in_place_of_memset": "found    a graph with fill",
    "repair_legacy_stream__copies_too_late": "found    a graph with",
    "repair_legacy_stream__wrong_value": "expected z",
    "repair_legacy_stream__half_the_bytes": "found    z",
    "repair_legacy_stream__twice_the_bytes": ("a copy of no more bytes", "1 cudaErrorInvalidValue"),
    "repair_legacy_stream__destroyed": "has destroyed",
    "repair_sync_copy__as_it_was": "found    a graph with scale",
    "repair_sync_copy__first_only": "found    a graph with Memcpy, scale",
    "repair_sync_copy__waits_inside": "900",
    "repair_sync_copy__copies_of_its_own": "a copy from or to another address",
    "repair_sync_copy__memory_that_goes": "a copy from or to another address",
    "repair_sync_copy__bytes_for_elements": ("a copy of no more bytes", "1 cudaErrorInvalidValue"),
    "repair_sync_copy__memory_that_goes_by_hand": "a copy from or to another address",
    "repair_sync_copy__out_before": "found    a graph with",
    "repair_sync_copy__one_array": "expected out",
    "repair_stale_address__as_it_was": "only cudaGraph_t came back",
    "repair_stale_address__given_back_at_once": "given back",
    "repair_stale_address__close_does_nothing": "after close()",
    "repair_stale_address__no_block": "found    a graph with axpy",
    "repair_stale_address__gives_twice": "takes it once",
    "repair_stale_address__own_memory": "add writes to other memory",
    "repair_stale_address__block_handed_back": "expected back: graph, function",
    "repair_stale_address__takes_all": "the pool is empty",
    "repair_stale_address__closes_itself": "given back",
    "repair_frozen_value__as_it_was": "found    a graph with axpy",
    "repair_frozen_value__grid_of_now": "threads of axpy_n: count may grow",
    "repair_frozen_value__two_rows": "in one row",
    "repair_frozen_value__copy_of_count": "n of axpy_n is the buffer count",
    "repair_frozen_value__all_of_y": "found    a graph with axpy",
    "repair_frozen_value__size_for_count": "found:    the number",
    "repair_frozen_value__at_once": "found    a graph with no nodes",
    "repair_frozen_value__exchanged": "another address",
    "repair_frozen_value__asks_inside": "asked to wait for a stream that is capturing",
}
RIGHT = ("repair_unjoined__left_first", "repair_unjoined__copies_before", "repair_unjoined__both_joined", "repair_legacy_stream__two_dimensions", "repair_sync_copy__default_direction", "repair_sync_copy__by_hand",
         "repair_stale_address__destroys_in_close", "repair_stale_address__memory_of_the_graph", "repair_stale_address__lent_in_the_capture", "repair_frozen_value__large_grid")


def _run(stream, kernel, y, *args):
    ok(launch(stream, kernel, -(-y.size // 256), 256, y, *args, y.size))


def _after(stream, other, event):
    ok(cudart.cudaEventRecord(event, other))
    ok(cudart.cudaStreamWaitEvent(stream, event, 0))


def _begin(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))


def _end(stream):
    return ok(cudart.cudaStreamEndCapture(stream))


# ---- 1 ----

def _five(stream, left, right, event, w, x, y, z, join, fork=True):
    _begin(stream)
    _run(stream, kernels.fill, x, 1.0)
    _after(left, stream, event)
    _run(left, kernels.axpy, y, x, 1.0)
    _after(right, left, event) if fork else None
    _run(right, kernels.axpy, z, y, 1.0)
    _run(stream, kernels.scale, w, 3.0)
    join()
    _run(stream, kernels.add, w, w, z)
    return _end(stream)


def repair_unjoined__as_it_was(stream, left, right, event, w, x, y, z):
    return _five(stream, left, right, event, w, x, y, z, lambda: _after(stream, left, event))


def repair_unjoined__right_joined_too_late(stream, left, right, event, w, x, y, z):
    _begin(stream)
    _run(stream, kernels.fill, x, 1.0)
    _after(left, stream, event)
    _run(left, kernels.axpy, y, x, 1.0)
    _after(right, left, event)
    _after(stream, right, event)         # before its work
    _run(right, kernels.axpy, z, y, 1.0)
    _run(stream, kernels.scale, w, 3.0)
    _run(stream, kernels.add, w, w, z)
    return _end(stream)


def repair_unjoined__joined_too_early(stream, left, right, event, w, x, y, z):
    return _five(stream, left, right, event, w, x, y, z, lambda: (_after(left, stream, event), _after(stream, left, event)))


def repair_unjoined__right_never_forked(stream, left, right, event, w, x, y, z):
    return _five(stream, left, right, event, w, x, y, z, lambda: _after(right, stream, event))


def repair_unjoined__all_in_one_stream(stream, left, right, event, w, x, y, z):
    return _five(stream, stream, stream, event, w, x, y, z, lambda: None)


def repair_unjoined__side_by_side(stream, left, right, event, w, x, y, z):
    _begin(stream)
    _run(stream, kernels.fill, x, 1.0)
    _after(left, stream, event)
    _after(right, stream, event)         # z does not wait for y
    _run(left, kernels.axpy, y, x, 1.0)
    _run(right, kernels.axpy, z, y, 1.0)
    _run(stream, kernels.scale, w, 3.0)
    _after(stream, left, event)
    _after(stream, right, event)
    _run(stream, kernels.add, w, w, z)
    return _end(stream)


def repair_unjoined__z_left_out(stream, left, right, event, w, x, y, z):
    """right never hears of the capture: its kernel runs at once."""
    _begin(stream)
    _run(stream, kernels.fill, x, 1.0)
    _after(left, stream, event)
    _run(left, kernels.axpy, y, x, 1.0)
    _run(right, kernels.axpy, z, y, 1.0)
    _run(stream, kernels.scale, w, 3.0)
    _after(stream, left, event)
    _run(stream, kernels.add, w, w, z)
    return _end(stream)


def repair_unjoined__y_and_z_exchanged(stream, left, right, event, w, x, y, z):
    return _five(stream, left, right, event, w, x, z, y, lambda: _after(stream, right, event))


def repair_unjoined__half_as_much(stream, left, right, event, w, x, y, z):
    """y grows by 1 all the same; but x is not filled with 1."""
    _begin(stream)
    _run(stream, kernels.fill, x, 0.5)
    _after(left, stream, event)
    _run(left, kernels.axpy, y, x, 2.0)
    _run(left, kernels.axpy, z, y, 1.0)
    _run(stream, kernels.scale, w, 3.0)
    _after(stream, left, event)
    _run(stream, kernels.add, w, w, z)
    return _end(stream)


def repair_unjoined__copies_before(stream, left, right, event, w, x, y, z):
    """A copy that is not captured is nobody's business."""
    numbers = np.zeros(w.size, np.float32)
    ok(cudart.cudaMemcpyAsync(numbers.ctypes.data, w.ptr, w.nbytes, TO_HOST, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    return repair_unjoined__left_first(stream, left, right, event, w, x, y, z)


def repair_unjoined__left_first(stream, left, right, event, w, x, y, z):
    """right is joined to left, and left to stream."""
    return _five(stream, left, right, event, w, x, y, z, lambda: (_after(left, right, event), _after(stream, left, event)))


def repair_unjoined__both_joined(stream, left, right, event, w, x, y, z):
    return _five(stream, left, right, event, w, x, y, z, lambda: (_after(stream, left, event), _after(stream, right, event)))


# ---- 2 ----

def _four(stream, x, y, z, on=0, copied=0, value=0, share=1):
    _begin(stream)
    ok(cudart.cudaMemsetAsync(y.ptr, value, y.nbytes, on))
    _run(stream, kernels.axpy, y, x, 2.0)
    ok(cudart.cudaMemcpyAsync(z.ptr, y.ptr, y.nbytes // share, ON_DEVICE, copied))
    _run(stream, kernels.scale, y, 3.0)
    return _end(stream)


def repair_legacy_stream__as_it_was(stream, x, y, z):
    return _four(stream, x, y, z)


def repair_legacy_stream__memset_only(stream, x, y, z):
    return _four(stream, x, y, z, on=stream)


def repair_legacy_stream__waits_for_all(stream, x, y, z):
    _begin(stream)
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, 0))
    ok(cudart.cudaDeviceSynchronize())
    return _end(stream)


def repair_legacy_stream__fill_in_place_of_memset(stream, x, y, z):
    _begin(stream)
    _run(stream, kernels.fill, y, 0.0)
    _run(stream, kernels.axpy, y, x, 2.0)
    ok(cudart.cudaMemcpyAsync(z.ptr, y.ptr, y.nbytes, ON_DEVICE, stream))
    _run(stream, kernels.scale, y, 3.0)
    return _end(stream)


def repair_legacy_stream__copies_too_late(stream, x, y, z):
    _begin(stream)
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    _run(stream, kernels.axpy, y, x, 2.0)
    _run(stream, kernels.scale, y, 3.0)
    ok(cudart.cudaMemcpyAsync(z.ptr, y.ptr, y.nbytes, ON_DEVICE, stream))
    return _end(stream)


def repair_legacy_stream__wrong_value(stream, x, y, z):
    return _four(stream, x, y, z, stream, stream, value=64)


def repair_legacy_stream__half_the_bytes(stream, x, y, z):
    return _four(stream, x, y, z, stream, stream, share=2)


def repair_legacy_stream__twice_the_bytes(stream, x, y, z):
    _begin(stream)
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    _run(stream, kernels.axpy, y, x, 2.0)
    ok(cudart.cudaMemcpyAsync(z.ptr + y.nbytes // 2, y.ptr, y.nbytes, ON_DEVICE, stream))
    _run(stream, kernels.scale, y, 3.0)
    return _end(stream)


def repair_legacy_stream__destroyed(stream, x, y, z):
    plan = _four(stream, x, y, z, stream, stream)
    ok(cudart.cudaGraphDestroy(plan))
    return plan


def repair_legacy_stream__two_dimensions(stream, x, y, z):
    """cudaMemcpyDefault finds the direction itself."""
    _begin(stream)
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    _run(stream, kernels.axpy, y, x, 2.0)
    ok(cudart.cudaMemcpyAsync(z.ptr, y.ptr, y.nbytes, COPY.cudaMemcpyDefault, stream))
    _run(stream, kernels.scale, y, 3.0)
    return _end(stream)


# ---- 3 ----

def _copies(stream, news, y, out, first=True, last=True):
    _begin(stream)
    if first:
        ok(cudart.cudaMemcpyAsync(y.ptr, news.ctypes.data, y.nbytes, TO_DEVICE, stream))
    else:
        ok(cudart.cudaMemcpy(y.ptr, news.ctypes.data, y.nbytes, TO_DEVICE))
    _run(stream, kernels.scale, y, 3.0)
    if last:
        ok(cudart.cudaMemcpyAsync(out.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
    else:
        ok(cudart.cudaMemcpy(out.ctypes.data, y.ptr, y.nbytes, TO_HOST))
    return _end(stream)


def repair_sync_copy__as_it_was(stream, news, y, out):
    return _copies(stream, news, y, out, False, False)


def repair_sync_copy__first_only(stream, news, y, out):
    return _copies(stream, news, y, out, True, False)


def repair_sync_copy__waits_inside(stream, news, y, out):
    _begin(stream)
    ok(cudart.cudaMemcpyAsync(y.ptr, news.ctypes.data, y.nbytes, TO_DEVICE, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    return _end(stream)


_kept = []


def repair_sync_copy__copies_of_its_own(stream, news, y, out):
    _kept[:] = [news.copy()]
    return _copies(stream, _kept[0], y, out)


def repair_sync_copy__memory_that_goes(stream, news, y, out):
    return _copies(stream, news * 1, y, out)


def _copies_by_hand(news, y, out):
    plan = ok(cudart.cudaGraphCreate(0))
    first = ok(cudart.cudaGraphAddMemcpyNode1D(plan, [], 0, y.ptr, news.ctypes.data, y.nbytes, TO_DEVICE))
    then = ok(cudart.cudaGraphAddKernelNode(plan, [first], 1, kernel_params(kernels.scale, -(-y.size // 256), 256, y, 3.0, y.size)))
    ok(cudart.cudaGraphAddMemcpyNode1D(plan, [then], 1, out.ctypes.data, y.ptr, y.nbytes, TO_HOST))
    return plan


def repair_sync_copy__by_hand(stream, news, y, out):
    return _copies_by_hand(news, y, out)


def repair_sync_copy__memory_that_goes_by_hand(stream, news, y, out):
    return _copies_by_hand(news * 1, y, out)


def repair_sync_copy__bytes_for_elements(stream, news, y, out):
    _begin(stream)
    ok(cudart.cudaMemcpyAsync(y.ptr + 4, news.ctypes.data, news.nbytes, TO_DEVICE, stream))
    return _end(stream)


def repair_sync_copy__out_before(stream, news, y, out):
    _begin(stream)
    ok(cudart.cudaMemcpyAsync(y.ptr, news.ctypes.data, y.nbytes, TO_DEVICE, stream))
    ok(cudart.cudaMemcpyAsync(out.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
    _run(stream, kernels.scale, y, 3.0)
    return _end(stream)


def repair_sync_copy__one_array(stream, news, y, out):
    return _copies(stream, news, y, news)


def repair_sync_copy__default_direction(stream, news, y, out):
    _begin(stream)
    ok(cudart.cudaMemcpyAsync(y.ptr, news.ctypes.data, news.nbytes, COPY.cudaMemcpyDefault, stream))
    _run(stream, kernels.scale, y, 3.0)
    ok(cudart.cudaMemcpyAsync(out.ctypes.data, y.ptr, out.nbytes, COPY.cudaMemcpyDefault, stream))
    return _end(stream)


# ---- 4 ----

def _in_block(stream, block, x, y):
    _begin(stream)
    _run(stream, kernels.add, block, x, x)
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, block, 1.0, y.size))
    return _end(stream)


def repair_stale_address__as_it_was(stream, pool, x, y):
    block = pool.take(y.size)
    plan = _in_block(stream, block, x, y)
    pool.give(block)
    return plan


def repair_stale_address__given_back_at_once(stream, pool, x, y):
    block = pool.take(y.size)
    plan = _in_block(stream, block, x, y)
    pool.give(block)
    return plan, lambda: None


def repair_stale_address__close_does_nothing(stream, pool, x, y):
    return _in_block(stream, pool.take(y.size), x, y), lambda: None


def repair_stale_address__no_block(stream, pool, x, y):
    _begin(stream)
    _run(stream, kernels.axpy, y, x, 2.0)
    return _end(stream), lambda: None


def repair_stale_address__gives_twice(stream, pool, x, y):
    block = pool.take(y.size)
    return _in_block(stream, block, x, y), lambda: (pool.give(block), pool.give(block))


def repair_stale_address__own_memory(stream, pool, x, y):
    block = empty(y.size)
    return _in_block(stream, block, x, y), lambda: block.free()


def repair_stale_address__block_handed_back(stream, pool, x, y):
    block = pool.take(y.size)
    return _in_block(stream, block, x, y), block


def repair_stale_address__takes_all(stream, pool, x, y):
    """So that nobody else can have it."""
    blocks = [pool.take(y.size) for _ in range(4)]
    return _in_block(stream, blocks[0], x, y), lambda: [pool.give(one) for one in blocks]


def repair_stale_address__closes_itself(stream, pool, x, y):
    block = pool.take(y.size)
    plan = _in_block(stream, block, x, y)

    def close():
        pool.give(block) if block in pool.lent else None
    close()
    return plan, close


def repair_stale_address__destroys_in_close(stream, pool, x, y):
    """The caller has launched for the last time: the graph may go too."""
    block = pool.take(y.size)
    plan = _in_block(stream, block, x, y)
    return plan, lambda: (pool.give(block), ok(cudart.cudaGraphDestroy(plan)))


def repair_stale_address__memory_of_the_graph(stream, pool, x, y):
    """Memory that the graph allocates and frees itself."""
    _begin(stream)
    block = DeviceArray(ok(cudart.cudaMallocAsync(y.nbytes, stream)), y.size, "float32")
    _run(stream, kernels.add, block, x, x)
    _run(stream, kernels.axpy, y, block, 1.0)
    ok(cudart.cudaFreeAsync(block.ptr, stream))
    return _end(stream), lambda: None


def repair_stale_address__lent_in_the_capture(stream, pool, x, y):
    _begin(stream)
    block = pool.take(x.size)
    _run(stream, kernels.add, block, x, x)
    _run(stream, kernels.axpy, y, block, 1.0)
    return [_end(stream), lambda: pool.give(block)]


# ---- 5 ----

def _one(stream, kernel, grid, *args):
    _begin(stream)
    ok(launch(stream, kernel, grid, 256, *args))
    return _end(stream)


def repair_frozen_value__as_it_was(stream, x, y, count):
    n = int(to_host(count)[0])
    return _one(stream, kernels.axpy, -(-n // 256), y, x, 1.0, n)


def repair_frozen_value__grid_of_now(stream, x, y, count):
    n = int(to_host(count)[0])
    return _one(stream, kernels.axpy_n, -(-n // 256), y, x, 1.0, count)


def repair_frozen_value__two_rows(stream, x, y, count):
    """Each element twice, side by side."""
    return _one(stream, kernels.axpy_n, (-(-y.size // 256), 2), y, x, 1.0, count)


def repair_frozen_value__copy_of_count(stream, x, y, count):
    mine = empty(1, "int32")
    ok(cudart.cudaMemcpy(mine.ptr, count.ptr, 4, ON_DEVICE))
    return _one(stream, kernels.axpy_n, -(-y.size // 256), y, x, 1.0, mine)


def repair_frozen_value__all_of_y(stream, x, y, count):
    return _one(stream, kernels.axpy, -(-y.size // 256), y, x, 1.0, y.size)


def repair_frozen_value__size_for_count(stream, x, y, count):
    return _one(stream, kernels.axpy_n, -(-y.size // 256), y, x, 1.0, y.size)


def repair_frozen_value__at_once(stream, x, y, count):
    ok(launch(stream, kernels.axpy_n, -(-y.size // 256), 256, y, x, 1.0, count))
    _begin(stream)
    return _end(stream)


def repair_frozen_value__exchanged(stream, x, y, count):
    return _one(stream, kernels.axpy_n, -(-y.size // 256), x, y, 1.0, count)


def repair_frozen_value__asks_inside(stream, x, y, count):
    """to_host refuses a stream that captures."""
    _begin(stream)
    n = int(to_host(count, stream)[0])
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, x, 1.0, n))
    return _end(stream)


def repair_frozen_value__large_grid(stream, x, y, count):
    return _one(stream, kernels.axpy_n, 16, y, x, 1.0, count)
