# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · Fork and join
#
# One stream gives a chain. Real work has parts that do not need each other. Two streams and two
# events turn into a graph with branches, and nobody writes down an edge. What makes a stream part of
# a capture, and how does it get out again?

# %%
from labkit import cudart, ok, LabError, kernels, launch, to_device, to_host, graph, draw, film, predict, recover

# %%
import numpy as np
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
a, b, c = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(3))
fork, join, old = (ok(cudart.cudaEventCreate()) for _ in range(3))
both, left, right, spare = (to_device(np.zeros(4, dtype=np.float32)) for _ in range(4))

# %% [markdown]
# ## A diamond
#
# Stream *b* waits for an event of *a*: the **fork**. Each then works by itself. At last *a* waits for
# an event of *b*: the **join**. **Predict:** four kernels, two records, two waits. How many edges?

# %%
guess = predict("How many edges?", None, unit="edges")

# %%
with film(a) as reel:
    ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
    ok(launch(a, kernels.fill, 1, 4, both, 1.0, 4))
    ok(cudart.cudaEventRecord(fork, a))
    ok(cudart.cudaStreamWaitEvent(b, fork, 0))
    ok(launch(a, kernels.axpy, 1, 4, left, both, 2.0, 4))
    ok(launch(b, kernels.axpy, 1, 4, right, both, 3.0, 4))
    ok(cudart.cudaEventRecord(join, b))
    ok(cudart.cudaStreamWaitEvent(a, join, 0))
    ok(launch(a, kernels.add, 1, 4, both, left, right, 4))
    diamond = ok(cudart.cudaStreamEndCapture(a))

# %% tags=["expects-figure"]
reel.show()

# %% tags=["nbval-check-output"]
print(graph.kinds(diamond))
print(graph.edges(diamond))
guess.against(len(graph.edges(diamond)));

# %% [markdown]
# Four nodes and four edges. Recording an event and waiting for it added no node. They only moved the
# point that the next node of a stream has to follow.

# %% [markdown]
# ## Is it still right?
#
# Whatever order the GPU picks for the two branches, `both` must come out as `left + right`.
# **Predict** the two lines before you run.

# %% tags=["nbval-check-output"]
executable = ok(cudart.cudaGraphInstantiate(diamond, 0))
for _ in range(2):
    ok(cudart.cudaGraphLaunch(executable, a))
    print(to_host(left, a)[0], "+", to_host(right, a)[0], "=", to_host(both, a)[0])

# %% [markdown]
# ## What makes a stream part of a capture?
#
# You began the capture on *a*. Nobody told *b*. Ask both after each step: the status (*None* is
# CUDA's word for not capturing), and whether they are in the same capture.

# %% tags=["nbval-check-output"]
def show(step):
    at_a, at_b = graph.capture_state(a), graph.capture_state(b)
    print(f"{step:18} a {at_a.status:7} b {at_b.status:7} same capture: {at_a.id == at_b.id != 0}")

ok(cudart.cudaStreamBeginCapture(a, GLOBAL)); show("begin on a")
ok(launch(a, kernels.fill, 1, 4, both, 1.0, 4)); show("kernel on a")
ok(cudart.cudaEventRecord(fork, a)); show("record on a")
ok(cudart.cudaStreamWaitEvent(b, fork, 0)); show("b waits")
ok(cudart.cudaStreamEndCapture(a)); show("end on a")

# %% [markdown]
# The *wait* draws a stream in, not the record. And *b* left with the end, although it never joined:
# it had queued no work, so nothing was lost.

# %% [markdown]
# ## Forgetting the join
#
# Now *b* does work that nobody waits for. **Predict:** which call fails, the launch on *b*, or the end?

# %% tags=["nbval-check-output"]
def forked():
    ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
    ok(launch(a, kernels.fill, 1, 4, both, 1.0, 4))
    ok(cudart.cudaEventRecord(fork, a))
    ok(cudart.cudaStreamWaitEvent(b, fork, 0))
    return launch(b, kernels.fill, 1, 4, right, 3.0, 4)[0]

