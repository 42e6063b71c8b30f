# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 13 · Allocate inside
#
# Work that needs a block for a moment can take it inside the graph: each launch allocates, uses and frees it. Goes with
# lesson 08; about 8 minutes.

# %%
from labkit import cudart, ok, launch, kernels, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## Part 1: a scratch block
#
# `x` and `y` are buffers of one size. Capture on `stream`: allocate a block of as many bytes as `x` has; `add`, block = x + y;
# `axpy`, y += 2 block; free the block. So y becomes 3 y + 2 x, and `x` stays. Kernels take the block's address, an int, like a buffer.
# Return the graph.

# %%
def scratch(stream, x, y):
    """Capture y += 2 (x + y) by way of a block of the graph's own. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    n, grid = x.size, -(-x.size // 256)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    block = ok(cudart.cudaMallocAsync(x.nbytes, stream))
    ok(launch(stream, kernels.add, grid, 256, block, x, y, n))
    ok(launch(stream, kernels.axpy, grid, 256, y, block, 2.0, n))
    ok(cudart.cudaFreeAsync(block, stream))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(scratch)

# %%
# hint(scratch)          # three of them, one at a time

# %% [markdown]
# ## Part 2: a block that stays
#
# Capture on `stream`: allocate a block for `count` floats and `fill` it with `value`; no free. Return the graph *and* the address, in
# this order. The check launches the graph, reads the block at that address, frees it and launches again.

# %%
def kept_block(stream, count, value):
    """Capture a block of count floats, filled with value and kept. Returns: the cudaGraph_t and the address, an int."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    block = ok(cudart.cudaMallocAsync(4 * count, stream))
    ok(launch(stream, kernels.fill, -(-count // 256), 256, block, value, count))
    return ok(cudart.cudaStreamEndCapture(stream)), block
    ### END SOLUTION

# %%
check(kept_block)

# %%
# hint(kept_block)

# %%
progress()
