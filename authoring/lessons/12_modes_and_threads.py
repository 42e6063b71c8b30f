# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12 · Modes and threads
#
# Your thread captures and makes no mistake. The capture breaks all the same, because of a call in
# *another* thread, on a stream you never heard of. What does a capture's mode decide, for whom, and what can
# the other thread do about it?

# %%
from labkit import cudart, ok, kernels, launch, to_device, to_host, graph, draw, predict, watch, recover

# %%
import threading, time
from concurrent.futures import Future
import numpy as np
MODES = {mode.name.removeprefix("cudaStreamCaptureMode"): mode for mode in cudart.cudaStreamCaptureMode}
stream, beside = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
two = [ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2)]
finished, unrecorded = (ok(cudart.cudaEventCreate()) for _ in range(2))
x, y = (to_device(np.zeros(4, dtype=np.float32)) for _ in range(2))
ok(launch(beside, kernels.fill, 1, 4, x, 1.0, 4))
ok(cudart.cudaEventRecord(finished, beside))
ok(cudart.cudaStreamSynchronize(beside))           # the work is done, the event is over

# %%
def with_mode(job, mode):                          # do it, with the thread's own mode set, and put that back
    old = ok(cudart.cudaThreadExchangeStreamCaptureMode(MODES[mode]))
    try:
        return job()
    finally:
        ok(cudart.cudaThreadExchangeStreamCaptureMode(old))

# %%
def start(job, mode="Global"):                     # do it in another thread; the Future brings the answer, or the error
    answer = Future()
    def work():
        try:
            answer.set_result(with_mode(job, mode))
        except Exception as error:
            answer.set_exception(error)
    threading.Thread(target=work, daemon=True).start()
    return answer

def elsewhere(job, mode="Global"):                 # and wait for it, 20 seconds at most
    return start(job, mode).result(timeout=20)

# %% [markdown]
# ## The failing program
#
# A watchdog, as distributed frameworks have one: a thread that asks now and then whether some work is done.
# The event it asks about was over long ago, on a stream that has nothing to do with yours. **Predict:** in how many
# of the three modes does your capture survive one such query?

# %%
survives = predict("In how many of the three modes does the capture survive?", None, unit="modes")

def capture_beside(call, mode):
    ok(cudart.cudaStreamBeginCapture(stream, MODES[mode]))
    mine = launch(stream, kernels.fill, 1, 4, y, 1.0, 4)[0]
    code, status = call(), graph.capture_state(stream).status
    later = launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4)[0]
    end, recorded = cudart.cudaStreamEndCapture(stream)
    if recorded is not None:
        ok(cudart.cudaGraphDestroy(recorded))
    return {"my launch": mine, "its call": code, "my next launch": later, "my end": end}, status

# %% tags=["nbval-check-output"]
def query():
    return cudart.cudaEventQuery(finished)[0]

def watchdog(codes):                               # it asks twenty times; below
    for _ in range(20):
        codes.append(query()), time.sleep(0.01)

lives = {mode: capture_beside(lambda: elsewhere(query), mode) for mode in MODES}
for mode, (codes, status) in lives.items():
    print(f"{mode:12}" + ", ".join(f"{call} {int(code)}" for call, code in codes.items()) + f", {status}")
survives.against(sum(status == "Active" for _, status in lives.values()));

# %% [markdown]
# In two. In Global, the mode of all lessons so far, *its* query is refused with 900, and *my* capture is lost. I see
# 901, and no line of mine is at fault. Only the other thread got the reason; `watch` looks there too.

# %%
with watch(stream) as w:
    ok(cudart.cudaStreamBeginCapture(stream, MODES["Global"]))
    elsewhere(query)
    launch(stream, kernels.fill, 1, 4, y, 1.0, 4)
    cudart.cudaStreamEndCapture(stream)

# %% [markdown]
# ## Mode, thread, call
#
# A mode never decides what is captured. It decides which *threads* may make calls that could disturb the
# capture. Eight calls, in my thread, in another, and in another that has set its own mode to Relaxed; three
# modes of the capture. **Predict:** how many of the 72 are refused?

# %%
refused = predict("How many of the 72 are refused?", None, unit="calls")
ok(cudart.cudaStreamBeginCapture(beside, MODES["Relaxed"]))
ok(launch(beside, kernels.fill, 1, 4, x, 1.0, 4))
small = ok(cudart.cudaStreamEndCapture(beside))    # a graph to instantiate

def keep(code, what, undo):                        # what a call made is given back at the end
    if not int(code):
        made.append((undo, what))
    return code

