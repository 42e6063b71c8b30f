# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 · Whole-graph update
#
# Ten nodes with new values are ten setters, and you must know each node. Is there one call for the whole
# graph? A text that this course grew from says no: destroy the executable and instantiate again.
# There is one. What does it accept, what does it refuse, and what does it cost?

# %%
from labkit import cudart, ok, LabError, kernels, kernel_params, launch, to_device, to_host, graph, exec_update, predict, measure, recorded, recover, draw

# %% [markdown]
# ## Capture again, then update
#
# `record` captures calls, each written as a tuple: the function, then its arguments. The graph here
# clears `y` and adds `a * x`. **Predict:** the executable was made with `a = 1`, and is updated from
# a second graph, with `a = 100`. What do the two replays leave in `y`?

# %%
import numpy as np
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
UP, DOWN = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
host = np.arange(4, dtype=np.float32)
x, y, z = to_device(host), to_device(np.zeros(4, np.float32)), to_device(np.zeros(4, np.float32))

def record(*calls):
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    for call, *arguments in calls:
        ok(call(*arguments))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["nbval-check-output"]
def add(a=1.0, to=y, grid=1, block=4):
    return launch, stream, kernels.axpy, grid, block, to, x, a, 4

def replay(executable):
    ok(cudart.cudaGraphLaunch(executable, stream))
    return to_host(y, stream)

clear = cudart.cudaMemsetAsync, y.ptr, 0, 16, stream
executable = ok(cudart.cudaGraphInstantiate(record(clear, add(1.0)), 0))
print(replay(executable), "as it was made")
print(cudart.cudaGraphExecUpdate(executable, record(clear, add(100.0)))[0].name)
print(replay(executable), "updated")

# %% [markdown]
# The same executable, with new values. The second graph was only read: CUDA paired its nodes with those
# of the executable and took over what they say.
#
# ## What may change?
#
# Below are eight changes of a graph with three nodes, and then five more. **Predict:** how many of the
# thirteen does the update accept?

# %%
guess = predict("How many of the thirteen changes are accepted?", None, unit="changes")

# %%
copy = cudart.cudaMemcpyAsync, x.ptr, host.ctypes.data, 16, UP, stream
old = [clear, copy, add()]
changes = {"another number": [clear, copy, add(a=5.0)],
           "another buffer": [clear, copy, add(to=z)],
           "another grid": [clear, copy, add(grid=8)],
           "another block": [clear, copy, add(block=128)],
           "another kernel": [clear, copy, (launch, stream, kernels.fill, 1, 4, y, 5.0, 4)],
           "memset: another value": [(cudart.cudaMemsetAsync, y.ptr, 1, 16, stream), copy, add()],
           "memset: half the size": [(cudart.cudaMemsetAsync, y.ptr, 0, 8, stream), copy, add()],
           "memcpy: half the size": [clear, (cudart.cudaMemcpyAsync, x.ptr, host.ctypes.data, 8, UP, stream), add()]}

# %%
forms = {"one node more": [clear, copy, add(), add()],
         "one node fewer": [clear, copy],
         "memset for the kernel": [clear, copy, clear],
         "two nodes swapped": [copy, clear, add()],
         "memcpy turned round": [clear, (cudart.cudaMemcpyAsync, host.ctypes.data, x.ptr, 16, DOWN, stream), add()]}

def answers(calls):
    executable = ok(cudart.cudaGraphInstantiate(record(*old), 0))
    update = cudart.cudaGraphExecUpdate(executable, record(*calls))[0]
    return {"update": update, "then, launch": cudart.cudaGraphLaunch(executable, stream)[0]}

# %% tags=["expects-figure"]
table = {name: answers(calls) for name, calls in {**changes, **forms}.items()}
draw.answers(table, "What cudaGraphExecUpdate answers")

# %% tags=["nbval-check-output"]
for name, codes in table.items():
    print(f"{name:26}", *(f"{int(code):4}" for code in codes.values()))
guess.against(sum(int(codes["update"]) == 0 for codes in table.values()));

# %% [markdown]
# What a node *does* may change, even its kernel. What the graph *is* may not: which nodes, of which
# kind, in which order, and which way a copy goes. And whatever was refused, the launch still works.
#
# ## Why was it refused?
#
# 910 says *that*, and not *why*. C++ gets a reason beside the code. Python gets this:

# %% tags=["nbval-check-output"]
executable = ok(cudart.cudaGraphInstantiate(record(*old), 0))
code, reason = cudart.cudaGraphExecUpdate(executable, record(*forms["two nodes swapped"]))
print(int(code), code.name, reason)

# %% [markdown]
# The bindings drop the reason when the call fails. labkit's `exec_update` asks the driver and brings it
# back: a word, and the node of the *new* graph where CUDA stopped.

# %% tags=["nbval-check-output"]
for name, calls in forms.items():
    code, why = exec_update(executable, record(*calls))
    print(f"{name:26} {int(code)} {why.result:17} node {why.position}")

# %% [markdown]
# Another number of nodes names no node: there is none to blame. In the swap it is node 1. CUDA begins
# with the last nodes and walks back along the edges, and that is the first pair that does not fit.

# %% tags=["expects-figure"]
before, after = record(*old), record(*forms["two nodes swapped"])
code, why = exec_update(executable, after)
draw.difference(before, after, at=why)

