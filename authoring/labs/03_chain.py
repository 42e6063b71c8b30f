# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 03 · A chain
#
# All that one stream gets between begin and end becomes a chain: each node waits for the one before.
# Capture one from a loop, then go through a graph's whole life. Goes with lesson 02; about 5 minutes.

# %%
from labkit import cudart, ok, launch, kernels, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

def blocks(n):
    """How many blocks of 256 threads cover n elements."""
    return -(-n // 256)

# %% [markdown]
# ## Part 1: a memset and some kernels
#
# Capture: a memset of the whole of `y` to 0 (`cudaMemsetAsync`, which counts bytes: `y.nbytes`), then for each factor
# in `factors`, in order, one `kernels.axpy`, y += factor x. Whatever is in y before a launch, after it there is
# the sum of factor x. Nothing may run yet. Return the graph.

# %%
def chain(stream, y, x, factors):
    """Capture y = 0, then y += factor x for each factor. y, x: buffers of one size; factors: list of floats. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    for factor in factors:
        ok(launch(stream, kernels.axpy, blocks(y.size), 256, y, x, factor, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(chain)

# %%
# hint(chain)          # three of them, one at a time

# %% [markdown]
# ## Part 2: so many times
#
# Let y grow by `times` · x: capture a graph with **one** kernel (`kernels.axpy`, y += 1.0 x), instantiate it once, and
# launch it `times` times. Wait until all of it has finished, and destroy what you made: the executable and the graph.

# %%
def n_times(stream, y, x, times):
    """y += x, by so many launches of one graph. y, x: buffers of one size; times: int, at least 1. Returns nothing."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, blocks(y.size), 256, y, x, 1.0, y.size))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    for _ in range(times):
        ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(graph))
    ### END SOLUTION

# %%
check(n_times)

# %%
# hint(n_times)

# %%
progress()
