"""Prepared kernel parameters, what a node was launched with, setting one node, and why an update was refused."""
import ctypes
import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from labkit import (DeviceArray, Kernel, LabError, backend, cudart, exec_update, graph, kernel_params, kernels, launch, launched, ok, prepare_update,
                    set_kernel, to_device, to_host, update)
from labkit import reasons

CODE = cudart.cudaError_t
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
REFUSED, INVALID = CODE.cudaErrorGraphExecUpdateFailure, CODE.cudaErrorInvalidValue


@pytest.fixture
def stream():
    made = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    yield made
    ok(cudart.cudaStreamDestroy(made))


def floats(*values):
    return to_device(np.array(values, dtype=np.float32))


def captured(stream, *steps):
    """The graph of these steps, each a function of the stream that returns (err, ...)."""
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for step in steps:
        ok(step(stream))
    return ok(cudart.cudaStreamEndCapture(stream))


def axpy(y, x, a=2.0, n=4, grid=1, block=4, shared=0):
    return lambda stream: launch(stream, kernels.axpy, grid, block, y, x, a, n, shared=shared)


def memset(y, value=0):
    return lambda stream: cudart.cudaMemsetAsync(y.ptr, value, y.nbytes, stream)


def copy(dst, src, kind):
    return lambda stream: cudart.cudaMemcpyAsync(dst, src, 16, kind, stream)


class Prepared(SimpleNamespace):
    """y = [1, 2, 3, 4], x = [10, 20, 30, 40], and an executable of one kernel node, y += 2 x."""

    def run(self):
        ok(cudart.cudaGraphLaunch(self.executable, self.stream))
        return to_host(self.y, self.stream).tolist()

    def reset(self):
        ok(cudart.cudaStreamSynchronize(self.stream))
        ok(cudart.cudaMemcpy(self.y.ptr, np.array([1, 2, 3, 4], np.float32).ctypes.data, 16, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice))


@pytest.fixture
def one(stream):
    y, x = floats(1, 2, 3, 4), floats(10, 20, 30, 40)
    made = captured(stream, axpy(y, x))
    return Prepared(stream=stream, y=y, x=x, graph=made, node=graph.nodes(made)[0], executable=ok(cudart.cudaGraphInstantiate(made, 0)))


# ---- kernel_params -------------------------------------------------------------------------------

def test_prepared_parameters_are_cudas_own_structure(one):
    p = kernel_params(kernels.axpy, 4, (8, 2), one.y, one.x, 2.0, 4, shared=64)
    assert isinstance(p, cudart.cudaKernelNodeParams) and type(p) is type(p.but(grid=1))
    assert (p.grid, p.block, p.shared, p.kernel) == ((4, 1, 1), (8, 2, 1), 64, kernels.axpy)
    assert (p.gridDim.x, p.blockDim.y, p.sharedMemBytes) == (4, 2, 64) and int(p.func) == int(kernels.axpy.func)
    assert p.args == (one.y, one.x, 2.0, 4) and kernels.axpy.read(p.kernelParams) == (one.y.ptr, one.x.ptr, 2.0, 4)


def test_they_read_as_one_line_with_addresses_in_hex(one):
    line = repr(kernel_params(kernels.axpy, 4, 256, one.y, 0x1000, 2.0, 1024))
    assert line == f"axpy<<<(4, 1, 1), (256, 1, 1)>>>({one.y.ptr:#x}, 0x1000, 2.0, 1024)"
    assert repr(kernel_params(kernels.fill, (1, 2), 3, 0, 1, 1, shared=16)) == "fill<<<(1, 2, 1), (3, 1, 1), 16>>>(0x0, 1, 1)"


def test_a_node_added_with_them_does_what_they_say(one):
    made = ok(cudart.cudaGraphCreate(0))
    first = ok(cudart.cudaGraphAddKernelNode(made, [], 0, kernel_params(kernels.fill, 1, 4, one.y, 5.0, 4)))
    ok(cudart.cudaGraphAddKernelNode(made, [first], 1, kernel_params(kernels.axpy, 1, 2, one.y, one.x, 1.0, 4)))
    one.executable = ok(cudart.cudaGraphInstantiate(made, 0))
    assert one.run() == [15, 25, 5, 5]


def test_one_object_sets_a_node_any_number_of_times(one):
    by_three, by_one = [kernel_params(kernels.axpy, 1, 4, one.y, one.x, a, 4) for a in (3.0, 1.0)]
    for prepared, result in [(by_three, [31, 62, 93, 124]), (by_one, [41, 82, 123, 164]), (by_three, [71, 142, 213, 284])]:
        ok(cudart.cudaGraphExecKernelNodeSetParams(one.executable, one.node, prepared))
        assert one.run() == result


def test_a_node_of_the_graph_takes_them_too(one):
    ok(cudart.cudaGraphKernelNodeSetParams(one.node, kernel_params(kernels.axpy, 1, 4, one.y, one.x, 3.0, 4)))
    assert one.run() == [21, 42, 63, 84]                       # the executable has its own copy
    one.executable = ok(cudart.cudaGraphInstantiate(one.graph, 0))
    assert one.run() == [51, 102, 153, 204]


