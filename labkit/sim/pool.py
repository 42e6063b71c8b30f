"""Memory pools: memory that is allocated and freed in the order of a stream's work.

Programming Guide, "Stream Ordered Memory Allocator", and the Runtime API chapter of that name. A pool
has a range of addresses of its own, in which blocks lie one after the other; the pages that they touch
are reserved. Reserved pages come back when a wait finds that nothing is left on them, not before. Which
pools there are: device_pools.py.
"""
from . import engine, memory, stream as streams
from .ranges import PAGE, Gap, Gaps, rounded
from .world import Refused, world

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
        the last one can grow. What is free now but was not seen to be is looked at only where else the rest would be begun."""
        room, ahead = rounded(size), streams.ahead(stream)
        if room > WIDTH:
            raise Refused("MemoryAllocation")
        self.gaps.settle(lambda freed: engine.is_done(freed[0]))
        gap = self.gaps.find(room, lambda freed: self._usable(freed, stream, ahead))
        if gap is None or gap.rest:
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
        self.freeing = [one for one in self.freeing if not (over(one[0]) and engine.is_done(one[0]))]
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

    def settle(self, over):
        """What a wait does: the free pages above the release threshold go; all of them, where the pool was destroyed."""
        self.release(self._above_threshold, over)

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
