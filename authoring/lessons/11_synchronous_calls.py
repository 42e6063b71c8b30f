# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · Synchronous calls
#
# A good program waits for its results, asks whether they are there, and reads them. Put a capture
# around it, and it breaks. Which calls are to blame, which of the many codes is the reason, and what
# do you write instead?

# %%
from labkit import cudart, backend, ok, NotSimulated, kernels, launch, to_device, to_host, graph, draw, predict, watch, explain, recover

# %%
import numpy as np
stream, beside = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
blocking = ok(cudart.cudaStreamCreate())
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
TO_DEVICE, TO_HOST = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
x, y = to_device(np.ones(4, dtype=np.float32)), to_device(np.zeros(4, dtype=np.float32))
host, news = np.zeros(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
before, done, start, stop = (ok(cudart.cudaEventCreate()) for _ in range(4))
ok(cudart.cudaEventRecord(before, beside))         # recorded outside any capture, and soon over

# %% [markdown]
# ## The failing program
#
# Six calls, right for years: launch, record an event, wait for the stream, ask whether the event is over, read,
# launch again. Then somebody puts a begin and an end around them. **Predict:** how many different
# codes will you see, success and the end included?

# %%
different = predict("How many different codes, success included?", None, unit="codes")

def program():
    yield "launch", launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4)
    yield "record the event", cudart.cudaEventRecord(done, stream)
    yield "wait for the stream", cudart.cudaStreamSynchronize(stream)
    yield "is the event over?", cudart.cudaEventQuery(done)
    yield "read", cudart.cudaMemcpyAsync(host.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream)
    yield "launch again", launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4)

# %% tags=["nbval-check-output"]
print("without a capture:", *sorted({code.name for _, (code, *_) in program()}))
ok(cudart.cudaStreamSynchronize(stream))
ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
seen = set()
for call, (code, *_) in program():
    seen.add(code)
    print(f"{call:20}{int(code):4} {code.name:34}{graph.capture_state(stream).status}")
end, nothing = cudart.cudaStreamEndCapture(stream)
print(f"{'end':20}{int(end):4} {end.name:34}{graph.capture_state(stream).status}, the graph: {nothing}")
different.against(len(seen | {end}));

# %% [markdown]
# Four. The *first* that is not success is the reason: there the status turns from Active to Invalidated. The 1 and the
# 901s only follow from it. Who looks at the end only reads that something broke.
#
# ## Which line was it?
#
# `watch` asks for the status after each line and names the one where it turned; `explain` says the rest.

# %%
with watch(stream) as w:
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4)
    cudart.cudaEventRecord(done, stream)
    code = cudart.cudaStreamSynchronize(stream)
    cudart.cudaEventQuery(done)
    launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4)
    cudart.cudaStreamEndCapture(stream)
explain(code)

# %% [markdown]
# ## All of them
#
# Five ways to wait, eight questions. `alone` makes one of them in a capture of its own, then looks at the
# status. **Predict:** how many of the thirteen leave the capture Active?

# %%
alive = predict("How many of the thirteen leave the capture Active?", None, unit="calls")

def alone(call, *arguments, on=stream, broken=False):
    ok(cudart.cudaStreamBeginCapture(on, GLOBAL))
    ok(launch(on, kernels.axpy, 1, 4, y, x, 1.0, 4))
    ok(cudart.cudaEventRecord(done, on))
    if broken:                                     # somebody made a mistake before
        cudart.cudaDeviceSynchronize()
    code, status = call(*arguments)[0], graph.capture_state(on).status
    after = launch(on, kernels.axpy, 1, 4, y, x, 1.0, 4)[0]
    end, recorded = cudart.cudaStreamEndCapture(on)
    return code, status, after, end, None if recorded is None else ok(cudart.cudaGraphDestroy(recorded))

# %%
C = cudart
calls = {"wait for the capturing stream": (C.cudaStreamSynchronize, stream), "wait for another stream": (C.cudaStreamSynchronize, beside),
         "wait for the device": (C.cudaDeviceSynchronize,), "wait for a captured event": (C.cudaEventSynchronize, done),
         "wait for an event from before": (C.cudaEventSynchronize, before), "query the capturing stream": (C.cudaStreamQuery, stream),
         "query another stream": (C.cudaStreamQuery, beside), "query a captured event": (C.cudaEventQuery, done),
         "query an event from before": (C.cudaEventQuery, before), "the stream's flags": (C.cudaStreamGetFlags, stream),
         "time between two events": (C.cudaEventElapsedTime, before, done), "the stream's priority": (C.cudaStreamGetPriority, stream),
         "is it capturing?": (C.cudaStreamIsCapturing, stream)}

