"""Graph Management: adding nodes of each kind, and reading their parameters."""
from labkit.errors import NotSimulated
from .. import device_pools as pools, graph as graphs, kernels, structs, transfer, values, work
from ..world import Refused
from ._names import Enum, Graph, Node, NodeEvent, Nodes, Pointer, Struct, name, size_t
from .graph import looked_up, to_node

Kind = Enum("cudaMemcpyKind")


def given(params):
    """Parameters passed as null are an invalid value."""
    if params is None:
        raise Refused("InvalidValue")
    return params


def _add(graph, dependencies, job):
    return to_node(graphs.add(graph, job, looked_up(dependencies)))


def _of(node, kind):
    return graphs.node_of(node.handle, kind).work


def kernel_job(params):
    grid, block = ((d.x, d.y, d.z) for d in (params.gridDim, params.blockDim))
    kernel = kernels.kernel_of(params.func)
    return work.Kernel(kernel, grid, block, params.sharedMemBytes, kernels.arguments(kernel, params.kernelParams))


def memset_job(graph, params):
    return transfer.fill_job(graph, params.dst, params.value, params.elementSize, params.width, params.height, params.pitch)


def host_job(params):
    return work.host_node(int(params.fn), params.userData)


@name(gives=1)
def cudaGraphAddKernelNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, pNodeParams: Struct(structs.cudaKernelNodeParams)):
    return _add(graph, pDependencies, kernel_job(given(pNodeParams)))


@name(gives=1)
def cudaGraphAddMemsetNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, pMemsetParams: Struct(structs.cudaMemsetParams)):
    return _add(graph, pDependencies, memset_job(graph, given(pMemsetParams)))


@name(gives=1)
def cudaGraphAddMemcpyNode1D(graph: Graph, pDependencies: Nodes, numDependencies: size_t, dst: Pointer, src: Pointer, count: size_t, kind: Kind):
    return _add(graph, pDependencies, transfer.copy_node(graph, dst, src, count, kind))


@name(gives=1)
def cudaGraphAddHostNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, pNodeParams: Struct(structs.cudaHostNodeParams)):
    return _add(graph, pDependencies, host_job(given(pNodeParams)))


@name(gives=1)
def cudaGraphAddEmptyNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t):
    return _add(graph, pDependencies, work.Work())


@name(gives=1)
def cudaGraphAddChildGraphNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, childGraph: Graph):
    return to_node(graphs.add_child(graph, childGraph, looked_up(pDependencies)))


@name(gives=1)
def cudaGraphAddEventRecordNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, event: NodeEvent):
    return _add(graph, pDependencies, work.EventRecord(event))


@name(gives=1)
def cudaGraphAddEventWaitNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, event: NodeEvent):
    return _add(graph, pDependencies, work.EventWait(event))


@name(gives=1)
def cudaGraphAddMemAllocNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, nodeParams: Struct(structs.cudaMemAllocNodeParams)):
    pools.check(given(nodeParams).poolProps)
    if nodeParams.accessDescs or nodeParams.accessDescCount:
        raise NotSimulated("An allocation node says which other devices may use its memory.", "The simulator has one device.", "Run this on a GPU.")
    node, nodeParams.dptr = transfer.allocate_node(graph, nodeParams.bytesize, looked_up(pDependencies))
    return to_node(node)


@name(gives=1)
def cudaGraphAddMemFreeNode(graph: Graph, pDependencies: Nodes, numDependencies: size_t, dptr: Pointer):
    return to_node(transfer.free_node(graph, dptr, looked_up(pDependencies)))


@name(gives=1)
def cudaGraphKernelNodeGetParams(node: Node):
    _of(node, "Kernel")
    raise Refused("InvalidDeviceFunction")      # the bindings launch driver handles, which it cannot name


@name(gives=1)
def cudaGraphMemsetNodeGetParams(node: Node):
    job, params = _of(node, "Memset"), structs.cudaMemsetParams()
    params.dst, params.value, params.elementSize = job.dst, job.value, job.size
    params.width, params.height, params.pitch = job.width, job.height, job.pitch
    return params


@name(gives=1)
def cudaGraphHostNodeGetParams(node: Node):
    job, params = _of(node, "Host"), structs.cudaHostNodeParams()
    params.fn, params.userData = job.function, job.argument
    return params


@name(gives=1)
def cudaGraphChildGraphNodeGetGraph(node: Node):
    return values.cudaGraph_t(_of(node, "Graph").graph.handle)


@name(gives=1)
def cudaGraphEventRecordNodeGetEvent(node: Node):
    return values.cudaEvent_t(_of(node, "EventRecord").event.handle)


@name(gives=1)
def cudaGraphEventWaitNodeGetEvent(node: Node):
    return values.cudaEvent_t(_of(node, "WaitEvent").event.handle)


@name(gives=1)
def cudaGraphMemAllocNodeGetParams(node: Node):
    block, params = _of(node, "MemAlloc").block, structs.cudaMemAllocNodeParams()
    params.bytesize, params.dptr = block.size, block.start
    params.poolProps.allocType = values.enum("cudaMemAllocationType").cudaMemAllocationTypePinned
    params.poolProps.location.type = values.enum("cudaMemLocationType").cudaMemLocationTypeDevice
    return params


@name(gives=1)
def cudaGraphMemFreeNodeGetParams(node: Node):
    return _of(node, "MemFree").block.start
