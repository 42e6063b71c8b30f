"""Watch the memory of graphs and pools from step to step: memory_log().

    log = memory_log(pool=pool)
    log("before")
    ok(cudart.cudaGraphLaunch(executable, stream))
    log("after the launch")["graph"].reserved     # 33554432: graph memory comes in steps of 32 MiB
    log                                           # a table of all samples, in MiB
    draw.memory(log)                              # and as a picture

The counters are CUDA's own. They count what is mapped for graphs and pools, not what cudaMalloc took, and
graph memory is counted for the whole device: that of every graph of this process.
"""
import contextlib
from dataclasses import dataclass
from types import MappingProxyType

from labkit import recordings
from labkit.backend import backend, cudart
from labkit.errors import LabError, ok
from labkit.predict import number

MIB = 2 ** 20
COUNTED = "counted by the simulator, in the steps of an H200"


@dataclass(frozen=True)
class Counters:
    """Bytes. used: in allocations. reserved: mapped for them and kept. used_high, reserved_high: the most since the last reset.

    threshold: of a pool, what it keeps at a wait although it is free; None for graph memory, which keeps all until a trim.
    """
    used: int
    used_high: int
    reserved: int
    reserved_high: int
    threshold: int | None = None


@dataclass(frozen=True, repr=False)
class Sample:
    """The counters at one moment: sample["graph"], sample["pool"] are Counters; sample.label says when."""
    label: str
    counters: MappingProxyType

    def __getitem__(self, name):
        if name not in self.counters:
            raise LabError(f"This sample has no {name!r:.40}.", f"It has: {', '.join(self.counters)}.",
                           "Name a pool when you make the log: memory_log(pool=pool).")
        return self.counters[name]

    def __repr__(self):
        parts = (f"{title(name)} {mib(c.used)} of {mib(c.reserved)} MiB" for name, c in self.counters.items())
        return f"{words(self.label)}: {', '.join(parts)} (used of reserved)"


_BY_MEMORY_LOG = object()


