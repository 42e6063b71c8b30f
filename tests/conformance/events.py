"""Events: plain ones, captured ones, and those recorded for outside (external)."""
from tests.conformance.harness import MODES, scenario

ALL = {"mode": MODES}
EXTERNAL = 1


@scenario("An event record adds no node; an external one adds an EventRecord node.", control="plain",
          variants={"plain": dict(flags=None), "flag 0": dict(flags=0), "external": dict(flags=EXTERNAL)}, each=ALL)
def recording_an_event_in_a_capture(t, flags, mode):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    if flags is None:
        t.cudaEventRecord(event, stream)
    else:
        t.cudaEventRecordWithFlags(event, stream, flags)
    t.info(stream)
    t.axpy(stream, x, t.ones, 1)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
    if flags == EXTERNAL:
        t.cudaEventQuery(event)
        t.cudaEventSynchronize(event)


@scenario("An external wait adds a WaitEvent node and takes an event from outside.", control="recorded before",
          variants={"recorded before": dict(record=True), "never recorded": dict(record=False)}, each=ALL)
def waiting_external_in_a_capture(t, record, mode):
    stream, other, event, x = t.stream(), t.stream(), t.event(), t.device([0] * 4)
    if record:
        t.cudaEventRecord(event, other)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    t.cudaStreamWaitEvent(stream, event, EXTERNAL)
    t.info(stream)
    t.axpy(stream, x, t.ones, 1)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
    t.cudaEventQuery(event)


@scenario("External flags need a capture.", control="plain",
          variants={"plain": dict(call=None), "record": dict(call="record"), "wait": dict(call="wait")}, open=True)
def external_flags_outside_a_capture(t, call):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    t.fill(stream, x, 1)
    if call == "record":
        t.cudaEventRecordWithFlags(event, stream, EXTERNAL)
    elif call == "wait":
        t.cudaEventRecord(event, stream)
        t.cudaStreamWaitEvent(stream, event, EXTERNAL)
    else:
        t.cudaEventRecordWithFlags(event, stream, 0)
    t.cudaStreamSynchronize(stream)
    t.cudaEventQuery(event)
    t.values(x, stream)
    t.recovered(stream)


@scenario("An external wait for an event recorded in this capture.", control="plain",
          variants={"plain": dict(flags=0), "external": dict(flags=EXTERNAL)}, open=True)
def an_external_wait_for_a_captured_event(t, flags):
    a, b, event, x = t.stream(), t.stream(), t.event(), t.device([0] * 4)
    t.begin(a)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    t.cudaStreamWaitEvent(a, event, flags)
    t.status(a)
    t.axpy(a, x, t.ones, 1)
    graph = t.end(a)
    if graph is not None:
        t.graph(graph)
    t.recovered(a)


@scenario("An external record inside, and a plain wait for it outside or inside.", control="outside",
          variants={"outside": dict(where="outside"), "inside": dict(where="inside"), "other stream": dict(where="other")}, open=True)
def waiting_for_an_externally_recorded_event(t, where):
    a, b, event, x = t.stream(), t.stream(), t.event(), t.device([0] * 4)
    t.begin(a)
    t.fill(a, x, 1)
    t.cudaEventRecordWithFlags(event, a, EXTERNAL)
    if where == "inside":
        t.cudaStreamWaitEvent(a, event, 0)
    elif where == "other":
        t.cudaStreamWaitEvent(b, event, 0)
    t.status(a), t.status(b)
    graph = t.end(a)
    if graph is not None:
        t.graph(graph)
    if where == "outside":
        t.replay(graph, a)
        t.cudaStreamWaitEvent(b, event, 0)
        t.cudaStreamSynchronize(b)
    t.recovered(a), t.recovered(b)


AFTER = ("query", "synchronize", "wait", "elapsed")


def _use(t, what, event, stream, other):
    if what == "query":
        t.cudaEventQuery(event)
    elif what == "synchronize":
        t.cudaEventSynchronize(event)
    elif what == "wait":
        t.cudaStreamWaitEvent(stream, event, 0)
    else:
        t.cudaEventElapsedTime(other, event)


