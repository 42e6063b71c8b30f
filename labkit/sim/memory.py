"""Memory of the device: live ranges, and the rules for getting and freeing them. How work touches their bytes: access.py.

A block is `owned` from the call that allocates it to the call that frees it, which is what a call
can check, and `live` from the moment that allocation *runs* to the moment its free runs, which is
what running work needs. They differ for stream-ordered and graph memory only.
A block of cudaMalloc that was freed keeps its address for the next allocation of its size, so a pointer
that outlived its owner reads the new owner's bytes. Pools (pool.py) and graphs (graph_memory.py) deal out
the addresses of a region of their own.
"""
import numpy as np

from . import engine
from .ranges import ALIGN, PAGE, Region, Spans, rounded
from .world import Refused, world

FIRST, LAST = 1 << 52, 1 << 56      # device addresses: far outside a program's own
POOLS, GRAPHS = FIRST + (1 << 50), FIRST + (1 << 55)    # where their regions lie
TOTAL = 150_110_011_392             # bytes of the device, an H200
STEP = 2 << 20                      # cudaMalloc takes the device's memory in steps of this many bytes
KEEP = 1 << 20                      # a freed block up to this size keeps its bytes


class Block:
    """One range. kind: "device", "async" (a pool's), "graph" or "pinned" (host). region: where it lies, for a pool's and a graph's."""

    def __init__(self, start, size, room, kind, data=None, region=None):
        self.start, self.size, self.room, self.kind, self._data, self.region = start, size, room, kind, data, region
        self.owned = self.live = self.ended = False
        self.freed, self.freed_async = None, False      # the op that frees it, and was that cudaFreeAsync
        self.turn = 0                           # which of its owners in turn this is
        self.pages = ()                         # the pages that graph memory holds for it

    @property
    def data(self):
        """The bytes, one uint8 array of `size`."""
        if self._data is None:
            self._data = np.zeros(self.room, np.uint8)
        return self._data[:self.size]

    def begin(self):
        """What an allocation does when it runs."""
        if self.ended:
            return
        if self.region is not None and not self.live:
            with world.lock:
                self.region.live.add(self)
        self.live = True

    def end(self):
        """The memory is gone for good, also for an allocation that is still to run."""
        self.ended = True
        self.release()

    def release(self):
        """What free does when it runs."""
        if self.region is not None and self.live:
            with world.lock:
                self.region.live.remove(self)
        self.live = False
        if self.kind != "pinned" and self.room > KEEP:
            self._data = None


class Memory:
    """All blocks and regions by address, the free blocks of cudaMalloc by kind and room, and what the device has given."""

    def __init__(self):
        self.next, self.spans, self.free = FIRST, Spans(), {}
        self.small = self.large = 0     # bytes in blocks of cudaMalloc: those that share a step, and whole steps
        self.pages = 0                  # pages that pools and graphs have taken

    def at(self, address):
        """The block whose range holds `address`, or None: owned or not, but in a region only an owned one."""
        with world.lock:                # running work asks too
            found = self.spans.at(address)
            return found.owned.at(address) if isinstance(found, Region) else found

    def live_at(self, address):
        """The same for running work: in a region the one that is live."""
        with world.lock:
            found = self.spans.at(address)
            return found.live.at(address) if isinstance(found, Region) else found

    def region_at(self, address):
        found = self.spans.at(address)
        return found if isinstance(found, Region) else None

    def region(self, home, start, room):
        """A new region for a pool or a graph."""
        region = Region(home, start, room)
        self.spans.add(region)
        return region

    def taken(self):
        """Bytes of the device that are not free."""
        return -(-self.small // STEP) * STEP + self.large + self.pages * PAGE

    def count(self, block, sign):
        if block.kind == "device" and block.room < STEP:
            self.small += sign * block.room
        elif block.kind == "device":
            self.large += sign * rounded(block.room, STEP)


def memory():
    if world.memory is None:
        world.memory = Memory()
    return world.memory


def allocate(size, kind):
    """A range of `size` bytes outside of pools and graphs: the address of a freed one of that size where its free is done."""
    store, room = memory(), rounded(size)
    if room > (TOTAL if kind == "pinned" else TOTAL - store.taken()):
        raise Refused("MemoryAllocation")
    shelf = store.free.setdefault((kind, room), [])
    shelf.sort(key=lambda block: block.start)   # the lowest address goes first
    for place, block in enumerate(shelf):
        if block.freed is None or block.freed.state == engine.DONE:
            del shelf[place]
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
        store.spans.add(block)
    block.size, block.owned, block.freed, block.turn = size, True, None, block.turn + 1
    store.count(block, 1)
    return block


def own(block):
    """From here on calls may use a pool's or a graph's block."""
    block.owned = True
    block.region.owned.add(block)


def give_back(block, freed=None, stream=None):
    """The call that frees: nobody owns the block from here on, and its address may be reused. stream: None for cudaFree."""
    block.owned, block.freed, block.freed_async = False, freed, stream is not None
    if block.region is not None:
        block.region.owned.remove(block)
        block.region.home.freed(block, freed, stream)
    else:
        memory().count(block, -1)
        memory().free.setdefault((block.kind, block.room), []).append(block)


def owned_at(address, kinds):
    """The owned block that begins at `address`; freeing anything else is an invalid value."""
    block = memory().at(address)
    if block is None or block.start != address or not block.owned or block.kind not in kinds:
        raise Refused("InvalidValue")
    return block


def freed_async(address):
    """Did cudaFreeAsync free memory of cudaMalloc at this address, which nobody has had since?"""
    block = memory().at(address)
    return block is not None and block.start == address and block.kind == "device" and not block.owned and block.freed_async


def owners(*addresses):
    """Who owns memory outside of graphs now, as (block, its turn)."""
    found = [memory().at(address) for address in addresses]
    return tuple([(block, block.turn) for block in found if block is not None and block.owned and block.kind != "graph"])


def side(address, count, graph=None):
    """Where a pointer points when a call is made: "device", "pinned" or "pageable" (host). Work that
    becomes part of a graph may use memory that the graph will allocate."""
    region = memory().region_at(address) if graph is not None else None
    block = region.home.planned(address, graph) if region is not None else None
    if block is None:
        block = memory().at(address)
    if block is not None and (block.owned or region is not None):
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
