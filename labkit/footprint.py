"""What an executable graph keeps for itself: footprint().

    f = footprint("one or eight", {"one": make, "one per size": make_eight}, setup=capture, kernels=10)
    f.device["one"]                       # 131072.0 bytes of device memory
    f.host["one"]                         # and of this process' own memory

CUDA does not say what an executable takes, so it is read from what is left when many are made. The driver
takes device memory in large steps, keeps it when an executable is destroyed and gives it to the next one:
nothing shows until that is used up. So executables are made until the free memory falls, and again until
it falls once more, and what went between two falls is divided by how many were made between them.
"""
import os
from dataclasses import dataclass, field
from functools import partial

from labkit import recordings
from labkit.backend import backend, cudart
from labkit.errors import LabError, ok
from labkit.gpu_lock import gpu_to_yourself
from labkit.measure import NO_RECORDING, Figures, blame, roles_of
from labkit.recordings import Provenance

MOST = 8192                               # executables of one kind, before it gives up


@dataclass(frozen=True, repr=False)
class Footprint:
    """What footprint() returned, bytes for what one call makes. device: of the GPU's memory. host: of this process, or None.

    count: between the two falls that were read lay at least so many, so a figure is right to within about 1 / count of itself.
    `missing` is "" or, without a recording on the simulator, says why there are no figures.
    """
    experiment: str
    params: dict
    device: dict = field(default_factory=Figures)
    host: dict = field(default_factory=Figures)
    count: int = 0
    provenance: Provenance | None = None
    missing: str = ""

    def __repr__(self):
        head = ", ".join([self.experiment, *(f"{k} = {v}" for k, v in self.params.items())])
        if self.missing:
            return f"{head}\n{self.missing}"
        rows = [("", "device memory", "host memory"), *((name, kib(size), kib(self.host[name])) for name, size in self.device.items())]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join([head, *(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows), str(self.provenance)])

    def _repr_mimebundle_(self, include=None, exclude=None):
        """The table as text, and for the tests as data."""
        return {"text/plain": repr(self), "application/vnd.labkit+json":
                {"footprint": self.experiment, "params": self.params, "provenance": str(self.provenance or ""), "count": self.count,
                 "device": dict(self.device), "host": dict(self.host)}}


def kib(size):
    """A size in bytes as people write it: 128 KiB."""
    return "–" if size is None else f"{size / 1024:,.0f} KiB" if size >= 10240 else f"{size / 1024:.1f} KiB"


def footprint(experiment, makers, *, setup=None, stream=None, count=64, **params):
    """The memory that what each of the makers ({name: function}) makes keeps for itself: Footprint, in bytes.

    Each is called make(**params), or make(made, **params) with made = setup(**params), and returns an executable,
    or a tuple or list of executables that count as one. With `stream` each is uploaded too. All are destroyed in
    the end. Larger counts are more exact: at least `count` are made. Free memory belongs to the whole GPU, so
    other programs that allocate meanwhile disturb it; whoever measures waits (gpu_to_yourself). Raises LabError
    as measure() does, for a maker that returns something else, and where the free memory never falls. On the
    simulator two of each are made.
    Stands for: CUDA Runtime API, cudaMemGetInfo, cudaGraphInstantiate, cudaGraphUpload.
    """
    params, roles = recordings.plain(params), roles_of(experiment, makers, setup)
    if not isinstance(count, int) or not 1 <= count <= MOST // 2:
        raise LabError(f"footprint() got count = {count!r:.40}.", "It is how many of each are made, at least.",
                       f"Use a whole number from 1 to {MOST // 2}, such as 64.")
    key = recordings.digest_if_needed(roles, "" if stream is None else "uploads")
    with blame("setup", experiment):
        made = [setup(**params)] if setup else []
    calls = {name: partial(fn, *made, **params) for name, fn in makers.items()}
    if backend.name != "gpu":
        for name, make in calls.items():
            with blame(name, experiment):
                _made(lambda keep: [keep(make()) for _ in range(2)], stream)
        entry = recordings.find("footprints", experiment, params, key)
        if entry is None:
            return Footprint(experiment, params, missing=NO_RECORDING)
        device, host = (Figures({name: entry[what][name] for name in makers}) for what in ("device", "host"))
        return Footprint(experiment, params, device, host, entry["count"], Provenance(**entry["provenance"]))
    found = {}
    with gpu_to_yourself(experiment):
        for name, make in calls.items():
            with blame(name, experiment):
                found[name] = _made(lambda keep: _between_falls(make, keep, count), stream)
    device, host = (Figures({name: sizes[k] for name, sizes in found.items()}) for k in (0, 1))
    provenance = recordings.here()
    recordings.save_if_asked("footprints", experiment, params, key, provenance, device=device, host=host, count=count)
    return Footprint(experiment, params, device, host, count, provenance)


def _between_falls(make, keep, count):
    """Make until the free device memory fell, `count` more, and on until it falls again: bytes each, of (the device, the host)."""
    first, free = None, _free()
    for number in range(MOST):
        keep(make())
        before, free = free, _free()
        if free >= before:
            continue
        now = number, free, _resident()
        if first is None:
            first = now
        elif number - first[0] >= count:
            each = [(b - a) / (now[0] - first[0]) if a is not None else None for a, b in ((now[1], first[1]), (first[2], now[2]))]
            return [None if size is None else round(size, 1) for size in each]
    raise LabError(f"{MOST} were made, and the free device memory fell {'once' if first else 'not at all'}.",
                   "They are too small to show, or memory that was freed before serves them all.",
                   "Restart the kernel and measure again; if it stays so, let the function make several at a time and return them in a list.")


def _free():
    """Free bytes of device memory, when the work so far is done."""
    ok(cudart.cudaDeviceSynchronize())
    return ok(cudart.cudaMemGetInfo())[0]


def _resident():
    """Bytes of physical memory that this process holds, or None where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _made(work, stream):
    """work(keep), where keep() takes what a maker returned; whatever happens, all of that is destroyed afterwards."""
    kept = {}

    def keep(found):
        executables = found if isinstance(found, (tuple, list)) else [found]
        if not executables or not all(isinstance(each, cudart.cudaGraphExec_t) and int(each) for each in executables):
            raise LabError(f"It returned {found!r:.60}.", "footprint() counts executables, and destroys them in the end.",
                           "Return the executable itself, unpacked with ok(...), or a list of executables.")
        for executable in executables:
            if int(executable) in kept:
                raise LabError("It returned an executable that it had returned before.", "Nothing new was made, so nothing can be counted.",
                               "Call cudaGraphInstantiate in this function, not in setup.")
            kept[int(executable)] = executable
            if stream is not None:
                ok(cudart.cudaGraphUpload(executable, stream))
    try:
        out = work(keep)
        ok(cudart.cudaDeviceSynchronize())
    except BaseException:
        for executable in kept.values():
            cudart.cudaGraphExecDestroy(executable)         # its code would hide what went wrong
        raise
    for executable in kept.values():
        ok(cudart.cudaGraphExecDestroy(executable))
    return out
