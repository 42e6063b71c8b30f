# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 09 · Graph memory: nodes that allocate
#
# In a capture, `cudaMallocAsync` becomes a node and allocates again at every launch. So when does a
# block serve twice? Who frees what the graph does not? And do two graphs share memory, or does each
# keep its own?

# %%
from labkit import cudart, ok, LabError, DeviceArray, kernels, launch, to_device, to_host, graph, predict, memory_log, draw

# %%
import numpy as np
GLOBAL, MiB = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal, 1 << 20
stream, other = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
total = to_device(np.zeros(4, dtype=np.float32))

def captured(work):                                # (the graph, what work() returned)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    kept = work()
    return ok(cudart.cudaStreamEndCapture(stream)), kept

def take(size=4096, on=stream):                    # a new block, its first four floats set to 3
    block = ok(cudart.cudaMallocAsync(size, on))
    ok(launch(on, kernels.fill, 1, 4, block, 3.0, 4))
    return block

# %% [markdown]
# ## Take, use, free
#
# A graph takes 4 KiB, adds the threes in it to `total` and frees it. On the H200 graph memory comes in pages of
# 32 MiB. **Predict:** three launches later all work is done and nothing is allocated. What does CUDA count as *used*: 0, 4 KiB,
# 32 or 96 MiB?

# %% tags=["nbval-check-output"]
def scratch():
    block = take()
    ok(launch(stream, kernels.axpy, 1, 4, total, block, 1.0, 4))
    ok(cudart.cudaFreeAsync(block, stream))

inside, _ = captured(scratch)
scratcher = ok(cudart.cudaGraphInstantiate(inside, 0))
ok(cudart.cudaMemsetAsync(total.ptr, 0, total.nbytes, stream))
ok(cudart.cudaDeviceGraphMemTrim(0))               # what earlier runs left
for _ in range(3):
    ok(cudart.cudaGraphLaunch(scratcher, stream))
    print(to_host(total, stream))
