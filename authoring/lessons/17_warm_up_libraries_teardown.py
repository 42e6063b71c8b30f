# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 · Warm-up, libraries, teardown
#
# Your own calls are sound, and the capture breaks all the same: in a library's first call, or because
# Python threw something away. What happens the first time, what happens at the end, and what never
# fits into a graph?

# %%
from labkit import cudart, ok, LabError, Kernel, kernels, launch, to_device, to_host, graph, draw, predict, footprint, recover

# %%
import gc, random
import numpy as np
stream, other = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
MODES = {mode.name.removeprefix("cudaStreamCaptureMode"): mode for mode in cudart.cudaStreamCaptureMode}
x, y = (to_device(np.full(4, value, dtype=np.float32)) for value in (1, 0))

def begin(mode="Global", on=stream):
    ok(cudart.cudaStreamBeginCapture(on, MODES[mode]))

def captured(work, on=stream):                     # the executable of work(on), and its graph
    begin(on=on)
    work(on)
    plan = ok(cudart.cudaStreamEndCapture(on))
    return ok(cudart.cudaGraphInstantiate(plan, 0)), plan

# %% [markdown]
# ## What is hidden in a first call?
#
# The first launch of a kernel loads it. The first call of a library makes a handle, a pool, a workspace.
# **Predict:** of these five first uses, how many lose a Global capture?

# %%
costly = predict("How many of the five lose a Global capture?", None, unit="calls")
PROPS = cudart.cudaMemPoolProps()
PROPS.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
PROPS.location.type, PROPS.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0

def a_new_kernel():                                # compiled and loaded here, at its first launch
    source = 'extern "C" __global__ void half(float* x) { x[threadIdx.x] *= 0.5f; }'
    return launch(stream, Kernel(source, "half", ["float*"], lambda i, x: x.__setitem__(i, x[i] / 2)), 1, 4, x)

# %% tags=["expects-figure"]
first_uses = {"launch a new kernel": (a_new_kernel, None), "cudaStreamCreate": (cudart.cudaStreamCreate, cudart.cudaStreamDestroy),
              "cudaMemPoolCreate": (lambda: cudart.cudaMemPoolCreate(PROPS), cudart.cudaMemPoolDestroy),
              "cudaMalloc": (lambda: cudart.cudaMalloc(16), cudart.cudaFree), "cudaMallocHost": (lambda: cudart.cudaMallocHost(16), cudart.cudaFreeHost)}

def first_use(call, give_back, mode):
    begin(mode)
    code, *made = call()
    cudart.cudaStreamEndCapture(stream)
    return code, ok(give_back(*made)) if made and not int(code) else None

table = {name: {mode: first_use(*calls, mode)[0] for mode in MODES} for name, calls in first_uses.items()}
draw.answers(table, "The first use of a thing, inside a capture")

# %% tags=["nbval-check-output"]
print(f"{'':20}", *(f"{mode:>11}" for mode in MODES))
for name, codes in table.items():
    print(f"{name:20}", *(f"{int(code):11}" for code in codes.values()))
costly.against(sum(int(codes["Global"]) > 0 for codes in table.values()));

# %% [markdown]
# Loading a kernel is not the trouble (reports say: not since driver 12.3). Hidden **allocation** is: what takes
# memory from the device, or pins it.
#
# ## A library in ten lines
#
# It takes its workspace at the first call, as cuBLAS and CuPy's pool take theirs.

# %% tags=["nbval-check-output"]
class Library:
    workspace = None
    def twice(self, y, on):                        # doubles y
        if self.workspace is None:
            self.workspace = ok(cudart.cudaMalloc(y.nbytes))
        ok(cudart.cudaMemcpyAsync(self.workspace, y.ptr, y.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice, on))
        ok(launch(on, kernels.axpy, 1, 4, y, self.workspace, 1.0, 4))

try:
    captured(lambda on: Library().twice(x, on))
except LabError as error:
    print(int(error.code), error.code.name)
print(graph.capture_state(stream).status, cudart.cudaStreamEndCapture(stream)[0].name)

# %% [markdown]
# Call it once before: the **warm-up**, on the same stream, with the same sizes. It is real work.
# **Predict:** `x` is 1; what is in it after a warm-up on `x` itself and one replay?

# %% tags=["nbval-check-output"]
recover(stream)
ok(launch(stream, kernels.fill, 1, 4, x, 1.0, 4))
warm = Library()
warm.twice(x, stream)                              # the warm-up: better on a copy of x
executable, plan = captured(lambda on: warm.twice(x, on))
ok(cudart.cudaGraphLaunch(executable, stream))
print(to_host(x, stream), graph.kinds(plan))
ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(plan)), ok(cudart.cudaFree(warm.workspace))
del executable, plan, warm

# %% [markdown]
# Four, not two. The graph keeps the workspace's *address*: free it only after the last replay, as the cell did.
#
# ## CuPy and PyTorch
#
# They need a GPU; these are answers of one (`library_calls(run=True)` runs them on yours). **Predict:** which
# rows capture?

