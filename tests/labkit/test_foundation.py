"""The seam, ok(), the buffers, reading a graph, and recover()."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import labkit
from labkit import LabError, cudart, empty, graph, kernels, launch, ok, recover, to_device, to_host
from labkit.backend import Unusable, backend, choose
from labkit.errors import CATALOGUE, NotSimulated, Undefined
from labkit.arrays import copy_in
from labkit.driver import Driver

ROOT = Path(__file__).resolve().parents[2]
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


def python(line, **env):
    return subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **env})


# ---- the seam ------------------------------------------------------------------------------------

def test_cudart_is_the_bindings_module_itself_or_the_simulators():
    if backend.name == "gpu":
        from cuda.bindings import runtime
    else:
        from labkit.sim import runtime
    assert cudart is runtime
    assert sys.modules.get("cuda.bindings.runtime") is not sys.modules.get("labkit.sim.runtime")    # nothing stands in for the real one


def test_the_choice_is_said_in_one_line():
    said = python("from labkit import cudart", LABKIT_BACKEND="sim").stdout
    assert said == "labkit runs on the capture simulator: LABKIT_BACKEND=sim asks for it.\n"


@pytest.mark.parametrize("driver, reason", [
    (Driver(), "no NVIDIA driver"), (Driver(100, 12080), "no GPU"), (Driver(0, 12080, 0), "no GPU"), (Driver(0, 11080, 1), "525")])
def test_auto_falls_back_with_the_reason_and_gpu_never_does(monkeypatch, driver, reason):
    monkeypatch.setattr("labkit.driver.ask", lambda: driver)
    runtime, chosen = choose("auto")
    assert chosen.name == "sim" and reason in chosen.reason and runtime.__name__ == "labkit.sim.runtime"
    with pytest.raises(LabError, match="LABKIT_BACKEND=gpu asks for a GPU"):
        choose("gpu")


def test_a_broken_driver_is_an_error_that_names_the_code_and_the_way_out(monkeypatch):
    monkeypatch.setattr("labkit.driver.ask", lambda: Driver(999, 12080))
    for wish in ("auto", "gpu"):
        with pytest.raises(LabError, match="999") as error:
            choose(wish)
        assert "LABKIT_BACKEND=sim" in str(error.value)
    assert choose("sim")[1].name == "sim"


def test_an_unknown_backend_says_what_there_is():
    failed = python("from labkit import cudart", LABKIT_BACKEND="cuda")
    assert failed.returncode and "labkit knows auto, gpu and sim" in failed.stderr
    assert issubclass(Unusable, Exception)


def test_every_public_name_is_there_and_an_unknown_one_says_what_is():
    for name in labkit.__all__:
        assert getattr(labkit, name) is not None
    assert callable(labkit.measure) and callable(labkit.film) and callable(labkit.predict) and callable(labkit.timeline)
    with pytest.raises(AttributeError, match="it has DeviceArray"):
        labkit.launhc


# ---- ok() ----------------------------------------------------------------------------------------

def test_ok_hands_back_the_values():
    code = cudart.cudaError_t.cudaSuccess
    assert ok((code,)) is None and ok((code, 5)) == 5 and ok((code, 5, 6)) == (5, 6)


@pytest.mark.parametrize("thing", [None, 0, (), (0, 5), "text", [1], object()])
def test_ok_of_something_else_says_how_to_call_it(thing):
    with pytest.raises(LabError, match=r"Write ok\(cudart"):
        ok(thing)


def test_an_error_says_the_line_the_meaning_and_the_name_last():
    with pytest.raises(LabError) as error:
        ok(cudart.cudaStreamEndCapture(ok(cudart.cudaStreamCreate())))
    lines = str(error.value).splitlines()
    assert "ok(cudart.cudaStreamEndCapture" in lines[0] and lines[-1].endswith("cudaErrorIllegalState (401)")
    assert error.value.code == cudart.cudaError_t.cudaErrorIllegalState and len(lines) == 4


def test_every_code_that_any_scenario_returned_is_in_the_catalogue():
    codes = set()
    for path in (ROOT / "tests/conformance/traces").glob("*.json"):
        text = path.read_text(encoding="utf-8")
        codes |= {name for name in cudart.cudaError_t.__members__ if f'"{name}"' in text and name != "cudaSuccess"}
    assert len(codes) >= 15
    assert not {name for name in codes if int(getattr(cudart.cudaError_t, name)) not in CATALOGUE}
    assert all(len(entry) == 2 and all(part.endswith((".", ")")) for part in entry) for entry in CATALOGUE.values())


@pytest.mark.parametrize("line, words", [
    ("ok(cudart.cudaGraphLaunch(executable, stream))", "AutoFreeOnLaunch"), ("ok(cudart.cudaFreeAsync(block, stream))", "has been launched"),
    ("ok(cudart.cudaFree(block))", "freed already"), ("ok(cudart.cudaMemsetAsync(block, 0, 4, stream))", "from its launch to its free"),
    ("ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))", "grid and block"), ("ok(cudart.cudaMemPoolDestroy(pool))", "handle still exists")])
def test_an_invalid_value_has_a_hint_for_the_call_in_the_line(monkeypatch, line, words):
    monkeypatch.setattr("labkit.errors._caller_line", lambda: line)
    with pytest.raises(LabError, match=words):
        ok((cudart.cudaError_t.cudaErrorInvalidValue,))


def test_an_address_to_read_is_told_how(monkeypatch):
    with pytest.raises(LabError, match=r"DeviceArray\(address, count, dtype\)"):
        to_host(1 << 52)
    with pytest.raises(LabError, match="Pass that buffer"):
        to_host("y")


def test_what_the_simulator_lacks_is_an_attribute_error_too():
    assert issubclass(NotSimulated, AttributeError) and issubclass(NotSimulated, LabError) and issubclass(Undefined, LabError)


# ---- buffers -------------------------------------------------------------------------------------

def test_there_and_back():
    for array in [np.arange(6, dtype=np.float32), np.arange(6).reshape(2, 3), np.array([1 + 2j]), np.array([True, False])]:
        buffer = to_device(array)
        assert to_host(buffer).tolist() == array.reshape(-1).tolist() and buffer.nbytes == array.nbytes
        assert buffer.__cuda_array_interface__["data"] == (buffer.ptr, False)
        buffer.free()


@pytest.mark.parametrize("call", [lambda: empty(0), lambda: empty(-1), lambda: empty(2.5), lambda: empty(True), lambda: empty(4, object), lambda: empty(4, "nope"), lambda: empty(4, ">f4"), lambda: empty(2 ** 63), lambda: to_device([[1, 2], [3]]), lambda: copy_in(5, np.zeros(4)), lambda: recover("x"), lambda: empty("4"), lambda: to_device(["a"]), lambda: to_device(np.array([object()])),
                                  lambda: to_host(np.zeros(3)), lambda: to_host(5), lambda: copy_in(empty(4), np.zeros(4)), lambda: copy_in(empty(4), np.zeros(3, np.float32))])
def test_a_wrong_array_is_a_laberror(call):
    with pytest.raises(LabError):
        call()


def test_more_memory_than_there_is_comes_back_as_cudas_code():
    with pytest.raises(LabError) as error:
        empty(2 ** 50)
    assert error.value.code == cudart.cudaError_t.cudaErrorMemoryAllocation


def test_reading_while_capturing_is_refused_and_the_capture_lives():
    stream, y = ok(cudart.cudaStreamCreate()), to_device(np.zeros(4, np.float32))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    with pytest.raises(LabError, match="nothing has run"):
        to_host(y, stream)
    assert graph.capture_state(stream).status == "Active"
    ok(cudart.cudaStreamEndCapture(stream))


# ---- reading a graph -----------------------------------------------------------------------------

def diamond():
    a, b = (ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2))
    event, y = ok(cudart.cudaEventCreate()), to_device(np.zeros(4, np.float32))
    ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
    ok(launch(a, kernels.fill, 1, 4, y, 1.0, 4))
    ok(cudart.cudaEventRecord(event, a))
    ok(cudart.cudaStreamWaitEvent(b, event, 0))
    ok(launch(a, kernels.fill, 1, 4, y, 1.0, 4))
    ok(cudart.cudaMemsetAsync(y.ptr, 0, 16, b))
    ok(cudart.cudaEventRecord(event, b))
    ok(cudart.cudaStreamWaitEvent(a, event, 0))
    ok(launch(a, kernels.fill, 1, 4, y, 1.0, 4))
    return a, b


def test_a_growing_graph_can_be_read_without_disturbing_it():
    a, b = diamond()
    state = graph.capture_state(a)
    assert (state.status, len(state.dependencies)) == ("Active", 1) and state.id == graph.capture_state(b).id
    assert graph.kinds(state.graph) == ["Kernel", "Kernel", "Memset", "Kernel"]
    made = ok(cudart.cudaStreamEndCapture(a))
    assert graph.edges(made) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    first, *_, last = graph.nodes(made)
    assert len(graph.dependencies(last)) == 2 and len(graph.dependents(first)) == 2 and graph.dependencies(first) == []
    assert graph.dot(made).startswith("digraph dot") and graph.capture_state(a).status == "None"


def test_edges_can_be_added_and_removed():
    made = ok(cudart.cudaGraphCreate(0))
    a, b = (ok(cudart.cudaGraphAddEmptyNode(made, [], 0)) for _ in range(2))
    graph.add_dependencies(made, [a], [b])
    assert graph.edges(made) == [(0, 1)]
    graph.remove_dependencies(made, [a], [b])
    assert graph.edges(made) == []


def test_dependencies_of_a_capture_can_be_replaced():
    stream, y = ok(cudart.cudaStreamCreate()), to_device(np.zeros(4, np.float32))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    graph.update_capture_dependencies(stream, [], replace=True)
    ok(launch(stream, kernels.fill, 1, 4, y, 1.0, 4))
    assert graph.edges(ok(cudart.cudaStreamEndCapture(stream))) == []


# ---- recover() -----------------------------------------------------------------------------------

def test_recover_ends_what_is_open_and_restores_the_mode(capsys):
    streams = [ok(cudart.cudaStreamCreate()) for _ in range(2)]
    ok(cudart.cudaStreamBeginCapture(streams[0], GLOBAL))
    cudart.cudaMalloc(16)                                        # breaks it
    cudart.cudaThreadExchangeStreamCaptureMode(cudart.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed)
    recover()                                                    # finds them in the list above
    assert "1 capture ended" in capsys.readouterr().out and graph.capture_state(streams[0]).status == "None"
    recover(*streams)
    assert "nothing was open" in capsys.readouterr().out
    old = ok(cudart.cudaThreadExchangeStreamCaptureMode(GLOBAL))
    assert old == GLOBAL


def test_recover_ends_a_fork_from_either_side():
    for order in (0, 1):
        a, b = diamond()
        recover(*((a, b) if order == 0 else (b, a)))
        assert graph.capture_state(a).status == graph.capture_state(b).status == "None"


# ---- the lessons' words ---------------------------------------------------------------------------

def test_what_lesson_02_says_that_cupy_printed_is_what_it_printed():
    cells = json.loads((ROOT / "notebooks/02_capture.ipynb").read_text(encoding="utf-8"))["cells"]
    cell, = (c for c in cells if "import cupy" in "".join(c["source"]))
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"]).strip()
    assert printed == "[6. 6. 6. 6.]" and f"The H200 printed {printed}" in "".join(cell["source"])
