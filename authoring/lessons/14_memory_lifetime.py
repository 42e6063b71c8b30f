# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 14 · Memory lifetime: a clinic
#
# Lessons 08 and 09 gave the rules. Here you meet them as symptoms: *it ran once*, *memory grows*,
# *somebody else's numbers changed*. From each to its cause, a fix, and a proof that the stream still works. Half of them
# return no code at all.

# %%
from labkit import cudart, ok, DeviceArray, kernels, launch, empty, to_device, to_host, graph, predict, memory_log, keep_alive, recover, draw

# %%
import ctypes, gc, weakref
from collections import Counter
import numpy as np
GLOBAL, MiB = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal, 1 << 20
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
x, y, static = (to_device(np.full(4, value, dtype=np.float32)) for value in (3, 0, 0))
lost = []                                          # blocks that nobody frees, for the end

def run(kernel, target, *args):                    # launch on four floats
    ok(launch(stream, kernel, 1, 4, target, *args, 4))

def replayed(executable):                          # what one more launch leaves in y
    ok(cudart.cudaGraphLaunch(executable, stream))
    return to_host(y, stream)

# %%
def captured(work, *args):                         # (the graph, what work returned)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    answer = work(*args)
    return ok(cudart.cudaStreamEndCapture(stream)), answer

def take(value=3.0, size=16):                      # a new block of the graph, set to a value
    block = ok(cudart.cudaMallocAsync(size, stream))
    run(kernels.fill, block, value)
    return block

def free(blocks):                                  # empties the list
    while blocks:
        ok(cudart.cudaFreeAsync(blocks.pop(), stream))

# %% [markdown]
# ## Symptom: it runs once
#
# A graph takes three blocks and frees two. **Predict** the codes of two launches. Lesson 09 gave the rule; in a real program
# you need the *culprit*: `unfreed` reads from the nodes which address was taken more often than freed.

# %%
def unfreed(plan):
    count = Counter()
    for node in graph.nodes(plan):
        if graph.kind(node) == "MemAlloc": count[int(ok(cudart.cudaGraphMemAllocNodeGetParams(node)).dptr)] += 1
        if graph.kind(node) == "MemFree": count[int(ok(cudart.cudaGraphMemFreeNodeGetParams(node)))] -= 1
    return [address for address, left in count.items() if left > 0]

def three(names_freed):
    blocks = {name: take() for name in ("q", "k", "v")}
    free([blocks[name] for name in names_freed])
    return blocks

# %% tags=["nbval-check-output"]
for names_freed in (("q", "k"), ("q", "k", "v")):
    plan, blocks = captured(three, names_freed)
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    print("not freed:", *[name for name, block in blocks.items() if block in unfreed(plan)] or ["nothing"])
    print("   launches  ", *(cudart.cudaGraphLaunch(executable, stream)[0].name for _ in range(2)))
    free(unfreed(plan))                            # the recovery: free it outside
    print("   after that", cudart.cudaGraphLaunch(executable, stream)[0].name)
    free(unfreed(plan))
    ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(plan))

# %% [markdown]
# The refused launch broke nothing: free outside, launch again. The cure is the free *in* the graph.
#
# ## Symptom: memory grows
#
# Somebody cured it with AutoFreeOnLaunch instead. A server makes a graph for each of four shapes, launches it three times,
# destroys all and trims. **Predict:** a block of 20 MiB each (it takes a page of 32 MiB), how many MiB are
# used at the end?

# %%
growth = predict("Used after four shapes?", None, unit="MiB")
AUTO_FREE = int(cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagAutoFreeOnLaunch)

def serve(give_back):
    plan, block = captured(take, 3.0, 20 * MiB)
    executable = ok(cudart.cudaGraphInstantiate(plan, AUTO_FREE))
    for _ in range(3):
        ok(cudart.cudaGraphLaunch(executable, stream))
    lost.append(block)
    if give_back:
        free(lost)
    ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(plan))

# %% tags=["nbval-check-output"]
def used(label):                                   # MiB more than at the start, once unused pages are trimmed
    ok(cudart.cudaStreamSynchronize(stream)), ok(cudart.cudaDeviceGraphMemTrim(0))
    more = (log(label)["graph"].used - log.samples[0]["graph"].used) // MiB
    print(f"{label:8}", more, "MiB")
    return more

log = memory_log()
free(lost), used("start")
sizes = [(serve(give_back=False), used(f"shape {n}"))[1] for n in (1, 2, 3, 4)]
free(lost), used("freed")                          # the recovery: their addresses were kept
for n in (5, 6):
    serve(give_back=True), used(f"shape {n}")
growth.against(sizes[-1]);

# %% tags=["expects-figure"]
draw.memory(log)

