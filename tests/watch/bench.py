"""What a planted failure and a sound capture are, and how one is watched.

A case is a function over a Bench: it begins a capture on `t.s`, works, ends it, and is watched from outside. What a
planted one must lead to is the line marked `# guilty`: as w.guilty, or, where `found` says so, in w.left_out, w.unjoined or w.refused.
"""
import contextlib
import importlib.util
import inspect
import io
import sys
from dataclasses import dataclass

import numpy as np

from labkit import backend, cudart, kernels, launch, ok, recover, to_device, watch

GLOBAL, THREAD_LOCAL, RELAXED = cudart.cudaStreamCaptureMode
H2D, D2D = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
N = 64
PLANTED, SOUND = {}, {}
PATIENCE = 10  # seconds that a step in another thread may take


@dataclass
class Case:
    """by: "own", "threads", "cupy" or "torch". found: where watch must say it. word, code: the class and what CUDA answers."""
    run: object
    by: str
    word: str = ""
    code: object = None
    found: str = "guilty"
    newer: bool = False  # only from Python 3.12 on

    @property
    def name(self):
        return self.run.__name__

    @property
    def line(self):
        lines, first = inspect.getsourcelines(self.run)
        marked = [first + i for i, text in enumerate(lines) if "# guilty" in text]
        assert len(marked) == 1, f"{self.name} marks {len(marked)} lines"
        return marked[0]

    @property
    def missing(self):
        """Why it can't run here, or ""."""
        if self.newer and sys.version_info < (3, 12):
            return "Python 3.11 does not follow threads that were there before the block"
        if self.by in ("cupy", "torch") and (backend.name != "gpu" or importlib.util.find_spec(self.by) is None):
            return f"{self.by} needs a GPU" if backend.name != "gpu" else f"{self.by} is not installed"
        return ""


def planted(word, code, by="own", found="guilty", newer=False):
    def keep(function):
        assert function.__name__ not in PLANTED
        PLANTED[function.__name__] = Case(function, by, word, code, found, newer)
        return function
    return keep


def sound(function=None, by="own"):
    def keep(function):
        assert function.__name__ not in SOUND
        SOUND[function.__name__] = Case(function, by)
        return function
    return keep if function is None else keep(function)


class Bench:
    """s: the stream that captures. side, third: more streams. x, y: device arrays of N floats. event(): a new event."""

    def __init__(self, blocking=False):
        make = cudart.cudaStreamCreateWithFlags
        self.s, self.side, self.third = (ok(make(0 if blocking and i == 0 else cudart.cudaStreamNonBlocking)) for i in range(3))
        self.x, self.y = (to_device(np.ones(N, np.float32)) for _ in range(2))
        self.host = np.ones(N, np.float32)
        self.events, self.lost = [], []
        self.cudart, self.launch = cudart, launch

    def event(self):
        self.events.append(ok(cudart.cudaEventCreate()))
        return self.events[-1]

    def begin(self, mode=GLOBAL):
        ok(self.cudart.cudaStreamBeginCapture(self.s, mode))

    def end(self):
        """End the capture; whatever comes of it."""
        code, graph = self.cudart.cudaStreamEndCapture(self.s)
        if not int(code):
            ok(cudart.cudaGraphDestroy(graph))
        return code

    def work(self, stream=None):
        ok(self.launch(self.s if stream is None else stream, kernels.scale, 1, N, self.x, 2.0, N))

    def executable(self):
        """Something to launch: a graph of one kernel, made before the capture."""
        self.begin()
        self.work()
        graph = ok(cudart.cudaStreamEndCapture(self.s))
        made = ok(cudart.cudaGraphInstantiate(graph, 0))
        ok(cudart.cudaGraphDestroy(graph))
        return made

    def close(self):
        streams = [s for s in (self.s, self.side, self.third) if s not in self.lost]
        with contextlib.redirect_stdout(io.StringIO()):
            recover(*streams)
        cudart.cudaDeviceSynchronize()
        for stream in streams:
            cudart.cudaStreamDestroy(stream)
        for event in self.events:
            cudart.cudaEventDestroy(event)
        self.x.free(), self.y.free()
        cudart.cudaGetLastError()


def run(case, bench=Bench):
    """Watch a case: (the watch, what it printed)."""
    t = bench(blocking="blocking" in case.name and "nonblocking" not in case.name)
    stream, said = t.s, io.StringIO()
    if case.by in ("cupy", "torch"):
        from tests.watch import libraries
        stream = libraries.stream(case.by)
        t.s = stream
    try:
        prepare = getattr(case.run, "prepare", None)
        with contextlib.redirect_stdout(said):
            if prepare is not None:
                prepare(t)
            with watch(stream) as w:
                case.run(t)
    finally:
        if case.by not in ("cupy", "torch"):
            t.close()
    return w, said.getvalue()


def prepared(prepare):
    """What happens before the watched block."""
    def keep(function):
        function.prepare = prepare
        return function
    return keep


def wrong(case, w):
    """What is wrong with what watch found, as a sentence; "" where it is right."""
    told = {"guilty": [w.guilty] if w.guilty else [], "left_out": w.left_out, "unjoined": w.unjoined, "refused": w.refused}
    if w.trouble is not None:
        return f"inside watch: {type(w.trouble).__name__}: {w.trouble}"
    if not case.word:
        return f"accuses {told}" if any(told.values()) else "" if w.captures else "saw no capture"
    if [where for where in told if told[where]] != [case.found]:
        return f"expected {case.found}, got {told}"
    named = [(one.file, one.line) for one in told[case.found]]
    if set(named) != {(inspect.getsourcefile(case.run).rsplit("/", 1)[-1], case.line)}:
        return f"names {named}, not line {case.line}"
    code = w.ended if case.found == "unjoined" else getattr(told[case.found][0], "code", None)
    if case.code and code is not None and int(code) != case.code:
        return f"says {code!r}, not {case.code}"
    if case.code and code is None and case.by in ("own", "threads"):
        return f"says no code, not {case.code}"
    return ""
