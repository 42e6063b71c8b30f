# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 16 · Silent failures
#
# A sixth of all reports from the field have no error at all: every code is success, and the number is wrong. Eight small
# programs. Each shows its wrong number. **Say what happened before you run the next cell**; that one looks into the
# graph, then mends it. (6 and 7 print the wrong number and the mended one in one cell: say beforehand what comes out.)

# %%
from labkit import cudart, ok, Kernel, kernels, launch, launched, empty, to_device, to_host, graph, watch, recover, draw

# %%
import ctypes, random, threading
import numpy as np
GLOBAL, COPY = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal, cudart.cudaMemcpyKind
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
x, y, counter, rates = (to_device(np.full(4, value, dtype=np.float32)) for value in (1, 0, 0, 0))
made = []                                          # every graph, to be destroyed at the end

def record(work):                                  # the graph of what work() queues
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work()
    made.append(ok(cudart.cudaStreamEndCapture(stream)))
    return made[-1]

# %%
def run(kernel, *args):                            # launch on four floats
    ok(launch(stream, kernel, 1, 4, *args, 4))

def replays(plan, before=lambda n: None):          # y after replay 1, 2, 3; y starts at 0
    executable, seen = ok(cudart.cudaGraphInstantiate(plan, 0)), []
    run(kernels.fill, y, 0.0)
    for n in (1, 2, 3):
        before(n)
        ok(cudart.cudaGraphLaunch(executable, stream))
        seen.append(float(to_host(y, stream)[0]))
    ok(cudart.cudaGraphExecDestroy(executable))
    return seen

# %% [markdown]
# ## 1 · The tenfold
#
# `y` is set to 1, a helper makes it tenfold, 5 is added. What do three replays leave? (`x` is 1 throughout.)

# %% tags=["nbval-check-output"]
def tenfold(on=0):                                 # somebody's helper
    ok(launch(on, kernels.scale, 1, 4, y, 10.0, 4))

def program(*where):
    run(kernels.fill, y, 1.0), tenfold(*where), run(kernels.axpy, y, x, 5.0)

lossy = record(program)
ok(cudart.cudaDeviceSynchronize())
print("expected [15, 15, 15], got", replays(lossy))

# %%
step = 5.0
with watch(stream) as w:                           # the same, line by line
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    tenfold()
    ok(launch(stream, kernels.axpy, 1, 4, y, x, step, 4))
    ok(cudart.cudaGraphDestroy(ok(cudart.cudaStreamEndCapture(stream))))
ok(cudart.cudaDeviceSynchronize())
for each in w.frozen:
    print("frozen:", each.kernel, each.values, "by", each.text)

# %% tags=["nbval-check-output"]
complete = record(lambda: program(stream))
print(graph.kinds(lossy), "->", graph.kinds(complete))
print("got", replays(complete))

# %% tags=["expects-figure"]
draw.difference(lossy, complete)

# %% [markdown]
# The helper uses stream 0. Beside a *non-blocking* capture that runs at once, and is left out. Pass the stream.
# `w.frozen` lists the numbers that each launch into the graph keeps; here they are meant.
#
# ## 2 · The rate
#
# `y` grows by a rate that is 1, then 2, then 3; a rate above 2 sets `y` back to 0. What do three replays leave?

# %% tags=["nbval-check-output"]
def grow():
    run(kernels.axpy, y, x, rate)
    if rate > 2:
        run(kernels.scale, y, 0.0)

def change(n):
    global rate
    rate = float(n)

change(1)
frozen = record(grow)
print("expected [1, 3, 0], got", replays(frozen, before=change), "· the rate is", rate)

# %% tags=["nbval-check-output"]
print(graph.kinds(frozen), "with the rate", launched(graph.nodes(frozen)[0]).args[2])
grows = record(lambda: run(kernels.axpy, y, rates, 1.0))                # the rate lies in device memory
restarts = record(lambda: run(kernels.fill, y, 0.0))
executables = [ok(cudart.cudaGraphInstantiate(plan, 0)) for plan in (grows, restarts)]
run(kernels.fill, y, 0.0)
for n in (1, 2, 3):
    run(kernels.fill, rates, float(n))
    ok(cudart.cudaGraphLaunch(executables[n > 2], stream))              # the `if` chooses a graph
    print("rate", n, "y", to_host(y, stream))
for executable in executables: ok(cudart.cudaGraphExecDestroy(executable))

