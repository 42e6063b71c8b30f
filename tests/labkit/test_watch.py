"""watch: what it says, what it takes, and that it leaves nothing behind. That it names the right line: tests/watch."""
import contextlib
import functools
import importlib.util
import io
import linecache
import re
import sys
import threading
import time
import types
import weakref

import numpy as np
import pytest

from labkit import LabError, backend, cudart, film, graph, kernels, launch, ok, recover, to_device, trace, watch

GLOBAL, _, RELAXED = cudart.cudaStreamCaptureMode
N = 16
newer = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 follows less")


@pytest.fixture
def streams():
    cudart.cudaGetLastError()
    made = [ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(3)]
    yield made
    with contextlib.redirect_stdout(None):
        recover(*made)
    for stream in made:
        ok(cudart.cudaStreamDestroy(stream))


@pytest.fixture
def stream(streams):
    return streams[0]


@pytest.fixture
def x():
    made = to_device(np.ones(N, np.float32))
    yield made
    cudart.cudaDeviceSynchronize()
    made.free()


def nothing_is_left():
    if hasattr(sys, "monitoring"):
        return all(sys.monitoring.get_tool(i) is None for i in trace.TOOL_IDS)
    return not getattr(sys.gettrace(), "labkit", False) and not getattr(threading.gettrace(), "labkit", False)


def work(stream, x, value=2.0):
    return launch(stream, kernels.fill, 1, N, x, value, N)


def here():
    return sys._getframe(1).f_lineno


# ---- the report ----

def test_a_sound_capture_is_one_line(stream, x, capsys):
    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(work(stream, x))
        ok(cudart.cudaStreamEndCapture(stream))
    assert capsys.readouterr().out == "watch: 1 node, nothing to report.\n" == w.report() + "\n"
    assert (w.guilty, w.left_out, w.unjoined, w.refused) == (None, [], [], [])


def test_a_lost_capture_names_file_line_text_call_and_code(stream, capsys):
    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        cudart.cudaStreamSynchronize(
            stream)
        cudart.cudaStreamEndCapture(stream)
    said, line = capsys.readouterr().out, here() - 3
    assert (w.guilty.file, w.guilty.line, w.guilty.call, int(w.guilty.code)) == ("test_watch.py", line, "cudaStreamSynchronize", 900)
    assert w.guilty.text == "cudart.cudaStreamSynchronize( stream)" and w.guilty.thread == "MainThread"
    assert f"test_watch.py:{line}:" in said and "cudaErrorStreamCaptureUnsupported (900)" in said
    assert not re.search(r"/\w+/", said), "a path of this machine"


def test_a_block_without_a_capture_says_so(stream):
    with watch(stream) as w:
        pass
    assert w.report() == "watch: no capture began on this stream."


def test_a_begin_that_is_refused(capsys):
    with watch(cudart.cudaStreamLegacy) as w:
        cudart.cudaStreamBeginCapture(cudart.cudaStreamLegacy, GLOBAL)
    assert (w.guilty.line, int(w.guilty.code)) == (here() - 1, 900)
    assert "no capture began" in capsys.readouterr().out


def test_inside_a_capture_that_began_before(stream, x):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(work(stream, x))
    with watch(stream) as w:
        ok(work(stream, x))
        ok(launch(cudart.cudaStreamLegacy, kernels.fill, 1, N, x, 1.0, N))
    ok(cudart.cudaStreamEndCapture(stream))
    assert (w.nodes, [one.line for one in w.left_out]) == (2, [here() - 2])


def test_a_fork_still_open_when_the_block_ends_is_told_before_904(streams, x):
    a, b, _ = streams
    event = ok(cudart.cudaEventCreate())
    with watch(a) as w:
        ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
        ok(cudart.cudaEventRecord(event, a))
        ok(cudart.cudaStreamWaitEvent(b, event, 0))
        ok(work(b, x))
    assert [(fork.stream, fork.line) for fork in w.unjoined] == [("b", here() - 2)]
    assert cudart.cudaStreamEndCapture(a)[0].name == "cudaErrorStreamCaptureUnjoined"


