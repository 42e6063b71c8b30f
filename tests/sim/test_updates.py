"""Updates: setters of graphs and of executables, whole-graph updates, nodes that are switched off."""
import ctypes
import gc
import time

import numpy as np
import pytest

from labkit import kernels, sim
from labkit.errors import NotSimulated, Undefined, ok
from labkit.sim import runtime as cu
from labkit.sim.world import Refused

INVALID, FAILURE, N = 1, 910, 64


def kernel_params(kernel, *values, grid=1, block=64, shared=0):
    """A cudaKernelNodeParams of the simulator."""
    params = cu.cudaKernelNodeParams()
    params.func, params.sharedMemBytes = int(kernel.func_on(cu)), shared
    params.gridDim.x, params.blockDim.x = grid, block
    params.kernelParams = (values, kernel._ctypes)
    return params


def fill(y, value, **more):
    return kernel_params(kernels.fill, y, value, N, **more)


def memset_params(dst, value, width=N, size=4, height=1, pitch=0):
    params = cu.cudaMemsetParams()
    params.dst, params.value, params.elementSize = dst, value, size
    params.width, params.height, params.pitch = width, height, pitch
    return params


def host_params(function):
    params, kept = cu.cudaHostNodeParams(), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda argument: function(argument))
    params.fn, params.userData = cu.cudaHostFn_t(ctypes.cast(kept, ctypes.c_void_p).value), 5
    return params, kept


def chain(*adders):
    """(graph, nodes): nodes one after the other; an adder is a name of an Add call and what follows the dependencies."""
    graph, nodes = ok(cu.cudaGraphCreate(0)), []
    for call, *more in adders:
        nodes.append(ok(getattr(cu, f"cudaGraphAdd{call}")(graph, nodes[-1:], len(nodes[-1:]), *more)))
    return graph, nodes


def kernel(y, value, **more):
    return "KernelNode", fill(y, value, **more)


def plus(y, x, a):
    """y += a * x"""
    return "KernelNode", kernel_params(kernels.axpy, y, x, a, N)


def instantiate(graph, flags=0):
    return ok(cu.cudaGraphInstantiate(graph, flags))


def run(lab, made, *buffers):
    """What the first elements of the buffers are after a launch."""
    ok(cu.cudaGraphLaunch(made, 0)), ok(cu.cudaStreamSynchronize(0))
    return [float(lab.read(y)[0]) for y in buffers]


def why(made, graph):
    """(code, result, error node, from node) of a whole-graph update, as numbers."""
    return tuple(map(int, sim.exec_update(made, graph)))


TOPOLOGY, TYPE, PARAMETERS = 2, 3, 5


# ---- one node of an executable ----

def test_a_kernel_setter_changes_the_executable_and_not_the_graph(lab):
    x, y = lab.buffer(value=0), lab.buffer(value=0)
    graph, (node,) = chain(kernel(x, 1.0))
    made = instantiate(graph)
    assert cu.cudaGraphExecKernelNodeSetParams(made, node, fill(y, 7.0, grid=2, block=16)) == (0,)
    assert run(lab, made, x, y) == [0, 7] and lab.read(y)[32] == 0
    assert cu.cudaGraphExecKernelNodeSetParams(made, node, kernel_params(kernels.scale, y, 3.0, N)) == (0,)
    assert run(lab, made, y) == [21] and run(lab, instantiate(graph), x) == [1]


@pytest.mark.parametrize("change", [dict(grid=0), dict(block=0), dict(block=4096), dict(shared=1 << 20)])
def test_an_impossible_kernel_update_changes_nothing(lab, change):
    y = lab.buffer(value=0)
    graph, (node,) = chain(kernel(y, 1.0))
    made = instantiate(graph)
    assert cu.cudaGraphExecKernelNodeSetParams(made, node, fill(y, 7.0, **change)) == (INVALID,)
    assert run(lab, made, y) == [1]
    assert cu.cudaGraphExecKernelNodeSetParams(made, node, fill(y, 7.0)) == (0,) and run(lab, made, y) == [7]


