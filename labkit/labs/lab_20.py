"""20: five captures that were broken, each in a way of its own, and are to be written anew."""
import numpy as np

from labkit import graph as graphs
from labkit.arrays import DeviceArray
from labkit.labs.calls import Calls, number
from labkit.labs.caution import whole, within
from labkit.labs.judging import Lab
from labkit.labs.memory import HostMemory, argument, copies, taken
from labkit.update import launched

LAB = Lab("20_five_broken", "Five broken captures", lesson="16", minutes=20)
POISON = -99.0          # in whatever only a launch may fill


def _graph(t, answer, *args, **places):
    """The graph that came back, and nothing else. places: {name: (address, bytes)} that its copies may read and write: of memory that is gone they must not run."""
    calls = Calls(t)
    with copies(answer) as made:
        result = calls.run(answer, *args)
    t.just(result, 1, "the graph, and nothing else")
    for *ends, count in made:
        for address in ends:
            room = next((start + size - address for start, size in places.values() if start <= address < start + size), None)
            t.want(room is not None, f"copies from and to {', '.join(places)}" if places else "a graph without copies", "a copy from or to another address")
            t.want(0 <= count <= room, f"a copy of no more bytes than there are, {room}", f"{count}")
    return calls.alive(result, "graph")


def _executable(t, graph, **buffers):
    """The graph instantiated; Trouble where a node would reach past its buffers."""
    within(t, graph, **buffers)
    return t.executable(graph)


@LAB.part(points=3, hints=(
    "Which streams take part in the capture, and which of them has work that the last kernel does not wait for?",
    "The right stream forked from left, not from stream. Does the join of left, where it is recorded, bring along what right does?",
    "Every stream with work must be joined, directly or by way of another one. The helper after makes one stream wait for another: one more, or another one, is all it takes."))
def repair_unjoined(t, answer):
    """A graph in which x is filled, then y and z are added to, one after the other, beside the scale of w; and then add, which waits for all of them."""
    w, x, y, z = (t.buffer() for _ in range(4))
    graph = _graph(t, answer, t.stream, t.new_stream(), t.new_stream(), t.event(), w, x, y, z)
    found = t.shape(graph, {"fill": "fill", "y": "axpy", "z": "axpy", "w": "scale", "add": "add"},
                    [("fill", "y"), ("y", "z"), ("z", "add"), ("fill", "w"), ("w", "add")])
    argument(t, found["y"], 0, "the first axpy's y", y.ptr, "the buffer y")
    argument(t, found["z"], 0, "the second axpy's y", z.ptr, "the buffer z")
    executable = _executable(t, graph, w=w, x=x, y=y, z=z)
    for which in (1, 2):
        w0, _, y0, z0 = t.fresh(w, x, y, z)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "x", x, np.ones(t.size))
        t.expect(f"after launch {which}", "y", y, y0 + 1)
        t.expect(f"after launch {which}", "z", z, z0 + y0 + 1)
        t.expect(f"after launch {which}", "w", w, 3 * w0 + z0 + y0 + 1)


@LAB.part(points=3, hints=(
    "How many nodes does the program queue, and how many are in its graph? What became of the others, and when?",
    "The memset and the copy have four and five arguments. Which of them is the stream, and which stream is number 0?",
    "Work on the default stream beside a non-blocking capture runs at once and is left out: lesson 11. Name the stream that captures in every call."))
def repair_legacy_stream(t, answer):
    """A graph of Memset, axpy, Memcpy and scale, in a row: each launch clears y, adds 2 x, copies y to z and triples y."""
    x, y, z = (t.buffer() for _ in range(3))
    graph = _graph(t, answer, t.stream, x, y, z, x=(x.ptr, x.nbytes), y=(y.ptr, y.nbytes), z=(z.ptr, z.nbytes))
    t.shape(graph, {"clear": "Memset", "axpy": "axpy", "copy": "Memcpy", "scale": "scale"}, [("clear", "axpy"), ("axpy", "copy"), ("copy", "scale")])
    executable = _executable(t, graph, x=x, y=y, z=z)
    for which in (1, 2):
        plus, _, _ = t.fresh(x, y, z)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "z", z, 2 * plus)
        t.expect(f"after launch {which}", "y", y, 6 * plus)
        t.expect(f"after launch {which}", "x", x, plus)


@LAB.part(points=3, hints=(
    "Both copies answer success. When do they run: at the capture, or at each launch?",
    "Which of the copy calls has a stream among its arguments? Is a copy with a stream a node of the graph?",
    "cudaMemcpyAsync takes the same arguments and the stream. The graph then reads news, and writes out, at each launch: nobody need wait in between."))
def repair_sync_copy(t, answer):
    """A graph of Memcpy, scale and Memcpy, in a row: each launch takes what stands in news then, triples it in y, and leaves it in out."""
    memory = [HostMemory(t.size) for _ in range(2)]
    t._buffers += memory
    news, out = (piece.view() for piece in memory)
    y = t.buffer()
    news[:], out[:] = t.numbers(), POISON
    graph = _graph(t, answer, t.stream, news, y, out, news=(memory[0].ptr, y.nbytes), y=(y.ptr, y.nbytes), out=(memory[1].ptr, y.nbytes))
    t.shape(graph, {"in": "Memcpy", "scale": "scale", "out": "Memcpy"}, [("in", "scale"), ("scale", "out")])
    executable = _executable(t, graph, y=y)
    for which in (1, 2, 3):
        news[:] = numbers = t.numbers()
        out[:] = POISON
        t.put(y, np.full(t.size, POISON))
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", y, 3 * numbers)
        t.expect(f"after launch {which}", "out", out, 3 * numbers)
        t.expect(f"after launch {which}", "news", news, numbers)


