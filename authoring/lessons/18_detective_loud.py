# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 18 · Detective cases, loud
#
# Eight programs, modelled on public reports. A code appears, seldom where the fault is. Name the
# **class**, the **first code** that was not `cudaSuccess`, whoever got it, and the guilty **line**; then
# repair the program in its cell until it keeps what its docstring says. Leave alive what it returns.
#
# Your first tool: `watch` says at which line a capture broke.

# %%
from labkit import cudart, ok, LabError, kernels, launch, to_device, graph, film, watch, explain, cases, recover

# %%
import numpy as np
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
DEVICE_TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
y = to_device(np.ones(4, np.float32))
with watch(stream) as seen:
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 1, 4, y, 2.0, 4))
    cudart.cudaMalloc(4096)                       # nobody looks at its code
    launch(stream, kernels.scale, 1, 4, y, 3.0, 4)
    answer = cudart.cudaStreamEndCapture(stream)

# %% [markdown]
# The end says 901: broken before. `watch` names the line that broke it; `explain` says what its code
# means, what usually causes it and what to do.
#
# `cases.watch("01", case_01)` runs a case under `watch`. `cases.hint("01")` asks you up to three
# questions, `cases.kinds()` lists the class words, `cases.progress()` says what is solved. The film shows
# the example once more.

# %% tags=["expects-figure"]
print("the end of the capture:", answer[0].name)
print(explain(seen))
with film(stream) as reel:
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 1, 4, y, 2.0, 4))
    cudart.cudaMalloc(4096)
    cudart.cudaStreamEndCapture(stream)

recover(stream)
reel.show()

# %% [markdown]
# ## Case 01: the progress bar
#
# A program with a progress bar. Captured, its last launch is refused: the capture was broken before. No
# earlier line complained.

# %%
def case_01(stream, y, x):
    """Returns the graph: y = 2 * y, then y = y + x."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    busy, = cudart.cudaStreamQuery(stream)        # for the progress bar; "not ready" is fine too
    cases.show("busy" if int(busy) else "done")
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("01", case_01, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 02: only in the service
#
# In the notebook it works. In the service the capture breaks in the middle of the model. The service has
# a watchdog thread that asks now and then whether an event is done.

# %%
def case_02(stream, y, model):
    """Returns the graph: the model, then y = y / 2. model(stream) queues kernels, slowly: (code,)."""
    ok(model(stream))                             # warm up
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(model(stream))
    ok(launch(stream, kernels.scale, 8, 256, y, 0.5, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("02", case_02, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 03: the second request
#
# The first request is answered and right. The second launch of the same executable answers 1.

# %%
def case_03(stream, y, x):
    """Returns (graph, executable): y = y + 2 * x at each launch."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work = ok(cudart.cudaMallocAsync(x.nbytes, stream))
    ok(cudart.cudaMemcpyAsync(work, x.ptr, x.nbytes, DEVICE_TO_DEVICE, stream))
    ok(launch(stream, kernels.scale, 8, 256, work, 2.0, x.size))
    ok(launch(stream, kernels.axpy, 8, 256, y, work, 1.0, x.size))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))

# %% tags=["nbval-check-output"]
verdict = cases.check("03", case_03, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 04: joined, one can see it
#
# A second stream does half of the work. Every call succeeds but the last: the end of the capture is
# refused. The join is there, one can see it.

# %%
def case_04(stream, side, fork, join, y, x):
    """Returns the graph: y = 2 * y beside x = 3 * x + 1; then y = y + x. fork, join: events."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaEventRecord(fork, stream)), ok(cudart.cudaStreamWaitEvent(side, fork, 0))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    ok(launch(side, kernels.scale, 8, 256, x, 3.0, x.size))
    ok(cudart.cudaEventRecord(join, side))
    ok(launch(side, cases.shift, 8, 256, x, 1.0, x.size))
    ok(cudart.cudaStreamWaitEvent(stream, join, 0))
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("04", case_04, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 05: one float more
#
# Tested with a thousand floats, and all is well. With 1025 floats, instantiating the graph answers 1, and
# the graph is blamed.

# %%
def case_05(stream, y, x):
    """Returns (graph, executable): y = 2 * y, then y = y + x, for buffers of any size."""
    cudart.cudaStreamBeginCapture(stream, GLOBAL)
    launch(stream, kernels.scale, 1, y.size, y, 2.0, y.size)
    launch(stream, kernels.axpy, 1, y.size, y, x, 1.0, y.size)
    code, graph = cudart.cudaStreamEndCapture(stream)
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))

# %% tags=["nbval-check-output"]
verdict = cases.check("05", case_05, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 06: how long did it take?
#
# The result is right. Asked for the time between the two events, CUDA refuses, and does not say why.

# %%
def case_06(stream, start, stop, y):
    """Returns the graph: y = 2 * y. After each launch the events tell how long the kernel took."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaEventRecord(start, stream))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    ok(cudart.cudaEventRecord(stop, stream))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("06", case_06, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 07: nobody destroys anything
#
# The first capture works, each later one is lost in its middle. No line of the program destroys anything.

# %%
def case_07(stream, y, x, held):
    """Puts a new Step in held["step"]: y = 2 * y, then y = y + x, for these buffers."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    held["step"] = None                           # the old one was for other buffers
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    held["step"] = cases.Step(graph)              # its executable goes when nobody holds the Step

# %% tags=["nbval-check-output"]
verdict = cases.check("07", case_07, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 08: two teams, one graph
#
# One team has a graph and its executable, the other captures its own work after it. Launched one after
# the other both work; captured together they don't.

# %%
def case_08(stream, y, x, part, executable):
    """part, executable: a graph that doubles y. Returns one graph: the same, then y = y + x."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(launch(stream, kernels.axpy, 8, 256, y, x, 1.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("08", case_08, kind=None, code=None, line=None)

# %%
cases.progress()