def test_only_the_fork_with_work_after_its_join_is_unjoined(streams, x):
    a, b, c = streams
    go, first, second = (ok(cudart.cudaEventCreate()) for _ in range(3))
    with watch(a) as w:
        ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
        ok(cudart.cudaEventRecord(go, a))
        for branch, joined in ((b, first), (c, second)):
            ok(cudart.cudaStreamWaitEvent(branch, go, 0))
            ok(work(branch, x))
            ok(cudart.cudaEventRecord(joined, branch))
            ok(cudart.cudaStreamWaitEvent(a, joined, 0))
        ok(work(c, x))
        cudart.cudaStreamEndCapture(a)
    assert [fork.line for fork in w.unjoined] == [here() - 6] and int(w.ended) == 904


def test_the_fork_of_an_earlier_capture_is_still_told_of_after_a_sound_one(streams, x):
    a, b, _ = streams
    event = ok(cudart.cudaEventCreate())
    with watch(a) as w:
        ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
        ok(cudart.cudaEventRecord(event, a))
        ok(cudart.cudaStreamWaitEvent(b, event, 0))
        ok(work(b, x))
        cudart.cudaStreamEndCapture(a)
        ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
        ok(work(a, x))
        ok(cudart.cudaStreamEndCapture(a))
    assert [fork.line for fork in w.unjoined] == [here() - 6] and w.captures == 2 and int(w.ended) == 0
    cudart.cudaGetLastError()


def test_frozen_values_are_kept_and_not_printed(stream, x, capsys):
    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        for value in (1.5, 2.5):
            ok(work(stream, x, value))
        ok(work(cudart.cudaStreamPerThread, x))
        ok(cudart.cudaStreamEndCapture(stream))
    assert [(one.kernel, one.values) for one in w.frozen] == [("fill", (1.5, N)), ("fill", (2.5, N))]
    assert "2.5" not in capsys.readouterr().out and w.left_out[0].stream == "another stream"


def test_a_cell_is_named_as_jupyter_names_it(stream, monkeypatch):
    source, name = "ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))\ncudart.cudaDeviceSynchronize()\n", "/tmp_of_a_kernel/123.py"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map={name: 12}))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    with watch(stream) as w:
        exec(compile(source, name, "exec"), {**globals(), "stream": stream})
    assert str(w.guilty.place) == "In [12], line 2" and w.guilty.text == "cudart.cudaDeviceSynchronize()"