print("used:", memory_log()("after three launches")["graph"].used // MiB, "MiB")

# %% [markdown]
# *Used* counts whole pages, also after the free: they stay with the graphs until a trim.
#
# ## When does a block serve twice?
#
# One graph takes two blocks, *a* and *b*: in turn; in two branches side by side; with *b*'s branch
# waiting until *a* is taken; or until *a* is freed. **Predict:** in how many of the four do they get the same address?

# %%
guess = predict("The same address in how many of the four?", None, unit="orders")
point = ok(cudart.cudaEventCreate())

def follow(later, earlier):                        # the next node of `later` comes after those of `earlier` so far
    ok(cudart.cudaEventRecord(point, earlier))
    ok(cudart.cudaStreamWaitEvent(later, point, 0))

# %%
def two_blocks(on, wait=None):
    if on is other:
        ok(launch(stream, kernels.fill, 1, 4, total, 0.0, 4))
        follow(other, stream)                      # the fork
    a = take()
    if wait == "a taken": follow(other, stream)
    ok(cudart.cudaFreeAsync(a, stream))
    if wait == "a freed": follow(other, stream)
    b = take(on=on)
    ok(cudart.cudaFreeAsync(b, on))
    if on is other: follow(stream, other)          # the join
    return a, b

# %% tags=["nbval-check-output"]
plans = {"in turn": captured(lambda: two_blocks(stream)), "side by side": captured(lambda: two_blocks(other)),
         "b waits: a taken": captured(lambda: two_blocks(other, "a taken")),
         "b waits: a freed": captured(lambda: two_blocks(other, "a freed"))}
for order, (plan, (a, b)) in plans.items():
    print(f"{order:16}  b lies {b - a:4} bytes above a")
guess.against(sum(a == b for _, (a, b) in plans.values()));

# %% tags=["expects-figure"]
draw.addresses({order: plan for order, (plan, _) in plans.items()})

# %% [markdown]
# A freed block serves again only for what must come *after the free*. Branches might run at the same time, so they
# never share. (*Place*: the longest chain of nodes up to there.)
#
# ## What fits in a freed block?
#
# **Predict** how far above the first block the last one lies: 20 MiB after 30 were freed, 30 after 20, 60 after three
# neighbours of 20.

# %% tags=["nbval-check-output"]
def last_of(*sizes):                               # take all but the last, free them, take the last
    blocks = [take(size * MiB) for size in sizes[:-1]]
    for block in blocks:
        ok(cudart.cudaFreeAsync(block, stream))
    last = take(sizes[-1] * MiB)
    ok(cudart.cudaFreeAsync(last, stream))
    return last - blocks[0]

fits = {"30, then 20": captured(lambda: last_of(30, 20)), "20, then 30": captured(lambda: last_of(20, 30)),
        "20 20 20, then 60": captured(lambda: last_of(20, 20, 20, 60))}
for sizes, (_, offset) in fits.items():
    print(f"{sizes:18} at +{offset // MiB} MiB")

# %% tags=["expects-figure"]
draw.addresses({sizes: plan for sizes, (plan, _) in fits.items()})

# %% [markdown]
# Smaller blocks fit, and freed neighbours join; a larger one goes behind. The capture settles it; nothing has
# run yet.
#
# ## Left allocated, freed elsewhere
#
# A graph takes a block and keeps it. **Predict** which launches succeed: the first, the second, one after a free outside?
# Then a second graph frees it: in turn, *free* first, *take* twice, *free* twice?

# %% tags=["nbval-check-output"]
holding, left = captured(take)
keeper = ok(cudart.cudaGraphInstantiate(holding, 0))
print("first launch ", cudart.cudaGraphLaunch(keeper, stream)[0].name)
print("second launch", cudart.cudaGraphLaunch(keeper, stream)[0].name)
print("the block    ", to_host(DeviceArray(left, 4, np.float32), stream))
print("free outside ", cudart.cudaFreeAsync(left, stream)[0].name)
print("free again   ", cudart.cudaFreeAsync(left, stream)[0].name)
print("third launch ", cudart.cudaGraphLaunch(keeper, stream)[0].name)
print("free outside ", cudart.cudaFreeAsync(left, stream)[0].name)

# %% tags=["nbval-check-output"]
def finish():
    ok(launch(stream, kernels.axpy, 1, 4, total, left, 1.0, 4))
    ok(cudart.cudaFreeAsync(left, stream))

finishing, _ = captured(finish)
finisher = ok(cudart.cudaGraphInstantiate(finishing, 0))
run = {"take": keeper, "free": finisher}
for order in ("take free take free", "free", "take take", "take free free", "take free"):
    codes = [cudart.cudaGraphLaunch(run[step], stream)[0].name for step in order.split()]
    print(f"{order:20}", *codes)
    cudart.cudaFreeAsync(left, stream)             # in case it is still taken

# %% [markdown]
# Take, then free, in turn; a misstep is *invalid value* and changes nothing. Who frees does not matter.
#
# ## AutoFreeOnLaunch: who frees the last one?
#
# With this flag a launch first frees what the launch before it left. **Predict:** a block of 4 KiB, pages of 32 MiB,
# three launches; executable and graph are destroyed, unused pages trimmed. How many MiB are still used?

# %%
guess = predict("Used after the trim?", None, unit="MiB")
AUTO_FREE = int(cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagAutoFreeOnLaunch)

def trim():                                        # only memory whose work is done can go
    ok(cudart.cudaStreamSynchronize(stream))
    return cudart.cudaDeviceGraphMemTrim(0)

def step(log, label, *answers):                    # what CUDA answered, and how many MiB are used after it
    ok(cudart.cudaStreamSynchronize(stream))
    used = log(label)["graph"].used // MiB
    print(f"{label:14} {used:3} MiB used", *dict.fromkeys(code.name for code, in answers))
    return used

# %% tags=["nbval-check-output"]
auto, last = captured(take)
executable, log = ok(cudart.cudaGraphInstantiate(auto, AUTO_FREE)), memory_log()
step(log, "trim", trim())
for n in (1, 2, 3):
    step(log, f"launch {n}", cudart.cudaGraphLaunch(executable, stream))
step(log, "both destroyed", cudart.cudaGraphExecDestroy(executable), cudart.cudaGraphDestroy(auto))
used = step(log, "then trim", trim())
print("the block", to_host(DeviceArray(last, 4, np.float32), stream))
step(log, "free", cudart.cudaFreeAsync(last, stream))
step(log, "trim again", trim())
guess.against(used)
del auto, executable                               # handles of what is gone

# %% [markdown]
# Nobody frees the last one. It outlives the executable, the graph and the trim. Keep its address, and free it; the
# page goes with the trim *after the free*.
#
# ## What can a graph with memory nodes not do?
#
# Instantiate it twice at once, clone it, remove an edge, add a copy as a child, destroy a node: **predict** how many of
# the five CUDA refuses.

# %%
def instantiate_twice(plan):
    first, second = (cudart.cudaGraphInstantiate(plan, 0) for _ in range(2))
    ok(cudart.cudaGraphExecDestroy(ok(first)))
    return second

def remove_an_edge(plan):
    try:
        graph.remove_dependencies(plan, *([node] for node in graph.nodes(plan)[:2]))
    except LabError as refused:
        return (refused.code,)
    return (cudart.cudaError_t.cudaSuccess,)

# %% tags=["nbval-check-output"]
def plain():
    ok(launch(stream, kernels.fill, 1, 4, total, 0.0, 4))
    ok(launch(stream, kernels.scale, 1, 4, total, 2.0, 4))

tries = {"instantiate it twice": instantiate_twice, "clone it": cudart.cudaGraphClone, "remove an edge": remove_an_edge,
         "add a copy as a child": lambda plan: cudart.cudaGraphAddChildGraphNode(ok(cudart.cudaGraphCreate(0)), [], 0, plan),
         "destroy a node": lambda plan: cudart.cudaGraphDestroyNode(graph.nodes(plan)[-1])}
for name, attempt in tries.items():
    made = [captured(work)[0] for work in (plain, scratch)]
    answers = [attempt(plan)[0].name for plan in made]
    print(f"{name:21} plain: {answers[0]}   with memory: {answers[1]}")
    for plan in made: ok(cudart.cudaGraphDestroy(plan))
print("the graph from above still runs:", cudart.cudaGraphLaunch(scratcher, stream)[0].name)

# %% [markdown]
# All five, 801. Addresses were settled once, for this graph in this order. One executable at a time.
# (`cudaGraphExecUpdate` works, even with another size: the address becomes the new graph's.)
#
# ## By hand
#
# The parameters say where and how much; the address comes back in them, `dptr`. **Predict** which free is refused: the
# first, a second, of memory of `cudaMalloc`, without an edge from its allocation?

# %% tags=["nbval-check-output"]
hand = ok(cudart.cudaGraphCreate(0))
params = cudart.cudaMemAllocNodeParams()
params.bytesize = 4096
params.poolProps.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
params.poolProps.location.type = cudart.cudaMemLocationType.cudaMemLocationTypeDevice
params.poolProps.location.id = 0
taken = ok(cudart.cudaGraphAddMemAllocNode(hand, [], 0, params))
for what, address in (("free it", params.dptr), ("free it twice", params.dptr), ("free other memory", total.ptr)):
    print(f"{what:17}", cudart.cudaGraphAddMemFreeNode(hand, [taken], 1, address)[0].name)
ok(cudart.cudaGraphAddMemAllocNode(hand, [], 0, params))
print("free, no edge    ", cudart.cudaGraphAddMemFreeNode(hand, [], 0, params.dptr)[0].name)
print(graph.kinds(hand), graph.edges(hand))

# %% [markdown]
# CUDA frees a block of the graph once, but checks no order: the last free may come before its allocation. In a capture
# the stream gives you the edge.
#
# ## Do graphs share memory?
#
# Addresses never. The memory behind them? **Predict** for three graphs of 20 MiB, launched in turn in one stream: how
# many MiB if each frees its block, or keeps it?

# %%
freeing = predict("Used by three graphs that free?", None, unit="MiB")
keeping = predict("Used by three graphs that keep?", None, unit="MiB")

def keep():
    return take(20 * MiB)

def free():
    ok(cudart.cudaFreeAsync(keep(), stream))

def three(work):                                   # [(executable, graph, address)]
    made = [captured(work) for _ in range(3)]
    return [(ok(cudart.cudaGraphInstantiate(plan, 0)), plan, block) for plan, block in made]

# %% tags=["nbval-check-output"]
log, tenants, owners = memory_log(), three(free), three(keep)
step(log, "trim", trim())
for n, (executable, *_) in enumerate(tenants, 1):
    shared = step(log, f"free {n}", cudart.cudaGraphLaunch(executable, stream))
step(log, "trim", trim())
for n, (executable, *_) in enumerate(owners, 1):
    apart = step(log, f"keep {n}", cudart.cudaGraphLaunch(executable, stream))
step(log, "all freed", *(cudart.cudaFreeAsync(block, stream) for *_, block in owners))
step(log, "trim", trim())
freeing.against(shared)
keeping.against(apart);

# %% tags=["expects-figure"]
draw.memory(log)

# %% [markdown]
# Graphs that free share pages, launched in turn in *one* stream. In two streams, two used 32 MiB with a wait
# between, and 64 while the first was held up (H200, 2026-12-02).
#
# ## Take with you
#
# - Free in the graph what only it needs.
# - What you keep has pages of its own, and you free it.
#
# Clean up; next, lesson 10: pools.

# %% tags=["nbval-check-output"]
for executable in (scratcher, keeper, finisher, *(made[0] for made in tenants + owners)):
    ok(cudart.cudaGraphExecDestroy(executable))
for plan in (inside, holding, finishing, hand, *(made[1] for made in tenants + owners),
             *(made[0] for made in [*plans.values(), *fits.values()])):
    ok(cudart.cudaGraphDestroy(plan))
step(log, "the end", trim())
del scratcher, keeper, finisher, inside, holding, finishing, hand, tenants, owners, plans, fits, executable, plan, run