def test_but_changes_what_is_named_and_leaves_the_original_alone(one):
    p = kernel_params(kernels.axpy, 4, 256, one.y, one.x, 2.0, 4, shared=16)
    before, held = repr(p), kernels.axpy.read(p.kernelParams)
    changed = [p.but(grid=(5, 6)), p.but(block=7), p.but(shared=0), p.but(args={2: 9.0, 3: 1}), p.but(args=(one.x, one.y, 1.0, 2)),
               p.but(kernel=kernels.fill, args=(one.y, 1.0, 4))]
    assert repr(p) == before and kernels.axpy.read(p.kernelParams) == held
    assert [c.grid for c in changed] == [(5, 6, 1)] + [(4, 1, 1)] * 5
    assert [c.block for c in changed] == [(256, 1, 1), (7, 1, 1)] + [(256, 1, 1)] * 4
    assert [c.shared for c in changed] == [16, 16, 0, 16, 16, 16]
    assert [c.args[-2:] for c in changed] == [(2.0, 4)] * 3 + [(9.0, 1), (1.0, 2), (1.0, 4)]
    assert changed[3].args[:2] == (one.y, one.x) and changed[4].args[:2] == (one.x, one.y) and changed[5].kernel is kernels.fill
    assert kernels.axpy.read(changed[3].kernelParams) == (one.y.ptr, one.x.ptr, 9.0, 1)


def test_dimensions_set_by_hand_are_the_ones_that_count():
    p = kernel_params(kernels.fill, 4, 8, 0, 1.0, 1)
    p.gridDim.x = 9
    assert p.grid == (9, 1, 1) and p.but(block=1).grid == (9, 1, 1) and "(9, 1, 1)" in repr(p)


def test_the_buffers_among_the_arguments_are_held(one):
    p = kernel_params(kernels.axpy, 1, 4, floats(0, 0, 0, 0), one.x, 2.0, 4)
    assert isinstance(p.args[0], DeviceArray) and p.but(grid=2).args[0] is p.args[0]


@pytest.mark.parametrize("grid, block, shared", [(0, 4, 0), (1, 0, 0), (1, 1025, 0), (1, 4096, 0), ((1, 70000), 1, 0), (1, (1, 1, 65), 0), (1, 4, 1 << 20)])
def test_an_impossible_size_is_refused_by_cuda_and_the_executable_stays_usable(one, grid, block, shared):
    p = kernel_params(kernels.axpy, grid, block, one.y, one.x, 2.0, 4, shared=shared)
    assert cudart.cudaGraphExecKernelNodeSetParams(one.executable, one.node, p) == (INVALID,)
    assert set_kernel(one.executable, one.node, grid=grid, block=block, shared=shared) == (INVALID,)
    assert one.run() == [21, 42, 63, 84]


@pytest.mark.parametrize("change, says", [
    (dict(y=np.zeros(4, np.float32)), r"axpy, args\[0\] \(float\* y\): ndarray .*\n.*host memory"),
    (dict(y="y"), r"args\[0\] \(float\* y\).*\n.*no device buffer"),
    (dict(x=2.5), r"args\[1\] \(const float\* x\).*\n.*no device buffer"), (dict(a="2"), r"axpy, args\[2\] \(float a\): '2' .*\n.*not a number"),
    (dict(a=None), r"args\[2\]"), (dict(n=4.0), r"args\[3\] \(int n\).*\n.*not a number"), (dict(n=2 ** 31), r"axpy, args\[3\] \(int n\).*\n.*does not fit"),
    (dict(grid="4"), "grid"), (dict(grid=-1), "grid"), (dict(block=1.5), "block"), (dict(block=(1, 1, 1, 1)), "block"),
    (dict(shared=-1), "shared=-1"), (dict(shared=1.5), "shared=1.5"), (dict(shared=None), "shared=None"),
    (dict(kernel="axpy"), "as its kernel"), (dict(kernel=None), "as its kernel")])
def test_a_wrong_argument_is_a_laberror_that_names_kernel_and_parameter(one, change, says):
    given = dict(kernel=kernels.axpy, grid=1, block=4, y=one.y, x=one.x, a=1.0, n=4, shared=0) | change
    with pytest.raises(LabError, match=says):
        kernel_params(given["kernel"], given["grid"], given["block"], given["y"], given["x"], given["a"], given["n"], shared=given["shared"])


def test_a_wrong_count_of_arguments_says_how_many_there_are(one):
    for args in [(), (one.y, one.x, 2.0), (one.y, one.x, 2.0, 4, 5)]:
        with pytest.raises(LabError, match=rf"axpy was launched with {len(args)} arguments"):
            kernel_params(kernels.axpy, 1, 4, *args)
        with pytest.raises(LabError, match=rf"axpy was launched with {len(args)} arguments"):
            set_kernel(one.executable, one.node, args=args)