# %% [markdown]
# Python ran once, at the capture: one number, one branch, and a loop would be as long as it was then. What changes
# belongs in device memory, or around the launch.
#
# ## 3 · The counter
#
# A captured function counts its steps and prints. After three replays, what is `count`?

# %% tags=["nbval-check-output"]
count = 0

def counted():
    global count
    count += 1
    print("step", count)
    run(kernels.axpy, y, x, 1.0)

once = record(counted)
print("expected 3 steps, got", count, "· y", replays(once))

# %% tags=["nbval-check-output"]
print(graph.kinds(once))
counting = record(lambda: (run(kernels.axpy, y, x, 1.0), run(kernels.axpy, counter, x, 1.0)))
run(kernels.fill, counter, 0.0)
print("y", replays(counting), "· counted by the graph", to_host(counter, stream)[0])

# %% [markdown]
# The graph knows neither `count` nor `print`. A count that must be right is made by a node (or beside the launch).
#
# ## 4 · The dice
#
# Each step throws a die: a kernel makes a number from 1 to 6 of a seed that `random` gives. Three replays, three throws?

# %% tags=["nbval-check-output"]
def throw(i, y, counter, seed, n):                 # the twin, for machines without a GPU
    y[0] = 1 + ((int(seed) + int(counter[0])) * 1103515245 + 12345) % 2 ** 32 // 65536 % 6

die = Kernel('extern "C" __global__ void die(float* y, const float* counter, unsigned int seed, int n) '
             "{ y[0] = 1 + ((seed + (unsigned int)counter[0]) * 1103515245u + 12345u) / 65536u % 6u; }",
             "die", ["float*", "const float*", "unsigned int", "int"], throw)
dice = random.Random(16)
run(kernels.fill, counter, 0.0)
loaded = record(lambda: run(die, y, counter, dice.getrandbits(16)))
print("thrown", replays(loaded), "and once more", replays(loaded))

# %% tags=["nbval-check-output"]
print("the seed in the node, now and later:", *[launched(graph.nodes(loaded)[0]).args[2] for _ in range(2)])
run(kernels.fill, counter, 0.0)
fair = record(lambda: (run(kernels.axpy, counter, x, 1.0), run(die, y, counter, 7)))
print("thrown", replays(fair), "and once more", replays(fair))

# %% [markdown]
# The seed is an argument, so it is frozen. The cure is a seed *and a counter in device memory* that the graph itself moves on;
# generators of libraries that can be captured work like that.
#
# ## 5 · The new input
#
# `y = source + source` is captured. Then `source` gets new numbers, as one does in Python. What do the replays add?

# %% tags=["nbval-check-output"]
shelf = []                                         # blocks that were given back, for whoever asks next

def new(value):
    block = shelf.pop() if shelf else empty(4)
    run(kernels.fill, block, value)
    return block

source = old = new(1.0)
doubled = record(lambda: run(kernels.add, y, source, source))
source = new(10.0)                                 # the new input
print("expected 20, got", replays(doubled))
shelf.append(old)                                  # nobody needs the old one
somebody = new(70.0)
print("expected 20, got", replays(doubled))

# %% tags=["nbval-check-output"]
args = launched(graph.nodes(doubled)[0]).args
for name, block in (("source", source), ("old", old), ("somebody's", somebody)):
    print(f"{name:10} is what the node reads: {args[1] == block.ptr}")
kept = new(1.0)
mended = record(lambda: run(kernels.add, y, kept, kept))
run(kernels.fill, kept, 10.0)                      # the new input, into the block that was captured
print("got", replays(mended))

# %% [markdown]
# The node keeps the address of the first block, whoever owns it. Lesson 14 has the whole clinic.
#
# ## 6 · The three results
#
# Three replays, each adds 1; the results are kept in a list and read at the end. What are they?

# %% tags=["nbval-check-output"]
executable = ok(cudart.cudaGraphInstantiate(once, 0))
for cure in (False, True):
    results = []
    run(kernels.fill, y, 0.0)
    for _ in range(3):
        ok(cudart.cudaGraphLaunch(executable, stream))
        results.append(new(0.0) if cure else y)
        if cure:                                   # a copy of its own, queued before the next replay
            ok(cudart.cudaMemcpyAsync(results[-1].ptr, y.ptr, y.nbytes, COPY.cudaMemcpyDeviceToDevice, stream))
    print("expected [1, 2, 3], got", [float(to_host(each, stream)[0]) for each in results], "· buffers:", len({each.ptr for each in results}))
