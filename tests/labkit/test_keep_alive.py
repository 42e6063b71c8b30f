"""keep_alive(): graphs hold Python objects, and nobody drops them at a bad moment. On the GPU too."""
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import labkit
from labkit import LabError, cudart, empty, keep_alive, kernels, launch, ok, recover, to_device, to_host
from labkit.backend import backend

room = sys.modules["labkit.keep_alive"]
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


class Thing:
    """Something that a weak reference can watch."""

    def __init__(self, last=lambda: None):
        self.last = last

    def __del__(self):
        self.last()


def things(count=1, last=lambda: None):
    made = [Thing(last) for _ in range(count)]
    return made, [weakref.ref(one) for one in made]


@pytest.fixture
def stream():
    made = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    yield made
    recover(made)
    ok(cudart.cudaStreamSynchronize(made))
    ok(cudart.cudaStreamDestroy(made))


@pytest.fixture
def graph(stream):
    """A graph of one kernel. Left where the test does not destroy it: a handle that is given back twice may be another's by then."""
    return captured(stream)


@pytest.fixture(autouse=True)
def x():
    """A buffer that all graphs here write to."""
    global X
    X = to_device(np.zeros(4, np.float32))
    yield X
    X.free()


def captured(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.fill, 1, 32, X, 1.0, 4))
    return ok(cudart.cudaStreamEndCapture(stream))


def instantiate(graph):
    return ok(cudart.cudaGraphInstantiate(graph, 0))


def settle(kept):
    """Give a thread of the driver a moment to let go; has it?"""
    end = time.monotonic() + 5
    while kept.alive and time.monotonic() < end:
        time.sleep(0.001)
    return not kept.alive


def test_objects_live_as_long_as_the_graph_and_are_dropped_in_ordinary_code(graph):
    made, seen = things(3)
    kept = keep_alive(graph, *made)
    del made
    assert kept.alive and all(ref() for ref in seen) and repr(kept) == "Kept(3 objects, alive)"
    ok(cudart.cudaGraphDestroy(graph))
    assert not kept.alive and repr(kept) == "Kept(3 objects, let go)"
    assert all(ref() for ref in seen)                       # nobody has dropped them yet
    buffer = empty(4)
    assert not any(ref() for ref in seen)
    buffer.free()


def test_an_executable_holds_after_its_graph_is_gone_and_lets_go_after_the_launch(graph, stream):
    (one,), (ref,) = things()
    kept = keep_alive(graph, one)
    executable = instantiate(graph)
    ok(cudart.cudaGraphDestroy(graph))
    ok(cudart.cudaGraphLaunch(executable, stream)), ok(cudart.cudaStreamSynchronize(stream))
    assert kept.alive
    del one
    ok(cudart.cudaGraphExecDestroy(executable))
    assert settle(kept) and ref() is not None
    recover(stream)
    assert ref() is None


def test_clones_hold_and_executables_made_before_do_not(graph):
    before = instantiate(graph)
    kept = keep_alive(graph, Thing())
    clone = ok(cudart.cudaGraphClone(graph))
    ok(cudart.cudaGraphDestroy(graph))
    assert kept.alive
    ok(cudart.cudaGraphDestroy(clone))
    assert not kept.alive
    ok(cudart.cudaGraphExecDestroy(before))


def test_a_graph_may_keep_again_and_again(graph):
    first, second = keep_alive(graph, Thing()), keep_alive(graph, Thing(), Thing())
    assert first.alive and second.alive
    ok(cudart.cudaGraphDestroy(graph))
    assert not first.alive and not second.alive


@pytest.mark.parametrize("by", ["keep_alive", "empty", "to_device", "recover"])
def test_who_drops(by, graph, stream):
    (one,), (ref,) = things()
    keep_alive(graph, one)
    del one
    ok(cudart.cudaGraphDestroy(graph))
    other = captured(stream)
    assert ref() is not None
    {"keep_alive": lambda: keep_alive(other, Thing()), "empty": lambda: empty(4).free(), "to_device": lambda: to_device(np.zeros(4)).free(), "recover": lambda: recover(stream)}[by]()
    assert ref() is None
    ok(cudart.cudaGraphDestroy(other))