@pytest.mark.parametrize("args, says", [({4: 1}, r"axpy got a new value for args\[4\]"), ({-1: 1}, r"args\[-1\]"),
                                        ({"a": 1.0}, r"args\['a'\]"), ({2: "x"}, r"\(float a\)"),
                                        (3.0, "axpy got args = 3.0"), ("abcd", "axpy got args = 'abcd'")])
def test_what_but_and_set_kernel_cannot_place_is_refused(one, args, says):
    p = kernel_params(kernels.axpy, 1, 4, one.y, one.x, 2.0, 4)
    for call in (lambda: p.but(args=args), lambda: set_kernel(one.executable, one.node, args=args)):
        with pytest.raises(LabError, match=says):
            call()
    assert one.run() == [21, 42, 63, 84]


def test_a_freed_buffer_is_refused_when_parameters_are_made_of_it(one):
    gone = floats(0, 0, 0, 0)
    p = kernel_params(kernels.axpy, 1, 4, gone, one.x, 2.0, 4)
    gone.free()
    with pytest.raises(LabError, match=r"axpy, args\[0\] \(float\* y\): A freed buffer"):
        kernel_params(kernels.axpy, 1, 4, gone, one.x, 2.0, 4)
    with pytest.raises(LabError, match="freed buffer"):
        p.but(grid=2)
    with pytest.raises(LabError, match="freed buffer"):
        set_kernel(one.executable, one.node, args={0: gone})
    assert p.but(args={0: one.y}).args[0] is one.y


def test_a_kernel_without_parameters_has_parameters_too():
    nothing = Kernel('extern "C" __global__ void nothing() {}', "nothing", [], lambda i: None)
    p = kernel_params(nothing, 1, 1)
    made = ok(cudart.cudaGraphCreate(0))
    node = ok(cudart.cudaGraphAddKernelNode(made, [], 0, p))
    assert repr(p) == repr(launched(node)) == "nothing<<<(1, 1, 1), (1, 1, 1)>>>()"
    assert ok(cudart.cudaGraphInstantiate(made, 0))


# ---- launched ------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["captured", "added"])
def test_a_node_says_what_it_was_launched_with(stream, how):
    y, x = floats(1, 2, 3, 4), floats(10, 20, 30, 40)
    if how == "captured":
        node = graph.nodes(captured(stream, axpy(y, x, 0.1, 3, (2, 3), (4, 5, 6), 128)))[0]
    else:
        p = kernel_params(kernels.axpy, (2, 3), (4, 5, 6), y, x, 0.1, 3, shared=128)
        node = ok(cudart.cudaGraphAddKernelNode(ok(cudart.cudaGraphCreate(0)), [], 0, p))
    p = launched(node)
    assert p.kernel is kernels.axpy and (p.grid, p.block, p.shared) == ((2, 3, 1), (4, 5, 6), 128)
    assert p.args == (y.ptr, x.ptr, float(np.float32(0.1)), 3) and [type(a) for a in p.args] == [int, int, float, int]
    assert launched(int(node)).args == p.args and isinstance(p, cudart.cudaKernelNodeParams)


def test_every_type_of_argument_comes_back():
    many = Kernel('extern "C" __global__ void many(float a, double b, int c, unsigned int d, long long e, unsigned long long f, int* g) {}', "many",
                  ["float", "double", "int", "unsigned int", "long long", "unsigned long long", "int*"])
    values = (-1.5, 1e300, -2 ** 31, 2 ** 32 - 1, -2 ** 63, 2 ** 64 - 1, 0x7F00_0000_1000)
    p = kernel_params(many, 1, 1, *values)
    assert many.read(p.kernelParams) == values
    assert launched(ok(cudart.cudaGraphAddKernelNode(ok(cudart.cudaGraphCreate(0)), [], 0, p))).args == values


def test_the_graphs_node_keeps_its_parameters_when_the_executable_is_set(one):
    ok(set_kernel(one.executable, one.node, grid=3, args={2: 7.0}))
    assert launched(one.node).args[2] == 2.0 and launched(one.node).grid == (1, 1, 1)


def test_a_node_that_is_no_kernel_node_is_named(stream):
    made = captured(stream, memset(floats(0, 0, 0, 0)))
    with pytest.raises(LabError, match="launched\\(\\) got a node of kind Memset"):
        launched(graph.nodes(made)[0])
    with pytest.raises(LabError, match="no node") as error:
        launched(None)
    assert error.value.code == INVALID


@pytest.mark.parametrize("call, what", [
    (lambda one: launched((CODE.cudaSuccess, one.node)), "tuple as its node"), (lambda one: launched(one.executable), "as its node"),
    (lambda one: launched(1.5), "float as its node"),
    (lambda one: set_kernel(one.node, one.executable), "as its executable"), (lambda one: set_kernel(one.executable, one.graph), "as its node"),
    (lambda one: exec_update(one.graph, one.executable), "as its executable"), (lambda one: exec_update(one.executable, one.node), "as its graph"),
    (lambda one: exec_update(one.executable, "graph"), "str as its graph"), (lambda one: exec_update(one.executable, one.y), "DeviceArray as its graph")])
