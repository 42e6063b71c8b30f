"""Updates at the edges of what CUDA checks: which node is named, what is refused, and what nobody can foretell."""
import ctypes

import pytest

from labkit import kernels, sim
from labkit.errors import Undefined, ok
from labkit.sim import runtime as cu
from tests.sim.test_updates import (FAILURE, INVALID, N, TOPOLOGY, TYPE, allocating, any_kernel, any_params, chain, fill, instantiate, kernel,
                                    memset_params, plus, run, why)

NO_FUNCTION, NOT_SUPPORTED = 98, 801


# ---- which node a refused update names ----

def beside(*adders):
    """(graph, nodes): nodes that do not wait for each other."""
    graph = ok(cu.cudaGraphCreate(0))
    return graph, [ok(getattr(cu, f"cudaGraphAdd{call}")(graph, [], 0, *more)) for call, *more in adders]


def test_of_several_wrong_kinds_the_last_is_named(lab):
    y = lab.buffer()
    one, two = kernel(y, 1.0), ("MemsetNode", memset_params(y, 0))
    newer, nodes = chain(two, one, two)
    assert why(instantiate(chain(one, two, one)[0]), newer) == (FAILURE, TYPE, int(nodes[2]), 0)
    newer, nodes = chain(two, one, one)
    assert why(instantiate(chain(one, two, one)[0]), newer) == (FAILURE, TYPE, int(nodes[1]), 0)
    newer, nodes = beside(two, one)
    assert why(instantiate(beside(one, two)[0]), newer) == (FAILURE, TYPE, int(nodes[1]), 0)


def test_of_two_nodes_waited_for_the_first_is_named(lab):
    y = lab.buffer()
    one, two = kernel(y, 1.0), ("MemsetNode", memset_params(y, 0))

    def joined(*ends):
        graph, nodes = beside(one, two)
        ok(cu.cudaGraphAddEmptyNode(graph, [nodes[place] for place in ends], 2))
        return graph, nodes
    newer, nodes = joined(1, 0)
    assert why(instantiate(joined(0, 1)[0]), newer) == (FAILURE, TYPE, int(nodes[1]), 0)


def test_where_more_nodes_end_the_last_one_before_those_that_pair_is_named(lab):
    empty = ("EmptyNode",)
    newer, nodes = beside(empty, empty, empty)
    assert why(instantiate(chain(empty, empty, empty)[0]), newer) == (FAILURE, TOPOLOGY, int(nodes[1]), 0)
    ok(cu.cudaGraphAddDependencies(newer, [nodes[0]], [nodes[1]], 1))
    assert why(instantiate(chain(empty, empty, empty)[0]), newer) == (FAILURE, TOPOLOGY, int(nodes[1]), 0)


# ---- where an update comes from ----

def test_the_graph_inside_a_child_node_is_no_source(lab):
    y = lab.buffer(value=0)
    graph, _ = chain(kernel(y, 1.0))
    made, (_, (child,)) = instantiate(graph), chain(("ChildGraphNode", chain(kernel(y, 2.0))[0]))
    inside = ok(cu.cudaGraphChildGraphNodeGetGraph(child))
    assert cu.cudaGraphExecUpdate(made, inside) == (INVALID, None) and why(made, inside) == (INVALID, 1, 0, 0)
    assert run(lab, made, y) == [1] and why(made, ok(cu.cudaGraphClone(inside))) == (0, 0, 0, 0)
    assert run(lab, made, y) == [2]


def test_with_graph_memory_an_updated_executable_counts_for_the_new_graph(lab):
    y = lab.buffer(value=0)
    (graph, _), (newer, _) = allocating(lab, 16, 1.0, y), allocating(lab, 16, 2.0, y)
    made = instantiate(graph)
    assert cu.cudaGraphInstantiate(graph, 0) == (NOT_SUPPORTED, None)
    assert why(made, newer) == why(made, newer) == (0, 0, 0, 0)
    assert cu.cudaGraphInstantiate(newer, 0) == (NOT_SUPPORTED, None)
    again = instantiate(graph)
    assert run(lab, again, y) == [1] and run(lab, made, y) == [2]
    ok(cu.cudaGraphExecDestroy(made))
    assert run(lab, instantiate(newer), y) == [2]


