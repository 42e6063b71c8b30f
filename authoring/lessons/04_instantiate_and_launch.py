# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Instantiate and launch: what does *ready* mean?
#
# A graph is a plan; what runs is an executable. So far one call turned one into the other, and you
# never asked what it does, what it costs, or when the result is really ready to go.

# %%
from labkit import cudart, ok, kernels, kernel_params, launch, to_device, to_host, graph, predict, measure, recover, draw

# %%
import numpy as np
stream, other = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
x = to_device(np.ones(1024, dtype=np.float32))
y = to_device(np.zeros(1024, dtype=np.float32))

def capture(n, on=stream):
    ok(cudart.cudaStreamBeginCapture(on, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    for _ in range(n):
        ok(launch(on, kernels.axpy, 4, 256, y, x, 1.0, 1024))
    return ok(cudart.cudaStreamEndCapture(on))

# %% [markdown]
# ## What does instantiation do?
#
# It reads the whole plan once, checks it, settles an order, and prepares each node's launch as far as
# it can. **Predict:** an edge from the last kernel back to the first closes a cycle. Which call
# refuses it: the one that adds the edge, or the instantiation?

# %% tags=["nbval-check-output"]
plan = capture(3)
first, middle, last = graph.nodes(plan)
graph.add_dependencies(plan, [last], [first])
print("edges      ", graph.edges(plan))
print("instantiate", cudart.cudaGraphInstantiate(plan, 0)[0].name)
params = cudart.cudaGraphInstantiateParams()
print("with params", cudart.cudaGraphInstantiateWithParams(plan, params)[0].name, params.result_out.name)
graph.remove_dependencies(plan, [last], [first])
print("no cycle   ", cudart.cudaGraphInstantiate(plan, 0)[0].name)

# %% [markdown]
# The instantiation: nobody looks at the plan as a whole before. The plain call says *invalid value*
# for whatever is wrong; `cudaGraphInstantiateWithParams` adds a reason.
#
# ## What does it cost?
#
# **Predict:** instantiating a graph of a thousand kernels, in microseconds?

# %%
guess = predict("Instantiating a thousand kernels?", None, unit="us")

# %% [markdown]
# The life of an executable has stages. A `yield` tells `measure` where one ends. Beside it, for
# comparison, one launch of an executable that is ready.

# %%
def ready(n):
    plan = capture(n)
    return plan, ok(cudart.cudaGraphInstantiate(plan, 0))

def life(made, n):
    plan = capture(n)
    yield "capture"
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    yield "instantiate"
    ok(cudart.cudaGraphExecDestroy(executable))
    yield "destroy"
    ok(cudart.cudaGraphDestroy(plan))           # after the last yield: not timed

# %%
def one_launch(made, n):
    ok(cudart.cudaGraphLaunch(made[1], stream))
    yield "launch"

lives = [measure("an executable's life", {"new": life, "ready": one_launch}, setup=ready, stream=stream, n=n)
         for n in (1, 10, 100, 1000)]
if not lives[-1].missing:
    guess.against(lives[-1].stages["new"]["instantiate"])
lives[1]

# %% tags=["expects-figure"]
draw.stages(lives, guess=guess, label="kernels in the graph")

# %% [markdown]
# To capture, to instantiate and to destroy costs something for every node. To launch hardly grows:
# a few times as much for a thousand times as many. That is the bargain: pay by the node once, then launch cheaply, often.
#
# ## The call in old texts
#
# Old texts write `cudaGraphInstantiate(&exec, graph, NULL, NULL, 0)`, which is CUDA 11. **Predict:**
# does Python answer with a CUDA code, or raise?

# %% tags=["nbval-check-output"]
try:
    cudart.cudaGraphInstantiate(None, plan, None, None, 0)
except TypeError as error:
    print("Python raised", type(error).__name__)
err, executable = cudart.cudaGraphInstantiate(plan, 0)
print(err.name)

# %% [markdown]
# Python refuses; CUDA never saw the call. Since CUDA 12 there are two arguments, the graph and flags,
# and the reason has moved to `WithParams`. (C++ headers still take the old form, and ignore the middle.)
#
# ## What are the flags?
#
# **Predict:** there are four. Which one does the plain call refuse?

# %% tags=["expects-figure"]
def with_params(flag):
    params = cudart.cudaGraphInstantiateParams()
    params.flags = int(flag)
    if flag == cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagUpload:
        params.uploadStream = stream
    return cudart.cudaGraphInstantiateWithParams(plan, params)

flags = {flag.name.removeprefix("cudaGraphInstantiateFlag"): flag for flag in cudart.cudaGraphInstantiateFlags}
table = {name: {"cudaGraphInstantiate": cudart.cudaGraphInstantiate(plan, int(flag)), "...WithParams": with_params(flag)}
         for name, flag in flags.items()}
draw.answers(table, "Which flags does an instantiation take?")

# %% tags=["nbval-check-output"]
for name, answers in table.items():
    plain, (code, executable) = answers.values()
    read = ok(cudart.cudaGraphExecGetFlags(executable))
    print(f"{name:16} {plain[0].name:22} {code.name}, asked for {int(flags[name])}, reads {read}")

# %% [markdown]
# | flag | what it is for |
# |---|---|
# | AutoFreeOnLaunch | a launch first frees what the last one allocated and kept; back in the lesson on graph memory |
# | Upload | send the executable to the GPU at once, on a stream; only the long form has a place for the stream |
# | DeviceLaunch | let a kernel launch it: kernels, copies and memsets only |
# | UseNodePriority | run each node with its own priority, not the launching stream's |
#
# The last row is accepted, and yet `cudaGraphExecGetFlags` reads 0. So does Upload: it is done, not kept.
#
# ## When is it ready?
#
# Instantiated is not uploaded: the first launch has to send the work to the GPU. **Predict:** ten
# kernels; how many times longer does the first launch call take than a later one?

# %%
dearer = predict("The first launch call against a later one?", None, unit="times")

# %%
def upload_first(made, n):
    executable = ok(cudart.cudaGraphInstantiate(made[0], 0))
    yield "instantiate"
    ok(cudart.cudaGraphUpload(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    yield "upload"
    ok(cudart.cudaGraphLaunch(executable, stream))
    yield "launch"
    ok(cudart.cudaGraphExecDestroy(executable))

# %%
def first_launch(made, n):
    executable = ok(cudart.cudaGraphInstantiate(made[0], 0))
    yield "instantiate"
    ok(cudart.cudaGraphLaunch(executable, stream))
    yield "launch"
    ok(cudart.cudaGraphExecDestroy(executable))

launches = [measure("first launch", {"new": first_launch, "uploaded": upload_first, "launched before": one_launch},
                    setup=ready, stream=stream, n=n) for n in (1, 10, 100, 1000)]
ten = launches[1]
if not ten.missing:
    dearer.against(ten.stages["new"]["launch"].median / ten.stages["launched before"]["launch"].median)
ten

# %% tags=["expects-figure"]
draw.stages(launches, of=[("new", "launch"), ("uploaded", "upload"), ("uploaded", "launch"), ("launched before", "launch")],
            label="kernels in the graph")

# %% [markdown]
# The first launch pays by the node too. `cudaGraphUpload` pays that earlier, at a moment of your
# choice, and runs nothing. So *ready* means instantiated **and** uploaded.
#
# ## What does an executable keep?
#
# **Predict:** the graph's kernel is changed after the instantiation, from 1.0 to 100.0. What does the
# old executable add?

# %% tags=["nbval-check-output"]
def result(executable):
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    ok(cudart.cudaGraphLaunch(executable, stream))
    return to_host(y, stream)[0]

plan = capture(1)
before = ok(cudart.cudaGraphInstantiate(plan, 0))
ok(cudart.cudaGraphKernelNodeSetParams(graph.nodes(plan)[0], kernel_params(kernels.axpy, 4, 256, y, x, 100.0, 1024)))
after = ok(cudart.cudaGraphInstantiate(plan, 0))
print("made before", result(before))
print("made after ", result(after))

# %% [markdown]
# The values that it was made from. A change of the graph reaches only what is instantiated later; to
# change the executable itself is lesson 05.
#
# ## One executable, two streams
#
# **Predict:** it is launched in a second stream while it may still run in the first. Refused, lost, or
# done twice?

# %% tags=["nbval-check-output"]
print("once ", result(before))
for queue in (stream, other):
    print(cudart.cudaGraphLaunch(before, queue)[0].name)
ok(cudart.cudaStreamSynchronize(other))
print("after", to_host(y, stream)[0])

# %% [markdown]
# Done twice: an executable never runs beside itself, the second run waits for the first. For two at a
# time, instantiate twice.
#
# ## Who must live how long?
#
# **Predict:** the graph goes first, then the stream that captured it, then the executable while it
# runs. Which of these does the work not survive?

# %% tags=["nbval-check-output"]
origin = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
plan = capture(3, origin)
executable = ok(cudart.cudaGraphInstantiate(plan, 0))
ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
print("destroy the graph     ", cudart.cudaGraphDestroy(plan)[0].name)
print("destroy its stream    ", cudart.cudaStreamDestroy(origin)[0].name)
print("launch                ", cudart.cudaGraphLaunch(executable, stream)[0].name)
print("destroy the executable", cudart.cudaGraphExecDestroy(executable)[0].name)
print("the work was done     ", to_host(y, stream)[0])
del plan, origin, executable                        # handles of what is gone

# %% [markdown]
# None: a launch that is queued finishes. What nobody may do is launch the destroyed executable again. On
# the H200 that gave *invalid value* many times and then a crash: a handle of what is gone is *undefined*.
# Drop the name with the object, as the last line does. Everything else still works:

# %% tags=["nbval-check-output"]
print(result(after))

# %% [markdown]
# ## Take with you
#
# - Instantiation checks the plan and costs by the node; it is worth it when you launch often.
# - Ready is instantiated *and* uploaded. The first launch uploads if you did not.
# - An executable keeps its own values, and needs neither the graph nor its stream to run.
#
# Next, lesson 05: the same graph, another number. Must all of it be made again?
