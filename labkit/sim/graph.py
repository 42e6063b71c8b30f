"""Graphs: nodes, and edges that say which node waits for which."""
from graphlib import CycleError, TopologicalSorter

from labkit.errors import Undefined
from . import user_object, work
from .world import Refused, find, find_alive, world


class Node:
    """One node: its work, and the nodes it waits for."""
    __slots__ = ("handle", "graph", "work", "before")

    def __init__(self, graph, work, before):
        self.handle, self.graph, self.work, self.before = world.handle("node"), graph, work, tuple(before)


class Graph:
    """A set of nodes. `node` is the child node that owns it, for a graph inside a graph."""

    def __init__(self, node=None):
        self.handle, self.number, self.node = world.handle("graph"), world.number(), node
        self.nodes = {}                         # node -> None, in the order of making
        self.allocates = {}                     # block -> None, allocated by a node here
        self.frees = {}                         # block -> None, freed by a node here
        self.place = None                       # where its allocations lie
        self.memory = False                     # does it count as one that allocates or frees?
        self.execs = 0                          # executables of this graph that exist
        self.twins = {}                         # node of the graph that this was cloned from -> node here
        self.objects = {}                       # user object -> references that it holds
        world.graphs[self.handle] = self


def graph_of(handle):
    return find(world.graphs, handle, "InvalidValue")


def node_of(handle, kind=None):
    """The node behind a handle; asked for another kind than it is, an invalid value."""
    node = find_alive(world.nodes, handle, "InvalidValue", "node")
    if kind is not None and node.work.kind != kind:
        raise Refused("InvalidValue")
    return node


def create(flags=0):
    """Flags are for future use and must be 0."""
    if flags:
        raise Refused("InvalidValue")
    return Graph()


def destroy(graph):
    """A graph goes with its nodes; executables made from it do not need it. The graph inside a
    child node belongs to that node."""
    if graph.node is not None:
        raise Refused("InvalidValue")
    _forget(graph)


def _forget(graph):
    stack = [graph]
    while stack:
        graph = stack.pop()
        world.graphs.pop(graph.handle, None)
        held, graph.objects = graph.objects, {}
        user_object.let_go(held)
        for node in graph.nodes:
            world.nodes.pop(node.handle, None)
            if node.work.kind == "Graph":
                stack.append(node.work.graph)


def check(graph, before):
    """What a node waits for are nodes of its graph, none of them twice."""
    if len(before) > 1 and len(set(before)) != len(before) or any([node.graph is not graph for node in before]):
        raise Refused("InvalidValue")


def add(graph, job, before=()):
    """A new node that waits for the nodes `before`."""
    check(graph, before)
    node = Node(graph, job, before)
    graph.nodes[node] = None
    world.nodes[node.handle] = node
    if job.kind == "Graph":
        job.graph.node = node
    return node


def dependents(node):
    """The nodes that wait for `node`. Found by looking: few ask, and every node would pay for a list."""
    return [other for other in node.graph.nodes if node in other.before]


def _part(a, b):
    b.before = tuple([node for node in b.before if node is not a])


def add_child(graph, child, before):
    """A child node holds a copy of `child`. Graphs that allocate or free memory cannot be one."""
    if child is graph:
        raise Undefined("A graph was added to itself as a child.", "CUDA does not check for this: on a GPU the process crashes.",
                        "Add a clone of it (cudaGraphClone).")
    copy = clone(child)
    try:
        return add(graph, work.Child(copy), before)
    except Refused:
        _forget(copy)
        raise


def set_child(node, child):
    """Another graph, of any form, takes the place of the one inside a child node; that one itself cannot."""
    if child is node.work.graph:
        raise Refused("NotSupported")
    copy, old = clone(child), node.work.graph
    node.work, copy.node = work.Child(copy), node
    _forget(old)


def add_edges(graph, pairs):
    """Both ends belong to this graph, no node waits for itself, no edge is there already. The edges
    are added one after the other up to the first that is refused."""
    for a, b in pairs:
        if a.graph is not graph or b.graph is not graph or a is b or a in b.before:
            raise Refused("InvalidValue")
        b.before += (a,)