@scenario("After the capture an event recorded in it is of no use until it is recorded again.", control="recorded again",
          variants={"recorded again": dict(again=True), "as captured": dict(again=False)}, each={"what": (*AFTER[:-1], "external wait", "external wait in a capture")})
def a_captured_event_after_the_capture(t, again, what):
    stream, other, event, x = t.stream(), t.stream(), t.event(), t.device([0] * 4)
    t.begin(stream)
    t.fill(stream, x, 1)
    t.cudaEventRecord(event, stream)
    graph = t.end(stream)
    t.replay(graph, stream)
    if again:
        t.cudaEventRecord(event, stream)
        t.cudaStreamSynchronize(stream)
    if "external" in what:
        inside = again or "capture" in what
        t.begin(other) if inside else None
        t.cudaStreamWaitEvent(other, event, EXTERNAL)
        t.status(other)
        t.end(other) if inside else None
    else:
        _use(t, what, event, other, None)
    t.recovered(stream), t.recovered(other)


@scenario("When its capture is lost, an event recorded in it stands for nothing, as after the end.", control="recorded again",
          variants={"recorded again": dict(again=True), "as captured": dict(again=False)},
          each={"what": ("query", "synchronize", "wait", "external wait", "wait in a capture")})
def a_captured_event_of_a_lost_capture(t, again, what):
    stream, other, event, x = t.stream(), t.stream(), t.event(), t.device([0] * 4)
    if not again:
        t.begin(stream)
        t.fill(stream, x, 1)
    t.cudaEventRecord(event, stream)
    if not again:
        t.cudaDeviceSynchronize()
    if "capture" in what and not again or "external" in what and again:
        t.begin(other)
    if what in ("query", "synchronize"):
        t.cudaStreamSynchronize(stream) if again else None
        t.cudaEventQuery(event) if what == "query" else t.cudaEventSynchronize(event)
    else:
        t.cudaStreamWaitEvent(other, event, EXTERNAL if "external" in what else 0)
    t.status(stream), t.status(other)
    t.end(other) if "capture" in what and not again or "external" in what and again else None
    t.end(stream) if not again else None
    t.recovered(stream), t.recovered(other)


@scenario("The time between events: both must have been recorded, outside of a capture, with timing.", control="good",
          variants={"good": dict(what="good"), "never recorded": dict(what="never"), "captured": dict(what="captured"),
                    "external": dict(what="external"), "no timing": dict(what="no timing")})