print("launch on b", forked().name)
unjoined = cudart.cudaStreamEndCapture(a)
print("end        ", unjoined[0].name, unjoined[1])
print("afterwards ", graph.capture_state(a).status, graph.capture_state(b).status)

# %% [markdown]
# The end, and the whole graph is gone. CUDA does not say which stream was left behind. Both streams
# are free again, so you can simply capture once more, this time with the join.

# %% tags=["nbval-check-output"]
forked()
ok(cudart.cudaEventRecord(join, b))
ok(cudart.cudaStreamWaitEvent(a, join, 0))
print(graph.edges(ok(cudart.cudaStreamEndCapture(a))))

# %% [markdown]
# ## Three more ways to lose it
#
# End on the stream that was drawn in. Wait for an event from before the capture. Let two captures
# meet. Each loses the capture in its own way.

# %%
def end_on_the_wrong_stream():
    forked()
    return cudart.cudaStreamEndCapture(b)[0]

def wait_for_an_old_event():
    ok(cudart.cudaEventRecord(old, c))
    ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
    return cudart.cudaStreamWaitEvent(a, old, 0)[0]

# %%
def let_two_captures_meet():
    ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
    ok(cudart.cudaEventRecord(fork, a))
    ok(cudart.cudaStreamBeginCapture(b, GLOBAL))
    return cudart.cudaStreamWaitEvent(b, fork, 0)[0]

launched, end = forked(), cudart.cudaStreamEndCapture(a)[0]
table = {"work, and no join": {"the mistake": launched, "then, end on a": end}}
for mistake in (end_on_the_wrong_stream, wait_for_an_old_event, let_two_captures_meet):
    code = mistake()
    end = cudart.cudaStreamEndCapture(a)[0]
    table[mistake.__name__.replace("_", " ")] = {"the mistake": code, "then, end on a": end}
    recover(a, b)

# %% tags=["expects-figure"]
draw.answers(table, "Four ways to lose a forked capture")

# %% tags=["nbval-check-output"]
for mistake, codes in table.items():
    print(f"{mistake:26}", *(f"{code.name:32}" for code in codes.values()))

# %% [markdown]
# ## A wide fork
#
# One event can fork many streams, and one stream can join them all: three branches out of one kernel
# and back into one. The event `join` is used twice; a wait means the record before it.

# %% tags=["nbval-check-output"]
ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
ok(launch(a, kernels.fill, 1, 4, both, 1.0, 4))
ok(cudart.cudaEventRecord(fork, a))
for branch, buffer in zip((a, b, c), (left, right, spare)):
    ok(cudart.cudaStreamWaitEvent(branch, fork, 0))
    ok(launch(branch, kernels.axpy, 1, 4, buffer, both, 1.0, 4))
for branch in (b, c):
    ok(cudart.cudaEventRecord(join, branch))
    ok(cudart.cudaStreamWaitEvent(a, join, 0))
ok(launch(a, kernels.scale, 1, 4, both, 2.0, 4))
wide = ok(cudart.cudaStreamEndCapture(a))
print(graph.edges(wide))

# %% tags=["expects-figure"]
draw.graph(wide)

# %% [markdown]
# ## An event that is a node
#
# An ordinary captured record is a point in the graph, so outside it has no meaning: asking it is an
# error. With `cudaEventRecordExternal` the record becomes a node, and really happens at each replay.

# %% tags=["nbval-check-output"]
ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
ok(cudart.cudaEventRecord(fork, a))
ok(cudart.cudaEventRecordWithFlags(join, a, cudart.cudaEventRecordExternal))
marked = ok(cudart.cudaStreamEndCapture(a))
print(graph.kinds(marked))
print("the captured event ", cudart.cudaEventQuery(fork)[0].name)
ok(cudart.cudaGraphLaunch(ok(cudart.cudaGraphInstantiate(marked, 0)), a))
print("the external event ", cudart.cudaEventSynchronize(join)[0].name)

# %% [markdown]
# ## Take with you
#
# - A stream enters a capture by *waiting* for one of its events.
# - Record and wait make edges, not nodes.
# - Every branch with work must come back to the stream that began.
#
# With this you can record a graph of any shape. What it costs to make one is the next question.
