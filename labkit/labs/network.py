"""The network of the capstone: its buffers and weights, what NumPy makes of a batch, the same work in a plain stream, and graphs that stay within."""
import ctypes
import functools
from types import SimpleNamespace

import numpy as np

from labkit.arrays import to_host
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import dense, launch
from labkit.labs.caution import GLOBAL, within

UP, DOWN = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


class Pinned:
    """A float32 array in pinned memory: .array. A Try frees it with its buffers, when nothing runs any more."""

    def __init__(self, t, rows, cols):
        self.address = ok(cudart.cudaMallocHost(rows * cols * 4))
        t._buffers.append(self)
        self.array = np.frombuffer((ctypes.c_float * (rows * cols)).from_address(self.address), np.float32).reshape(rows, cols)
        self.array[:] = 0

    def free(self):
        ok(cudart.cudaFreeHost(self.address))


def weights(t, rows, cols):
    """-1, 0 or 1: every sum is a whole number that float32 holds exactly."""
    return t.random.integers(-1, 2, (rows, cols)).astype(np.float32)


def network(t):
    """What a learner gets as `net`."""
    t.what = f"With a network for up to {t.size} rows"
    most, (inner, middle, cols) = t.size, (int(n) for n in t.random.integers(9, 25, 3))
    return SimpleNamespace(most=most, inner=inner, middle=middle, cols=cols, w1=t.buffer(weights(t, inner, middle)), w2=t.buffer(weights(t, middle, cols)),
                           **{name: t.buffer(t.numbers(most * length)) for name, length in (("x", inner), ("hidden", middle), ("out", cols))},
                           host_in=Pinned(t, most, inner).array, host_out=Pinned(t, most, cols).array)


def expected(net, x, first=None, second=None):
    """(hidden, out) by NumPy, with the weights that the GPU holds unless others are given."""
    w1 = to_host(net.w1).reshape(net.inner, net.middle) if first is None else first
    w2 = to_host(net.w2).reshape(net.middle, net.cols) if second is None else second
    hidden = np.maximum(x @ w1, 0)
    return hidden, hidden @ w2


def batch_of(t, net, rows):
    return t.numbers(rows * net.inner).reshape(rows, net.inner)


def some_rows(t):
    """Sizes to try: one row, all rows, and some between, in no order."""
    between = [int(n) for n in t.random.permutation(np.arange(2, t.size))[:3]]
    return [int(n) for n in t.random.permutation([1, t.size, *between])]


def layers(t, net, rows):
    """Both layers, queued by the judge."""
    ok(launch(t.stream, dense, -(-rows * net.middle // 256), 256, net.hidden, net.x, net.w1, rows, net.inner, net.middle, 1))
    ok(launch(t.stream, dense, -(-rows * net.cols // 256), 256, net.out, net.hidden, net.w2, rows, net.middle, net.cols, 0))


def in_a_plain_stream(t, net, batch):
    """The same work in a plain stream: what a served batch is timed against."""
    rows = len(batch)
    net.host_in[:rows] = batch
    ok(cudart.cudaMemcpyAsync(net.x.ptr, net.host_in.ctypes.data, rows * net.inner * 4, UP, t.stream))
    layers(t, net, rows)
    ok(cudart.cudaMemcpyAsync(net.host_out.ctypes.data, net.out.ptr, rows * net.cols * 4, DOWN, t.stream))
    ok(cudart.cudaStreamSynchronize(t.stream))
    return net.host_out[:rows].copy()


def in_a_capture(t, answer):
    """The answer between the begin and the end of a capture: a function that returns the graph."""
    @functools.wraps(answer, updated=())
    def recorded(*args):
        ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
        answer(*args)
        return ok(cudart.cudaStreamEndCapture(t.stream))
    return recorded


def stays_within(t, net, graph, copied=()):
    """Trouble where a kernel or a copy of the graph would reach past the buffers of net: seen before it is launched."""
    within(t, graph, **{f"net.{name}": getattr(net, name) for name in ("x", "hidden", "out", "w1", "w2")})
    for to, source, size in copied:
        ways = {"net.host_in to net.x": (net.x.ptr, net.host_in.ctypes.data, net.x.nbytes), "net.out to net.host_out": (net.host_out.ctypes.data, net.out.ptr, net.out.nbytes)}
        way = next((name for name, (target, begin, _) in ways.items() if (target, begin) == (to, source)), None)
        t.want(way, f"copies of {' and of '.join(ways)}, from the first row on", "a copy from or to another address")
        t.want(size <= ways[way][2], f"at most {ways[way][2]} bytes from {way}", f"{size} bytes")