def test_a_handle_of_another_kind_is_refused_before_cuda_sees_it(one, call, what):
    with pytest.raises(LabError, match=what):
        call(one)
    assert one.run() == [21, 42, 63, 84]


# ---- set_kernel ----------------------------------------------------------------------------------

@pytest.mark.parametrize("change, result", [
    ({}, [21, 42, 63, 84]), (dict(args={2: 3.0}), [31, 62, 93, 124]), (dict(args={2: 3.0, 3: 2}), [31, 62, 3, 4]), (dict(block=1), [21, 2, 3, 4]),
    (dict(block=1, grid=3), [21, 42, 63, 4]), (dict(shared=1024), [21, 42, 63, 84]), (dict(grid=4, block=256), [21, 42, 63, 84])])
def test_one_call_changes_what_it_names_and_keeps_the_rest(one, change, result):
    assert set_kernel(one.executable, one.node, **change) == (CODE.cudaSuccess,)
    assert one.run() == result


def test_set_kernel_takes_another_function_and_all_its_arguments(one):
    ok(set_kernel(one.executable, one.node, kernel=kernels.fill, args=(one.y, 7.0, 3)))
    assert one.run() == [7, 7, 7, 4]
    with pytest.raises(LabError, match="fill was launched with 4 arguments"):
        set_kernel(one.executable, one.node, kernel=kernels.fill)
    with pytest.raises(LabError, match="as its kernel"):
        set_kernel(one.executable, one.node, kernel="fill")


def test_set_kernel_starts_from_the_graph_each_time(one):
    ok(set_kernel(one.executable, one.node, block=1))
    ok(set_kernel(one.executable, one.node, args={2: 1.0}))
    assert one.run() == [11, 22, 33, 44]


def test_a_buffer_can_be_exchanged(one):
    z = floats(5, 5, 5, 5)
    ok(set_kernel(one.executable, one.node, args={1: z}))
    assert one.run() == [11, 12, 13, 14]


def test_a_node_of_another_graph_and_of_another_kind_get_cudas_code(one, stream):
    other = captured(stream, axpy(one.y, one.x), memset(floats(0, 0, 0, 0)))
    kernel, clear = graph.nodes(other)
    executable = ok(cudart.cudaGraphInstantiate(other, 0))
    assert set_kernel(one.executable, kernel, grid=2) == (INVALID,)
    assert set_kernel(executable, clear, grid=2) == (INVALID,)
    assert set_kernel(executable, None) == (INVALID,)
    assert set_kernel(executable, kernel, args={2: 1.0}) == (CODE.cudaSuccess,)
    assert one.run() == [21, 42, 63, 84]


def test_a_destroyed_executable_gets_cudas_code(one):
    ok(cudart.cudaGraphExecDestroy(one.executable))
    assert set_kernel(one.executable, one.node, grid=2) == (INVALID,)
    one.executable = ok(cudart.cudaGraphInstantiate(one.graph, 0))
    ok(set_kernel(one.executable, one.node, args={2: 1.0}))
    assert one.run() == [11, 22, 33, 44]


# ---- prepare_update ------------------------------------------------------------------------------

@pytest.fixture
def three(one):
    """An executable of four nodes: y += 2 x, z = 0, y += 2 x, y += 2 x."""
    one.z = floats(9, 9, 9, 9)
    one.graph = captured(one.stream, axpy(one.y, one.x), memset(one.z), axpy(one.y, one.x), axpy(one.y, one.x))
    one.nodes = graph.nodes(one.graph)
    one.kernels = [node for node, kind in zip(one.nodes, graph.kinds(one.graph)) if kind == "Kernel"]
    one.executable = ok(cudart.cudaGraphInstantiate(one.graph, 0))
    one.by = lambda a: kernel_params(kernels.axpy, 1, 4, one.y, one.x, a, 4)
    return one


def test_one_update_gives_every_named_node_its_own_values(three):
    copy = prepare_update(three.graph, dict(zip(three.kernels, map(three.by, (1.0, 10.0, 100.0)))))
    ok(cudart.cudaGraphExecUpdate(three.executable, copy))
    assert three.run() == [1111, 2222, 3333, 4444] and to_host(three.z, three.stream).tolist() == [0, 0, 0, 0]


def test_nodes_that_are_not_named_do_what_the_graph_says(three):
    ok(set_kernel(three.executable, three.kernels[2], args={2: 50.0}))          # a whole update sets this one back
    ok(cudart.cudaGraphExecUpdate(three.executable, prepare_update(three.graph, {three.kernels[0]: three.by(1.0)})))
    assert three.run() == [51, 102, 153, 204]
    ok(cudart.cudaGraphExecUpdate(three.executable, prepare_update(three.graph, {})))
    assert three.run() == [111, 222, 333, 444]


