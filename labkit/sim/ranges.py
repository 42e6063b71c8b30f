"""Address ranges: which block lies where, and where the next one finds room."""
import bisect
import itertools

ALIGN = 512                 # every block begins at a multiple of this, in bytes
PAGE = 32 << 20             # pools and graphs take the device's memory in steps of this many bytes, on an H200


def rounded(size, step=ALIGN):
    """The least multiple of `step` that holds `size` bytes, at least one step."""
    return -(-max(size, 1) // step) * step


class Spans:
    """Things with a `start` and a `room` that do not overlap, by address."""

    def __init__(self):
        self.starts, self.things = [], []

    def add(self, thing):
        place = bisect.bisect(self.starts, thing.start)
        self.starts.insert(place, thing.start)
        self.things.insert(place, thing)

    def remove(self, thing):
        place = bisect.bisect_left(self.starts, thing.start)
        while place < len(self.things) and self.starts[place] == thing.start:
            if self.things[place] is thing:
                del self.starts[place], self.things[place]
                return
            place += 1

    def at(self, address):
        """The thing whose range holds `address`, or None."""
        place = bisect.bisect(self.starts, address) - 1
        if place >= 0 and address < self.starts[place] + self.things[place].room:
            return self.things[place]
        return None


class Region:
    """A range that a pool or a graph deals out. Blocks in it may lie where freed ones lay, so there are
    two views: `owned` is what calls see, `live` what running work sees."""

    def __init__(self, home, start, room):
        self.home, self.start, self.room = home, start, room
        self.owned, self.live = Spans(), Spans()


class Gap:
    """Room from start to end. after: the free that must come before its next use; None: none. rest: was it, or its end, never used?
    number: which of several gaps is the older one."""
    __slots__ = ("start", "end", "after", "rest", "number")
    numbers = itertools.count()

    def __init__(self, start, end, after=None, rest=False):
        self.start, self.end, self.after, self.rest, self.number = start, end, after, rest, next(self.numbers)


class Gaps:
    """The free room of a region, by address."""

    def __init__(self):
        self.gaps = []

    def find(self, room, usable):
        """The smallest gap that is large enough and whose free `usable(after)` accepts, or None. Of equal ones it is the older one;
        the rest that was never used comes last."""
        fitting = [gap for gap in self.gaps if gap.end - gap.start >= room and (gap.after is None or usable(gap.after))]
        return min(fitting, key=lambda gap: (gap.rest, gap.end - gap.start, gap.number), default=None)

    def cut(self, gap, room):
        """Take `room` bytes from the beginning of a gap: where they begin."""
        start, gap.start, gap.number = gap.start, gap.start + room, next(Gap.numbers)
        if gap.start == gap.end:
            self.gaps.remove(gap)
        return start

    def put(self, start, end, after, joins, rest=False):
        """Free a range. It joins a neighbour that was freed where `joins(neighbour's after)`; the whole then waits for `after`."""
        place = bisect.bisect(self.gaps, start, key=lambda gap: gap.start)
        for near in (place, place - 1):
            if 0 <= near < len(self.gaps) and self._touch(self.gaps[near], start, end) and joins(self.gaps[near].after):
                start, end = min(start, self.gaps[near].start), max(end, self.gaps[near].end)
                del self.gaps[near]
                place = min(place, near)
        gap = Gap(start, end, after, rest)
        self.gaps.insert(place, gap)
        return gap

    @staticmethod
    def _touch(gap, start, end):
        return gap.end == start or gap.start == end

    def settle(self, done):
        """Gaps whose free `done(after)` says is over wait for nothing any more, and join each other."""
        kept = []
        for gap in self.gaps:
            if gap.after is not None and done(gap.after):
                gap.after = None
            if kept and kept[-1].end == gap.start and kept[-1].after is gap.after is None:
                kept[-1].end, kept[-1].rest, kept[-1].number = gap.end, kept[-1].rest or gap.rest, max(kept[-1].number, gap.number)
            else:
                kept.append(gap)
        self.gaps = kept

    def holds(self, start, end):
        """Does one gap that waits for nothing hold the whole range?"""
        place = bisect.bisect(self.gaps, start, key=lambda gap: gap.start) - 1
        return place >= 0 and self.gaps[place].after is None and end <= self.gaps[place].end