def test_arguments_are_read_when_the_setter_is_called(lab):
    y = lab.buffer(value=0)
    graph, (node,) = chain(kernel(y, 1.0))
    made, held = instantiate(graph), [ctypes.c_void_p(y), ctypes.c_float(2.0), ctypes.c_int(N)]
    params = fill(y, 0.0)
    params.kernelParams = array = np.array([ctypes.addressof(one) for one in held], np.uint64)
    for value in (2.0, 3.0):
        held[1].value = value
        ok(cu.cudaGraphExecKernelNodeSetParams(made, node, params))
        held[1].value = 99.0
        assert run(lab, made, y) == [value]
    assert array.size == 3


def test_an_update_reaches_later_launches_only(lab):
    x, y = lab.buffer(value=1), lab.buffer(value=0)
    graph, (node,) = chain(plus(y, x, 1.0))
    made = instantiate(graph)
    ok(cu.cudaGraphLaunch(made, 0))                  # queued: nothing has run yet
    ok(cu.cudaGraphExecKernelNodeSetParams(made, node, plus(y, x, 10.0)[1]))
    ok(cu.cudaGraphLaunch(made, 0))
    ok(cu.cudaGraphNodeSetEnabled(made, node, 0))
    assert run(lab, made, y) == [11]


def test_nodes_of_others_and_of_other_kinds_are_invalid_values(lab):
    y = lab.buffer(value=0)
    graph, nodes = chain(kernel(y, 1.0), ("MemsetNode", memset_params(y, 0)), ("EmptyNode",))
    made, (_, others) = instantiate(graph), chain(kernel(y, 1.0))
    later = ok(cu.cudaGraphAddKernelNode(graph, nodes, 3, fill(y, 5.0)))
    for node in (nodes[1], nodes[2], others[0], later, None):
        assert cu.cudaGraphExecKernelNodeSetParams(made, node, fill(y, 7.0)) == (INVALID,)
    assert cu.cudaGraphExecMemsetNodeSetParams(made, nodes[0], memset_params(y, 1)) == (INVALID,)
    assert cu.cudaGraphExecHostNodeSetParams(made, nodes[0], cu.cudaHostNodeParams()) == (INVALID,)
    assert cu.cudaGraphExecMemcpyNodeSetParams1D(made, nodes[0], y, y, 4, lab.D2D) == (INVALID,)
    assert cu.cudaGraphExecEventRecordNodeSetEvent(made, nodes[0], lab.event()) == (INVALID,)
    assert cu.cudaGraphExecEventWaitNodeSetEvent(made, nodes[0], lab.event()) == (INVALID,)
    assert cu.cudaGraphExecChildGraphNodeSetParams(made, nodes[0], graph) == (INVALID,)
    assert run(lab, made, y) == [0] and cu.cudaGraphExecKernelNodeSetParams(made, nodes[0], fill(y, 7.0)) == (0,)
    ok(cu.cudaGraphExecDestroy(made))
    assert cu.cudaGraphExecKernelNodeSetParams(made, nodes[0], fill(y, 7.0)) == (INVALID,)


def test_a_destroyed_node_is_undefined_to_use(lab):
    y = lab.buffer(value=0)
    graph, nodes = chain(kernel(y, 1.0))
    made = instantiate(graph)
    ok(cu.cudaGraphDestroy(graph))
    with pytest.raises(Undefined):
        cu.cudaGraphExecKernelNodeSetParams(made, nodes[0], fill(y, 7.0))
    assert run(lab, made, y) == [1]


def test_a_memset_keeps_its_rows(lab):
    y = lab.buffer(value=0)
    graph, (one, two) = chain(("MemsetNode", memset_params(y, 0)), ("MemsetNode", memset_params(y, 0, 4, 4, 2, 64)))
    made, five = instantiate(graph), int(np.float32(5).view(np.uint32))
    assert cu.cudaGraphExecMemsetNodeSetParams(made, one, memset_params(y, five, 8)) == (0,)
    assert cu.cudaGraphExecMemsetNodeSetParams(made, one, memset_params(y, five, 4, 4, 2, 64)) == (INVALID,)
    assert cu.cudaGraphExecMemsetNodeSetParams(made, two, memset_params(y + 4, 0, 4, 4, 2, 64)) == (0,)
    for other in (memset_params(y, 0, 5, 4, 2, 64), memset_params(y, 0, 4, 2, 2, 64), memset_params(y, 0, 4, 4, 2, 32), memset_params(y, 0, 0)):
        assert cu.cudaGraphExecMemsetNodeSetParams(made, two, other) == (INVALID,)
    assert run(lab, made, y) == [5] and not lab.read(y)[1:5].any() and (lab.read(y)[5:8] == 5).all() and not lab.read(y)[8:].any()


