# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 01 · The first graph
#
# Capture one kernel, and run the recording as often as somebody asks. These are the first steps of
# every graph. Goes with lesson 00; about 3 minutes.

# %%
from labkit import cudart, ok, launch, kernels, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

def blocks(n):
    """How many blocks of 256 threads cover n elements."""
    return -(-n // 256)

# %% [markdown]
# ## Part 1: capture
#
# You get a stream and two buffers of one size, `y` and `x`. Capture one launch of `kernels.axpy`, y += 2 x, over
# all `y.size` elements: `blocks(y.size)` blocks of 256 threads, arguments `y, x, 2.0, y.size`. Nothing may run
# yet. Return the graph.

# %%
def capture_one(stream, y, x):
    """Capture one launch of axpy, y += 2 x. y, x: buffers of y.size floats. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, blocks(y.size), 256, y, x, 2.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(capture_one)

# %%
# hint(capture_one)          # three of them, one at a time

# %% [markdown]
# ## Part 2: replay
#
# You get a graph that somebody else has captured. Make **one** executable of it, launch that `times` times in
# `stream`, and wait until all of it has finished (`cudaStreamSynchronize` waits for a stream). Then destroy the executable
# with `cudaGraphExecDestroy`. Leave the graph alone: it is not yours.

# %%
def replay(stream, graph, times):
    """Run graph so many times and wait. graph: a cudaGraph_t, times: int, at least 1. Returns nothing."""
    ### BEGIN SOLUTION
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    for _ in range(times):
        ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ### END SOLUTION

# %%
check(replay)

# %%
# hint(replay)

# %%
progress()
