"""Fork and join: how events make other streams part of a capture, and what must hold at its end."""
from labkit import kernels
from tests.conformance.harness import MODES, scenario

ALL = {"mode": MODES}


def _streams(t, count):
    return [t.stream() for _ in range(count)], [t.device([0] * 4) for _ in range(count)]


def _finish(t, graph, stream, *buffers):
    """Write the graph down, replay it twice, and write down what the buffers hold."""
    if graph is None:
        return
    t.graph(graph)
    t.replay(graph, stream, times=2)
    for buffer in buffers:
        t.values(buffer, stream)


@scenario("Record on A and wait on B is a fork, record on B and wait on A a join: a diamond.", control="line",
          variants={"line": dict(fork=False), "diamond": dict(fork=True)}, each={"mode": MODES, "kind": ("nonblocking", "blocking")})
def a_diamond_of_four_kernels(t, fork, mode, kind):
    a, b = t.stream(kind), t.stream(kind)
    x, y = t.device([0] * 4), t.device([0] * 4)
    t.begin(a, mode)
    t.fill(a, x, 2)
    if fork:
        t.follow(b, a)
    t.axpy(b if fork else a, y, x, 10)
    t.axpy(a, x, t.ones, 1)
    if fork:
        t.status(b)
        t.follow(a, b)
    t.axpy(a, y, x, 1)
    graph = t.end(a)
    t.status(b)
    _finish(t, graph, a, x, y)


@scenario("A forked stream that holds work must be joined before the end.", control="joined",
          variants={"joined": dict(join=True, later=False), "not joined": dict(join=False, later=False),
                    "work after the join": dict(join=True, later=True)}, each=ALL)
def a_fork_with_work_and_no_join_is_unjoined(t, join, later, mode):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.fill(b, y, 2)
    if join:
        t.follow(a, b)
    if later:
        t.axpy(b, y, t.ones, 1)
    graph = t.end(a)
    t.status(a), t.status(b)
    _finish(t, graph, a, x, y)
    t.recovered(a), t.recovered(b)


@scenario("An end that finds a stream unjoined says so, in whatever thread it comes.", control="joined",
          variants={"joined": dict(join=True, thread="same"), "same": dict(join=False, thread="same"),
                    "other": dict(join=False, thread="other")}, each=ALL)
def an_unjoined_end_in_another_thread(t, join, thread, mode):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.fill(b, y, 2)
    if join:
        t.follow(a, b)
    t.here_or_there(thread, lambda: t.end(a))
    t.status(a), t.status(b)
    t.recovered(a), t.recovered(b)


@scenario("A forked stream without work needs no join.", control="joined",
          variants={"joined": dict(join=True), "not joined": dict(join=False)}, each=ALL)
def a_fork_without_work_needs_no_join(t, join, mode):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.status(b)
    if join:
        t.follow(a, b)
    graph = t.end(a)
    t.status(b)
    _finish(t, graph, a, x)


@scenario("An event record after the join, without work, leaves the stream joined.", control="nothing",
          variants={"nothing": dict(what=None), "record": dict(what="record"), "fork again": dict(what="fork"),
                    "wait for the origin": dict(what="wait")}, open=True)
def what_counts_as_work_after_the_join(t, what):
    (a, b, c), (x, y, z) = _streams(t, 3)
    t.begin(a)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.fill(b, y, 2)
    t.follow(a, b)
    if what == "record":
        t.cudaEventRecord(t.event(), b)
    elif what == "fork":
        t.follow(c, b)
    elif what == "wait":
        t.axpy(a, x, t.ones, 1)
        t.follow(b, a)
    graph = t.end(a)
    _finish(t, graph, a, x, y)
    t.recovered(a), t.recovered(b), t.recovered(c)


@scenario("Only the stream that began the capture ends it.", control="origin",
          variants={"origin": dict(end="origin"), "forked": dict(end="forked"), "forked, joined": dict(end="joined")}, each=ALL)
def ending_on_a_forked_stream_is_unmatched(t, end, mode):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.fill(b, y, 2)
    if end != "forked":
        t.follow(a, b)
    if end != "origin":
        t.end(b)
        t.status(a), t.status(b)
    graph = t.end(a)
    t.status(a), t.status(b)
    _finish(t, graph, a, x, y)
    t.recovered(a), t.recovered(b)


@scenario("Two captures cannot meet.", control="apart",
          variants={"apart": dict(meet=False), "meet": dict(meet=True)}, each=ALL)