# %% [markdown]
# A launch frees what the launch *before* left. The last one's block outlives executable, graph and trim: a leak for each
# graph. Keep the address; free it before you destroy.
#
# ## Symptom: 801
#
# A second executable for a second stream; a clone as a template; a copy as a child. **Predict:** how many of the three work if
# the scratch block is the graph's own? If it is `static`, made before?

# %% tags=["nbval-check-output"]
def own(): free([take()])
def borrowed(): run(kernels.fill, static, 3.0)

for work in (own, borrowed):
    (plan, _), (again, _), parent = captured(work), captured(work), ok(cudart.cudaGraphCreate(0))
    first = ok(cudart.cudaGraphInstantiate(plan, 0))
    answers = {"second executable": cudart.cudaGraphInstantiate(plan, 0), "clone": cudart.cudaGraphClone(plan),
               "child": cudart.cudaGraphAddChildGraphNode(parent, [], 0, plan), "captured again": cudart.cudaGraphInstantiate(again, 0)}
    for name, (code, _) in answers.items(): print(f"{work.__name__:9}{name:18}", code.name)
    for made in filter(None, (first, answers["second executable"][1], answers["captured again"][1])): ok(cudart.cudaGraphExecDestroy(made))
    for made in (plan, again, parent, *[answers["clone"][1]] * (work is borrowed)): ok(cudart.cudaGraphDestroy(made))

# %% [markdown]
# Lesson 09 said why: the addresses were settled once, for this graph. Each *capture* settles its own, so capture again; or
# borrow the block.
#
# ## Symptom: a memset is refused
#
# The address of a graph's block is there from the capture on. A memset on it, outside, at four moments: **predict** how many
# succeed.

# %% tags=["nbval-check-output"]
def moment(label):
    print(f"{label:13}", cudart.cudaMemsetAsync(block, 0, 16, stream)[0].name)

plan, block = captured(take); moment("captured")
executable = ok(cudart.cudaGraphInstantiate(plan, 0)); moment("instantiated")
ok(cudart.cudaGraphLaunch(executable, stream)); moment("launched")
ok(cudart.cudaFreeAsync(block, stream)); moment("freed")
print("launch again ", cudart.cudaGraphLaunch(executable, stream)[0].name, to_host(DeviceArray(block, 4, np.float32), stream))
ok(cudart.cudaFreeAsync(block, stream))
ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(plan));

# %% [markdown]
# From the launch to the free, no longer. Fill it in the graph, as `take` does. A *kernel* is not checked: before the launch one
# gave 700 at the wait, after the free success (H200, driver 580.159.04, 2026-12-02).
#
# ## Symptom: wrong numbers, inside one graph
#
# Two blocks: *a* gets 99, *b* gets 3, `y` becomes *b*. In one version the free of *a* moved up. **Predict** its `y`.

# %% tags=["nbval-check-output"]
def two_blocks(free_early):
    a = take()
    free([a] if free_early else [])
    b = take(3.0)
    run(kernels.fill, a, 99.0)
    run(kernels.fill, y, 0.0), run(kernels.axpy, y, b, 1.0)
    free([b] if free_early else [b, a])

plans = {"freed early": captured(two_blocks, True)[0], "freed late": captured(two_blocks, False)[0]}
for name, plan in plans.items():
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    print(f"{name:11}", cudart.cudaGraphLaunch(executable, stream)[0].name, to_host(y, stream), "not freed:", unfreed(plan))
    ok(cudart.cudaGraphExecDestroy(executable))

# %% tags=["expects-figure"]
draw.addresses(plans)

# %% [markdown]
# No code, nothing unfreed. The picture tells: *b* lies where *a* was, and the 99 goes to a stale address. Free after the last use.
#
# ## Symptom: it worked until the collector ran
#
# CuPy and PyTorch keep a freed block for whoever asks next; so does a `Lease`. `layer` sits in a cycle, as many models do: only
# Python's garbage collector lets go of it. **Predict** three replays.

# %%
shelf = {"device": [empty(4) for _ in range(8)],   # blocks that nobody has; the last is handed out first
         "pinned": [ok(cudart.cudaMallocHost(16)) for _ in range(4)]}

class Lease:
    def __init__(self, kind):
        self.block = shelf[kind].pop()
        weakref.finalize(self, shelf[kind].append, self.block)

def tensor(value):
    lease = Lease("device")
    run(kernels.fill, lease.block, value)
    return lease

# %% tags=["nbval-check-output"]
layer = tensor(3.0)
layer.me = layer                                   # the cycle
plan, _ = captured(lambda: (run(kernels.fill, y, 0.0), run(kernels.axpy, y, layer.block, 1.0)))
executable = ok(cudart.cudaGraphInstantiate(plan, 0))
del layer
print("nobody has it  ", replayed(executable))
gc.collect()
print("collected      ", replayed(executable))
tenant = tensor(50.0)                              # somebody asks for a block
print("somebody has it", replayed(executable))
ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(plan));

