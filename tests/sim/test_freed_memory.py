"""Graphs whose nodes were made for memory that is freed when they become executables."""
import numpy as np
import pytest

from labkit import kernels
from labkit.errors import Undefined, ok
from labkit.sim import runtime as cu


def captured(lab, stream, node, x, buffer):
    """A graph of one node that works on `buffer`, and on `x` too where the node is a copy or a kernel."""
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    if node == "kernel":
        lab.launch(stream, kernels.axpy, x, buffer, 1.0, lab.N)
    elif node == "memset":
        ok(cu.cudaMemsetAsync(buffer, 0, 4 * lab.N, stream))
    else:
        ends = (x, buffer) if node == "copy from it" else (buffer, x)
        ok(cu.cudaMemcpyAsync(*ends, 4 * lab.N, lab.D2D, stream))
    return ok(cu.cudaStreamEndCapture(stream))


@pytest.mark.parametrize("taken", [False, True], ids=["nobody's", "taken again"])
@pytest.mark.parametrize("inside", [False, True], ids=["", "in a child node"])
@pytest.mark.parametrize("node", ["kernel", "memset", "copy from it", "copy to it"])
def test_an_executable_of_a_node_on_freed_memory(lab, node, inside, taken):
    stream, x, buffer = lab.stream(), lab.buffer(value=1), lab.buffer(value=2)
    graph = captured(lab, stream, node, x, buffer)
    if inside:
        inner, graph = graph, ok(cu.cudaGraphCreate(0))
        ok(cu.cudaGraphAddChildGraphNode(graph, None, 0, inner))
    ok(cu.cudaFree(buffer))
    assert not taken or lab.buffer(value=5) == buffer
    if "copy" in node:
        with pytest.raises(Undefined, match="freed after the node was made"):
            cu.cudaGraphInstantiate(graph, 0)
    else:
        assert cu.cudaGraphInstantiate(graph, 0)[0] == (1 if node == "memset" and not taken else 0)


def test_a_new_address_makes_a_copy_whole(lab):
    stream, x, buffer, other = lab.stream(), lab.buffer(value=1), lab.buffer(value=2), lab.buffer(value=3)
    graph = captured(lab, stream, "copy from it", x, buffer)
    ok(cu.cudaFree(buffer))
    ok(cu.cudaGraphMemcpyNodeSetParams1D(cu.cudaGraphGetNodes(graph, 1)[1][0], x, other, 4 * lab.N, lab.D2D))
    lab.run(graph, stream)
    assert np.all(lab.read(x) == 3)


@pytest.mark.parametrize("node", ["memset", "copy from it", "copy to it"])
def test_memory_of_a_pool_and_freed_after_instantiating(lab, node):
    stream, x, place = lab.stream(), lab.buffer(value=1), ok(cu.cudaMallocAsync(4 * 64, 0))
    graph = captured(lab, stream, node, x, place)
    made = ok(cu.cudaGraphInstantiate(graph, 0))
    ok(cu.cudaFree(place)), ok(cu.cudaMallocAsync(4 * 64, 0))           # the next owner has the same address
    ok(cu.cudaGraphLaunch(made, stream)), ok(cu.cudaDeviceSynchronize())
    if "copy" in node:
        with pytest.raises(Undefined):
            cu.cudaGraphInstantiate(graph, 0)
