# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 25 · Capstone
#
# Serve a network. Requests of changing size arrive in host memory, two dense layers run on the GPU, the answers
# come back, and kernel by kernel is too slow. Everything from lessons 02 to 16 may be of use. Goes with
# lesson 07; about 30 minutes.

# %%
from labkit import cudart, ok, launch, kernels, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
UP = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
DOWN = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
FLOAT = 4                                          # bytes

# %% [markdown]
# ## The network
#
# All parts get `net`. A batch has `rows` rows, from 1 to `net.most`; each buffer has room for the most, and rows lie one after another.
#
# | | what it is |
# |---|---|
# | `net.inner`, `net.middle`, `net.cols` | floats of one row: of the input, between the layers, of the answer |
# | `net.x`, `net.hidden`, `net.out` | DeviceArrays of `most` rows of these three lengths |
# | `net.w1`, `net.w2` | DeviceArrays, the weights: `inner` × `middle` and `middle` × `cols` |
# | `net.host_in`, `net.host_out` | NumPy float32 arrays in pinned memory, of shape (`most`, `inner`) and (`most`, `cols`) |

# %% [markdown]
# ## Part 1: two layers
#
# Queue both layers on `stream` for the first `rows` rows: `hidden` = relu(`x` · `w1`), then `out` = `hidden` · `w2`, without a relu. Use
# `kernels.dense` with the arguments `y, x, w, rows, inner, cols, relu`: one thread makes one float of `y`, and the last argument is 1 or 0.
# Blocks of 256 threads. No waiting: the check runs your function in a capture.

# %%
def two_layers(stream, net, rows):
    """Queue the two layers for the first `rows` rows of net.x. Returns nothing."""
    ### BEGIN SOLUTION
    first, second = -(-rows * net.middle // 256), -(-rows * net.cols // 256)
    ok(launch(stream, kernels.dense, first, 256, net.hidden, net.x, net.w1, rows, net.inner, net.middle, 1))
    ok(launch(stream, kernels.dense, second, 256, net.out, net.hidden, net.w2, rows, net.middle, net.cols, 0))
    ### END SOLUTION

# %%
check(two_layers)

# %%
# hint(two_layers)          # three of them, one at a time

# %% [markdown]
# ## Part 2: captured
#
# Capture on `stream` what one batch of `rows` rows needs: copy the first `rows` rows of `net.host_in` to `net.x`, run both layers, copy
# the first `rows` rows of `net.out` to `net.host_out`. Four nodes in a row; rows after these stay as they are. The address of a NumPy
# array is its `.ctypes.data`. Return the graph.

# %%
def captured(stream, net, rows):
    """Capture the copy in, both layers and the copy out, for `rows` rows. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(net.x.ptr, net.host_in.ctypes.data, rows * net.inner * FLOAT, UP, stream))
    two_layers(stream, net, rows)
    ok(cudart.cudaMemcpyAsync(net.host_out.ctypes.data, net.out.ptr, rows * net.cols * FLOAT, DOWN, stream))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(captured)

# %%
# hint(captured)

# %% [markdown]
# ## Part 3: inference
#
# Return a function `infer(batch)`. `batch` is a NumPy float32 array of shape (rows, `net.inner`), of another size and with other numbers each
# time. It returns the answer, a NumPy array of its own of shape (rows, `net.cols`), which later batches do not change. The layers run on
# the GPU, on `stream` and in the buffers of `net`. Which sizes come, nobody knows before.

# %% [markdown]
# A size may cost something when it comes first. After that its batches launch executables that are there, and no kernels one by
# one. On a GPU the check times them against the same work queued in a plain stream, in the same run: yours must be at least **1.2
# times** as fast, from the call to the answer. Mind when a graph reads pinned memory (lesson 16).

# %%
def inference(stream, net):
    """Serve batches of any size. Returns: a function infer(batch) that returns the answers of one batch."""
    ### BEGIN SOLUTION
    ready = {}

    def infer(batch):
        rows = len(batch)
        if rows not in ready:
            ready[rows] = ok(cudart.cudaGraphInstantiate(captured(stream, net, rows), 0))
        net.host_in[:rows] = batch
        ok(cudart.cudaGraphLaunch(ready[rows], stream))
        ok(cudart.cudaStreamSynchronize(stream))
        return net.host_out[:rows].copy()
    return infer
    ### END SOLUTION

# %%
check(inference)

# %%
# hint(inference)

# %% [markdown]
# ## Part 4: new weights
#
# Training went on. `w1` and `w2` are NumPy float32 arrays of shape (`inner`, `middle`) and (`middle`, `cols`). From the next launch on, every
# executable that was ever made from `net` must use them. What was queued on `stream` before, and still waits for its turn, uses the
# old ones. Nothing is captured again and no executable is updated: you do not even know them.

# %% [markdown]
# The two arrays may change as soon as your function has returned. At times they are pageable memory, at times pinned.

# %%
def new_weights(stream, net, w1, w2):
    """Let all executables of the network use these weights. w1, w2: float32 arrays in host memory. Returns nothing."""
    ### BEGIN SOLUTION
    for buffer, weights in ((net.w1, w1), (net.w2, w2)):
        ok(cudart.cudaMemcpyAsync(buffer.ptr, weights.ctypes.data, buffer.nbytes, UP, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ### END SOLUTION

# %%
check(new_weights)

# %%
# hint(new_weights)

# %% [markdown]
# Copy, two kernels, copy: with a plain stream four calls a batch, with a graph one. What would be the next thing to make
# faster, and how would you find out?

# %%
progress()