def test_a_copy_keeps_its_direction(lab):
    x, y, z = lab.buffer(value=1), lab.buffer(value=2), lab.buffer(value=0)
    host = np.full(N, 9, np.float32)
    graph, (node,) = chain(("MemcpyNode1D", z, x, 4 * N, lab.D2D))
    made = instantiate(graph)
    assert cu.cudaGraphExecMemcpyNodeSetParams1D(made, node, z, host, 4 * N, lab.H2D) == (INVALID,)
    assert cu.cudaGraphExecMemcpyNodeSetParams1D(made, node, z, y, 0, lab.D2D) == (INVALID,)
    assert run(lab, made, z) == [1]
    assert cu.cudaGraphExecMemcpyNodeSetParams1D(made, node, z, y, 8, lab.D2D) == (0,)
    assert run(lab, made, z) == [2] and lab.read(z)[2] == 1
    assert cu.cudaGraphMemcpyNodeSetParams1D(node, z, host, 4 * N, lab.H2D) == (0,)     # the graph's own node may turn round
    assert run(lab, instantiate(graph), z) == [9]


def test_host_and_event_nodes_are_set(lab):
    heard, one, two = [], lab.event(), lab.event()
    first, kept = host_params(lambda argument: heard.append(("first", argument)))
    second, kept_too = host_params(lambda argument: heard.append(("second", argument)))
    graph, (host, record, wait) = chain(("HostNode", first), ("EventRecordNode", one), ("EventWaitNode", one))
    made = instantiate(graph)
    assert cu.cudaGraphExecHostNodeSetParams(made, host, second) == (0,)
    assert cu.cudaGraphExecHostNodeSetParams(made, host, cu.cudaHostNodeParams()) == (INVALID,)
    assert cu.cudaGraphExecEventRecordNodeSetEvent(made, record, two) == (0,)
    assert cu.cudaGraphExecEventWaitNodeSetEvent(made, wait, two) == (0,)
    start = lab.event()
    ok(cu.cudaEventRecord(start, 0))
    run(lab, made)
    assert heard == [("second", 5)] and kept is not kept_too
    assert cu.cudaEventElapsedTime(start, one)[0] != 0               # never recorded
    with pytest.raises(NotSimulated, match="no clock"):
        cu.cudaEventElapsedTime(start, two)


def test_a_child_takes_a_graph_of_the_same_form(lab):
    x, y = lab.buffer(value=1), lab.buffer(value=0)
    child, _ = chain(plus(y, x, 1.0), plus(y, x, 2.0))
    graph, (node,) = chain(("ChildGraphNode", child))
    made = instantiate(graph)
    assert cu.cudaGraphExecChildGraphNodeSetParams(made, node, chain(plus(y, x, 10.0))[0]) == (FAILURE,)
    assert cu.cudaGraphExecChildGraphNodeSetParams(made, node, chain(plus(y, x, 10.0), ("EmptyNode",))[0]) == (FAILURE,)
    assert run(lab, made, y) == [3]
    assert cu.cudaGraphExecChildGraphNodeSetParams(made, node, chain(plus(y, x, 10.0), plus(y, x, 20.0))[0]) == (0,)
    assert run(lab, made, y) == [33] and run(lab, instantiate(graph), y) == [36]


def test_a_node_inside_a_child_is_set_by_the_child_nodes_own_copy(lab):
    x, y = lab.buffer(value=1), lab.buffer(value=0)
    child, (given,) = chain(plus(y, x, 1.0))
    graph, (node,) = chain(("ChildGraphNode", chain(("ChildGraphNode", child))[0]))
    made = instantiate(graph)
    middle = ok(cu.cudaGraphGetNodes(ok(cu.cudaGraphChildGraphNodeGetGraph(node)), 1))[0][0]
    inside = ok(cu.cudaGraphGetNodes(ok(cu.cudaGraphChildGraphNodeGetGraph(middle)), 1))[0][0]
    assert cu.cudaGraphExecKernelNodeSetParams(made, given, plus(y, x, 5.0)[1]) == (INVALID,)
    assert cu.cudaGraphExecKernelNodeSetParams(made, inside, plus(y, x, 5.0)[1]) == (0,)
    assert run(lab, made, y) == [5]
    ok(cu.cudaGraphNodeSetEnabled(made, inside, 0))
    assert run(lab, made, y) == [5]


