# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 24 · A graph per shape
#
# A library that allocates at its first call, and a service that meets one shape after another. Warm up before the capture; keep
# the executables that are in use, and no more than that. Goes with lesson 17; about 15 minutes.

# %%
from labkit import cudart, ok, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## Part 1: warm up
#
# `library(buffer, stream)` doubles every float of `buffer`. At its first call *for a stream and a size* it takes a workspace with
# `cudaMalloc`, and a Global capture refuses that (900). Later calls use the workspace again.
#
# Capture one call of it for `y` on `stream`, mode GLOBAL, and return the graph.

# %% [markdown]
# The warm-up is real work: it doubles what it is given. `y` must have its numbers still when your function returns. `spare` is a buffer
# of the same size as `y`, of which nobody needs the numbers.

# %%
def warm(stream, library, y, spare):
    """Capture library(y, stream) after a warm-up; y stays as it is. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    library(spare, stream)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    library(y, stream)
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(warm)

# %%
# hint(warm)          # three of them, one at a time

# %% [markdown]
# ## Part 2: not more than so many
#
# `work(shape)` queues the work for a shape, a whole number, on `stream`. Return a function `serve(shape)` that launches it as an executable, once on
# `stream`. It is captured and instantiated when the shape comes and there is no executable for it; else it is only launched.
#
# But there are never more than `most` executables (at least 1).

# %% [markdown]
# | a shape comes | `serve` does |
# |---|---|
# | its executable is there | launches it |
# | it is not there, and there are fewer than `most` | captures, instantiates, launches |
# | it is not there, and there are `most` | destroys the one that was not *used* for longest, then as above |
#
# Used means launched. A graph is destroyed no later than its executable. Every call of the outer function starts with no executables. (Write
# the calls out, `cudart.cudaGraphExecDestroy`: the check listens for them.)

# %%
def shapes(stream, work, most):
    """Serve shapes with at most `most` executables at once, the least recently used dropped first. Returns: a function serve(shape)."""
    ### BEGIN SOLUTION
    kept = {}                                      # the one used last stands last

    def serve(shape):
        if shape not in kept:
            if len(kept) == most:
                ok(cudart.cudaGraphExecDestroy(kept.pop(next(iter(kept)))))
            ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
            work(shape)
            graph = ok(cudart.cudaStreamEndCapture(stream))
            kept[shape] = ok(cudart.cudaGraphInstantiate(graph, 0))
            ok(cudart.cudaGraphDestroy(graph))
        kept[shape] = kept.pop(shape)
        ok(cudart.cudaGraphLaunch(kept[shape], stream))
    return serve
    ### END SOLUTION

# %%
check(shapes)

# %%
# hint(shapes)

# %% [markdown]
# An executable that still runs may be destroyed: CUDA frees it when it is done. But no destroying while a Global capture is open: that is refused,
# and the capture is lost.

# %%
progress()