shelf += results
ok(cudart.cudaGraphExecDestroy(executable))

# %% [markdown]
# One buffer, thrice. Copy out in stream order, or let two graphs write two buffers in turn.
#
# ## 7 · The three batches
#
# A graph uploads a batch from pinned host memory and adds it. The host writes batch 1, launches, writes 2, launches, writes 3,
# launches. The GPU happens to be busy: `hold` sees to that. What is the sum?

# %%
alive = []                                         # C functions that CUDA may call

def host_function(call):
    alive.append(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: call()))
    return cudart.cudaHostFn_t(ctypes.cast(alive[-1], ctypes.c_void_p).value)

def hold():                                        # the stream waits until go() is called, 3 seconds at most
    gate = threading.Event()
    ok(cudart.cudaLaunchHostFunc(stream, host_function(lambda: gate.wait(3)), 0))
    return gate.set

# %% tags=["nbval-check-output"]
address = ok(cudart.cudaMallocHost(16))
batch = (ctypes.c_float * 4).from_address(address)
uploads = record(lambda: (ok(cudart.cudaMemcpyAsync(rates.ptr, address, 16, COPY.cudaMemcpyHostToDevice, stream)), run(kernels.axpy, y, rates, 1.0)))
executable = ok(cudart.cudaGraphInstantiate(uploads, 0))
for cure in (False, True):
    run(kernels.fill, y, 0.0)
    go = hold()
    for n in (1, 2, 3):
        if cure: go(), ok(cudart.cudaStreamSynchronize(stream))         # the last upload is done
        batch[:] = [n] * 4
        ok(cudart.cudaGraphLaunch(executable, stream))
    print("expected 6, got", go() or to_host(y, stream)[0], "waited before each change" if cure else graph.kinds(uploads))

# %% [markdown]
# The Memcpy node reads pinned memory when it *runs*: three times batch 3. Wait before you overwrite, or give each replay in
# flight a buffer of its own. (*Pageable* memory was read at the call of `cudaGraphLaunch`: 6. H200, driver 580.159.04, 2026-12-02.)
#
# ## 8 · The log
#
# A host node calls Python after each replay; `look` copies `y` to the host and notes it. What does it note?

# %% tags=["nbval-check-output"]
here, seen, codes = np.zeros(4, dtype=np.float32), [], []

def look():
    codes.append(cudart.cudaMemcpy(here.ctypes.data, y.ptr, 16, COPY.cudaMemcpyDeviceToHost)[0])
    seen.append(float(here[0]))

def and_then(plan, call):                          # a host node after the last node
    params = cudart.cudaHostNodeParams()
    params.fn, params.userData = host_function(call), 0
    ok(cudart.cudaGraphAddHostNode(plan, graph.nodes(plan)[-1:], 1, params))
    return plan
print("y was", replays(and_then(record(lambda: run(kernels.axpy, y, x, 1.0)), look)), "· noted", seen)

# %% tags=["nbval-check-output"]
print("what nobody looked at:", *{code.name for code in codes})
noted = []
noting = record(lambda: (run(kernels.axpy, y, x, 1.0), ok(cudart.cudaMemcpyAsync(address, y.ptr, 16, COPY.cudaMemcpyDeviceToHost, stream))))
and_then(noting, lambda: noted.append(batch[0]))   # it calls no CUDA: the copy is a node
print(graph.kinds(noting), "y was", replays(noting), "· noted", noted)
recover(stream)
ok(cudart.cudaGraphExecDestroy(executable))        # of the batches
while made: ok(cudart.cudaGraphDestroy(made.pop()))
ok(cudart.cudaFreeHost(address))
del address, batch, executable, noting, uploads, once, loaded, fair, counting, doubled, mended, lossy, complete, frozen, grows, restarts

# %% [markdown]
# A host function may not call CUDA: 800. Keep its ctypes object, as `alive` does: without, a replay crashed, or called the
# function *made next*. The bindings' `cudaLaunchHostFunc`, captured, crashed at the second replay (H200, driver 580.159.04,
# 2026-12-02).
#
# ## Take with you
#
# | wrong number | look at |
# |---|---|
# | a step is missing | `graph.kinds`, `watch` |
# | always the same | `launched(node).args`, `w.frozen` |
# | old or foreign input | the addresses in the node, who owns them |
# | the last result, thrice | one buffer? read after the next replay? |
# | a callback's | its codes |
#
# Next, lesson 17: warm-up, libraries, teardown.
