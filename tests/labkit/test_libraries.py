"""library_calls(): what CuPy and PyTorch answer inside a capture, from children or from the recording."""
import ast
import importlib
import json
import os

import pytest

from labkit.backend import Backend
from labkit.errors import LabError

lib = importlib.import_module("labkit.libraries")
recordings = importlib.import_module("labkit.recordings")
HERE = recordings.Provenance("Made Up 9000", "1.2.3", "13.3", "13.4.4", "3.11", "2026-01-02")
WORDS = set("SYNC LEGACY THREAD UPDATE DEVPTR HOSTMEM MEMNODE ERRCHK LIB WARM TEARDOWN JOIN FROZEN RNG ALIAS HOSTCB EVENT RESOURCE COMPOSE".split())
PROGRAM = lib.Program("cupy", "WARM", "Global", "a title", "", "y = x * 2")


def call(**said):
    return lib.Call(PROGRAM, **said)


# ---- the programs and their recording --------------------------------------------------------------

def test_the_programs_are_short_plain_python_of_known_classes():
    assert len(lib.PROGRAMS) >= 40 and len(set(lib.PROGRAMS)) == len(lib.PROGRAMS)
    for program in lib.PROGRAMS:
        for part in (program.before, program.inside, program.after):
            ast.parse(part)
            assert len(part) < 220
        assert program.inside and program.word in WORDS
        assert program.mode in {"cupy": ("Global", "Relaxed"), "torch": ("global", "thread_local")}[program.library]


def test_every_program_is_recorded_on_a_named_gpu():
    calls = lib.library_calls()
    assert [row.program for row in calls.rows] == lib.PROGRAMS and calls.missing == ""
    for _, place in calls.where.values():
        assert place.gpu.startswith("NVIDIA ") and place.how == "recorded" and place.date
    assert calls.count("not run") == 0


def test_every_recorded_process_captured_again_afterwards():
    assert {row.again for row in lib.library_calls().rows} == {"captures again"}


@pytest.mark.parametrize("library, title, mode, verdict", [
    ("cupy", "new array, pool empty", "Global", "lost"), ("cupy", "new array, pool empty", "Relaxed", "fine"),
    ("cupy", "new array, warmed up on another stream", "Global", "lost"), ("cupy", "new array, warmed up on this stream", "Global", "fine"),
    ("cupy", "copy to the host", "Global", "lives"), ("cupy", "work on Stream.null", "Relaxed", "silent"),
    ("torch", "matrix product, first use", "Global", "lost"), ("torch", "input rebound", "Global", "silent"),
    ("torch", "another thread allocates", "Global", "lost"), ("torch", "another thread allocates", "ThreadLocal", "fine")])
def test_what_lesson_17_says_of_the_recording_holds(library, title, mode, verdict):
    row, = (r for r in lib.library_calls().only(library, mode=mode).rows if r.program.title == title)
    assert row.verdict == verdict


# ---- what a call says ------------------------------------------------------------------------------

@pytest.mark.parametrize("said, verdict, answer", [
    (dict(state="Active", got=[1.0, 2.0], want=[1, 2]), "fine", "no error, [1, 2]"),
    (dict(state="Active"), "fine", "no error"),
    (dict(state="Active", got=[1.0], want=[2]), "silent", "got [1], not [2]"),
    (dict(stage="inside", error="E: text", code=900, state="Invalidated"), "lost", "900 StreamCaptureUnsupported"),
    (dict(stage="end", error="E: text", code=904, state="Active"), "lost", "904 StreamCaptureUnjoined"),
    (dict(stage="inside", error="RuntimeError: no", state="Active"), "lives", "RuntimeError"),
    (dict(stage="after", error="E: text", code=1, state="Active"), "later", "1 InvalidValue"),
    (dict(stage="inside", error="E: CUBLAS_STATUS_NOT_INITIALIZED when", state="Invalidated"), "lost", "CUBLAS_STATUS_NOT_INITIALIZED"),
    (dict(ended="time limit of 110 s"), "not run", "did not run: time limit of 110 s"),
    (dict(stage="before", error="ImportError: no", state=""), "not run", "did not run: ImportError: no")])
def test_the_verdict_and_the_answer(said, verdict, answer):
    assert (call(**said).verdict, call(**said).answer) == (verdict, answer)


def test_an_unknown_code_is_still_shown():
    assert call(stage="inside", error="E: x", code=99999, state="Active").answer == "99999 unknown"


# ---- running and keeping ---------------------------------------------------------------------------

