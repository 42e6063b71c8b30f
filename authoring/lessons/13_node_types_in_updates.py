# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 13 · Node types in updates
#
# Lessons 05 and 06 showed what updates can do. Here you come from the other side, as in a clinic. A call
# that should change a node answers 1, `cudaErrorInvalidValue`, and not a word more. What is the cause,
# what is the fix, and what is left of the executable?

# %%
from labkit import cudart, ok, kernels, kernel_params, set_kernel, exec_update, launch, to_device, to_host, graph, predict, recover, draw

# %%
import ctypes, threading, time
import numpy as np
stream, beside = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
UP, DOWN = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
host = np.arange(4, dtype=np.float32)
x, y = (to_device(np.zeros(4, dtype=np.float32)) for _ in range(2))
clear, upload = (cudart.cudaMemsetAsync, y.ptr, 0, 16, stream), (cudart.cudaMemcpyAsync, x.ptr, host.ctypes.data, 16, UP, stream)

def record(*calls):                                # each a tuple: the function, then its arguments
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    for call, *arguments in calls:
        ok(call(*arguments))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% [markdown]
# ## The failing program
#
# Clear `y`, copy `host` to `x`, add `1.0 * x` to `y`. For the next replay the factor becomes 100, and somebody
# is sure that the kernel is node 0.

# %% tags=["nbval-check-output"]
def add(factor):
    return launch, stream, kernels.axpy, 1, 4, y, x, factor, 4

def replay(executable):
    ok(cudart.cudaGraphLaunch(executable, stream))
    return to_host(y, stream)

plan = record(clear, upload, add(1.0))
executable = ok(cudart.cudaGraphInstantiate(plan, 0))
print(replay(executable), "as captured")
answer = set_kernel(executable, graph.nodes(plan)[0], args={2: 100.0})
print(int(answer[0]), answer[0].name, "and a reason:", len(answer) > 1)
print(replay(executable), "after it")

# %% [markdown]
# Nothing changed, nothing broke, and nobody says why. A program that does not look at the code goes on with the
# old factor for ever. So ask what you hold. The fix: take the node by its kind, never by its number.

# %% tags=["nbval-check-output"]
print(graph.kinds(plan))
kernel = next(node for node in graph.nodes(plan) if graph.kind(node) == "Kernel")
ok(set_kernel(executable, kernel, args={2: 100.0}))
print(replay(executable), "recovered")

# %% [markdown]
# ## Every setter on every kind
#
# Seven kinds of nodes, their seven setters, and the switch that turns a node off. **Predict:** how many of the 56
# calls are accepted?

# %%
accepted = predict("How many of the 56 calls are accepted?", None, unit="calls")

hear = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None)             # a host function that does nothing
hearing = cudart.cudaHostNodeParams()
hearing.fn = cudart.cudaHostFn_t(ctypes.cast(hear, ctypes.c_void_p).value)
adding = kernel_params(kernels.axpy, 1, 4, y, x, 1.0, 4)
clearing = ok(cudart.cudaGraphMemsetNodeGetParams(graph.nodes(plan)[0]))
inside, event, late = record(add(1.0)), ok(cudart.cudaEventCreate()), ok(cudart.cudaEventCreate())

# %%
zoo, copying = ok(cudart.cudaGraphCreate(0)), (x.ptr, host.ctypes.data, 16, UP)
nodes = {"kernel": cudart.cudaGraphAddKernelNode(zoo, [], 0, adding),
         "memset": cudart.cudaGraphAddMemsetNode(zoo, [], 0, clearing),
         "copy": cudart.cudaGraphAddMemcpyNode1D(zoo, [], 0, *copying),
         "host": cudart.cudaGraphAddHostNode(zoo, [], 0, hearing),
         "child": cudart.cudaGraphAddChildGraphNode(zoo, [], 0, inside),
         "record": cudart.cudaGraphAddEventRecordNode(zoo, [], 0, event),
         "wait": cudart.cudaGraphAddEventWaitNode(zoo, [], 0, late)}
nodes = {name: ok(answer) for name, answer in nodes.items()}
animals = ok(cudart.cudaGraphInstantiate(zoo, 0))

# %%
setters = {("setter for", "kernel"): (cudart.cudaGraphExecKernelNodeSetParams, adding),
           ("setter for", "memset"): (cudart.cudaGraphExecMemsetNodeSetParams, clearing),
           ("setter for", "copy"): (cudart.cudaGraphExecMemcpyNodeSetParams1D, *copying),
           ("setter for", "host"): (cudart.cudaGraphExecHostNodeSetParams, hearing),
           ("setter for", "child"): (cudart.cudaGraphExecChildGraphNodeSetParams, inside),
           ("setter for", "record"): (cudart.cudaGraphExecEventRecordNodeSetEvent, event),
           ("setter for", "wait"): (cudart.cudaGraphExecEventWaitNodeSetEvent, late),
           ("switch", "off"): (cudart.cudaGraphNodeSetEnabled, 0)}