def two_captures_cannot_merge(t, meet, mode):
    (a, b), (x, y) = _streams(t, 2)
    event = t.event()
    t.begin(a, mode)
    t.begin(b, mode)
    t.fill(a, x, 1)
    t.fill(b, y, 2)
    t.cudaEventRecord(event, a)
    if meet:
        t.cudaStreamWaitEvent(b, event, 0)
    t.status(a), t.status(b)
    t.end(a), t.end(b)
    t.recovered(a), t.recovered(b)


@scenario("A capture cannot wait for an event recorded outside of it.", control="inside",
          variants={"inside": dict(where="inside"), "before": dict(where="before"), "during, elsewhere": dict(where="during"),
                    "before, in the same stream": dict(where="same")}, each=ALL)
def waiting_for_an_event_from_outside_breaks_isolation(t, where, mode):
    (a, b), (x, y) = _streams(t, 2)
    event = t.event()
    if where in ("before", "same"):
        t.cudaEventRecord(event, b if where == "before" else a)
    t.begin(a, mode)
    t.fill(a, x, 1)
    if where == "during":
        t.cudaEventRecord(event, b)
    elif where == "inside":
        t.cudaEventRecord(event, a)
    t.cudaStreamWaitEvent(a, event, 0)
    t.status(a), t.status(b)
    t.end(a)
    t.cudaStreamSynchronize(b)
    if where in ("before", "during"):
        t.cudaEventQuery(event)
    t.recovered(a), t.recovered(b)


@scenario("A wait for an event that was never recorded adds nothing.", control="recorded",
          variants={"recorded": dict(record=True), "never recorded": dict(record=False)}, each=ALL, open=True)
def waiting_in_a_capture_for_an_event_never_recorded(t, record, mode):
    (a, b), (x, y) = _streams(t, 2)
    event = t.event()
    t.begin(a, mode)
    t.fill(a, x, 1)
    if record:
        t.cudaEventRecord(event, a)
    t.cudaStreamWaitEvent(a, event, 0)
    t.info(a)
    t.axpy(a, x, t.ones, 1)
    graph = t.end(a)
    if graph is not None:
        t.graph(graph)
    t.recovered(a)


@scenario("A second wait for the same event adds no second edge.", control="one wait",
          variants={"one wait": dict(waits=1), "two waits": dict(waits=2), "two events": dict(waits=0)})
def waiting_twice_adds_one_edge(t, waits):
    (a, b), (x, y) = _streams(t, 2)
    event, second = t.event(), t.event()
    t.begin(a)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    t.cudaEventRecord(second, a)
    for _ in range(max(waits, 1)):
        t.cudaStreamWaitEvent(b, event, 0)
    if not waits:
        t.cudaStreamWaitEvent(b, second, 0)
    t.info(b)
    t.fill(b, y, 2)
    t.follow(a, b)
    t.follow(a, b)
    t.info(a)
    t.axpy(a, y, x, 1)
    graph = t.end(a)
    _finish(t, graph, a, x, y)


@scenario("A stream that waits for its own event changes nothing.", control="no wait",
          variants={"no wait": dict(wait=None), "latest": dict(wait="latest"), "earlier": dict(wait="earlier")}, open=True)
def waiting_for_an_event_of_the_same_stream(t, wait):
    (a,), (x,) = _streams(t, 1)
    event = t.event()
    t.begin(a)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    if wait == "earlier":
        t.axpy(a, x, t.ones, 1)
    if wait:
        t.cudaStreamWaitEvent(a, event, 0)
    t.info(a)
    t.axpy(a, x, t.ones, 1)
    _finish(t, t.end(a), a, x)


@scenario("An event stands for what its stream held when it was recorded, not for what came later.", control="recorded last",
          variants={"recorded last": dict(early=False), "recorded early": dict(early=True)}, each=ALL)
def a_fork_follows_what_the_event_saw(t, early, mode):
    (a, b), (x, y) = _streams(t, 2)
    event = t.event()
    t.begin(a, mode)
    t.fill(a, x, 1)
    if early:
        t.cudaEventRecord(event, a)
    t.axpy(a, x, t.ones, 1)
    if not early:
        t.cudaEventRecord(event, a)
    t.cudaStreamWaitEvent(b, event, 0)
    t.fill(b, y, 2)
    t.follow(a, b)
    t.axpy(a, y, x, 1)
    _finish(t, t.end(a), a, x, y)


@scenario("An event recorded again stands for the later place.", control="once",
          variants={"once": dict(again=False), "again": dict(again=True)}, each=ALL)
