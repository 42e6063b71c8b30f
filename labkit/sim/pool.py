"""Memory pools: memory that is allocated and freed in the order of a stream's work.

Programming Guide, "Stream Ordered Memory Allocator", and the Runtime API chapter of that name. A pool
has a range of addresses of its own, in which blocks lie one after the other; the pages that they touch
are reserved. Reserved pages come back when a wait finds that nothing is left on them, not before.
"""
from labkit.errors import NotSimulated, Undefined
from . import engine, memory, stream as streams
from .ranges import PAGE, Gap, Gaps, rounded
from .world import Refused, find, find_alive, world

WIDTH = 1 << 39                                     # addresses of one pool, in bytes
FOLLOW, OPPORTUNISTIC, INTERNAL, THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = range(1, 9)      # cudaMemPoolAttr
FLAGS = (FOLLOW, OPPORTUNISTIC, INTERNAL)           # attributes of one bit; the others are sizes in bytes


class Pool:
    """`most`: the pages that it may reserve, or None. used: bytes asked for and not freed; it changes with the call, whatever is queued."""

    def __init__(self, handle, most=None):
        self.handle, self.most, self.alive = handle, most, True
        self.region, self.gaps = memory.memory().region(self, _next_range(), WIDTH), Gaps()
        self.gaps.gaps = [Gap(self.region.start, self.region.start + WIDTH, rest=True)]
        self.freeing = []                           # (op, start, end): frees that nobody has seen done
        self.pages = set()                          # numbers of the reserved pages, from the beginning of the range
        self.values = dict.fromkeys(range(1, 9), 0) | dict.fromkeys(FLAGS, 1)

    # ---- blocks ----

    def allocate(self, size, stream):
        """(block, the frees to wait for). The smallest place that is large enough and free, or will be by the time the work runs;
        the last one can grow."""
        room, ahead = rounded(size), streams.ahead(stream)
        if room > WIDTH:
            raise Refused("MemoryAllocation")
        self.gaps.settle(self._over)
        gap = self.gaps.find(room, lambda freed: self._usable(freed, stream, ahead))
        if gap is None:
            raise Refused("MemoryAllocation")
        start, end = gap.start, gap.start + room
        self._reserve(set(range(*self._pages(start, end))) - self.pages, size)
        self.gaps.cut(gap, room)
        frees = [op for op, first, last in self.freeing if first < end and start < last]
        self.freeing = [one for one in self.freeing if not start <= one[1] < one[2] <= end]      # the block stands for those now
        block = memory.Block(start, size, room, "async", region=self.region)
        memory.own(block)
        self._set(USED, self.values[USED] + size)
        return block, frees

    def _over(self, freed):
        """Is a free over by now? Then its place joins those beside it, the untouched rest as well, and any stream may have it."""
        return freed[0].state == engine.DONE or bool(self.values[OPPORTUNISTIC]) and engine.settled(freed[0])

    def _usable(self, freed, stream, ahead):
        """May an allocation in `stream` take what was freed before that is over? In that stream: at once. In another: if an
        event orders the two."""
        op, freed_in = freed
        return freed_in is stream or bool(self.values[FOLLOW]) and engine.leads_to(op, ahead)

    def freed(self, block, op, stream):
        """A block is free once `op` has run. Freed by cudaFree (stream None) it counts as used for good, as with the driver that was asked."""
        if stream is not None:
            self._set(USED, self.values[USED] - block.size)
        self.freeing.append((op, block.start, block.start + block.room))
        self.gaps.put(block.start, block.start + block.room, (op, stream), lambda after: after is not None and after[1] is stream is not None)

    def planned(self, address, owner):
        """No graph plans memory of a pool."""

    # ---- pages ----

    def _pages(self, start, end):
        """The numbers of the pages that a range touches: first, one past the last."""
        return (start - self.region.start) // PAGE, -(-(end - self.region.start) // PAGE)

    def _reserve(self, new, size):
        """A pool grows up to its own limit and up to what the device has. Where that is too little it takes all there is, then lets
        go of what is free."""
        store = memory.memory()
        free = (memory.TOTAL - store.taken()) // PAGE
        if self.most is not None:
            free = min(free, self.most - len(self.pages))
        if len(new) > free:
            if size <= 2 * memory.TOTAL:
                self.values[RESERVED_HIGH] = max(self.values[RESERVED_HIGH], (len(self.pages) + free) * PAGE)
                self.release(self._above_threshold, engine.settled)
            raise Refused("MemoryAllocation")
        self.pages |= new
        store.pages += len(new)
        self._set(RESERVED, len(self.pages) * PAGE)

    def release(self, more, over=engine.is_done):
        """Give back free pages, the highest first, as long as `more(reserved bytes)` says so. A page is free where all blocks
        on it are gone and their frees are `over`: known to be done."""
        self.gaps.settle(lambda freed: over(freed[0]))
        self.freeing = [one for one in self.freeing if not engine.is_done(one[0])]
        held = [(start, end) for op, start, end in self.freeing if not over(op)]
        for page in sorted(self.pages, reverse=True):
            if not more(len(self.pages) * PAGE):
                break
            start, end = self.region.start + page * PAGE, self.region.start + (page + 1) * PAGE
            if self.gaps.holds(start, end) and not any(first < end and start < last for first, last in held):
                self.pages.remove(page)
                memory.memory().pages -= 1
        self._set(RESERVED, len(self.pages) * PAGE)

    def trim(self, least):
        """Give back free pages while at least `least` bytes stay reserved."""
        self.release(lambda reserved: reserved - PAGE >= least)

    def settle(self):
        """What a wait does: the free pages above the release threshold go; all of them, where the pool was destroyed."""
        self.release(self._above_threshold)

    def _above_threshold(self, reserved):
        return reserved > (self.values[THRESHOLD] if self.alive else 0)

    # ---- attributes ----

    def _set(self, what, value):
        self.values[what] = value
        self.values[what + 1] = max(self.values[what + 1], value)

    def set(self, what, value):
        """Current sizes are for reading, a high mark can only be set to 0, which makes it the current size; a flag is 0 or 1."""
        if what in (RESERVED, USED) or what in (RESERVED_HIGH, USED_HIGH) and value:
            raise Refused("InvalidValue")
        if what in (RESERVED_HIGH, USED_HIGH):
            value = self.values[what - 1]
        self.values[what] = int(value != 0) if what in FLAGS else value