def give_back():
    while made:
        undo, what = made.pop()
        ok(undo(what))

# %%
made = []
calls = {
    "cudaMalloc": lambda: keep(*cudart.cudaMalloc(64), cudart.cudaFree),
    "cudaFree": lambda: cudart.cudaFree(block)[0],
    "cudaMallocHost": lambda: keep(*cudart.cudaMallocHost(64), cudart.cudaFreeHost),
    "cudaEventQuery (unrecorded)": lambda: cudart.cudaEventQuery(unrecorded)[0],
    "cudaStreamSynchronize (other)": lambda: cudart.cudaStreamSynchronize(beside)[0],
    "cudaGraphInstantiate": lambda: keep(*cudart.cudaGraphInstantiate(small, 0), cudart.cudaGraphExecDestroy),
    "cudaDeviceSynchronize": lambda: cudart.cudaDeviceSynchronize()[0],
    "launch into the capture": lambda: launch(stream, kernels.axpy, 1, 4, y, x, 1.0, 4)[0]}
WHO = {"my thread": lambda call: call(), "another thread": elsewhere, "another, Relaxed": lambda call: elsewhere(call, "Relaxed")}

# %% tags=["expects-figure"]
table = {name: {} for name in calls}
for name, call in calls.items():
    for who, ask in WHO.items():
        for mode in MODES:
            block = ok(cudart.cudaMalloc(64))      # for cudaFree
            codes, status = capture_beside(lambda: ask(call), mode)
            table[name][who, mode] = codes["its call"]
            if name != "cudaFree" or int(codes["its call"]):
                ok(cudart.cudaFree(block))
draw.answers(table, "Who may call what while I capture, in each mode of the capture")

# %% tags=["nbval-check-output"]
print(f"{'':30}", *(f"{who:>17}" for who in WHO))
print(f"{'the capture is G, T or R':30}", *(f"{mode[0]:>5}" for _ in WHO for mode in MODES))
for name, row in table.items():
    print(f"{name:30}", *(f"{int(code):5}" for code in row.values()))
refused.against(sum(int(code) != 0 for row in table.values() for code in row.values()));
give_back()

# %% [markdown]
# Six calls are *unsafe*: inside they may wait for work that is only written down. They are refused to me in Global and
# ThreadLocal, to others in Global only, to a Relaxed thread never. A wait for the device is refused to all.
#
# ## Two modes meet
#
# Each thread has a mode too: Global, until it exchanges it. **Predict:** of nine pairs, in how many may another thread allocate?

# %% tags=["expects-figure"]
meet = {f"own mode {own}": {(who, mode): capture_beside(lambda: ask(calls["cudaMalloc"], own), mode)[0]["its call"]
                          for who, ask in (("my thread, the capture is", with_mode), ("another thread, the capture is", elsewhere)) for mode in MODES} for own in MODES}
draw.answers(meet, "cudaMalloc: the thread's own mode, and the mode of the capture")

# %% tags=["nbval-check-output"]
print(f"{'':24}", *(f"{who:>17}" for who in ("my thread", "another thread")))
print(f"{'the capture is G, T or R':24}", *(f"{mode[0]:>5}" for _ in range(2) for mode in MODES))
for own, row in meet.items():
    print(f"{own:24}", *(f"{int(code):5}" for code in row.values()))
give_back()

# %% [markdown]
# In eight. My own thread is refused unless one of the two modes is Relaxed; another thread only where both are
# Global. So each thread can excuse itself.
#
# ## The fix, and the proof
#
# A real watchdog asks again and again. Before, it makes its *own* mode Relaxed with
# `cudaThreadExchangeStreamCaptureMode`, and afterwards puts it back: a mode stays with its thread, whatever job comes next.

# %%
def capture_guarded(mode):
    codes = []
    ok(cudart.cudaStreamBeginCapture(stream, MODES["Global"]))
    dog = start(lambda: watchdog(codes), mode)
    while not codes and not dog.done():            # until it has asked, while I capture
        time.sleep(0.01)
    launch(stream, kernels.fill, 1, 4, y, 3.0, 4)
    end, recorded = cudart.cudaStreamEndCapture(stream)
    dog.result(timeout=20)
    return codes[0], end, recorded

# %% tags=["nbval-check-output"]
for mode in ("Global", "Relaxed"):
    theirs, end, recorded = capture_guarded(mode)
    print(f"watchdog {mode:8} its query {theirs.name:34} my end {end.name}")
executable = ok(cudart.cudaGraphInstantiate(recorded, 0))
ok(cudart.cudaGraphLaunch(executable, stream))
print(to_host(y, stream))
ok(cudart.cudaGraphExecDestroy(executable))
ok(cudart.cudaGraphDestroy(recorded))

