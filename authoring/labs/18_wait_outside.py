# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 18 · Wait outside
#
# Two programs that waited and asked while they captured. Each is given as it broke; write it anew, so that it works. Goes with
# lesson 11; about 8 minutes.

# %%
from labkit import cudart, ok, launch, kernels, graph, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
TO_HOST = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost

def run(stream, kernel, y, *args):                 # launch over all elements of y
    ok(launch(stream, kernel, -(-y.size // 256), 256, y, *args, y.size))

# %% [markdown]
# ## Part 1: two waits
#
# It waits twice in the capture: 900. (Don't run it, it leaves a capture open.) `host` is a NumPy array in pinned memory, as long as
# `y` and `x`.

# %%
def broken_wait(stream, y, x, host):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    run(stream, kernels.scale, y, 2.0)
    ok(cudart.cudaStreamSynchronize(stream))       # y must be doubled before x is added
    run(stream, kernels.axpy, y, x, 1.0)
    ok(cudart.cudaMemcpyAsync(host.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
    ok(cudart.cudaStreamSynchronize(stream))       # the numbers must be there before they are read
    plan = ok(cudart.cudaStreamEndCapture(stream))
    executable, numbers = ok(cudart.cudaGraphInstantiate(plan, 0)), host.copy()
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), numbers)[1]

# %% [markdown]
# Write it so that it returns the graph of its three nodes and a function `step`. `step()`, without arguments, launches the graph
# once on `stream` and hands back the numbers of *this* launch: a copy of `host`, a NumPy array of its own. Other work may be ahead in
# the stream. Until `step` is called, launch nothing.

# %%
def wait_outside(stream, y, x, host):
    """Capture y = 2 y + x and the copy of y to host. Returns: the cudaGraph_t (keep it), and step."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    run(stream, kernels.scale, y, 2.0)
    run(stream, kernels.axpy, y, x, 1.0)
    ok(cudart.cudaMemcpyAsync(host.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
    plan = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))

    def step():
        ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaStreamSynchronize(stream))
        return host.copy()
    return plan, step
    ### END SOLUTION

# %%
check(wait_outside)

# %%
# hint(wait_outside)          # three of them, one at a time

# %% [markdown]
# ## Part 2: a question
#
# This one asks whether the work is done, in the middle of the capture: 900 again. And could the answer be of any use later?
# `work(stream)` queues a few kernels and returns nothing.

# %%
def broken_question(stream, work):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(stream)
    code, = cudart.cudaStreamQuery(stream)         # is it done?
    plan = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    def start():
        ok(cudart.cudaGraphLaunch(executable, stream))
    def done():
        return not int(code)
    return start, done

# %% [markdown]
# Capture `work` once, launch nothing yet, and return two functions without arguments. `start()` launches it once and does not wait. `done()` says
# whether everything in the stream has run by now: `True` or `False`, at once, without waiting. "Not ready" (600) is an answer and no
# failure.

# %%
def ask_outside(stream, work):
    """Capture work(stream). Returns: start and done, two functions, in this order."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(stream)
    plan = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))

    def start():
        ok(cudart.cudaGraphLaunch(executable, stream))

    def done():
        code, = cudart.cudaStreamQuery(stream)
        return int(code) == 0
    return start, done
    ### END SOLUTION

# %%
check(ask_outside)

# %%
# hint(ask_outside)

# %%
progress()
