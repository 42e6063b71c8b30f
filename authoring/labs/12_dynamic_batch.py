# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 12 · Dynamic batch
#
# Batches of changing sizes wait to be served, and each wants forty small kernels. A graph has one
# size. Lesson 07 knows eight ways out; build the one that is fast here. Goes with lesson 07; about
# 15 minutes.

# %%
from labkit import cudart, ok, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## Part 1: the sizes are known
#
# `work(batch)`, a function you get, queues forty kernels on `stream`, for the first `batch` items of a buffer only.
# `sizes` lists the sizes that will come, as ints. Prepare what you like. Then return a function `serve`: `serve(batch)`
# queues the work of one batch on `stream`, for any of the sizes, in any order. It need not wait, and returns nothing.

# %% [markdown]
# While batches are served, `work` must not be called any more: everything was captured before. And on a GPU the check
# times it. A batch may take at most **twice** as long as a launch of one fixed executable, that of the largest size.
#
# Which of the ways of lesson 07 prepares nothing when a batch comes, and leaves the other items alone?

# %%
def serving(stream, work, sizes):
    """Prepare for batches of these sizes. Returns: a function serve(batch) that queues the work of one batch on the stream."""
    ### BEGIN SOLUTION
    ready = {}
    for size in sizes:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        work(size)
        graph = ok(cudart.cudaStreamEndCapture(stream))
        ready[size] = ok(cudart.cudaGraphInstantiate(graph, 0))
        ok(cudart.cudaGraphDestroy(graph))

    def serve(batch):
        ok(cudart.cudaGraphLaunch(ready[batch], stream))
    return serve
    ### END SOLUTION

# %%
check(serving)

# %%
# hint(serving)          # three of them, one at a time

# %% [markdown]
# ## Part 2: the sizes are not known
#
# Now nobody says which sizes will come. Return a `serve(batch)` that captures the work of a size when it comes first, keeps its
# executable, and only launches it from then on. So `work` is called once for each size, in a capture, and not before it
# comes. For known sizes the mark on a GPU is the same: twice a fixed replay.

# %% [markdown]
# Every call of `cache` starts with no executables: what an earlier one kept belongs to another stream and other work.

# %%
def cache(stream, work):
    """Serve batches of any size, with an executable for each, made at first use. Returns: a function serve(batch)."""
    ### BEGIN SOLUTION
    ready = {}

    def serve(batch):
        if batch not in ready:
            ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
            work(batch)
            graph = ok(cudart.cudaStreamEndCapture(stream))
            ready[batch] = ok(cudart.cudaGraphInstantiate(graph, 0))
            ok(cudart.cudaGraphDestroy(graph))
        ok(cudart.cudaGraphLaunch(ready[batch], stream))
    return serve
    ### END SOLUTION

# %%
check(cache)

# %%
# hint(cache)

# %% [markdown]
# A cache like this one grows with every new size. Exercise 24 bounds it.

# %%
progress()
