"""07: an executable that is ready, the flags it is made with, and what outlives what."""
import numpy as np

from labkit import kernels
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import launch
from labkit.labs.calls import CREATE, NOT_READY, WAITS, Calls, number, shown
from labkit.labs.caution import GLOBAL, busy, busy_after, captured
from labkit.labs.held import held, wrapped
from labkit.labs.judging import Lab

LAB = Lab("07_ready", "Ready", lesson="04", minutes=8)
_FLAGS = cudart.cudaGraphInstantiateFlags
AUTO_FREE, UPLOAD = int(_FLAGS.cudaGraphInstantiateFlagAutoFreeOnLaunch), int(_FLAGS.cudaGraphInstantiateFlagUpload)
DEVICE, PRIORITY = int(_FLAGS.cudaGraphInstantiateFlagDeviceLaunch), int(_FLAGS.cudaGraphInstantiateFlagUseNodePriority)
STANDS = 2              # seconds that the queue of outlive stands still for a function that waits
_WORDS = {AUTO_FREE: "AutoFreeOnLaunch", UPLOAD: "Upload", DEVICE: "DeviceLaunch", PRIORITY: "UseNodePriority"}


def _work(t, y, x, count=3):
    """work(stream): y += 2 x so many times. work.streams: those it was called with."""
    def work(stream):
        work.streams.append(number(stream))
        for _ in range(count):
            ok(launch(stream, kernels.axpy, -(-t.size // 256), 256, y, x, 2.0, t.size))
    work.streams, work.adds = [], 2 * count
    return work


def _uploads(calls, executable):
    return [stream for _, one, stream in calls.of("cudaGraphUpload") if one == number(executable)]


@LAB.part(points=3, hints=(
    "Lesson 04 measured a first launch and a later one. What is dearer in the first, that could be done before it?",
    "Which call does that ahead of time, in stream order, and runs nothing? Who waits for it?",
    "Instantiate, cudaGraphUpload with the stream, cudaStreamSynchronize, cudaGraphDestroy for the graph, in this order. Then hand the executable back."))
def ready(t, answer):
    """An executable, uploaded in the stream and not launched; the upload is over and the graph destroyed on return."""
    y, x = t.buffer(), t.buffer()
    for count in (1, int(t.random.integers(3, 9))):
        before, _ = t.fresh(y, x)
        work = _work(t, y, x, count)
        ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
        work(t.stream)
        graph = ok(cudart.cudaStreamEndCapture(t.stream))
        busy(t)
        calls = Calls(t)
        try:
            with busy_after(t, answer, "cudaGraphUpload"):
                executable = calls.alive(calls.run(answer, t.stream, graph), "executable")
        finally:
            destroyed = ("graph", number(graph)) in calls.gone
            if not destroyed:
                t.own(graph)
        t.expect("after ready(stream, graph), before any launch", "y", y, before)
        uploads = _uploads(calls, executable)
        t.want(uploads, "the executable is uploaded", "no upload of it (the check hears what is written as cudart.cudaGraphUpload)")
        t.want(uploads == [number(t.stream)] * len(uploads), "an upload in the stream that was given", "one in another stream")
        calls.waited()
        t.want(destroyed, "the graph is destroyed", "it is still there")
        for which in (1, 2):
            old, plus = t.fresh(y, x)
            t.launch(executable, which)
            t.expect(f"after launch {which}", "y", y, old + work.adds * plus)
        calls.tidied("graph", "executable", but=[executable])


def _named(flags):
    return " | ".join(word for flag, word in _WORDS.items() if flags & flag) or "no flags"


@LAB.part(points=4, hints=(
    "Which flag does the plain call refuse, and why? What is there in the long form that the plain one has no place for?",
    "The long form takes a structure. Which of its fields are asked for here, and which call reads the flags of an executable back?",
    "Make a cudaGraphInstantiateParams, set its flags and its uploadStream, pass it to cudaGraphInstantiateWithParams. cudaGraphExecGetFlags reads them back, not always what you asked for."))
def with_flags(t, answer):
    """An executable made with the flags that were asked, and the flags that CUDA reads back from it."""
    y, x = t.buffer(), t.buffer()
    work = _work(t, y, x)
    graph = captured(t, work)
    asked = (0, AUTO_FREE, UPLOAD, DEVICE, PRIORITY, AUTO_FREE | PRIORITY, UPLOAD | AUTO_FREE, UPLOAD | PRIORITY)
    for flags in asked:
        before, _ = t.fresh(y, x)
        calls, when = Calls(t, keep=[graph]), f"for {flags} ({_named(flags)})"
        result = calls.run(answer, t.stream, graph, flags)
        pair = isinstance(result, (tuple, list)) and len(result) == 2 and isinstance(result[0], cudart.cudaGraphExec_t)
        t.want(pair, f"back, {when}: the executable and the flags that are read back, in this order", shown(result))
        executable = calls.alive(result[0], "executable")
        t.want(not calls.destroyed(graph), "the graph is left alone", "cudaGraphDestroy was called with it")
        t.expect(f"after with_flags {when}, before any launch", "y", y, before)
        made, uploads = calls.flags.get(number(executable), 0), _uploads(calls, executable)
        as_asked = made & ~UPLOAD == flags & ~UPLOAD and not made & ~flags      # an upload by a call of its own is one, too
        t.want(as_asked, f"an executable made with {flags}, {_named(flags)}", f"{made}, {_named(made)}")
        t.want(not flags & UPLOAD or number(t.stream) in uploads, f"an upload in the stream, {when}", 
               "one in the default stream: was uploadStream set?" if 0 in uploads else "one in another stream" if uploads else "none")
        read = int(ok(cudart.cudaGraphExecGetFlags(executable)))
        told = isinstance(result[1], (int, np.integer)) and not isinstance(result[1], bool) and int(result[1]) == read
        t.want(told, f"{read} as what is read back, {when}", shown(result[1]))
        if not flags & DEVICE:
            old, plus = t.fresh(y, x)
            t.launch(executable)
            t.expect(f"after with_flags {when} and a launch", "y", y, old + work.adds * plus)
        calls.tidied("graph", "executable", but=[executable])


@LAB.part(points=4, hints=(
    "Lesson 04 destroys three things before the work is over. Which, and does the work survive it?",
    "Which of them has to be there until the launch is queued, and which until the instantiation is over?",
    "Your own stream captures, and is not needed after the end of the capture. The launch goes to the queue. After it nothing is needed any more, so nothing has to be waited for."))
def outlive(t, answer):
    """The work, captured in a stream of its own, is queued in the queue by one launch; nobody waits, and graph, executable and stream are destroyed on return."""
    y, x = t.buffer(), t.buffer()
    for count in (1, int(t.random.integers(3, 9))):
        old, plus = t.fresh(y, x)
        work = _work(t, y, x, count)
        _, calls, before_it_ran = kernels.axpy.func, Calls(t), []

        def outliving(queue, work):
            with held(t, STANDS):
                answer(queue, work)
                before_it_ran.append(number(cudart.cudaStreamQuery(t.stream)[0]) == NOT_READY)
        calls.run(wrapped(answer, outliving), t.stream, work)
        t.expect("after outlive(queue, work), when the queue is empty", "y", y, old + work.adds * plus)
        t.want(len(work.streams) == 1, "work is called once, in a capture", f"it was called {len(work.streams)} times")
        t.want(number(t.stream) not in work.streams, "work is captured in a stream made for it", "it was called with the queue")
        calls.launches(1)
        waits = calls.of(*WAITS)
        t.want(not waits, "nothing is waited for", waits[0][0] if waits else "")
        t.want(before_it_ran == [True], "nothing is waited for: the function returns while the queue is still busy", "it came back only when the queue was empty")
        blocking = [name for name, flags, _ in calls.of(*CREATE) if name == "cudaStreamCreate" or not flags & 1]
        t.want(not blocking, "a non-blocking stream", f"one that the default stream waits for, made by {blocking[0] if blocking else ''}")
        calls.tidied("graph", "executable", "stream")