def test_a_graph_with_memory_and_an_executable_of_its_own_is_no_source(lab):
    y = lab.buffer(value=0)
    (graph, _), (newer, _) = allocating(lab, 16, 1.0, y), allocating(lab, 16, 2.0, y)
    made, other = instantiate(graph), instantiate(newer)
    assert cu.cudaGraphExecUpdate(made, newer) == (NOT_SUPPORTED, None) and why(made, newer) == (NOT_SUPPORTED, 1, 0, 0)
    assert run(lab, made, y) == [1]
    ok(cu.cudaGraphExecDestroy(other))
    assert why(made, newer) == (0, 0, 0, 0) and run(lab, made, y) == [2]


# ---- setters ----

def test_a_copy_setter_wants_its_direction(lab):
    x, y = lab.buffer(value=3), lab.buffer(value=0)
    graph, (node,) = chain(("MemcpyNode1D", y, x, 4, cu.cudaMemcpyKind.cudaMemcpyDefault))
    made = instantiate(graph)
    assert cu.cudaGraphExecMemcpyNodeSetParams1D(made, node, y, x, 8, cu.cudaMemcpyKind.cudaMemcpyDefault) == (INVALID,)
    assert cu.cudaGraphMemcpyNodeSetParams1D(node, y, x, 8, cu.cudaMemcpyKind.cudaMemcpyDefault) == (0,)
    assert cu.cudaGraphExecMemcpyNodeSetParams1D(made, node, y, x, 8, lab.D2D) == (0,) and run(lab, made, y) == [3]


@pytest.mark.parametrize("kind, name", [("EventRecord", "EventRecordNode"), ("WaitEvent", "EventWaitNode")])
def test_an_event_setter_refuses_null_and_cannot_tell_a_destroyed_event(lab, kind, name):
    graph, (node,) = chain((name, lab.event()))
    made, gone, params = instantiate(graph), lab.event(), any_params(kind)
    ok(cu.cudaEventDestroy(gone))
    field = params.eventRecord if kind == "EventRecord" else params.eventWait
    for event in (0, None):
        field.event = event
        assert getattr(cu, f"cudaGraph{name}SetEvent")(node, event) == (INVALID,)
        assert getattr(cu, f"cudaGraphExec{name}SetEvent")(made, node, event) == (INVALID,)
        assert cu.cudaGraphExecNodeSetParams(made, node, params) == cu.cudaGraphNodeSetParams(node, params) == (INVALID,)
    field.event = gone
    for call in (lambda: getattr(cu, f"cudaGraph{name}SetEvent")(node, gone), lambda: getattr(cu, f"cudaGraphExec{name}SetEvent")(made, node, gone),
                 lambda: cu.cudaGraphExecNodeSetParams(made, node, params)):
        with pytest.raises(Undefined, match="an event that was destroyed"):
            call()


USES = {"launch": lambda made, graph: cu.cudaGraphLaunch(made, 0), "upload": lambda made, graph: cu.cudaGraphUpload(made, 0),
        "update": cu.cudaGraphExecUpdate, "update with a reason": sim.exec_update,
        "destroy": lambda made, graph: cu.cudaGraphExecDestroy(made), "flags": lambda made, graph: cu.cudaGraphExecGetFlags(made)}


@pytest.mark.parametrize("use", USES)
def test_a_destroyed_executable_is_undefined_to_use(lab, use):
    y = lab.buffer(value=0)
    graph, _ = chain(kernel(y, 1.0))
    made, gone = instantiate(graph), instantiate(graph)
    assert int(USES[use](made, graph)[0]) == 0
    ok(cu.cudaGraphExecDestroy(gone))
    with pytest.raises(Undefined, match="an executable that was destroyed"):
        USES[use](gone, graph)


@pytest.mark.parametrize("never", [0, None, 4096])
@pytest.mark.parametrize("use", USES)
def test_what_never_was_an_executable_is_refused(lab, use, never):
    graph, _ = chain(kernel(lab.buffer(), 1.0))
    assert int(USES[use](never, graph)[0]) == INVALID


