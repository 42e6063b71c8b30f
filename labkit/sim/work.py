"""The kinds of work: what a stream queues, a graph holds as a node, and a replay runs.

Each kind says how it runs (`execute`) and what its node is called (`kind`). An object is never
changed after it was made; an update puts another in its place.
"""
import ctypes

import numpy as np

from labkit.errors import NotSimulated, Undefined
from . import access, engine, memory
from .view import View
from .world import Refused

_HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
STAGED = 1 << 16        # bytes up to which a copy from pageable memory goes through a buffer of the driver's
_indices = {}


def _threads(count):
    """The indices 0..count-1 of a launch's threads along x, read-only and shared between launches."""
    if count not in _indices:
        if len(_indices) > 64:
            _indices.clear()
        _indices[count] = np.arange(count)
        _indices[count].flags.writeable = False
    return _indices[count]


class Work:
    """Work without an effect of its own. kind: the end of its cudaGraphNodeType name."""
    __slots__ = ()
    kind, host = "Empty", False

    def execute(self):
        pass


class Kernel(Work):
    """A launch: kernel, grid and block (x, y, z), dynamic shared memory, packed arguments."""
    __slots__ = ("kernel", "grid", "block", "shared", "values")
    kind = "Kernel"

    def __init__(self, kernel, grid, block, shared, values):
        check_configuration(grid, block, shared)
        self.kernel, self.grid, self.block, self.shared, self.values = kernel, grid, block, shared, values

    def execute(self):
        kernel, (a, b, c), (x, y, z) = self.kernel, self.grid, self.block
        if kernel.twin is None:
            raise NotSimulated(f"The kernel {kernel.name} was to run on the simulator.",
                               "It has CUDA C text and no NumPy twin: it can be captured here, and run on a GPU only.",
                               "Give it a twin (Kernel(..., twin=function)), or run this on a GPU.")
        name = f"The kernel {kernel.name}"
        views = [View(v, p.dtype, p.const, name) if p.pointer else v for p, v in zip(kernel.params, self.values)]
        kernel.twin(_threads(a * x), *views)
        if b * c * y * z > 1:
            self._again(_threads(a * x), views)

    def _again(self, index, views):
        """Threads along y and z do what those of the same x did: it must change nothing more."""
        written = [block for value, p in zip(self.values, self.kernel.params) if p.pointer and not p.const and (block := memory.memory().live_at(value))]
        before = [block.data.copy() for block in written]
        self.kernel.twin(index, *views)
        if any(not np.array_equal(block.data, old) for block, old in zip(written, before)):
            raise Undefined(f"The kernel {self.kernel.name} was launched with grid {self.grid} and block {self.block}.",
                            "It knows a thread by its x alone, so several threads have one index, and each goes on from what another has written: a race.",
                            "Give the grid and the block as one number each.")


def check_configuration(grid, block, shared):
    """A launch has at least one block and one thread, at most 1024 threads in a block (64 in z),
    2^31-1 blocks in x and 65535 in y and z, and at most 48 KiB of dynamic shared memory, more
    only for kernels that ask for it."""
    (a, b, c), (x, y, z) = grid, block
    fits = (0 < a < 2 ** 31 and 0 < b < 65536 and 0 < c < 65536 and 0 < x <= 1024 and 0 < y <= 1024
            and 0 < z <= 64 and x * y * z <= 1024 and 0 <= shared <= 48 * 1024)
    if not fits:
        raise Refused("InvalidValue")


class Memset(Work):
    """Set `height` rows of `width` elements of `size` bytes (1, 2, 4) to `value`, rows `pitch` bytes apart."""
    __slots__ = ("dst", "value", "size", "width", "height", "pitch")
    kind = "Memset"

    def __init__(self, dst, value, size, width, height=1, pitch=0):
        if size not in (1, 2, 4):
            raise Refused("InvalidValue")
        self.dst, self.value, self.size, self.width, self.height, self.pitch = dst, value, size, width, height, pitch

    def check(self, graph):
        """An executable needs somebody to own the memory, whoever it is."""
        memory.on_device(self.dst, (self.height - 1) * self.pitch + self.width * self.size, graph)

    def execute(self):
        pattern = np.frombuffer((self.value % 256 ** self.size).to_bytes(self.size, "little"), np.uint8)
        for row in range(self.height):
            data = access.touch(self.dst + row * self.pitch, self.width * self.size, "A memset")
            data.reshape(-1, self.size)[:] = pattern


