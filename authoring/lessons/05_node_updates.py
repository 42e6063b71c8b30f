# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · Node updates: change one thing
#
# The next batch comes: the same graph, another number in one of its nodes. Capture again, instantiate
# again? An executable can be changed where it stands, node by node. What can change, what is
# refused, and what does it cost?

# %%
from labkit import cudart, ok, LabError, kernels, kernel_params, launched, set_kernel, prepare_update, launch, to_device, to_host, graph, predict, measure, recover, draw

# %%
import numpy as np
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
w, x, y, z = (to_device(np.full(8, value, dtype=np.float32)) for value in (0, 1, 0, 7))

def capture(*launches):                            # clear y, then the launches
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    for args in launches:
        ok(launch(stream, *args))
    return ok(cudart.cudaStreamEndCapture(stream))

def run(executable, buffer=y):
    ok(cudart.cudaGraphLaunch(executable, stream))
    return to_host(buffer, stream)

# %% [markdown]
# ## What does a node hold?
#
# A memset, then `y += 2.0 * x`, with 2 blocks of 4 threads. CUDA's own call cannot tell what a kernel
# from Python was launched with. labkit asks the driver below it: `launched(node)`.

# %% tags=["nbval-check-output"]
plan = capture((kernels.axpy, 2, 4, y, x, 2.0, 8))
clear, node = graph.nodes(plan)
executable = ok(cudart.cudaGraphInstantiate(plan, 0))
answer = cudart.cudaGraphKernelNodeGetParams(node)[0]
print("CUDA:  ", int(answer), answer.name)
held = launched(node)
print("labkit:", held.kernel.name, "grid", held.grid, "block", held.block, "numbers", held.args[2:])
print("the same buffers:", held.args[:2] == (y.ptr, x.ptr))

# %% [markdown]
# ## What can change in a kernel node?
#
# `kernel_params` prepares what a launch is told, `but` gives a copy with something changed, and the
# setter puts it into the executable. **Predict** the eight numbers of each line; `x` holds ones, `z`
# sevens.

# %% tags=["nbval-check-output"]
five = kernel_params(kernels.axpy, 2, 4, y, x, 5.0, 8)
changes = {"scalar": five, "pointer": five.but(args={1: z}), "elements": five.but(args={3: 3}), "grid": five.but(grid=1),
           "block": five.but(block=1), "shared": five.but(shared=1024),
           "function": kernel_params(kernels.fill, 2, 4, y, 9.0, 8)}
print("captured  ", run(executable))
for what, params in changes.items():
    ok(cudart.cudaGraphExecKernelNodeSetParams(executable, node, params))
    print(f"{what:10}", run(executable))
print("the graph ", run(ok(cudart.cudaGraphInstantiate(plan, 0))))
ok(set_kernel(executable, node, args={2: 3.0}))
print("set_kernel", run(executable))

# %% [markdown]
# All of it, even the function. The graph itself stays as it was. `set_kernel` does it in one call, and
# starts from what the *graph* says: after `fill` it is `axpy` again.
#
# ## And the other kinds?
#
# | kind | setter of an executable |
# |---|---|
# | kernel | `cudaGraphExecKernelNodeSetParams` |
# | memset | `cudaGraphExecMemsetNodeSetParams` |
# | copy | `cudaGraphExecMemcpyNodeSetParams1D` |
# | host function | `cudaGraphExecHostNodeSetParams` |
# | event | `cudaGraphExecEventRecordNodeSetEvent`, `cudaGraphExecEventWaitNodeSetEvent` |
# | child graph | `cudaGraphExecChildGraphNodeSetParams` |
# | any of these | `cudaGraphExecNodeSetParams` |
#
# Try one of each, made by hand, in a row.

# %%
import ctypes
mark, late = (ok(cudart.cudaEventCreate()) for _ in range(2))
TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice

def memset_params(value):
    params = cudart.cudaMemsetParams()
    params.dst, params.width, params.height = w.ptr, 8, 1
    params.elementSize, params.value = 4, int(np.float32(value).view(np.uint32))       # the four bytes of a float
    return params

def host_params(data):
    params = cudart.cudaHostNodeParams()
    params.fn, params.userData = cudart.cudaHostFn_t(ctypes.cast(hear, ctypes.c_void_p).value), data
    return params

# %% tags=["expects-figure"]
heard, several, nodes = [], ok(cudart.cudaGraphCreate(0)), {}
hear = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(heard.append)       # a host function that keeps what it is told

def add(name, call, *args):
    after = list(nodes.values())[-1:]
    nodes[name] = ok(call(several, after, len(after), *args))