def test_the_graph_that_was_copied_stays_as_it_is(three):
    copy = prepare_update(three.graph, dict.fromkeys(three.kernels, three.by(7.0)))
    assert [launched(node).args[2] for node in three.kernels] == [2.0] * 3
    assert [launched(node).args[2] for node in graph.nodes(copy) if graph.kind(node) == "Kernel"] == [7.0] * 3
    assert int(copy) != int(three.graph) and not set(map(int, graph.nodes(copy))) & set(map(int, three.nodes))
    assert graph.kinds(copy) == graph.kinds(three.graph) and graph.edges(copy) == graph.edges(three.graph)
    assert three.run() == [61, 122, 183, 244]                                   # and so does the executable, until it is updated
    three.executable = ok(cudart.cudaGraphInstantiate(three.graph, 0))
    assert three.run() == [121, 242, 363, 484]


def test_copies_can_take_turns_any_number_of_times(three):
    copies = {a: prepare_update(three.graph, dict.fromkeys(three.kernels, three.by(a))) for a in (1.0, 2.0)}
    for a in (1.0, 2.0, 2.0, 1.0):
        three.reset()
        ok(cudart.cudaGraphExecUpdate(three.executable, copies[a]))
        assert three.run() == [k + 3 * a * 10 * k for k in (1, 2, 3, 4)]


def test_grid_and_function_change_too(three):
    first, second, third = three.kernels
    fill, short = kernel_params(kernels.fill, 1, 4, three.y, 5.0, 4), three.by(1.0).but(grid=3, block=1)
    ok(cudart.cudaGraphExecUpdate(three.executable, prepare_update(three.graph, {int(first): fill, second: short, third: short})))
    assert three.run() == [25, 45, 65, 5]


def test_the_copy_holds_the_arguments_and_lives_as_long_as_you_let_it(three):
    p = three.by(1.0)
    copy = prepare_update(three.graph, dict.fromkeys(three.kernels, p))
    ctypes.memset(int(p.kernelParams), 0, 32)                                   # where the four addresses of the values were
    del p
    ok(cudart.cudaGraphExecUpdate(three.executable, copy))
    ok(cudart.cudaGraphDestroy(copy))
    assert three.run() == [31, 62, 93, 124]


class Watched:
    """The cudart in use, and the copies of graphs that it made and destroyed."""

    def __init__(self):
        self.made, self.destroyed, self.__name__ = [], [], cudart.__name__

    def __getattr__(self, name):
        return getattr(cudart, name)

    def cudaGraphClone(self, graph):
        code, copy = cudart.cudaGraphClone(graph)
        self.made += [] if int(code) else [int(copy)]
        return code, copy

    def cudaGraphDestroy(self, graph):
        self.destroyed.append(int(graph))
        return cudart.cudaGraphDestroy(graph)


def test_the_copy_stays_for_the_caller_to_destroy(three):
    watched = Watched()
    copy = prepare_update(three.graph, {three.kernels[0]: three.by(1.0)}, cudart=watched)
    assert watched.made == [int(copy)] and watched.destroyed == [] and ok(cudart.cudaGraphDestroy(copy)) is None


@pytest.mark.parametrize("change", [dict(grid=0), dict(block=0), dict(block=2048), dict(shared=1 << 20)])
def test_what_cuda_refuses_is_a_laberror_and_leaves_no_copy(three, change):
    watched = Watched()
    with pytest.raises(LabError, match="prepare_update\\(three.graph") as error:
        prepare_update(three.graph, {three.kernels[0]: three.by(1.0), three.kernels[2]: three.by(1.0).but(**change)}, cudart=watched)
    assert error.value.code == INVALID and len(watched.made) == 1 and watched.destroyed == watched.made
    assert [launched(node).args[2] for node in three.kernels] == [2.0] * 3
    assert three.run() == [61, 122, 183, 244]


def test_a_graph_that_allocates_memory_cannot_be_prepared(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ptr = ok(cudart.cudaMallocAsync(16, stream))
    ok(launch(stream, kernels.fill, 1, 4, int(ptr), 1.0, 4))
    ok(cudart.cudaFreeAsync(ptr, stream))
    made, watched = ok(cudart.cudaStreamEndCapture(stream)), Watched()
    node = graph.nodes(made)[graph.kinds(made).index("Kernel")]
    with pytest.raises(LabError) as error:
        prepare_update(made, {node: launched(node)}, cudart=watched)
    assert error.value.code == CODE.cudaErrorNotSupported and watched.made == watched.destroyed == []
    executable = ok(cudart.cudaGraphInstantiate(made, 0))
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))


