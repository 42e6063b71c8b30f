"""What judges share where it matters when something runs: a stream that stands still, a GPU that is slow or fast, functions that came back, work that notes whether it was captured."""
import contextlib
import ctypes
import functools
import threading

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.cases.bench import Trouble
from labkit.errors import ok
from labkit.kernels import axpy, launch, scale
from labkit.labs.calls import Calls, captures, number
from labkit.labs.caution import busy
from labkit.labs.kernels import occupy
from labkit.labs.listening import listening

HELD = 0.25             # seconds that a stream stands still where nobody lets it go on
_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class OwnError(Exception):
    """What a judge's function raises, where an answer is to let it pass."""


class OwnInterrupt(BaseException):
    """The same, as an interrupt would be: no Exception."""


@contextlib.contextmanager
def held(t, seconds=HELD):
    """Work that comes to t.stream meanwhile is queued and does not run: until the block ends, or for so many seconds."""
    gate = threading.Event()
    made = _Function(lambda _: gate.wait(seconds) and None)
    t.kept.append(made)                     # until the Try is taken down, which waits for the device first
    ok(cudart.cudaLaunchHostFunc(t.stream, cudart.cudaHostFn_t(ctypes.cast(made, ctypes.c_void_p).value), 0))
    try:
        yield gate
    finally:
        gate.set()


@contextlib.contextmanager
def tardy(t, function):
    """Each launch of the function finds other work ahead in t.stream. Whoever reads before it is over reads what was there."""
    def heard(name, call, given):
        busy(t)
        return call()
    _ = occupy.func                         # loaded before anything waits
    with listening(("cudaGraphLaunch",), heard, function):
        yield


@contextlib.contextmanager
def hasty(t, function):
    """Launches and copies of the function are finished before their call returns, as on a GPU that is very fast. What comes after a launch comes too late for it."""
    def heard(name, call, given):
        answer = call()
        if not int(answer[0]) and not any(captures(stream) for stream in (t.stream, given[-1]) if number(stream) > 2):
            cudart.cudaStreamSynchronize(given[-1])
        return answer
    with listening(("cudaGraphLaunch", "cudaMemcpyAsync"), heard, function):
        yield


def later(t, function, *args):
    """(Calls, what function(*args) returned): one that the answer returned, listened to. What it destroys is refused in words, and stays."""
    calls = Calls(t, keep=[*t._graphs, *t._execs])
    result = calls.run(function, *args)
    ended = [name for name, first, _ in calls.of("cudaGraphDestroy", "cudaGraphExecDestroy") if first in calls.keep]
    t.want(not ended, "graph and executable stay, to be used again", f"a call of {', '.join(ended)}")
    return calls, result


def wrapped(function, around):
    """around(), which counts as the learner's function where a message shows the line of an error."""
    return functools.wraps(function, updated=())(around) if callable(function) else function


class Work:
    """work(stream): y = 2 y + x, two kernels. .calls: for each call, whether it went into the graph of a capture on t.stream."""

    def __init__(self, t):
        self.t, self.y, self.x, self.calls = t, t.buffer(), t.buffer(), []

    def function(self):
        def work(stream):
            self.calls.append(graphs.capture_state(stream).status == "Active" and int(stream) == int(self.t.stream))
            grid = -(-self.t.size // 256)
            ok(launch(stream, scale, grid, 256, self.y, 2.0, self.t.size))
            ok(launch(stream, axpy, grid, 256, self.y, self.x, 1.0, self.t.size))
        return work

    def captured(self):
        """Trouble unless work was called once, in a capture."""
        if self.calls != [True]:
            found = "no call" if not self.calls else f"{len(self.calls)} calls" if len(self.calls) > 1 else "one call, while the stream did not capture"
            raise Trouble(f"{self.t.what}:\n  expected: one call of work, while the stream captures\n  found:    {found}")

    def fresh(self):
        """New numbers in both buffers: what a launch makes of y."""
        old, plus = self.t.fresh(self.y, self.x)
        return 2 * old + plus
