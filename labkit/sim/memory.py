"""Memory of the device: live ranges, and the rules for getting, freeing and touching them.

A block is `owned` from the call that allocates it to the call that frees it, which is what a call
can check, and `live` from the moment that allocation *runs* to the moment its free runs, which is
what running work needs. They differ for stream-ordered and graph memory only.
A freed block keeps its address for the next allocation of its size, so a pointer that outlived
its owner reads the new owner's bytes.
"""
import bisect

import numpy as np

from labkit.errors import Undefined
from . import engine, host
from .world import Refused, world

FIRST, LAST = 1 << 52, 1 << 56      # device addresses: far outside a program's own
ALIGN = 512
TOTAL = 150_110_011_392             # bytes of the device, an H200
KEEP = 1 << 20                      # a freed block up to this size keeps its bytes


class Block:
    """One range. kind: "device", "async" (stream-ordered), "graph" or "pinned" (host)."""

    def __init__(self, start, size, room, kind, data=None):
        self.start, self.size, self.room, self.kind, self._data = start, size, room, kind, data
        self.owned = self.live = False
        self.freed = self.freed_in = None       # the op that frees it, and in which stream

    @property
    def data(self):
        """The bytes, one uint8 array of `size`."""
        if self._data is None:
            self._data = np.zeros(self.room, np.uint8)
        return self._data[:self.size]

    def release(self):
        """What free does when it runs."""
        self.live = False
        if self.kind != "pinned" and self.room > KEEP:
            self._data = None


class Memory:
    """All blocks by address, and the free ones by kind and room."""

    def __init__(self):
        self.next, self.starts, self.blocks, self.free, self.used = FIRST, [], [], {}, 0

    def insert(self, block):
        place = bisect.bisect(self.starts, block.start)
        self.starts.insert(place, block.start)
        self.blocks.insert(place, block)
        return block

    def at(self, address):
        """The block whose range holds `address`, owned or not, or None."""
        with world.lock:                # running work asks too
            place = bisect.bisect(self.starts, address) - 1
            block = self.blocks[place] if place >= 0 else None
        return block if block is not None and address < block.start + block.room else None


def memory():
    if world.memory is None:
        world.memory = Memory()
    return world.memory


def allocate(size, kind, stream=None):
    """A range of `size` bytes: the address of a freed one of that size where its free is done, or
    was queued in the same stream and so comes first."""
    store, room = memory(), -(-max(size, 1) // ALIGN) * ALIGN
    if store.used + room > TOTAL:
        raise Refused("MemoryAllocation")
    shelf = store.free.setdefault((kind, room), [])
    shelf.sort(key=lambda block: block.start)   # the lowest address goes first
    for place in range(len(shelf)):
        free = shelf[place].freed
        if free is None or free.state == engine.DONE or stream is not None and shelf[place].freed_in is stream:
            block = shelf.pop(place)
            break
    else:
        data = None
        if kind == "pinned":
            try:
                whole = np.zeros(room + ALIGN, np.uint8)
            except MemoryError:
                raise Refused("MemoryAllocation") from None
            data = whole[-whole.ctypes.data % ALIGN:][:room]
            block = Block(data.ctypes.data, size, room, kind, data)
        else:
            block = Block(store.next, size, room, kind)
            store.next += room
        store.insert(block)
    block.size, block.owned, block.freed, block.freed_in = size, True, None, None
    store.used += room
    return block


def give_back(block, freed=None, stream=None):
    """The call that frees: nobody owns the block from here on, and its address may be reused."""
    block.owned, block.freed, block.freed_in = False, freed, stream
    memory().used -= block.room
    if block.kind != "graph":           # a graph's address is fixed for the life of the graph
        memory().free.setdefault((block.kind, block.room), []).append(block)


def own(block):
    """A launch allocates a graph's block again."""
    block.owned = True
    memory().used += block.room


def owned_at(address, kinds):
    """The owned block that begins at `address`; freeing anything else is an invalid value."""
    block = memory().at(address)
    if block is None or block.start != address or not block.owned or block.kind not in kinds:
        raise Refused("InvalidValue")
    return block


def side(address, count, graph=None):
    """Where a pointer points when a call is made: "device", "pinned" or "pageable" (host). Work that
    becomes part of a graph may use memory that the graph will allocate."""
    block = memory().at(address)
    if block is not None and (block.owned or graph is not None and block in graph.allocates):
        if address + count > block.start + block.size:
            raise Refused("InvalidValue")       # the range leaves the allocation
        return "pinned" if block.kind == "pinned" else "device"
    if FIRST <= address < LAST or address == 0:
        raise Refused("InvalidValue")           # nobody owns memory there
    return "pageable"


def on_device(address, count, graph=None):
    """A device pointer is needed: "device" or "pinned", else an invalid value."""
    place = side(address, count, graph)
    if place == "pageable":
        raise Refused("InvalidValue")
    return place


def touch(address, count, what):
    """The bytes [address, address+count) of a live block, for running work (a uint8 view).

    Raises Undefined: no live range there, or past its end.
    """
    block = memory().at(address)
    if block is None or not block.live:
        raise Undefined(f"{what} touches device memory at {address:#x}.",
                        "No live allocation is there: it was freed, or never allocated. On a GPU the value would be luck.",
                        "Keep the buffer alive as long as work or graphs use it; a graph keeps addresses, not owners.")
    at = address - block.start
    if at + count > block.size:
        raise Undefined(f"{what} touches {count} bytes at {address:#x}.",
                        f"The allocation there ends after {max(block.size - at, 0)} bytes; past the end CUDA promises nothing.",
                        "Check the number of elements and the bound in the kernel (if (i < n)).")
    return block.data[at:at + count]


def read(address, count, what="A copy"):
    """Bytes at an address, on the device or the host, for running work."""
    block = memory().at(address)
    if block is not None or FIRST <= address < LAST:
        return touch(address, count, what)
    return np.frombuffer(host.read(address, count), np.uint8)


def write(address, data, what="A copy"):
    """Put bytes at an address, on the device or the host, for running work."""
    block = memory().at(address)
    if block is not None or FIRST <= address < LAST:
        touch(address, len(data), what)[:] = data
    else:
        host.write(address, np.ascontiguousarray(data))