class MemoryLog:
    """What memory_log() made. log(label) reads all counters now; log.samples holds what was read, in order."""

    def __init__(self, pools, device=0, provenance="", made_by=None):
        if made_by is not _BY_MEMORY_LOG:
            raise LabError("A MemoryLog was made by hand.", "Its samples are what CUDA counted, and who counted them and when.",
                           "Write memory_log(), or memory_log(pool=pool) for a pool beside the graph memory.")
        self._pools, self._device, self._provenance, self._samples = pools, device, provenance, []

    def __call__(self, label):
        """Read all counters now, keep the Sample and return it. label: a few words, as they are to stand in the picture.

        Waits for nothing: what is queued counts as CUDA counts it. May stand in a capture, which stays as it was: CUDA refuses
        to read a pool there (900) and the capture would be lost, so this thread's capture mode is Relaxed while it reads.
        Raises LabError for a label that is no text, and for a pool that was destroyed; then nothing is kept.
        Stands for: CUDA Runtime API, cudaDeviceGetGraphMemAttribute, cudaMemPoolGetAttribute, cudaThreadExchangeStreamCaptureMode.
        """
        if not isinstance(label, str) or not label.strip():
            raise LabError(f"The log was asked for a sample with the label {label!r:.40}.", "A label says in a few words when it was taken.",
                           'Write for example log("after the launch").')
        with _relaxed():
            counters = {"graph": _graph_memory(self._device), **{name: _pool(name, pool) for name, pool in self._pools.items()}}
        sample = Sample(label, MappingProxyType(counters))
        self._samples.append(sample)
        return sample

    @property
    def names(self):
        """"graph", and the names of the pools, as samples know them."""
        return ("graph", *self._pools)

    @property
    def samples(self):
        """All samples so far, a tuple."""
        return tuple(self._samples)

    @property
    def provenance(self):
        """Where the counters were read, and when."""
        return self._provenance

    def __repr__(self):
        if not self._samples:
            return f"memory_log of {', '.join(map(title, self.names))}: no sample yet; log(\"before\") takes one"
        columns = [("", "MiB", *(words(s.label) for s in self._samples))]
        for name in self.names:
            cells = zip(*(_cells(s[name]) for s in self._samples))
            columns += [(top, what, *column) for top, what, column in zip((title(name), "", ""), ("used (high)", "reserved (high)", "threshold"), cells)]
        widths = [max(map(len, column)) for column in columns]
        lines = ["   ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))]) for row in zip(*columns)]
        return "\n".join([*(line.rstrip() for line in lines), self.provenance])

    def _repr_mimebundle_(self, include=None, exclude=None):
        """The table as text, and for the tests as data."""
        data = {"memory_log": list(self.names), "provenance": self.provenance,
                "samples": [{"label": s.label, "counters": {name: dict(vars(c)) for name, c in s.counters.items()}} for s in self._samples]}
        return {"text/plain": repr(self), "application/vnd.labkit+json": data}


def memory_log(*unnamed, **pools):
    """A log of graph memory, and of the pools given by name: MemoryLog. Takes no sample yet.

    pools: cudaMemPool_t handles. Raises LabError for what is no pool, for one that CUDA does not know, and for the
    name "graph", which is that of the graph memory. Graph memory is that of the current device.
    Stands for: CUDA Runtime API, cudaDeviceGetGraphMemAttribute, cudaMemPoolGetAttribute.
    """
    if unnamed:
        raise LabError(f"memory_log() got {unnamed[0]!r:.60} without a name.", "Each pool needs a name for the table and the picture.",
                       "Write memory_log(pool=pool); graph memory is there without asking.")
    for name, pool in pools.items():
        if name == "graph" or not name.strip():
            raise LabError(f"memory_log() got a pool named {name!r}.", 'A name stands over the counters, and "graph" stands for the graph memory.',
                           "Give the pool another name, such as memory_log(pool=pool).")
        if not isinstance(pool, cudart.cudaMemPool_t) or not int(pool):
            raise LabError(f"memory_log() got {pool!r:.60} as {name}.", "A pool is a cudaMemPool_t, as cudaMemPoolCreate returns it beside its code.",
                           "Write for example memory_log(pool=ok(cudart.cudaDeviceGetDefaultMemPool(0))).")
    with _relaxed():
        for name, pool in pools.items():
            _pool(name, pool)
    where = str(recordings.here()) if backend.name == "gpu" else COUNTED
    return MemoryLog(dict(pools), ok(cudart.cudaGetDevice()), where, _BY_MEMORY_LOG)


# ---- reading ------------------------------------------------------------------------------------

@contextlib.contextmanager
def _relaxed():
    """This thread may meanwhile make calls that a capture refuses, and afterwards no more than before."""
    relaxed = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
    before = ok(cudart.cudaThreadExchangeStreamCaptureMode(relaxed))
    try:
        yield
    finally:
        ok(cudart.cudaThreadExchangeStreamCaptureMode(before))


_FOUR = ("UsedMemCurrent", "UsedMemHigh", "ReservedMemCurrent", "ReservedMemHigh")


def _graph_memory(device):
    kinds = cudart.cudaGraphMemAttributeType
    return Counters(*(int(ok(cudart.cudaDeviceGetGraphMemAttribute(device, getattr(kinds, f"cudaGraphMemAttr{which}")))) for which in _FOUR))


def _pool(name, pool):
    kinds, found = cudart.cudaMemPoolAttr, []
    for which in (*_FOUR, "ReleaseThreshold"):
        code, value = cudart.cudaMemPoolGetAttribute(pool, getattr(kinds, f"cudaMemPoolAttr{which}"))
        if int(code):
            raise LabError(f"The counters of the pool {name!r} can't be read.", "CUDA knows no such pool: it was destroyed, or never made.",
                           "Make a new log, with pools that are there.", code)
        found.append(int(value))
    return Counters(*found)


# ---- words --------------------------------------------------------------------------------------

def title(name):
    """How a column or a panel is headed."""
    return "graph memory" if name == "graph" else name


def words(label):
    """A label on one line."""
    return " ".join(label.split())


def mib(size):
    """Bytes as a number of MiB: 32, 0.00391, and "no limit" for what no GPU has."""
    return "no limit" if size >= 2 ** 60 else number(size / MIB)


def _cells(c):
    both = [f"{mib(now)} ({mib(high)})" for now, high in ((c.used, c.used_high), (c.reserved, c.reserved_high))]
    return both if c.threshold is None else [*both, mib(c.threshold)]

