"""19: a capture beside another thread that allocates, and a thread that excuses itself for one call."""
import contextlib
import queue
import threading
from concurrent.futures import Future

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.cases.bench import Trouble, named
from labkit.errors import ok
from labkit.labs.calls import Calls, shown
from labkit.labs.caution import within
from labkit.labs.judging import Lab
from labkit.labs.held import OwnError, OwnInterrupt, Work, wrapped

LAB = Lab("19_modes", "Modes", lesson="12", minutes=10)
MODES = {mode.name.removeprefix("cudaStreamCaptureMode"): mode for mode in cudart.cudaStreamCaptureMode}
PATIENCE = 5            # seconds until a thread that does not answer is given up


def own_mode():
    """The calling thread's mode, as a word; it stays."""
    mode = ok(cudart.cudaThreadExchangeStreamCaptureMode(MODES["Relaxed"]))
    ok(cudart.cudaThreadExchangeStreamCaptureMode(mode))
    return mode.name.removeprefix("cudaStreamCaptureMode")


def allocate():
    """The code of a cudaMalloc in this thread. What it got is given back."""
    code, address = cudart.cudaMalloc(64)
    if not int(code):
        cudart.cudaFree(address)
    return code


class Thread:
    """Another thread, which has used CUDA before. do(job): what job() returned there. Words in place of waiting for ever."""

    def __init__(self):
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def __enter__(self):
        self.do(lambda: ok(cudart.cudaSetDevice(0)))
        return self

    def __exit__(self, *gone):
        self._jobs.put(None)

    def _work(self):
        for job, answer in iter(self._jobs.get, None):
            try:
                answer.set_result(job())
            except BaseException as error:
                answer.set_exception(error)

    def do(self, job):
        answer = Future()
        self._jobs.put((job, answer))
        try:
            return answer.result(PATIENCE)
        except TimeoutError:
            if answer.done():
                raise
            raise Trouble(f"The other thread did not come back within {PATIENCE} seconds.") from None


@LAB.part(points=4, hints=(
    "Whose call breaks the capture here, and who gets to see the reason? Can you change that thread?",
    "A capture has a mode. Of the three, which let another thread allocate, and which of these still refuses it to your own?",
    "The mode is the second argument of the call that begins the capture. Lesson 12 has the table: who may call what."))
def beside_a_helper(t, answer):
    """A graph of work, twice. While it is captured another thread allocates, and does no harm; in your own thread the same call would still be refused."""
    work, modes, called, codes = Work(t), [], [], []
    with Thread() as thread:
        def helper():
            called.append((graphs.capture_state(t.stream).status == "Active", len(work.calls)))
            codes.append(thread.do(allocate))
        graph = _beside(t, answer, work, helper, modes, codes)
    (capturing, before), many = called[0] if called else (False, 0), len(called)
    found = "it was not called" if not called else f"{many} calls" if many > 1 else f"it was called after {before} calls of work" if capturing else "it was called while the stream did not capture"
    t.want(called == [(True, 1)], "helper called once, in the capture, between the two calls of work", found)
    t.want(modes == ["Global"], "your thread's own mode as it was before, Global", modes[0])
    t.want(work.calls == [True, True], "two calls of work, while the stream captures", f"{sum(work.calls)} of {len(work.calls)} in the capture")
    t.shape(graph, {"first": "scale", "second": "axpy", "third": "scale", "fourth": "axpy"}, [("first", "second"), ("second", "third"), ("third", "fourth")])
    within(t, graph, y=work.y, x=work.x)
    executable = t.executable(graph)
    for which in (1, 2):
        old, plus = t.fresh(work.y, work.x)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", work.y, 4 * old + 3 * plus)
    _still_refused(t, answer, work)


def _beside(t, answer, work, helper, modes, codes):
    """The graph that came back; what the other thread's call answered is said first. modes gets this thread's own mode afterwards."""
    def followed(*given):
        try:
            return answer(*given)
        finally:
            modes.append(own_mode())
    calls = Calls(t)
    try:
        return calls.alive(calls.run(wrapped(answer, followed), t.stream, work.function(), helper), "graph")
    except Trouble as trouble:
        refused = next((code for code in codes if int(code)), None)
        if refused is None:
            raise
        then = trouble.text.removeprefix(t.what).lstrip(" :")
        raise Trouble(f"{t.what}:\n  expected: the other thread's cudaMalloc does no harm to your capture\n"
                      f"  found:    it was refused with {named(refused)}, and the capture is lost: {then}", trouble.code) from None


