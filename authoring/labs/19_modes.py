# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 19 · Modes
#
# A capture can be lost through a call in another thread. First the capture makes room for such a thread; then a thread excuses
# itself. Goes with lesson 12; about 10 minutes.

# %%
from labkit import cudart, ok, check, hint, progress

# %%
MODES = {mode.name.removeprefix("cudaStreamCaptureMode"): mode for mode in cudart.cudaStreamCaptureMode}
print(*MODES)

# %% [markdown]
# ## Part 1: a thread that you cannot change
#
# `work(stream)` queues kernels. `helper()` wakes another thread, which allocates with `cudaMalloc`, and waits until it has. Capture on
# `stream`: `work`, then `helper`, then `work` again; the last two while you still capture. Return the graph.

# %% [markdown]
# The capture must live. But you do not want to allow everything: if *your own* thread made such a call in the capture, CUDA shall
# refuse it, so that you hear of it. Your thread's own mode stays as it is.

# %%
def beside_a_helper(stream, work, helper):
    """Capture work(stream), helper() and work(stream) once more. Returns: the cudaGraph_t, with the nodes of both calls of work."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, MODES["ThreadLocal"]))
    work(stream)
    helper()
    work(stream)
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(beside_a_helper)

# %%
# hint(beside_a_helper)          # three of them, one at a time

# %% [markdown]
# ## Part 2: a thread that excuses itself
#
# Now the thread is yours, and the capture is somebody's. `call` is a function without arguments that makes unsafe calls. Call it once,
# with this thread's own mode set to Relaxed, and return what it returned. Afterwards the mode is what it was *before* you came,
# whichever that was; also when `call` raises. Its exception passes on.

# %%
def in_relaxed(call):
    """Call call() while this thread's own mode is Relaxed, then put the mode back. Returns: what call() returned."""
    ### BEGIN SOLUTION
    before = ok(cudart.cudaThreadExchangeStreamCaptureMode(MODES["Relaxed"]))
    try:
        return call()
    finally:
        ok(cudart.cudaThreadExchangeStreamCaptureMode(before))
    ### END SOLUTION

# %%
check(in_relaxed)

# %%
# hint(in_relaxed)

# %%
progress()
