"""The table of the comparison: which figures stand beside which, and how far apart they may be."""
from typing import NamedTuple

LAUNCH, UPDATE = 1.1, 1.2                          # how many times as long Python may take: to launch, and to update ten nodes
PYTHON, NODE_BY_NODE, CPP = "python", "python, node by node", "c++"


class Row(NamedTuple):
    """A line of the table: what was timed, in microseconds, and how many times as long Python may take (None: shown only)."""
    what: str
    python: float
    cpp: float
    limit: float | None = None

    @property
    def ratio(self):
        return self.python / self.cpp

    @property
    def missed(self):
        return self.limit is not None and not self.ratio <= self.limit

    def __str__(self):
        verdict = "" if self.limit is None else f"at most {self.limit:.2f}: {'MISSED' if self.missed else 'kept'}"
        return f"{self.what:<50} {self.python:>9.2f} {self.cpp:>9.2f} {self.ratio:>7.2f}   {verdict}".rstrip()


def rows(measurements):
    """The lines of the table, from the Measurements that have both sides."""
    for m in measurements:
        if m.experiment == "c++ launch":
            what = f"graph launch, {m.params['nodes']} node{'s' * (m.params['nodes'] > 1)}"
            yield _row(f"{what}, CPU time", m.cpu)
            yield _row(f"{what}, end to end", m.e2e, LAUNCH)
        elif m.experiment == "c++ ten updates":
            values = "changing" if m.params["values"] == "changing" else "same values"
            stages = {part: {side: m.stages[side][part] for side in m.stages} for part in ("prepare", "launch")}
            for side, way in ((PYTHON, "one call"), (NODE_BY_NODE, "node by node")):
                what, limit = f"ten updates, {values}, {way}", UPDATE if (side, values) == (PYTHON, "changing") else None
                yield _row(f"{what}, prepare", stages["prepare"], limit, side)
                yield _row(f"{what}, next launch", stages["launch"], None, side)
                yield _row(f"{what}, end to end", m.e2e, limit, side)


def _row(what, part, limit=None, side=PYTHON):
    return Row(what, part[side].median, part[CPP].median, limit)


def price_of_a_call(measurements):
    """Why the CPU time of a launch has no limit, as a sentence; "" without a launch."""
    first = next((m for m in measurements if m.experiment == "c++ launch"), None)
    if first is None:
        return ""
    more = first.cpu[PYTHON].median - first.cpu[CPP].median
    return f"The call itself costs Python about half a microsecond more (here {more:.2f} µs), so the CPU time of a launch has no limit."