# %% [markdown]
# If the other thread is not yours to change, begin the capture in ThreadLocal.
#
# ## Work from another thread
#
# I launch, another thread launches into my stream, I launch again, in a Global capture. **Predict:** how many nodes?

# %% tags=["nbval-check-output"]
ok(cudart.cudaStreamBeginCapture(stream, MODES["Global"]))
ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
elsewhere(lambda: ok(launch(stream, kernels.axpy, 1, 4, y, x, 10.0, 4)))
ok(launch(stream, kernels.scale, 1, 4, y, 2.0, 4))
shared = ok(cudart.cudaStreamEndCapture(stream))
executable = ok(cudart.cudaGraphInstantiate(shared, 0))
ok(cudart.cudaGraphLaunch(executable, stream))
print(graph.kinds(shared), graph.edges(shared), to_host(y, stream))
ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(shared))
del executable, shared

# %% [markdown]
# Three: the stream counts, not the thread. Nobody asked whether you wanted it, and if two threads launch at
# once, their order is chance. A lock is your business.
#
# ## Ending in another thread
#
# **Predict:** in how many modes may another thread end my capture?

# %% tags=["nbval-check-output"]
for mode in MODES:
    ok(cudart.cudaStreamBeginCapture(stream, MODES[mode]))
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    code, recorded = elsewhere(lambda: cudart.cudaStreamEndCapture(stream))
    status, mine = graph.capture_state(stream).status, cudart.cudaStreamEndCapture(stream)[0]
    print(f"{mode:12}{int(code):4} {code.name:36}{status:5} and then my end: {int(mine)} {mine.name}")
    if recorded is not None:
        ok(cudart.cudaGraphDestroy(recorded))
recover(stream)

# %% [markdown]
# Only in Relaxed. In the two others 908, and still the capture *is over*, its graph gone; my own end finds none,
# 401. So begin and end in one thread.
#
# ## Two captures at once
#
# Two threads capture, each its own stream. In the middle one of them calls `cudaMalloc`, or waits for the device.
# **Predict:** both in Global, one allocates: how many captures are lost?

# %%
lost = predict("Both in Global, one allocates: how many of the two captures are lost?", None, unit="captures")

def capture_there(on, mode, barrier, call):
    ok(cudart.cudaStreamBeginCapture(on, MODES[mode]))
    barrier.wait(10)                               # both capture now
    call()
    barrier.wait(10)                               # the call has been made
    launch(on, kernels.fill, 1, 4, y, 1.0, 4)
    end, recorded = cudart.cudaStreamEndCapture(on)
    return end if recorded is None else keep(end, recorded, cudart.cudaGraphDestroy)

# %% tags=["expects-figure"]
side = {f"both {mode}": {} for mode in MODES}
between = {"nobody calls anything": bool, "one calls cudaMalloc": calls["cudaMalloc"], "one waits for the device": calls["cudaDeviceSynchronize"]}
for mode in MODES:
    for name, call in between.items():
        barrier = threading.Barrier(2)
        first = start(lambda: capture_there(two[0], mode, barrier, call))
        second = start(lambda: capture_there(two[1], mode, barrier, bool))
        row = side[f"both {mode}"]
        row[name, "its end"], row[name, "other's end"] = first.result(timeout=30), second.result(timeout=30)
draw.answers(side, "Two threads, two captures at once")

# %% tags=["nbval-check-output"]
print(f"{'':17}", *(f"{what:>13}" for what in ("nobody calls", "one allocates", "one waits")))
print(f"{'its end, other':17}", *(f"{whose:>6}" for _ in between for whose in ("its", "other")))
for mode, row in side.items():
    print(f"{mode:17}", *(f"{int(code):6}" for code in row.values()))
lost.against(sum(int(code) != 0 for (call, _), code in side["both Global"].items() if "Malloc" in call))
give_back()
ok(cudart.cudaGraphDestroy(small))
del small

# %% [markdown]
# ## Take with you
#
# | who makes unsafe calls | what to do |
# |---|---|
# | my own thread | before the capture or after it |
# | another thread of mine | its own mode Relaxed, around the call; then put it back |
# | a thread that I cannot change | begin the capture in ThreadLocal |
# | nobody may | Global: it is the only mode that tells you |
# | anybody who waits for the whole device | no mode helps: let it wait for a stream or an event |
#
# - A mode says who may disturb, never what is captured.
# - 901 without a 900 of your own: look into the other threads.
#
# Next, lesson 13: updates that CUDA refuses.