def test_an_executable_does_not_follow_its_graph(lab):
    x, y = lab.buffer(value=1), lab.buffer(value=0)
    graph, (first, node) = chain(plus(y, x, 1.0), ("ChildGraphNode", chain(plus(y, x, 2.0))[0]))
    made = instantiate(graph)
    inside = ok(cu.cudaGraphGetNodes(ok(cu.cudaGraphChildGraphNodeGetGraph(node)), 1))[0][0]
    for one in (first, inside):
        assert cu.cudaGraphKernelNodeSetParams(one, plus(y, x, 100.0)[1]) == (0,)
    assert run(lab, made, y) == [3] and run(lab, instantiate(graph), y) == [203]


# ---- a node of a graph ----

def test_setters_of_a_graph_change_its_nodes(lab):
    y, one, two = lab.buffer(value=0), lab.event(), lab.event()
    heard = []
    first, kept = host_params(heard.append)
    graph, nodes = chain(kernel(y, 1.0), ("MemsetNode", memset_params(y, 0)), ("HostNode", first), ("EventRecordNode", one), ("EventWaitNode", one))
    assert cu.cudaGraphKernelNodeSetParams(nodes[0], fill(y, 7.0, grid=3)) == (0,)
    assert cu.cudaGraphMemsetNodeSetParams(nodes[1], memset_params(y + 4, 3, 2, 1, 2, 8)) == (0,)
    changed = cu.cudaHostNodeParams()
    changed.fn, changed.userData = first.fn, 6
    assert cu.cudaGraphHostNodeSetParams(nodes[2], changed) == (0,)
    assert cu.cudaGraphEventRecordNodeSetEvent(nodes[3], two) == (0,) and cu.cudaGraphEventWaitNodeSetEvent(nodes[4], two) == (0,)
    kernel_, grid, block, shared, values = sim.launched(nodes[0])
    assert kernel_ is kernels.fill and (grid, block, shared) == ((3, 1, 1), (64, 1, 1), 0) and values == (y, np.float32(7), N)
    read = ok(cu.cudaGraphMemsetNodeGetParams(nodes[1]))
    assert (read.dst, read.value, read.width, read.height, read.pitch) == (y + 4, 3, 2, 2, 8)
    assert ok(cu.cudaGraphHostNodeGetParams(nodes[2])).userData == 6
    assert ok(cu.cudaGraphEventRecordNodeGetEvent(nodes[3])) == two == ok(cu.cudaGraphEventWaitNodeGetEvent(nodes[4]))
    assert run(lab, instantiate(graph), y) == [7] and heard == [6] and kept


def test_a_refused_setter_of_a_graph_changes_nothing(lab):
    y = lab.buffer(value=0)
    graph, (node, memset) = chain(kernel(y, 1.0), ("MemsetNode", memset_params(y + 4, 0, 4)))
    assert cu.cudaGraphKernelNodeSetParams(node, fill(y, 7.0, grid=0)) == (INVALID,)
    assert cu.cudaGraphKernelNodeSetParams(memset, fill(y, 7.0)) == (INVALID,)
    assert cu.cudaGraphMemsetNodeSetParams(memset, memset_params(y, 0, 0)) == (INVALID,)
    assert cu.cudaGraphMemsetNodeSetParams(memset, None) == (INVALID,)
    assert run(lab, instantiate(graph), y) == [1]


def test_what_a_node_was_launched_with_is_told_of_kernel_nodes_only(lab):
    graph, (node,) = chain(("EmptyNode",))
    with pytest.raises(Refused, match="InvalidValue"):
        sim.launched(node)


def test_a_node_is_found_in_a_clone_of_its_graph(lab):
    y = lab.buffer(value=0)
    graph, nodes = chain(kernel(y, 1.0), kernel(y, 2.0))
    clone = ok(cu.cudaGraphClone(graph))
    second = ok(cu.cudaGraphClone(clone))
    found = [ok(cu.cudaGraphNodeFindInClone(node, clone)) for node in nodes]
    assert found == ok(cu.cudaGraphGetNodes(clone, 2))[0] and found[0] != nodes[0]
    later = ok(cu.cudaGraphAddEmptyNode(graph, [], 0))
    for node, where in ((later, clone), (nodes[0], graph), (nodes[0], second), (found[0], clone)):
        assert cu.cudaGraphNodeFindInClone(node, where) == (INVALID, None)
    ok(cu.cudaGraphDestroyNode(found[0]))
    assert cu.cudaGraphNodeFindInClone(nodes[0], clone) == (INVALID, None)