def test_a_node_of_another_graph_is_named(three):
    other = captured(three.stream, axpy(three.y, three.x))
    foreign, watched = graph.nodes(other)[0], Watched()
    for node in (foreign, int(foreign), None):
        with pytest.raises(LabError, match=f"prepare_update\\(\\) got {node!r:.60}, which is no node of this graph"):
            prepare_update(three.graph, {three.kernels[0]: three.by(1.0), node: three.by(1.0)}, cudart=watched)
    with pytest.raises(LabError, match="no node of this graph"):                # nor are the nodes of a copy those of the original
        prepare_update(other, {graph.nodes(prepare_update(other, {}))[0]: three.by(1.0)}, cudart=watched)
    assert watched.made == watched.destroyed == []


@pytest.mark.parametrize("call, says", [
    (lambda t: {t.nodes[1]: t.by(1.0)}, "parameters for node 1 \\(Memset\\)"),
    (lambda t: {t.nodes[2]: (1, 4, t.y, t.x, 1.0, 4)}, "got tuple for node 2"), (lambda t: {t.nodes[0]: None}, "got NoneType for node 0"),
    (lambda t: {t.nodes[0]: {2: 3.0}}, "got dict for node 0"), (lambda t: {t.nodes[0]: cudart.cudaKernelNodeParams()}, "got cudaKernelNodeParams for node 0"),
    (lambda t: {"first": t.by(1.0)}, "got str as its node"), (lambda t: {t.executable: t.by(1.0)}, "as its node"),
    (lambda t: [(t.nodes[0], t.by(1.0))], "got list as its parameters"), (lambda t: None, "got NoneType as its parameters")])
def test_what_is_no_set_of_kernel_parameters_is_refused_before_a_copy_is_made(three, call, says):
    watched = Watched()
    with pytest.raises(LabError, match=says):
        prepare_update(three.graph, call(three), cudart=watched)
    assert watched.made == [] and three.run() == [61, 122, 183, 244]


@pytest.mark.parametrize("what, says", [("executable", "as its graph"), ("node", "as its graph"), (None, "An argument is outside")])
def test_what_is_no_graph_is_refused(three, what, says):
    with pytest.raises(LabError, match=says):
        prepare_update(getattr(three, what) if what else None, {three.kernels[0]: three.by(1.0)})


# ---- exec_update ---------------------------------------------------------------------------------

def test_an_update_that_fits_says_success(one, stream):
    code, why = exec_update(one.executable, captured(stream, axpy(one.y, one.x, 5.0, grid=2, block=2)))
    assert code == CODE.cudaSuccess and why == reasons.UpdateResult("Success") and repr(why) == "Success" and why.explained is None
    assert one.run() == [51, 102, 153, 204]
    assert ok(exec_update(one.executable, one.graph)).result == "Success"


def host_copy(kind, y, host):
    down = kind == cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
    return copy(*((host.ctypes.data, y.ptr) if down else (y.ptr, host.ctypes.data)), kind)


def test_the_reason_of_a_refused_update_and_the_node_at_fault(one, stream):
    y, x, host = one.y, one.x, np.zeros(4, np.float32)
    down, up = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
    old = captured(stream, axpy(y, x), axpy(y, x, 3.0), host_copy(down, y, host))
    executable = ok(cudart.cudaGraphInstantiate(old, 0))
    cases = [
        ([axpy(y, x), axpy(y, x)], ("TopologyChanged", None, ""), "TopologyChanged: another number of nodes or edges"),
        ([axpy(y, x), memset(y), host_copy(down, y, host)], ("NodeTypeChanged", 1, "Memset"), "NodeTypeChanged at node 1 (Memset)"),
        ([axpy(y, x), axpy(y, x), host_copy(up, y, host)], ("ParametersChanged", 2, "Memcpy"), "ParametersChanged at node 2 (Memcpy)")]
    for steps, expected, line in cases:
        new = captured(stream, *steps)
        code, why = exec_update(executable, new)
        assert code == REFUSED and (why.result, why.position, why.kind) == expected and repr(why) == line
        assert why.other is None and (why.node is None) == (why.position is None)
        assert why.node is None or int(why.node) == int(graph.nodes(new)[why.position])
    one.executable = executable
    assert one.run() == [51, 102, 153, 204] and host.tolist() == [51, 102, 153, 204]      # as it was, after three refusals


def test_an_edge_that_does_not_match_is_told_by_both_its_ends(one):
    def web(third):
        made = ok(cudart.cudaGraphCreate(0))
        for before in ([], [], [0], third, [0, 1, 2, 3]):
            nodes = graph.nodes(made)
            ok(cudart.cudaGraphAddKernelNode(made, [nodes[i] for i in before], len(before), kernel_params(kernels.axpy, 1, 4, one.y, one.x, 1.0, 4)))
        return made
    executable, other = ok(cudart.cudaGraphInstantiate(web([1]), 0)), web([0])
    code, why = exec_update(executable, other)
    assert code == REFUSED and why.result == "TopologyChanged" and (why.position, why.other_position) == (3, 0)
    assert repr(why) == "TopologyChanged at node 3 (Kernel), which waits for node 0" and int(why.other) == int(graph.nodes(other)[0])


