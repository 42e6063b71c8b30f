"""The names: signatures, enumerations, handles and structures like those of the bindings."""
import importlib.metadata
import importlib.util
import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from labkit import sim
from labkit.errors import NotSimulated
from labkit.sim import enums, guards, names, runtime
from labkit.sim.runtime._names import TABLE

RECORDED = json.loads(Path(__file__).with_name("signatures.json").read_text())
PAIRS = [(line, name) for line in (12, 13) for name in sorted(TABLE[line])]
assert len(PAIRS) > 170


def arguments(function):
    return [[p.name] if p.default is p.empty else [p.name, p.default] for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("line, name", PAIRS)
def test_signature_equals_the_recorded_one_of_the_bindings(line, name):
    recorded = {**RECORDED["both"], **RECORDED[str(line)]}
    assert arguments(TABLE[line][name]) == recorded[name]


def test_signatures_equal_those_of_the_installed_bindings():
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        pytest.skip("cuda-bindings are not installed here; the recorded signatures were compared")
    from cuda.bindings import runtime as real
    line = int(importlib.metadata.version("cuda-bindings").split(".")[0])
    for name, function in TABLE[line].items():
        assert arguments(function) == arguments(getattr(real, name)), name


def test_enumerations_equal_those_of_the_installed_bindings():
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.bindings") is None:
        pytest.skip("cuda-bindings are not installed here")
    from cuda.bindings import runtime as real
    version = importlib.metadata.version("cuda-bindings")
    sim.set_line(int(version.split(".")[0]))
    whole = version.startswith(("12.9.", "13.4."))          # the simulator's enumerations; older ones lack a few members
    for name in sim.values.enum_names():
        ours, theirs = getattr(runtime, name), getattr(real, name)
        ours_, theirs_ = ({k: int(v) for k, v in enum.__members__.items()} for enum in (ours, theirs))
        both = {k for k in theirs_ if k in ours_ and not k.endswith("Max")}
        assert theirs_ == ours_ if whole else {k: theirs_[k] for k in both} == {k: ours_[k] for k in both}
        if whole and len(ours) == len(theirs):                    # 13.4 shows two names of one value as two members
            assert [repr(m) for m in ours] == [repr(m) for m in theirs]
    if not whole:
        return                                              # older bindings print their structs otherwise
    for name in ("dim3", "cudaKernelNodeParams", "cudaMemsetParams", "cudaHostNodeParams", "cudaGraphInstantiateParams",
                 "cudaGraphEdgeData", "cudaGraphExecUpdateResultInfo", "cudaMemcpy3DParms", "cudaKernelNodeParamsV2", "cudaMemcpyNodeParams",
                 "cudaMemsetParamsV2", "cudaHostNodeParamsV2", "cudaChildGraphNodeParams", "cudaEventRecordNodeParams"):
        assert repr(getattr(runtime, name)()) == repr(getattr(real, name)())


def test_every_simulated_or_designed_name_has_a_guard_and_exists():
    real = {*names.IN_BOTH, *names.ONLY_IN_12, *names.ONLY_IN_13}
    for line in (12, 13):
        assert set(TABLE[line]) <= set(guards.GUARDS)
    assert set(guards.GUARDS) <= real
    assert len(guards.GUARDS) > 120


def test_a_line_has_its_own_names():
    assert runtime.cudaRuntimeGetVersion()[1] == 12090 and hasattr(runtime, "cudaGraphGetEdges_v2")
    sim.set_line(13)
    assert runtime.cudaRuntimeGetVersion()[1] == 13040 and not hasattr(runtime, "cudaGraphGetEdges_v2")
    assert len(runtime.cudaGraphGetEdges(0)) == 5


def test_a_real_name_that_is_missing_says_so():
    with pytest.raises(NotSimulated, match="real function exists"):
        runtime.cudaArrayGetInfo
    with pytest.raises(AttributeError, match="labkit.sim.runtime.*cudaGraphExecNodeReplace") as caught:
        runtime.cudaGraphExecNodeReplace
    assert not isinstance(caught.value, NotSimulated)
    assert "cudaMalloc" in dir(runtime) and "cudaArrayGetInfo" not in dir(runtime)


def test_a_missing_name_still_answers_inside_a_capture(lab):
    with pytest.raises(NotSimulated):
        runtime.cudaMallocManaged(64, 1)
    stream = lab.stream()
    runtime.cudaStreamBeginCapture(stream, lab.GLOBAL)
    assert runtime.cudaMallocManaged(64, 1) == (900, None)
    assert lab.status(stream) == "Invalidated"


def test_enumerations_look_like_the_bindings():
    code = runtime.cudaError_t(1)
    assert code is runtime.cudaError_t.cudaErrorInvalidValue and code == 1 and isinstance(code, int)
    assert repr(code) == str(code) == f"{code}" == "<cudaError_t.cudaErrorInvalidValue: 1>"
    assert (code.name, code.value, f"{code:d}") == ("cudaErrorInvalidValue", 1, "1")
    assert repr(runtime.cudaError_t) == "<enum 'cudaError_t'>" and 1 in runtime.cudaError_t
    with pytest.raises(ValueError, match="123456 is not a valid cudaError_t"):
        runtime.cudaError_t(123456)
    assert len(enums.ENUMS) == 78


def test_handles_look_like_the_bindings():
    stream = runtime.cudaStream_t(5)
    assert repr(stream) == "<CUstream 0x5>" and int(stream) == 5 and hash(stream) == 5 and bool(runtime.cudaStream_t(0))
    assert stream == runtime.cudaStream_t(5) and stream != 5 and stream != runtime.cudaEvent_t(5)
    assert stream.__cuda_stream__() == (0, 5) and runtime.cudaStream_t(1.5) == runtime.cudaStream_t(1)
    for bad, error in (("a", TypeError), (None, TypeError), (-1, OverflowError), (2 ** 64, OverflowError)):
        with pytest.raises(error):
            runtime.cudaStream_t(bad)


def test_structures_look_like_the_bindings():
    params = runtime.cudaKernelNodeParams()
    params.gridDim.x = np.int32(7)
    assert repr(params.gridDim) == "x : 7\ny : 1\nz : 1" and "gridDim :\n    x : 7" in repr(params)
    grid = runtime.dim3()
    grid.x = 9
    params.gridDim = grid
    grid.x = 11
    assert params.gridDim.x == 9
    for name, bad, error in (("gridDim", (1, 2, 3), TypeError), ("sharedMemBytes", -1, OverflowError), ("foo", 1, AttributeError),
                             ("kernelParams", (1,), TypeError), ("kernelParams", ((1, 2), (None,)), TypeError)):
        with pytest.raises(error):
            setattr(params, name, bad)


# What the bindings raise before a driver is asked, seen with both lines.
@pytest.mark.parametrize("call, error", [
    (lambda r: r.cudaStreamSynchronize("a"), TypeError), (lambda r: r.cudaStreamSynchronize([]), TypeError),
    (lambda r: r.cudaStreamSynchronize(-1), OverflowError), (lambda r: r.cudaStreamSynchronize(), TypeError),
    (lambda r: r.cudaStreamSynchronize(0, 0), TypeError), (lambda r: r.cudaStreamCreateWithFlags(None), TypeError),
    (lambda r: r.cudaStreamCreateWithFlags(2 ** 32), OverflowError), (lambda r: r.cudaStreamBeginCapture(0, None), TypeError),
    (lambda r: r.cudaStreamBeginCapture(0, "a"), ValueError), (lambda r: r.cudaMalloc(-1), OverflowError),
    (lambda r: r.cudaFree("a"), TypeError), (lambda r: r.cudaFree(-1), TypeError), (lambda r: r.cudaFree([]), TypeError),
    (lambda r: r.cudaMemcpy(0, 0, 1, None), TypeError), (lambda r: r.cudaGraphAddEmptyNode(0, [1], 1), TypeError),
    (lambda r: r.cudaGraphAddEmptyNode(0, None, 1), RuntimeError), (lambda r: r.cudaGraphAddKernelNode(0, None, 0, 5), TypeError),
    (lambda r: r.cudaGraphDebugDotPrint(0, "x", 0), TypeError), (lambda r: r.cudaGraphGetNodes(0, -1), OverflowError),
    (lambda r: r.cudaDeviceGetAttribute(1, 2 ** 31), OverflowError), (lambda r: r.cudaGetErrorName(None), TypeError),
])
def test_wrong_arguments_raise_as_in_the_bindings(call, error):
    with pytest.raises(error):
        call(runtime)


def test_arguments_are_accepted_as_in_the_bindings():
    assert runtime.cudaStreamCreateWithFlags(1.0)[0] == 0 and runtime.cudaStreamQuery(0)[0] == 0
    assert runtime.cudaGetErrorName(1) == runtime.cudaGetErrorName("1") == (0, b"cudaErrorInvalidValue")
    assert runtime.cudaGetErrorString(12345) == (0, b"unrecognized error code")
    params = runtime.cudaMemsetParams()
    array = np.ones((2, 3), order="F")
    params.dst = array
    assert params.dst == array.ctypes.data
    with pytest.raises((BufferError, ValueError)):
        params.dst = np.ones((4, 4))[::2, ::2]


@pytest.mark.parametrize("line", [12, 13])
def test_edge_data_that_would_be_dropped_is_refused(line):
    sim.set_line(line)
    graph, edge = runtime.cudaGraphCreate(0)[1], runtime.cudaGraphEdgeData()
    a, b = (runtime.cudaGraphAddEmptyNode(graph, [], 0)[1] for _ in range(2))
    add = runtime.cudaGraphAddDependencies if line == 13 else runtime.cudaGraphAddDependencies_v2
    edge.type = 1
    stream, mode = runtime.cudaStreamCreate()[1], runtime.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
    for call in (lambda: add(graph, [a], [b], [edge], 1), lambda: runtime.cudaStreamBeginCaptureToGraph(stream, graph, [a], [edge], 1, mode)):
        with pytest.raises(NotSimulated, match="type or a port"):
            call()
    assert not int(runtime.cudaStreamIsCapturing(stream)[1])
