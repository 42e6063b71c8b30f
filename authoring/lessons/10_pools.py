# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Pools: who keeps the memory?
#
# `cudaMallocAsync` may cost next to nothing, or more than the work it is for. The call is the same. What differs
# is whether somebody kept the memory from last time. That somebody is a pool.

# %%
from labkit import cudart, ok, cuuint64_t, memory_log, empty, predict_order, measure, recover, draw

# %%
MiB, Attr, GLOBAL = 2 ** 20, cudart.cudaMemPoolAttr, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
stream, other = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
default = ok(cudart.cudaDeviceGetDefaultMemPool(0))
pools, blocks, graphs = [], [], []                 # all that is made below and has to go at the end

def new_pool(threshold=0):
    props = cudart.cudaMemPoolProps()
    props.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    props.location.type, props.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    pools.append(ok(cudart.cudaMemPoolCreate(props)))
    ok(cudart.cudaMemPoolSetAttribute(pools[-1], Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(threshold)))
    return pools[-1]

# %% [markdown]
# ## What does a pool take?
#
# Each GPU has a pool from the start, the *default* one; `new_pool` makes another. A pool counts what it has handed out,
# *used*, and what it holds of the GPU for that, *reserved*. **Predict** both after a request of 100 bytes, and after two more of 20 MiB.

# %% tags=["nbval-check-output"]
def free(blocks):
    while blocks:
        ok(cudart.cudaFreeAsync(blocks.pop(), stream))

free(blocks)                                       # of an earlier run
ok(cudart.cudaDeviceGraphMemTrim(0))               # what earlier graphs left and nobody holds
pool = new_pool()
log = memory_log(pool=pool)
start = log("new")["graph"].used
for size, label in ((100, "100 B"), (20 * MiB, "20 MiB more"), (20 * MiB, "and 20 more")):
    blocks.append(ok(cudart.cudaMallocFromPoolAsync(size, pool, stream)))
    print(f"{label:11}  used {log(label)['pool'].used:10,} bytes, reserved {log.samples[-1]['pool'].reserved // MiB} MiB")

# %% tags=["expects-figure"]
free(blocks)
log("freed")
ok(cudart.cudaStreamSynchronize(stream))
log("waited")
draw.memory(log)

# %% [markdown]
# A pool's *used* follows the calls; *reserved* goes in steps of 32 MiB and fell at the **wait**, not at the free. Graph memory
# counts otherwise: *used* is whole pages, also after a free, until a trim.
#
# ## What stays after a wait?
#
# The *release threshold* says. **Predict:** two pools, `returns` with 0, `keeps` without limit. Each lends 40 MiB, twice; then
# `keeps` is trimmed to 40, 32, 0.

# %% tags=["nbval-check-output"]
returns, keeps = new_pool(), new_pool(threshold=2 ** 60)
waits = memory_log(returns=returns, keeps=keeps)
for again in ("", " again"):
    lent = [ok(cudart.cudaMallocFromPoolAsync(40 * MiB, each, stream)) for each in (returns, keeps)]
    waits("lent" + again)
    free(lent)
    ok(cudart.cudaStreamSynchronize(stream))
    waits("waited" + again)
for least in (40, 32, 0):
    ok(cudart.cudaMemPoolTrimTo(keeps, least * MiB))
    waits(f"trim to {least}")
print("\n".join(f"{s.label:12}  reserved {s['returns'].reserved // MiB:2} and {s['keeps'].reserved // MiB:2} MiB" for s in waits.samples))

# %% tags=["expects-figure"]
draw.memory(waits, of=["returns", "keeps"])

# %% [markdown]
# With 0, each wait gives it back to the GPU, and the next call fetches it anew. A trim leaves *at least* what you name, in whole
# steps.
#
# ## What can be set?
#
# `keeps` shows its high-water mark, the most it ever reserved. **Predict** which of five CUDA accepts: the mark set to 5, or 0;
# *reserved* to 0; the threshold as `int`, or `cuuint64_t`.

# %% tags=["nbval-check-output"]
def set_to(attribute, value):
    return cudart.cudaMemPoolSetAttribute(keeps, attribute, value)[0].name

