"""Updates: other work for the nodes of a graph, or of an executable that was made from it.

An executable's nodes are called by the handles of the graph it was made from. An update of either
leaves the other as it is, and reaches launches that come later, none that is queued already.
Rules: Runtime API, Graph Management, and Programming Guide, CUDA Graphs, "Updating Instantiated Graphs".
"""
from collections import deque

from . import graph_memory, user_object
from .world import Refused

ERROR, TOPOLOGY, NODE_TYPE, PARAMETERS = 1, 2, 3, 5         # results of a refused update
CAN_BE_DISABLED = ("Kernel", "Memset", "Memcpy")


class CannotUpdate(Refused):
    """A whole-graph update is refused. result: why; node: the node of the new graph at fault, or
    None; other: where the edge comes from that does not match, or None."""

    def __init__(self, result, node=None, other=None):
        super().__init__("GraphExecUpdateFailure")
        self.result, self.node, self.other = result, node, other


# ---- one node ----

def same_kind(node, kind):
    """A node stays a node of its kind; parameters of another are an invalid value."""
    if node.work.kind != kind:
        raise Refused("InvalidValue")
    return kind


def set_node(node, kind, make):
    """A node of a graph gets the work that `make(graph)` gives."""
    same_kind(node, kind)
    node.work = make(node.graph)


def set_in(made, node, kind, make):
    """A node of an executable gets the work that `make(executable)` gives."""
    jobs = level_of(made, node, kind).jobs
    job = make(made)
    if not fits(jobs[node], job):
        raise Refused("InvalidValue")
    jobs[node], made.plan = job, None


def set_child_in(made, node, graph):
    """The nodes inside a child node get the work of the nodes of a graph of the same form, and its user objects are held."""
    _apply(made, *changes(level_of(made, node, "Graph").jobs[node], graph))


def level_of(made, node, *kinds):
    """The level of an executable that a node is on. A node of another graph, one that was added
    later, or one of another kind is an invalid value."""
    level = made.level
    if node not in level.jobs:                  # inside a child node, perhaps
        for owner in _owners(node.graph):
            level = level.jobs.get(owner)
            if level is None:
                raise Refused("InvalidValue")
    if node not in level.jobs or level.jobs[node].kind not in kinds:
        raise Refused("InvalidValue")
    return level


def _owners(graph):
    """The child nodes that a graph lies in, the outermost first."""
    found = []
    while graph.node is not None:
        found.append(graph.node)
        graph = graph.node.graph
    return found[::-1]


def fits(old, new):
    """Can `new` take the place of `old` in an executable? A copy keeps its direction; a memset keeps
    its rows, and where it has several the rest of its shape."""
    if new.kind == "Memcpy":
        return new.direction == old.direction
    if new.kind == "Memset":
        return new.height == old.height and (new.height == 1 or _shape(new) == _shape(old))
    return True


def _shape(job):
    return job.size, job.width, job.pitch


# ---- enabled or not ----

def enable(made, node, on):
    """A disabled node runs nothing, and those after it still wait for those before it. Its
    parameters stay and can be set; no update enables or disables a node."""
    level_of(made, node, *CAN_BE_DISABLED)
    (made.disabled.discard if on else made.disabled.add)(node)
    made.plan = None


def is_enabled(made, node):
    level_of(made, node, *CAN_BE_DISABLED)
    return node not in made.disabled


# ---- a whole graph ----

def update(made, graph):
    """Every node of an executable gets the work of its counterpart in a graph of the same form: all or
    none. From then on the executable counts for this graph, and uses the memory that it allocates. The
    graph inside a child node is no source, nor is one with memory nodes that another executable counts for."""
    if graph.node is not None:
        raise Refused("InvalidValue")
    if graph.memory and graph.execs and made.graph is not graph:
        raise Refused("NotSupported")
    _apply(made, *changes(made.level, graph))
    made.graph.execs -= 1
    graph.execs += 1
    made.graph, made.memory = graph, graph_memory.Needs(graph)


def _apply(made, found, levels):
    for jobs, node, job in found:
        jobs[node] = job
    made.plan = None
    user_object.let_go_after(made.last, user_object.take(levels))


def changes(level, graph):
    """What an update would put in place, as [(jobs, node, new work)] and, for the user objects, [(level, graph)]; or CannotUpdate."""
    found, levels, twins = [], [(level, graph)], pairs(level, graph)
    for node, old in level.jobs.items():
        twin = twins[node]
        new = twin.work
        if new.kind == "Graph":
            more, below = changes(old, new.graph)
            found += more
            levels += below
        elif not fits(old, new):
            raise CannotUpdate(PARAMETERS, twin)
        elif not _has_memory(new, graph):
            raise CannotUpdate(ERROR, twin)
        else:
            found.append((level.jobs, node, new))
    return found, levels


def _has_memory(job, graph):
    """Is the memory there that a memset sets? A copy whose memory is gone is undefined."""
    try:
        if job.kind in ("Memcpy", "Memset"):
            job.check(graph)
    except Refused:
        return False
    return True


def pairs(level, graph):
    """Each node of an executable with its counterpart in a graph, or CannotUpdate.

    The nodes that none waits for are paired first, the last one made with the last one made and so
    on backwards; then what two paired nodes wait for, in the order of their edges. The first pair on
    this way that does not match, in kind or in the number of edges, is the one that the refusal names.
    """
    before = level.before
    if len(before) != len(graph.nodes):
        raise CannotUpdate(TOPOLOGY)
    here, there = _ends(before), _ends({node: node.before for node in graph.nodes})
    if len(there) > len(here):
        raise CannotUpdate(TOPOLOGY, there[len(here)])
    found, taken = {}, set()
    queue = deque([(a, b, None) for a, b in zip(here, there)])
    while queue:
        node, twin, after = queue.popleft()
        if node in found or twin in taken:
            if found.get(node) is not twin:
                raise CannotUpdate(TOPOLOGY, after, twin)
            continue
        found[node] = twin
        taken.add(twin)
        if level.jobs[node].kind != twin.work.kind:
            raise CannotUpdate(NODE_TYPE, twin)
        if len(before[node]) != len(twin.before):
            raise CannotUpdate(TOPOLOGY, twin)
        queue += [(a, b, twin) for a, b in zip(before[node], twin.before)]
    if len(found) < len(before):
        raise CannotUpdate(TOPOLOGY)
    return found


def _ends(before):
    """The nodes that none waits for, the last one made first."""
    inner = {node for nodes in before.values() for node in nodes}
    return [node for node in reversed(before) if node not in inner]