# %% [markdown]
# Right twice, by luck: a graph knows addresses, not owners.
#
# ## Symptom: my result is right, yours is not
#
# Now the block is a *temporary* of a captured function, filled in the graph and gone with the function. **Predict:** after a
# replay, what is in `y`, and what in the block of a new tenant, who put 50 there?

# %% tags=["nbval-check-output"]
def tripled(buffer=None):                          # y = 3 * x, with 2 * x in a buffer or a temporary
    owner = tensor(0.0) if buffer is None else None
    double = owner.block if buffer is None else buffer
    run(kernels.add, double, x, x), run(kernels.add, y, double, x)
    return owner
for cure in ("none", "keep_alive", "static"):
    plan, owner = captured(tripled, *[static] * (cure == "static"))
    kept, owner = keep_alive(plan, owner) if cure == "keep_alive" else None, None
    executable, tenant = ok(cudart.cudaGraphInstantiate(plan, 0)), tensor(50.0)
    print(f"cure: {cure:10}  y", replayed(executable), " the tenant's", to_host(tenant.block, stream))
    ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(plan))

# %% [markdown]
# A stale pointer that is *written* harms others. Let the graph hold the owner, or allocate nothing in the captured part and
# copy each new input into the old buffer.
#
# ## Symptom: somebody else's batch
#
# A captured copy reads its host memory at each replay. Pinned buffers come from a shelf, too. **Predict** `y`: the batch of
# fives was dropped, and one of eights came.

# %% tags=["nbval-check-output"]
def batch(value):
    lease = Lease("pinned")
    (ctypes.c_float * 4).from_address(lease.block)[:] = [value] * 4
    return lease

for keep in (False, True):
    fives = batch(5.0)
    plan, _ = captured(cudart.cudaMemcpyAsync, y.ptr, fives.block, 16, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, stream)
    kept, fives = keep_alive(plan, fives) if keep else None, None
    executable, eights = ok(cudart.cudaGraphInstantiate(plan, 0)), batch(8.0)
    print("kept   " if keep else "dropped", replayed(executable))
    ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(plan))

# %% [markdown]
# Freed with `cudaFreeHost` instead: the launch ended the process; with a new buffer at the same address the wait said 719, and the
# process was lost, too (H200, driver 580.159.04, 2026-12-02).
#
# ## Symptom: the pool is gone
#
# A graph took its block *from a pool*, and the pool was destroyed. **Predict:** which works: instantiate, launch, the same
# request in the next capture?

# %% tags=["nbval-check-output"]
props = cudart.cudaMemPoolProps()
props.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
props.location.type, props.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
pool = ok(cudart.cudaMemPoolCreate(props))
plan, (_, block) = captured(cudart.cudaMallocFromPoolAsync, 16, pool, stream)
ok(cudart.cudaMemPoolDestroy(pool))
code, executable = cudart.cudaGraphInstantiate(plan, 0)
print("instantiate, launch, free:", code.name, cudart.cudaGraphLaunch(executable, stream)[0].name, cudart.cudaFreeAsync(block, stream)[0].name)
without, (code, address) = captured(cudart.cudaMallocFromPoolAsync, 16, pool, stream)
print("next capture:", code.name, "address:", address, "nodes:", graph.kinds(without))
again, block = captured(take)                      # the recovery: take graph memory without naming a pool
print("then:", graph.kinds(again))

# %% [markdown]
# A graph copies a pool's properties and needs the pool no more. A refused request leaves the capture alive, *without* the
# node: look at every code. For plain memory of a pool lesson 10 holds: free first, then destroy.

# %% tags=["nbval-check-output"]
recover(stream)
ok(cudart.cudaStreamSynchronize(stream)), ok(cudart.cudaGraphExecDestroy(executable))
for made in (plan, without, again, *plans.values()):
    ok(cudart.cudaGraphDestroy(made))
tenant = eights = kept = None
gc.collect()
while shelf["pinned"]: ok(cudart.cudaFreeHost(shelf["pinned"].pop()))
while shelf["device"]: shelf["device"].pop().free()
free(lost)
print("graph memory more than at the start:", used("the end"), "MiB")
del shelf, pool, plan, without, again, plans, executable, made

# %% [markdown]
# ## Take with you
#
# | symptom | code | look at | cure |
# |---|---|---|---|
# | runs once | 1 | `unfreed(graph)` | free in the graph |
# | memory grows | none | `memory_log` after a trim | free what the last launch left |
# | copy, clone, second executable | 801 | MemAlloc among the kinds | capture again, or borrow |
# | memset outside refused | 1 | launched? freed? | fill it in the graph |
# | wrong numbers | none | `draw.addresses`, who owns each pointer | `keep_alive`, static buffers |
#
# Next, lesson 15: errors that nobody looked at.