# ---- a block that is given back too early --------------------------------------------------------

class Pool:
    """Blocks of memory, lent and taken back: take(count) and give(block). Whoever asks next gets the block that came back last."""

    def __init__(self, t, count=3):
        self.t, self.free, self.lent = t, [t.buffer(np.full(t.size, POISON)) for _ in range(count)], []

    def take(self, count):
        if count != self.t.size:
            raise ValueError(f"take() got {count}: this pool has blocks of {self.t.size} floats, as many as y has")
        if not self.free:
            raise ValueError("take() was called too often: the pool is empty, and one block is enough here")
        self.lent.append(self.free.pop())
        return self.lent[-1]

    def give(self, block):
        if not any(block is one for one in self.lent):
            raise ValueError("give() got what is not lent: it takes a block that take() handed out, and takes it once")
        self.lent = [one for one in self.lent if one is not block]
        self.free.append(block)


@LAB.part(points=4, hints=(
    "Who owns the block while the graph is launched, and what may the new owner do with it?",
    "Until when is the block needed: until the capture ends, or until something else is over? Who knows when that is?",
    "Do not give it back in the function. Hand back a second function that does, to be called when the last launch is over."))
def repair_stale_address(t, answer):
    """A graph of add and axpy, y += 2 x, whose block is its own for as long as it is launched; and close, a function that gives the block back to the pool."""
    x, y, pool = t.buffer(), t.buffer(), Pool(t)
    count = len(pool.free)
    calls = Calls(t)
    result = calls.run(answer, t.stream, pool, x, y)
    t.just(result, 2, "the graph and close")
    graph, close = calls.alive(result, "graph", "function")
    node, inside = _two_kernels(t, graph)
    block = int(launched(node).args[0])
    strangers = [pool.take(t.size) for _ in range(len(pool.free))]
    t.want(block not in [one.ptr for one in strangers], "a block that the pool lends to nobody else before close()",
           "it was given back: the next one who asked has it now, and your graph writes into it")
    t.want(inside or block in [one.ptr for one in pool.lent], "a scratch block that take(...) lent, or that the graph allocates itself", "add writes to other memory")
    executable = _executable(t, graph, x=x, y=y, block=DeviceArray(block, t.size, np.float32))
    for which in (1, 2, 3):
        old, plus = t.fresh(y, x)
        for one in strangers:
            t.put(one, np.full(t.size, 50.0 + which))
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", y, old + 2 * plus)
        for one in strangers:
            t.expect(f"after launch {which}", "somebody else's block", one, np.full(t.size, 50.0 + which))
    closing = Calls(t)
    closing.run(close)
    t._graphs[:] = [one for one in t._graphs if ("graph", number(one)) not in closing.gone]     # it may destroy the graph too
    for one in strangers:
        pool.give(one)
    t.want(len(pool.free) == count, f"{count} blocks in the pool again after close(), as there were", f"{len(pool.free)}")


def _two_kernels(t, graph):
    """(the node of add, whether the block is memory of the graph itself: that is another way)."""
    nodes, edges = {"add": "add", "axpy": "axpy"}, [("add", "axpy")]
    inside = "MemAlloc" in graphs.kinds(graph)
    if inside:
        nodes, edges = {"alloc": "MemAlloc", **nodes, "free": "MemFree"}, [("alloc", "add"), *edges, ("axpy", "free")]
    found = t.shape(graph, nodes, edges)
    if inside:
        size, address = taken(found["alloc"])
        t.want(size >= 4 * t.size, f"a block of {4 * t.size} bytes", f"{size}")
        argument(t, found["add"], 0, "z", address, "the block")
    block = int(launched(found["add"]).args[0])
    argument(t, found["axpy"], 1, "x", block, "the block that add writes")
    return found["add"], inside


# ---- a number that is read once ------------------------------------------------------------------

@LAB.part(points=4, sizes=(300, 1000, 2048), hints=(
    "When does Python read the number in count, and when does the caller write a new one?",
    "Two things of the launch are made from the number. Both are frozen. Which of the two can a kernel read for itself, and how large must the other be?",
    "axpy_n has a pointer where axpy has n. A grid has no pointer: let it be large enough for the whole of y."))
def repair_frozen_value(t, answer):
    """A graph of one kernel that adds x to the first elements of y, as many as stand in count, on the device, when it is launched."""
    x, y, count = t.buffer(), t.buffer(), t.buffer([3], np.int32)
    graph = _graph(t, answer, t.stream, x, y, count)
    t.shape(graph, {"axpy": "axpy_n"})
    node, = graphs.nodes(graph)
    given = int(launched(node).args[3])
    t.want(given > t.size, "the buffer count as the last argument of axpy_n", f"the number {given}, as it was at the capture")
    argument(t, node, 3, "n", count.ptr, "the buffer count")
    argument(t, node, 0, "y", y.ptr, "the buffer y")
    argument(t, node, 1, "x", x.ptr, "the buffer x")
    whole(t, node, why=": count may grow up to the size of y")
    executable = t.executable(graph)
    for n in (t.size, 1, int(t.random.integers(2, t.size)), 0, t.size - 1):
        t.put(count, [n])
        old, plus = t.fresh(y, x)
        t.launch(executable)
        t.expect(f"after a launch with {n} in count", "y", y, old + plus * (np.arange(t.size) < n))
        t.expect(f"after a launch with {n} in count", "count", count, [n])
