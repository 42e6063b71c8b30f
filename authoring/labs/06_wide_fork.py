# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 06 · A wide fork
#
# Two branches are a diamond. With a loop they become any number, and with two loops a tree. The streams
# only draw the graph: which of them runs what is forgotten. Goes with lesson 03; about 10 minutes.

# %%
from labkit import cudart, ok, launch, kernels, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

def blocks(n):
    """How many blocks of 256 threads cover n elements."""
    return -(-n // 256)

# %% [markdown]
# ## Part 1: as many branches as there are buffers
#
# Capture on `stream`: `scale`, x *= 2; then for each buffer of `outs` one `axpy`, out += 1.0 x, all side by side; then `fill` x with
# 0.0, when **every** branch has read x. `helpers` are `len(outs) - 1` streams: one branch stays on `stream`. `fork` and `join`
# are events, which you may record more than once. Return the graph.

# %%
def wide_fork(stream, helpers, fork, join, x, outs):
    """Capture scale, a branch for each of outs, fill. x, outs[k]: buffers of one size; two outs or more. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    n, grid = x.size, blocks(x.size)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, grid, 256, x, 2.0, n))
    ok(cudart.cudaEventRecord(fork, stream))
    for helper in helpers:
        ok(cudart.cudaStreamWaitEvent(helper, fork, 0))
    for branch, out in zip([stream, *helpers], outs):
        ok(launch(branch, kernels.axpy, grid, 256, out, x, 1.0, n))
    for helper in helpers:
        ok(cudart.cudaEventRecord(join, helper))
        ok(cudart.cudaStreamWaitEvent(stream, join, 0))
    ok(launch(stream, kernels.fill, grid, 256, x, 0.0, n))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(wide_fork)

# %%
# hint(wide_fork)          # three of them, one at a time

# %% [markdown]
# ## Part 2: a tree
#
# Add up 2, 4, 8 ... buffers; `buffers[0]` becomes the sum, the others may hold anything. First neighbours, all
# side by side: 0 += 1, 2 += 3, 4 += 5 ... Then 0 += 2, 4 += 6 ... And so on, until one is left.

# %% [markdown]
# Each sum is one `axpy`, y += 1.0 x, and waits only for the two sums that it adds. `helpers` are
# `len(buffers) // 2 - 1` streams: with `stream` one for each pair of the first round. There is one `event`; record it as often as
# you like. Return the graph.

# %%
def tree(stream, helpers, event, buffers):
    """Capture the sum of all buffers into buffers[0], in pairs. buffers: list of 2, 4, 8 ... of one size. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    streams, n, step = [stream, *helpers], buffers[0].size, 1
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaEventRecord(event, stream))
    for helper in helpers:
        ok(cudart.cudaStreamWaitEvent(helper, event, 0))
    while step < len(buffers):
        for k in range(0, len(buffers), 2 * step):
            left, right = streams[k // 2], streams[(k + step) // 2]
            ok(cudart.cudaEventRecord(event, right))
            ok(cudart.cudaStreamWaitEvent(left, event, 0))
            ok(launch(left, kernels.axpy, blocks(n), 256, buffers[k], buffers[k + step], 1.0, n))
        step *= 2
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(tree)

# %%
# hint(tree)

# %%
progress()
