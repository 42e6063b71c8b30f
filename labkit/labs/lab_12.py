"""12: batches of changing sizes, served from an executable for each, and timed against one fixed replay."""
import functools

from labkit import graph as graphs
from labkit.arrays import to_host
from labkit.backend import cudart
from labkit.cases.bench import Trouble
from labkit.errors import ok
from labkit.kernels import axpy, launch
from labkit.labs.calls import Calls
from labkit.labs.judging import Lab

LAB = Lab("12_dynamic_batch", "Dynamic batch", lesson="07", minutes=15)
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
MOST, KERNELS = 8, 40
AT_MOST = 2                # times a fixed replay; one executable per size took 1.07 of it, an update from a ready graph 2.6 (dynamic-batch.json, H200)
_earlier = set()           # executables of earlier tries, which are destroyed: ("executable", handle)
TIMED_FROM = 1000          # floats an item: the smaller tries are not timed


class _Work:
    """work(batch): y += a x, forty times, over the first items. .calls: [(batch, whether it was captured)]."""

    def __init__(self, t):
        t.what = f"With items of {t.size} floats"
        self.t, self.y, self.x = t, t.buffer(t.numbers(MOST * t.size)), t.buffer(t.numbers(MOST * t.size))
        self.a, self.calls, self.asks = float(t.random.integers(1, 4)), [], Calls(t)
        self.asks.gone |= _earlier

    def queue(self, batch):
        n = batch * self.t.size
        for _ in range(KERNELS):
            ok(launch(self.t.stream, axpy, -(-n // 256), 256, self.y, self.x, self.a, n))

    def function(self):
        """What the learner gets."""
        def work(batch):
            self.calls.append((batch, graphs.capture_state(self.t.stream).status == "Active"))
            self.queue(batch)
        return work

    def asked(self, answer, *args):
        """The function that answer(*args) returned."""
        return self.t.parts_of(self.asks.run(answer, *args), "function")

    def served(self, serve, *batches, known=True):
        """New numbers, then these batches in a row, without waiting: both buffers must be right, and the calls of work are returned.

        known: their sizes have come before, or were said before, so that nothing is left but to launch.
        """
        old, plus = self.t.fresh(self.y, self.x)
        before, since = len(self.calls), len(self.asks.asked)
        try:
            self.asks.run(_in_a_row(serve), batches)
        except Trouble as trouble:
            if "of a destroyed executable" in trouble.text:
                trouble.text += "\n  Is it one of an earlier call of the outer function? Each call starts with an empty table of its own."
            raise
        finally:
            _earlier.update(("executable", handle) for handle in self.asks.there["executable"])
        for batch in batches:
            old[:batch * self.t.size] += KERNELS * self.a * plus[:batch * self.t.size]
        when = f"after serving batches of {', '.join(map(str, batches))}" if len(batches) > 1 else f"after serving a batch of {batches[0]}"
        items = self.t.size
        most, name = max(batches) * items, f"{max(batches)} item{'s' * (max(batches) > 1)}"
        found = to_host(self.y)
        self.t.expect(when, f"the first {name}", found[:most], old[:most])
        self.t.expect(when, "the items after them, which are left alone", found[most:], old[most:])
        self.t.expect(when, "x, which nothing writes", self.x, plus)
        self.asks.in_the_stream(since)
        if known and len(self.calls) == before:
            self.asks.nothing_made(since, f"{when}, {'sizes' if len(batches) > 1 else 'a size'} that could be prepared before")
        return self.calls[before:]


def _in_a_row(serve):
    @functools.wraps(serve, updated=())
    def row(batches):
        for batch in batches:
            serve(batch)
    return row


def _timed(t, work, serve, sizes):
    """Each batch is waited for, in both: a batch comes, and then the next one."""
    ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
    work.queue(max(sizes))
    fixed = t.executable(t.own(ok(cudart.cudaStreamEndCapture(t.stream))))

    def changing():
        for batch in sizes:
            serve(batch)
            ok(cudart.cudaStreamSynchronize(t.stream))

    def replays():
        for _ in sizes:
            ok(cudart.cudaGraphLaunch(fixed, t.stream))
            ok(cudart.cudaStreamSynchronize(t.stream))
    t.faster("serving batches that change", changing, "the same number of launches of one fixed executable", replays, 1 / AT_MOST)


def _sizes(t):
    """Five of the eight sizes, in no order."""
    return [int(n) for n in t.random.permutation(range(1, MOST + 1))[:5]]


def _said(calls):
    return ", ".join(f"work({batch})" for batch, _ in calls[:4]) + (" ..." if len(calls) > 4 else "")


@LAB.part(points=5, sizes=(4, 300, 1000), hints=(
    "What costs time in each of the eight ways when a batch comes, and which of them has nothing left to do but to launch?",
    "When is the size of the kernels decided, at the capture or at the launch? How many captures does that ask for?",
    "Prepare an executable for each of the sizes in a dictionary. The function that you return looks one up and launches it. A function inside a function sees its names."))
def serving(t, answer):
    """A function that serves each batch with one launch of an executable made before; on a GPU it takes at most twice as long as a fixed replay."""
    work, sizes = _Work(t), _sizes(t)
    serve = work.asked(answer, t.stream, work.function(), list(sizes))
    for batch in [*sizes, *(int(n) for n in t.random.permutation(sizes))]:
        calls = work.served(serve, batch)
        t.want(not calls, f"a batch of {batch} served without a call of work: all sizes were captured before", f"{_said(calls)} while it was served")
    work.served(serve, *sizes[:3])
    if t.size >= TIMED_FROM:
        _timed(t, work, serve, [*sizes, *sizes[::2]])


@LAB.part(points=5, sizes=(4, 300, 1000), hints=(
    "How does your function know that a size has come before? Where does it keep what it made then?",
    "What happens when two calls of the outer function share what is kept, each with its own stream and work?",
    "A dictionary, made anew in the outer function and used by the inner one: is the size in it? If not, capture and instantiate. Launch in both cases."))
def cache(t, answer):
    """A function that calls work once for each size, in a capture, when the size comes first, and after that only launches."""
    work, sizes, come = _Work(t), _sizes(t), set()
    serve = work.asked(answer, t.stream, work.function())
    t.want(not work.calls, "no call of work before a batch comes: nobody knows the sizes", _said(work.calls))
    for batch in [sizes[0], *sizes[:3], *sizes[1::-1], *sizes[2:], *(int(n) for n in t.random.permutation(sizes))]:
        again = batch in come
        calls = work.served(serve, batch, known=again)
        which = f"a batch of {batch}, a size that {'has come before' if again else 'comes for the first time'}"
        t.want(len(calls) == (not again), f"{which}: {'no call' if again else 'one call'} of work", _said(calls) or "no call of work")
        t.want(all(captured for _, captured in calls), f"{which}: work called in a capture", "work called while nothing was captured")
        come.add(batch)
    work.served(serve, *sizes[:3])
    if t.size >= TIMED_FROM:
        _timed(t, work, serve, [*sizes, *sizes[::2]])
