"""Time what you wrote, and say where the figure comes from: measure().

    m = measure("launch cost", {"stream": one_by_one, "graph": replay}, setup=setup, stream=stream, n=1000)
    m.speedup("stream", "graph")      # 4.1: end to end, the graph takes a quarter of the time

The simulator has no clock. There each variant runs once, so that a mistake in it shows, and the
figures are those recorded on a GPU for exactly this code. Code you changed has no recording.
"""
import contextlib
import gc
import statistics
import time
import traceback
import types
from dataclasses import dataclass, field
from functools import partial

from labkit import recordings
from labkit.backend import backend, cudart
from labkit.errors import LabError, ok
from labkit.predict import number
from labkit.recordings import Provenance

NO_RECORDING = ("No recording for this code: it is not, to the letter, the code that was timed (comments count),\nor these parameters were not.\n"
                "The simulator has no clock, so there is no figure to show. To measure it, run it on a GPU;\n"
                "to see the recorded figure again, undo the change.")


class Figures(dict):
    """{variant: Stat}; a name that is not there raises a LabError that says why."""

    def __missing__(self, name):
        raise LabError(f"There is no figure for {name!r}.",
                       f"The variants with a figure are: {', '.join(self) or 'none, since nothing was measured here'}.",
                       "Check the name against the variants you passed." if self else "Print the measurement: it says why.")


@dataclass(frozen=True)
class Stat:
    """One duration in microseconds: the median of `count` calls, and the quartiles `low` and `high`."""
    median: float
    low: float
    high: float
    count: int

    def __str__(self):
        return f"{number(self.median)} µs"


@dataclass(frozen=True, repr=False)
class Measurement:
    """What measure() returned. cpu: until the call returned. e2e: until the GPU had finished. {variant: Stat}.

    `missing` is "" or, without a recording on the simulator, says why there are no figures.
    """
    experiment: str
    params: dict
    cpu: dict = field(default_factory=Figures)
    e2e: dict = field(default_factory=Figures)
    provenance: Provenance | None = None
    missing: str = ""

    def speedup(self, slow, fast, what="e2e"):
        """How many times longer `slow` takes than `fast` (a ratio of medians of one run)."""
        if self.missing:
            raise LabError(f"There is no speedup to compute for {self.experiment!r}.", self.missing, "Run it on a GPU, or undo the change.")
        return getattr(self, what)[slow].median / getattr(self, what)[fast].median

    def _rows(self):
        yield "", "CPU time", "end to end", "quartiles, end to end"
        for name, e2e in self.e2e.items():
            yield name, f"{self.cpu[name]}", f"{e2e}", f"{number(e2e.low)} to {number(e2e.high)} µs, {e2e.count} calls"

    def __repr__(self):
        head = ", ".join([self.experiment, *(f"{k} = {v}" for k, v in self.params.items())])
        if self.missing:
            return f"{head}\n{self.missing}"
        rows = list(self._rows())
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in rows]
        return "\n".join([head, *lines, str(self.provenance)])

    def _repr_mimebundle_(self, include=None, exclude=None):
        """The table as text, and for the tests as data."""
        figures = {what: {k: vars(v) for k, v in getattr(self, what).items()} for what in ("cpu", "e2e")}
        return {"text/plain": repr(self), "application/vnd.labkit+json":
                {"measurement": self.experiment, "params": self.params, "provenance": str(self.provenance or ""), **figures}}