def library(tmp_path, source):
    """A package of the given text in a folder as pip would make it."""
    path = tmp_path / "site-packages" / "somelib.py"
    path.parent.mkdir()
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("somelib", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_in_a_library_the_learners_line_is_named_and_the_librarys_beside_it(stream, tmp_path, capsys):
    lib = library(tmp_path, "from labkit import cudart\n\ndef total(n):\n    return cudart.cudaMalloc(n)\n")
    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        print(lib.total(16)[0])
        cudart.cudaStreamEndCapture(stream)
    assert (w.guilty.line, w.guilty.call) == (here() - 2, "cudaMalloc")
    assert w.guilty.inside == "somelib.py:4 cudart.cudaMalloc" and w.guilty.inside in capsys.readouterr().out


def test_a_destructor_is_told_of(stream, capsys):
    class Owner:
        def __del__(self):
            cudart.cudaStreamQuery(stream)
    owner = Owner()
    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        owner = 1  # noqa: F841
        cudart.cudaStreamEndCapture(stream)
    assert w.guilty.line == here() - 2
    if sys.version_info >= (3, 12):
        assert w.guilty.call == "cudaStreamQuery" and "__del__ of Owner (test_watch.py:" in capsys.readouterr().out


def test_a_stream_destroyed_in_its_capture(x):
    stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(work(stream, x))
        ok(cudart.cudaStreamDestroy(stream))
        assert 1 + 1 == 2
    assert w.trouble is None and w.guilty.line == here() - 2 and w.guilty.call == "cudaStreamDestroy"


# ---- what it takes ----

@pytest.mark.parametrize("what", [None, "a stream", 1.5, True, -1, (0, 1), [], object()])
def test_what_is_no_stream_is_a_lab_error(what):
    with pytest.raises(LabError, match="Pass the stream") as error:
        watch(what)
    assert "watch() got" in str(error.value)


@pytest.mark.skipif(backend.name == "gpu", reason="CUDA may crash when asked about a destroyed stream")
def test_a_destroyed_stream_is_a_lab_error():
    stream = ok(cudart.cudaStreamCreate())
    ok(cudart.cudaStreamDestroy(stream))
    with pytest.raises(LabError):
        with watch(stream):
            pass
    assert nothing_is_left()


def test_a_number_and_another_librarys_stream_are_streams(stream):
    Stream = type("Stream", (), {"__module__": "cupy.cuda.stream", "ptr": int(stream)})
    for one in (int(stream), Stream()):
        with watch(one) as w:
            ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
            ok(cudart.cudaStreamEndCapture(stream))
        assert w.stream == int(stream) and w.captures == 1


# ---- together with others ----

def test_two_streams_at_once(streams):
    a, b, _ = streams
    with watch(a) as outer, watch(b) as inner:
        ok(cudart.cudaStreamBeginCapture(a, RELAXED))
        ok(cudart.cudaStreamBeginCapture(b, RELAXED))
        cudart.cudaStreamQuery(b)
        cudart.cudaStreamEndCapture(b)
        ok(cudart.cudaStreamEndCapture(a))
    assert outer.guilty is None and inner.guilty.line == here() - 3
    assert nothing_is_left()


@newer
def test_a_third_at_once_is_refused_clearly(streams):
    with watch(streams[0]), watch(streams[1]):
        with pytest.raises(LabError, match="labkit and labkit hold it"):
            with watch(streams[2]):
                pass
    assert nothing_is_left()


@pytest.mark.parametrize("order", ["film inside", "film outside"])
def test_film_and_watch_at_once(stream, x, order):
    def block():
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(work(stream, x))
        cudart.cudaStreamQuery(stream)
        cudart.cudaStreamEndCapture(stream)
    if order == "film inside":
        with watch(stream) as w:
            with film(stream) as reel:
                ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
                ok(work(stream, x))
                cudart.cudaStreamQuery(stream)
                cudart.cudaStreamEndCapture(stream)
    else:
        with film(stream) as reel:
            with watch(stream) as w:
                ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
                ok(work(stream, x))
                cudart.cudaStreamQuery(stream)
                cudart.cudaStreamEndCapture(stream)
    assert w.guilty.text == "cudart.cudaStreamQuery(stream)" and w.trouble is None
    assert [frame.note for frame in reel.shots] == ["capture begins", "", "capture invalidated", "capture over: no graph"]
    assert nothing_is_left()


def test_two_threads_watch_a_stream_each(streams):
    found = {}

    def one(stream, unsafe):
        with watch(stream) as found[unsafe]:
            cudart.cudaStreamBeginCapture(stream, RELAXED)
            time.sleep(0.01)
            cudart.cudaStreamQuery(stream) if unsafe else time.sleep(0.01)
            cudart.cudaStreamEndCapture(stream)
    threads = [threading.Thread(target=one, args=(stream, unsafe)) for stream, unsafe in zip(streams, (True, False))]
    [thread.start() for thread in threads]
    [thread.join(10) for thread in threads]
    assert found[False].guilty is None and found[True].guilty.text.startswith("cudart.cudaStreamQuery(stream) if unsafe")
    assert nothing_is_left()


@pytest.mark.parametrize("busy", ["cudart.cudaGetDevice()", "time.sleep(0)", "lock.acquire(), lock.release()"])
def test_who_is_only_busy_meanwhile_is_not_named(stream, busy):
    busy = compile(busy, "<cell 1>", "eval")
    names, before = {"cudart": cudart, "time": time, "lock": threading.Lock()}, sys.getswitchinterval()

    def unsafe():
        cudart.cudaDeviceSynchronize()  # the one
    line, named = unsafe.__code__.co_firstlineno + 1, []
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(15):
            with contextlib.redirect_stdout(None), watch(stream) as w:
                ok(cudart.cudaStreamBeginCapture(stream, RELAXED))
                other = threading.Thread(target=unsafe)
                other.start()
                while other.is_alive():
                    eval(busy, names)
                cudart.cudaStreamEndCapture(stream)
            named.append((w.guilty.line, int(w.guilty.code)))
    finally:
        sys.setswitchinterval(before)
    assert set(named) == {(line, 900)}


# ---- it disturbs nothing ----

def test_the_graph_is_the_same_with_and_without(streams, x):
    a, b, _ = streams
    go, back = ok(cudart.cudaEventCreate()), ok(cudart.cudaEventCreate())

    def capture():
        ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
        ok(cudart.cudaEventRecord(go, a))
        ok(cudart.cudaStreamWaitEvent(b, go, 0))
        ok(work(b, x))
        ok(cudart.cudaMemsetAsync(x.ptr, 0, x.nbytes, a))
        ok(cudart.cudaEventRecord(back, b))
        ok(cudart.cudaStreamWaitEvent(a, back, 0))
        ok(work(a, x))
        return ok(cudart.cudaStreamEndCapture(a))
    plain = capture()
    with watch(a) as w:
        watched = capture()
    assert graph.kinds(plain) == graph.kinds(watched) and graph.edges(plain) == graph.edges(watched) and w.nodes == 3


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_goes_on_and_the_tracer_is_off(stream, error):
    with pytest.raises(error):
        with watch(stream) as w:
            ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
            raise error
    assert nothing_is_left() and w.guilty is None


def test_the_refusal_that_ok_raises_names_its_line(stream):
    with pytest.raises(LabError):
        with watch(stream) as w:
            ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
            ok(cudart.cudaStreamSynchronize(stream))
    assert w.guilty.text == "ok(cudart.cudaStreamSynchronize(stream))" and int(w.guilty.code) == 900


def test_an_error_in_watch_itself_never_reaches_the_block(stream, monkeypatch):
    with watch(stream) as w:
        monkeypatch.setattr(w, "_event", None)
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(cudart.cudaStreamEndCapture(stream))
        monkeypatch.undo()
    assert isinstance(w.trouble, TypeError) and nothing_is_left()


@newer
def test_what_the_program_lets_go_of_is_gone_at_once(streams, x):
    class Thing:
        pass
    a, b, _ = streams
    thing = Thing()
    gone = weakref.ref(thing)
    with watch(a):
        ok(cudart.cudaStreamBeginCapture(a, GLOBAL))
        ok(cudart.cudaMemsetAsync(x.ptr, 0, x.nbytes, b))
        code, = cudart.cudaStreamQuery(a)
        del thing
        alive = gone() is not None
        cudart.cudaStreamEndCapture(a)
    assert not alive


def test_the_last_error_stays_where_it_is(stream):
    cudart.cudaStreamEndCapture(stream)
    with watch(stream):
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(cudart.cudaStreamEndCapture(stream))
    assert cudart.cudaGetLastError()[0].name == "cudaErrorIllegalState"


def test_an_old_error_is_not_taken_for_the_answer(stream):
    cudart.cudaStreamEndCapture(stream)
    with watch(stream) as w:
        cudart.cudaStreamBeginCapture(stream, GLOBAL)
        cudart.cudaGetDevice()
        cudart.cudaStreamEndCapture(stream)
    assert (w.guilty, w.refused) == (None, [])
    cudart.cudaGetLastError()


def test_outside_the_block_it_costs_nothing_and_inside_it_is_bounded(stream, x):
    def block():
        start = time.perf_counter()
        total = 0
        for i in range(3000):
            total += i
        return time.perf_counter() - start
    plain = min(block() for _ in range(5))
    with watch(stream):
        watched = min(block() for _ in range(3))
    after = min(block() for _ in range(5))
    assert watched > plain
    assert watched / 6000 < 1e-3  # seconds a line
    assert after < 3 * plain


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 follows less")
def test_an_end_in_another_thread_is_named_where_this_thread_notices_first(stream):
    """As on a GPU: the compiled call has ended the capture, and its thread does not run yet."""
    slow = {"end": cudart.cudaStreamEndCapture, "time": time}
    exec(compile("def slow(stream):\n    answer = end(stream)\n    time.sleep(0.05)\n    return answer", "<the bindings>", "exec"), slow)
    bindings = functools.partial(slow["slow"])
    bindings.__name__, bindings.__module__ = "cudaStreamEndCapture", "cuda.bindings.runtime"

    def finish():
        bindings(stream)  # the one
    with contextlib.redirect_stdout(None), watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        other = threading.Thread(target=finish)
        other.start()
        while other.is_alive():
            time.sleep(0.001)
    assert (w.guilty.line, int(w.guilty.code)) == (finish.__code__.co_firstlineno + 1, 908)


# ---- what a breaker found ----

def test_a_loss_that_no_line_was_seen_doing_is_still_told(stream):
    """A thread whose every frame is the standard library's."""
    with contextlib.redirect_stdout(None), watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        other = threading.Thread(target=cudart.cudaMalloc, args=(16,))
        other.start()
        other.join()
        cudart.cudaStreamEndCapture(stream)
    assert w.lost and "nothing to report" not in w.report()


def test_a_watch_that_is_on_cannot_be_entered_again_and_one_that_is_over_starts_anew(stream, x):
    w = watch(stream)
    with contextlib.redirect_stdout(None), w:
        with pytest.raises(LabError, match="on already"):
            w.__enter__()
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        cudart.cudaMalloc(16)
        cudart.cudaStreamEndCapture(stream)
    assert w.guilty is not None and nothing_is_left()
    with contextlib.redirect_stdout(None), w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(launch(stream, kernels.fill, 1, 4, x, 1.0, 4))
        ok(cudart.cudaGraphDestroy(ok(cudart.cudaStreamEndCapture(stream))))
    assert w.guilty is None and "nothing to report" in w.report() and nothing_is_left()


def test_a_wait_with_a_number_is_no_stream(stream):
    event = threading.Event()
    event.set()
    with contextlib.redirect_stdout(None), watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        event.wait(5000)
        ok(cudart.cudaGraphDestroy(ok(cudart.cudaStreamEndCapture(stream))))
    assert w.trouble is None and "nothing to report" in w.report()


def test_equal_lines_are_told_once_with_their_number(stream, x):
    with contextlib.redirect_stdout(None), watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        for _ in range(30):
            ok(launch(0, kernels.fill, 1, 4, x, 1.0, 4))
        ok(cudart.cudaGraphDestroy(ok(cudart.cudaStreamEndCapture(stream))))
    assert len(w.left_out) == 30 and w.report().count("ran at once") == 1 and "(30 times)" in w.report()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_lacks_a_letter_does_not_hide_what_the_program_raised(stream, monkeypatch, encoding):
    said = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", said)
    with pytest.raises(KeyError, match="mine"), watch(stream):
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        cudart.cudaMalloc(16)  # a → b
        raise KeyError("mine")
    said.flush()
    assert b"cudaMalloc" in said.buffer.getvalue()
    monkeypatch.undo()
    recover(stream)