# ---- nodes of any kind ----

def any_params(kind, **fields):
    params = cu.cudaGraphNodeParams()
    params.type = getattr(cu.cudaGraphNodeType, f"cudaGraphNodeType{kind}")
    for name, value in fields.items():
        setattr(params, name, value)
    return params


def any_kernel(y, value, grid=1):
    params = any_params("Kernel")
    params.kernel.func = int(kernels.fill.func_on(cu))
    params.kernel.gridDim.x, params.kernel.blockDim.x = grid, N
    for size in (params.kernel.gridDim, params.kernel.blockDim):
        size.y = size.z = 1
    params.kernel.kernelParams = ((y, value, N), kernels.fill._ctypes)
    return params


def any_copy(dst, src, count, kind, height=1):
    params = any_params("Memcpy")
    copy = params.memcpy.copyParams
    copy.srcPtr, copy.dstPtr = cu.make_cudaPitchedPtr(src, count, count, 1), cu.make_cudaPitchedPtr(dst, count, count, 1)
    copy.extent, copy.kind = cu.make_cudaExtent(count, height, 1), kind
    return params


@pytest.fixture(params=[12, 13])
def add(request):
    """cudaGraphAddNode of a line, without edge data."""
    sim.set_line(request.param)
    more = () if request.param == 12 else (None,)
    return lambda graph, after, params: cu.cudaGraphAddNode(graph, after, *more, len(after), params)


def test_nodes_of_any_kind_are_added_and_set(lab, add):
    x, y, z, one, two = lab.buffer(value=4), lab.buffer(value=0), lab.buffer(value=0), lab.event(), lab.event()
    graph, after = ok(cu.cudaGraphCreate(0)), []
    memset = any_params("Memset")
    memset.memset.dst, memset.memset.elementSize, memset.memset.width, memset.memset.height = z, 4, N, 1
    child, event = any_params("Graph"), any_params("EventRecord")
    child.graph.graph, event.eventRecord.event = chain(plus(y, x, 1.0))[0], one
    wait = any_params("WaitEvent")
    wait.eventWait.event = one
    host, kept = any_params("Host"), host_params(lambda argument: None)
    host.host.fn = kept[0].fn
    for params in (any_kernel(y, 3.0), memset, any_copy(z, y, 4 * N, lab.D2D), host, child, event, wait, any_params("Empty")):
        after.append(ok(add(graph, after[-1:], params)))
    assert lab.kinds(graph) == ["Kernel", "Memset", "Memcpy", "Host", "Graph", "EventRecord", "WaitEvent", "Empty"]
    made = instantiate(graph)
    assert run(lab, made, y, z) == [7, 3]
    child.graph.graph, event.eventRecord.event = chain(plus(y, x, 2.0))[0], two
    for setter, more in ((cu.cudaGraphExecNodeSetParams, (made,)), (cu.cudaGraphNodeSetParams, ())):
        assert [setter(*more, after[i], params) for i, params in
                ((0, any_kernel(y, 5.0)), (2, any_copy(z, x, 4, lab.D2D)), (4, child), (5, event), (7, any_params("Empty")))] == [(0,)] * 5
        assert setter(*more, after[0], memset) == setter(*more, after[1], any_kernel(y, 5.0)) == setter(*more, after[0], None) == (INVALID,)
        assert setter(*more, after[0], any_kernel(y, 5.0, grid=0)) == (INVALID,)
    assert run(lab, made, y, z) == [13, 4] == run(lab, instantiate(graph), y, z)
    assert ok(cu.cudaGraphEventRecordNodeGetEvent(after[5])) == two