# %% [markdown]
# ## Is the executable harmed?
#
# **Predict** the four lines: what does a replay after a refusal leave in `y`, and does the next update
# work?

# %% tags=["nbval-check-output"]
try:
    ok(exec_update(executable, record(*forms["memset for the kernel"])))
except LabError as error:
    print(error.means)
print(replay(executable), "as before")
ok(exec_update(executable, record(clear, copy, add(5.0))))
print(replay(executable), "updated")

# %% [markdown]
# All or nothing. So a program can try an update, and instantiate only when it is refused.
#
# ## What does it cost?
#
# Four ways to give `n` kernels another size, in grid and element count: set each node, update from a graph
# captured before, capture and update, capture and instantiate. **Predict:** how many times as long
# as the second does the last take?

# %%
ratio = predict("A thousand kernels: capture and instantiate anew, against one update?", None, unit="times")

# %%
from types import SimpleNamespace
u, v = to_device(np.ones(1024, np.float32)), to_device(np.zeros(1024, np.float32))

def chain(batch, n):
    return record(*[(launch, stream, kernels.axpy, batch, 128, v, u, 1.0, 128 * batch)] * n)

def prepare(n):
    graphs = {batch: chain(batch, n) for batch in (4, 8)}
    parameters = {batch: kernel_params(kernels.axpy, batch, 128, v, u, 1.0, 128 * batch) for batch in graphs}
    own = {way: ok(cudart.cudaGraphInstantiate(graphs[8], 0)) for way in ("set", "update", "recapture", "anew", "kept")}
    return SimpleNamespace(graphs=graphs, nodes=graph.nodes(graphs[8]), parameters=parameters, **own)

# %%
def unchanged(made, batch, n):
    ok(cudart.cudaGraphLaunch(made.kept, stream))
    yield "launch"

def node_updates(made, batch, n):
    new = made.parameters[batch]
    codes = [cudart.cudaGraphExecKernelNodeSetParams(made.set, node, new) for node in made.nodes]
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.set, stream))
    yield "launch"
    for code in codes:                   # the clock has stopped
        ok(code)

# %%
def cached_update(made, batch, n):
    ok(cudart.cudaGraphExecUpdate(made.update, made.graphs[batch]))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.update, stream))
    yield "launch"

def recapture(made, batch, n):
    fresh = chain(batch, n)
    ok(cudart.cudaGraphExecUpdate(made.recapture, fresh))
    ok(cudart.cudaGraphDestroy(fresh))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.recapture, stream))
    yield "launch"

# %%
def reinstantiate(made, batch, n):
    fresh, old = chain(batch, n), made.anew
    made.anew = ok(cudart.cudaGraphInstantiate(fresh, 0))
    ok(cudart.cudaGraphExecDestroy(old))
    ok(cudart.cudaGraphDestroy(fresh))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.anew, stream))
    yield "launch"

ways = {"node updates": node_updates, "cached ExecUpdate": cached_update,
        "re-capture + ExecUpdate": recapture, "re-instantiate": reinstantiate, "unchanged": unchanged}
costs = [measure("whole update", ways, setup=prepare, stream=stream, vary={"batch": [4, 8]}, n=n) for n in (10, 100, 1000)]
costs[0]

# %% tags=["expects-figure"]
last = costs[-1].stages
if not costs[-1].missing:
    ratio.against(last["re-instantiate"]["prepare"].median / last["cached ExecUpdate"]["prepare"].median)
draw.stages(costs, of=[*((way, "prepare") for way in list(ways)[:4]), ("cached ExecUpdate", "launch"), ("unchanged", "launch")],
            label="kernels in the graph")

# %% [markdown]
# All grow with the number of nodes; the slopes differ. An update is cheaper than a new executable. It
# is also dearer than it looks, since the next launch pays too: compare its line with that of an *unchanged*
# executable. And capturing again is as many calls as the work itself.

# %% [markdown]
# ## What was claimed
#
# The text behind this course gives figures for ten kernels. Here they stand beside those of your GPU,
# and beside a C++ program's, recorded on an H200.

# %% tags=["expects-figure"]
cpp = recorded("c++ changing a graph", nodes=10)
draw.claims([
    draw.Claim("ten node updates", 2, 3, note="a new size in each", measured=[
        ("here", costs[0], "node updates", "prepare"),
        ("C++", recorded("c++ ten updates", values="changing"), "c++", "prepare")]),
    draw.Claim("ten kernels instantiated again", 50, 100, note="with a capture, and the old one destroyed", measured=[
        ("here", costs[0], "re-instantiate", "prepare"), ("C++", cpp, "re-instantiate", "prepare")]),
    draw.Claim("a whole update takes milliseconds", 1000, None, note="cudaGraphExecUpdate, graph captured before", measured=[
        ("here", costs[0], "cached ExecUpdate", "prepare"), ("C++", cpp, "cached ExecUpdate", "prepare"),
        ("a thousand kernels", costs[-1], "cached ExecUpdate", "prepare")]),
    draw.Claim("cudaGraphExecNodeReplace swaps a node", verdict=hasattr(cudart, "cudaGraphExecNodeReplace"))])

# %% [markdown]
# ## Take with you
#
# - Same nodes, same kinds, same edges: one call updates them all.
# - A refusal says 910. Ask `exec_update` why; the executable is as it was.
# - An update costs now and again at the next launch.
#
# Next, lesson 07: a batch that is never the same size twice.
