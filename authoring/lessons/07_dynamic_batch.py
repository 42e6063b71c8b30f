# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · The dynamic batch
#
# A graph has one size. Real work has many: three requests now, eight the next time. The usual advice
# is to capture for the largest batch and to update the grid of every kernel. Is that the best way?
# Here are eight, a few lines each. Say which is fastest, then time them all.

# %%
from labkit import cudart, ok, kernels, launch, launched, to_device, to_host, graph, predict_order, measure, footprint, recover, draw

# %% [markdown]
# ## The case
#
# Batches of 1 to 8, at random. An item is 1024 floats, and ten small kernels go over all items of a
# batch. `ten_for_any_batch` is the same work, except that each kernel reads its size from device memory,
# from `now`. So its graph fits every batch.

# %%
import numpy as np
GLOBAL, UP = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
SIZES, MOST, ITEM = range(1, 9), 8, 1024
x, y = (to_device(np.ones(MOST * ITEM, dtype=np.float32)) for _ in range(2))
now, COUNT = to_device(np.zeros(1, dtype=np.int32)), np.arange(MOST + 1, dtype=np.int32)

# %%
def ten_kernels(batch):
    for _ in range(10):
        ok(launch(stream, kernels.axpy, batch * ITEM // 256, 256, y, x, 1.0, batch * ITEM))

def ten_for_any_batch():
    for _ in range(10):
        ok(launch(stream, kernels.axpy_n, MOST * ITEM // 256, 256, y, x, 1.0, now))

def record(work, *args):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(*args)
    return ok(cudart.cudaStreamEndCapture(stream))

# %% [markdown]
# ## Made once
#
# A graph and an executable for each size, one more executable for each way that changes it, and what
# each node needs at each size: `launched` reads it from the graphs. `counts` holds the sizes in
# pinned memory, from which they can be copied to `now`.

# %%
from types import SimpleNamespace
CHANGING = ["node updates", "cached ExecUpdate", "re-capture + ExecUpdate", "re-instantiate"]

def instantiate(recorded):
    return ok(cudart.cudaGraphInstantiate(recorded, 0))

def pinned(values):
    address = ok(cudart.cudaMallocHost(values.nbytes))
    ok(cudart.cudaMemcpy(address, values.ctypes.data, values.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToHost))
    return address

# %%
def prepare(work, for_any_batch, item):
    graphs, any_batch = {batch: record(work, batch) for batch in SIZES}, record(for_any_batch)
    nodes = graph.nodes(graphs[MOST])
    return SimpleNamespace(
        work=work, graphs=graphs, any_batch_graph=any_batch,
        updates={batch: [(node, launched(twin)) for node, twin in zip(nodes, graph.nodes(graphs[batch]))] for batch in SIZES},
        per_size={batch: instantiate(graphs[batch]) for batch in SIZES},
        own={way: instantiate(graphs[MOST]) for way in CHANGING},
        any_batch=instantiate(any_batch),
        counts=pinned(item * COUNT))

def small(batch=MOST):
    return prepare(ten_kernels, ten_for_any_batch, ITEM)

# %% [markdown]
# ## Four ways that change no graph
#
# Launch kernel by kernel. Keep one executable for each size. Always run the largest, and ignore
# what is too much. Or copy the size to the GPU, four bytes, and let the kernels look. Each `yield`
# ends a stage that is timed by itself.

# %%
def plain_stream(made, batch):
    made.work(batch)
    yield "launch"

def one_per_size(made, batch):
    ok(cudart.cudaGraphLaunch(made.per_size[batch], stream))
    yield "launch"

# %%
def pad(made, batch):
    ok(cudart.cudaGraphLaunch(made.per_size[MOST], stream))
    yield "launch"

def size_in_memory(made, batch):
    ok(cudart.cudaMemcpyAsync(now.ptr, made.counts + 4 * batch, 4, UP, stream))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.any_batch, stream))
    yield "launch"

# %% [markdown]
# ## Four ways that change one
#
# Set each node, from parameters that lie ready. Update the whole from a graph that lies ready. Capture
# again and update. Capture again and instantiate anew. What follows the last `yield` is not timed.

# %%
def node_updates(made, batch):
    executable = made.own["node updates"]
    answers = [cudart.cudaGraphExecKernelNodeSetParams(executable, node, p) for node, p in made.updates[batch]]
    yield "prepare"
    ok(cudart.cudaGraphLaunch(executable, stream))
    yield "launch"
    for answer in answers:               # ten codes, looked at when the clock has stopped
        ok(answer)

# %%
def cached_update(made, batch):
    ok(cudart.cudaGraphExecUpdate(made.own["cached ExecUpdate"], made.graphs[batch]))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.own["cached ExecUpdate"], stream))
    yield "launch"

def recapture(made, batch):
    fresh = record(made.work, batch)
    ok(cudart.cudaGraphExecUpdate(made.own["re-capture + ExecUpdate"], fresh))
    ok(cudart.cudaGraphDestroy(fresh))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.own["re-capture + ExecUpdate"], stream))
    yield "launch"

# %%
def reinstantiate(made, batch):
    fresh, old = record(made.work, batch), made.own["re-instantiate"]
    made.own["re-instantiate"] = instantiate(fresh)
    ok(cudart.cudaGraphExecDestroy(old))
    ok(cudart.cudaGraphDestroy(fresh))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made.own["re-instantiate"], stream))
    yield "launch"

ways = {"node updates": node_updates, "cached ExecUpdate": cached_update, "re-capture + ExecUpdate": recapture,
        "re-instantiate": reinstantiate, "plain stream": plain_stream, "one executable per size": one_per_size,
        "pad to the largest": pad, "size in device memory": size_in_memory}