def test_a_child_of_another_form_is_set_in_a_graph_and_not_in_an_executable(lab):
    y = lab.buffer(value=0)
    graph, (node,) = chain(("ChildGraphNode", chain(kernel(y, 1.0))[0]))
    made, params = instantiate(graph), any_params("Graph")
    params.graph.graph = chain(kernel(y, 2.0), kernel(y, 3.0))[0]
    assert cu.cudaGraphExecNodeSetParams(made, node, params) == (FAILURE,) and run(lab, made, y) == [1]
    assert cu.cudaGraphNodeSetParams(node, params) == (0,) and run(lab, instantiate(graph), y) == [3]
    inside = ok(cu.cudaGraphChildGraphNodeGetGraph(node))
    assert len(lab.kinds(inside)) == 2 and cu.cudaGraphDestroy(inside) == (INVALID,)


def test_what_the_generic_form_lacks_says_so(lab, add):
    graph, params = ok(cu.cudaGraphCreate(0)), any_params("Graph")
    params.graph.graph, params.graph.ownership = graph, 1
    rows = any_copy(lab.buffer(), lab.buffer(), 8, lab.D2D, height=2)
    for params in (any_params("Conditional"), any_params("MemAlloc"), params, rows):
        with pytest.raises(NotSimulated):
            add(graph, [], params)
    assert not lab.kinds(graph)


def test_parameters_of_any_kind_begin_as_zeros():
    for line in (12, 13):
        sim.set_line(line)
        params = cu.cudaGraphNodeParams()
        assert params.kernel.gridDim.x == 0 == params.memcpy.copyParams.extent.width and cu.dim3().x == 1
        assert hasattr(params.kernel, "ctx") == (line == 13) and hasattr(params, "reserved0") == (line == 12)
    params.kernel.kern = cu.cudaKernel_t(77)
    assert params.kernel.func == 77 == int(params.kernel.cuFunc)


# ---- switched off ----

def test_a_node_that_is_off_runs_nothing_and_keeps_its_place(lab):
    x, y, z = lab.buffer(value=1), lab.buffer(value=0), lab.buffer(value=0)
    graph, nodes = chain(kernel(y, 3.0), ("MemcpyNode1D", z, y, 4 * N, lab.D2D), ("MemsetNode", memset_params(y, 0)), plus(y, x, 1.0))
    made = instantiate(graph)
    assert [cu.cudaGraphNodeGetEnabled(made, node) for node in nodes] == [(0, 1)] * 4
    assert cu.cudaGraphNodeSetEnabled(made, nodes[1], 0) == cu.cudaGraphNodeSetEnabled(made, nodes[2], 0) == (0,)
    assert cu.cudaGraphNodeGetEnabled(made, nodes[1]) == (0, 0)
    assert run(lab, made, y, z) == [4, 0]
    ok(cu.cudaGraphExecMemcpyNodeSetParams1D(made, nodes[1], z, x, 4 * N, lab.D2D))
    assert run(lab, made, y, z) == [4, 0] and cu.cudaGraphNodeGetEnabled(made, nodes[1]) == (0, 0)
    ok(cu.cudaGraphNodeSetEnabled(made, nodes[1], 5))
    assert run(lab, made, y, z) == [4, 1] and cu.cudaGraphNodeGetEnabled(made, nodes[1]) == (0, 1)
    assert run(lab, instantiate(graph), y, z) == [1, 3]


def test_other_kinds_cannot_be_switched(lab):
    graph, nodes = chain(("EmptyNode",), ("EventRecordNode", lab.event()), ("ChildGraphNode", chain(("EmptyNode",))[0]))
    made, (_, others) = instantiate(graph), chain(kernel(lab.buffer(), 1.0))
    for node in (*nodes, *others):
        assert cu.cudaGraphNodeSetEnabled(made, node, 0) == (INVALID,) and cu.cudaGraphNodeGetEnabled(made, node) == (INVALID, None)


# ---- a whole graph ----

def test_a_whole_update_takes_over_every_node(lab):
    x, y, z = lab.buffer(value=1), lab.buffer(value=0), lab.buffer(value=0)
    graph, nodes = chain(kernel(y, 1.0), ("MemcpyNode1D", z, y, 4 * N, lab.D2D), ("MemsetNode", memset_params(y, 0)))
    newer, _ = chain(plus(z, x, 5.0), ("MemcpyNode1D", y, z, 4, lab.D2D), ("MemsetNode", memset_params(z, 0, 3, 1)))
    made = instantiate(graph)
    code, info = cu.cudaGraphExecUpdate(made, newer)
    assert code == 0 and info.result == 0 and int(info.errorNode) == int(info.errorFromNode) == 0
    ok(cu.cudaGraphDestroy(newer))
    assert run(lab, made, y) == [5] and run(lab, instantiate(graph), y, z) == [0, 1]
    assert cu.cudaGraphExecKernelNodeSetParams(made, nodes[0], kernel_params(kernels.fill, z, 8.0, N)) == (0,)
    assert run(lab, made, y) == [8]


