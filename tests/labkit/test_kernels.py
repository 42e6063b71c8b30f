"""Kernels: what launch takes and refuses, and that text and twin are the same kernel."""
import importlib.util
import threading

import numpy as np
import pytest

from labkit import DeviceArray, Kernel, LabError, cudart, empty, kernels, launch, ok, stamp, to_device, to_host
from labkit.backend import backend

SHIPPED = [kernel for kernel in vars(kernels).values() if isinstance(kernel, Kernel)] + [stamp]


@pytest.fixture
def stream():
    made = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    yield made
    ok(cudart.cudaStreamDestroy(made))


def floats(*values):
    return to_device(np.array(values, dtype=np.float32))


def test_enough_kernels_are_shipped():
    assert {kernel.name for kernel in SHIPPED} >= {"axpy", "fill", "scale", "add", "stamp"}


@pytest.mark.parametrize("kernel", SHIPPED, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "compute_75"])
def test_every_kernel_compiles_without_a_gpu(kernel, arch):
    try:
        found = importlib.util.find_spec("cuda.bindings.nvrtc")
    except ModuleNotFoundError:
        found = None
    if not found:
        pytest.skip("cuda-bindings are not installed here; make test installs them on Linux")
    assert len(kernels.compile_source(kernel.source, kernel.name, arch)) > 500


def test_a_kernel_that_does_not_compile_shows_the_compilers_words():
    pytest.importorskip("cuda.bindings.nvrtc")
    with pytest.raises(LabError, match=r"bad\.cu\(1\): error"):
        kernels.compile_source('extern "C" __global__ void bad(float* y) { y[0] = nothing; }', "bad", "sm_90")


@pytest.mark.parametrize("name, args, result", [
    ("fill", (7.5, 3), [7.5, 7.5, 7.5, 4]), ("scale", (2.0, 3), [2, 4, 6, 4]), ("axpy", ("x", 2.0, 3), [21, 42, 63, 4]), ("add", ("x", "x", 3), [20, 40, 60, 4])])
def test_a_shipped_kernel_does_what_its_name_says_and_stops_at_n(stream, name, args, result):
    y, x = floats(1, 2, 3, 4), floats(10, 20, 30, 40)
    ok(launch(stream, getattr(kernels, name), 1, 8, y, *(x if a == "x" else a for a in args)))
    assert to_host(y, stream).tolist() == result


@pytest.mark.parametrize("grid, block, sum_", [(1, 4, 4), (2, 2, 4), ((2, 1, 1), (2, 1), 4), (1, 2, 2), ([1], [3], 3)])
def test_grid_and_block_matter(stream, grid, block, sum_):
    y = floats(0, 0, 0, 0)
    ok(launch(stream, kernels.fill, grid, block, y, 1.0, 4))
    assert to_host(y, stream).sum() == sum_


@pytest.mark.parametrize("grid, block", [(0, 4), (1, 0), (1, 1025), (1, 4096), ((1, 70000), 1)])
def test_an_impossible_size_is_cudas_to_refuse(stream, grid, block):
    assert launch(stream, kernels.fill, grid, block, floats(0), 1.0, 1)[0] == cudart.cudaError_t.cudaErrorInvalidValue


@pytest.mark.parametrize("change, says", [
    (dict(y=np.zeros(4, np.float32)), "lives in host memory"), (dict(y=None), "no device buffer"), (dict(y="y"), "no device buffer"),
    (dict(y=2.5), "no device buffer"), (dict(a="2"), "not a number"), (dict(a=None), "not a number"), (dict(n=4.0), "not a number"),
    (dict(n=2 ** 31), "does not fit"), (dict(grid="4"), "grid"), (dict(grid=1.5), "grid"), (dict(block=(1, 1, 1, 1)), "block"),
    (dict(grid=-1), "grid"), (dict(kernel="fill"), "as its kernel"), (dict(kernel=lambda: 0), "as its kernel")])
def test_a_wrong_argument_is_a_laberror_that_says_which(stream, change, says):
    given = dict(kernel=kernels.fill, grid=1, block=4, y=floats(0, 0, 0, 0), a=1.0, n=4) | change
    with pytest.raises(LabError, match=says):
        launch(stream, given["kernel"], given["grid"], given["block"], given["y"], given["a"], given["n"])


@pytest.mark.parametrize("stream", [(0, 5), "s", 1.5, [1]])
def test_what_is_no_stream_is_refused(stream):
    with pytest.raises(LabError, match="Unpack the tuple with ok"):
        launch(stream, kernels.fill, 1, 4, 64, 1.0, 4)


