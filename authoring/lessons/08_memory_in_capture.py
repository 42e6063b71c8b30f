# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 08 · Memory in a capture
#
# Captured work needs memory, and there are three ways to get it: `cudaMalloc` in the middle of the
# capture, `cudaMallocAsync` on the capturing stream, or a buffer from before. Only one of them is in
# the graph. Which, and who owns the memory in the other two?

# %%
from labkit import cudart, ok, kernels, launch, to_device, to_host, graph, predict, film, memory_log, keep_alive, recover, draw

# %%
import time
import weakref
import numpy as np
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
MODES = {mode.name.removeprefix("cudaStreamCaptureMode"): mode for mode in cudart.cudaStreamCaptureMode}
GLOBAL, MiB = MODES["Global"], 2 ** 20
y = to_device(np.zeros(4, dtype=np.float32))

def instantiate(recorded):
    return ok(cudart.cudaGraphInstantiate(recorded, 0))

# %% [markdown]
# ## First way: cudaMalloc
#
# A kernel, then `cudaMalloc`, in the middle of a capture. Lesson 02 looked at its code only. Now look at
# what comes out. **Predict:** in how many of the three modes does the allocation become part of the
# graph?

# %%
in_modes = predict("In how many of the three modes is the allocation in the graph?", None, unit="modes")

def malloc_inside(mode):
    ok(cudart.cudaStreamBeginCapture(stream, mode))
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    code, block = cudart.cudaMalloc(4096)
    status = graph.capture_state(stream).status
    end, recorded = cudart.cudaStreamEndCapture(stream)
    return code, status, end, recorded, block

# %% tags=["nbval-check-output"]
tries = {name: malloc_inside(mode) for name, mode in MODES.items()}
kinds = {name: [] if recorded is None else graph.kinds(recorded) for name, (*_, recorded, _) in tries.items()}
print(f"{'mode':12} {'cudaMalloc':34} {'the capture':12} {'cudaStreamEndCapture':34} in the graph")
for name, (code, status, end, *_) in tries.items():
    print(f"{name:12} {code.name:34} {status:12} {end.name:34}", *kinds[name] or ["no graph"])
recover(stream)
in_modes.against(sum("MemAlloc" in found for found in kinds.values()));

# %% tags=["expects-figure"]
draw.graph(tries["Relaxed"][3])                    # the only graph that came out

# %% [markdown]
# In none. Global and ThreadLocal refuse, and the capture is lost. Relaxed lets the call through, but
# not into the graph: it ran at once, during the capture. The graph has the kernel only.
#
# ## Whose is that block?
#
# **Predict:** capture three times in Relaxed, launch each graph ten times, destroy all. How many blocks
# are left?

# %%
blocks_left = predict("How many blocks are left?", None, unit="blocks")

# %% tags=["nbval-check-output"]
left = []
for _ in range(3):
    *_, recorded, block = malloc_inside(MODES["Relaxed"])
    executable = instantiate(recorded)
    for _ in range(10):
        ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(recorded))
    left.append(block)
blocks_left.against(len(set(left)))
print("given back by hand:", *(cudart.cudaFree(block)[0].name for block in left))

# %% [markdown]
# One for each *capture*, not for each launch; none went with its graph. So keep the address and free it
# yourself; but then you could as well have allocated before the capture.
#
# ## Second way: cudaMallocAsync
#
# Four calls on the capturing stream: allocate, two kernels, free. **Predict** the graph: which nodes,
# which edges?

# %% tags=["expects-figure"]
with film(stream) as reel:
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    block = ok(cudart.cudaMallocAsync(16, stream))
    ok(launch(stream, kernels.fill, 1, 4, block, 3.0, 4))
    ok(launch(stream, kernels.axpy, 1, 4, y, block, 1.0, 4))
    ok(cudart.cudaFreeAsync(block, stream))
    inside = ok(cudart.cudaStreamEndCapture(stream))

reel.show()

# %% tags=["nbval-check-output"]
print(graph.kinds(inside), graph.edges(inside))
params = ok(cudart.cudaGraphMemAllocNodeGetParams(graph.nodes(inside)[0]))
print("the node allocates", int(params.bytesize), "bytes, at the address you were given:", int(params.dptr) == block)
executable = instantiate(inside)
ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
for _ in range(3):
    ok(cudart.cudaGraphLaunch(executable, stream))
    print(to_host(y, stream))
