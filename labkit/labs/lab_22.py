"""22: the first call that failed, the last error cleared; and a capture that ends whatever happens."""
from labkit import graph as graphs
from labkit.backend import cudart
from labkit.cases.bench import named
from labkit.errors import LabError, ok
from labkit.kernels import axpy, fill, launch
from labkit.labs.calls import Calls, kind, shown
from labkit.labs.caution import GLOBAL, busy, within
from labkit.labs.judging import Lab
from labkit.labs.held import Work, wrapped

LAB = Lab("22_first_failure", "First failure", lesson="15", minutes=8)
NOT_READY, UNJOINED, INVALIDATED = (getattr(cudart.cudaError_t, name) for name in ("cudaErrorNotReady", "cudaErrorStreamCaptureUnjoined", "cudaErrorStreamCaptureInvalidated"))


# ---- part 1 --------------------------------------------------------------------------------------

def _calls(t):
    """Two lists of (name, call): those that succeed, and those that are refused. Some names are in both."""
    y = t.buffer()
    grid = -(-t.size // 256)
    good = [("cudaFree", lambda: cudart.cudaFree(0)), ("launch", lambda: launch(t.stream, fill, grid, 256, y, 1.0, t.size)),
            ("cudaMemGetInfo", cudart.cudaMemGetInfo), ("cudaStreamSynchronize", lambda: cudart.cudaStreamSynchronize(t.stream)),
            ("cudaGetDeviceCount", cudart.cudaGetDeviceCount), ("cudaMemsetAsync", lambda: cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, t.stream))]
    bad = [("cudaFree", lambda: cudart.cudaFree(64)), ("launch", lambda: launch(t.stream, fill, 1, 4096, y, 1.0, t.size)),
           ("cudaStreamBeginCapture", lambda: cudart.cudaStreamBeginCapture(0, GLOBAL)), ("cudaStreamEndCapture", lambda: cudart.cudaStreamEndCapture(t.stream))]
    return good, bad


