# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 07 · Ready
#
# An executable can be made, be ready, and be gone while its work still runs. Make one that is ready for its first
# launch, ask for flags, and let work outlive all that queued it. Goes with lesson 04; about 8 minutes.

# %%
from labkit import cudart, ok, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
UPLOAD = cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagUpload

# %% [markdown]
# ## Part 1: ready
#
# Make an executable of `graph` whose first launch will cost no more than a later one: instantiated, and uploaded in `stream`.
# Nothing may run. When you return it, the upload is over and the graph is destroyed: here it is yours.

# %%
def ready(stream, graph):
    """Make an executable that is ready, and destroy the graph. graph: a cudaGraph_t. Returns: the cudaGraphExec_t."""
    ### BEGIN SOLUTION
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphUpload(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphDestroy(graph))
    return executable
    ### END SOLUTION

# %%
check(ready)

# %%
# hint(ready)          # three of them, one at a time

# %% [markdown]
# ## Part 2: flags
#
# `flags` is a number, the sum of some flags of lesson 04's table, or 0. Instantiate with them; where `UPLOAD` is among them, the
# upload goes to `stream`. Return two things: the executable, and the number that `cudaGraphExecGetFlags` reads back
# from it. Leave the graph as it is.

# %%
def with_flags(stream, graph, flags):
    """Instantiate graph with these flags. flags: int. Returns: the cudaGraphExec_t, and its flags as CUDA reads them back (int)."""
    ### BEGIN SOLUTION
    params = cudart.cudaGraphInstantiateParams()
    params.flags = flags
    if flags & int(UPLOAD):
        params.uploadStream = stream
    executable = ok(cudart.cudaGraphInstantiateWithParams(graph, params))
    return executable, ok(cudart.cudaGraphExecGetFlags(executable))
    ### END SOLUTION

# %%
check(with_flags)

# %%
# hint(with_flags)

# %% [markdown]
# ## Part 3: gone before it is done
#
# `work(stream)` queues kernels. Capture one call of it in a non-blocking stream that you make, and launch the executable once in `queue`,
# which is busy. Do **not** wait for anything. When you return, graph, executable and your stream are destroyed, and the work
# gets done all the same. Return nothing.

# %%
def outlive(queue, work):
    """Queue work as one launch, and leave nothing else behind. queue: a stream, not to capture in. Returns nothing."""
    ### BEGIN SOLUTION
    own = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    ok(cudart.cudaStreamBeginCapture(own, GLOBAL))
    work(own)
    graph = ok(cudart.cudaStreamEndCapture(own))
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    ok(cudart.cudaGraphDestroy(graph))
    ok(cudart.cudaStreamDestroy(own))
    ok(cudart.cudaGraphLaunch(executable, queue))
    ok(cudart.cudaGraphExecDestroy(executable))
    ### END SOLUTION

# %%
check(outlive)

# %%
# hint(outlive)

# %%
progress()