# %% tags=["expects-figure"]
table = {f"{kind} node": {column: call(animals, node, *arguments) for column, (call, *arguments) in setters.items()}
         for kind, node in nodes.items()}
draw.answers(table, "What a node of an executable takes")

# %% tags=["nbval-check-output"]
print(f"{'setter for':12}", *(f"{name:>6}" for _, name in setters), "(the switch)")
for row, cells in table.items():
    print(f"{row:12}", *(f"{int(code):6}" for code, in cells.values()))
accepted.against(sum(not int(code) for cells in table.values() for code, in cells.values()))
print("and the launch:", cudart.cudaGraphLaunch(animals, stream)[0].name, cudart.cudaStreamSynchronize(stream)[0].name)

# %% [markdown]
# The diagonal, and three that can be switched off. A node keeps its kind for the life of the executable. One way to see it:
# instantiating laid out a form for each node; a setter fills in values, and draws no new form.
#
# ## One code, three causes
#
# Five refused setters. The code is the same, so look yourself: three questions, in this order.

# %%
def diagnose(node, setter_for, of):
    if int(node) not in {int(own) for own in graph.nodes(of)}:
        return "no node of the graph that the executable was made from"
    if graph.kind(node) != setter_for:
        return f"a {graph.kind(node)} node, and a setter for {setter_for}"
    return "the right node: look at direction, size, shape"

# %% tags=["nbval-check-output"]
memset, copy, kernel = graph.nodes(plan)
again = record(clear, upload, add(1.0))                                       # the same work, captured once more
set_node, set_copy = cudart.cudaGraphExecKernelNodeSetParams, cudart.cudaGraphExecMemcpyNodeSetParams1D
cases = {"kernel setter, a memset": ("Kernel", memset, set_node, adding),
         "kernel setter, a copy": ("Kernel", copy, set_node, adding),
         "a node of another graph": ("Kernel", graph.nodes(again)[2], set_node, adding),
         "block of 4096 threads": ("Kernel", kernel, set_node, adding.but(block=4096)),
         "a copy turned round": ("Memcpy", copy, set_copy, host.ctypes.data, x.ptr, 16, DOWN)}
for name, (kind, node, call, *arguments) in cases.items():
    print(f"{name:25}{int(call(executable, node, *arguments)[0])}  {diagnose(node, kind, plan)}")
print(replay(executable), "as before")

# %% tags=["nbval-check-output"]
ok(exec_update(executable, again))
for name, of in {"the update's graph": again, "the first graph": plan}.items():
    code, = cudart.cudaGraphExecKernelNodeSetParams(executable, graph.nodes(of)[2], adding.but(args={2: 5.0}))
    print(f"{name:20}{int(code)}", replay(executable))

# %% [markdown]
# A graph captured again has nodes of its own. Even after an update from it the executable goes by the nodes
# of its *first* graph: keep that one.
#
# ## 910: refused, with a reason
#
# A whole update and the child setter compare two graphs. Where the form differs they answer 910, and `exec_update`
# brings the reason, and the node of the new graph. (For TopologyChanged CUDA names no node.)

# %% tags=["nbval-check-output"]
turned = cudart.cudaMemcpyAsync, host.ctypes.data, x.ptr, 16, DOWN, stream
forms = {"one node more": record(clear, upload, add(1.0), add(1.0)), "swapped order": record(upload, clear, add(1.0)),
         "a copy turned round": record(clear, turned, add(1.0)), "a memset for a kernel": record(clear, upload, clear)}
for name, new in forms.items():
    code, why = exec_update(executable, new)
    print(f"{name:23}{int(code)}  {why.result}, node {why.position}")
longer = record(add(1.0), add(1.0))
code, = cudart.cudaGraphExecChildGraphNodeSetParams(animals, nodes["child"], longer)
print(f"{'child, one node more':23}{int(code)}  (the setter gives no reason)")
print(replay(executable), "as before")

# %% tags=["expects-figure"]
code, why = exec_update(executable, forms["a copy turned round"])
draw.difference(plan, forms["a copy turned round"], at=why)

