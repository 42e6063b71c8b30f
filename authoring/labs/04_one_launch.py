# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 04 · One launch
#
# Somebody's function queues many small kernels. Make one launch of all of them, and see that it
# is faster. Then cut them into graphs of a given size. Goes with lesson 01; about 6 minutes.

# %%
from labkit import cudart, ok, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## Part 1: all in one
#
# `work(stream)` queues 200 small kernels on the stream that it is given. Capture one call of it, and return the
# executable. Nothing may run before somebody launches that. Destroy the graph with `cudaGraphDestroy`: the executable does not
# need it. On a GPU the check measures: the plain stream must take at least 1.5 times as long.

# %%
def one_launch(stream, work):
    """Make one launch of all that work(stream) queues. Returns: the cudaGraphExec_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(stream)
    graph = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphDestroy(graph))
    return executable
    ### END SOLUTION

# %%
check(one_launch)

# %%
# hint(one_launch)          # three of them, one at a time

# %% [markdown]
# ## Part 2: in pieces
#
# `steps` is a list of functions. Each, called as `step(stream)`, queues one kernel. No graph may have more than `most` nodes.
# Return a list of executables that, launched one after another, do all steps in order, in each graph too: as few as can be, three for
# 7 steps and `most` 3. Nothing may run yet. Destroy the graphs.

# %%
def in_pieces(stream, steps, most):
    """Capture steps in graphs of at most `most` nodes. steps: list of functions; most: int, at least 1. Returns: list of cudaGraphExec_t."""
    ### BEGIN SOLUTION
    executables = []
    for first in range(0, len(steps), most):
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        for step in steps[first:first + most]:
            step(stream)
        graph = ok(cudart.cudaStreamEndCapture(stream))
        executables.append(ok(cudart.cudaGraphInstantiate(graph, 0)))
        ok(cudart.cudaGraphDestroy(graph))
    return executables
    ### END SOLUTION

# %%
check(in_pieces)

# %%
# hint(in_pieces)

# %%
progress()