def _captured(t):
    """Lesson 15's capture, which cudaMalloc breaks: three refusals follow from it. The third call is the reason."""
    y, x = t.buffer(), t.buffer()
    grid = -(-t.size // 256)
    return [("cudaStreamBeginCapture", lambda: cudart.cudaStreamBeginCapture(t.stream, GLOBAL)), ("launch", lambda: launch(t.stream, fill, grid, 256, y, 1.0, t.size)),
            ("cudaMalloc", lambda: cudart.cudaMalloc(16)), ("launch", lambda: launch(t.stream, axpy, grid, 256, y, x, 1.0, t.size)),
            ("cudaStreamEndCapture", lambda: cudart.cudaStreamEndCapture(t.stream))]


def _some(t, those, count):
    return [those[k] for k in t.random.permutation(len(those))[:count]]


@LAB.part(points=3, hints=(
    "Where does a call say whether it failed: in what it returns, in the last error, or in both? Which of the two may be about some other call?",
    "How does your loop end at the first failure? And what has to happen both when it ends early and when it does not?",
    "The code is the first of a tuple that may be longer. Code 600 is no failure. One call of cudaGetLastError, after the loop, reads and clears."))
def first_failure(t, answer):
    """The calls made in order up to the first that fails, its name and code handed back, None where none fails, and a last error that is success."""
    good, bad = _calls(t)
    refused_by_the_driver, asking = bad[1], ("cudaStreamQuery", lambda: cudart.cudaStreamQuery(t.stream))
    _row(t, answer, _captured(t), 2)
    for fails in (0, int(t.random.integers(1, 4)), 4):
        _row(t, answer, [*_some(t, good, fails), *_some(t, bad, 1), *_some(t, good, 2), *_some(t, bad, 2)], fails)
    _row(t, answer, [good[0], bad[0], good[0]], 1)                       # one name, three times
    _row(t, answer, [*_some(t, good, 2), refused_by_the_driver, *_some(t, good, 2), *_some(t, bad, 1)], 2)
    for left in (False, True):
        _row(t, answer, _some(t, good, 4), None, left=left)
        _row(t, answer, [*_some(t, good, 2), bad[2]], 2, left=left)
    busy(t, fill)
    _row(t, answer, [asking, *_some(t, good, 3)], None)         # not ready: no failure
    busy(t, fill)
    _row(t, answer, [asking, good[2], bad[0], good[0]], 2)
    _row(t, answer, [], None, left=True)


def _row(t, answer, calls, fails, left=False):
    """One list, in which the call at position `fails` is the first to fail. left: a failure from before is still the last error."""
    made, after, after_call = [], [], len(calls) if fails is None else fails + 1

    def noted(position, call):
        def noting():
            result = call()
            made.append((position, result[0]))
            return result
        return noting

    def followed(given):
        cudart.cudaGetLastError()
        if left:
            cudart.cudaFree(64)
        try:
            return answer(given)
        finally:
            after.append(cudart.cudaGetLastError()[0])
            _end(t.stream)                                               # where the calls began a capture; it is not the answer's to end
    names = [name for name, _ in calls]
    t.what = f"With {t.size} floats and the calls {_numbered(names, range(len(names)))}" if names else f"With {t.size} floats and no calls at all"
    t.what += "; cudaGetLastError still has an older failure" if left else ""
    found = t.run(wrapped(answer, followed), [(name, noted(k, call)) for k, (name, call) in enumerate(calls)])
    order = [position for position, _ in made]
    stop = ", then none, because the last of these fails" if fails is not None else ""
    t.want(order == [*range(after_call)], f"made: {_numbered(names, range(after_call))}{stop}", _numbered(names, order))
    if fails is None:
        t.want(found is None, "None, because none fails", _back(found))
    else:
        code = made[fails][1]
        fits = isinstance(found, (tuple, list)) and len(found) == 2 and isinstance(found[0], str) and isinstance(found[1], cudart.cudaError_t)
        t.want(fits and found[0] == names[fails] and found[1] == code, f"back come {names[fails]!r} and {named(code)}", _back(found))
    t.want(not int(after[0]), "cudaGetLastError says 0 cudaSuccess afterwards", named(after[0]))


def _numbered(names, order):
    return ", ".join(f"{k + 1}. {names[k]}" for k in order) or "no call made"


def _back(found):
    if isinstance(found, (tuple, list)) and found:
        return ", ".join(named(one) if isinstance(one, cudart.cudaError_t) else shown(one, 40) for one in found[:4])
    return named(found) if isinstance(found, cudart.cudaError_t) else shown(found, 60)


def _end(stream):
    """Whether a capture was open on this stream. It is not any more."""
    if graphs.capture_state(stream).status == "None":
        return False
    code, graph = cudart.cudaStreamEndCapture(stream)
    if not int(code):
        cudart.cudaGraphDestroy(graph)
    return True


# ---- part 2 --------------------------------------------------------------------------------------

class _OwnError(Exception):
    pass


class _OwnInterrupt(BaseException):
    pass


@LAB.part(points=4, hints=(
    "Which lines of your function may raise, and on which way out of it is the capture still open?",
    "What has Python for a line that must run when another one raised, and how does the same exception then go on? Is every interrupt an Exception?",
    "Ending a lost capture is refused with 901. Is that code the reason, or does it hide it? Where the capture was not lost, the end hands over a graph that nobody gets."))
def guarded(t, answer):
    """The graph of what work queues; or the very exception that work raised, or that of a refused begin or end. In every case nothing is capturing afterwards."""
    work = Work(t)
    _sound(t, answer, work)
    for error in (_OwnError("raised by the check"), _OwnInterrupt("raised by the check, as an interrupt would be"), IndexError("raised by the check"), KeyboardInterrupt("raised by the check")):
        _passes(t, answer, work, error)
        _sound(t, answer, work)
    _refused_inside(t, answer, work)
    for code, what, faulty in ((INVALIDATED, "work makes a call that is refused, and does not look at its code", _unread), (UNJOINED, "work forks to another stream and does not join it", _unjoined(t))):
        raised = _tried(t, answer, t.stream, _then(work, faulty), what)
        t.want(isinstance(raised, LabError) and raised.code == code, f"{what}: the end is refused, and the LabError with {named(code)} comes", _came(raised))
        work.captured()
        _sound(t, answer, work)
    work.calls.clear()
    raised = _tried(t, answer, 0, work.function(), "the stream is the default stream, which cannot capture")
    code = cudart.cudaError_t.cudaErrorStreamCaptureUnsupported
    t.want(not work.calls, "on the default stream the begin is refused, and work is not called", f"{len(work.calls)} call{'s' * (len(work.calls) > 1)} of work")
    t.want(isinstance(raised, LabError) and raised.code == code, f"on the default stream the begin is refused, and the LabError with {named(code)} comes", _came(raised))
    _sound(t, answer, work)


def _sound(t, answer, work):
    """Nothing goes wrong: the graph."""
    work.calls.clear()
    before = t.fresh(work.y, work.x)
    calls = Calls(t)
    graph = calls.alive(calls.run(answer, t.stream, work.function()), "graph")
    work.captured()
    t.expect("after the capture and before any launch", "y", work.y, before[0])
    t.shape(graph, {"scale": "scale", "axpy": "axpy"}, [("scale", "axpy")])
    within(t, graph, y=work.y, x=work.x)
    executable = t.executable(graph)
    for which in (1, 2):
        wanted = work.fresh()
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", work.y, wanted)


def _then(work, more):
    """work(stream), and then more(stream)."""
    work.calls.clear()
    queue = work.function()

    def both(stream):
        queue(stream)
        more(stream)
    return both


def _passes(t, answer, work, error):
    def fails(stream):
        raise error
    what = f"work raises {type(error).__name__.strip('_')}"
    raised = _tried(t, answer, t.stream, _then(work, fails), what)
    t.want(raised is error, f"{what}: that same exception goes on", _came(raised))
    work.captured()


def _refused_inside(t, answer, work):
    """A refused call that work looks at: its LabError is the reason, and not what the end says then."""
    seen = []

    def refused(stream):
        try:
            address = ok(cudart.cudaMalloc(64))
        except LabError as error:
            seen.append(error)
            raise
        t.kept.append(address)
        cudart.cudaFree(address)
    what = "work calls cudaMalloc, and ok raises"
    raised = _tried(t, answer, t.stream, _then(work, refused), what)
    t.want(seen, "cudaMalloc in work is refused, as a capture of mode Global does", "it was let through")
    t.want(raised is seen[0], f"{what}: that LabError with {named(seen[0].code)} goes on", _came(raised))
    work.captured()
    _sound(t, answer, work)


def _unread(stream):
    cudart.cudaDeviceSynchronize()


def _unjoined(t):
    side, fork, z = t.new_stream(), t.event(), t.buffer()

    def forks(stream):
        ok(cudart.cudaEventRecord(fork, stream))
        ok(cudart.cudaStreamWaitEvent(side, fork, 0))
        ok(launch(side, fill, 1, 4, z, 1.0, 4))
    return forks


def _tried(t, answer, stream, work, what):
    """What the answer raised, or a sentence of what it returned. Trouble where a capture is open or a graph is left."""
    raised, still_open = [], []

    def followed(*given):
        try:
            raised.append(f"nothing was raised, and {kind(answer(*given))} came back")
        except (Exception, _OwnInterrupt, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and str(error) != "raised by the check":
                raise                                                    # the learner's own
            raised.append(error)
        finally:
            still_open.append(_end(t.stream))
    calls = Calls(t)
    calls.run(wrapped(answer, followed), stream, work)
    t.want(not still_open[0], f"{what}: no capture is open afterwards", f"the stream is still capturing; and {_came(raised[0])}")
    left = len(calls.there["graph"]) if isinstance(raised[0], BaseException) else 0
    t.want(not left, f"{what}: a graph that nobody gets is destroyed", f"{left} graph{'s' * (left > 1)} left")
    return raised[0]


def _came(raised):
    if isinstance(raised, str):
        return raised
    code = getattr(raised, "code", None)
    return f"{type(raised).__name__.strip('_')} came" + (f", with {named(code)}" if code is not None else "")
