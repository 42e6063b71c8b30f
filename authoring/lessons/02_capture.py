# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 · Capture: record and replay
#
# Between *begin* and *end* CUDA writes down what you ask for. What exactly is written down, what runs
# at once all the same, and what breaks the recording? Seven steps, one film, one table.

# %%
from labkit import cudart, backend, ok, LabError, kernels, launch, to_device, to_host, graph, draw, film, predict, recover

# %% [markdown]
# ## Step 1: a stream
#
# Any stream but the legacy default one can capture. Take a **non-blocking** one: it has no hidden
# ties to the default stream. Keep that in mind, it returns at the end of this lesson.

# %%
import numpy as np
stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
x = to_device(np.arange(4, dtype=np.float32))
y = to_device(np.zeros(4, dtype=np.float32))

# %% [markdown]
# ## Steps 2 to 4: begin, work, end
#
# **Predict:** a memset, two kernels and one `print` between a begin and an end. How many nodes will
# the graph have? `film` then follows the lines one by one and looks at the growing graph after each.

# %%
guess = predict("How many nodes?", None, unit="nodes")

# %%
with film(stream) as reel:
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, stream))
    ok(launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4))
    print("Python runs as always; CUDA only takes notes")
    ok(launch(stream, kernels.axpy, 1, 4, y, x, 10.0, 4))
    recorded = ok(cudart.cudaStreamEndCapture(stream))

# %% tags=["expects-figure"]
reel.show()

# %% tags=["nbval-check-output"]
print(graph.kinds(recorded))
print(graph.edges(recorded))
guess.against(len(graph.nodes(recorded)));

# %% [markdown]
# Every CUDA call on the stream became one node, each with an edge from the one before. The `print`
# ran once, during the capture, and is not in the graph: a replay will never print.
#
# ## Steps 5 and 6: instantiate and launch
#
# The graph is a plan. `cudaGraphInstantiate` makes it an *executable*, `cudaGraphLaunch` queues the
# whole of it. Watch `y` change at the launch, not before.

# %% tags=["nbval-check-output"]
print("after the capture     ", to_host(y, stream))
executable = ok(cudart.cudaGraphInstantiate(recorded, 0))
print("after instantiation   ", to_host(y, stream))
ok(cudart.cudaGraphLaunch(executable, stream))
print("after the launch      ", to_host(y, stream))

# %% [markdown]
# ## Frozen values, living memory
#
# **Predict:** `x` gets new contents, nothing is captured again. Does the next replay see the old `x` or
# the new one?

# %% tags=["nbval-check-output"]
ok(launch(stream, kernels.fill, 1, 4, x, 1.0, 4))
ok(cudart.cudaGraphLaunch(executable, stream))
print(to_host(y, stream))

# %% [markdown]
# The new one. A node keeps its arguments as they were: the numbers 1.0 and 10.0, and the *addresses*
# of `x` and `y`. What lies at an address is read at each replay.
#
# ## Step 7: destroy
#
# The executable does not need the graph any more. Destroy each when you are done with it.

# %% tags=["nbval-check-output"]
print(cudart.cudaGraphDestroy(recorded)[0].name)
print(cudart.cudaGraphLaunch(executable, stream)[0].name, "without the graph")
print(cudart.cudaStreamSynchronize(stream)[0].name)
print(cudart.cudaGraphExecDestroy(executable)[0].name)
del recorded, executable         # handles of what is gone

# %% [markdown]
# ## Which streams can capture?
#
# The same three steps on four kinds of stream. The default stream is the handle 0, and also
# `cudaStreamLegacy`.

# %% tags=["nbval-check-output"]
streams = {"legacy default": 0, "per-thread default": cudart.cudaStreamPerThread,
           "blocking": ok(cudart.cudaStreamCreate()), "non-blocking": stream}
for name, candidate in streams.items():
    begin = cudart.cudaStreamBeginCapture(candidate, GLOBAL)[0]
    end, captured = cudart.cudaStreamEndCapture(candidate)
    print(f"{name:20} begin {begin.name:36} end {end.name}")

# %% [markdown]
# Only the legacy default stream refuses.
#
# ## Three modes
#
# A mode does not choose *what* is captured. It says which **threads** may make calls that could
# disturb the capture, such as `cudaMalloc`. **Predict:** in how many of the three modes may another
# thread call it while you capture?

# %%
guess = predict("In how many of the three modes?", None, unit="modes")

# %%
from concurrent.futures import ThreadPoolExecutor
MODES = {mode.name.removeprefix("cudaStreamCaptureMode"): mode for mode in cudart.cudaStreamCaptureMode}

