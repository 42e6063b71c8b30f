# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here
#
# A CUDA graph is a recording: you queue work once, keep it, and replay the whole of it with one
# call. In ten minutes you will make one. First you need two habits: to know where your code runs,
# and to look at every code that CUDA returns.

# %%
from labkit import cudart, backend, ok, LabError, kernels, launch, to_device, to_host, graph, draw, recover, predict

# %% [markdown]
# ## Where does this run?
#
# The line above says it. With a GPU, `cudart` is NVIDIA's own module `cuda.bindings.runtime`.
# Without one it is a simulator that knows every rule of this course from recordings of an H200.
# The cells are the same.

# %%
print(backend.name)
print(cudart.__name__)
print(backend.reason)

# %% [markdown]
# ## What does a call return?
#
# Always a tuple, and its first entry is always a code. The rest are the values: here one, the new
# stream. A stream is a queue of GPU work that runs in order.

# %% tags=["nbval-check-output"]
answer = cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)
code, stream = answer
print(len(answer), "entries")
print(repr(code))

# %% [markdown]
# ## What happens when a call fails?
#
# **Predict first.** The next cell ends a capture that nobody began. Does Python raise an
# exception, does the kernel die, or does the line just run?

# %% tags=["nbval-check-output"]
answer = cudart.cudaStreamEndCapture(stream)
print(answer)

# %% [markdown]
# Nothing happened, and that is the danger. The code says *illegal state*, the graph is `None`, and
# the program goes on. A later line would pass that `None` to CUDA and fail far from the cause.

# %% [markdown]
# ## The habit: `ok`
#
# `ok(...)` takes the tuple, checks the code and hands back the values. When the code is not
# success it raises a `LabError` that says what it means and what to try.

# %% tags=["nbval-check-output"]
try:
    ok(cudart.cudaStreamEndCapture(stream))
except LabError as error:
    print(error.code.name, int(error.code))
    print(error.means)

# %% [markdown]
# Print the whole error once. You will meet many of these, and each has the same four lines: what
# you did, what it means, what to try, what CUDA calls it.

# %%
try:
    ok(cudart.cudaStreamEndCapture(stream))
except LabError as error:
    print(error)

# %% [markdown]
# ## A first kernel
#
# `to_device` copies a NumPy array to the GPU. `launch` queues a kernel: stream, kernel, blocks,
# threads a block, then the kernel's own arguments. `axpy` adds `2.0 * x` to `y`. `to_host` waits
# for the stream and copies back.

# %% tags=["nbval-check-output"]
import numpy as np
x = to_device(np.arange(4, dtype=np.float32))
y = to_device(np.full(4, 10, dtype=np.float32))
ok(launch(stream, kernels.axpy, 1, 4, y, x, 2.0, 4))
print(to_host(y, stream))

# %% [markdown]
# ## A first graph
#
# Now the same launch three times, between a *begin* and an *end*. While the stream captures, CUDA
# writes each launch down as a **node** and runs none of them. `cudaStreamEndCapture` hands over the
# graph.

# %% tags=["nbval-check-output"]
ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
for _ in range(3):
    ok(launch(stream, kernels.axpy, 1, 4, y, x, 2.0, 4))
recorded = ok(cudart.cudaStreamEndCapture(stream))
print(graph.kinds(recorded))
print(graph.edges(recorded))

# %% tags=["expects-figure"]
draw.graph(recorded)

# %% [markdown]
# Three kernels, two arrows. An arrow is an **edge**: the node at its tip waits for the node at its
# tail. They came from the stream's order. You never wrote a dependency down.

# %% [markdown]
# **Predict:** `y` was `[10, 12, 14, 16]` before the capture. What is its last entry now, after three
# captured launches? Type your number in place of `None` and run the cell again.

# %%
guess = predict("The last entry of y after the capture?", None, unit="")

# %% tags=["nbval-check-output"]
print(to_host(y, stream))
guess.against(to_host(y, stream)[-1].item());

# %% [markdown]
# Unchanged. A capture *records*. To run the recording, turn it into an **executable** once, then
# launch that as often as you like. Each launch adds `3 * 2.0 * x`.

# %% tags=["nbval-check-output"]
executable = ok(cudart.cudaGraphInstantiate(recorded, 0))
for _ in range(2):
    ok(cudart.cudaGraphLaunch(executable, stream))
    print(to_host(y, stream))

# %% [markdown]
# ## When something breaks
#
# A failed capture can leave a stream stuck. `recover()` ends what is open, on every stream in your
# variables, so that the next cell works. It is harmless when nothing is wrong. (*None* below is CUDA's
# word for a stream that captures nothing.)

# %% tags=["nbval-check-output"]
recover(stream)
ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
print(graph.capture_state(stream).status)
recover(stream)
print(graph.capture_state(stream).status)

# %% [markdown]
# ## Next
#
# One launch for three kernels. Is that worth the trouble? Lesson 01 measures what a thousand
# launches cost, and what a graph saves.
