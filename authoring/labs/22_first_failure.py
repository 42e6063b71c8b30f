# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 22 · First failure
#
# One refused call makes the next ones fail too, and the last error is seldom the reason. Find the first one. Then write the capture
# that ends whatever happens. Goes with lesson 15; about 8 minutes.

# %%
from labkit import cudart, ok, LabError, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
NOT_READY = cudart.cudaError_t.cudaErrorNotReady               # 600

# %% [markdown]
# ## Part 1: which call was it?
#
# `calls` is a list of pairs `(name, call)`. Each `call()` makes one CUDA call and returns its tuple: first the code, then none, one or
# more values. Several may have one name.
#
# Make the calls in order, each once, up to the first that fails, and none after it. Return a tuple: its name, and its code as
# the call gave it.

# %% [markdown]
# Where none fails, return `None`. `NOT_READY` is an answer and no failure.
#
# Afterwards `cudaGetLastError` must have nothing to tell, whatever was there before, and whether a call failed or not.
#
# Some failures come with a successful `cudaGetLastError`, and one may be left from long before. Which of the two sources do you trust?

# %%
def first_failure(calls):
    """Make the calls of [(name, call), ...] up to the first that fails. Returns: (name, code) of that one, or None; the last error is cleared."""
    ### BEGIN SOLUTION
    failed = None
    for name, call in calls:
        code = call()[0]
        if int(code) and code != NOT_READY:
            failed = (name, code)
            break
    cudart.cudaGetLastError()
    return failed
    ### END SOLUTION

# %%
check(first_failure)

# %%
# hint(first_failure)          # three of them, one at a time

# %% [markdown]
# ## Part 2: it always ends
#
# Capture what `work(stream)` queues on `stream`, and return the graph. Whatever happens, nothing is capturing afterwards, and a
# graph that nobody gets is destroyed.
#
# | what happens | what `guarded` does |
# |---|---|
# | `work` raises anything, an interrupt like `KeyboardInterrupt` too | passes on that same exception |
# | the begin or the end is refused | raises the LabError with that code |
# | the begin is refused | does not call `work` either |

# %%
def guarded(stream, work):
    """Capture work(stream), mode GLOBAL. Returns: the cudaGraph_t; or raises what went wrong, the capture ended."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    try:
        work(stream)
    except BaseException:
        left = cudart.cudaStreamEndCapture(stream)[1]
        if left is not None:
            ok(cudart.cudaGraphDestroy(left))
        raise
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(guarded)

# %%
# hint(guarded)

# %%
progress()