def refused_updates(lab, y):
    """(the graph of the executable, another, result, position of the node at fault or None)"""
    first, second, empty = kernel(y, 1.0), kernel(y, 2.0), ("EmptyNode",)
    memset, host = ("MemsetNode", memset_params(y, 0)), np.zeros(N, np.float32)
    copies = [("MemcpyNode1D", y, y, 4, lab.D2D), ("MemcpyNode1D", y, host, 4, lab.H2D)]
    apart = ok(cu.cudaGraphCreate(0))
    for _ in range(2):
        ok(cu.cudaGraphAddKernelNode(apart, [], 0, fill(y, 3.0)))
    diamond, nodes = chain(first, second, second)
    ok(cu.cudaGraphAddDependencies(diamond, [nodes[0]], [nodes[2]], 1))
    return [
        (chain(first, second), chain(first, second, empty), TOPOLOGY, None),
        (chain(first, second), chain(first), TOPOLOGY, None),
        (chain(first, second), (apart, None), TOPOLOGY, 0),
        (chain(first, second, second), (diamond, nodes), TOPOLOGY, 2),
        (chain(first, memset), chain(first, second), TYPE, 1),
        (chain(first, memset), chain(memset, first), TYPE, 1),
        (chain(first, copies[0]), chain(first, copies[1]), PARAMETERS, 1),
        (chain(memset), chain(("MemsetNode", memset_params(y, 0, 4, 4, 2, 32))), PARAMETERS, 0),
    ], host


@pytest.mark.parametrize("number", range(8))
def test_a_refused_update_tells_why_and_changes_nothing(lab, number):
    y = lab.buffer(value=9)
    cases, host = refused_updates(lab, y)
    assert len(cases) == 8 and not host.any()
    (graph, _), (newer, _), result, position = cases[number]
    made, before = instantiate(graph), run(lab, instantiate(graph), y)
    nodes = ok(cu.cudaGraphGetNodes(newer, 8))[0]
    assert cu.cudaGraphExecUpdate(made, newer) == (FAILURE, None) and cu.cudaGetLastError()[0] == FAILURE
    assert why(made, newer) == (FAILURE, result, 0 if position is None else int(nodes[position]), 0) and cu.cudaGetLastError()[0] == 0
    assert run(lab, made, y) == before
    assert why(made, graph) == (0, 0, 0, 0)


def test_edges_that_pair_a_node_twice_tell_both_ends(lab):
    """Two nodes that wait for one each, against two that wait for the same one."""
    def build(*edges):
        graph = ok(cu.cudaGraphCreate(0))
        nodes = [ok(cu.cudaGraphAddEmptyNode(graph, [], 0)) for _ in range(4)]
        for a, b in edges:
            ok(cu.cudaGraphAddDependencies(graph, [nodes[a]], [nodes[b]], 1))
        return graph, nodes
    graph, _ = build((0, 2), (1, 3), (0, 3), (1, 2))
    newer, nodes = build((0, 2), (1, 3), (0, 3), (1, 2))
    assert why(instantiate(graph), newer)[:2] == (0, 0)
    newer, nodes = build((0, 2), (0, 3), (1, 3), (1, 2))
    assert why(instantiate(graph), newer) == (FAILURE, TOPOLOGY, int(nodes[2]), int(nodes[0]))


def test_a_whole_update_looks_into_children(lab):
    x, y = lab.buffer(value=1), lab.buffer(value=0)

    def around(*adders):
        return chain(("ChildGraphNode", chain(*adders)[0]), plus(y, x, 100.0))[0]
    made = instantiate(around(plus(y, x, 1.0), ("EmptyNode",)))
    assert why(made, around(plus(y, x, 1.0)))[:2] == (FAILURE, TOPOLOGY)
    assert why(made, around(plus(y, x, 1.0), ("MemsetNode", memset_params(y, 0))))[:2] == (FAILURE, TYPE)
    assert why(made, around(plus(y, x, 2.0), ("EmptyNode",)))[:2] == (0, 0)
    assert run(lab, made, y) == [102]