def test_a_node_at_fault_inside_a_child_graph_has_no_place_in_the_graph(one, stream):
    def around(inner):
        made = ok(cudart.cudaGraphCreate(0))
        ok(cudart.cudaGraphAddChildGraphNode(made, [], 0, inner))
        return made
    executable = ok(cudart.cudaGraphInstantiate(around(captured(stream, axpy(one.y, one.x))), 0))
    code, why = exec_update(executable, around(captured(stream, memset(one.y))))
    assert code == REFUSED and why.result == "NodeTypeChanged" and why.position is None
    assert "Memset node in a child graph" in repr(why)


def test_ok_around_a_refused_update_tells_the_reason(one, stream):
    with pytest.raises(LabError) as error:
        ok(exec_update(one.executable, captured(stream, memset(one.y))))
    assert error.value.code == REFUSED
    assert error.value.did == "This call was refused: ok(exec_update(one.executable, captured(stream, memset(one.y))))"
    assert "NodeTypeChanged at node 0 (Memset). In this place the executable has a node of another kind." in str(error.value)
    assert "instantiate the graph anew" in error.value.try_
    with pytest.raises(LabError, match="exec_update\\(executable, graph\\)"):       # the runtime's own call has no reason to tell
        ok(cudart.cudaGraphExecUpdate(one.executable, captured(stream, memset(one.y))))
    assert one.run() == [21, 42, 63, 84]


@pytest.mark.parametrize("which", ["executable", "graph"])
def test_no_handle_at_all_gets_cudas_code_and_the_catalogues_words(one, which):
    pair = (None, one.graph) if which == "executable" else (one.executable, None)
    code, why = exec_update(*pair)
    assert code == INVALID and why.result == "Error" and why.node is None
    with pytest.raises(LabError, match="An argument is outside"):
        ok(exec_update(*pair))
    assert one.run() == [21, 42, 63, 84]


def test_there_is_a_sentence_for_every_result_of_an_update():
    names = [member.name.removeprefix("cudaGraphExecUpdate") for member in cudart.cudaGraphExecUpdateResult]
    assert {name if name == "Error" else name.removeprefix("Error") for name in names} == reasons.REASONS.keys() and len(names) >= 9
    explained = {name for name, (_, means, try_) in reasons.REASONS.items() if means and try_}
    assert explained == reasons.REASONS.keys() - {"Success", "Error"}
    assert all(reasons.UpdateResult(name).explained for name in explained)


# ---- the GPU's side, as far as it can be tried without one ----------------------------------------

@pytest.fixture
def bindings():
    if backend.name == "gpu":
        pytest.skip("the handles here are made up, and a real driver would follow them")
    try:
        return importlib.import_module("cuda.bindings.runtime")
    except ModuleNotFoundError:
        pytest.skip("cuda-bindings are not installed here; make test installs them on Linux")


@pytest.fixture
def loaded():
    """A Kernel that stands as if it had been compiled and loaded: its handle is a number."""
    kernel = Kernel(kernels.axpy.source, "axpy", ["float*", "const float*", "float", "int"])
    kernel.func_on = lambda cudart: 0x1240
    return kernel


def test_the_bindings_take_prepared_parameters_as_their_own(bindings, loaded):
    p = kernel_params(loaded, (4, 2), 256, 0x1000, 0x2000, 2.0, 1000, shared=64, cudart=bindings)
    assert isinstance(p, bindings.cudaKernelNodeParams) and (p.grid, p.block, p.shared, int(p.func)) == ((4, 2, 1), (256, 1, 1), 64, 0x1240)
    assert loaded.read(p.kernelParams) == (0x1000, 0x2000, 2.0, 1000) and p.but(args={3: 5}).args == (0x1000, 0x2000, 2.0, 5)
    assert repr(p) == "axpy<<<(4, 2, 1), (256, 1, 1), 64>>>(0x1000, 0x2000, 2.0, 1000)"
    for call in (lambda: bindings.cudaGraphExecKernelNodeSetParams(0, 0, p), lambda: bindings.cudaGraphKernelNodeSetParams(0, p),
                 lambda: bindings.cudaGraphAddKernelNode(0, [], 0, p)):
        assert int(call()[0])                              # null handles: a code comes back, no TypeError


