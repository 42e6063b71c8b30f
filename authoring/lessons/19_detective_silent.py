# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 · Detective cases, silent
#
# Eight more, and nobody sees an error. The code to name is 0, unless a call was refused and nobody
# looked.
#
# Where no code points to a line, ask the graph: what is in it, and what was each node told? First a sound
# program, so that you know how one looks.

# %%
from labkit import cudart, ok, LabError, kernels, launch, launched, to_device, to_host, graph, draw, watch, explain, cases, recover

# %%
import numpy as np
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
TO_DEVICE, TO_HOST = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
y, table = to_device(np.ones(4, np.float32)), np.arange(4, dtype=np.float32)
with watch(stream) as seen:
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(y.ptr, table.ctypes.data, table.nbytes, TO_DEVICE, stream))
    ok(launch(stream, kernels.scale, 1, 4, y, 3.0, 4))
    recorded = ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["expects-figure", "nbval-check-output"]
print(graph.kinds(recorded), graph.edges(recorded))
copy, kernel = graph.nodes(recorded)
print("the kernel was told:", *launched(kernel).args[1:])
draw.graph(recorded, labels=["table to y", "scale by 3"])

# %% [markdown]
# Two calls, two nodes, one edge, and the number that was meant. `watch` reports what was left out of a
# capture, and `seen.frozen` lists the numbers that it keeps.
#
# In a silent case one of these is not what you think: how many nodes there are, what they were told, or
# whose memory lies at the address. Who changes it, and when is it read? Now yours.

# %% [markdown]
# ## Case 09: the missing bias
#
# No error. The bias was seen to be added once, during the capture. In every launch it is missing.

# %%
def case_09(stream, y, bias):
    """Returns the graph: y = 2 * y, then y = y + bias."""
    def add_bias(y, bias, stream=0):
        return launch(stream, kernels.axpy, 8, 256, y, bias, 1.0, y.size)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    ok(add_bias(y, bias))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("09", case_09, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 10: the loss that stays
#
# No error. The loss never changes after the first batch, whatever is fed.

# %%
def case_10(stream, y, batch):
    """Returns (graph, feed): after feed(new) a launch makes y = 2 * new."""
    x = to_device(batch)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.add, 8, 256, y, x, x, y.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    def feed(new):
        nonlocal x
        x = to_device(new)
    return recorded, feed

# %% tags=["nbval-check-output"]
verdict = cases.check("10", case_10, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 11: yesterday's table
#
# No error, and the first launch is right. After the caller has gone on with his own work, the same launch
# gives his new numbers.

# %%
def case_11(stream, y, table):
    """Returns the graph: y = 2 * table, the table (NumPy) as it is now. The caller uses his array again."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(y.ptr, table.ctypes.data, table.nbytes, TO_DEVICE, stream))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("11", case_11, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 12: the learning rate
#
# No error. The learning rate is lowered in each epoch, and the training goes on as if it were not.

# %%
def case_12(stream, w, grad):
    """Returns (graph, executable, set_rate): after set_rate(r) each launch makes w = w + r * grad."""
    rate = [1.0]
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, 8, 256, w, grad, rate[0], w.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    def set_rate(r):
        rate[0] = r
    return recorded, ok(cudart.cudaGraphInstantiate(recorded, 0)), set_rate

# %% tags=["nbval-check-output"]
verdict = cases.check("12", case_12, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 13: the same noise
#
# No error, and good noise. But it is the same noise in every launch; a new process gives other noise.

# %%
def case_13(stream, y):
    """Returns the graph: each launch fills y with noise from 0 to 1 that was not there before."""
    seed = int(np.random.randint(2 ** 30))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, cases.noise, 8, 256, y, seed, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
verdict = cases.check("13", case_13, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 14: four times the last
#
# No error. Four batches, four results, and all four are the last one's.

# %%
def case_14(stream, executable, x, y, batches):
    """executable: y = 2 * x. Returns a list: the y of each batch."""
    results = []
    for batch in batches:
        ok(cudart.cudaMemcpyAsync(x.ptr, batch.ctypes.data, batch.nbytes, TO_DEVICE, stream))
        ok(cudart.cudaGraphLaunch(executable, stream))
        results.append(y)
    ok(cudart.cudaStreamSynchronize(stream))
    return [to_host(result) for result in results]

# %% tags=["nbval-check-output"]
verdict = cases.check("14", case_14, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 15: a log of zeros
#
# No error is seen. The function is called at each launch, and what it logs is always 0.

# %%
def case_15(stream, y, log):
    """Returns the graph: y = 2 * y, then y[0] is added to the list log, at each launch."""
    first = np.zeros(1, np.float32)
    def note():
        cudart.cudaMemcpy(first.ctypes.data, y.ptr, 4, TO_HOST)
        log.append(float(first[0]))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    cases.host_node(recorded, note)               # calls note() after all other nodes
    return recorded

# %% tags=["nbval-check-output"]
verdict = cases.check("15", case_15, kind=None, code=None, line=None)

# %% [markdown]
# ## Case 16: the count that was set
#
# No error: the setter succeeds each time. Yet every launch doubles all of y, whatever count was set.

# %%
def case_16(stream, y):
    """Returns (graph, executable, set_count): after set_count(n) a launch doubles the first n of y."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 8, 256, y, 2.0, y.size))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    executable = ok(cudart.cudaGraphInstantiate(recorded, 0))
    node, = graph.nodes(recorded)
    def set_count(n):
        ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={2: n})))
    return recorded, executable, set_count

# %% tags=["nbval-check-output"]
verdict = cases.check("16", case_16, kind=None, code=None, line=None)

# %%
cases.progress()