# %% tags=["expects-figure"]
from labkit.libraries import library_calls
calls = library_calls()
calls.only(None, "WARM", "LIB").figure("The first time, and the second")

# %% [markdown]
# CuPy's empty pool asks `cudaMalloc`: 900. A warm-up fills the pool of *its* stream only; an output made before
# needs none. A first cuBLAS handle is refused; PyTorch has it after a warm-up, CuPy keeps cuBLAS and cuRAND out
# altogether, and then the capture goes on. **Predict:** asking, waiting, copying?

# %% tags=["expects-figure"]
calls.only(None, "SYNC", "HOSTMEM").figure("Asking, waiting, copying: what never fits into a graph")

# %% [markdown]
# Nothing that needs a value on the host *now* can be in a graph. Some refusals cost the capture, some only the line. The last row
# is in the graph: pinned memory is read again at each replay.
#
# ## Garbage
#
# Libraries destroy graphs in a `__del__`. An object in a ring waits for Python's garbage collector, which comes
# when *it* likes. **Predict:** what does a capture say if it comes now?

# %%
waiting = []                                       # what nobody has destroyed yet

def destroy(executable):
    code, = cudart.cudaGraphExecDestroy(executable)
    waiting.extend([executable] * bool(code))      # refused: or it would leak
    print("  destroy", code.name)

class Replay:                                      # its executable goes when it goes
    def __init__(self, destroy):
        self.executable, plan = captured(lambda on: ok(launch(on, kernels.fill, 1, 4, y, 1.0, 4)), other)
        self.destroy, self.ring = destroy, self
        ok(cudart.cudaGraphDestroy(plan))
    def __del__(self): self.destroy(self.executable)

# %% tags=["nbval-check-output"]
def collect_inside(destroy=destroy, before=lambda: None):
    gc.collect(), gc.disable()
    Replay(destroy)                                # let go at once: the ring is garbage now
    before(), begin()
    gc.collect()                                   # it may come at any line, in any thread
    print("  launch ", launch(stream, kernels.fill, 1, 4, y, 2.0, 4)[0].name)
    end, plan = cudart.cudaStreamEndCapture(stream)
    print("  end    ", end.name, *([] if int(end) else graph.kinds(plan)))
    if not int(end): ok(cudart.cudaGraphDestroy(plan))
    gc.unfreeze(), gc.enable(), gc.collect()

collect_inside()
print("later", *(cudart.cudaGraphExecDestroy(waiting.pop())[0].name for _ in waiting[:]))

# %% [markdown]
# A Global capture refuses the destroy, in any thread, and is lost. Nobody looks at that code, and the error comes
# at the *next* call, an innocent line of yours. `with watch(stream):` around it
# names the line that destroyed; where a `__del__` made the call itself, it says so. Three ways out:

# %% tags=["nbval-check-output"]
def relaxed(executable):                           # this thread's own mode, for one call
    mine = ok(cudart.cudaThreadExchangeStreamCaptureMode(MODES["Relaxed"]))
    destroy(executable)
    ok(cudart.cudaThreadExchangeStreamCaptureMode(mine))

for way, kwargs in {"gc.collect() before": dict(before=gc.collect), "gc.freeze() before": dict(before=gc.freeze),
                    "own mode Relaxed": dict(destroy=relaxed)}.items():
    print(way)
    collect_inside(**kwargs)

# %% [markdown]
# Neither `gc.freeze()` nor `gc.disable()` stops a plain `del`. Inside a Global capture on the H200 (2026-12-02) an old
# graph of CuPy or PyTorch let go, CuPy's pool emptied, or a cuBLAS handle destroyed (in Relaxed too) lost it. The guilty line
# raised nothing; 901 came later.
#
# ## Streams that go
#
# **Predict:** you destroy a stream that was forked, or the one that captures. Which call complains?

# %% tags=["nbval-check-output"]
def destroy_inside(what):
    origin, branch = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
    begin(on=origin)
    if what != "origin":
        ok(cudart.cudaEventRecord(event, origin)), ok(cudart.cudaStreamWaitEvent(branch, event, 0))
    if "work" in what: ok(launch(branch, kernels.fill, 1, 4, y, 1.0, 4))
    gone, kept = (origin, branch) if what == "origin" else (branch, origin)
    destroyed, (end, plan) = cudart.cudaStreamDestroy(gone)[0], cudart.cudaStreamEndCapture(kept)
    print(f"{what:17} destroyed: {destroyed.name}   end: {end.name}")
    ok(cudart.cudaStreamDestroy(kept)), None if int(end) else ok(cudart.cudaGraphDestroy(plan))
event = ok(cudart.cudaEventCreate())
destroy_inside("branch"), destroy_inside("branch with work"), destroy_inside("origin");

# %% [markdown]
# Destroying never complains. An unjoined branch shows at the end; a capture whose origin goes is simply gone.
#
# ## After a failed capture
#
# **Predict** what these five calls answer while the capture is lost but not ended, and once it is.

