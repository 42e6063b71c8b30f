"""18: nothing is waited for and nothing is asked while a stream captures; both come after the launch."""
import contextlib

import numpy as np

from labkit.backend import cudart
from labkit.labs.calls import Calls, shown
from labkit.labs.caution import beyond
from labkit.labs.held import HELD, Work, held, later, tardy, wrapped
from labkit.labs.judging import Lab
from labkit.labs.memory import HostMemory

LAB = Lab("18_wait_outside", "Wait outside", lesson="11", minutes=8)


def one_launch(t, calls, who):
    """Trouble unless there was one launch, in t.stream."""
    made = calls.of("cudaGraphLaunch")
    where = "" if not made or made[0][2] == int(t.stream) else ", in another stream"
    note = "" if made else " (the check hears what is written as cudart.cudaGraphLaunch)"
    t.want(len(made) == 1 and not where, f"{who} launches the executable once, in the stream that was given", f"{len(made)} launch{'es' * (len(made) != 1)}{where}{note}")


def nothing_yet(t, calls, name, y, before):
    """Trouble where the answer has launched something, or let it run."""
    made = len(calls.of("cudaGraphLaunch"))
    t.want(not made, f"{name} launches nothing yet", f"{made} launch{'es' * (made != 1)} before it returned")
    t.expect(f"after {name} and before any launch", "y", y, before)


def _stepped(t, step, hold):
    """What step() returned: as it was at that moment, and the thing itself."""
    seen = []

    def stepping():
        found = step()
        seen.append(found.copy() if isinstance(found, np.ndarray) else found)
        return found
    with contextlib.ExitStack() as late:
        if hold:                                # work ahead when it is called, and when it launches
            late.enter_context(tardy(t, step))
            late.enter_context(held(t))
        calls, given = later(t, wrapped(step, stepping))
    one_launch(t, calls, "step()")
    return seen[0], given


@LAB.part(points=4, hints=(
    "Which of the two waits does the order of the stream make needless? And what is there to wait for, while nothing has run?",
    "When are the numbers in host: after the copy was captured, or after something else? Who reads them, and when?",
    "One wait is left, and it is not in the capture. It belongs into step, between the launch and the copy that is handed back."))
def wait_outside(t, answer):
    """A graph of scale, axpy and a copy to the host, in a row; and a function step that launches it, waits for it and hands back the numbers."""
    y, x, memory = t.buffer(), t.buffer(), HostMemory(t.size)
    t._buffers.append(memory)
    host, (before, _) = memory.view(), t.fresh(y, x)
    calls = Calls(t, look=lambda graph: beyond(graph, y=y, x=x))
    result = calls.run(answer, t.stream, y, x, host)
    graph, step = calls.alive(result, "graph"), t.parts_of(result, "graph", "function")[1]
    t.shape(graph, {"scale": "scale", "axpy": "axpy", "copy": "Memcpy"}, [("scale", "axpy"), ("axpy", "copy")])
    nothing_yet(t, calls, "wait_outside", y, before)
    first = None
    for which in (1, 2, 3):
        old, plus = t.fresh(y, x)
        host[:] = -1
        numbers, given = _stepped(t, step, hold=which == 2)
        t.want(isinstance(numbers, np.ndarray), "step() hands back the numbers, a NumPy array", type(numbers).__name__)
        waits = "" if which != 2 else ", while the stream was still busy with other work"
        t.expect(f"call {which} of step(){waits}", "what it handed back", numbers, 2 * old + plus)
        t.expect(f"after call {which} of step()", "y", y, 2 * old + plus)
        first = first or (given, 2 * old + plus)
    t.expect("after call 3 of step()", "what the first call handed back (it must be a copy)", *first)


@LAB.part(points=4, hints=(
    "Is there a true answer to the question at the line where the program asks it? What has run by then?",
    "The broken program asks once. How often would it have to ask, to be right at each call of done?",
    "A query answers at once, with one of two codes that are both no failure. Lesson 11 lists where it may be called, lesson 15 names the second code."))
def ask_outside(t, answer):
    """Two functions: start launches the captured work and returns at once; done says True or False: whether all of it has run by now."""
    work, calls = Work(t), Calls(t)
    before, _ = t.fresh(work.y, work.x)
    start, done = t.parts_of(calls.run(answer, t.stream, work.function()), "function", "function")
    work.captured()
    nothing_yet(t, calls, "ask_outside", work.y, before)
    for which in (1, 2, 3):
        wanted = work.fresh()
        early, begun = _started(t, start, done)
        t.want(begun, f"call {which} of start() returns while the work still waits for its turn", "it came back only when the stream was free: it waits")
        _said(t, early, False, f"after call {which} of start(), while the stream is busy with something else")
        t.expect(f"after call {which} of start(), and a wait", "y", work.y, wanted)
        _said(t, t.run(done, again=True), True, "once the stream has been waited for")
        t.expect("after done()", "y", work.y, wanted)
    t.want(work.calls == [True], "one call of work in all: start() only launches", f"{len(work.calls)} calls")


def _started(t, start, done):
    """(what done() said before the work could run, whether the stream was still held when both had answered)."""
    begun = []

    def both():
        start()
        begun.append(_busy(t))
        begun.append(done())
        begun.append(_busy(t))
        gate.set()
    with held(t, 4 * HELD) as gate:
        calls, _ = later(t, wrapped(start, both))
    one_launch(t, calls, "start()")
    t.want(begun[2] or not begun[0], "done() answers at once", "it came back only when the stream was free: it waits")
    return begun[1], begun[0]


def _busy(t):
    return int(cudart.cudaStreamQuery(t.stream)[0]) == int(cudart.cudaError_t.cudaErrorNotReady)


def _said(t, found, wanted, when):
    plain = isinstance(found, (bool, np.bool_))
    words = str(found) if plain or found is None else f"{type(found).__name__}, {shown(found, 40)}"
    t.want(plain and bool(found) is wanted, f"done() says {wanted} {when}", words)
