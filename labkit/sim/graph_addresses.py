"""Addresses of graph memory: what an allocation of a graph gets when it becomes a node.

Programming Guide, CUDA Graphs, "Graph Memory Nodes". A graph has a range of addresses of its own, in which its blocks lie one
after the other or where earlier ones were freed. The pages behind the addresses come with a launch: graph_memory.py.
"""
from . import engine, graph as graphs, memory
from .ranges import PAGE, Gaps, rounded
from .world import Refused, world

LIMIT = 2 * memory.TOTAL                            # bytes of one graph's range: about twice what the device has


class Place:
    """The range of one graph: one region, or several where another graph's range lies behind it."""

    def __init__(self, graph):
        self.graph, self.regions, self.gaps = graph, [], Gaps()
        self.tops = []                              # where the untouched rest of each region begins
        self.latest = {}                            # address -> the block that was placed there last
        self.last = None                            # the newest work that uses it

    def allocate(self, size, before):
        """A block for a node that waits for the nodes `before`: in the smallest place freed by one of those that come before it,
        if one is large enough, else behind the others. What does not fit there reserves pages for itself."""
        room = rounded(size)
        gap = self.gaps.find(room, self._earlier(before).__contains__) or self._longer(rounded(room, PAGE))
        region = memory.memory().region_at(gap.start)
        block = memory.Block(self.gaps.cut(gap, room), size, room, "graph", region=region)
        number = self.regions.index(region)
        self.tops[number] = max(self.tops[number], block.start + room)
        self.latest[block.start] = block
        return block

    def _earlier(self, nodes):
        """The nodes that freed something here and are among `nodes`, or before them in the graph's order."""
        frees = {gap.after for gap in self.gaps.gaps if gap.after is not None}
        return frees - graphs.unreached(frees, nodes) if frees else frees

    def _longer(self, room):
        """The untouched rest, after whole pages were added to it."""
        if room + sum(region.room for region in self.regions) > LIMIT:
            raise Refused("MemoryAllocation")
        rest = next((gap for gap in self.gaps.gaps if gap.after is None and gap.start == self.tops[-1]), None)
        if self.regions and _lengthen(self.regions[-1], room):
            end = self.regions[-1].start + self.regions[-1].room
            start = rest.start if rest else end - room
            if rest:
                self.gaps.gaps.remove(rest)
        else:
            self.regions.append(_range(self, room))
            self.tops.append(self.regions[-1].start)
            start = self.tops[-1]
            end = start + room
        return self.gaps.put(start, end, None, lambda after: False, rest=True)

    def free(self, block, node):
        """A node frees a block: its place is for later nodes. It joins those beside it that were freed on the way to this node, as far
        as the way is one line: it ends where branches join."""
        def on_the_way(after):
            step = node
            while after is not None and step is not after and len(step.before) == 1:
                step = step.before[0]
            return step is after
        self.gaps.put(block.start, block.start + block.room, node, on_the_way)

    def planned(self, address, owner):
        """The block that will be at an address, or None: one of the owner (a graph or an executable), else the last that was placed
        there, as long as its own graph exists."""
        exact = self.latest.get(address)
        if exact is not None and exact in owner.allocates:
            return exact
        last = [*(self.latest.values() if self.exists() else ()), *owner.allocates]
        return next((block for block in reversed(last) if block.start <= address < block.start + block.room), None)

    def freed(self, block, op, stream):
        """A launch, or a call outside of graphs, frees a block: its pages are no longer held."""
        for page in block.pages:
            page.held, page.op = page.held - 1, op
        block.pages, self.last = (), op

    def pages_of(self, block):
        """The numbers of the pages that a block touches, counted through the regions."""
        number = self.regions.index(block.region)
        first = sum(region.room for region in self.regions[:number]) // PAGE
        at = block.start - block.region.start
        return range(first + at // PAGE, first + (at + block.room - 1) // PAGE + 1)

    def touched(self):
        """For the address of each page: does an allocation lie on it? The others are reserved only."""
        return {start: start < top for region, top in zip(self.regions, self.tops)
                for start in range(region.start, region.start + region.room, PAGE)}

    def exists(self):
        """Is there a graph or an executable that it belongs to?"""
        return self.graph.handle in world.graphs or self.graph.execs > 0

    def over(self):
        """Neither graph nor executable, nothing held, nothing under way that takes a GPU time: another graph can have the range."""
        return (not self.exists() and not any(region.owned.things for region in self.regions)
                and (self.last is None or engine.settled(self.last)))


def at(address):
    """The block of a graph that was placed last at an address, or None."""
    region = memory.memory().region_at(address)
    return region.home.latest.get(address) if region is not None and isinstance(region.home, Place) else None


def place_of(graph):
    if graph.place is None:
        graph.place = Place(graph)
    return graph.place


# ---- ranges ----

class Ranges:
    """The ranges of all graphs. holes: start -> bytes, what lies free between them, never side by side."""

    def __init__(self):
        self.places, self.holes = [], {memory.GRAPHS: memory.LAST - memory.GRAPHS}


def _ranges():
    """Those of now: ranges of graphs that are over are free."""
    if world.graph_ranges is None:
        world.graph_ranges = Ranges()
    found = world.graph_ranges
    for place in [place for place in found.places if place.over()]:
        found.places.remove(place)
        for region in place.regions:
            memory.memory().spans.remove(region)
            _return(found.holes, region.start, region.room)
    return found


def _return(holes, start, room):
    for other, length in list(holes.items()):
        if other + length == start or start + room == other:
            del holes[other]
            start, room = min(start, other), room + length
    holes[start] = room


def _take(holes, start, room):
    length = holes.pop(start)
    if length > room:
        holes[start + room] = length - room


def _range(place, room):
    """A region for a graph at the lowest free addresses."""
    found = _ranges()
    if place not in found.places:
        found.places.append(place)
    start = min(start for start, length in found.holes.items() if length >= room)
    _take(found.holes, start, room)
    return memory.memory().region(place, start, room)


def _lengthen(region, room):
    """Make a region longer, if the addresses behind it are free."""
    holes, end = _ranges().holes, region.start + region.room
    if holes.get(end, 0) < room:
        return False
    _take(holes, end, room)
    region.room += room
    return True