add("memset", cudart.cudaGraphAddMemsetNode, memset_params(1.0))
add("child", cudart.cudaGraphAddChildGraphNode, capture((kernels.axpy, 2, 4, y, w, 10.0, 8)))
add("copy", cudart.cudaGraphAddMemcpyNode1D, z.ptr, y.ptr, 32, TO_DEVICE)
add("host", cudart.cudaGraphAddHostNode, host_params(1))
add("event", cudart.cudaGraphAddEventRecordNode, mark)
mixed = ok(cudart.cudaGraphInstantiate(several, 0))
draw.graph(several)

# %% tags=["nbval-check-output"]
print("before:", run(mixed, z), "heard", heard)
hundred, event = capture((kernels.axpy, 2, 4, y, w, 100.0, 8)), cudart.cudaGraphNodeParams()
event.type, event.eventRecord.event = cudart.cudaGraphNodeType.cudaGraphNodeTypeEventRecord, late
answers = {"memset": cudart.cudaGraphExecMemsetNodeSetParams(mixed, nodes["memset"], memset_params(2.0)),
           "child": cudart.cudaGraphExecChildGraphNodeSetParams(mixed, nodes["child"], hundred),
           "copy": cudart.cudaGraphExecMemcpyNodeSetParams1D(mixed, nodes["copy"], z.ptr, y.ptr, 16, TO_DEVICE),
           "host": cudart.cudaGraphExecHostNodeSetParams(mixed, nodes["host"], host_params(2)),
           "event, as any": cudart.cudaGraphExecNodeSetParams(mixed, nodes["event"], event)}
for name, (code,) in answers.items():
    print(f"{name:14}", code.name)
print("after: ", run(mixed, z), "heard", heard)

# %% [markdown]
# Five nodes, five calls, one launch. The copy now takes 16 of 32 bytes: the rest of `z` is old.
#
# ## Switch a node off
#
# Kernels, memsets and copies can be disabled and enabled again, no other kind. A graph may hold two
# branches and do one of them. **Predict** the first three lines.

# %% tags=["nbval-check-output"]
either = capture((kernels.axpy, 2, 4, y, x, 1.0, 8), (kernels.axpy, 2, 4, y, x, 100.0, 8))
_, small, large = graph.nodes(either)
switched = ok(cudart.cudaGraphInstantiate(either, 0))
for on in ((1, 1), (1, 0), (0, 1)):
    for branch, value in zip((small, large), on):
        ok(cudart.cudaGraphNodeSetEnabled(switched, branch, value))
    print("enabled", [ok(cudart.cudaGraphNodeGetEnabled(switched, branch)) for branch in (small, large)], run(switched))
print("a child:", cudart.cudaGraphNodeSetEnabled(mixed, nodes["child"], 0)[0].name)

# %% [markdown]
# ## What do setters refuse?
#
# The wrong kind of node, a node of another graph, a launch that the GPU cannot do, another direction,
# another shape. **Predict:** one of these six has a code of its own. Which? And does the next launch still
# work?

# %% tags=["expects-figure"]
held, host, set_node = launched(node), np.zeros(8, np.float32), cudart.cudaGraphExecKernelNodeSetParams

def then(executable, answer):
    return {"the setter": answer, "the next launch": cudart.cudaGraphLaunch(executable, stream)}

refused = {
    "kernel setter, memset node": then(executable, set_node(executable, clear, held)),
    "node of another graph": then(executable, set_node(executable, small, held)),
    "grid of 0 blocks": then(executable, set_node(executable, node, held.but(grid=0))),
    "block of 4096 threads": then(executable, set_node(executable, node, held.but(block=4096))),
    "copy turned round": then(mixed, cudart.cudaGraphExecMemcpyNodeSetParams1D(
        mixed, nodes["copy"], host.ctypes.data, y.ptr, 32, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost)),
    "child with one node more": then(mixed, cudart.cudaGraphExecChildGraphNodeSetParams(mixed, nodes["child"], either))}
draw.answers(refused, "What setters refuse")

# %% tags=["nbval-check-output"]
for row, answers in refused.items():
    print(f"{row:27}", *(f"{int(code):4} {code.name:32}" for code, in answers.values()))

# %% [markdown]
# All of these CUDA can see. What it cannot see is an argument that is missing or of the wrong type: it
# would read whatever bytes lie there. labkit raises before CUDA is asked.

# %% tags=["nbval-check-output"]
mistakes = (lambda: kernel_params(kernels.axpy, 2, 4, y, x, 2.0), lambda: kernel_params(kernels.axpy, 2, 4, y, x, "two", 8),
            lambda: set_kernel(executable, node, args={7: 1.0}), lambda: launched(clear))
for mistake in mistakes:
    try:
        mistake()
    except LabError as error:
        print(error.did)

