# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 15 · Unchecked errors
#
# The bindings raise nothing. Every call hands back a code, and a program that does not look at it goes on,
# with a null graph in its hands and old numbers in its buffers. What would the calls have said? Which of them
# is the reason? And who tells you when nobody looked?

# %%
from labkit import cudart, ok, LabError, kernels, launch, to_device, to_host, graph, predict, explain, in_child, recover, draw

# %%
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
import numpy as np
stream, side = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
x, y = to_device(np.ones(4, dtype=np.float32)), to_device(np.zeros(4, dtype=np.float32))
fork = ok(cudart.cudaEventCreate())

# %% [markdown]
# ## The failing program
#
# A helper that captures, and a step for it: fill `y` with 1, get room for a temporary, add 10. The codes stay
# unread. `y` holds zeros now. **Predict:** what does `y` hold after the replay?

# %%
value = predict("What does y hold after the replay?", None, unit="")

def capture(work):
    cudart.cudaStreamBeginCapture(stream, GLOBAL)
    work()
    return cudart.cudaStreamEndCapture(stream)[1]

def step():
    launch(stream, kernels.fill, 1, 4, y, 1.0, 4)
    cudart.cudaMalloc(16)                          # room for a temporary
    launch(stream, kernels.axpy, 1, 4, y, x, 10.0, 4)

# %% tags=["nbval-check-output"]
recorded = capture(step)
executable = cudart.cudaGraphInstantiate(recorded, 0)[1]
cudart.cudaGraphLaunch(executable, stream)
print("the wait says", cudart.cudaStreamSynchronize(stream)[0].name)
print(to_host(y, stream))
value.against(to_host(y, stream)[0]);

# %% [markdown]
# No exception, no word, and the last call says success: nothing was launched, so there was nothing to wait for. Only
# the numbers are wrong.
#
# ## Call by call
#
# The same program once more, with its codes written down. **Predict:** how many of the nine calls are refused?

# %%
refused = predict("How many of the nine calls are refused?", None, unit="calls")

def program():
    yield "begin", cudart.cudaStreamBeginCapture(stream, GLOBAL)
    yield "launch a kernel", launch(stream, kernels.fill, 1, 4, y, 1.0, 4)
    yield "cudaMalloc", cudart.cudaMalloc(16)
    yield "launch the next", launch(stream, kernels.axpy, 1, 4, y, x, 10.0, 4)
    yield "end", (end := cudart.cudaStreamEndCapture(stream))
    yield "instantiate", (made := cudart.cudaGraphInstantiate(end[1], 0))
    yield "launch the graph", cudart.cudaGraphLaunch(made[1], stream)
    yield "wait", cudart.cudaStreamSynchronize(stream)
    yield "destroy the executable", cudart.cudaGraphExecDestroy(made[1])

# %% tags=["expects-figure"]
cudart.cudaGetLastError()                          # away with what earlier cells left
said = {call: {"the call": answer, "the last error then": cudart.cudaPeekAtLastError()} for call, answer in program()}
draw.answers(said, "What came back when nobody looked")

# %% tags=["nbval-check-output"]
print(f"{'':24} call last error")
for call, answers in said.items():
    print(f"{call:24}", *(f"{int(code):4}" for code, *_ in answers.values()))
refused.against(sum(int(answers["the call"][0]) != 0 for answers in said.values()));

# %% [markdown]
# The *first* refusal is the reason: 900, memory in the middle of a capture. 901: the capture is lost. 1: a graph that is
# null, then an executable that is null.
#
# ## Ask once, at the end?
#
# The right column is what CUDA remembers. `cudaPeekAtLastError` reads it, `cudaGetLastError` reads and clears it. At the end
# that gave 1, not the 900. **Predict:** of five refusals, how many does a get find?

# %%
found = predict("How many of the five does a get find?", None, unit="refusals")

def elsewhere(call):
    with ThreadPoolExecutor(1) as other:
        return other.submit(call).result()

def wrong():
    return cudart.cudaFree(64)                     # no allocation is there

tries = {"a refused call": wrong, "and then a success": lambda: (wrong(), cudart.cudaStreamSynchronize(stream))[0],
         "and then another refusal": lambda: (wrong(), cudart.cudaStreamBeginCapture(0, GLOBAL))[0],
         "a kernel with 4096 threads": lambda: launch(stream, kernels.fill, 1, 4096, y, 1.0, 4),
         "a refused call, other thread": lambda: elsewhere(wrong)}

# %% tags=["expects-figure"]
notes = {}
for name, call in tries.items():
    cudart.cudaGetLastError()
    notes[name] = {"the first call": call(), "peek": cudart.cudaPeekAtLastError(), "get": cudart.cudaGetLastError(), "get again": cudart.cudaGetLastError()}
draw.answers(notes, "What cudaGetLastError remembers")

# %% tags=["nbval-check-output"]
print(f"{'':29} call peek  get again")
for name, answers in notes.items():
    print(f"{name:29}", *(f"{int(code):4}" for code, *_ in answers.values()))
found.against(sum(answers["get"][0] == answers["the first call"][0] for answers in notes.values()));

# %% [markdown]
# A slip of paper with one line, one for each thread. A success leaves it, the next refusal writes over it. And what
# the driver refuses is not on it: from Python, launching a kernel is a call of the driver. Look where the code is: at each
# call.
#
# ## ok, as a habit
#
# `ok` raises at the call that was refused. Look into the LabError; `explain` adds the usual causes.