FAKE_RUNTIME = """
from enum import IntEnum
class cudaError_t(IntEnum):
    cudaSuccess = 0
    cudaErrorStreamCaptureUnsupported = 900
    cudaErrorStreamCaptureInvalidated = 901
class Status(IntEnum):
    cudaStreamCaptureStatusActive = 1
    cudaStreamCaptureStatusInvalidated = 2
state = 1
def cudaGetErrorString(code): return 0, b"text of " + cudaError_t(code).name.encode()
def cudaStreamIsCapturing(handle): return 0, Status(state)
def cudaDeviceSynchronize(): return 0,
"""
FAKE_CUPY = """
import types
from cuda.bindings import runtime
__version__ = "0.0"
class CUDARuntimeError(RuntimeError):
    status = 900
class CUBLASError(RuntimeError):
    status = 1
class Stream:
    ptr = 1
    def __init__(self, non_blocking): pass
    def use(self): pass
    def synchronize(self): pass
    def begin_capture(self, mode=None): runtime.state = 1
    def end_capture(self):
        if runtime.state == 2: raise RuntimeError("cudaErrorStreamCaptureInvalidated: over")
        return types.SimpleNamespace(launch=lambda stream: None)
def lose(kind):
    runtime.state = 2
    raise kind("the library's words")
cuda = types.SimpleNamespace(Stream=Stream, runtime=types.SimpleNamespace(streamCaptureModeGlobal=0, streamCaptureModeRelaxed=2))
def arange(n, dtype): return 1
zeros = arange
"""


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A machine that seems to have a GPU, with a made-up CuPy and CUDA bindings for its children, and no PyTorch."""
    (tmp_path / "cuda/bindings").mkdir(parents=True)
    (tmp_path / "cuda/__init__.py").write_text("")
    (tmp_path / "cuda/bindings/__init__.py").write_text("")
    (tmp_path / "cuda/bindings/runtime.py").write_text(FAKE_RUNTIME)
    (tmp_path / "cupy.py").write_text(FAKE_CUPY)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(lib, "backend", Backend("gpu", "made up"))
    monkeypatch.setattr(lib, "find_spec", lambda name: name == "cupy" or None)
    monkeypatch.setattr(recordings, "here", lambda how="measured": HERE)
    monkeypatch.setattr(importlib.import_module("labkit.in_child"), "backend", Backend("sim", "made up"))
    return tmp_path


INSIDE = {"y = x * 2": ("fine", None), "cp.lose(cp.CUDARuntimeError)": ("lost", 900), "cp.lose(cp.CUBLASError)": ("lost", None),
          "raise RuntimeError('no')": ("lives", None), "other(lambda: cp.lose(cp.CUDARuntimeError))": ("lost", 900)}


def test_children_report_and_the_record_reads_back_the_same(gpu, monkeypatch):
    programs = [PROGRAM._replace(inside=inside, title=inside) for inside in INSIDE]
    programs += [PROGRAM._replace(title="wrong", after="got, want = x, 3"),
                 PROGRAM._replace(title="late", after="1 / 0"), PROGRAM._replace(title="early", before="1 / 0"),
                 PROGRAM._replace(title="crash", inside="import os; os._exit(3)")]
    monkeypatch.setenv("LABKIT_RECORD", str(gpu / "out"))
    calls = lib.library_calls(run=True, programs=programs)
    assert [(r.verdict, r.code) for r in calls.rows] == [*INSIDE.values(), ("silent", None), ("later", None), ("not run", None), ("not run", None)]
    assert {r.again for r in calls.rows[:7]} == {"captures again"} and calls.where["cupy"] == ("0.0", HERE)
    assert calls.rows[-1].ended == "exit 3"
    monkeypatch.setattr(recordings, "DATA", gpu / "out")
    again = lib.library_calls(programs=programs)
    assert again.rows == calls.rows and again.where["cupy"][1].how == "recorded" and again.missing == ""


def test_where_a_library_is_missing_the_recording_is_shown_and_says_so(gpu):
    torch = [program for program in lib.PROGRAMS if program.library == "torch"][:2]
    calls = lib.library_calls(run=True, programs=torch)
    assert "torch did not run here: it is not installed" in calls.missing and "recorded" in repr(calls)


def test_without_a_gpu_nothing_runs(monkeypatch):
    monkeypatch.setattr(lib, "backend", Backend("sim", "made up"))
    monkeypatch.setattr(lib, "_run", lambda program: pytest.fail("it ran"))
    assert "cupy did not run here: it needs a GPU" in lib.library_calls(run=True).missing


def test_a_changed_program_has_no_recording():
    changed = lib.PROGRAMS[0]._replace(inside="y = x * 3")
    calls = lib.library_calls(programs=[changed])
    assert calls.rows == () and calls.missing == "cupy: 1 of 1 programs are not recorded"
    with pytest.raises(LabError, match="No row"):
        calls.only("cupy")
    assert calls.figure("nothing").source["missing"]


def test_a_part_of_the_table_keeps_its_own_provenance():
    part = lib.library_calls().only("torch", "RNG", "ALIAS")
    assert set(part.where) == {"torch"} and {row.program.word for row in part.rows} == {"RNG", "ALIAS"}
    assert len(part.places) == 1 and "torch" in repr(part)


def test_the_picture_tells_every_row_and_where_it_comes_from():
    part = lib.library_calls().only(None, "WARM")
    figure = part.figure("The first time")
    assert len(figure.source["rows"]) == len(part.rows) > 5
    assert figure.source["provenance"] == part.places and all("recorded" in place for place in part.places)
    assert all(row.answer in figure.alt for row in part.rows)
    json.dumps(figure.source)