def an_event_recorded_again_moves(t, again, mode):
    (a, b), (x, y) = _streams(t, 2)
    event = t.event()
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    t.axpy(a, x, t.ones, 1)
    if again:
        t.cudaEventRecord(event, a)
    t.cudaStreamWaitEvent(b, event, 0)
    t.info(b)
    t.fill(b, y, 2)
    t.follow(a, b)
    t.axpy(a, y, x, 1)
    _finish(t, t.end(a), a, x, y)


@scenario("A fork before any work makes new roots.", control="after work",
          variants={"after work": dict(work=True), "before work": dict(work=False)}, each=ALL)
def a_fork_before_any_work_makes_new_roots(t, work, mode):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a, mode)
    if work:
        t.fill(a, t.spare, 1)
    t.follow(b, a)
    t.status(b)
    t.fill(a, x, 1)
    t.fill(b, y, 2)
    t.info(a), t.info(b)
    t.follow(a, b)
    t.axpy(a, y, x, 1)
    _finish(t, t.end(a), a, x, y)


@scenario("Three streams: forked in a row, joined in a row or straight to the origin.", control="row",
          variants={"row": dict(how="row"), "straight": dict(how="straight"), "one left out": dict(how="left out")}, each=ALL)
def three_streams(t, how, mode):
    (a, b, c), (x, y, z) = _streams(t, 3)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.fill(b, y, 2)
    t.follow(c, b)
    t.fill(c, z, 3)
    if how == "row":
        t.follow(b, c)
        t.follow(a, b)
    elif how == "straight":
        t.follow(a, c)
    else:
        t.follow(a, b)
    t.axpy(a, x, z, 1)
    graph = t.end(a)
    t.status(b), t.status(c)
    _finish(t, graph, a, x, y, z)
    t.recovered(a), t.recovered(c)


@scenario("Two forks of one event, joined one by one.", control="two joined",
          variants={"two joined": dict(joins=2), "one joined": dict(joins=1)})
def two_forks_of_one_event(t, joins):
    (a, b, c), (x, y, z) = _streams(t, 3)
    event = t.event()
    t.begin(a)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    t.cudaStreamWaitEvent(b, event, 0)
    t.cudaStreamWaitEvent(c, event, 0)
    t.axpy(b, y, x, 1)
    t.axpy(c, z, x, 2)
    t.follow(a, b)
    if joins == 2:
        t.follow(a, c)
    t.info(a)
    t.axpy(a, x, t.ones, 1)
    graph = t.end(a)
    _finish(t, graph, a, x, y, z)
    t.recovered(a), t.recovered(c)


@scenario("A stream that has been joined may be forked again.", control="once",
          variants={"once": dict(times=1), "three times": dict(times=3)})
def forking_again_after_a_join(t, times):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a)
    t.fill(a, x, 1)
    for _ in range(times):
        t.follow(b, a)
        t.axpy(b, y, x, 1)
        t.follow(a, b)
        t.axpy(a, x, t.ones, 1)
    _finish(t, t.end(a), a, x, y)


@scenario("A forked stream runs on by itself after the capture.", control="new stream",
          variants={"new stream": dict(forked=False), "forked": dict(forked=True)})
def a_forked_stream_is_free_after_the_end(t, forked):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.follow(a, b)
    t.end(a)
    stream = b if forked else t.stream()
    t.status(stream)
    t.fill(stream, y, 4)
    t.values(y, stream)


@scenario("A forked stream may be destroyed before the end when it has been joined.", control="after the end",
          variants={"after the end": dict(when="after"), "joined": dict(when="joined"),
                    "without work": dict(when="empty"), "with work": dict(when="work")}, each=ALL)
def destroying_a_forked_stream(t, when, mode):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.follow(b, a)
    if when != "empty":
        t.fill(b, y, 2)
    if when in ("joined", "after"):
        t.follow(a, b)
    if when != "after":
        t.cudaStreamDestroy(b)
        t.status(a)
    graph = t.end(a)
    if when == "after":
        t.cudaStreamDestroy(b)
    _finish(t, graph, a, x, y if when != "empty" else x)
    t.recovered(a)


@scenario("A forked stream cannot begin a capture of its own.", control="not forked",
          variants={"not forked": dict(fork=False), "forked": dict(fork=True)}, open=True)
def begin_on_a_forked_stream(t, fork):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a)
    t.fill(a, x, 1)
    if fork:
        t.follow(b, a)
    t.begin(b)
    t.status(a), t.status(b)
    if not fork:
        t.end(b)
    t.end(a)
    t.recovered(a), t.recovered(b)