# %%
recover(stream)                                    # ends what an earlier run of this cell left open
try:
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    ok(cudart.cudaMalloc(16))
    ok(cudart.cudaStreamEndCapture(stream))
except LabError as error:
    caught = error
for part in ("did", "means", "try_", "code"):
    print(f"{part:6}", getattr(caught, part))
explain(caught)

# %% [markdown]
# The line, its meaning, what to try, the code. (One code is no failure: 600, "not ready", the answer of a query.
# Compare it yourself.)
#
# But the exception jumped over the end of the capture. **Predict:** the program catches it and tries again. What does
# the next begin answer?

# %% tags=["nbval-check-output"]
print(int(caught.code), caught.code.name)
print("the capture:", graph.capture_state(stream).status)
print("begin again:", *(f"{int(code)} {code.name}" for code in cudart.cudaStreamBeginCapture(stream, GLOBAL)))
print("launch:     ", *(f"{int(code)} {code.name}" for code in launch(stream, kernels.fill, 1, 4, y, 1.0, 4)))
recover(stream)

# %% [markdown]
# 401 this time, and 901: a second mistake hides the first. The fix is a context manager. Whatever happens inside, it
# ends the capture and lets the exception pass; the 901 of that end is not the reason, so it stays unread.

# %%
@contextmanager
def captured(on, mode=GLOBAL):
    ok(cudart.cudaStreamBeginCapture(on, mode))
    plan = []
    try:
        yield plan
    except BaseException:
        left = cudart.cudaStreamEndCapture(on)[1]
        if left is not None:
            cudart.cudaGraphDestroy(left)
        raise
    plan.append(ok(cudart.cudaStreamEndCapture(on)))

# %%
def refused_call():
    ok(cudart.cudaMalloc(16))

def mistake_in_python():
    return [][0]

def fork_without_join():
    ok(cudart.cudaEventRecord(fork, stream))
    ok(cudart.cudaStreamWaitEvent(side, fork, 0))
    ok(launch(side, kernels.fill, 1, 4, x, 1.0, 4))

# %% tags=["nbval-check-output"]
for work in (refused_call, mistake_in_python, fork_without_join):
    try:
        with captured(stream) as plan:
            ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
            work()
    except (LabError, IndexError) as error:
        code = getattr(error, "code", None)
        print(f"{work.__name__:18} {code.name if code else type(error).__name__:34} then", graph.capture_state(stream).status)

# %% [markdown]
# Each gives its own reason, and the stream is free again. The third was refused at the end only: every call before it
# had succeeded. So the end's code needs a look too.
#
# ## Recovery
#
# The program from above, with the memory taken before the capture:

# %% tags=["nbval-check-output"]
room = ok(cudart.cudaMalloc(16))
with captured(stream) as plan:
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    ok(launch(stream, kernels.axpy, 1, 4, y, x, 10.0, 4))
sound, = plan
executable = ok(cudart.cudaGraphInstantiate(sound, 0))
ok(cudart.cudaGraphLaunch(executable, stream))
print(to_host(y, stream))

# %% [markdown]
# ## An error that comes later
#
# A refusal comes from the call itself. But a kernel runs after its launch was answered. This one writes to
# address 0; that breaks CUDA for its whole process, so it runs in a child. **Predict:** how many of the eight calls answer
# 700, `cudaErrorIllegalAddress`?

# %%
late = predict("How many of the eight calls answer 700?", None, unit="calls")

def broken():
    from labkit import cudart, ok, kernels, launch
    stream, mode = ok(cudart.cudaStreamCreateWithFlags(1)), cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
    calls = {"launch, writes to address 0": lambda: launch(stream, kernels.fill, 1, 4, 0, 1.0, 4),
             "wait": lambda: cudart.cudaStreamSynchronize(stream), "get the last error": cudart.cudaGetLastError,
             "get it again": cudart.cudaGetLastError, "wait again": lambda: cudart.cudaStreamSynchronize(stream),
             "cudaMalloc": lambda: cudart.cudaMalloc(16), "begin a capture": lambda: cudart.cudaStreamBeginCapture(stream, mode),
             "end it": lambda: cudart.cudaStreamEndCapture(stream)}
    for name, call in calls.items():
        print(f"{name:28}", int(call()[0]))

# %% tags=["nbval-check-output"]
child = in_child(broken, limit=60)                 # seconds, at most
print(child)
late.against(child.printed.count(" 700"));

# %% [markdown]
# The launch says success; the code comes with a later call, here the wait. A get clears the slip of paper, not
# the damage: a capture that has nothing to do with it answers 700 too, and only a new process helps. A replay does the same:
# `cudaGraphLaunch` succeeds, then the wait says 700.
#
# To find the line, wait after each launch, outside of captures; or use compute-sanitizer.

# %% tags=["nbval-check-output"]
ok(cudart.cudaGraphLaunch(executable, stream))     # this process is unharmed
print(to_host(y, stream))
ok(cudart.cudaGraphExecDestroy(executable)), ok(cudart.cudaGraphDestroy(sound)), ok(cudart.cudaFree(room))
del executable, plan, sound, room

# %% [markdown]
# ## Take with you
#
# - The first code that is not success is the reason. Look at every call, the end too.
# - `cudaGetLastError` knows the latest refusal, and not all of them.
# - End a capture whatever happens. 700 ends the process.
#
# Next, lesson 16: failures without any code.
