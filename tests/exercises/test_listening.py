"""What the judges hear of an answer's calls, whatever it calls them by; and that nothing of it stays."""
import functools
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest

from labkit import cudart, kernels, labs, launch, ok, recover
from labkit.labs import judging, listening
from labkit.labs.calls import Calls, following

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
go, begin, end = cudart.cudaGraphLaunch, cudart.cudaStreamBeginCapture, cudart.cudaStreamEndCapture
make = functools.partial(cudart.cudaGraphInstantiate, flags=0)


@pytest.fixture
def t():
    with judging.Try(64, 0, []) as made:
        yield made


def _graph(stream, y):
    ok(begin(stream, GLOBAL))
    ok(launch(stream, kernels.scale, 1, 64, y, 2.0, y.size))
    return ok(end(stream))


def by_name(stream, y):
    ok(cudart.cudaGraphLaunch(stream=stream, graphExec=ok(cudart.cudaGraphInstantiate(flags=0, graph=_graph(stream, y)))))


def by_alias(stream, y):
    ok(go(ok(cudart.cudaGraphInstantiate(_graph(stream, y), 0)), stream))


class Object:
    def __call__(self, stream, y):
        by_alias(stream, y)

    def method(self, stream, y):
        by_name(stream, y)


@pytest.mark.parametrize("answer", [by_name, by_alias, Object(), Object().method, functools.partial(by_alias)], ids=["named", "alias", "object", "method", "partial"])
def test_a_call_is_heard_whatever_it_is_called_by(t, answer):
    y, calls = t.buffer(), Calls(t)
    old, = t.fresh(y)
    calls.run(answer, t.stream, y)
    assert [first for name, first, second in calls.of("cudaGraphLaunch") if second == int(t.stream)] == [int(one) for one in calls.there["executable"].values()]
    calls.launches(1)
    assert len(calls.there["graph"]) == 1
    t.expect("after it", "y", y, 2 * old)


def test_an_alias_that_was_made_while_a_check_listened_is_heard_later(t):
    y, made = t.buffer(), {}

    def outer(stream):
        made["go"] = cudart.cudaGraphLaunch
        return ok(cudart.cudaGraphInstantiate(_graph(stream, y), 0))
    first, later = Calls(t), Calls(t)
    executable = first.run(outer, t.stream)
    later.run(lambda: ok(made["go"](executable, t.stream)))
    assert not first.of("cudaGraphLaunch") and len(later.of("cudaGraphLaunch")) == 1
    ok(made["go"](executable, t.stream))


def test_following_gives_named_arguments_in_order(t):
    y = t.buffer()
    with following("cudaMemsetAsync") as made:
        ok(cudart.cudaMemsetAsync(stream=t.stream, value=0, count=y.nbytes, devPtr=y.ptr))
    (given, answer), = made["cudaMemsetAsync"]
    assert given == (y.ptr, 0, y.nbytes, t.stream) and int(answer[0]) == 0


def test_nothing_that_was_exchanged_stays(t):
    before, here = dict(vars(cudart)), dict(globals())

    def patches(stream):
        cudart.cudaGraphLaunch = cudart.cudaMalloc = None
        raise ValueError("and fails")
    with pytest.raises(judging.Trouble, match="and fails"):
        Calls(t).run(patches, t.stream)
    assert {name: value for name, value in vars(cudart).items() if name in before} == before and globals() == here


@pytest.mark.parametrize("mend", [listening.mend, recover], ids=["the next check", "recover"])
def test_what_an_interrupt_left_is_put_back(mend, capsys):
    before, here = cudart.cudaGraphLaunch, go
    ears = listening.listening(("cudaGraphLaunch",), lambda name, call, given: call(), by_alias)
    ears.__enter__()                              # and never comes to its end
    assert cudart.cudaGraphLaunch is not before and go is not here
    mend()
    assert cudart.cudaGraphLaunch is before and go is here


def test_a_capture_left_open_on_a_stream_of_the_answers_own_is_ended(t):
    def opens():
        stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
        ok(begin(stream, GLOBAL))
    with pytest.raises(judging.Trouble, match="left a capture open"):
        t.run(opens)
    ok(cudart.cudaDeviceSynchronize())            # refused while anything captures

    def opens_and_fails():
        opens()
        raise ValueError("and fails")
    with pytest.raises(judging.Trouble, match="and fails"), judging.Try(64, 0, []) as other:
        other.run(opens_and_fails)
    ok(cudart.cudaDeviceSynchronize())


def test_a_stream_that_the_answer_destroyed_is_not_asked(t):
    def tidies():
        stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
        ok(begin(stream, GLOBAL))
        ok(cudart.cudaGraphDestroy(ok(end(stream))))
        ok(cudart.cudaStreamDestroy(stream))
    t.run(tidies)


def _replay_that(first):
    """A right answer to replay that does something odd first."""
    def replay(stream, graph, times):
        first()
        executable = ok(cudart.cudaGraphInstantiate(graph, 0))
        for _ in range(times):
            ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaStreamSynchronize(stream))
        ok(cudart.cudaGraphExecDestroy(executable))
    return replay


def _right(answer):
    return judging.judge(labs.parts()["replay"], answer)[0]


def test_an_answer_may_call_recover(capsys):
    before = cudart.cudaGraphLaunch
    for _ in range(2):
        assert _right(_replay_that(recover)) is None
    assert cudart.cudaGraphLaunch is before


def test_an_answer_that_calls_a_check_harms_no_later_one():
    before = cudart.cudaGraphLaunch
    assert "found:    30" in _right(_replay_that(lambda: _right(_replay_that(lambda: None)))).text         # they were made while it ran
    assert cudart.cudaGraphLaunch is before
    assert _right(_replay_that(lambda: None)) is None


def test_checks_in_several_threads_wait_for_each_other():
    before = cudart.cudaGraphLaunch
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: _right(_replay_that(lambda: None)), range(9))) == [None] * 9
    assert cudart.cudaGraphLaunch is before


class Everything:
    """An object that has every attribute, itself."""
    def __getattr__(self, name):
        return self

    def __call__(self):
        return self


@pytest.mark.parametrize("odd", [mock.call, Everything()], ids=["unittest.mock.call", "a proxy"])
def test_what_else_the_notebook_holds_does_not_matter(odd):
    globals()["odd"] = odd
    try:
        assert _right(_replay_that(lambda: None)) is None
    finally:
        del globals()["odd"]


def test_the_mode_of_the_thread_is_as_it_was(capsys):
    relaxed = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
    before = ok(cudart.cudaThreadExchangeStreamCaptureMode(relaxed))
    try:
        assert _right(_replay_that(lambda: None)) is None
    finally:
        assert ok(cudart.cudaThreadExchangeStreamCaptureMode(before)) == relaxed
