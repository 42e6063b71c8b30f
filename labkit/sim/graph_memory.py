"""Graph memory: the pages of the device behind the allocations of graphs, and what a launch may allocate.

Programming Guide, CUDA Graphs, "Graph Memory Nodes". Pages come with the first upload or launch, when the call is made, and
stay, whatever is freed or destroyed, until a trim. Graphs that run one after the other share them.
"""
from . import engine, memory
from .ranges import PAGE
from .world import Refused, world

AUTO_FREE = 1                                           # the instantiation flag
USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)     # cudaGraphMemAttributeType


class Page:
    """held: allocations that lie on it now. op: its last work, a free outside of graphs as well. user, stream: whose the last launch
    on it was, and where. used: was it ever more than reserved."""
    __slots__ = ("held", "op", "stream", "user", "used")

    def __init__(self):
        self.held, self.op, self.stream, self.user, self.used = 0, None, None, None, False

    def open_to(self, user, stream):
        """Nothing is held on it, and its last work is over, or the last launch on it was in this stream, or this user's own. The stream
        of a free since then does not count, nor does an order by events."""
        return not self.held and (self.op is None or self.stream is stream or self.user is user or engine.settled(self.op))


class Pages:
    """All pages of graph memory, the newest last; at: address -> the page that lay there last, whichever graph has the range now.
    lost: how many a launch took that did not find enough of them."""

    def __init__(self):
        self.all, self.at, self.lost, self.high = [], {}, 0, {USED: 0, RESERVED: 0}

    def now(self):
        """Bytes used and reserved; the high marks follow."""
        found = {USED: sum(page.used for page in self.all) * PAGE, RESERVED: (len(self.all) + self.lost) * PAGE}
        self.high = {what: max(size, self.high[what]) for what, size in found.items()}
        return found


def _pages():
    if world.graph_pages is None:
        world.graph_pages = Pages()
    return world.graph_pages


class Needs:
    """What an executable allocates and frees, and the pages of its last launch."""

    def __init__(self, graph):
        self.place, self.allocates, self.frees = graph.place, dict(graph.allocates), dict(graph.frees)
        self.kept = [block for block in self.allocates if block not in self.frees]
        self.foreign = [block for block in self.frees if block not in self.allocates]
        self.touched = self.place.touched() if self.allocates else {}
        self.pages = []

    def __bool__(self):
        return bool(self.allocates or self.frees)

    def check(self, flags):
        """What the graph allocates must be free by now, or is freed before the launch where the executable was instantiated
        so; what it frees must be there. Returns what is freed first."""
        held = [block for block in self.allocates if block.owned]
        if held and not flags & AUTO_FREE or any(not block.owned for block in self.foreign):
            raise Refused("InvalidValue")
        return held

    def take(self, stream):
        """Pages for a launch or upload in a stream: those at its addresses, unless they are in use by others. The others it takes from
        the last one on: first the newest that are free for it, then new ones. So a page that others used may come where this graph
        only reserves, and a new one where it allocates."""
        if not self.touched:
            return
        pages, own = _pages(), {id(page) for block in self.allocates for page in block.pages}
        last = [pages.at.get(address) for address in self.touched]
        kept = [page if page is not None and (id(page) in own or page.open_to(self, stream)) else None for page in last]
        missing = kept.count(None)
        if missing:
            mine = {id(page) for page in kept}
            free = [page for page in reversed(pages.all) if id(page) not in mine and (id(page) in own or page.open_to(self, stream))][:missing]
            free += _new(missing - len(free))
            kept = [page or free.pop(0) for page in reversed(kept)][::-1]
        self.pages = kept
        pages.at.update(zip(self.touched, kept))
        for page, touched in zip(kept, self.touched.values()):
            page.used |= touched
        pages.now()

    def worked(self, op, stream):
        """The pages' last work is this."""
        for page in self.pages:
            page.op, page.stream, page.user = op, stream, self
        if self.place is not None:
            self.place.last = op

    def book(self, op, stream):
        """After a launch: what it leaves allocated is held, what it frees is not."""
        for block in self.allocates:
            if block.owned:
                memory.give_back(block, op, stream)
        self.worked(op, stream)
        for block in self.kept:
            memory.own(block)
            block.pages = tuple(self.pages[number] for number in self.place.pages_of(block))
            for page in block.pages:
                page.held += 1
        for block in self.foreign:
            memory.give_back(block, op, stream)


def _new(count):
    """New pages. A launch that needs more than the device has takes what there is, and nothing gives that back."""
    store, pages = memory.memory(), _pages()
    free = (memory.TOTAL - store.taken()) // PAGE
    if count > free:
        pages.lost += free
        store.pages += free
        pages.now()
        raise Refused("MemoryAllocation")
    made = [Page() for _ in range(count)]
    pages.all += made
    store.pages += count
    return made


def trim():
    """Give back every page on which nothing is held and no unfinished work is. A mere free takes a GPU no time."""
    pages = _pages()
    kept = [page for page in pages.all if page.held or page.op is not None and not engine.settled(page.op)]
    memory.memory().pages -= len(pages.all) - len(kept)
    pages.all, there = kept, set(kept)
    pages.at = {address: page for address, page in pages.at.items() if page in there}


def get(what):
    """A counter in bytes."""
    pages = _pages()
    now = pages.now()
    if what not in range(4):
        raise Refused("InvalidValue")
    return now[what] if what in now else pages.high[what - 1]


def reset(what, value):
    """A high mark becomes the current size; nothing else can be set."""
    if what not in (USED_HIGH, RESERVED_HIGH) or value:
        raise Refused("InvalidValue")
    pages = _pages()
    pages.high[what - 1] = pages.now()[what - 1]
