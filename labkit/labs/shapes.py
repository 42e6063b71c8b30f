"""Is the learner's graph the one that was asked for? Names and paths, and data for the pictures of both."""
from collections import Counter

import numpy as np

from labkit import arrays, graph as reading
from labkit.readback import Value, parameters


def words(labels):
    """"2 axpy, Memset"."""
    counted = Counter(labels)
    return ", ".join(f"{n} {label}" if n > 1 else label for label, n in counted.items()) or "no nodes"


class _Shape:
    """.labels: a kernel's name or a kind, by position. .edges: pairs of positions. With .kinds, .before and .parameters as changes.Read has them."""

    def _finish(self, labels, kinds, edges):
        self.labels, self.edges = labels, sorted(edges)
        self.kinds = ["child graph" if kind == "Graph" else kind for kind in kinds]      # its inside is not compared
        self.before = [[a for a, b in self.edges if b == k] for k in range(len(labels))]
        self.parameters = [{"kernel": Value(label, label)} if kind == "Kernel" else {} for label, kind in zip(labels, kinds)]
        self.paths = _paths(len(labels), self.edges)

    def __str__(self):
        return f"{len(self.labels)} node{'s' * (len(self.labels) != 1)}, {len(self.edges)} edge{'s' * (len(self.edges) != 1)}"

    def listed(self):
        """Nodes and edges in a line; nodes with equal labels have their positions in the edges."""
        own = [f"{label} {k}" if self.labels.count(label) > 1 else label for k, label in enumerate(self.labels)]
        listed = ", ".join(f"{own[a]} -> {own[b]}" for a, b in self.edges[:8]) + (" ..." if len(self.edges) > 8 else "")
        return f"{words(self.labels)}; edges: {listed or 'none'}"


class Wanted(_Shape):
    """A shape in words: {name: label}, [(name, name)]."""

    def __init__(self, nodes, edges):
        place, labels = {name: k for k, name in enumerate(nodes)}, list(nodes.values())
        kinds = [label if label[:1].isupper() else "Kernel" for label in labels]       # kernels have small names, kinds of nodes do not
        self._finish(labels, kinds, [(place[a], place[b]) for a, b in edges])


class Found(_Shape):
    """The shape of a graph as CUDA hands it back. .handles: its nodes."""

    def __init__(self, graph):
        self.handles = reading.nodes(graph)
        kinds = [reading.kind(node) for node in self.handles]
        self._finish([label(node, kind) for node, kind in zip(self.handles, kinds)], kinds, reading.edges(graph))


def label(node, kind):
    """The kernel's name of a kernel node, else its kind."""
    kernel = parameters(node, kind).get("kernel") if kind == "Kernel" else None
    return kernel.text if kernel else kind


def _paths(count, edges):
    """[the nodes that node k reaches, by one edge or by many]."""
    after = [{b for a, b in edges if a == k} for k in range(count)]
    while True:
        more = [here.union(*(after[b] for b in here)) for here in after]
        if more == after:
            return after
        after = more


def match(wanted, found):
    """[position in found for each node of wanted], or None: labels and paths agree."""
    count = len(wanted.labels)
    if Counter(wanted.labels) != Counter(found.labels):
        return None

    def seen_from(shape, k):
        return shape.labels[k], len(shape.paths[k]), sum(k in other for other in shape.paths)
    choices = [[j for j in range(count) if seen_from(found, j) == seen_from(wanted, k)] for k in range(count)]

    def place(chosen):
        k = len(chosen)
        if k == count:
            return chosen
        for j in choices[k]:
            if j not in chosen and all((k in wanted.paths[i]) == (j in found.paths[c]) and (i in wanted.paths[k]) == (c in found.paths[j])
                                       for i, c in enumerate(chosen)):
                done = place([*chosen, j])
                if done:
                    return done
        return None
    return place([]) if count else []


def values_of(name, when, found, expected):
    """What a picture of two rows of values needs, read now: ("values", name, when, expected, found)."""
    found = arrays.to_host(found) if isinstance(found, arrays.DeviceArray) else np.asarray(found)
    return "values", name, when, np.asarray(expected, np.float64).reshape(-1), np.asarray(found, np.float64).reshape(-1)