# %% tags=["expects-figure"]
found = {name: alone(*call) for name, call in calls.items()}
draw.answers({name: {"the call": code, "a launch after it": after, "the end": end} for name, (code, _, after, end, _) in found.items()},
             "One call in a capture, and what the next two answer")

# %% tags=["nbval-check-output"]
for name, (code, status, *_) in found.items():
    print(f"{name:31}{int(code):4}  {status}")
alive.against(sum(status == "Active" for _, status, *_ in found.values()));

# %% [markdown]
# Three. In a capture nothing runs: there is nothing to wait for, and no true answer to "is it done?". So a query counts
# as a wait. 907: about a captured event; else 900. Asking for the *flags* costs you the capture. The *time* is refused
# too, and the capture lives.
#
# Now the capture is already lost. **Predict:** how many of eight calls answer 901?

# %% tags=["expects-figure"]
again = ("wait for the capturing stream", "wait for a captured event", "query a captured event", "time between two events", "is it capturing?")
second = {name: calls[name] for name in again}
second |= {"launch": (launch, stream, kernels.axpy, 1, 4, y, x, 1.0, 4), "memset": (C.cudaMemsetAsync, y.ptr, 0, y.nbytes, stream),
           "allocate": (C.cudaMalloc, 64)}
order = {name: {"when it comes first": alone(*call)[0], "when the capture is lost": alone(*call, broken=True)[0]} for name, call in second.items()}
draw.answers(order, "The same call, first and second")

# %% tags=["nbval-check-output"]
for name, codes in order.items():
    print(f"{name:31}", *(f"{int(code):4} {code.name:34}" for code in codes.values()))

# %% [markdown]
# Two: only work for the stream says 901. A wait keeps its 900, as if it were to blame; 907 becomes 1, *invalid value*.
# A log that keeps the *last* code sends you to the wrong line.
#
# ## The copy that answers success
#
# `cudaMemcpy` waits too, on the default stream. Beside which captures is that an error?

# %% tags=["expects-figure"]
default = {"cudaMemcpy": (C.cudaMemcpy, x.ptr, news.ctypes.data, news.nbytes, TO_DEVICE), "cudaMemset": (C.cudaMemset, x.ptr, 0, x.nbytes),
           "launch on the default stream": (launch, 0, kernels.fill, 1, 4, x, 1.0, 4), "record on it": (C.cudaEventRecord, before, 0),
           "wait for it": (C.cudaStreamSynchronize, 0)}
kinds = {"non-blocking": stream, "blocking": blocking, "per-thread default": C.cudaStreamPerThread}
draw.answers({name: {("the stream that captures is", kind): alone(*call, on=on)[0] for kind, on in kinds.items()} for name, call in default.items()},
             "The default stream beside a capture")

# %% [markdown]
# A flag decides. 906: the default stream would have to wait for a blocking stream that captures. Without that tie the
# call runs at once and is *left out*; CUDA calls it success.
#
# **Predict:** each replay shall add the newest `news` to 0. `news` is 1 in the capture and 5 at the replay. What
# comes out?

# %%
result = predict("The value after the replay, with cudaMemcpy beside a non-blocking capture?", None, unit="")

def feeder(copy, on, *where):
    news[:] = 1
    ok(cudart.cudaStreamBeginCapture(on, GLOBAL))
    cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, on)
    code = copy(x.ptr, news.ctypes.data, news.nbytes, TO_DEVICE, *where)[0]
    launch(on, kernels.axpy, 1, 4, y, x, 1.0, 4)
    return code, *cudart.cudaStreamEndCapture(on)

def run(recorded):
    executable = ok(cudart.cudaGraphInstantiate(recorded, 0))
    ok(cudart.cudaGraphLaunch(executable, stream)), ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))

# %% tags=["nbval-check-output"]
values = {}
for name, way in {"cudaMemcpy, non-blocking": (C.cudaMemcpy, stream), "cudaMemcpy, blocking": (C.cudaMemcpy, blocking),
                  "cudaMemcpyAsync": (C.cudaMemcpyAsync, stream, stream)}.items():
    code, end, recorded = feeder(*way)
    print(f"{name:26}{code.name:32}", end.name if recorded is None else graph.kinds(recorded))
    if recorded is not None:
        news[:] = 5
        run(recorded)
        values[name] = float(to_host(y, stream)[0])
        ok(cudart.cudaGraphDestroy(recorded))
print("after the replay:", values)
result.against(values["cudaMemcpy, non-blocking"]);

# %% [markdown]
# 1, at every replay, and no error. The Async copy is a node and reads `news` at each replay. If you suspect such a copy,
# capture once on a *blocking* stream: 906 names it.
#
# ## How long did it take?
#
# Two events captured around a kernel; the time is asked after the replay. **Predict:** is it allowed now?

