"""Graph Management: a node of any kind, described by cudaGraphNodeParams.

For each type there is what adds such a node, what sets it in a graph, and what sets it in an executable.
"""
from labkit.errors import NotSimulated, Undefined
from .. import graph as graphs, stream as streams, transfer, update, work
from ..node_structs import cudaGraphNodeParams
from ..world import Refused
from ._names import ExecToSet, Graph, Node, Nodes, Struct, name, size_t
from .graph import EdgeData, looked_up, to_node
from .nodes import given, host_job, kernel_job, memset_job

Params = Struct(cudaGraphNodeParams)


def _copy_job(owner, params):
    """A copy of one row in linear memory; rows and planes that are skipped count as bytes."""
    p = params.copyParams
    if int(p.srcArray) or int(p.dstArray):
        _absent("a copy from or to a CUDA array")
    if p.extent.height > 1 or p.extent.depth > 1:
        _absent("a copy of more than one row")
    at = [end.ptr + pos.x + end.pitch * (pos.y + end.ysize * pos.z) for end, pos in ((p.dstPtr, p.dstPos), (p.srcPtr, p.srcPos))]
    return transfer.copy_node(owner, *at, p.extent.width * p.extent.height * p.extent.depth, int(p.kind))


def _absent(what):
    raise NotSimulated(f"A node's parameters describe {what}.", "Such nodes exist; the simulator does not have them.",
                       "Run this on a GPU, or use a node of another kind.")


def _graph_of(params):
    if int(params.ownership) != 0:
        _absent("a child graph that is moved into its node")
    return graphs.graph_of(int(params.graph))


def _event_of(params):
    return streams.event_of_node(int(params.event))


JOBS = {    # the end of a type's name: what gives the work of such a node, for the graph or executable that owns it
    "Kernel": lambda owner, params: kernel_job(params.kernel),
    "Memcpy": lambda owner, params: _copy_job(owner, params.memcpy),
    "Memset": lambda owner, params: memset_job(owner, params.memset),
    "Host": lambda owner, params: host_job(params.host),
    "Empty": lambda owner, params: work.Work(),
    "WaitEvent": lambda owner, params: work.EventWait(_event_of(params.eventWait)),
    "EventRecord": lambda owner, params: work.EventRecord(_event_of(params.eventRecord)),
}
ABSENT = {"ExtSemaphoreSignal": "a signal to a semaphore of another API", "ExtSemaphoreWait": "a wait for a semaphore of another API",
          "MemAlloc": "an allocation", "MemFree": "a free", "Conditional": "a condition"}


def _kind(params):
    """The kind that the parameters are of. What is no kind is an invalid value."""
    kind = getattr(given(params).type, "name", "").removeprefix("cudaGraphNodeType")
    if kind not in JOBS and kind not in ABSENT and kind != "Graph":
        raise Refused("InvalidValue")
    if kind == "Kernel" and not params.kernel.func:
        _other_than_a_kernel(params)
    return kind


def _other_than_a_kernel(params):
    """A kernel's function is looked up before its node's kind is compared, and it lies where other kinds have their first field."""
    for member, first in (("memset", "dst"), ("host", "fn"), ("graph", "graph"), ("eventWait", "event"), ("eventRecord", "event")):
        if int(getattr(getattr(params, member), first)):
            raise Undefined(f"The type of a node's parameters says Kernel, and {member} was filled in.",
                            f"Both lie in the same place, so CUDA takes {member}.{first} for the kernel's function: "
                            "a GPU answers one thing today, another tomorrow, or the process crashes.",
                            "Set type to the kind that you fill in.")


def _simulated(kind):
    if kind in ABSENT:
        _absent(ABSENT[kind])


def _add(graph, dependencies, params):
    kind, before = _kind(params), looked_up(dependencies)
    _simulated(kind)
    if kind == "Graph":
        return to_node(graphs.add_child(graph, _graph_of(params.graph), before))
    return to_node(graphs.add(graph, JOBS[kind](graph, params), before))


@name(gives=1, lines=(12,))
def cudaGraphAddNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, nodeParams: Params):
    return _add(graph, pDependencies, nodeParams)


def _add_with_data(graph: Graph, pDependencies: Nodes, dependencyData: EdgeData, numDependencies: size_t, nodeParams: Params):
    return _add(graph, pDependencies, nodeParams)


name(gives=1, lines=(12,), called="cudaGraphAddNode_v2")(_add_with_data)
name(gives=1, lines=(13,), called="cudaGraphAddNode")(_add_with_data)


@name()
def cudaGraphNodeSetParams(node: Node, nodeParams: Params):
    kind = update.same_kind(node, _kind(nodeParams))
    _simulated(kind)
    if kind == "Graph":
        graphs.set_child(node, _graph_of(nodeParams.graph))
    else:
        update.set_node(node, kind, lambda owner: JOBS[kind](owner, nodeParams))


@name()
def cudaGraphExecNodeSetParams(graphExec: ExecToSet, node: Node, nodeParams: Params):
    kind = update.same_kind(node, _kind(nodeParams))
    _simulated(kind)
    if kind == "Graph":
        update.set_child_in(graphExec, node, _graph_of(nodeParams.graph))
    else:
        update.set_in(graphExec, node, kind, lambda owner: JOBS[kind](owner, nodeParams))