def test_an_update_leaves_switched_off_nodes_off(lab):
    x, y = lab.buffer(value=1), lab.buffer(value=0)
    graph, nodes = chain(plus(y, x, 1.0), plus(y, x, 10.0))
    made = instantiate(graph)
    ok(cu.cudaGraphNodeSetEnabled(made, nodes[0], 0))
    ok(cu.cudaGraphExecUpdate(made, chain(plus(y, x, 2.0), plus(y, x, 20.0))[0]))
    assert run(lab, made, y) == [20] and cu.cudaGraphNodeGetEnabled(made, nodes[0]) == (0, 0)
    ok(cu.cudaGraphNodeSetEnabled(made, nodes[0], 1))
    assert run(lab, made, y) == [42]


def test_an_update_of_nothing_there_is_an_invalid_value(lab):
    graph, _ = chain(("EmptyNode",))
    made = instantiate(graph)
    assert why(made, 0) == why(0, graph) == (INVALID, 1, 0, 0)
    assert cu.cudaGraphExecUpdate(made, 0) == cu.cudaGraphExecUpdate(None, graph) == (INVALID, None)


def allocating(lab, size, value, target, free=True):
    stream = lab.stream()
    ok(cu.cudaStreamBeginCapture(stream, lab.RELAXED))
    address = ok(cu.cudaMallocAsync(size, stream))
    lab.launch(stream, kernels.fill, address, value, 4, block=4)
    ok(cu.cudaMemcpyAsync(target, address, 16, lab.D2D, stream))
    if free:
        ok(cu.cudaFreeAsync(address, stream))
    return ok(cu.cudaStreamEndCapture(stream)), address


def test_an_update_may_bring_an_allocation_of_another_size(lab):
    y = lab.buffer(value=0)
    graph, _ = allocating(lab, 16, 1.0, y)
    made = instantiate(graph)
    assert run(lab, made, y) == [1]
    newer, _ = allocating(lab, 1 << 20, 2.0, y)
    assert why(made, allocating(lab, 16, 2.0, y, free=False)[0])[:2] == (FAILURE, TOPOLOGY)
    assert why(made, newer) == (0, 0, 0, 0)
    assert [run(lab, made, y) for _ in range(2)] == [[2], [2]]


def test_after_an_update_a_launch_owns_the_memory_of_the_new_graph(lab):
    y = lab.buffer(value=0)
    made = instantiate(allocating(lab, 16, 1.0, y, free=False)[0])
    newer, address = allocating(lab, 16, 2.0, y, free=False)
    ok(cu.cudaGraphExecUpdate(made, newer))
    assert run(lab, made, y) == [2] and cu.cudaGraphLaunch(made, 0) == (INVALID,)
    ok(cu.cudaFree(address))
    assert run(lab, made, y) == [2]


# ---- speed ----

def long_chain(lab, count):
    stream, y = lab.stream(), lab.buffer()
    ok(cu.cudaStreamBeginCapture(stream, lab.RELAXED))
    for _ in range(count):
        lab.launch(stream, kernels.fill, y, 1.0, N)
    graph = ok(cu.cudaStreamEndCapture(stream))
    return y, graph, ok(cu.cudaGraphGetNodes(graph, count))[0], instantiate(graph)


def seconds(work):
    """Processor time, without the collector: it looks at all objects that there are, and tests before this one left some."""
    gc.collect(), gc.disable()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        gc.enable()


def both_costs(lab, count):
    """Seconds of setting each of `count` nodes, and of one whole update."""
    y, graph, nodes, made = long_chain(lab, count)
    params = fill(y, 2.0)

    def set_all():
        for node in nodes:
            cu.cudaGraphExecKernelNodeSetParams(made, node, params)
    costs = seconds(set_all), seconds(lambda: ok(cu.cudaGraphExecUpdate(made, graph)))
    sim.reset()
    return costs


def test_ten_thousand_updates_take_less_than_a_second_and_ten_times_as_many_ten_times_as_long(lab):
    small = both_costs(lab, 10_000)
    assert max(small) < 1
    large = both_costs(lab, 100_000)
    assert large[0] < 25 * small[0] and large[1] < 25 * small[1]            # quadratic would be 100 times
