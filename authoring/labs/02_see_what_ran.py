# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 02 · See what ran
#
# A capture says nothing of what it holds, and nothing of what slipped past it. Write two functions
# that look. Goes with lesson 02; about 5 minutes.

# %%
from labkit import cudart, ok, graph, to_host, check, hint, progress

# %%
import numpy as np
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## Part 1: what is in it?
#
# `work` is a function: `work(stream)` queues memsets, kernels and copies on that stream. Capture one call of it and
# return the kinds of the nodes as a list of words, such as `["Memset", "Kernel", "Kernel"]`, as `graph.kinds` gives them.
# Nothing of the work may run. Destroy the graph.

# %%
def kinds_of(stream, work):
    """Capture work(stream) and see what became a node. Returns: a list of words, one a node."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(stream)
    captured = ok(cudart.cudaStreamEndCapture(stream))
    kinds = graph.kinds(captured)
    ok(cudart.cudaGraphDestroy(captured))
    return kinds
    ### END SOLUTION

# %%
check(kinds_of)

# %%
# hint(kinds_of)          # three of them, one at a time

# %% [markdown]
# ## Part 2: what slipped past it?
#
# Now `work` may do some things at once, during the capture: an ordinary copy, or a kernel in another stream, which
# may still be running when the capture ends. All it changes, at once or later, is the buffer `y`. Capture one call; return `True` if something ran at
# once, else `False`. Compare the values of `y`. Destroy the graph.

# %%
def left_out(stream, work, y):
    """Does work(stream) do something that is not in the graph? y: the buffer that it changes. Returns: True or False."""
    ### BEGIN SOLUTION
    before = to_host(y)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(stream)
    captured = ok(cudart.cudaStreamEndCapture(stream))
    ok(cudart.cudaGraphDestroy(captured))
    ok(cudart.cudaDeviceSynchronize())
    return bool(np.any(to_host(y) != before))
    ### END SOLUTION

# %%
check(left_out)

# %%
# hint(left_out)

# %%
progress()
