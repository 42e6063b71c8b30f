# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 20 · Five broken captures
#
# Five short programs from the field. One says 904, the others say nothing at all and are wrong. Each is given as it broke: read it, say
# what is wrong, write it anew. Lessons 11 to 16 have all you need, lesson 16 most. About 20 minutes.

# %%
from labkit import cudart, ok, launch, kernels, to_host, graph, check, hint, progress

# %%
GLOBAL, COPY = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal, cudart.cudaMemcpyKind
TO_DEVICE, TO_HOST, ON_DEVICE = COPY.cudaMemcpyHostToDevice, COPY.cudaMemcpyDeviceToHost, COPY.cudaMemcpyDeviceToDevice

def run(stream, kernel, y, *args):                 # launch over all elements of y
    ok(launch(stream, kernel, -(-y.size // 256), 256, y, *args, y.size))

def after(stream, other, event):                   # what comes to stream now waits for what other holds now
    ok(cudart.cudaEventRecord(event, other))
    ok(cudart.cudaStreamWaitEvent(stream, event, 0))

# %% [markdown]
# ## 1 · Unjoined
#
# Four buffers of one size. `x` is filled; on `left` y grows by x, then on `right` z by the new y; meanwhile `stream` triples w, and adds
# z to it in the end. The capture ends with 904. Return a graph in which `add` waits for everything it
# needs, and `scale` still for `fill` alone.

# %%
def broken_unjoined(stream, left, right, event, w, x, y, z):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    run(stream, kernels.fill, x, 1.0)
    after(left, stream, event)
    run(left, kernels.axpy, y, x, 1.0)
    after(right, left, event)
    run(right, kernels.axpy, z, y, 1.0)
    run(stream, kernels.scale, w, 3.0)
    after(stream, left, event)
    run(stream, kernels.add, w, w, z)
    return ok(cudart.cudaStreamEndCapture(stream))

# %%
def repair_unjoined(stream, left, right, event, w, x, y, z):
    """Capture the five kernels, all streams joined. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    run(stream, kernels.fill, x, 1.0)
    after(left, stream, event)
    run(left, kernels.axpy, y, x, 1.0)
    after(right, left, event)
    run(right, kernels.axpy, z, y, 1.0)
    run(stream, kernels.scale, w, 3.0)
    after(stream, right, event)
    run(stream, kernels.add, w, w, z)
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(repair_unjoined)

# %%
# hint(repair_unjoined)          # three of them, one at a time

# %% [markdown]
# ## 2 · The zero
#
# At each launch y shall become 0, then 2 x; z gets a copy of it; then y is tripled. There is no error, and the first launch looks
# about right. `stream` is non-blocking.

# %%
def broken_legacy_stream(stream, x, y, z):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, 0))
    run(stream, kernels.axpy, y, x, 2.0)
    ok(cudart.cudaMemcpyAsync(z.ptr, y.ptr, y.nbytes, ON_DEVICE, 0))
    run(stream, kernels.scale, y, 3.0)
    return ok(cudart.cudaStreamEndCapture(stream))

# %%
def repair_legacy_stream(stream, x, y, z):
    """Capture all four steps, in this order. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    run(stream, kernels.axpy, y, x, 2.0)
    ok(cudart.cudaMemcpyAsync(z.ptr, y.ptr, y.nbytes, ON_DEVICE, stream))
    run(stream, kernels.scale, y, 3.0)
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(repair_legacy_stream)

# %%
# hint(repair_legacy_stream)

# %% [markdown]
# ## 3 · The old news
#
# `news` and `out` are NumPy arrays in pinned memory, as long as y. The caller writes into `news` before each launch, and reads three
# times that in `out` when the launch is over. He finds the same numbers for ever.

# %%
def broken_sync_copy(stream, news, y, out):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpy(y.ptr, news.ctypes.data, y.nbytes, TO_DEVICE))
    run(stream, kernels.scale, y, 3.0)
    ok(cudart.cudaMemcpy(out.ctypes.data, y.ptr, y.nbytes, TO_HOST))
    return ok(cudart.cudaStreamEndCapture(stream))

# %%
def repair_sync_copy(stream, news, y, out):
    """Capture: y gets the news, y is tripled, out gets y. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(y.ptr, news.ctypes.data, y.nbytes, TO_DEVICE, stream))
    run(stream, kernels.scale, y, 3.0)
    ok(cudart.cudaMemcpyAsync(out.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(repair_sync_copy)

# %%
# hint(repair_sync_copy)

# %% [markdown]
# ## 4 · Somebody's block
#
# `pool.take(count)` lends a block of so many floats, a DeviceArray; `pool.give(block)` takes it back, for whoever asks next. The graph
# makes 2 x in a block and adds that to y. It worked for days; now somebody else finds strange numbers in his block.

# %%
def broken_stale_address(stream, pool, x, y):
    block = pool.take(y.size)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    run(stream, kernels.add, block, x, x)
    run(stream, kernels.axpy, y, block, 1.0)
    plan = ok(cudart.cudaStreamEndCapture(stream))
    pool.give(block)                               # the capture is over
    return plan

# %% [markdown]
# Return the graph, and a function `close` without arguments, which the caller calls when the last launch is over. Afterwards the pool
# must have all its blocks again; before that it must not get a block that a launch may still use. The memory comes from the pool, or
# the graph allocates it itself (lesson 09).

# %%
def repair_stale_address(stream, pool, x, y):
    """Capture block = x + x, y += block, in a block that stays the graph's own. Returns: the cudaGraph_t, and close."""
    ### BEGIN SOLUTION
    block = pool.take(y.size)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    run(stream, kernels.add, block, x, x)
    run(stream, kernels.axpy, y, block, 1.0)
    plan = ok(cudart.cudaStreamEndCapture(stream))

    def close():
        pool.give(block)
    return plan, close
    ### END SOLUTION

# %%
check(repair_stale_address)

# %%
# hint(repair_stale_address)

# %% [markdown]
# ## 5 · The count
#
# `count` is a buffer on the device with one `int32`. The caller writes a number into it before each launch, from 0 to the size of y;
# only so many elements of y shall grow by x. It is always the number from the capture. Use `kernels.axpy_n(y, x, a, n_ptr)`, which is
# `axpy` with a pointer in place of the number. One node is enough.

# %%
def broken_frozen_value(stream, x, y, count):
    n = int(to_host(count)[0])
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, -(-n // 256), 256, y, x, 1.0, n))
    return ok(cudart.cudaStreamEndCapture(stream))

# %%
def repair_frozen_value(stream, x, y, count):
    """Capture y += x for the first elements, as many as count says at the launch. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy_n, -(-y.size // 256), 256, y, x, 1.0, count))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(repair_frozen_value)

# %%
# hint(repair_frozen_value)

# %%
progress()