print("the mark stands at   ", memory_log(keeps=keeps)("before")["keeps"].reserved_high // MiB, "MiB")
print("the mark, 5          ", set_to(Attr.cudaMemPoolAttrReservedMemHigh, cuuint64_t(5)))
print("reserved, 0          ", set_to(Attr.cudaMemPoolAttrReservedMemCurrent, cuuint64_t(0)))
try:
    set_to(Attr.cudaMemPoolAttrReleaseThreshold, 2 ** 60)
except AttributeError as error:
    print("threshold, an int    ", "Python raised", type(error).__name__)
print("threshold, cuuint64_t", set_to(Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(2 ** 60)))
print("the mark, 0          ", set_to(Attr.cudaMemPoolAttrReservedMemHigh, cuuint64_t(0)))
print("the mark stands at   ", memory_log(keeps=keeps)("after")["keeps"].reserved_high // MiB, "MiB")

# %% [markdown]
# A mark takes only 0: down to what is reserved now. Sizes are a C type; a plain `int` is refused by Python, before CUDA is asked.
#
# ## Does a pool belong to a stream?
#
# Some texts say so of `cudaDeviceSetMemPool`. It makes our new pool `mine` the *current* one. **Predict:** four requests of 10 MiB:
# in a stream, in another, captured, captured with `mine` named. Which does `mine` count?

# %%
def capture(work, *args):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    answer, plan = work(*args), ok(cudart.cudaStreamEndCapture(stream))
    return plan, ok(cudart.cudaGraphInstantiate(plan, 0)), answer

def captured(take, *args):                         # captured, launched once, and the graph kept
    plan, executable, (code, pointer) = capture(take, *args)
    graphs.append((plan, executable, pointer))
    ok(cudart.cudaGraphLaunch(executable, stream))
    return code, pointer

requests = {"a stream": lambda: cudart.cudaMallocAsync(10 * MiB, stream), "another": lambda: cudart.cudaMallocAsync(10 * MiB, other),
            "captured": lambda: captured(cudart.cudaMallocAsync, 10 * MiB, stream),
            "captured from mine": lambda: captured(cudart.cudaMallocFromPoolAsync, 10 * MiB, mine, stream)}

# %% tags=["nbval-check-output"]
ok(cudart.cudaDeviceGraphMemTrim(0))               # what an earlier run of this cell left
mine = new_pool()
device_log = memory_log(mine=mine)
device_log("set")
ok(cudart.cudaDeviceSetMemPool(0, mine))           # plain requests take from it now
for label, request in requests.items():
    blocks.append(ok(request()))
    now = device_log(label)
    print(f"{label:18}  mine {now['mine'].used // MiB} MiB, graph memory {(now['graph'].used - start) // MiB:2} MiB")
ok(cudart.cudaDeviceSynchronize())
free(blocks)
ok(cudart.cudaStreamSynchronize(stream))

# %% tags=["expects-figure"]
draw.memory(device_log)

# %% [markdown]
# The plain calls, in whatever stream: the current pool is the *device's*. A captured request takes graph memory, even one
# that names the pool: a graph copies its properties, no more.
#
# ## May a pool go first?
#
# All is freed; `mine` is still current. **Predict:** the default pool is destroyed, then `mine`. Which one is current then? Do
# the two graphs still work?

# %% tags=["nbval-check-output"]
threshold = int(ok(cudart.cudaMemPoolGetAttribute(default, Attr.cudaMemPoolAttrReleaseThreshold)))
print("default pool ", f"threshold {threshold}, destroy it", cudart.cudaMemPoolDestroy(default)[0].name)
print("mine         ", "destroy it", cudart.cudaMemPoolDestroy(pools.pop(pools.index(mine)))[0].name)
del mine                                           # a handle of what is gone
print("current      ", "the default pool" if int(ok(cudart.cudaDeviceGetMemPool(0))) == int(default) else "another")
for plan, executable, pointer in graphs[-2:]:
    print("launch, free ", cudart.cudaGraphLaunch(executable, stream)[0].name, cudart.cudaFreeAsync(pointer, stream)[0].name)
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    code, executable = cudart.cudaGraphInstantiate(plan, 0)
    print("made again   ", code.name)
    ok(cudart.cudaGraphExecDestroy(executable))

# %% [markdown]
# The default pool stays. Free before you destroy: the documentation lets a pool go in use, but freeing later hung or killed
# the process at the next pool, 30 of 30 (H200, driver 580.159.04, 2026-12-02).
#
# ## Is the count right?
#
# `cudaFree` takes pool memory too; it does not wait for work that is under way. **Predict:** three rounds of 10 MiB, each freed twice. What do *used* and
# *reserved* say?

# %% tags=["nbval-check-output"]
odd = new_pool()
odd_log = memory_log(odd=odd)
for label in ("round 1", "round 2", "round 3"):
    block = ok(cudart.cudaMallocFromPoolAsync(10 * MiB, odd, stream))
    codes = [cudart.cudaFree(block)[0], cudart.cudaFree(block)[0]]
    now = odd_log(label)["odd"]
    print(label, "free:", codes[0].name, "again:", codes[1].name)
    print(f"         used {now.used // MiB} MiB, reserved {now.reserved // MiB} MiB")

# %% [markdown]
# *Used* 30 MiB, *reserved* 0: only the count is wrong (H200, driver 580.159.04, 2026-12-02; others may differ). Free with
# `cudaFreeAsync` what was allocated in stream order.
#
# ## What does an allocation cost?
#
# Five ways to use 4 KiB of a buffer. The *returning* pool is `returns`, the *keeping* one `keeps`; the *borrowing* graph finds
# its buffer made before.

# %%
ready = empty(128 * MiB, "uint8")                  # made once, for the borrowing graph

def use_once(take, size, give, *where):            # where: a pool and a stream, or a stream, or nothing
    buffer = ok(take(size, *where))
    yield "allocate"
    ok(cudart.cudaMemsetAsync(buffer, 0, 4096, stream))
    yield "use"
    ok(give(buffer, *where[-1:]))
    yield "free"

def malloc(made, mib):
    yield from use_once(cudart.cudaMalloc, int(mib * MiB), cudart.cudaFree)

# %%
def from_pool(pool, mib):
    return use_once(cudart.cudaMallocFromPoolAsync, int(mib * MiB), cudart.cudaFreeAsync, pool, stream)

def cold(made, mib):
    yield from from_pool(returns, mib)

def warm(made, mib):
    yield from from_pool(keeps, mib)

def prepare(mib):
    _, allocating, _ = capture(lambda: list(use_once(cudart.cudaMallocAsync, int(mib * MiB), cudart.cudaFreeAsync, stream)))
    _, borrowing, _ = capture(cudart.cudaMemsetAsync, ready.ptr, 0, 4096, stream)
    return allocating, borrowing

# %%
def graph_allocates(made, mib):
    ok(cudart.cudaGraphLaunch(made[0], stream))
    yield "launch"

def graph_borrows(made, mib):
    ok(cudart.cudaGraphLaunch(made[1], stream))
    yield "launch"

ways = {"cudaMalloc": malloc, "returning pool": cold, "keeping pool": warm,
        "allocating graph": graph_allocates, "borrowing graph": graph_borrows}
order = predict_order("A buffer of 4 KiB: which way is fastest, end to end?", None, of=ways)

# %% tags=["expects-figure"]
small, *larger = [measure("allocation cost", ways, setup=prepare, stream=stream, mib=mib) for mib in (1 / 256, 2, 8, 32, 128)]
if not small.missing:
    order.against(small)
    draw.strategies(small, guess=order, reference="borrowing graph").show()
draw.stages(larger, x="mib", of=[(name, "e2e") for name in ways], label="size of the buffer, MiB")

# %% [markdown]
# The returning pool fetches memory from the GPU each time; so does `cudaMalloc`, in steps of 2 MiB. The others keep theirs:
# flat lines. Between the two pools only the threshold differs.
#
# ## A pool for each size?
#
# Some advise it for changing shapes. **Predict:** 1, 4, 16, 64 MiB, each used and waited for in turn. What does one pool keep,
# what does each of four?

# %% tags=["nbval-check-output"]
SIZES = (1, 4, 16, 64)                             # MiB
shared, own = new_pool(2 ** 60), {mib: new_pool(2 ** 60) for mib in SIZES}

def one_pool(mib):
    yield from from_pool(shared, mib)

def pool_per_size(mib):
    yield from from_pool(own[mib], mib)

for mib in SIZES:
    list(one_pool(mib))                            # runs it to its end
    list(pool_per_size(mib))
    ok(cudart.cudaStreamSynchronize(stream))
now = memory_log(shared=shared, **{f"MiB_{mib}": own[mib] for mib in SIZES})("each used once")
print("one pool keeps", now["shared"].reserved // MiB, "/ four keep", *(now[f"MiB_{mib}"].reserved // MiB for mib in SIZES), "MiB")

# %% tags=["expects-figure"]
import random
dice = random.Random(10)
changing = [SIZES[int(4 * dice.random())] for _ in range(60)]
shapes = measure("pools for changing sizes", {"one pool": one_pool, "a pool per size": pool_per_size}, stream=stream,
                 vary={"mib": changing}, repeat=len(changing))
draw.strategies(shapes, reference="one pool")

# %% [markdown]
# The bars are alike: the calls are the same. What is kept is not: no size may use what another left.
#
# ## More than the GPU has
#
# Told, not run: a graph of 200 GiB was captured and instantiated; its launch said `cudaErrorMemoryAllocation`. From then on
# nearly the whole GPU was reserved for graphs, and nothing gave it back until the process ended (H200, driver 580.159.04, 2026-12-02).

# %% tags=["nbval-check-output"]
free(blocks)                                       # before their pools go
ok(cudart.cudaStreamSynchronize(stream))
while graphs:
    ok(cudart.cudaGraphDestroy(graphs.pop()[0]))
while pools:
    ok(cudart.cudaMemPoolDestroy(pools.pop()))
ok(cudart.cudaDeviceGraphMemTrim(0))
print("the default pool is current:", int(ok(cudart.cudaDeviceGetMemPool(0))) == int(default))
more = (memory_log()("end")["graph"].used - start) // MiB
print("graph memory more than at the start:", more, "MiB" + ": an address was lost; restart the kernel to free it" * (more > 0))
ready.free()
del ready, pool, returns, keeps, odd, shared, own  # handles of what is gone

# %% [markdown]
# ## Take with you
#
# - A pool keeps what it was given back, until a wait. The release threshold says how much stays; 0, its default, means fetch and
#   return each time.
# - A pool belongs to a device. Graph memory is not a pool. Each has a trim of its own.
# - A pool of your own has a threshold and a count of its own.
#
# Next: a clinic of failures.