def measure(experiment, variants, *, setup=None, stream=None, repeat=30, warmup=3, **params):
    """Time the variants ({name: function}) in turns, after a warm-up: Measurement, in microseconds.

    Each is called fn(**params), or fn(made, **params) with made = setup(**params), made once. The
    clock stops first when the call returns (cpu), then when `stream`, or without one the device,
    has finished (e2e). Garbage collection waits meanwhile. Raises LabError for a variant that is no
    `def`, one that raises or returns an error code, and one that leaves a capture open.
    Stands for: CUDA C++ Best Practices Guide, Timing.
    """
    params, roles = recordings.plain(params), roles_of(experiment, variants, setup)
    if not isinstance(repeat, int) or repeat < 1:
        raise LabError(f"measure() got repeat = {repeat!r}.", "It is how often each variant is timed.", "Use a whole number, such as 30.")
    key = recordings.digest_if_needed(roles, f"waits for {'the device' if stream is None else 'a stream'}")
    with blame("setup", experiment):
        made = [setup(**params)] if setup else []
    calls = {name: partial(fn, *made, **params) for name, fn in variants.items()}
    sync = partial(cudart.cudaStreamSynchronize, stream) if stream is not None else cudart.cudaDeviceSynchronize
    for _ in range(warmup if backend.name == "gpu" else 1):
        for name, call in calls.items():
            with blame(name, experiment):
                try_out(call, stream, sync)
    if backend.name != "gpu":
        entry = recordings.find("measurements", experiment, params, key)
        if entry is None:
            return Measurement(experiment, params, missing=NO_RECORDING)
        cpu, e2e = ({name: Stat(**entry[what][name]) for name in variants} for what in ("cpu", "e2e"))
        return Measurement(experiment, params, Figures(cpu), Figures(e2e), Provenance(**entry["provenance"]))
    times = {name: ([], []) for name in calls}
    with _no_collection():
        for _ in range(repeat):
            for name, call in calls.items():
                with blame(name, experiment):
                    for kept, spent in zip(times[name], _time(call, sync)):
                        kept.append(spent)
    cpu, e2e = (Figures({name: _stat(times[name][k]) for name in times}) for k in (0, 1))
    provenance = recordings.here()
    recordings.save_if_asked("measurements", experiment, params, key, provenance,
                             cpu={name: vars(s) for name, s in cpu.items()}, e2e={name: vars(s) for name, s in e2e.items()})
    return Measurement(experiment, params, cpu, e2e, provenance)


def _time(call, sync):
    """(ns until the call returned, ns until the GPU had finished)"""
    clock = time.perf_counter_ns
    begin = clock()
    call()
    returned = clock()
    result = sync()
    finished = clock()
    ok(result)
    return returned - begin, finished - begin


def try_out(call, stream, sync):
    """One call that is not timed, with the checks that timing would suffer from."""
    result = call()
    if isinstance(result, tuple) and result and isinstance(result[0], cudart.cudaError_t):
        ok(result)
    result = sync() if stream is None or not int(ok(cudart.cudaStreamIsCapturing(stream))) else (900,)
    if int(result[0]) == 900:
        raise LabError("A capture was left open.", "measure() waits for the work to finish, and a capture runs nothing.",
                       "End the capture inside the function, or make the graph in setup. recover() closes what is open now.")
    ok(result)


def _stat(ns):
    low, median, high = statistics.quantiles(ns, n=4, method="inclusive") if len(ns) > 1 else ns * 3
    return Stat(*(round(t / 1000, 3) for t in (median, low, high)), len(ns))


def roles_of(experiment, variants, setup):
    """{role: function} of what is timed, or LabError where something can't have a recording."""
    roles = dict(variants) if isinstance(variants, dict) else {}
    if not roles or not isinstance(experiment, str) or not recordings.slug(experiment):
        raise LabError("There is nothing to measure.", "It takes a name for the experiment and {name: function, ...}.",
                       'Write for example measure("launch cost", {"stream": one_by_one, "graph": replay}).')
    roles.update({"setup": setup} if setup else {})
    for role, fn in roles.items():
        if not isinstance(fn, types.FunctionType) or fn.__name__ == "<lambda>":
            kind = "a lambda" if isinstance(fn, types.FunctionType) else f"a {type(fn).__name__}"
            raise LabError(f"{role!r} is {kind}.", "A recording is found by the text of a function, and this has none of its own.",
                           "Write a small `def` in the cell and pass its name.")
    return roles


@contextlib.contextmanager
def blame(name, experiment):
    """Errors of the learner's function come out as LabErrors that name it."""
    try:
        yield
    except LabError as error:
        raise LabError(f"In {name!r} of {experiment!r}: {error.did}", error.means, error.try_, error.code) from error
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1].line
        raise LabError(f"In {name!r} of {experiment!r}: {type(error).__name__}: {error}",
                       f"The function stopped at `{line}`; nothing was timed.", "Call the function by itself in a cell until it works. If it stopped inside a capture, recover() ends that.") from error


@contextlib.contextmanager
def _no_collection():
    """No garbage collection meanwhile: it would land on one variant. Restored whatever happens."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