def _next_range():
    world.pool_ranges += 1
    return memory.POOLS + (world.pool_ranges - 1) * WIDTH


# ---- the device's pools ----

def default():
    """The pool that the device has from the beginning."""
    if world.default_pool is None:
        world.default_pool = Pool(world.handle("pool"))
        world.pools[world.default_pool.handle] = world.default_pool
    return world.default_pool


def current():
    """The pool that cudaMallocAsync takes from: the device's, whatever the stream."""
    return world.current_pool or default()


def pool_of(handle):
    default()
    return find(world.pools, handle, "InvalidValue")


def check(props):
    """Properties of memory: pinned (it stays where it is), on this device. The host's, and memory for other processes, are not simulated."""
    if props is None or int(props.allocType) == 0 or int(props.location.type) == 0:
        raise Refused("InvalidValue")
    for what, first in ((props.allocType, 1), (props.location.type, 1), (props.handleTypes, 0)):
        if int(what) != first:
            raise NotSimulated(f"The program asks for memory with {what}.", "The simulator has memory of one device, for one process.",
                               "Run this on a GPU.")
    if props.location.id:
        raise Refused("InvalidValue")


def create(props):
    """maxSize: bytes that the pool may reserve, in whole pages; 0 is no limit."""
    check(props)
    pool = Pool(world.handle("pool"), -(-props.maxSize // PAGE) if props.maxSize else None)
    world.pools[pool.handle] = pool
    return pool


def make_current(handle):
    """From here on cudaMallocAsync takes from this pool, in every stream."""
    default()
    world.current_pool = find_alive(world.pools, handle, "InvalidValue", "pool")


def destroy(pool):
    """Its memory may still be used, and what is being freed goes when that is done. Where it was the current pool the default one
    is again; that one cannot be destroyed."""
    if pool is default():
        raise Refused("InvalidValue")
    del world.pools[pool.handle]
    pool.alive = False
    if world.current_pool is pool:
        world.current_pool = None
    world.leaving.append(pool)
    _settle([pool])


def check_free(block):
    """Memory of a pool is freed before its pool is destroyed."""
    if block.kind == "async" and not block.region.home.alive:
        raise Undefined("The program frees memory whose pool was destroyed before.",
                        "The documentation allows it; with driver 580.159.04 the process hung or died when a pool was used the next time.",
                        "Free what a pool gave, then destroy the pool.")


def waited(ops):
    """What the host waits for; a wait that finds frees done gives back pages."""
    if any(pool.pages and (not pool.alive or len(pool.pages) * PAGE > pool.values[THRESHOLD]) for pool in _all()):
        return [engine.Op(_settle, ops), *ops]
    return ops


def _all():
    return [*world.pools.values(), *world.leaving]


def _settle(pools=None):
    with world.lock:
        for pool in pools or _all():
            pool.settle()
            if not pool.alive and not pool.pages:
                world.leaving.remove(pool)
                memory.memory().spans.remove(pool.region)