# %% [markdown]
# ## First: is each of them right?
#
# Ten kernels add 1 each, so every float of the batch must be 10. Each way meets each size.

# %% tags=["nbval-check-output"]
def right(way, made, batch):
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    list(way(made, batch))               # from its start to its end
    return (to_host(y, stream)[:batch * ITEM] == 10).all()

made = small()
for name, way in ways.items():
    print(f"{name:24}", *("right" if right(way, made, batch) else "WRONG" for batch in SIZES))

# %% [markdown]
# ## Predict, then measure
#
# Which way is fastest, from the first call until the GPU has finished? Then sixty batches, never one
# size twice in a row, so that the value really changes. *Fixed replay* always runs the largest batch and
# changes nothing: the mark to reach.

# %%
order = predict_order("Ten small kernels, batch 1 to 8 at random: which way is fastest?", None, of=ways)

# %%
import random
dice, batches = random.Random(32), [8]
while len(batches) < 60:
    batches.append((batches[-1] + int(7 * dice.random())) % 8 + 1)
random_batch = measure("dynamic batch", {**ways, "fixed replay": pad}, setup=small, stream=stream,
                       vary={"batch": batches}, repeat=len(batches))
if not random_batch.missing:
    order.against(random_batch)
random_batch

# %% tags=["expects-figure"]
def one(made):
    return instantiate(made.graphs[MOST])

def one_for_any_batch(made):
    return instantiate(made.any_batch_graph)

def eight(made):
    return [instantiate(made.graphs[batch]) for batch in SIZES]

special = {"one executable per size": eight, "size in device memory": one_for_any_batch}
makers = {name: special.get(name, one) for name in ways if name != "plain stream"}
memory = footprint("dynamic batch", makers, setup=small, count=256)
draw.strategies(random_batch, memory, guess=order, reference="fixed replay")

# %% [markdown]
# The ways at the top prepare nothing, or four bytes. A way that changes a graph pays twice, in
# *prepare* and in the *next launch*. Ways that make many calls pay for Python too: in C++ capturing again
# costs much less. Device memory is rough, and for what one way keeps in executables.
#
# ## The benchmark that changes nothing
#
# The same functions, but the batch is always 8.

# %% tags=["expects-figure"]
updating = {name: ways[name] for name in ("node updates", "cached ExecUpdate", "re-capture + ExecUpdate")}
same_batch = measure("constant batch", {**updating, "fixed replay": pad}, setup=small, stream=stream, batch=MOST)
draw.strategies(same_batch, reference="fixed replay")

# %% [markdown]
# Compare with the picture before: an update that changes nothing is cheaper, and so is the launch after
# it. A benchmark like this one measures something else.
#
# ## A real network
#
# Two dense layers, 1024 wide, with 128 rows for each item. Now the rows nobody needs are real work.

# %%
WIDE, ROWS = 1024, 128
dice = np.random.default_rng(1)
host = [dice.integers(-1, 2, (WIDE, WIDE)).astype(np.float32) for _ in range(3)]     # input and weights: -1, 0 or 1
inputs, first, second, hidden, outputs = map(to_device, [*host, 0 * host[0], 0 * host[0]])

def both(kernel, grid, rows):
    ok(launch(stream, kernel, grid, 256, hidden, inputs, first, rows, WIDE, WIDE, 1))      # 1: with a relu
    ok(launch(stream, kernel, grid, 256, outputs, hidden, second, rows, WIDE, WIDE, 0))

def two_layers(batch):
    both(kernels.dense, batch * ROWS * WIDE // 256, batch * ROWS)

# %% tags=["nbval-check-output"]
def two_for_any_batch():
    both(kernels.dense_n, MOST * ROWS * WIDE // 256, now)

def layers():
    return prepare(two_layers, two_for_any_batch, ROWS)

expected, made = np.maximum(host[0] @ host[1], 0) @ host[2], layers()
for name, way in ways.items():
    ok(cudart.cudaMemsetAsync(outputs.ptr, 0, outputs.nbytes, stream))
    list(way(made, 3))
    rows = to_host(outputs, stream).reshape(WIDE, WIDE)[:3 * ROWS]
    print(f"{name:24}", "as NumPy says" if (rows == expected[:3 * ROWS]).all() else "WRONG")

# %% tags=["expects-figure"]
network = measure("two dense layers", ways, setup=layers, stream=stream, vary={"batch": batches}, repeat=len(batches))
draw.strategies(network, reference="one executable per size")

# %% [markdown]
# The order is another one. Padding pays for every row of the largest batch, each time. The ways that
# run the right size lie closer together: with more work on the GPU, what an update costs weighs
# less.
#
# ## Which one, when?
#
# The questions are general. The figures are those of your network, here, for one launch a batch.
# Replayed often, what a size cost to prepare weighs less.

# %% tags=["expects-figure"]
tree = ("Few sizes,\nall known before?",
        ("Memory for an\nexecutable of each?", "one executable per size", "cached ExecUpdate"),
        ("Can the kernels read\ntheir size from memory?", "size in device memory",
         ("Are the extra rows\ncheap?", "pad to the largest",
          ("Is each size replayed\nmany times?", ("Same nodes for\nevery size?", "re-capture + ExecUpdate", "re-instantiate"),
           ("Do you know what\neach node needs?", "node updates", "plain stream")))))
draw.decision(tree, network, reference="one executable per size")

# %% [markdown]
# ## Take with you
#
# - Decide early: what is prepared before the batch arrives costs nothing when it does.
# - Updating the grid of every kernel works. For small kernels other ways work better.
# - Measure with values that change, and with work like yours.
#
# Next: memory that belongs to a graph.