def ask(call, on, mode, elsewhere=False):
    ok(cudart.cudaStreamBeginCapture(on, mode))
    with ThreadPoolExecutor(1) as other:
        code = other.submit(call).result()[0] if elsewhere else call()[0]
    cudart.cudaStreamEndCapture(on)
    return code

host = np.full(4, 3, dtype=np.float32)
def copy():                      # an ordinary copy, which waits until it is done
    return cudart.cudaMemcpy(x.ptr, host.ctypes.data, host.nbytes,
                             cudart.cudaMemcpyKind.cudaMemcpyHostToDevice)

# %% tags=["expects-figure"]
cases = {"cudaMalloc, same thread": (lambda: cudart.cudaMalloc(16), stream, False),
         "cudaMalloc, other thread": (lambda: cudart.cudaMalloc(16), stream, True),
         "cudaDeviceSynchronize,\nother thread": (cudart.cudaDeviceSynchronize, stream, True),
         "cudaMemcpy beside a\nnon-blocking capture": (copy, stream, False),
         "cudaMemcpy beside a\nblocking capture": (copy, streams["blocking"], False)}
table = {case: {name: ask(call, on, mode, elsewhere) for name, mode in MODES.items()}
         for case, (call, on, elsewhere) in cases.items()}
draw.answers(table, "What a call answers while a stream captures")

# %% tags=["nbval-check-output"]
for row, cells in table.items():
    print(f"{' '.join(row.split()):42}", *(f"{int(code):5}" for code in cells.values()))
guess.against(sum(int(code) == 0 for code in table["cudaMalloc, other thread"].values()));

# %% [markdown]
# Global refuses `cudaMalloc` in every thread, ThreadLocal in the capturing thread only, Relaxed nowhere.
# Waiting for the whole device is always refused. Each refusal costs you the capture.
#
# ## The silent one
#
# The last two rows: an ordinary copy uses the default stream, which waits for every *blocking* stream,
# hence 906. A *non-blocking* stream has no such tie. **Predict:** is the copy in the graph?

# %% tags=["nbval-check-output"]
ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
ok(launch(stream, kernels.fill, 1, 4, x, 7.0, 4))
ok(copy())                                             # no error
ok(launch(stream, kernels.scale, 1, 4, y, 2.0, 4))
lossy = ok(cudart.cudaStreamEndCapture(stream))
print(graph.kinds(lossy))

# %% [markdown]
# It is not. The copy ran at once, during the capture, and is missing from every replay, with no
# error at any point. `cudaMemcpyAsync(..., stream)` is what you wanted: it becomes a node.
#
# ## Break it, and recover
#
# One refused call ruins the recording. Read the codes: the *first* says why, the later ones only that
# it is broken.

# %% tags=["nbval-check-output"]
ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
print("malloc ", cudart.cudaMalloc(16)[0].name)
print("status ", graph.capture_state(stream).status)
print("launch ", launch(stream, kernels.fill, 1, 4, x, 0.0, 4)[0].name)
print("end    ", *(getattr(part, "name", part) for part in cudart.cudaStreamEndCapture(stream)))

# %% tags=["nbval-check-output"]
recover(stream)
ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
ok(launch(stream, kernels.fill, 1, 4, y, 5.0, 4))
again = ok(cudart.cudaGraphInstantiate(ok(cudart.cudaStreamEndCapture(stream)), 0))
ok(cudart.cudaGraphLaunch(again, stream))
print(to_host(y, stream))

# %% [markdown]
# ## The same capture through CuPy
#
# CuPy wraps the seven steps in five lines. labkit's buffers speak `__cuda_array_interface__`, so
# CuPy sees them without a copy. CuPy needs a GPU; without one the cell says what the H200 printed.

# %%
from importlib.util import find_spec
if backend.name == "gpu" and find_spec("cupy"):
    import cupy
    view, queue = cupy.asarray(y), cupy.cuda.Stream(non_blocking=True)
    with queue:
        queue.begin_capture()
        view += 1
        queue.end_capture().launch(queue)
    print(to_host(y, queue.ptr))
else:
    print("CuPy does not run here:", "it is not installed" if backend.name == "gpu" else "it needs a GPU")
    print("The H200 printed [6. 6. 6. 6.]")

# %% [markdown]
# ## Take with you
#
# - Capture writes down; instantiate builds; launch runs.
# - Arguments are frozen, memory is read at replay.
# - The first code that is not success is the reason.
#
# Next, lesson 03: graphs that are not a chain.