ok(cudart.cudaGraphExecDestroy(executable))

# %% [markdown]
# Each launch allocates and frees. Yet the address was there in the capture: kernels must be told where
# their data lies.
#
# ## The address is there. Is the memory?
#
# A graph allocates 20 MiB and does not free them. `memory_log` reads CUDA's counters after seven steps:
# capture, instantiate, launch, free, destroy the executable, destroy the graph, trim. **Predict:** which
# takes memory, which gives it back?

# %%
once_instantiated = predict("20 MiB in a graph: how much is taken once it is instantiated?", None, unit="MiB")

def allocation(size):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    block = ok(cudart.cudaMallocAsync(size, stream))
    return block, ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["expects-figure"]
ok(cudart.cudaDeviceGraphMemTrim(0))               # what earlier cells left
log = memory_log(); log("start")
block, recorded = allocation(20 * MiB); log("captured")
executable = instantiate(recorded); log("instantiated")
early = cudart.cudaMemsetAsync(block, 0, 4, stream)[0]      # there is an address, and no memory yet
ok(cudart.cudaGraphLaunch(executable, stream)); log("launched")
late = cudart.cudaMemsetAsync(block, 0, 4, stream)[0]
ok(cudart.cudaFreeAsync(block, stream)), ok(cudart.cudaStreamSynchronize(stream)); log("freed")
ok(cudart.cudaGraphExecDestroy(executable)); log("executable destroyed")
ok(cudart.cudaGraphDestroy(recorded)); log("graph destroyed")
ok(cudart.cudaDeviceGraphMemTrim(0)); log("trimmed")
draw.memory(log)

# %% tags=["nbval-check-output"]
print("memset before the launch:", early.name, "and after it:", late.name)
taken = {sample.label: sample["graph"].used - log.samples[0]["graph"].used for sample in log.samples}
for label, size in taken.items():
    print(f"{label:21}", "20 MiB or more" if size >= 20 * MiB else "nothing" if size == 0 else "less than it needs")
once_instantiated.against(taken["instantiated"] / MiB);

# %% [markdown]
# An address is not memory: before the launch even a memset is refused. Memory comes with the first
# launch (or upload), in whole pages: on the H200 one of 32 MiB. *Used* counts these pages, also after a
# free; only `cudaDeviceGraphMemTrim` gives them back. (A pool's *used*, in lesson 10, falls at the free.)

# %% [markdown]
# ## Third way: a buffer from before
#
# Nothing to allocate, but somebody owns it. An `Owner` frees its buffer when Python lets go of it, as
# CuPy arrays and PyTorch tensors do: `weakref.finalize` calls `free` once nobody holds the Owner.

# %%
class Owner:
    def __init__(self, *values):
        self.buffer = to_device(np.array(values, dtype=np.float32))
        weakref.finalize(self, self.buffer.free)

def graph_that_copies(owner):                      # a launch puts what is in the owner's buffer into y
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    ok(launch(stream, kernels.axpy, 1, 4, y, owner.buffer, 1.0, 4))
    return ok(cudart.cudaStreamEndCapture(stream))

# %% [markdown]
# Now `mine`, with 1 2 3 4, is captured and let go. Then somebody else allocates a buffer of that size.
# **Predict:** what does the replay answer, and what is in `y`?

# %% tags=["nbval-check-output"]
mine = Owner(1, 2, 3, 4)
address = mine.buffer.ptr
recorded = graph_that_copies(mine)
del mine                                           # nobody holds it: its buffer is freed
executable = instantiate(recorded)
somebody = Owner(50, 60, 70, 80)
print("somebody got the old address:", somebody.buffer.ptr == address)
print(cudart.cudaGraphLaunch(executable, stream)[0].name, to_host(y, stream))
ok(cudart.cudaGraphExecDestroy(executable))
ok(cudart.cudaGraphDestroy(recorded))
del somebody

