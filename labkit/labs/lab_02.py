"""02: what is in a graph, and what is not."""
import numpy as np

from labkit import kernels
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import launch
from labkit.labs.calls import Calls, shown
from labkit.labs.caution import BUSY_MS
from labkit.labs.judging import Lab
from labkit.labs.kernels import occupy

LAB = Lab("02_see_what_ran", "See what ran", lesson="02", minutes=5)
H2D = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
D2D = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice


class _Work:
    """What a work function of the check may queue: each method is one step, steps(...) makes a work function of some."""

    def __init__(self, t):
        self.t, self.y, self.x = t, t.buffer(), t.buffer()
        self.host, self.exchanged, self.elsewhere = np.full(t.size, 50, np.float32), np.zeros(2, np.float32), t.new_stream()
        for kernel in (kernels.axpy, kernels.scale, occupy):
            _ = kernel.func                                # loaded now, and not in the middle of a capture

    def memset(self, stream):
        ok(cudart.cudaMemsetAsync(self.y.ptr, 0, self.y.nbytes, stream))

    def kernel(self, stream):
        ok(launch(stream, kernels.axpy, -(-self.t.size // 256), 256, self.y, self.x, 2.0, self.t.size))

    def copy(self, stream):
        ok(cudart.cudaMemcpyAsync(self.y.ptr, self.x.ptr, self.y.nbytes, D2D, stream))

    def copy_at_once(self, stream):
        ok(cudart.cudaMemcpy(self.y.ptr, self.host.ctypes.data, self.y.nbytes, H2D))

    def last_element_at_once(self, stream):
        ok(cudart.cudaMemcpy(self.y.ptr + self.y.nbytes - 4, self.host.ctypes.data, 4, H2D))

    def two_elements_exchanged_at_once(self, stream):
        ok(cudart.cudaMemcpy(self.y.ptr + 4, self.exchanged.ctypes.data, 8, H2D))

    def kernel_elsewhere(self, stream):
        ok(launch(self.elsewhere, occupy, 1, 1, BUSY_MS))  # so that it is not over at once, on a fast GPU either
        ok(launch(self.elsewhere, kernels.scale, -(-self.t.size // 256), 256, self.y, 3.0, self.t.size))

    def steps(self, *names):
        """work(stream), with the list work.streams of those that it was called with."""
        def work(stream):
            work.streams.append(int(stream or 0))
            for name in names:
                getattr(self, name)(stream)
        work.streams = []
        return work


KINDS = {"memset": "Memset", "kernel": "Kernel", "copy": "Memcpy"}


def _words(names):
    return ", ".join(name.replace("_", " ") for name in names) or "nothing"


@LAB.part(points=2, hints=(
    "What has to stand before and after the call of work, so that what it queues is written down?",
    "Who in labkit reads a graph? Ask it for the kinds before you let go of the graph, and not after.",
    "It is the second cell of lesson 02 with another middle: begin, call work with the stream, end. Then graph.kinds, then cudaGraphDestroy."))
def kinds_of(t, answer):
    """The list of the kinds of the nodes that work queues, as words; the work is captured and does not run, and the graph is destroyed."""
    made = _Work(t)
    drawn = [str(name) for name in t.random.choice(list(KINDS), int(t.random.integers(4, 9)))]
    for names in (("memset", "kernel", "kernel"), ("kernel",), ("copy", "memset", "kernel", "copy"), (), tuple(drawn)):
        before, _ = t.fresh(made.y, made.x)
        work, calls = made.steps(*names), Calls(t)
        result = calls.run(answer, t.stream, work)
        when, wanted = f"back, for work that queues {_words(names)}:", [KINDS[name] for name in names]
        t.want(isinstance(result, (list, tuple)) and all(isinstance(word, str) for word in result), f"{when} a list of words, {wanted}", shown(result))
        t.expect(f"after kinds_of(stream, work) with {_words(names)}, which nobody launched", "y", made.y, before)
        t.want(sorted(result) == sorted(wanted), f"{when} {wanted}", f"{list(result)}")
        t.want(len(work.streams) == 1, "work called once", f"{len(work.streams)} calls")
        calls.tidied("graph", "executable")


CASES = (
    (False, ("memset", "kernel")),
    (True, ("kernel", "copy_at_once", "kernel")),
    (True, ("memset", "kernel_elsewhere", "kernel")),
    (False, ()),
    (True, ("kernel_elsewhere",)),
    (True, ("kernel", "last_element_at_once")),
    (True, ("kernel", "two_elements_exchanged_at_once")),     # neither the ends change nor the sum
    (False, ("copy", "kernel", "memset")),
    (True, ("copy_at_once", "memset")),
)


@LAB.part(points=4, hints=(
    "What is y after the capture and before any launch, if everything is in the graph?",
    "When do you have to read y to see whether something ran during the capture? How many times?",
    "Copy y to the host before and after the capture. Work in another stream may not be over when the capture ends, so cudaDeviceSynchronize comes before the second look. Compare all elements."))
def left_out(t, answer):
    """True where work changed y while it was captured, False where all that it does waits in the graph."""
    made = _Work(t)
    for k in t.random.permutation(len(CASES)):
        wanted, names = CASES[k]
        numbers = int(t.random.integers(100, 200)) + np.arange(t.size)         # no two alike, and none that a step writes
        t.put(made.y, numbers)
        made.exchanged[:] = numbers[[2, 1]]
        work, calls = made.steps(*names), Calls(t)
        result = calls.run(answer, t.stream, work, made.y)
        what = f"for work that does: {_words(names)}"
        t.want(isinstance(result, (bool, np.bool_)), f"{wanted}, {what}", shown(result))
        t.want(bool(result) == wanted, f"{wanted}, {what}", f"{bool(result)}")
        t.want(work.streams, "work is called, with the stream that captures", "it was not called")
        t.want(len(work.streams) == 1, "work called once", f"{len(work.streams)} calls")
        calls.tidied("graph", "executable")