def test_the_kept_buffer_is_still_there_at_the_replay(stream):
    """A buffer whose owner frees it when Python lets go of it, as CuPy's and PyTorch's do."""
    x, y = to_device(np.arange(4, dtype=np.float32)), to_device(np.zeros(4, np.float32))
    freed = []
    owner = Thing(lambda: (x.free(), freed.append(True)))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, 1, 32, y, x, 1.0, 4))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    kept = keep_alive(graph, owner)
    executable = instantiate(graph)
    del owner
    gc.collect()
    ok(cudart.cudaGraphLaunch(executable, stream))
    assert to_host(y, stream).tolist() == [0, 1, 2, 3] and not freed
    ok(cudart.cudaGraphDestroy(graph)), ok(cudart.cudaGraphExecDestroy(executable))
    assert settle(kept)
    empty(4).free()
    assert freed
    y.free()


def test_a_refused_allocation_in_a_capture_drops_nothing(graph, stream):
    """A free inside it would break a capture that allows none."""
    (one,), (ref,) = things()
    keep_alive(graph, one)
    del one
    ok(cudart.cudaGraphDestroy(graph))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    with pytest.raises(LabError, match="while a stream is capturing"):
        empty(4)
    assert ref() is not None
    recover(stream)
    assert ref() is None


@pytest.mark.parametrize("mode", ["Global", "ThreadLocal", "Relaxed"])
def test_keeping_in_a_capture_and_dropping_a_buffer_break_nothing(mode, graph, stream):
    x = to_device(np.zeros(4, np.float32))
    keep_alive(graph, Thing(x.free))
    ok(cudart.cudaGraphDestroy(graph))
    ok(cudart.cudaStreamBeginCapture(stream, getattr(cudart.cudaStreamCaptureMode, f"cudaStreamCaptureMode{mode}")))
    kept = keep_alive(labkit.graph.capture_state(stream).graph, Thing())
    assert x._ptr is None                                   # freed, with this thread's mode set to Relaxed
    ok(launch(stream, kernels.fill, 1, 32, X, 1.0, 4))
    made = ok(cudart.cudaStreamEndCapture(stream))
    assert kept.alive and labkit.graph.kinds(made) == ["Kernel"]
    before = ok(cudart.cudaThreadExchangeStreamCaptureMode(GLOBAL))
    assert before == GLOBAL
    ok(cudart.cudaGraphDestroy(made))
    assert not kept.alive


