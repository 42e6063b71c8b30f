"""Begin, end, fork and join: the first section of the rules measured on an H200."""
import pytest

from labkit.errors import ok


@pytest.fixture
def fork(lab):
    """A capture on `a`, into which `fork(b)` draws another stream, and `join(b)` joins it."""
    class Fork:
        def __init__(self):
            self.cu, self.a, self.b = lab.cudart, lab.stream(), lab.stream()
            self.y = lab.buffer(value=1)
            ok(self.cu.cudaStreamBeginCapture(self.a, lab.GLOBAL))

        def arrow(self, a, b):
            event = lab.event()
            ok(self.cu.cudaEventRecord(event, a))
            return self.cu.cudaStreamWaitEvent(b, event, 0)[0]

        def work(self, stream):
            assert lab.step(stream, self.y) == 0

        def end(self):
            return self.cu.cudaStreamEndCapture(self.a)

        def usable(self):
            for stream in (self.a, self.b):
                assert lab.status(stream) == "None" and lab.step(stream, self.y) == 0
                assert self.cu.cudaStreamSynchronize(stream)[0] == 0
    return Fork()


def test_diamond_has_four_edges(lab, fork):
    fork.work(fork.a)
    assert fork.arrow(fork.a, fork.b) == 0
    fork.work(fork.a), fork.work(fork.b)
    assert fork.arrow(fork.b, fork.a) == 0
    fork.work(fork.a)
    code, graph = fork.end()
    assert code == 0 and lab.edges(graph) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    lab.run(graph, fork.a)
    fork.usable()


def test_fork_with_work_and_no_join_is_unjoined(lab, fork):
    fork.work(fork.a), fork.arrow(fork.a, fork.b), fork.work(fork.b)
    assert fork.end() == (904, None)
    fork.usable()


def test_work_after_the_join_is_unjoined(lab, fork):
    fork.work(fork.a), fork.arrow(fork.a, fork.b), fork.work(fork.b), fork.arrow(fork.b, fork.a), fork.work(fork.b)
    assert fork.end() == (904, None)
    fork.usable()


def test_fork_without_work_needs_no_join(lab, fork):
    fork.work(fork.a), fork.arrow(fork.a, fork.b), fork.work(fork.a)
    code, graph = fork.end()
    assert code == 0 and lab.kinds(graph) == ["Kernel", "Kernel"]
    fork.usable()


def test_destroying_a_forked_stream_with_work_is_unjoined(lab, fork):
    fork.work(fork.a), fork.arrow(fork.a, fork.b), fork.work(fork.b)
    ok(lab.cudart.cudaStreamDestroy(fork.b))
    assert fork.end() == (904, None)


def test_work_removed_by_an_update_needs_no_join(lab, fork):
    fork.work(fork.a), fork.arrow(fork.a, fork.b), fork.work(fork.b)
    ok(lab.cudart.cudaStreamUpdateCaptureDependencies(fork.b, [], 0, 1))
    assert fork.end()[0] == 0


def test_join_through_a_third_stream_counts(lab, fork):
    c = lab.stream()
    fork.work(fork.a), fork.arrow(fork.a, fork.b), fork.work(fork.b), fork.arrow(fork.b, c), fork.work(c), fork.arrow(c, fork.a)
    code, graph = fork.end()
    assert code == 0 and lab.edges(graph) == [(0, 1), (1, 2)]


def test_end_on_a_forked_stream_is_unmatched_and_breaks_the_capture(lab, fork):
    fork.work(fork.a), fork.arrow(fork.a, fork.b), fork.work(fork.b)
    assert lab.cudart.cudaStreamEndCapture(fork.b) == (903, None)
    assert lab.status(fork.a) == "Invalidated"
    assert fork.end() == (901, None)
    fork.usable()


def test_two_captures_that_meet_are_both_invalid(lab, fork):
    ok(lab.cudart.cudaStreamBeginCapture(fork.b, lab.GLOBAL))
    assert fork.arrow(fork.a, fork.b) == 902
    assert lab.status(fork.a) == lab.status(fork.b) == "Invalidated"
    assert fork.end() == (901, None) and lab.cudart.cudaStreamEndCapture(fork.b) == (901, None)
    fork.usable()


@pytest.mark.parametrize("when", ["before", "during"])
def test_waiting_for_an_event_from_outside_breaks_isolation(lab, when):
    stream, other, event = lab.stream(), lab.stream(), lab.event()
    if when == "before":
        ok(lab.cudart.cudaEventRecord(event, other))
    ok(lab.cudart.cudaStreamBeginCapture(stream, lab.GLOBAL))
    if when == "during":
        ok(lab.cudart.cudaEventRecord(event, other))
    assert lab.cudart.cudaStreamWaitEvent(stream, event, 0)[0] == 905
    assert lab.status(stream) == "Invalidated" and lab.cudart.cudaStreamEndCapture(stream) == (901, None)


def test_a_captured_event_stands_for_nothing_after_the_capture(lab, fork):
    event, cu = lab.event(), lab.cudart
    ok(cu.cudaEventRecord(event, fork.a))
    assert fork.end()[0] == 0
    assert cu.cudaEventQuery(event)[0] == cu.cudaEventSynchronize(event)[0] == cu.cudaStreamWaitEvent(fork.b, event, 0)[0] == 1
    ok(cu.cudaEventRecord(event, fork.a))
    assert cu.cudaEventSynchronize(event)[0] == 0


