# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 14 · Keep it alive
#
# A graph keeps addresses, not owners. When your function returns, its local variables go, and with them the memory that the graph
# reads. Let the graph hold the owner. Goes with lesson 14; about 10 minutes.

# %%
from labkit import cudart, ok, launch, kernels, keep_alive, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
UP = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice

# %% [markdown]
# ## Part 1: numbers that only the graph has
#
# `tensor(values)` copies an array to the GPU and returns a Tensor. Its `.block` is the DeviceArray. When Python lets go of the Tensor,
# the block goes to whoever asks next. Call it *before* the capture.
#
# Capture `axpy`, y += 1.0 block, over all of `y`. Return the graph and nothing else; it must hold the Tensor.

# %%
def keep_buffer(stream, y, values, tensor):
    """Capture y += values, the values in a Tensor that the graph holds. values: as many floats as y has. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    mine = tensor(values)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, mine.block, 1.0, y.size))
    plan = ok(cudart.cudaStreamEndCapture(stream))
    keep_alive(plan, mine)
    return plan
    ### END SOLUTION

# %%
check(keep_buffer)

# %%
# hint(keep_buffer)          # three of them, one at a time

# %% [markdown]
# ## Part 2: a batch in host memory
#
# `pinned()` lends pinned host memory for `y.size` floats. It returns the owner; `owner.array` shows the memory as a NumPy array but does
# not hold the owner. The array's address is `array.ctypes.data`.
#
# Capture one `cudaMemcpyAsync` from the array to `y`. Return the graph and the array: the caller writes a new batch into it before each launch.

# %%
def pinned_batch(stream, y, pinned):
    """Capture a copy of pinned memory into y; the graph holds the owner. Returns: the cudaGraph_t and the array, in this order."""
    ### BEGIN SOLUTION
    owner = pinned()
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(y.ptr, owner.array.ctypes.data, y.nbytes, UP, stream))
    plan = ok(cudart.cudaStreamEndCapture(stream))
    keep_alive(plan, owner)
    return plan, owner.array
    ### END SOLUTION

# %%
check(pinned_batch)

# %%
# hint(pinned_batch)

# %%
progress()
