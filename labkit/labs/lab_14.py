"""14: a graph that holds the owner of its memory: a device block, and host memory that is read at each replay.

Memory here is lent from a shelf, as CuPy and PyTorch do it: what nobody holds any more goes to whoever asks next. So
an answer that keeps nothing gets somebody else's numbers, and never freed memory.
"""
import gc
import time
import weakref

import numpy as np

from labkit.arrays import DeviceArray
from labkit.backend import cudart
from labkit.errors import ok
from labkit.keep_alive import drain
from labkit.labs.calls import Calls, kind
from labkit.labs.caution import within
from labkit.labs.judging import Lab
from labkit.labs.memory import HostMemory, argument, copies
from labkit.update import launched

LAB = Lab("14_keep", "Keep it alive", lesson="14", minutes=10)
PATIENCE = 2.0          # seconds until a thread of the driver has let go


class Tensor:
    """Owns .block, a DeviceArray, until Python lets go of it."""

    def __init__(self, block):
        self.block = block


class Pinned:
    """Owns the host memory behind .array, float32 of NumPy, until Python lets go of it. (The array does not own it.)"""

    def __init__(self, memory):
        self.array = memory.view()


class Shelf:
    """Pieces of memory and the objects that own them for a while: take() lends one, .lent is [(weak reference, address)]."""

    def __init__(self, kind, pieces):
        self.kind, self.pieces, self.lent = kind, list(pieces), []

    def take(self):
        """A new owner of a piece. The last one put back goes first."""
        if not self.pieces:
            raise RuntimeError("the shelf is empty: this exercise needs one block, and you took all of them")
        piece = self.pieces.pop()
        owner = self.kind(piece)
        weakref.finalize(owner, self.pieces.append, piece)
        self.lent.append((weakref.ref(owner), piece.ptr))
        return owner

    def lives(self, address):
        """Whether this address was lent, and its owner is still there."""
        return any(place == address and owner() is not None for owner, place in self.lent)


def _let_go(shelf, address):
    """Whether the owner goes, soon."""
    end = time.monotonic() + PATIENCE
    while shelf.lives(address) and time.monotonic() < end:
        drain()
        time.sleep(0.01)
    if shelf.lives(address):
        gc.collect()                        # a cycle that nobody reaches
    return not shelf.lives(address)


def _nobody_else(t, what, shelf, address):
    """Trouble unless, now that the function has returned, the graph still holds the owner of this address."""
    t.kept.clear()
    gc.collect()
    drain()
    t.want(shelf.lives(address), f"the graph holds the {what} from now on",
           "nobody holds it: it went when your function returned, and its memory goes to whoever asks next")


def _gone_with_the_graph(t, what, shelf, address, executable):
    """Trouble unless the owner goes with the executable, the graph having gone before."""
    t.want(shelf.lives(address), f"the {what} lives as long as the executable", "it went before")
    t._execs.remove(executable)
    ok(cudart.cudaGraphExecDestroy(executable))
    t.want(_let_go(shelf, address), f"the {what} goes when graph and executable are destroyed",
           "something else still holds it: a global name, a list, or an object that is held by one")


def _destroy(t, graph):
    t._graphs.remove(graph)
    ok(cudart.cudaGraphDestroy(graph))


@LAB.part(points=4, hints=(
    "Who owns the numbers that the kernel will read, and until when does your function hold that owner?",
    "The graph knows an address. What can you give it besides, so that it holds the owner too?",
    "Lesson 08 ends the capture and then lets the graph keep an object alive. Which of the two is that: the Tensor, or its block?"))
def keep_buffer(t, answer):
    """A graph of one axpy that reads the block of a Tensor, and that holds the Tensor: until graph and executable are destroyed, and no longer."""
    y, shelf, numbers = t.buffer(), Shelf(Tensor, [t.buffer() for _ in range(4)]), t.numbers()

    def tensor(values):
        made = shelf.take()
        t.put(made.block, values)
        return made
    calls = Calls(t)
    result = calls.run(answer, t.stream, y, numbers.copy(), tensor)
    t.just(result, 1, "the graph, and nothing else: only the graph holds the Tensor")
    graph = calls.alive(result, "graph")
    del result
    found = t.shape(graph, {"axpy": "axpy"})
    argument(t, found["axpy"], 0, "y", y.ptr, "the buffer y")
    address = _source(t, found["axpy"], shelf)
    within(t, graph, y=y, **{"the Tensor's block": DeviceArray(address, t.size, np.float32)})
    _nobody_else(t, "Tensor", shelf, address)
    executable = t.executable(graph)
    _destroy(t, graph)
    strangers = [tensor(np.full(t.size, 50.0 + k)) for k in range(len(shelf.pieces))]
    for which in (1, 2):
        old, = t.fresh(y)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", y, old + numbers)
    _gone_with_the_graph(t, "Tensor", shelf, address, executable)
    del strangers


def _source(t, node, shelf):
    """What the kernel reads, which must be lent memory."""
    address = int(launched(node).args[1])
    t.want(address in [place for _, place in shelf.lent], "axpy reads the block of a Tensor that came from tensor(...)", "it reads other memory")
    return address


@LAB.part(points=4, hints=(
    "When does a captured copy read host memory: when it is captured, or when it is launched?",
    "The array shows the memory and does not own it. Who does, and who holds that owner once your function has returned?",
    "Capture the asynchronous copy from the address of the array, end the capture, and let the graph keep the owner alive. Then two things go back."))
def pinned_batch(t, answer):
    """A graph that copies pinned memory into y, and the array that shows this memory. The graph holds its owner; what stands in the array at a launch arrives in y."""
    memory = [HostMemory(t.size) for _ in range(4)]
    t._buffers += memory                              # the Try frees them, after executables and graphs
    y, shelf, calls = t.buffer(), Shelf(Pinned, memory), Calls(t)
    with copies(answer) as copied:
        result = calls.run(answer, t.stream, y, shelf.take)
    t.just(result, 2, "the graph and the array")
    graph, array = calls.alive(result, "graph"), result[1]
    del result
    fits = isinstance(array, np.ndarray) and array.dtype == np.float32 and array.shape == (t.size,)
    shown = f" of {array.size} {array.dtype}" if isinstance(array, np.ndarray) else ""
    t.want(fits, f"beside the graph the array, {t.size} float32", kind(array) + shown)
    address = array.ctypes.data
    t.want(address in [place for _, place in shelf.lent], "the array of what pinned() lent", "an array in other memory")
    t.shape(graph, {"copy": "Memcpy"})
    for to, source, size in copied:
        t.want((to, source) == (y.ptr, address), "a copy from the array to y", "a copy from or to another address")
        t.want(size == y.nbytes, f"a copy of {y.nbytes} bytes, all of y", f"{size} bytes")
    _nobody_else(t, "owner of the pinned memory", shelf, address)
    executable = t.executable(graph)
    _destroy(t, graph)
    strangers = [shelf.take() for _ in range(len(shelf.pieces))]
    for stranger in strangers:
        stranger.array[:] = 50.0
    for which in (1, 2, 3):
        array[:] = numbers = t.numbers()
        t.put(y, np.zeros(t.size))
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", y, numbers)
    _gone_with_the_graph(t, "owner of the pinned memory", shelf, address, executable)