def remove_edges(graph, pairs):
    """Only an edge that is there can go, and none from a graph that allocates or frees memory."""
    _refuse_if_memory(graph)
    for a, b in pairs:
        if a.graph is not graph or b.graph is not graph or a not in b.before:
            raise Refused("InvalidValue")
        _part(a, b)


def remove(node):
    """A node goes with its edges; not from a graph that allocates or frees memory."""
    _refuse_if_memory(node.graph)
    for other in dependents(node):
        _part(node, other)
    del node.graph.nodes[node], world.nodes[node.handle]
    node.graph = None                           # a capture that would go on from here cannot
    if node.work.kind == "Graph":
        _forget(node.work.graph)


def _refuse_if_memory(graph):
    if graph.memory:
        raise Refused("NotSupported")


def edges(graph):
    return [(a, b) for b in graph.nodes for a in b.before]


def roots(graph):
    return [node for node in graph.nodes if not node.before]


def clone(graph):
    """The same nodes, edges, parameters and user objects as they are now, child graphs too. A graph that
    allocates or frees memory cannot be cloned: its addresses are its own."""
    _refuse_if_memory(graph)
    copy, twin = Graph(), {}
    for node in graph.nodes:
        job = work.Child(clone(node.work.graph)) if node.work.kind == "Graph" else node.work
        twin[node] = add(copy, job)
    for node in graph.nodes:
        twin[node].before = tuple([twin[other] for other in node.before])
    copy.twins, copy.objects = twin, user_object.share(graph.objects)
    return copy


def in_clone(node, copy):
    """What became of a node in a clone of its graph: it must have been there, and must still be."""
    twin = copy.twins.get(node)
    if twin is None or twin not in copy.nodes:
        raise Refused("InvalidValue")
    return twin


def order(graph):
    """The nodes in an order in which each follows those it waits for. A cycle has none."""
    done = set()
    for node in graph.nodes:                    # a captured graph's nodes came in such an order
        if any([other not in done for other in node.before]):
            break
        done.add(node)
    else:
        return list(graph.nodes)
    try:
        return list(TopologicalSorter({node: node.before for node in graph.nodes}).static_order())
    except CycleError:
        raise Refused("InvalidValue") from None


def unreached(goals, start):
    """The nodes of `goals` that are NOT among `start` and all that `start` waits for."""
    left, seen, stack = set(goals), set(), list(start)
    while stack and left:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            left.discard(node)
            stack.extend(node.before)
    return left


def dot(graph):
    """The graph in the DOT language, in the shape of the driver's own output."""
    lines = ["digraph dot {"]
    stack = [graph]
    while stack:
        graph = stack.pop()
        name = f"graph_{graph.number}"
        place = {node: f'"{name}_node_{i}"' for i, node in enumerate(graph.nodes)}
        lines += [f"subgraph cluster_{graph.number} {{", f'label="{name}" graph[style="dashed"];']
        for i, (node, mark) in enumerate(place.items()):
            lines.append(f'{mark}[style="solid" shape="rectangle" label="{i}\n{_label(node.work)}\n"];')
            if node.work.kind == "Graph":
                stack.append(node.work.graph)
        lines += [f"{place[a]} -> {place[b]} ;" for a, b in edges(graph)] + ["}"]
    return "\n".join(lines + ["}", ""])


def write_dot(graph, path):
    """The DOT text as a file. A path that cannot be written is refused."""
    try:
        with open(path, "w") as file:
            file.write(dot(graph))
    except OSError:
        raise Refused("OperatingSystem") from None


def _label(job):
    if job.kind == "Kernel":
        return f"{job.kernel.name}\n\\<\\<\\<{job.grid[0]},{job.block[0]},{job.shared}\\>\\>\\>"
    return {"Memset": "MEMSET", "Memcpy": "MEMCPY", "Host": "HOST", "Graph": "GRAPH", "Empty": "EMPTY",
            "EventRecord": "EVENT_RECORD", "WaitEvent": "EVENT_WAIT", "MemAlloc": "MEM_ALLOC", "MemFree": "MEM_FREE"}[job.kind]