def test_a_capture_that_is_lost_lets_go(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    kept = keep_alive(labkit.graph.capture_state(stream).graph, Thing())
    assert kept.alive and int(cudart.cudaDeviceSynchronize()[0]) == 900
    assert int(cudart.cudaStreamEndCapture(stream)[0]) == 901
    assert settle(kept)


@pytest.fixture
def clean():
    """Drop what other tests left, and count locks."""
    empty(4).free()
    kept, shut = len(room._kept), len(room._shut)
    yield
    assert len(room._kept) == kept and len(room._shut) >= shut


@pytest.mark.parametrize("bad, says", [
    (lambda graph, executable: keep_alive(None, X), "null handle.*\n.*failed ends without a graph.*\n.*recover"),
    (lambda graph, executable: keep_alive(cudart.cudaGraph_t(0), X), "null handle"),
    (lambda graph, executable: keep_alive(executable, X), "got an executable.*\n.*\n.*before cudaGraphInstantiate"),
    (lambda graph, executable: keep_alive(X, graph), "got DeviceArray where a graph is expected.*\n.*\n.*graph first"),
    (lambda graph, executable: keep_alive(int(graph), X), "got int where a graph.*\n.*\n.*cudaGraph_t\\(address\\)"),
    (lambda graph, executable: keep_alive("graph", X), "got str where a graph"),
    (lambda graph, executable: keep_alive(graph), "nothing to keep.*\n.*\n.*Pass the buffers"),
    (lambda graph, executable: keep_alive(graph, X.ptr), "owns nothing.*\n.*the buffer, not buffer.ptr"),
    (lambda graph, executable: keep_alive(graph, X, None), "None to keep"),
    (lambda graph, executable: keep_alive(graph, np.int64(5)), "owns nothing"),
    (lambda graph, executable: keep_alive(graph, X, "x"), "the text 'x' to keep.*\n.*owns no memory"),
    (lambda graph, executable: keep_alive(graph, executable), "owns nothing"),
])
def test_bad_input_says_what_to_do_next_and_holds_nothing(bad, says, graph, clean):
    executable = instantiate(graph)
    with pytest.raises(LabError, match=says):
        bad(graph, executable)
    ok(cudart.cudaGraphExecDestroy(executable))


def test_a_freed_buffer_is_not_kept(graph, clean):
    x = empty(4)
    x.free()
    with pytest.raises(LabError, match="freed buffer"):
        keep_alive(graph, x)


@pytest.mark.skipif(backend.name == "gpu", reason="what a GPU answers for a destroyed graph is a matter of the conformance chapter")
def test_a_destroyed_graph_holds_nothing_and_nothing_leaks(graph, clean):
    ok(cudart.cudaGraphDestroy(graph))
    from labkit.sim.world import world
    objects, ((one,), (ref,)) = set(world.objects), things()
    for _ in range(3):
        with pytest.raises(LabError, match="There is no such graph.*\n.*between cudaStreamEndCapture and cudaGraphDestroy"):
            keep_alive(graph, one)
    del one
    gc.collect()
    assert ref() is None
    assert set(world.objects) == objects


@pytest.mark.parametrize("name, arguments", [("cudaUserObjectCreate", 4), ("cudaGraphRetainUserObject", 4)])
def test_where_cuda_refuses_nothing_leaks(name, arguments, graph, clean, monkeypatch):
    codes, (one,), (ref,) = cudart.cudaError_t, *things()
    answer = (codes.cudaErrorMemoryAllocation, None)[:2 if name == "cudaUserObjectCreate" else 1]
    with monkeypatch.context() as broken:
        broken.setattr(cudart, name, lambda *given: answer)
        with pytest.raises(LabError, match="cudaErrorMemoryAllocation"):
            keep_alive(graph, one)
    del one
    gc.collect()
    assert ref() is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_the_last_object_does_may_use_labkit(graph):
    """__del__ may allocate, keep and recover: dropping is not over yet."""
    seen = []
    keep_alive(graph, Thing(lambda: (seen.append(1), empty(4).free())), Thing(lambda: seen.append(1 / 0)))
    ok(cudart.cudaGraphDestroy(graph))
    empty(4).free()
    assert seen == [1]


def test_locks_are_used_again_and_never_freed(stream):
    empty(4).free()
    for _ in range(3):
        graph = captured(stream)
        kept = keep_alive(graph, Thing())
        lock = kept._lock
        ok(cudart.cudaGraphDestroy(graph))
        assert not kept.alive and room._shut.count(lock) == 1


def test_many_threads_may_ask_and_drop_at_once(stream):
    graphs = [captured(stream) for _ in range(20)]
    kept = [keep_alive(graph, Thing()) for graph in graphs]
    stop = threading.Event()

    def ask():
        cudart.cudaSetDevice(0)
        while not stop.is_set():
            room.drain()
            [one.alive for one in kept]
    askers = [threading.Thread(target=ask) for _ in range(4)]
    for one in askers:
        one.start()
    for graph in graphs:
        ok(cudart.cudaGraphDestroy(graph))
    stop.set()
    for one in askers:
        one.join(10)
    assert not any(one.alive for one in kept) and len(set(room._shut)) == len(room._shut)
    room.drain()
    assert not any(one in room._kept for one in kept)


END = """
import os
import numpy as np
from labkit import *
stream = ok(cudart.cudaStreamCreateWithFlags(1))
x = to_device(np.zeros(4, np.float32))
class Owner:
    def __del__(self, write=os.write):
        write(1, b"dropped")
def make():
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    ok(launch(stream, kernels.fill, 1, 32, x, 1.0, 4))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    room.append(keep_alive(graph, x, [np.zeros(10)], Owner()))
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))
room = []
made = [make() for _ in range(50)]
for graph, executable in made:
    ok(cudart.cudaGraphLaunch(executable, stream))
for graph, executable in made[:40]:
    ok(cudart.cudaGraphDestroy(graph)), ok(cudart.cudaGraphExecDestroy(executable))
print("end", flush=True)
"""


def test_the_end_of_the_process_is_quiet():
    """Graphs that still hold, executables that are let go in other threads at this moment, nothing waited for, nothing dropped late."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", END], capture_output=True, text=True, timeout=120,
                              cwd=Path(labkit.__file__).parents[1], env={**os.environ, "LABKIT_BACKEND": backend.name})
        assert done.returncode == 0 and not done.stderr and done.stdout.endswith("end\n"), done.stderr or done.stdout


def test_the_number_type_is_that_of_the_backend():
    if backend.name == "gpu":
        from cuda.bindings.driver import cuuint64_t
    else:
        from labkit.sim.values import cuuint64_t
    assert labkit.cuuint64_t is cuuint64_t and int(labkit.cuuint64_t(5)) == 5
