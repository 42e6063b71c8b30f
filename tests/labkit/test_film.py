"""The film of a capture: which line added what, and that filming changes nothing."""

import threading
import types

import pytest

from labkit import LabError, cudart, film, graph, kernels, launch, ok, to_device
from labkit.strip import MOST

MODE = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
N = 64


@pytest.fixture
def stream():
    made = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    yield made
    cudart.cudaStreamEndCapture(made)
    cudart.cudaGetLastError()
    ok(cudart.cudaStreamDestroy(made))


@pytest.fixture
def x():
    import numpy as np
    made = to_device(np.ones(N, np.float32))
    yield made
    made.free()


def work(stream, x):
    ok(launch(stream, kernels.fill, 1, N, x, 2.0, N))


def told(reel):
    return [reel.words(frame) for frame in reel.frames]


def test_each_line_is_a_frame_and_says_what_it_added(stream, x):
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        a = 1  # noqa: F841
        work(stream, x)
        made = ok(cudart.cudaStreamEndCapture(stream))
    assert told(reel) == ["capture begins", "Kernel 0", "", "Kernel 1 after 0", "capture over"]
    assert [frame.status for frame in reel.frames] == ["Active"] * 4 + ["None"]
    assert [frame.code for frame in reel.shots][1] == "work(stream, x)"
    ok(cudart.cudaGraphDestroy(made))


def test_a_fork_and_its_join_are_seen_from_one_stream(stream, x):
    side = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    fork, join = ok(cudart.cudaEventCreate()), ok(cudart.cudaEventCreate())
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        ok(cudart.cudaEventRecord(fork, stream))
        ok(cudart.cudaStreamWaitEvent(side, fork, 0))
        work(side, x)
        work(stream, x)
        ok(cudart.cudaEventRecord(join, side))
        ok(cudart.cudaStreamWaitEvent(stream, join, 0))
        work(stream, x)
        made = ok(cudart.cudaStreamEndCapture(stream))
    assert told(reel) == ["capture begins", "Kernel 0", "", "", "Kernel 1 after 0", "Kernel 2 after 0",
                          "", "", "Kernel 3 after 1 and 2", "capture over"]
    assert len(graph.edges(made)) == len(reel.frames[-1].edges) == 4


def test_filming_changes_nothing_in_the_graph(stream, x):
    def capture():
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        ok(cudart.cudaMemsetAsync(x.ptr, 0, x.nbytes, stream))
        return ok(cudart.cudaStreamEndCapture(stream))
    plain = capture()
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        ok(cudart.cudaMemsetAsync(x.ptr, 0, x.nbytes, stream))
        filmed = ok(cudart.cudaStreamEndCapture(stream))
    assert graph.kinds(filmed) == graph.kinds(plain) == reel.kinds == ["Kernel", "Memset"]
    assert graph.edges(filmed) == graph.edges(plain)


def test_the_same_line_in_a_loop_gives_a_frame_each_round(stream, x):
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        for _ in range(3):
            work(stream, x)
        ok(cudart.cudaStreamEndCapture(stream))
    assert [frame.new for frame in reel.shots] == [(), (0,), (1,), (2,), ()]
    assert [frame.code for frame in reel.told] == [frame.code for frame in reel.shots]


def test_the_line_that_invalidates_is_named_and_there_is_no_graph(stream, x):
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        cudart.cudaStreamSynchronize(stream)
        cudart.cudaStreamEndCapture(stream)
    assert told(reel) == ["capture begins", "Kernel 0", "capture invalidated", "capture over: no graph"]
    assert "Synchronize" in reel.shots[2].code and reel.frames[-1].nodes == ()


def test_an_exception_in_the_block_is_in_the_film_and_goes_on(stream, x):
    with pytest.raises(LabError):
        with film(stream) as reel:
            ok(cudart.cudaStreamBeginCapture(stream, MODE))
            ok(cudart.cudaStreamSynchronize(stream))
    assert told(reel)[-1] == "capture invalidated, raised LabError"
    cudart.cudaStreamEndCapture(stream)


def test_two_captures_in_one_block_number_their_nodes_on(stream, x):
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        ok(cudart.cudaStreamEndCapture(stream))
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        ok(cudart.cudaStreamEndCapture(stream))
    assert [frame.new for frame in reel.shots if frame.new] == [(0,), (1,)]
    assert reel.frames[-1].nodes == (0, 1)


def test_work_from_another_thread_is_in_the_film(stream, x):
    def other():
        thread = threading.Thread(target=work, args=(stream, x))
        thread.start()
        thread.join()
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        other()
        ok(cudart.cudaStreamEndCapture(stream))
    assert told(reel) == ["capture begins", "Kernel 0", "capture over"]


def test_the_strip_shows_a_picture_and_says_it_in_words(stream, x):
    import pictures
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        for _ in range(MOST + 4):
            work(stream, x)
        ok(cudart.cudaStreamEndCapture(stream))
    figure = reel.figure()
    data, _ = figure._repr_mimebundle_()
    assert list(pictures.problems([{"output_type": "display_data", "data": data}])) == []
    assert "left out" in figure.alt and "Kernel 0" in figure.alt
    assert len(figure.source["frames"]) == len(reel.shots) == MOST + 6


def test_the_slider_shows_one_step_at_a_time_and_only_where_widgets_run(stream, x, monkeypatch):
    import IPython
    from labkit.strip import slider
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        work(stream, x)
        ok(cudart.cudaStreamEndCapture(stream))
    assert slider(reel) is None
    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(kernel=object()))
    pick, image = slider(reel).children
    first = bytes(image.value)
    pick.value = 2
    assert pick.max == 3 and first != bytes(image.value) and bytes(image.value).startswith(b"\x89PNG")


def test_a_large_capture_is_cut_and_says_so(stream, x):
    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        for _ in range(4):
            for _ in range(20): work(stream, x)  # noqa: E701
        ok(cudart.cudaStreamEndCapture(stream))
    assert reel.cut and "stops there" in reel.figure().alt


def test_a_block_without_a_capture_is_a_lab_error(stream):
    with film(stream) as reel:
        a = 1  # noqa: F841
    assert len(reel.frames) == 1
    with pytest.raises(LabError, match="shows nothing"):
        reel.figure()


def test_what_is_no_stream_is_a_lab_error():
    with pytest.raises(LabError, match="film"):
        with film("a stream"):
            pass