# %% [markdown]
# ## Which call for which wish?
#
# | what you want to change | what takes it |
# |---|---|
# | numbers, buffers, grid, function of a kernel | kernel setter (`set_kernel`) |
# | value or size of a memset, size or place of a copy, a host function, an event | the setter of that kind |
# | many nodes, same form | `cudaGraphExecUpdate` (`exec_update`) |
# | leave a kernel, memset or copy out | `cudaGraphNodeSetEnabled` |
# | the work of a child, same form | child setter, or an update |
# | another kind, number or order of nodes; a copy turned round | instantiate anew, or keep several executables |
#
# Only the last line needs a new executable, and no call puts another node in place of one: some texts name
# `cudaGraphExecNodeReplace`. CUDA 11, 12 and 13 have no such function; ask the bindings that you run on. Others say that to
# destroy and instantiate is the only whole update. Try the update first:

# %% tags=["nbval-check-output"]
for name in ("cudaGraphExecNodeReplace", "cudaGraphExecUpdate", "cudaGraphExecChildGraphNodeSetParams", "cudaGraphNodeSetEnabled"):
    print(f"{name:38}{'in the bindings' if hasattr(cudart, name) else 'not in the bindings'}")

# %%
def refreshed(executable, new):
    code, why = exec_update(executable, new)
    if int(code) != 910:
        ok((code, why))
        return executable, "updated"
    fresh = ok(cudart.cudaGraphInstantiate(new, 0))
    ok(cudart.cudaGraphExecDestroy(executable))
    return fresh, f"instantiated anew: {why.result}"

# %% tags=["nbval-check-output"]
wishes = [record(clear, upload, add(2.0)), record(clear, upload, add(3.0), add(4.0)), record(clear, upload, add(5.0), add(6.0))]
serving = ok(cudart.cudaGraphInstantiate(plan, 0))
for new in wishes:
    serving, how = refreshed(serving, new)
    print(replay(serving), how)

# %% [markdown]
# ## One executable, two streams
#
# Stream A is held up by a host function, and has a launch behind it. Stream B has nothing before its own launch. **Predict:** B
# launches the same executable, then, in a second try, another one of the same graph. In how many of the two does B
# finish while A is held up?

# %%
finishes = predict("In how many of the two tries does B finish?", None, unit="")

def held_up(on):                                   # until .set() is called, for two seconds at most
    go = threading.Event()
    go.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None if go.wait(2) else None)
    ok(cudart.cudaLaunchHostFunc(on, cudart.cudaHostFn_t(ctypes.cast(go.call, ctypes.c_void_p).value), 0))
    return go

def is_done(on, patience=0.25):
    end = time.monotonic() + patience
    while int(cudart.cudaStreamQuery(on)[0]) and time.monotonic() < end:
        time.sleep(0.005)
    return int(cudart.cudaStreamQuery(on)[0]) == 0

# %% tags=["nbval-check-output"]
other, tries = ok(cudart.cudaGraphInstantiate(wishes[-1], 0)), {}
replay(other)                                      # each has been launched once
for name, second in {"the same executable": serving, "another executable": other}.items():
    go = held_up(stream)
    ok(cudart.cudaGraphLaunch(serving, stream)), ok(cudart.cudaGraphLaunch(second, beside))
    tries[name] = is_done(beside)
    go.set()
    ok(cudart.cudaStreamSynchronize(stream)), ok(cudart.cudaStreamSynchronize(beside))
    print(f"{name:20} B is done while A waits: {tries[name]}")
finishes.against(sum(tries.values()));

# %% [markdown]
# An executable never runs beside itself: each launch waits for the one before, in whatever stream. For work side
# by side, instantiate twice.
#
# CUDA orders the launches, and locks nothing. Two threads that set, update or launch the same
# executable need a lock of your own.

# %% tags=["nbval-check-output"]
for made in (executable, animals, serving, other):
    ok(cudart.cudaGraphExecDestroy(made))
for made in (plan, again, zoo, inside, longer, *forms.values(), *wishes):
    ok(cudart.cudaGraphDestroy(made))
ok(cudart.cudaEventDestroy(event)), ok(cudart.cudaEventDestroy(late))
del executable, animals, serving, other, plan, again, zoo, inside, longer, forms, wishes, event, late, made, new, of, nodes, cases, node, memset, copy, kernel
recover(stream, beside)

# %% [markdown]
# ## Take with you
#
# - Setter, code 1: whose node is it, which kind is it, what about it changed? In this order.
# - Update, code 910: `exec_update` knows why. Then instantiate anew.
# - A refusal harms nothing. Not looking at it does.
#
# Next, lesson 14: what lives how long.
