"""Graph Management: new parameters for nodes of a graph, and of an executable."""
from labkit.errors import Undefined
from .. import graph as graphs, structs, transfer, update, values, work
from ._names import Enum, Exec, ExecToSet, Graph, Node, NodeEvent, Pointer, Struct, c_uint, name, size_t
from .nodes import given, host_job, kernel_job, memset_job

Kind = Enum("cudaMemcpyKind")


# ---- a node of a graph ----

@name()
def cudaGraphKernelNodeSetParams(node: Node, pNodeParams: Struct(structs.cudaKernelNodeParams)):
    update.set_node(node, "Kernel", lambda owner: kernel_job(given(pNodeParams)))


@name()
def cudaGraphMemsetNodeSetParams(node: Node, pNodeParams: Struct(structs.cudaMemsetParams)):
    update.set_node(node, "Memset", lambda owner: memset_job(owner, given(pNodeParams)))


@name()
def cudaGraphHostNodeSetParams(node: Node, pNodeParams: Struct(structs.cudaHostNodeParams)):
    update.set_node(node, "Host", lambda owner: host_job(given(pNodeParams)))


@name()
def cudaGraphMemcpyNodeSetParams1D(node: Node, dst: Pointer, src: Pointer, count: size_t, kind: Kind):
    update.set_node(node, "Memcpy", lambda owner: transfer.copy_node(owner, dst, src, count, kind))


@name()
def cudaGraphEventRecordNodeSetEvent(node: Node, event: NodeEvent):
    update.set_node(node, "EventRecord", lambda owner: work.EventRecord(event))


@name()
def cudaGraphEventWaitNodeSetEvent(node: Node, event: NodeEvent):
    update.set_node(node, "WaitEvent", lambda owner: work.EventWait(event))


@name(gives=1)
def cudaGraphNodeFindInClone(originalNode: Node, clonedGraph: Graph):
    return values.cudaGraphNode_t(graphs.in_clone(originalNode, clonedGraph).handle)


# ---- a node of an executable ----

@name()
def cudaGraphExecKernelNodeSetParams(hGraphExec: ExecToSet, node: Node, pNodeParams: Struct(structs.cudaKernelNodeParams)):
    if pNodeParams is None:                     # the other setters refuse null
        raise Undefined("A kernel node of an executable was to be set with None for its parameters.",
                        "CUDA does not check for this: on a GPU the process crashes here.",
                        "Pass a cudaKernelNodeParams, such as kernel_params(kernel, ...) makes.")
    update.set_in(hGraphExec, node, "Kernel", lambda owner: kernel_job(pNodeParams))


@name()
def cudaGraphExecMemsetNodeSetParams(hGraphExec: ExecToSet, node: Node, pNodeParams: Struct(structs.cudaMemsetParams)):
    update.set_in(hGraphExec, node, "Memset", lambda owner: memset_job(owner, given(pNodeParams)))


@name()
def cudaGraphExecHostNodeSetParams(hGraphExec: ExecToSet, node: Node, pNodeParams: Struct(structs.cudaHostNodeParams)):
    update.set_in(hGraphExec, node, "Host", lambda owner: host_job(given(pNodeParams)))


@name()
def cudaGraphExecMemcpyNodeSetParams1D(hGraphExec: ExecToSet, node: Node, dst: Pointer, src: Pointer, count: size_t, kind: Kind):
    update.set_in(hGraphExec, node, "Memcpy", lambda owner: transfer.copy_node_told(owner, dst, src, count, kind))


@name()
def cudaGraphExecEventRecordNodeSetEvent(hGraphExec: ExecToSet, hNode: Node, event: NodeEvent):
    update.set_in(hGraphExec, hNode, "EventRecord", lambda owner: work.EventRecord(event))


@name()
def cudaGraphExecEventWaitNodeSetEvent(hGraphExec: ExecToSet, hNode: Node, event: NodeEvent):
    update.set_in(hGraphExec, hNode, "WaitEvent", lambda owner: work.EventWait(event))


@name()
def cudaGraphExecChildGraphNodeSetParams(hGraphExec: ExecToSet, node: Node, childGraph: Graph):
    update.set_child_in(hGraphExec, node, childGraph)


@name()
def cudaGraphNodeSetEnabled(hGraphExec: ExecToSet, hNode: Node, isEnabled: c_uint):
    update.enable(hGraphExec, hNode, isEnabled)


@name(gives=1)
def cudaGraphNodeGetEnabled(hGraphExec: ExecToSet, hNode: Node):
    return int(update.is_enabled(hGraphExec, hNode))


# ---- a whole graph ----

@name(gives=1)
def cudaGraphExecUpdate(hGraphExec: Exec, hGraph: Graph):
    update.update(hGraphExec, hGraph)
    return structs.cudaGraphExecUpdateResultInfo()
