"""The allocations of a graph: how large, where, and from when to when, read back from CUDA.

draw.addresses() draws them. A free belongs to the last allocation of its address that the graph runs before it.
"""
from dataclasses import dataclass

from labkit import graph as reading
from labkit.backend import cudart
from labkit.errors import LabError, ok

STEP = 512                               # bytes: CUDA rounds sizes up to it


@dataclass
class Block:
    """One allocation: bytes, offset (bytes above the lowest of its graph), and its places in the order; end is None where it is not freed."""
    bytes: int
    offset: int
    begin: int
    end: int | None = None
    after: tuple = ()                    # the blocks whose free it waits for

    @property
    def top(self):
        return self.offset + -(-self.bytes // STEP) * STEP


@dataclass
class Plan:
    """The blocks of one graph, how many places its order has, and how many frees of other graphs' memory."""
    blocks: list
    places: int
    foreign: int

    @property
    def addresses(self):
        return len({block.offset for block in self.blocks})

    @property
    def kept(self):
        """How many are not freed in the graph."""
        return sum(block.end is None for block in self.blocks)

    @property
    def again(self):
        """Whether some memory serves two of them."""
        return any(a.offset < b.top and b.offset < a.top for k, a in enumerate(self.blocks) for b in self.blocks[:k])


def read(graph):
    """The Plan of a graph. Raises LabError for what is no graph.

    Stands for: CUDA Runtime API, cudaGraphMemAllocNodeGetParams, cudaGraphMemFreeNodeGetParams.
    """
    if not isinstance(graph, (cudart.cudaGraph_t, int)) or isinstance(graph, bool):
        raise LabError(f"draw.addresses() got {type(graph).__name__}.", "It draws a graph handle, as cudaStreamEndCapture returns it through ok().",
                       "Pass the graph itself; an executable can't be read, and a failed capture has none.")
    nodes, kinds = reading.nodes(graph), reading.kinds(graph)
    found = {kind: [i for i, each in enumerate(kinds) if each == kind] for kind in ("MemAlloc", "MemFree")}
    params = {i: ok(cudart.cudaGraphMemAllocNodeGetParams(nodes[i])) for i in found["MemAlloc"]}
    frees = {i: int(ok(cudart.cudaGraphMemFreeNodeGetParams(nodes[i]))) for i in found["MemFree"]}
    return plan(len(nodes), reading.edges(graph), {i: (int(each.dptr), int(each.bytesize)) for i, each in params.items()}, frees)


def plan(count, edges, taken, frees):
    """The Plan of `count` nodes and their edges. taken: {node: (address, bytes)}; frees: {node: address}."""
    before = {}
    for a, b in edges:
        before.setdefault(b, []).append(a)
    place, above = _order(count, before)
    freed = {}                                              # allocation: its free
    for strict in (True, False):                            # then frees to which no way leads from their allocation
        for free in sorted(set(frees) - set(freed.values()), key=place.__getitem__):
            found = [i for i, (address, _) in taken.items() if address == frees[free] and i not in freed and (above[free] >> i & 1 or not strict)]
            if found:
                freed[max(found, key=place.__getitem__)] = free
    low = min((address for address, _ in taken.values()), default=0)
    blocks = {i: Block(size, address - low, place[i], place[freed[i]] if i in freed else None) for i, (address, size) in taken.items()}
    for i, block in blocks.items():
        block.after = tuple(blocks[j] for j, free in freed.items() if above[i] >> free & 1)
    return Plan([blocks[i] for i in sorted(blocks, key=lambda i: (place[i], taken[i]))], max(place.values(), default=0) + 1, len(frees) - len(freed))


def _order(count, before):
    """({node: its place, the longest way to it}, {node: all nodes before it, as bits})"""
    place, above, left = {}, {}, list(range(count))
    while left:
        ready = [i for i in left if all(a in place for a in before.get(i, ()))]
        for i in ready:
            place[i] = max((place[a] + 1 for a in before.get(i, ())), default=0)
            above[i] = 0
            for a in before.get(i, ()):
                above[i] |= above[a] | 1 << a
        left = [i for i in left if i not in place]
    return place, above