def test_a_swapped_buffer_and_a_number_too_large_are_refused(stream):
    y = floats(0)
    for a in (y, 1e300, 10 ** 400):
        with pytest.raises(LabError, match="was passed for float"):
            launch(stream, kernels.fill, 1, 1, y, a, 1)
    with pytest.raises(LabError, match="was passed for int"):
        launch(stream, kernels.fill, 1, 1, y, 1.0, y)


def test_too_few_and_too_many_arguments(stream):
    for args in [(), (1, 2, 3, 4)]:
        with pytest.raises(LabError, match="It takes 3: float\\*, float, int"):
            launch(stream, kernels.fill, 1, 4, *args)


def test_a_buffer_of_another_dtype_and_a_freed_one_are_refused(stream):
    doubles, gone = to_device(np.zeros(4)), floats(0, 0, 0, 0)
    with pytest.raises(LabError, match="float64 was passed for float"):
        launch(stream, kernels.fill, 1, 4, doubles, 1.0, 4)
    ok(launch(stream, kernels.fill, 1, 4, gone, 1.0, 4))      # the arguments are remembered ...
    gone.free()
    with pytest.raises(LabError, match="freed buffer"):        # ... and looked at again after a free
        launch(stream, kernels.fill, 1, 4, gone, 1.0, 4)
    with pytest.raises(LabError, match="freed buffer"):
        gone.free()


def test_arguments_that_changed_are_packed_anew(stream):
    y = floats(0)
    for value in [1.0, 2.0, 2.0, 3.0]:
        ok(launch(stream, kernels.fill, 1, 1, y, value, 1))
        assert to_host(y, stream)[0] == value


def test_a_type_that_labkit_cannot_pass_is_refused():
    for bad in ["half", "float**", "struct pair", ""]:
        with pytest.raises(LabError, match="kernel parameter"):
            Kernel("", "k", [bad])


def test_two_threads_can_launch_the_same_kernel(stream):
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    a, b, wrong = floats(0), floats(0), []

    def work(queue, y, step):
        for _ in range(200):
            if int(launch(queue, kernels.axpy, 1, 1, y, y_one, step, 1)[0]):
                wrong.append(step)
    y_one = floats(1)
    threads = [threading.Thread(target=work, args=each) for each in [(stream, a, 1.0), (other, b, 2.0)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong and to_host(a, stream)[0] == 200 and to_host(b, other)[0] == 400


def test_a_kernel_without_a_twin_is_captured_anywhere():
    if backend.name == "gpu":
        pytest.skip("on a GPU no twin is needed")
    stream, stamps = ok(cudart.cudaStreamCreate()), empty(2, np.uint64)
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    ok(launch(stream, stamp, 1, 1, stamps, 0))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    ok(cudart.cudaGraphLaunch(ok(cudart.cudaGraphInstantiate(graph, 0)), stream))
    with pytest.raises(LabError, match="no NumPy twin"):
        cudart.cudaStreamSynchronize(stream)


def test_func_is_what_a_kernel_node_takes(stream):
    y, params = floats(0), cudart.cudaKernelNodeParams()
    params.func, params.kernelParams = int(kernels.fill.func), kernels.fill.address(kernels.fill.pack((y, 4.0, 1)))
    params.gridDim.x = params.blockDim.x = 1
    graph = ok(cudart.cudaGraphCreate(0))
    ok(cudart.cudaGraphAddKernelNode(graph, [], 0, params))
    ok(cudart.cudaGraphLaunch(ok(cudart.cudaGraphInstantiate(graph, 0)), stream))
    assert to_host(y, stream)[0] == 4 and isinstance(y, DeviceArray)


def test_equal_arguments_made_anew_are_packed_once_and_others_never_taken_for_them():
    y, n = to_device(np.zeros(4, np.float32)), 1000
    once = kernels.fill.pack((y, 4.0, n * 2))
    assert kernels.fill.pack((y, 4.0, n * 2)) is once and kernels.fill.pack((y, 5.0, n * 2)) is not once
    for alternating in range(2):                           # two layers launched in turn keep both
        assert kernels.fill.pack((y, 4.0, n * 2)) is once
        kernels.fill.pack((y, 6.0, n))
    with pytest.raises(LabError, match="int n"):
        kernels.fill.pack((y, 4.0, n * 2.0))               # equal, and still no whole number
    assert np.signbit(kernels.fill.pack((y, -0.0, n))[1]) and not np.signbit(kernels.fill.pack((y, 0.0, n))[1])
    y.free()
    with pytest.raises(LabError):
        kernels.fill.pack((y, 4.0, n * 2))