# %% [markdown]
# Success, and somebody else's numbers: a graph keeps addresses, not owners. (With a copy node instead of
# the kernel, `cudaGraphInstantiate` ended the process, ten times of ten, on the H200.)
#
# So keep the buffer as long as you replay: in a variable, or in the graph. `keep_alive` lets a graph
# hold Python objects; its executable holds them too.

# %% tags=["nbval-check-output"]
mine = Owner(1, 2, 3, 4)
recorded = graph_that_copies(mine)
kept = keep_alive(recorded, mine)
del mine                                           # now only the graph holds it
executable = instantiate(recorded)                 # and the executable
ok(cudart.cudaGraphDestroy(recorded))
somebody = Owner(50, 60, 70, 80)
print(cudart.cudaGraphLaunch(executable, stream)[0].name, to_host(y, stream), "· mine is", "alive" if kept.alive else "let go")
ok(cudart.cudaGraphExecDestroy(executable))
time.sleep(0.5)                                    # a thread of the driver lets go, soon after
print("executable destroyed, mine is", "alive" if kept.alive else "let go")
del somebody

# %% [markdown]
# ## Bad sizes, bad frees
#
# `cudaMalloc` cost you the capture. Five more requests, after one block of 16 bytes: allocate 0 bytes;
# allocate 2**50 bytes; free what `cudaMalloc` gave; free the block; free it again. **Predict:** which of
# these five ends the capture, and which adds a node?

# %% tags=["nbval-check-output"]
def report(what, code, *got):
    state = graph.capture_state(stream)
    print(f"{what:26}{code.name:28}{state.status}, nodes: {len(graph.nodes(state.graph))}", *(f" address: {address}" for address in got))
ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
block = ok(cudart.cudaMallocAsync(16, stream))
report("allocate 0 bytes", *cudart.cudaMallocAsync(0, stream))
report("allocate 2**50 bytes", *cudart.cudaMallocAsync(2 ** 50, stream))
report("free what cudaMalloc gave", *cudart.cudaFreeAsync(y.ptr, stream))
report("free the block", *cudart.cudaFreeAsync(block, stream))
report("free it again", *cudart.cudaFreeAsync(block, stream))
end, faulty = cudart.cudaStreamEndCapture(stream)
print("the end:", end.name)

# %% tags=["nbval-check-output"]
recover(stream)
print(graph.kinds(faulty))
executable = instantiate(faulty)
print(*(cudart.cudaGraphLaunch(executable, stream)[0].name for _ in range(2)))
ok(cudart.cudaStreamSynchronize(stream))
ok(cudart.cudaGraphExecDestroy(executable))
try:
    cudart.cudaMallocAsync(-1, stream)
except OverflowError as error:
    print("allocate -1 bytes:", type(error).__name__, "from Python, CUDA was never asked")

# %% [markdown]
# None: what is refused adds no node, the capture goes on. Look at *every* code, or you record work on an
# address you never got. One graph may ask for about twice the GPU's memory, so 2**50 was refused here.
# Between once and twice only the *launch* is refused, and keeps the GPU's memory until the process ends
# (H200, 580.159.04, 2026-12-02; lesson 10).

# %% tags=["nbval-check-output"]
*_, relaxed, stray = tries["Relaxed"]
for recorded in (inside, faulty, relaxed):
    ok(cudart.cudaGraphDestroy(recorded))
ok(cudart.cudaFree(stray))                         # the block of the first table
ok(cudart.cudaDeviceGraphMemTrim(0))
print("graph memory in use:", log("over")["graph"].used)
del inside, faulty, relaxed, recorded, executable, tries
y.free()

# %% [markdown]
# ## Take with you
#
# | way | is it in the graph? | memory is taken | who gives it back | use it for |
# |---|---|---|---|---|
# | `cudaMalloc` in a Relaxed capture | no | at the capture, each time | you, by its address | nothing: make the buffer before |
# | `cudaMallocAsync` on the stream | a MemAlloc node | at the first launch | a MemFree node, or you; the pages: a trim | what only this work needs |
# | a buffer made before | no, only its address | before | its owner, after the last replay | input, output, what stays |
#
# - A capture fixes addresses. Memory comes with the launch.
# - What graphs took stays with graphs until a trim.
# - A graph does not own your buffers. `keep_alive` lets it hold them.
#
# Next, lesson 09: what a graph can do with memory of its own.