@scenario("Waiting for a forked stream breaks the capture.", control="after",
          variants={"after": dict(call=None), "wait": dict(call="cudaStreamSynchronize"), "query": dict(call="cudaStreamQuery")},
          each=ALL)
def waiting_for_a_forked_stream(t, call, mode):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.follow(b, a)
    if call:
        getattr(t, call)(b)
    t.status(a), t.status(b)
    t.end(a)
    t.status(a), t.status(b)
    t.cudaStreamSynchronize(b)
    t.recovered(a), t.recovered(b)


@scenario("What breaks one stream of a capture breaks all of them.", control="whole",
          variants={"whole": dict(broken=None), "origin": dict(broken="origin"), "fork": dict(broken="fork")})
def a_refusal_invalidates_all_streams_of_the_capture(t, broken):
    (a, b), (x, y) = _streams(t, 2)
    t.begin(a)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.fill(b, y, 2)
    if broken:
        t.launch(a if broken == "origin" else b, kernels.fill, 1, 4096, x.ptr, 1.0, 4)
    t.status(a), t.status(b)
    t.axpy(a, x, t.ones, 1)
    t.axpy(b, y, t.ones, 1)
    t.follow(a, b)
    t.end(a)
    t.status(a), t.status(b)
    t.recovered(a), t.recovered(b)


@scenario("The legacy stream cannot be forked.", control="per-thread stream",
          variants={"per-thread stream": dict(kind="perthread"), "legacy": dict(kind="legacy")},
          each={"origin": ("nonblocking", "blocking")}, open=True)
def forking_the_legacy_stream(t, kind, origin):
    a, b = t.stream(origin), t.stream(kind)
    x, y = t.device([0] * 4), t.device([0] * 4)
    event = t.event()
    t.begin(a)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    code, = t.cudaStreamWaitEvent(b, event, 0)
    t.status(a)
    if code == 0:
        t.status(b)
        t.fill(b, y, 2)
        t.follow(a, b)
    t.end(a)
    t.recovered(a)


@scenario("A blocking stream that is forked into a capture makes the legacy stream break it.", control="nonblocking",
          variants={"nonblocking": dict(kind="nonblocking"), "blocking": dict(kind="blocking")}, open=True)
def a_forked_blocking_stream_and_the_legacy_stream(t, kind):
    a, b, x = t.stream(), t.stream(kind), t.device([0] * 4)
    t.begin(a)
    t.fill(a, t.spare, 1)
    t.follow(b, a)
    t.fill(t.stream("legacy"), x, 7)
    t.status(a), t.status(b)
    t.end(a)
    t.recovered(a), t.recovered(b)


@scenario("A fork may be made and used by another thread.", control="same",
          variants={"same": dict(thread="same"), "other": dict(thread="other")}, each=ALL)
def a_fork_in_another_thread(t, thread, mode):
    (a, b), (x, y) = _streams(t, 2)
    fork, join = t.event(), t.event()
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.cudaEventRecord(fork, a)

    def work():
        t.cudaStreamWaitEvent(b, fork, 0)
        t.axpy(b, y, x, 5)
        t.cudaEventRecord(join, b)
    t.here_or_there(thread, work)
    t.cudaStreamWaitEvent(a, join, 0)
    t.axpy(a, x, y, 1)
    _finish(t, t.end(a), a, x, y)


@scenario("An end refused as unjoined may come from any stream that was forked from a fork.", control="all joined",
          variants={"all joined": dict(join=True), "last not joined": dict(join=False)})
def an_unjoined_fork_of_a_fork(t, join):
    (a, b, c), (x, y, z) = _streams(t, 3)
    t.begin(a)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.follow(c, b)
    t.fill(c, z, 3)
    if join:
        t.follow(b, c)
    t.follow(a, b)
    graph = t.end(a)
    t.status(a), t.status(b), t.status(c)
    _finish(t, graph, a, x)
    t.recovered(a), t.recovered(b), t.recovered(c)


@scenario("A wait for an event of a capture that has ended is refused, and takes nobody into a capture.", control="during",
          variants={"during": dict(late=False), "after the end": dict(late=True)}, each={"capturing": ("no", "yes")})
def waiting_late_for_a_captured_event(t, late, capturing):
    (a, b), (x, y) = _streams(t, 2)
    event = t.event()
    t.begin(a)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    if not late:
        t.cudaStreamWaitEvent(b, event, 0)
    t.end(a)
    if late:
        if capturing == "yes":
            t.begin(b)
        t.cudaStreamWaitEvent(b, event, 0)
        t.status(b)
        if capturing == "yes":
            t.end(b)
    t.recovered(a), t.recovered(b)