def the_time_between_events(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    start, stop = t.event(), t.event(2) if what == "no timing" else t.event()
    if what in ("captured", "external"):
        flags = EXTERNAL if what == "external" else 0
        t.begin(stream)
        t.cudaEventRecordWithFlags(start, stream, flags)
        t.fill(stream, x, 1)
        t.cudaEventRecordWithFlags(stop, stream, flags)
        t.replay(t.end(stream), stream)
    else:
        t.cudaEventRecord(start, stream)
        t.fill(stream, x, 1)
        if what != "never":
            t.cudaEventRecord(stop, stream)
        t.cudaStreamSynchronize(stream)
    if what in ("good", "external"):
        t.note("a success, checked on the GPU only", True)
    else:
        t.cudaEventElapsedTime(start, stop)
    t.recovered(stream)


@scenario("Inside the capture an event recorded in it cannot be asked or waited for by the host.", control="not asked",
          variants={"not asked": dict(what=None), "query": dict(what="query"), "synchronize": dict(what="synchronize")},
          each={"mode": MODES, "thread": ("same", "other")})
def a_captured_event_inside_the_capture(t, what, mode, thread):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    t.cudaEventRecord(event, stream)
    if what:
        t.here_or_there(thread, lambda: _use(t, what, event, None, None))
    t.status(stream)
    t.end(stream)
    t.recovered(stream)


@scenario("A query inside a capture of an event that was never recorded.", control="after",
          variants={"after": dict(inside=False), "inside": dict(inside=True)}, each={"mode": MODES, "what": AFTER[:2]}, open=True)
def an_event_never_recorded_inside_a_capture(t, inside, mode, what):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    if inside:
        _use(t, what, event, None, None)
    t.status(stream)
    t.end(stream)
    if not inside:
        _use(t, what, event, None, None)
    t.recovered(stream)


@scenario("An event may be destroyed inside the capture that recorded it.", control="after the end",
          variants={"after the end": dict(when="after"), "after the wait": dict(when="waited"), "before any wait": dict(when="recorded")},
          each=ALL)
def destroying_an_event_of_the_capture(t, when, mode):
    a, b, event, x, y = t.stream(), t.stream(), t.event(), t.device([0] * 4), t.device([0] * 4)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    if when == "recorded":
        t.cudaEventDestroy(event)
    else:
        t.cudaStreamWaitEvent(b, event, 0)
        if when == "waited":
            t.cudaEventDestroy(event)
        t.axpy(b, y, x, 1)
        t.follow(a, b)
    t.status(a)
    graph = t.end(a)
    if when == "after":
        t.cudaEventDestroy(event)
    t.graph(graph)
    t.replay(graph, a)
    t.values(y, a)


@scenario("An event recorded outside again, while the capture is on, is an outside event.", control="captured",
          variants={"captured": dict(again=False), "recorded outside": dict(again=True)}, each=ALL)
def recording_a_captured_event_outside(t, again, mode):
    a, b, c, event, x = t.stream(), t.stream(), t.stream(), t.event(), t.device([0] * 4)
    t.begin(a, mode)
    t.fill(a, x, 1)
    t.cudaEventRecord(event, a)
    if again:
        t.cudaEventRecord(event, c)
    t.cudaStreamWaitEvent(b, event, 0)
    t.status(a), t.status(b)
    t.end(a)
    t.recovered(a), t.recovered(b), t.recovered(c)


@scenario("An event that was never recorded counts as done.", control="recorded",
          variants={"recorded": dict(record=True), "never recorded": dict(record=False)})
def an_event_never_recorded_counts_as_done(t, record):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    if record:
        t.cudaEventRecord(event, stream)
        t.cudaStreamSynchronize(stream)
    t.cudaEventQuery(event)
    t.cudaEventSynchronize(event)
    t.cudaStreamWaitEvent(stream, event, 0)
    t.fill(stream, x, 1)
    t.values(x, stream)


@scenario("Flags of events that do not exist are refused.", control="0",
          variants={"0": dict(call="create", flags=0), "create 2": dict(call="create", flags=2),
                    "create 4": dict(call="create", flags=4), "create 6": dict(call="create", flags=6),
                    "create 64": dict(call="create", flags=64),
                    "record 4": dict(call="record", flags=4), "wait 4": dict(call="wait", flags=4)},
          each={"capturing": ("no", "yes")}, open=True)
def flags_of_events(t, call, flags, capturing):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    if capturing == "yes":
        t.begin(stream)
        t.fill(stream, x, 1)
    if call == "create":
        t.cudaEventCreateWithFlags(flags)
    elif call == "record":
        t.cudaEventRecordWithFlags(event, stream, flags)
    else:
        t.cudaEventRecord(event, stream)
        t.cudaStreamWaitEvent(stream, event, flags)
    if capturing == "yes":
        t.status(stream)
        t.end(stream)
    t.recovered(stream)


@scenario("A wait orders streams by the event, whatever stream it was recorded in.", control="same stream",
          variants={"same stream": dict(streams=1), "two streams": dict(streams=2), "three streams": dict(streams=3)})
def a_wait_orders_streams(t, streams):
    row = [t.stream() for _ in range(streams)]
    x = t.device([0] * 4)
    t.fill(row[0], x, 1)
    for earlier, later in zip(row, row[1:]):
        t.follow(later, earlier)
        t.axpy(later, x, x, 1)
    t.axpy(row[-1], x, t.ones, 10)
    t.values(x, row[-1])
