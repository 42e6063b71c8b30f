"""What differs between two graphs, as lines of text.

    draw.differences(old, new)            node 1 (Kernel): grid 4 -> 8, n 1024 -> 2048

What can be read back is compared: kinds, edges, what a kernel was launched with, a memset, the size of an
allocation, events, child graphs. The parameters of copies and host functions are not.
"""
from dataclasses import dataclass

from labkit import graph as reading
from labkit.errors import LabError
from labkit.pairing import pairs, together
from labkit.readback import changed, parameters


@dataclass(frozen=True, repr=False)
class Difference:
    """One difference. what: "node added", "node removed", "kind", "parameter", "edge added" or "edge removed".

    old, new: positions in nodes(graph), or pairs of them for an edge; None where there is none. kind: of the node.
    words: what changed, such as ("grid 4 -> 8", "n 1024 -> 2048"). inside: of a child graph, where it is.
    """
    what: str
    old: object
    new: object
    kind: str = ""
    words: tuple = ()
    inside: str = ""

    @property
    def own(self):
        """The line without where it is inside of."""
        if self.what.startswith("edge"):
            a, b = self.old or self.new
            return f"edge {a} -> {b}: {self.what.removeprefix('edge ')}"
        place = self.new if self.old is None else f"{self.old}, now {self.new}" if self.new not in (None, self.old) else self.old
        words = ", ".join(self.words)
        return f"node {place}: {self.kind} {words}" if self.what == "kind" else f"node {place} ({self.kind}): {words}"

    def __repr__(self):
        return self.inside + self.own


class Differences(list):
    """A list of Difference that shows itself as one line each."""

    def __repr__(self):
        return "\n".join(map(repr, self)) or "no difference that can be read back"


class Read:
    """A graph, read once: .kinds, .edges, .before (what each node waits for), .parameters, by position in nodes(graph)."""

    def __init__(self, handle, which):
        if handle is None or isinstance(handle, reading.NO_HANDLE):
            raise LabError(f"draw.difference() got {type(handle).__name__} as the {which} graph.",
                           "It compares two graph handles, as cudaStreamEndCapture returns them through ok().",
                           "Pass the graphs themselves; an executable can't be read back, so keep the graph it was made from.")
        nodes = reading.nodes(handle)
        self.kinds, self.edges = [reading.kind(node) for node in nodes], reading.edges(handle)
        place = {int(node): i for i, node in enumerate(nodes)}
        self.before = [[place[int(other)] for other in reading.dependencies(node)] for node in nodes]
        self.parameters = [parameters(node, kind) for node, kind in zip(nodes, self.kinds)]

    def __str__(self):
        return f"{len(self.kinds):,} node{'s' * (len(self.kinds) != 1)}, {len(self.edges):,} edge{'s' * (len(self.edges) != 1)}"


def differences(old, new):
    """What differs between two graphs: a list of Difference that prints one line each, without addresses and the same on every machine.

    Nodes are paired as cudaGraphExecUpdate pairs them, or where it can't, in their order and by kind. Positions are those
    in nodes(old); of what was added, in nodes(new). Raises LabError for what is no graph.
    """
    return compare(Read(old, "old"), Read(new, "new"))[0]


def compare(old, new, inside=""):
    """(Differences, pairs of positions) of two graphs that were read."""
    paired = pairs(old, new)
    found, now = Differences(), dict(paired)
    for i, j in together(paired, len(old.kinds), len(new.kinds)):
        if j is None:
            found.append(Difference("node removed", i, None, old.kinds[i], ("removed",), inside))
        elif i is None:
            found.append(Difference("node added", None, j, new.kinds[j], ("added",), inside))
        elif old.kinds[i] != new.kinds[j]:
            found.append(Difference("kind", i, j, new.kinds[j], (f"instead of {old.kinds[i]}",), inside))
        elif old.kinds[i] == "Graph":
            children = [Read(graph, "child") for graph in (old.parameters[i]["graph"], new.parameters[j]["graph"])]
            found += compare(*children, f"{inside}node {i} (Graph), its ")[0]
        elif words := changed(old.parameters[i], new.parameters[j]):
            found.append(Difference("parameter", i, j, new.kinds[j], tuple(words), inside))
    kept, there = {(now.get(a), now.get(b)) for a, b in old.edges}, set(new.edges)
    found += [Difference("edge removed", (a, b), None, inside=inside) for a, b in old.edges if (now.get(a), now.get(b)) not in there]
    found += [Difference("edge added", None, edge, inside=inside) for edge in new.edges if edge not in kept]
    return found, paired


_WORDS = {"node added": ("node added", "nodes added"), "node removed": ("node removed", "nodes removed"),
          "kind": ("node of another kind", "nodes of another kind"), "parameter": ("node with other parameters", "nodes with other parameters"),
          "edge added": ("edge added", "edges added"), "edge removed": ("edge removed", "edges removed")}


def summary(found):
    """Differences in a few words: "1 node added, 2 nodes with other parameters, 1 edge removed"."""
    counts = {what: len([d for d in found if d.what == what and not d.inside]) for what in _WORDS}
    words = [f"{count:,} {_WORDS[what][count != 1]}" for what, count in counts.items() if count]
    children = len({d.inside.partition(",")[0] for d in found if d.inside})
    words += [f"{children:,} child graph{'s' * (children != 1)} that differ{'s' * (children == 1)} inside"] if children else []
    return ", ".join(words) or repr(Differences())
