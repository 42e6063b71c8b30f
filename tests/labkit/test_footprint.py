"""footprint(): what an executable keeps for itself, read from memory that moves in steps."""
import enum
import importlib
import json

import pytest

from labkit.backend import Backend
from labkit.errors import LabError

f = importlib.import_module("labkit.footprint")
r = importlib.import_module("labkit.recordings")
HERE = r.Provenance("Made Up 9000", "1.2.3", "13.3", "13.4.4", "3.11", "2026-01-02")
STEP, LEAST = 2 ** 21, 112 * 1024          # what the made-up driver takes at once, and what a small executable needs


class Code(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorMemoryAllocation = 2
    cudaErrorStreamCaptureUnsupported = 900


class Machine:
    """A driver that takes memory in steps, keeps what is destroyed and gives it to the next one."""
    __name__ = "made_up"
    cudaError_t = Code

    class cudaGraphExec_t(int):
        pass

    def __init__(self):
        self.taken, self.used, self.sizes, self.next, self.uploads, self.capturing = 0, 0, {}, 1, [], False
        self.resident, self.most = 0, 0

    def make(self, size, host=0):
        self.next, handle = self.next + 1, self.cudaGraphExec_t(self.next)
        self.sizes[int(handle)] = (size, host)
        self.used, self.resident = self.used + size, self.resident + host
        self.taken = max(self.taken, -(-self.used // STEP) * STEP)
        self.most = max(self.most, len(self.sizes))
        return handle

    def cudaGraphExecDestroy(self, handle):
        size, host = self.sizes.pop(int(handle))           # a KeyError where it was destroyed before
        self.used, self.resident = self.used - size, self.resident - host
        return (Code.cudaSuccess,)

    def cudaMemGetInfo(self):
        return Code.cudaSuccess, 2 ** 37 - self.taken, 2 ** 37

    def cudaDeviceSynchronize(self):
        return (Code.cudaErrorStreamCaptureUnsupported if self.capturing else Code.cudaSuccess,)

    def cudaGraphUpload(self, handle, stream):
        self.uploads.append((int(handle), stream))
        return (Code.cudaSuccess,)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """The made-up machine, a GPU first; machine.use("sim") changes that."""
    machine = Machine()

    def use(name):
        for module in (f, r):
            monkeypatch.setattr(module, "cudart", machine)
            monkeypatch.setattr(module, "backend", Backend(name, "made up"))
    machine.use, machine.folder = use, tmp_path
    monkeypatch.setattr(f, "_resident", lambda: machine.resident)
    monkeypatch.setattr(r, "here", lambda how="measured": HERE)
    monkeypatch.setattr(r, "DATA", tmp_path)
    monkeypatch.delenv("LABKIT_RECORD", raising=False)
    use("gpu")
    return machine


def small(made, n):
    """An executable of the made-up machine; `made` is that machine."""
    return made.make(LEAST, 54_000)


def large(made, n):
    return made.make(4 * LEAST, 533_000)


def eight(made, n):
    return [made.make(LEAST, 54_000) for _ in range(8)]


def setup(n):
    return getattr(f, "cudart")            # the made-up machine; an object that the text named would leave no recording


@pytest.fixture
def measured(machine):
    """footprint() of these makers on the made-up machine."""
    def run(makers, **more):
        return f.footprint("Memory", makers, setup=setup, **{"n": 10, **more})
    return run


# ---- reading it --------------------------------------------------------------------------------

def test_the_steps_of_the_driver_do_not_show_in_the_figure(measured):
    out = measured({"small": small, "large": large})
    assert out.device["small"] == pytest.approx(LEAST, rel=1 / 64) and out.device["large"] == pytest.approx(4 * LEAST, rel=1 / 64)
    assert (out.host["small"], out.host["large"]) == (54_000, 533_000)
    assert out.provenance.how == "measured" and out.count == 64


def test_a_larger_count_is_more_exact(measured):
    assert measured({"a": small}, count=1024).device["a"] == pytest.approx(LEAST, rel=1 / 1024)


def test_memory_that_an_earlier_one_left_behind_does_not_hide_a_later_one(machine, measured):
    measured({"large": large}, count=512)
    assert machine.taken > 100 * STEP and not machine.sizes
    assert measured({"small": small}).device["small"] == pytest.approx(LEAST, rel=1 / 64)


def test_an_executable_larger_than_a_step_is_read_too(machine, measured):
    def huge(made, n):
        return made.make(5 * STEP + 1000)
    assert measured({"huge": huge}).device["huge"] == pytest.approx(5 * STEP + 1000, rel=1 / 64)


def test_several_executables_count_as_one(measured):
    out = measured({"one": small, "one per size": eight})
    assert out.device["one per size"] == pytest.approx(8 * LEAST, rel=1 / 64) and out.host["one per size"] == 8 * 54_000


def test_all_that_was_made_is_destroyed(machine, measured):
    measured({"small": small, "one per size": eight})
    assert not machine.sizes and machine.used == 0 and machine.most >= 8 * 64


def test_what_is_too_small_to_show_says_so(machine, measured):
    def nothing(made, n):
        return made.make(8)
    with pytest.raises(LabError, match="In 'nothing' of 'Memory': 8192 were made, and the free device memory fell not at all|fell once"):
        measured({"nothing": nothing})
    assert not machine.sizes


def test_with_a_stream_each_is_uploaded(machine, measured):
    measured({"small": small}, stream=7, count=1)
    assert len(machine.uploads) >= 2 and {stream for _, stream in machine.uploads} == {7}
    machine.uploads.clear()
    measured({"small": small}, count=1)
    assert not machine.uploads


def test_where_the_system_does_not_say_host_memory_is_not_known(machine, measured, monkeypatch):
    monkeypatch.setattr(f, "_resident", lambda: None)
    out = measured({"small": small})
    assert out.host["small"] is None and "–" in str(out)


def test_this_process_holds_memory_or_the_system_does_not_say():
    from pathlib import Path
    held = importlib.import_module("labkit.footprint")._resident()
    assert held > 10 * 2 ** 20 if Path("/proc/self/statm").exists() else held is None


# ---- mistakes ----------------------------------------------------------------------------------

def nothing_returned(made, n):
    made.make(LEAST)


def a_number(made, n):
    return 5


def the_same_again(made, n):
    return made.first


@pytest.mark.parametrize("where", ["gpu", "sim"])
@pytest.mark.parametrize("make, words", [(nothing_returned, "returned None"), (a_number, "returned 5"), (the_same_again, "returned before")])
def test_a_maker_returns_executables_that_are_new(machine, measured, where, make, words):
    machine.use(where)
    machine.first = machine.make(LEAST)
    with pytest.raises(LabError, match=f"In 'm' of 'Memory': .*{words}"):
        measured({"m": make})


def test_after_an_error_what_was_made_is_destroyed(machine, measured):
    def runs_out(made, n):
        if len(made.sizes) == 40:
            raise LabError("No memory.", "It is full.", "Free some.", Code.cudaErrorMemoryAllocation)
        return made.make(LEAST)
    with pytest.raises(LabError, match="In 'm' of 'Memory': No memory") as caught:
        measured({"m": runs_out})
    assert caught.value.code == Code.cudaErrorMemoryAllocation and not machine.sizes


@pytest.mark.parametrize("where", ["gpu", "sim"])
def test_a_capture_left_open_is_an_error_that_names_the_maker(machine, measured, where):
    def opens(made, n):
        made.capturing = True
        return made.make(LEAST)
    machine.use(where)
    with pytest.raises(LabError, match="In 'm'") as caught:
        measured({"m": opens})
    assert int(caught.value.code) == 900


@pytest.mark.parametrize("count", [0, -1, "64", 5000])
def test_count_is_a_number_that_can_be_made(measured, count):
    with pytest.raises(LabError, match="count = "):
        measured({"a": small}, count=count)


def test_a_maker_is_a_named_function(measured):
    with pytest.raises(LabError, match="lambda"):
        measured({"a": lambda made, n: None})


# ---- the recording -----------------------------------------------------------------------------

def test_the_simulator_makes_two_of_each_and_shows_the_recording(machine, measured, monkeypatch):
    monkeypatch.setenv("LABKIT_RECORD", str(machine.folder))
    real = measured({"small": small, "one per size": eight})
    monkeypatch.delenv("LABKIT_RECORD")
    assert (machine.folder / "footprints" / "memory.json").exists()
    machine.use("sim")
    machine.most = 0
    again = measured({"small": small, "one per size": eight})
    assert (again.device, again.host, again.count) == (real.device, real.host, 64) and again.provenance.how == "recorded"
    assert machine.most == 16 and not machine.sizes
    assert measured({"small": small, "one per size": eight}, n=11).missing
    assert measured({"small": small}).missing and "No recording" in str(measured({"small": small}))


def test_a_footprint_reads_as_a_table_and_carries_its_data(measured):
    out = measured({"small": small, "large": large})
    bundle = out._repr_mimebundle_()
    assert "n = 10" in str(out) and "KiB" in str(out) and str(out).endswith("measured")
    data = bundle["application/vnd.labkit+json"]
    assert data["device"] == dict(out.device) and data["footprint"] == "Memory" and json.dumps(data)
    with pytest.raises(LabError, match="no figure for 'medium'"):
        out.device["medium"]


def test_real_executables_of_this_backend_have_a_footprint():
    """A graph of one kernel, on the GPU or on the simulator: made, counted where there is a GPU, and destroyed."""
    import numpy as np
    from labkit import backend, cudart, footprint, kernels, launch, ok, to_device
    stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    y = to_device(np.zeros(4, np.float32))

    def capture():
        ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
        ok(launch(stream, kernels.scale, 1, 4, y, 2.0, 4))
        return ok(cudart.cudaStreamEndCapture(stream))

    def one(graph):
        return ok(cudart.cudaGraphInstantiate(graph, 0))
    out = footprint("of a test", {"one": one}, setup=capture, stream=stream)
    assert bool(out.missing) == (backend.name != "gpu") and (out.missing or 2 ** 10 < out.device["one"] < 2 ** 21)