def _still_refused(t, answer, work):
    """Once more, and this time work itself allocates, in the thread that captures. Nothing good can come back."""
    codes = []

    def faulty(stream):
        codes.append(allocate())
    with contextlib.suppress(Trouble):
        Calls(t).run(answer, t.stream, faulty, lambda: None)
    t.end_captures()
    t.want(codes and int(codes[0]), "a cudaMalloc in the thread that captures is still refused, so that you hear of your own mistakes",
           "it is let through, and nobody would have told you" if codes else "no call of work")


# ---- part 2 --------------------------------------------------------------------------------------

def _tried(t, answer, before, call):
    """(what came back, what was raised, the thread's mode afterwards). before: its mode at the start."""
    after = []

    def followed(call):
        ok(cudart.cudaThreadExchangeStreamCaptureMode(MODES[before]))
        try:
            return answer(call), None
        except (OwnError, OwnInterrupt) as raised:
            return None, raised
        finally:
            after.append(own_mode())
            ok(cudart.cudaThreadExchangeStreamCaptureMode(MODES["Global"]))
    result, raised = t.run(wrapped(answer, followed), call)
    return result, raised, after[0]


@LAB.part(points=4, hints=(
    "Whose mode is it that has to change: that of the capture, or that of the thread? And for how long?",
    "What does the call that sets a thread's mode hand back, and what is that good for afterwards?",
    "What if the function raises? Python has a clause for what must happen in any case. The CUDA call is cudaThreadExchangeStreamCaptureMode."))
def in_relaxed(t, answer):
    """What call() returned. Meanwhile this thread's own mode is Relaxed; afterwards it is what it was before, also where call raises."""
    for before in t.random.permutation(list(MODES)):
        before, seen, token = str(before), [], object()
        result, _, after = _tried(t, answer, before, lambda: (seen.append(own_mode()), token)[1])
        start = f"the thread's own mode is {before} at first: "
        t.want(len(seen) == 1, f"{start}one call of call", f"{len(seen)} calls")
        t.want(seen[0] == "Relaxed", f"{start}Relaxed while call runs", seen[0])
        t.want(after == before, f"{start}{before} again at the end", after)
        t.want(result is token, "what call returned comes back", shown(result, 40))
        _raising(t, answer, before)
    _inside(t, answer)
    _beside_a_capture(t, answer)


def _raising(t, answer, before):
    for error in (OwnError("raised by the check"), OwnInterrupt("raised by the check, as an interrupt would be")):
        def call():
            raise error
        _, raised, after = _tried(t, answer, before, call)
        t.want(raised is error, "an exception of call passes through", "it was lost" if raised is None else "another one")
        t.want(after == before, f"the thread's own mode is {before} again, though call raised", after)


def _inside(t, answer):
    """call uses the answer once more."""
    seen = []
    _tried(t, answer, "ThreadLocal", lambda: (answer(lambda: None), seen.append(own_mode())))
    t.want(seen == ["Relaxed"], "used inside itself: Relaxed still, when the inner one is over", seen[0] if seen else "call did not run")


def _beside_a_capture(t, answer):
    """It is for this: allocations in the thread that captures, and in another one."""
    with Thread() as thread:
        for who, do in (("the thread that captures", lambda job: job()), ("another thread", thread.do)):
            def job():
                code = answer(allocate)
                return code, own_mode()

            def captures(answer):
                ok(cudart.cudaStreamBeginCapture(t.stream, MODES["Global"]))
                try:
                    return do(job), graphs.capture_state(t.stream).status
                finally:
                    code, graph = cudart.cudaStreamEndCapture(t.stream)
                    if not int(code):
                        ok(cudart.cudaGraphDestroy(graph))
            (code, mode), status = t.run(wrapped(answer, captures), answer)
            t.want(isinstance(code, cudart.cudaError_t) and not int(code), f"a Global capture is open, and call allocates in {who}: 0 cudaSuccess", shown(code, 60))
            t.want((status, mode) == ("Active", "Global"), "the capture stays Active, and the thread's own mode is Global again", f"{status}, {mode}")
