"""What measure() returns: durations with their spread, and where they were measured.

    m.e2e["graph"].median                 # microseconds, until the GPU had finished
    m.stages["update"]["prepare"]         # CPU time of one stage, where the variant marks stages
    m.speedup("stream", "graph")          # 4.1

`recorded` reads a measurement that something else took, such as a C++ program.
"""
import statistics
from dataclasses import dataclass, field

from labkit import recordings
from labkit.errors import LabError
from labkit.predict import number
from labkit.recordings import Provenance

VARIES = "varies: "                       # how a varied parameter reads among the others


class _Kept(dict):
    """Figures stay as they were measured."""

    def _refuse(self, *names, **more):
        raise LabError(f"{', '.join(map(repr, [*names[:1], *more]))} was to get another figure.", "What was measured stays as it is; a figure made up later has no place and no date.",
                       "Measure again, or keep your own numbers in a dict of your own.")

    __setitem__ = update = setdefault = _refuse


class Figures(_Kept):
    """{variant: Stat}; a name that is not there raises a LabError that says why."""

    def __missing__(self, name):
        raise LabError(f"There is no figure for {name!r}.",
                       f"The variants with a figure are: {', '.join(self) or 'none, since nothing was measured here'}.",
                       "Check the name against the variants you passed." if self else "Print the measurement: it says why.")


class Stages(_Kept):
    """{stage: Stat} of one variant; {} where it marks none."""

    def __missing__(self, name):
        raise LabError(f"There is no stage {name!r}.", f"The stages of this variant are: {', '.join(self) or 'none'}.",
                       'A variant marks the end of a stage with yield "its name".')


@dataclass(frozen=True)
class Stat:
    """One duration in microseconds: the median of `count` calls, and the quartiles `low` and `high`."""
    median: float
    low: float
    high: float
    count: int

    def __str__(self):
        return f"{number(self.median)} µs"


def stat(ns):
    """The Stat of durations in nanoseconds."""
    low, median, high = statistics.quantiles(ns, n=4, method="inclusive") if len(ns) > 1 else [*ns] * 3
    return Stat(*(round(t / 1000, 3) for t in (median, low, high)), len(ns))


@dataclass(frozen=True, repr=False)
class Measurement:
    """What measure() returned. cpu: until the call returned. e2e: until the GPU had finished. {variant: Stat}.

    stages: {variant: {stage: Stat}}, CPU time. vary: {parameter: its values in turn}; among params it is a text.
    `missing` is "" or, without a recording on the simulator, says why there are no figures.
    """
    experiment: str
    params: dict
    cpu: dict = field(default_factory=Figures)
    e2e: dict = field(default_factory=Figures)
    provenance: Provenance | None = None
    missing: str = ""
    stages: dict = field(default_factory=Figures)
    vary: dict = field(default_factory=dict)

    def speedup(self, slow, fast, what="e2e"):
        """How many times longer `slow` takes than `fast` (a ratio of medians of one run)."""
        if self.missing:
            raise LabError(f"There is no speedup to compute for {self.experiment!r}.", self.missing, "Run it on a GPU, or undo the change.")
        return getattr(self, what)[slow].median / getattr(self, what)[fast].median

    def _rows(self):
        marked = list(dict.fromkeys(stage for stages in self.stages.values() for stage in stages))
        yield "", *marked, "CPU time", "end to end", "quartiles, end to end"
        for name, e2e in self.e2e.items():
            parts = [str(self.stages.get(name, {}).get(stage, "–")) for stage in marked]
            yield name, *parts, f"{self.cpu[name]}", f"{e2e}", f"{number(e2e.low)} to {number(e2e.high)} µs, {e2e.count} calls"

    def __repr__(self):
        head = f"{self.experiment}, {_listed(self.params)}" if self.params else self.experiment
        if self.missing:
            return f"{head}\n{self.missing}"
        rows = list(self._rows())
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:-1], widths[1:])), row[-1]]).rstrip() for row in rows]
        return "\n".join([head, *lines, str(self.provenance)])

    def _repr_mimebundle_(self, include=None, exclude=None):
        """The table as text, and for the tests as data."""
        data = {"measurement": self.experiment, "params": self.params, "provenance": str(self.provenance or ""),
                **{what: {k: vars(v) for k, v in getattr(self, what).items()} for what in ("cpu", "e2e")}}
        if any(self.stages.values()):
            data["stages"] = {name: {k: vars(v) for k, v in stages.items()} for name, stages in self.stages.items()}
        if self.vary:
            data["vary"] = self.vary
        return {"text/plain": repr(self), "application/vnd.labkit+json": data}


def _setting(name, value):
    """n = 3, or for a varied parameter, shortened: batch varies: 3 8 1 5 ..."""
    if not isinstance(value, str) or not value.startswith(VARIES):
        return f"{name} = {value}"
    values = value.split()
    return f"{name} {' '.join(values[:9])}{' ...' if len(values) > 9 else ''}"


# ---- to and from a recording ---------------------------------------------------------------------

def as_entry(cpu, e2e, stages):
    """The figures of {variant: Stat}, {variant: Stat}, {variant: {stage: Stat}} as a recording holds them: stages in their order, as a list."""
    out = {what: {name: vars(stat) for name, stat in found.items()} for what, found in (("cpu", cpu), ("e2e", e2e))}
    if any(stages.values()):
        out["stages"] = {name: [{"stage": stage, **vars(stat)} for stage, stat in found.items()] for name, found in stages.items()}
    return out


def from_entry(experiment, params, entry, variants=None, vary=None):
    """The Measurement that a recording holds, its variants in the order of `variants`."""
    names = list(variants or entry["e2e"])
    cpu, e2e = (Figures({name: Stat(**entry[what][name]) for name in names}) for what in ("cpu", "e2e"))
    parts = entry.get("stages", {})
    stages = Figures({name: Stages((kept["stage"], Stat(**{key: value for key, value in kept.items() if key != "stage"})) for kept in parts.get(name, []))
                      for name in names})
    return Measurement(experiment, params, cpu, e2e, Provenance(**entry["provenance"]), "", stages, vary or {})


def recorded(experiment, **params):
    """The newest recorded Measurement of an experiment with exactly these parameters, whatever code it timed.

    For figures that another program took, such as those of tools/baseline in C++. Its provenance says "recorded".
    Raises LabError where there is none, and says which parameters there are.
    """
    params = recordings.plain(params)
    known = recordings.entries("measurements", experiment)
    found = [entry for entry in known if recordings.same(entry["params"], params)]
    if not found:
        asked = f" with {_listed(params)}" if params else ""
        each = "; ".join(dict.fromkeys(_listed(entry["params"]) for entry in known))
        raise LabError(f"There is no recorded {experiment!r}{asked}.",
                       f"It was recorded with {each}." if known else f"Recorded are: {', '.join(recordings.experiments('measurements')) or 'none'}.",
                       "Ask for one of these.")
    newest = max(found, key=lambda entry: entry["provenance"]["date"])
    return from_entry(experiment, newest["params"], newest)


def _listed(params):
    return ", ".join(_setting(name, value) for name, value in params.items()) or "no parameters"