def test_external_record_and_wait_become_nodes(lab, fork):
    cu, event = lab.cudart, lab.event()
    ok(cu.cudaEventRecordWithFlags(event, fork.a, cu.cudaEventRecordExternal))
    ok(cu.cudaStreamWaitEvent(fork.a, event, cu.cudaEventWaitExternal))
    code, graph = fork.end()
    assert lab.kinds(graph) == ["EventRecord", "WaitEvent"]
    nodes = cu.cudaGraphGetNodes(graph, 2)[1]
    assert ok(cu.cudaGraphEventRecordNodeGetEvent(nodes[0])) == event == ok(cu.cudaGraphEventWaitNodeGetEvent(nodes[1]))
    lab.run(graph, fork.a)
    assert cu.cudaEventQuery(event)[0] == 0


def test_begin_on_the_legacy_stream_is_refused(lab):
    for legacy in (None, 0, lab.cudart.cudaStreamLegacy):
        assert lab.cudart.cudaStreamBeginCapture(legacy, lab.GLOBAL)[0] == 900
        assert lab.cudart.cudaStreamEndCapture(legacy) == (401, None)


def test_begin_on_the_per_thread_stream_captures(lab):
    stream, y = lab.cudart.cudaStreamPerThread, lab.buffer(value=1)
    ok(lab.cudart.cudaStreamBeginCapture(stream, lab.GLOBAL))
    assert lab.step(stream, y) == 0 and lab.elsewhere(lambda: lab.status(stream)) == "None"
    assert lab.kinds(ok(lab.cudart.cudaStreamEndCapture(stream))) == ["Kernel"]


def test_end_without_begin_is_an_illegal_state(lab):
    assert lab.cudart.cudaStreamEndCapture(lab.stream()) == (401, None)


@pytest.mark.parametrize("mode, code", [("GLOBAL", 908), ("THREAD_LOCAL", 908), ("RELAXED", 0)])
def test_end_from_another_thread(lab, mode, code):
    stream, y = lab.stream(), lab.buffer(value=1)
    ok(lab.cudart.cudaStreamBeginCapture(stream, getattr(lab, mode)))
    lab.step(stream, y)
    found = lab.elsewhere(lambda: lab.cudart.cudaStreamEndCapture(stream))
    assert found[0] == code and (found[1] is None) == bool(code)
    assert lab.status(stream) == "None"


def test_a_relaxed_thread_may_allocate_inside_a_global_capture(lab):
    cu, stream = lab.cudart, lab.stream()
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    assert ok(cu.cudaThreadExchangeStreamCaptureMode(lab.RELAXED)) == lab.GLOBAL
    assert cu.cudaMalloc(256)[0] == 0
    assert ok(cu.cudaThreadExchangeStreamCaptureMode(lab.GLOBAL)) == lab.RELAXED
    assert cu.cudaMalloc(256) == (900, None)


def test_an_empty_dependency_set_starts_a_new_root(lab, fork):
    fork.work(fork.a)
    ok(lab.cudart.cudaStreamUpdateCaptureDependencies(fork.a, [], 0, 1))
    fork.work(fork.a)
    graph = fork.end()[1]
    assert lab.edges(graph) == [] and lab.cudart.cudaGraphGetRootNodes(graph)[-1] == 2


def test_capture_into_a_given_graph(lab):
    cu, stream, y = lab.cudart, lab.stream(), lab.buffer(value=1)
    graph = ok(cu.cudaGraphCreate(0))
    ok(cu.cudaStreamBeginCaptureToGraph(stream, graph, None, None, 0, lab.GLOBAL))
    lab.step(stream, y)
    assert ok(cu.cudaStreamEndCapture(stream)) == graph and lab.kinds(graph) == ["Kernel"]


def test_nothing_to_copy_or_set_is_no_node(lab, fork):
    assert lab.cudart.cudaMemsetAsync(fork.y, 0, 0, fork.a)[0] == 0
    assert lab.cudart.cudaMemcpyAsync(fork.y, fork.y, 0, lab.D2D, fork.a)[0] == 0
    assert lab.kinds(fork.end()[1]) == []


@pytest.mark.parametrize("blocking, code", [(True, 906), (False, 0)])
def test_the_legacy_stream_beside_a_capture(lab, blocking, code):
    stream, y = lab.stream(blocking), lab.buffer(value=1)
    ok(lab.cudart.cudaStreamBeginCapture(stream, lab.RELAXED))
    assert lab.step(0, y) == code
    assert lab.status(stream) == ("Invalidated" if code else "Active")


def test_asking_the_legacy_stream_beside_a_blocking_capture_harms_nothing(lab):
    stream = lab.stream(blocking=True)
    ok(lab.cudart.cudaStreamBeginCapture(stream, lab.GLOBAL))
    assert lab.cudart.cudaStreamIsCapturing(0) == (906, None)
    assert lab.status(stream) == "Active"


@pytest.mark.parametrize("line", [12, 13])
def test_capture_info_hands_out_the_growing_graph(lab, line):
    from labkit import sim
    sim.set_line(line)
    cu, stream, y = lab.cudart, lab.stream(), lab.buffer(value=1)
    assert len(cu.cudaStreamGetCaptureInfo(stream)) == (6 if line == 12 else 7)
    ok(cu.cudaStreamBeginCapture(stream, cu.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    for count in (1, 2):
        lab.step(stream, y)
        found = cu.cudaStreamGetCaptureInfo(stream)
        assert found[1] is cu.cudaStreamCaptureStatus.cudaStreamCaptureStatusActive
        assert cu.cudaGraphGetNodes(found[3])[-1] == count and len(found[4]) == found[-1] == 1
    assert ok(cu.cudaStreamEndCapture(stream)) == found[3]