# %% tags=["nbval-check-output"]
def five():
    answers = (launch(stream, kernels.fill, 1, 4, y, 5.0, 4), cudart.cudaStreamSynchronize(stream), cudart.cudaStreamBeginCapture(stream, MODES["Global"]),
               cudart.cudaStreamEndCapture(stream), cudart.cudaStreamEndCapture(stream))
    if not int(answers[3][0]): ok(cudart.cudaGraphDestroy(answers[3][1]))
    return " ".join(f"{int(code):5}" for code, *_ in answers)

begin()
cudart.cudaDeviceSynchronize()                     # 900: the capture is lost
print("launch  sync begin   end   end")
print(five(), " lost, not ended yet")
print(five(), " ended:", to_host(y, stream))

# %% [markdown]
# Not one works, until the first end; after it the stream is as new. `recover()` does just that.
#
# ## 64 shapes
#
# One executable a shape is the fastest way (lesson 07). What does it take? Ten kernels each; 7 buckets are
# the powers of two, the input padded. Or keep four and **evict**. **Predict:** 200 requests at random, how many captures?

# %%
rows = to_device(np.zeros(64 * 256, dtype=np.float32))

def for_shape(n):
    executable, plan = captured(lambda on: [ok(launch(on, kernels.scale, n, 256, rows, 1.0, 256 * n)) for _ in range(10)])
    ok(cudart.cudaGraphDestroy(plan))
    return executable

def one(): return for_shape(64)
def buckets(): return [for_shape(2 ** k) for k in range(7)]
def every(): return [for_shape(n) for n in range(1, 65)]

footprint("64 shapes", {"one shape": one, "7 buckets": buckets, "64 shapes": every}, count=32)

# %% tags=["nbval-check-output"]
def serve(requests, most):
    kept, captures = {}, 0
    for n in requests:
        if n not in kept:
            if len(kept) == most:                  # the one not used for longest; never inside a capture
                ok(cudart.cudaGraphExecDestroy(kept.pop(next(iter(kept)))))
            kept[n], captures = for_shape(n), captures + 1
        kept[n] = kept.pop(n)                      # the latest used stands last
    return captures, [ok(cudart.cudaGraphExecDestroy(kept.pop(n))) for n in list(kept)][:0]
shapes = random.Random(17).choices(range(1, 65), k=200)
for name, requests in {"every shape": shapes, "buckets": [1 << (n - 1).bit_length() for n in shapes]}.items():
    print(f"{name:12}", *(f"keep {most:2}: {serve(requests, most)[0]:3} captures  " for most in (4, 64)))

# %% [markdown]
# Four places without buckets hardly help; with buckets, 28 captures in place of 190. What an executable keeps grows
# with its nodes, and all of it with the shapes: read it on your GPU, with nothing else running there.
#
# ## Graphs in graphs
#
# Three ways to put one into another: launch it inside a capture, add it as a child, add one that allocates as a
# child. **Predict:** which works?

# %% tags=["nbval-check-output"]
ok(launch(stream, kernels.fill, 1, 4, x, 1.0, 4)), ok(launch(stream, kernels.fill, 1, 4, y, 2.0, 4))
work, plain = captured(lambda on: ok(launch(on, kernels.axpy, 1, 4, x, y, 1.0, 4)))
memory, allocating = captured(lambda on: ok(cudart.cudaFreeAsync(ok(cudart.cudaMallocAsync(64, on)), on)))
begin()
print("launch inside:   ", cudart.cudaGraphLaunch(work, stream)[0].name, "· end", cudart.cudaStreamEndCapture(stream)[0].name)
top = ok(cudart.cudaGraphCreate(0))
print("allocating child:", cudart.cudaGraphAddChildGraphNode(top, [], 0, allocating)[0].name)
first = ok(cudart.cudaGraphAddChildGraphNode(top, [], 0, plain))
ok(cudart.cudaGraphAddChildGraphNode(top, [first], 1, plain))
print("two children:    ", graph.kinds(top), graph.edges(top))
_ = [*map(cudart.cudaGraphExecDestroy, (work, memory)), *map(cudart.cudaGraphDestroy, (plain, allocating, top))]

# %% [markdown]
# Children, without memory nodes. Not tried here: **NCCL** (reports of hangs: each rank must capture and replay the same calls in the same
# order), several **devices**, another **driver**, which may answer otherwise.
#
# ## Take with you
#
# - Warm up on the same stream, with the same sizes, on a copy.
# - Make handles, pools and workspaces before; destroy nothing during a capture.
# - After a failed capture: end it, go on.
#
# | never in a graph | instead |
# |---|---|
# | asking or waiting: `.item()`, masks, `nonzero`, `synchronize` | ask after the replay |
# | allocation, pinning, a library's first handle | before |
# | destroying executables, modules, pools; emptying a cache | after |
# | launching a graph | a child graph |