# %% tags=["nbval-check-output"]
# ten mistakes later, each does what it was last told with success
print(run(executable))
print(run(mixed, z), "heard", heard[-1])

# %% [markdown]
# ## The call that does not exist
#
# Some texts swap a node for a whole subgraph with `cudaGraphExecNodeReplace`. No version of CUDA
# has it. What they want:
#
# | way | changes |
# |---|---|
# | `cudaGraphExecUpdate`, lesson 06 | all values of the graph |
# | a node setter | one node, also its function |
# | the child graph setter | a subgraph, for one of the same shape |
# | enable and disable | which prepared branch runs |
# | several executables | anything |

# %% tags=["nbval-check-output"]
print(hasattr(cudart, "cudaGraphExecNodeReplace"))
for subgraph in (capture((kernels.fill, 1, 8, y, 5.0, 8)), capture((kernels.add, 1, 8, y, w, w, 8))):
    print(cudart.cudaGraphExecChildGraphNodeSetParams(mixed, nodes["child"], subgraph)[0].name, run(mixed)[:4])

# %% [markdown]
# ## What does an update cost?
#
# Ten kernels behind the memset, batch 1 to 8 in turn. Each batch is a new size, in grid and element
# count, or just a new number. **Predict:** ten nodes set to a new size and one launch; how many times as long
# as a launch alone, end to end?

# %%
guess = predict("Ten updates and a launch, against a launch?", None, unit="times")

# %%
big, ones = (to_device(np.full(1024, value, dtype=np.float32)) for value in (0, 1))

def sized(batch):
    return kernel_params(kernels.axpy, batch, 128, big, ones, 1.0, 128 * batch)

def prepared(n):
    recorded = capture(*[(kernels.axpy, 8, 128, big, ones, 1.0, 1024)] * n)
    nodes = [node for node in graph.nodes(recorded) if graph.kind(node) == "Kernel"]
    sizes = {batch: [sized(batch) for _ in nodes] for batch in range(1, 9)}
    numbers = {batch: [params.but(args={2: float(batch)}) for params in sizes[8]] for batch in sizes}
    copies = {batch: prepare_update(recorded, dict(zip(nodes, sizes[batch]))) for batch in sizes}
    return nodes, sizes, numbers, copies, [ok(cudart.cudaGraphInstantiate(recorded, 0)) for _ in range(6)]

# %%
def set_and_launch(made, which, row):
    for node, params in zip(made[0], row):
        ok(cudart.cudaGraphExecKernelNodeSetParams(made[-1][which], node, params))
    yield "prepare"
    ok(cudart.cudaGraphLaunch(made[-1][which], stream))
    yield "launch"

def replay(made, n, batch):
    ok(cudart.cudaGraphLaunch(made[-1][0], stream))
    yield "launch"

# %%
def same_values(made, n, batch):
    yield from set_and_launch(made, 1, made[1][8])

def new_number(made, n, batch):
    yield from set_and_launch(made, 2, made[2][batch])

def new_size(made, n, batch):
    yield from set_and_launch(made, 3, made[1][batch])

def rebuilt(made, n, batch):
    yield from set_and_launch(made, 4, [sized(batch) for _ in made[0]])

# %%
def in_one_call(made, n, batch):
    ok(cudart.cudaGraphExecUpdate(made[-1][5], made[3][batch]))
    yield from set_and_launch(made, 5, [])

ways = {"replay": replay, "same values again": same_values, "new number": new_number,
        "new size": new_size, "new size, rebuilt": rebuilt, "new size, one call": in_one_call}
updates = measure("node updates", ways, setup=prepared, stream=stream, vary={"batch": [3, 8, 1, 6, 2, 7, 4, 5]}, n=10)
if not updates.missing:
    guess.against(updates.speedup("new size", "replay"))
updates

# %% tags=["expects-figure"]
draw.strategies(updates, reference="replay", about="new size")

# %% [markdown]
# Look at the *launch* part first. The same values, or a new number, leave the next launch cheap. After a new
# size it is dearer. A benchmark that never changes what your program changes measures the wrong thing.
#
# Ten calls from Python cost more than one: `prepare_update` made a changed copy of the graph for each
# batch, and a single `cudaGraphExecUpdate` takes its values over. That call is lesson 06.

# %% [markdown]
# ## Take with you
#
# - A setter changes one node of one executable. The graph stays as it is; keep it, since its nodes are the
#   names by which you call (a node of a destroyed graph is *undefined*).
# - A refused setter changes nothing.
# - Prepare parameters once. Count the next launch, not only the call.
#
# Next, lesson 06: all nodes with one call, and the reason when it is refused.
