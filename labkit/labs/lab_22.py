"""22: the first call that failed, the last error cleared; and a capture that ends whatever happens."""
from labkit.backend import cudart
from labkit.cases.bench import named
from labkit.errors import LabError, ok
from labkit.kernels import axpy, fill, launch
from labkit.labs.calls import Calls, kind, shown
from labkit.labs.caution import GLOBAL, busy, within
from labkit.labs.held import OwnError, OwnInterrupt, Work, wrapped
from labkit.labs.judging import Lab

LAB = Lab("22_first_failure", "First failure", lesson="15", minutes=8)
UNSUPPORTED, UNJOINED, INVALIDATED = (getattr(cudart.cudaError_t, f"cudaErrorStreamCapture{name}") for name in ("Unsupported", "Unjoined", "Invalidated"))


# ---- part 1 --------------------------------------------------------------------------------------

def _calls(t):
    """Three lists of (name, call): those that succeed, those that are refused, and lesson 15's capture, whose third call is the reason for all that follow."""
    y, x, grid = t.buffer(), t.buffer(), -(-t.size // 256)
    filled = ("launch", lambda: launch(t.stream, fill, grid, 256, y, 1.0, t.size))
    good = [("cudaFree", lambda: cudart.cudaFree(0)), filled, ("cudaMemGetInfo", cudart.cudaMemGetInfo), ("cudaStreamSynchronize", lambda: cudart.cudaStreamSynchronize(t.stream)),
            ("cudaGetDeviceCount", cudart.cudaGetDeviceCount), ("cudaMemsetAsync", lambda: cudart.cudaMemsetAsync(y.ptr, 0, y.nbytes, t.stream))]
    bad = [("cudaFree", lambda: cudart.cudaFree(64)), ("launch", lambda: launch(t.stream, fill, 1, 4096, y, 1.0, t.size)),
           ("cudaStreamBeginCapture", lambda: cudart.cudaStreamBeginCapture(0, GLOBAL)), ("cudaStreamEndCapture", lambda: cudart.cudaStreamEndCapture(t.stream))]
    captured = [("cudaStreamBeginCapture", lambda: cudart.cudaStreamBeginCapture(t.stream, GLOBAL)), filled, ("cudaMalloc", lambda: cudart.cudaMalloc(16)),
                ("launch", lambda: launch(t.stream, axpy, grid, 256, y, x, 1.0, t.size)), ("cudaStreamEndCapture", lambda: cudart.cudaStreamEndCapture(t.stream))]
    return good, bad, captured


@LAB.part(points=3, hints=(
    "Where does a call say whether it failed: in what it returns, in the last error, or in both? Which of the two may be about some other call?",
    "How does your loop end at the first failure? And what has to happen both when it ends early and when it does not?",
    "The code is the first of a tuple that may be longer. Code 600 is no failure. One call of cudaGetLastError, after the loop, reads and clears."))
def first_failure(t, answer):
    """The calls made in order up to the first that fails, its name and code handed back, None where none fails, and a last error that is success."""
    good, bad, captured = _calls(t)
    asking = ("cudaStreamQuery", lambda: cudart.cudaStreamQuery(t.stream))

    def some(those, count):
        return [those[k] for k in t.random.permutation(len(those))[:count]]
    _row(t, answer, captured, 2)
    for fails in (0, int(t.random.integers(1, 4)), 4):
        _row(t, answer, [*some(good, fails), *some(bad, 1), *some(good, 2), *some(bad, 2)], fails)
    _row(t, answer, [good[0], bad[0], good[0]], 1)                       # one name, three times
    _row(t, answer, [*some(good, 2), bad[1], *some(good, 2), *some(bad, 1)], 2)     # refused by the driver
    for left in (False, True):
        _row(t, answer, some(good, 4), None, left)
        _row(t, answer, [*some(good, 2), bad[2]], 2, left)
    for row, fails in (([asking, *some(good, 3)], None), ([asking, good[2], bad[0], good[0]], 2)):
        busy(t, fill)                                                    # not ready: no failure
        _row(t, answer, row, fails)
    _row(t, answer, [], None, left=True)


def _row(t, answer, calls, fails, left=False):
    """One list, in which the call at position `fails` is the first to fail. left: a failure from before is still the last error."""
    made, after, names = [], [], [name for name, _ in calls]

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
            t.end_captures()                                             # where the calls began a capture; it is not the answer's to end
    t.what = f"With {t.size} floats and {f'the calls {_numbered(names, range(len(names)))}' if names else 'no calls at all'}" + "; cudaGetLastError still has an older failure" * left
    found = t.run(wrapped(answer, followed), [(name, noted(k, call)) for k, (name, call) in enumerate(calls)])
    order, asked = [position for position, _ in made], range(len(calls) if fails is None else fails + 1)
    stop = ", then none, because the last of these fails" if fails is not None else ""
    t.want(order == [*asked], f"made: {_numbered(names, asked)}{stop}", _numbered(names, order))
    if fails is None:
        t.want(found is None, "None, because none fails", _back(found))
    else:
        wanted = (names[fails], made[fails][1])
        fits = isinstance(found, (tuple, list)) and [*map(type, found)] == [str, cudart.cudaError_t]
        t.want(fits and tuple(found) == wanted, f"back come {wanted[0]!r} and {named(wanted[1])}", _back(found))
    t.want(not int(after[0]), "cudaGetLastError says 0 cudaSuccess afterwards", named(after[0]))


def _numbered(names, order):
    return ", ".join(f"{k + 1}. {names[k]}" for k in order) or "no call made"


def _back(found):
    several = found[:4] if isinstance(found, (tuple, list)) and found else [found]
    return ", ".join(named(one) if isinstance(one, cudart.cudaError_t) else shown(one, 60) for one in several)


# ---- part 2 --------------------------------------------------------------------------------------

@LAB.part(points=4, hints=(
    "Which lines of your function may raise, and on which way out of it is the capture still open?",
    "What has Python for a line that must run when another one raised, and how does the same exception then go on? Is every interrupt an Exception?",
    "Ending a lost capture is refused with 901. Is that code the reason, or does it hide it? Where the capture was not lost, the end hands over a graph that nobody gets."))
def guarded(t, answer):
    """The graph of what work queues; or the very exception that work raised, or that of a refused begin or end. In every case nothing is capturing afterwards."""
    work = Work(t)
    _sound(t, answer, work)
    for error in (OwnError("raised by the check"), OwnInterrupt("raised by the check, as an interrupt would be"), IndexError("raised by the check"), KeyboardInterrupt("raised by the check")):
        _wrong(t, answer, work, f"work raises {type(error).__name__}", error)
    _wrong(t, answer, work, "work calls cudaMalloc, and ok raises", _allocates)
    _wrong(t, answer, work, "work makes a call that is refused, and does not look at its code", lambda stream: cudart.cudaDeviceSynchronize(), ("end", INVALIDATED))
    _wrong(t, answer, work, "work forks to another stream and does not join it", _forks(t), ("end", UNJOINED))
    _wrong(t, answer, work, "the stream is the default stream, which cannot capture", None, ("begin", UNSUPPORTED))


def _sound(t, answer, work):
    """Nothing goes wrong: the graph."""
    work.calls.clear()
    before = t.fresh(work.y, work.x)
    calls = Calls(t)
    graph = calls.alive(calls.run(answer, t.stream, work.function()), "graph")
    work.captured()
    t.expect("after the capture and before any launch", "y", work.y, before[0])
    t.shape(graph, {"scale": "scale", "axpy": "axpy"}, [("scale", "axpy")])
    modes = [mode for _, _, mode in calls.of("cudaStreamBeginCapture")]
    t.want(set(modes) <= {int(GLOBAL)}, "a capture of mode Global", "another mode")
    within(t, graph, y=work.y, x=work.x)
    executable = t.executable(graph)
    for which in (1, 2):
        wanted = work.fresh()
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", work.y, wanted)


def _allocates(stream):
    """Refused, and work looks: its LabError is the reason, and not what the end says then."""
    ok(cudart.cudaFree(ok(cudart.cudaMalloc(64))))


def _forks(t):
    side, fork, z = t.new_stream(), t.event(), t.buffer()

    def forks(stream):
        ok(cudart.cudaEventRecord(fork, stream))
        ok(cudart.cudaStreamWaitEvent(side, fork, 0))
        ok(launch(side, fill, 1, 4, z, 1.0, 4))
    return forks


def _wrong(t, answer, work, what, more, refused=None):
    """work, and then more, which raises or is raised; or CUDA refuses something, refused = (what, code). Then all goes well once more."""
    left, came, still_open = [], [], []
    work.calls.clear()
    queue = work.function()

    def both(stream):
        queue(stream)
        try:
            if isinstance(more, BaseException):
                raise more
            more(stream)
        except BaseException as error:
            left.append(error)
            raise

    def followed(*given):
        try:
            came.append(f"nothing was raised, and {kind(answer(*given))} came back")
        except (Exception, OwnInterrupt, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and error not in left:
                raise                                                    # the learner's own
            came.append(error)
        finally:
            still_open.append(t.end_captures())
    calls = Calls(t)
    calls.run(wrapped(answer, followed), *((t.stream, both) if more else (0, queue)))
    found, count = _came(came[0]), len(calls.there["graph"]) if isinstance(came[0], BaseException) else 0
    t.want(not still_open[0], f"{what}: no capture is open afterwards", f"the stream is still capturing; and {found}")
    t.want(not count, f"{what}: a graph that nobody gets is destroyed", f"{count} graph{'s' * (count > 1)} left")
    if refused:
        which, code = refused
        t.want(more or not work.calls, f"{what}: work is not called", f"{len(work.calls)} call{'s' * (len(work.calls) > 1)} of work")
        t.want(isinstance(came[0], LabError) and came[0].code == code, f"{what}: the {which} is refused, and the LabError with {named(code)} comes", found)
    else:
        t.want(left, f"{what}: it is refused, as a capture of mode Global does", "it was let through")
        t.want(came[0] is left[0], f"{what}: that same exception goes on{_code(left[0])}", found)
    if more:
        work.captured()
    _sound(t, answer, work)


def _came(raised):
    return raised if isinstance(raised, str) else f"{type(raised).__name__} came{_code(raised)}"


def _code(raised):
    code = getattr(raised, "code", None)
    return f", with {named(code)}" if isinstance(code, cudart.cudaError_t) else ""