# %%
def timed(flags):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaEventRecordWithFlags(start, stream, flags))
    ok(launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4))
    ok(cudart.cudaEventRecordWithFlags(stop, stream, flags))
    recorded = ok(cudart.cudaStreamEndCapture(stream))
    run(recorded)
    return recorded

# %% tags=["nbval-check-output"]
plain = timed(cudart.cudaEventRecordDefault)
print(graph.kinds(plain), "time:", cudart.cudaEventElapsedTime(start, stop)[0].name)
external = timed(cudart.cudaEventRecordExternal)
print(graph.kinds(external), "query:", cudart.cudaEventQuery(stop)[0].name)
ok(cudart.cudaGraphDestroy(plain)), ok(cudart.cudaGraphDestroy(external))
del plain, external

# %% tags=["expects-figure"]
external = timed(cudart.cudaEventRecordExternal)   # once more, for the time and the picture
try:
    code, milliseconds = cudart.cudaEventElapsedTime(start, stop)
    print("time:", code.name, "more than nothing:", bool(milliseconds))
except NotSimulated:
    print("The simulator has no clock. On the H200: cudaSuccess, more than nothing: True")
picture = draw.graph(external)
ok(cudart.cudaGraphDestroy(external))
del external
picture

# %% [markdown]
# No: a captured event is a point in the graph, never in time. An *external* record is a node, and happens at each
# replay. Or record outside, before and after the launch.
#
# ## In CuPy and PyTorch
#
# Ordinary lines wait. *Refuses*: the library itself, before CUDA is asked, and the capture lives. *Silent*: no exception.
#
# | line | CuPy 14.2, Relaxed (its default) | CuPy, Global | PyTorch 2.11, any mode |
# |---|---|---|---|
# | `x.get()` · `x.cpu()`, `x.tolist()` | refuses | refuses | refuses |
# | `x[0].item()`, `print(x)` | refuses | refuses | 900, lost |
# | `if x.any()` · `if x[0] > 0`, `x[x > 1]`, `nonzero` | refuses | 900, lost | 900, lost |
# | `synchronize()` of stream or device | 900, lost | 900, lost | 900, lost |
# | `stream.done` · `stream.query()` | **silent, lost** | **silent, lost** | 900, lost |
# | `event.done` · `event.query()` | **silent, lost** | **silent, lost** | 907, lost |
# | `event.synchronize()` | 907, lost | 907, lost | 907, lost |
# | time between events | 907, lives | 907, lives | 907, lost |
#
# Each line was run on the H200, 580.159.04, 2026-12-02.

# %%
from importlib.util import find_spec
if backend.name == "gpu" and find_spec("cupy"):
    import cupy
    a, queue = cupy.asarray(y), cupy.cuda.Stream(non_blocking=True)
    with queue:
        queue.begin_capture()
        a += 1
        queue.done                                 # no exception, no value that says so
        print("after queue.done:", graph.capture_state(queue.ptr).status)
    print("the end:", cudart.cudaStreamEndCapture(queue.ptr)[0].name)
else:
    print("CuPy does not run here. On the H200: Invalidated after queue.done, cudaErrorStreamCaptureInvalidated at the end")

# %% [markdown]
# ## The fix, and the recovery
#
# Capture only what is work for the stream: launches, and the copy. Wait once, after the launch.

# %% tags=["nbval-check-output"]
recover(stream, blocking)
ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
ok(launch(stream, kernels.fill, 1, 4, y, 3.0, 4))
ok(launch(stream, kernels.axpy, 1, 4, y, y, 1.0, 4))
ok(cudart.cudaMemcpyAsync(host.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
fixed = ok(cudart.cudaStreamEndCapture(stream))
run(fixed)                                         # launches, and waits once
print(graph.kinds(fixed), host)
ok(cudart.cudaGraphDestroy(fixed))
del fixed

# %% [markdown]
# ## Take with you
#
# | you want | in the capture | instead |
# |---|---|---|
# | to wait | 900; for a captured event 907 | one wait, after the launch |
# | to know whether it is done | the same | a query after the launch; in the capture only `cudaStreamIsCapturing` |
# | to read a result | `cudaMemcpy`: left out, or 906 | `cudaMemcpyAsync` on the stream, and read after the wait |
# | one stream after another | a wait of the host: 900 | an event and `cudaStreamWaitEvent`, lesson 03 |
# | a time | 907, and 1 later | external records, or events around the launch |
#
# - The first code that is not success is the reason: keep it.
# - Not every refusal costs the capture: ask for the status.
#
# Next, lesson 12: a call in *another* thread breaks your capture.
