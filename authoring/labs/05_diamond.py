# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 05 · A diamond
#
# Two kernels that do not need one another may run side by side. In a capture, events say so. Build
# the smallest graph that forks and joins again. Goes with lesson 03; about 8 minutes.

# %%
from labkit import cudart, ok, launch, kernels, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## Part 1: four kernels
#
# Capture on `stream`: `fill` x with 1; then `axpy`, x += x, on the stream, and beside it `scale`, y *= 3, on the
# `helper`; then `add`, z = x + y, which waits for both. `fork` and `join` are events, `x`, `y`, `z` buffers of one
# size. Return the graph.

# %%
def diamond(stream, helper, fork, join, x, y, z):
    """Capture the diamond. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    n, grid = x.size, -(-x.size // 256)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.fill, grid, 256, x, 1.0, n))
    ok(cudart.cudaEventRecord(fork, stream))
    ok(cudart.cudaStreamWaitEvent(helper, fork, 0))
    ok(launch(stream, kernels.axpy, grid, 256, x, x, 1.0, n))
    ok(launch(helper, kernels.scale, grid, 256, y, 3.0, n))
    ok(cudart.cudaEventRecord(join, helper))
    ok(cudart.cudaStreamWaitEvent(stream, join, 0))
    ok(launch(stream, kernels.add, grid, 256, z, x, y, n))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(diamond)

# %%
# hint(diamond)          # three of them, one at a time

# %% [markdown]
# ## Part 2: a longer branch
#
# The same, but the helper has two kernels, one after the other: `scale` by 3, then `scale` by 2. `add` waits for
# the second. Write it out again: a second time is where it gets easy.

# %%
def long_branch(stream, helper, fork, join, x, y, z):
    """Capture the diamond with two kernels on its branch. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    n, grid = x.size, -(-x.size // 256)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.fill, grid, 256, x, 1.0, n))
    ok(cudart.cudaEventRecord(fork, stream))
    ok(cudart.cudaStreamWaitEvent(helper, fork, 0))
    ok(launch(stream, kernels.axpy, grid, 256, x, x, 1.0, n))
    ok(launch(helper, kernels.scale, grid, 256, y, 3.0, n))
    ok(launch(helper, kernels.scale, grid, 256, y, 2.0, n))
    ok(cudart.cudaEventRecord(join, helper))
    ok(cudart.cudaStreamWaitEvent(stream, join, 0))
    ok(launch(stream, kernels.add, grid, 256, z, x, y, n))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(long_branch)

# %%
# hint(long_branch)

# %%
progress()
