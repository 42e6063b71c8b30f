"""A clock inside the GPU: kernels that stamp when they started and ended, and timeline().

    def one_by_one(stamps, kernels):
        for i in range(kernels):
            ok(launch(stream, stamp, 1, 1, stamps, i))

    timeline("gaps", {"stream": one_by_one, "graph": replayed}).gap("graph")      # 0.97 microseconds
"""
import statistics
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from labkit import recordings
from labkit.arrays import empty, to_host
from labkit.backend import backend, cudart
from labkit.errors import LabError, ok
from labkit.gpu_lock import gpu_to_yourself
from labkit.kernels import Kernel
from labkit.measure import NO_RECORDING, Figures, blame, roles_of, try_out
from labkit.predict import number
from labkit.recordings import Provenance


@dataclass(frozen=True, repr=False)
class Timeline:
    """When each kernel of a variant started and ended: {variant: [ns since its first start]}."""
    experiment: str
    params: dict
    starts: dict = field(default_factory=Figures)
    ends: dict = field(default_factory=Figures)
    provenance: Provenance | None = None
    missing: str = ""

    def gap(self, name):
        """Median time from one kernel's start to the next one's, in microseconds."""
        starts = sorted(self.starts[name])
        return statistics.median(b - a for a, b in zip(starts, starts[1:])) / 1000

    def total(self, name):
        """From the first start to the last end, in microseconds."""
        return max(self.ends[name]) / 1000

    def __repr__(self):
        if self.missing:
            return f"{self.experiment}\n{self.missing}"
        lines = [f"{name}: {len(self.starts[name])} kernels, one every {number(self.gap(name))} µs, {number(self.total(name))} µs in all"
                 for name in self.starts]
        return "\n".join([self.experiment, *lines, str(self.provenance)])

    def _repr_mimebundle_(self, include=None, exclude=None):
        """The lines as text, and for the tests as data."""
        return {"text/plain": repr(self), "application/vnd.labkit+json":
                {"timeline": self.experiment, "params": self.params, "provenance": str(self.provenance or ""),
                 "starts": dict(self.starts), "ends": dict(self.ends)}}


# One thread writes when it starts and when it is done to out[2*i] and out[2*i+1], in ns of the GPU's
# own clock. There is no twin, on purpose: the simulator has no clock.
stamp = Kernel(r"""
extern "C" __global__ void stamp(unsigned long long* out, int i) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now) :: "memory");
    out[2 * i] = now;
    __threadfence();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now) :: "memory");
    out[2 * i + 1] = now;
}
""", "stamp", ["unsigned long long*", "int"])


def timeline(experiment, variants, *, setup=None, kernels=20, **params):
    """When each of `kernels` stamp kernels ran, for each variant: Timeline, in nanoseconds.

    A variant gets the buffer to stamp and the number of kernels: fn(stamps, kernels, **params) with
    launch(stream, stamp, 1, 1, stamps, i) for each i. With setup, made = setup(stamps, kernels, **params)
    and fn(made, **params). Each runs five times, while others who measure wait (gpu_to_yourself); the run of
    median length is kept. Where a variant stamps twice, as when it launches a graph again, the last stamps
    count. Raises LabError as measure() does, and when a kernel left no stamp. On the simulator nothing runs.
    """
    if not isinstance(kernels, int) or kernels < 2:
        raise LabError(f"timeline() got kernels = {kernels!r}.", "A gap needs at least two kernels.", "Use a whole number, such as 20.")
    params, roles = recordings.plain(params), roles_of(experiment, variants, setup)
    key, named = recordings.digest_if_needed(roles), {"kernels": kernels, **params}
    if backend.name != "gpu":
        entry = recordings.find("timelines", experiment, named, key)
        if entry is None:
            return Timeline(experiment, named, missing=NO_RECORDING)
        return Timeline(experiment, named, Figures({name: entry["starts"][name] for name in variants}),
                        Figures({name: entry["ends"][name] for name in variants}), Provenance(**entry["provenance"]))
    stamps = empty(2 * kernels, np.uint64)
    with blame("setup", experiment):
        made = [setup(stamps, kernels, **params)] if setup else [stamps, kernels]
    runs = {name: [] for name in variants}
    with gpu_to_yourself(experiment):
        for name, fn in list(variants.items()) * 5:
            with blame(name, experiment):
                ok(cudart.cudaMemset(stamps.ptr, 0, stamps.nbytes))
                ok(cudart.cudaDeviceSynchronize())      # a non-blocking stream does not wait for the memset
                try_out(partial(fn, *made, **params), None, cudart.cudaDeviceSynchronize)
                runs[name].append(_stamps(to_host(stamps)))
    stamps.free()       # not after an error: a capture may be open, and a free would break it
    kept = {name: sorted(found, key=lambda run: max(run[1]))[2] for name, found in runs.items()}
    starts, ends = (Figures({name: run[k] for name, run in kept.items()}) for k in (0, 1))
    provenance = recordings.here()
    recordings.save_if_asked("timelines", experiment, named, key, provenance, starts=starts, ends=ends)
    return Timeline(experiment, named, starts, ends, provenance)


def _stamps(values):
    """[starts], [ends] in ns since the first start, or LabError where a kernel left no stamp."""
    lost = sorted({int(k) // 2 for k in np.flatnonzero(values == 0)})
    if lost:
        raise LabError(f"{len(lost)} of {values.size // 2} kernels left no stamp, the first of them number {lost[0]}.",
                       "Each i from 0 to kernels - 1 needs one launch of `stamp` that really runs.",
                       "Check the loop, and that the graph is launched and not only captured.")
    first = int(values[0::2].min())
    return [int(v) - first for v in values[0::2]], [int(v) - first for v in values[1::2]]