class Memcpy(Work):
    """Copy `count` bytes. direction: what the call said, as (from, to) of "host" and "device". owners: whose memory it was then,
    see memory.owners()."""
    __slots__ = ("dst", "src", "count", "direction", "owners")
    kind = "Memcpy"

    def __init__(self, dst, src, count, direction, owners=()):
        self.dst, self.src, self.count, self.direction, self.owners = dst, src, count, direction, owners

    def check(self, graph):
        """An executable copies from and to the memory that the node was made for, whether it is made or updated."""
        if any(not block.owned or block.turn != turn for block, turn in self.owners):
            raise Undefined("A graph with a copy whose memory was freed after the node was made becomes an executable, or updates one.",
                            "CUDA does not check for this, not even where the address has a new owner: with driver 580.159.04 the process crashed.",
                            "Keep the buffer alive as long as graphs use it, or give the node a new address before you instantiate or update.")

    def at_launch(self, host_writes):
        """What a launch queues for it. Pageable memory that goes to the device is read by the launch call itself, pinned memory when
        the copy runs. host_writes: may the same launch write to host memory?"""
        if any(block.kind == "pinned" and (not block.owned or block.turn != turn) for block, turn in self.owners):
            raise Undefined("A graph is launched whose copy uses pinned memory that was freed.",
                            "CUDA does not check for this: with driver 580.159.04 the process crashed at the launch, "
                            "and where the address had a new owner the context broke (719).",
                            "Keep the buffer alive as long as graphs use it.")
        if self.direction != ("host", "device") or memory.memory().at(self.src) is not None:
            return self
        return Staged(self.dst, self.src, self.count, host_writes or self.count > STAGED)

    def execute(self):
        access.write(self.dst, access.read(self.src, self.count))


class Staged(Work):
    """A copy whose pageable source was read when the call was made. unsure: no GPU was asked whether that holds here too, so the
    source must not have changed."""
    __slots__ = ("dst", "src", "data", "unsure")
    kind = "Memcpy"

    def __init__(self, dst, src, count, unsure=False):
        self.dst, self.src, self.data, self.unsure = dst, src, np.array(access.read(src, count)), unsure

    def execute(self):
        if self.unsure and not np.array_equal(access.read(self.src, len(self.data)), self.data):
            raise NotSimulated("A graph copies from pageable host memory that changed between the launch call and the copy.",
                               "A GPU read small copies at the launch call; for large ones, and where the same graph writes to host memory, "
                               "it was not asked.", "Use pinned memory (cudaMallocHost), which is read when the copy runs.")
        access.write(self.dst, self.data)


class Host(Work):
    """A C function pointer called with `argument`.

    once: captured through the bindings' launch call, whose wrapper frees its bookkeeping after one
    run; what a second run does is anybody's guess.
    """
    __slots__ = ("function", "argument", "once", "ran")
    kind, host = "Host", True

    def __init__(self, function, argument, once=False):
        self.function, self.argument, self.once, self.ran = function, argument, once, False

    def execute(self):
        if self.once and self.ran:
            raise Undefined("A host function captured with the Python bindings' launch call ran a second time.",
                            "The bindings free what the call needs after its first run: on a GPU the process crashes here.",
                            "Add it to the graph with cudaGraphAddHostNode, which keeps nothing that could be freed.")
        if not self.function:
            raise Undefined("A host function that is null was to run.", "A queue takes it and the process crashes when it is called.",
                            "Pass the address of a C function; keep its ctypes object alive.")
        self.ran = True
        engine.call_back(_HostFunction(self.function), self.argument)


def host_node(function, argument):
    """The work of a host node: null is no function."""
    if not function:
        raise Refused("InvalidValue")
    return Host(function, argument)


class EventRecord(Work):
    """An external record: the event is recorded whenever a launch reaches this node."""
    __slots__ = ("event",)
    kind = "EventRecord"

    def __init__(self, event):
        self.event = event


class EventWait(EventRecord):
    """An external wait: a launch waits for what the event stands for at that time."""
    __slots__ = ()
    kind = "WaitEvent"


class Alloc(Work):
    """Graph memory comes to life. Its address is fixed for the life of the graph."""
    __slots__ = ("block",)
    kind = "MemAlloc"

    def __init__(self, block):
        self.block = block

    def execute(self):
        self.block.begin()


class Free(Alloc):
    """Graph memory is freed."""
    __slots__ = ()
    kind = "MemFree"

    def execute(self):
        self.block.release()


class Child(Work):
    """A graph inside a graph; `graph` is the node's own copy."""
    __slots__ = ("graph",)
    kind = "Graph"

    def __init__(self, graph):
        self.graph = graph