def test_a_setter_recognises_a_destroyed_executable(lab):
    y = lab.buffer(value=0)
    graph, (node,) = chain(kernel(y, 1.0))
    made, params = instantiate(graph), any_kernel(y, 7.0)
    ok(cu.cudaGraphExecDestroy(made))
    assert cu.cudaGraphExecKernelNodeSetParams(made, node, fill(y, 7.0)) == (INVALID,)
    assert cu.cudaGraphExecNodeSetParams(made, node, params) == (INVALID,)
    assert cu.cudaGraphNodeSetEnabled(made, node, 0) == (INVALID,) and cu.cudaGraphNodeGetEnabled(made, node) == (INVALID, None)


def test_kernel_parameters_or_a_function_that_are_none_crash_a_gpu(lab):
    y = lab.buffer(value=0)
    graph, (node,) = chain(kernel(y, 1.0))
    made, params = instantiate(graph), fill(y, 7.0)
    with pytest.raises(Undefined, match="None for its parameters"):
        cu.cudaGraphExecKernelNodeSetParams(made, node, None)
    params.func = 4096
    with pytest.raises(Undefined, match="0x1000 as the function"):
        cu.cudaGraphExecKernelNodeSetParams(made, node, params)
    params.func = 0
    assert cu.cudaGraphExecKernelNodeSetParams(made, node, params) == (NO_FUNCTION,)
    assert cu.cudaGraphKernelNodeSetParams(node, None) == (INVALID,) and run(lab, made, y) == [1]


@pytest.mark.parametrize("line", [12, 13])
@pytest.mark.parametrize("member, field", [("memset", "dst"), ("host", "fn"), ("graph", "graph"), ("eventWait", "event"), ("eventRecord", "event")])
def test_parameters_of_another_kind_are_not_to_be_called_a_kernels(lab, line, member, field):
    sim.set_line(line)
    graph, nodes = chain(("MemsetNode", memset_params(lab.buffer(value=9), 0)))
    made, params = instantiate(graph), any_params("Kernel")
    assert cu.cudaGraphNodeSetParams(nodes[0], params) == cu.cudaGraphExecNodeSetParams(made, nodes[0], params) == (INVALID,)
    setattr(getattr(params, member), field, cu.cudaHostFn_t(0x1240) if field == "fn" else 0x1240)
    for call in (lambda: cu.cudaGraphNodeSetParams(nodes[0], params), lambda: cu.cudaGraphExecNodeSetParams(made, nodes[0], params)):
        with pytest.raises(Undefined, match=f"says Kernel, and {member} was filled in"):
            call()
    assert cu.cudaGraphExecNodeSetParams(made, nodes[0], any_kernel(lab.buffer(), 7.0)) == (INVALID,)


def test_numbers_are_copied_when_parameters_are_made_and_structures_stay_where_they_are(lab):
    class Size(ctypes.Structure):
        _fields_ = [("n", ctypes.c_int)]
    y = lab.buffer(value=0)
    held, size = [ctypes.c_void_p(y), ctypes.c_float(2.0)], Size(1)
    params = fill(y, 0.0)
    params.kernelParams = ((*held, size), (ctypes.c_void_p, ctypes.c_float, None))
    held[0].value, held[1].value, size.n = 0, 99.0, 3
    graph, _ = chain(("KernelNode", params))
    assert run(lab, instantiate(graph), y) == [2] and list(lab.read(y)[:4]) == [2, 2, 2, 0]


# ---- uploads ----

def test_a_launch_waits_for_an_upload_elsewhere(lab):
    x, y, stream, other = lab.buffer(value=1), lab.buffer(value=0), lab.stream(), lab.stream()
    made = instantiate(chain(plus(y, x, 1.0))[0])
    lab.launch(other, kernels.fill, x, 5.0, N)
    ok(cu.cudaGraphUpload(made, other))
    ok(cu.cudaGraphLaunch(made, stream))
    ok(cu.cudaStreamSynchronize(stream))             # only this stream, and what it waits for
    assert lab.read(y)[0] == 5