@pytest.mark.parametrize("form", ["kernel", "function"])
def test_a_node_is_read_through_the_driver_by_either_handle(monkeypatch, bindings, loaded, form):
    from cuda.bindings import driver
    p = kernel_params(loaded, (4, 2), 256, 0x1000, 0x2000, 2.0, 1000, shared=64, cudart=bindings)
    found = SimpleNamespace(kern=driver.CUkernel(0x1240 if form == "kernel" else 0), func=driver.CUfunction(0x7700 if form == "function" else 0),
                            gridDimX=4, gridDimY=2, gridDimZ=1, blockDimX=256, blockDimY=1, blockDimZ=1, sharedMemBytes=64, kernelParams=p.kernelParams)
    asked = []
    monkeypatch.setattr(driver, "cuGraphKernelNodeGetParams", lambda node: asked.append(node) or (driver.CUresult(0), found))
    monkeypatch.setattr(driver, "cuKernelGetFunction", lambda kernel: (driver.CUresult(0), driver.CUfunction(0x7700)))
    monkeypatch.setattr(update, "_kind", lambda node, cudart: (None, "Kernel"))
    monkeypatch.setattr(kernels, "on_gpu", {0x1240: loaded})
    monkeypatch.setattr(update, "_functions", {})
    for node in (16, driver.CUgraphNode(16), bindings.cudaGraphNode_t(16)):
        back = launched(node, cudart=bindings)
        assert back.kernel is loaded and repr(back) == repr(p)
    assert asked == [16, 16, 16]
    monkeypatch.setattr(kernels, "on_gpu", {})
    monkeypatch.setattr(update, "_functions", {})
    with pytest.raises(LabError, match="labkit did not load"):
        launched(16, cudart=bindings)
    found.kernelParams = 0
    monkeypatch.setattr(kernels, "on_gpu", {0x1240: loaded})
    with pytest.raises(LabError, match="labkit did not load"):
        launched(16, cudart=bindings)


def test_the_drivers_answer_to_an_update_is_read(monkeypatch, bindings):
    told = {}

    def driver_update(executable, graph_, where):
        info = where._obj
        info.result, info.node, info.other = told["info"]
        told["given"] = executable, graph_
        return told["code"]
    monkeypatch.setattr(update, "_driver_update", lambda: driver_update)
    monkeypatch.setattr(graph, "nodes", lambda graph_, cudart: [bindings.cudaGraphNode_t(0x10), bindings.cudaGraphNode_t(0x20)])
    monkeypatch.setattr(graph, "kind", lambda node, cudart: "Kernel")
    code = bindings.cudaError_t
    for number, info, result, line in [
            (0, (0, 0, 0), "Success", "Success"), (910, (2, 0, 0), "TopologyChanged", "TopologyChanged: another number of nodes or edges"),
            (910, (3, 0x20, 0), "NodeTypeChanged", "NodeTypeChanged at node 1 (Kernel)"),
            (910, (2, 0x20, 0x10), "TopologyChanged", "TopologyChanged at node 1 (Kernel), which waits for node 0"),
            (1, (0, 0, 0), "Error", "Error: the code says why")]:
        told.update(code=number, info=info)
        answer, why = exec_update(bindings.cudaGraphExec_t(5), bindings.cudaGraph_t(6), cudart=bindings)
        assert answer is code(number) and (why.result, repr(why)) == (result, line) and told["given"] == (5, 6)
    assert ctypes.sizeof(update._Info) == 24                # int, padding, two pointers


# ---- the kernels that came with the lessons on updates -------------------------------------------

def test_axpy_n_reads_its_size_when_it_runs(stream):
    y, x, n = floats(1, 2, 3, 4), floats(10, 20, 30, 40), to_device(np.array([3], np.int32))
    made = captured(stream, lambda s: launch(s, kernels.axpy_n, 1, 8, y, x, 1.0, n))
    executable = ok(cudart.cudaGraphInstantiate(made, 0))
    for size, result in [(3, [11, 22, 33, 4]), (1, [21, 22, 33, 4]), (0, [21, 22, 33, 4]), (4, [31, 42, 63, 44])]:
        ok(cudart.cudaMemcpy(n.ptr, np.array([size], np.int32).ctypes.data, 4, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice))
        ok(cudart.cudaGraphLaunch(executable, stream))
        assert to_host(y, stream).tolist() == result


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("relu", [0, 1])
@pytest.mark.parametrize("rows, inner, cols, threads", [
    (3, 4, 2, 8), (3, 4, 2, 6), (3, 4, 2, 5), (3, 4, 2, 1), (1, 1, 1, 256), (5, 3, 7, 256), (0, 2, 2, 4), (2, 0, 2, 4)])
def test_a_dense_layer_is_a_matrix_product_for_the_threads_that_were_launched(stream, in_memory, relu, rows, inner, cols, threads):
    rng = np.random.default_rng(rows * 100 + cols)
    x, w = [rng.integers(-3, 4, size).astype(np.float32) for size in ((max(rows, 1), max(inner, 1)), (max(inner, 1), cols))]
    y = to_device(np.full(max(rows, 1) * cols + 2, 99, np.float32))
    size = to_device(np.array([rows], np.int32)) if in_memory else rows
    ok(launch(stream, kernels.dense_n if in_memory else kernels.dense, 1, threads, y, to_device(x), to_device(w), size, inner, cols, relu))
    product = (x[:rows, :inner] @ w[:inner]).ravel()
    expected = np.full(y.size, 99, np.float32)
    count = min(threads, rows * cols)
    expected[:count] = np.maximum(product, 0)[:count] if relu else product[:count]
    assert to_host(y, stream).tolist() == expected.tolist()
