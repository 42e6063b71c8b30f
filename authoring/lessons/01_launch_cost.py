# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 01 · What does a launch cost?
#
# A GPU can finish a small kernel sooner than the CPU can ask for the next one. Then the GPU waits.
# This lesson measures that wait, shows it, and shows what a graph does about it.

# %%
from labkit import cudart, ok, kernels, launch, to_device, to_host, graph, predict, measure, timeline, stamp, draw

# %% [markdown]
# ## The work
#
# One stream and one small kernel over 1024 numbers, again and again. Each launch adds `x` to `y`
# once, so `y` counts the launches that really ran.

# %%
import numpy as np
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
x = to_device(np.ones(1024, dtype=np.float32))
y = to_device(np.zeros(1024, dtype=np.float32))

# %% [markdown]
# ## Three functions
#
# `launches` asks for every kernel. `capture` records the same loop and makes an executable of it.
# `replay` asks once, whatever `n` is.

# %%
def launches(executable, n):
    for _ in range(n):
        ok(launch(stream, kernels.axpy, 4, 256, y, x, 1.0, 1024))

def capture(n):
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    launches(None, n)
    return ok(cudart.cudaGraphInstantiate(ok(cudart.cudaStreamEndCapture(stream)), 0))

def replay(executable, n):
    ok(cudart.cudaGraphLaunch(executable, stream))

# %% [markdown]
# First make sure that both do the same work. Ten launches, then one replay of ten, then another.

# %% tags=["nbval-check-output"]
launches(None, 10)
print("after ten launches  ", to_host(y, stream)[0])
ten = capture(10)
print("after the capture   ", to_host(y, stream)[0])
for _ in range(2):
    replay(ten, 10)
    print("after a replay      ", to_host(y, stream)[0])

# %% [markdown]
# ## Predict
#
# A thousand launches of this kernel, from the first call until the last kernel has finished: how
# many microseconds? Type a number in place of `None` and run the cell. A wrong guess teaches more
# than none.

# %%
guess = predict("A thousand launches, end to end?", None, unit="us")

# %% [markdown]
# ## Measure
#
# `measure` runs both ways in turn, many times, and keeps the median. *cpu* ends when the last call
# returns, *end to end* when the GPU has finished. Without a GPU you see what an H200 recorded for
# exactly this code.

# %%
counts = [1, 3, 10, 30, 100, 300, 1000]
costs = [measure("launch cost", {"stream": launches, "graph": replay}, setup=capture, stream=stream, n=n)
         for n in counts]
costs[-1]

# %% tags=["expects-figure"]
draw.cost(costs, guess=guess)

# %% [markdown]
# Read the slopes. Launched one by one, every kernel costs the same again, on the CPU and end to
# end. As a graph, the CPU's part hardly grows at all, and each further kernel adds far less: that is
# the GPU stepping from node to node by itself.

# %% [markdown]
# Part of a launch's price here is Python's. From C++ one launch took 4.1 µs (H200, driver 580.159,
# 2026-12-02); the nodes of a graph cost the same, whoever launches it.

# %% [markdown]
# ## Where does the time go?
#
# Let the GPU tell. The kernel `stamp` writes down when it started and when it ended, on the GPU's
# own clock. Twenty of them, each waiting for the one before.

# %%
def one_by_one(stamps, kernels):
    for i in range(kernels):
        ok(launch(stream, stamp, 1, 1, stamps, i))

def as_a_graph(stamps, kernels):
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    one_by_one(stamps, kernels)
    replay(ok(cudart.cudaGraphInstantiate(ok(cudart.cudaStreamEndCapture(stream)), 0)), kernels)

# %%
gaps = timeline("gaps", {"stream": one_by_one, "graph": as_a_graph}, kernels=20)
gaps

# %% tags=["expects-figure"]
draw.timeline(gaps)

# %% [markdown]
# Each bar is one kernel at work. The bars are as long in both rows: a graph makes no kernel faster.
# It closes the **gaps**, the time in which the GPU had nothing to do because the CPU was still
# asking.

# %% [markdown]
# ## When does a graph stop paying?
#
# If the gain is the gaps, it must shrink as kernels grow. **Predict:** ten kernels in a row, larger
# and larger (1 Ki is 1024 elements, 1 Mi is 1024 Ki). From what size is the graph not worth it?

# %%
enough = predict("From how many elements on does the graph hardly help?", None, unit="elements")

# %%
big_x = to_device(np.ones(4 ** 12, dtype=np.float32))
big_y = to_device(np.zeros(4 ** 12, dtype=np.float32))

def ten_kernels(executable, size):
    for _ in range(10):
        ok(launch(stream, kernels.axpy, size // 256, 256, big_y, big_x, 1.0, size))

def capture_ten(size):
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    ten_kernels(None, size)
    return ok(cudart.cudaGraphInstantiate(ok(cudart.cudaStreamEndCapture(stream)), 0))

def replay_ten(executable, size):
    ok(cudart.cudaGraphLaunch(executable, stream))

# %%
sizes = [measure("kernel size", {"stream": ten_kernels, "graph": replay_ten}, setup=capture_ten,
                 stream=stream, size=4 ** k) for k in range(5, 13)]
sizes[0]

# %% tags=["expects-figure"]
draw.speedup(sizes, guess=enough)

# %% [markdown]
# Left, the kernels are shorter than a launch: the CPU is the brake, and a graph lifts it. Right, each
# kernel runs longer than the next launch takes, so the launches hide behind the work and a graph
# has nothing to save.

# %% [markdown]
# ## What a graph must not change
#
# The answer. A replay of ten kernels adds 10 to each number, exactly like ten launches.

# %% tags=["nbval-check-output"]
ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
replay(ten, 10)
print(to_host(y, stream)[:4])
big_x.free()
big_y.free()

# %% [markdown]
# ## Take with you
#
# - A launch costs the CPU microseconds, whatever the kernel does.
# - A graph is launched once, for all its kernels: short kernels gain most, long ones nothing.
# - It cost something to make: capture and instantiation. A later lesson measures that.
#
# Next, lesson 02: what happens between *begin* and *end*.
