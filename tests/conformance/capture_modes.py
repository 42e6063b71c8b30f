"""The three modes: which calls a capture forbids, to whom, and what happens beside a capture."""
from tests.conformance.harness import MODES, scenario

ALL = {"mode": MODES}
WHO = {"mode": MODES, "thread": ("same", "other")}


def _unsafe(rule, **more):
    """A scenario of one possibly unsafe call; the control makes it after the end."""
    return scenario(rule, control="after", variants={"after": dict(inside=False), "inside": dict(inside=True)},
                    each=WHO, **more)


def _around(t, inside, mode, thread, call, kind="nonblocking"):
    """Make `call()` inside a capture of two kernels, or after its end."""
    stream, x = t.stream(kind), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 3)
    if inside:
        t.here_or_there(thread, call)
        t.status(stream)
    t.axpy(stream, x, t.ones, 1)
    graph = t.end(stream)
    if not inside:
        t.here_or_there(thread, call)
    if graph is not None:
        t.graph(graph)
        t.replay(graph, stream)
        t.values(x, stream)
    t.recovered(stream)


@_unsafe("cudaMalloc is refused to the threads that the mode forbids, and is never captured.")
def malloc_beside_a_capture(t, inside, mode, thread):
    _around(t, inside, mode, thread, lambda: t.cudaMalloc(1024))


@_unsafe("cudaFree is refused to the threads that the mode forbids.")
def free_beside_a_capture(t, inside, mode, thread):
    buffer = t.device([1] * 4)
    _around(t, inside, mode, thread, lambda: t.cudaFree(buffer.ptr))


@_unsafe("Pinned memory cannot be allocated by the threads that the mode forbids.")
def malloc_host_beside_a_capture(t, inside, mode, thread):
    _around(t, inside, mode, thread, lambda: t.cudaMallocHost(1024))


@_unsafe("Waiting for another stream is refused to the threads that the mode forbids.")
def synchronizing_another_stream_beside_a_capture(t, inside, mode, thread):
    other = t.stream()
    _around(t, inside, mode, thread, lambda: t.cudaStreamSynchronize(other))


@_unsafe("A query of another stream counts as a wait.")
def querying_another_stream_beside_a_capture(t, inside, mode, thread):
    other = t.stream()
    _around(t, inside, mode, thread, lambda: t.cudaStreamQuery(other))


@_unsafe("A query of an event of another stream counts as a wait.")
def querying_an_event_beside_a_capture(t, inside, mode, thread):
    other, event = t.stream(), t.event()
    t.cudaEventRecord(event, other)
    t.cudaStreamSynchronize(other)
    _around(t, inside, mode, thread, lambda: t.cudaEventQuery(event))


@_unsafe("Waiting for an event of another stream is refused to the threads that the mode forbids.")
def synchronizing_an_event_beside_a_capture(t, inside, mode, thread):
    other, event = t.stream(), t.event()
    t.cudaEventRecord(event, other)
    t.cudaStreamSynchronize(other)
    _around(t, inside, mode, thread, lambda: t.cudaEventSynchronize(event))


@_unsafe("Instantiating another graph is refused to the threads that the mode forbids.")
def instantiating_beside_a_capture(t, inside, mode, thread):
    stream = t.stream()
    t.begin(stream)
    graph = t.end(stream)
    _around(t, inside, mode, thread, lambda: t.instantiate(graph))


@_unsafe("Destroying an executable is refused to the threads that the mode forbids (garbage collection does it too).")
def destroying_an_executable_beside_a_capture(t, inside, mode, thread):
    stream = t.stream()
    t.begin(stream)
    executable = t.instantiate(t.end(stream))
    _around(t, inside, mode, thread, lambda: t.cudaGraphExecDestroy(executable))


@_unsafe("Destroying a graph is fine in every mode.")
def destroying_a_graph_beside_a_capture(t, inside, mode, thread):
    stream = t.stream()
    t.begin(stream)
    graph = t.end(stream)
    _around(t, inside, mode, thread, lambda: t.cudaGraphDestroy(graph))


@_unsafe("Waiting for the device breaks every capture, from any thread.")
def device_synchronize_beside_a_capture(t, inside, mode, thread):
    _around(t, inside, mode, thread, lambda: t.cudaDeviceSynchronize())


@_unsafe("Creating streams and events is fine in every mode.")
def creating_streams_and_events_beside_a_capture(t, inside, mode, thread):
    def create():
        t.cudaStreamCreate()
        t.cudaEventCreate()
    _around(t, inside, mode, thread, create)


@_unsafe("A launch into another stream is not captured and runs at once.")
def launching_into_another_stream_beside_a_capture(t, inside, mode, thread):
    other, y = t.stream(), t.device([0] * 4)
    _around(t, inside, mode, thread, lambda: t.fill(other, y, 7))
    t.values(y, other)


@scenario("Waiting for the capturing stream, or asking it, breaks the capture in every mode.", control="after",
          variants={"after": dict(call=None), "wait": dict(call="cudaStreamSynchronize"), "query": dict(call="cudaStreamQuery")},
          each=WHO)
def waiting_for_the_capturing_stream(t, call, mode, thread):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 3)
    if call:
        t.here_or_there(thread, lambda: getattr(t, call)(stream))
        t.status(stream)
    graph = t.end(stream)
    if graph is not None:
        t.cudaStreamSynchronize(stream)
        t.cudaStreamQuery(stream)
    t.recovered(stream)


@scenario("Work that another thread gives to the capturing stream is captured.", control="same",
          variants={"same": dict(thread="same"), "other": dict(thread="other")}, each=ALL)
def work_from_another_thread_is_captured(t, thread, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 3)
    t.here_or_there(thread, lambda: t.axpy(stream, x, t.ones, 2))
    t.here_or_there(thread, lambda: t.cudaMemsetAsync(x.ptr, 0, 4, stream))
    t.axpy(stream, x, t.ones, 4)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)


@scenario("A thread's own mode is exchanged, and the old one returned.", control="kept",
          variants={"kept": dict(first="Global", second="Global"), "to ThreadLocal": dict(first="ThreadLocal", second="Relaxed"),
                    "to Relaxed": dict(first="Relaxed", second="ThreadLocal")}, each={"thread": ("same", "other")})
def exchanging_the_mode_returns_the_old_one(t, first, second, thread):
    def exchange():
        for mode in (first, second, "Global", "Global"):
            t.cudaThreadExchangeStreamCaptureMode(t.mode(mode))
    t.here_or_there(thread, exchange)
    t.cudaThreadExchangeStreamCaptureMode(t.mode("Global"))


@scenario("Whether a call is refused depends on the thread's own mode and on the capture's.", control="Relaxed",
          variants={own: dict(own=own) for own in MODES}, each=WHO)
def own_mode_and_the_mode_of_the_capture(t, own, mode, thread):
    stream, x = t.stream(), t.device([0] * 4)

    def allocate():
        t.cudaThreadExchangeStreamCaptureMode(t.mode(own))
        t.cudaMalloc(64)
        t.cudaThreadExchangeStreamCaptureMode(t.mode("Global"))
    t.begin(stream, mode)
    t.fill(stream, x, 3)
    t.here_or_there(thread, allocate)
    t.status(stream)
    t.end(stream)
    t.recovered(stream)


@scenario("An exchange counts for the calling thread alone.", control="own",
          variants={"own": dict(relaxed="same"), "the other's": dict(relaxed="other")}, each=ALL)
def the_exchanged_mode_is_the_threads_own(t, relaxed, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.here_or_there(relaxed, lambda: t.cudaThreadExchangeStreamCaptureMode(t.mode("Relaxed")))
    t.begin(stream, mode)
    t.fill(stream, x, 3)
    t.cudaMalloc(64)
    t.status(stream)
    t.end(stream)
    t.cudaThreadExchangeStreamCaptureMode(t.mode("Global"))
    t.recovered(stream)


@scenario("A mode exchanged before the begin and restored inside counts at the time of the call.", control="relaxed",
          variants={"relaxed": dict(restore=False), "restored": dict(restore=True)})
def the_mode_counts_at_the_time_of_the_call(t, restore):
    stream, x = t.stream(), t.device([0] * 4)
    t.cudaThreadExchangeStreamCaptureMode(t.mode("Relaxed"))
    t.begin(stream)
    t.fill(stream, x, 3)
    if restore:
        t.cudaThreadExchangeStreamCaptureMode(t.mode("Global"))
    t.cudaMalloc(64)
    t.status(stream)
    t.end(stream)
    t.recovered(stream)


@scenario("An unsafe call breaks every capture that forbids it, and no other.", control="safe",
          variants={"safe": dict(unsafe=False), "unsafe": dict(unsafe=True)},
          each={"first": MODES, "second": MODES, "thread": ("same", "other")}, open=True)
def an_unsafe_call_and_two_captures(t, unsafe, first, second, thread):
    a, b, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([0] * 4)
    t.begin(a, first)
    t.fill(a, x, 1)
    t.begin(b, second)
    t.fill(b, y, 2)
    if unsafe:
        t.here_or_there(thread, lambda: t.cudaMalloc(64))
    t.status(a), t.status(b)
    t.end(a), t.end(b)
    t.recovered(a), t.recovered(b)


@scenario("A capture of another thread forbids this thread's calls only when it is Global.", control="Relaxed",
          variants={mode: dict(mode=mode) for mode in MODES}, each={"mine": ("none", "ThreadLocal", "Relaxed")})
def captures_of_two_threads(t, mode, mine):
    a, b, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([0] * 4)
    t.thread(lambda: t.begin(a, mode))
    t.thread(lambda: t.fill(a, x, 1))
    if mine != "none":
        t.begin(b, mine)
        t.fill(b, y, 2)
    if mine != "ThreadLocal":
        t.cudaMalloc(64)
    t.thread(lambda: t.cudaStreamCreate())
    t.status(a), t.status(b)
    t.thread(lambda: t.end(a))
    if mine != "none":
        t.end(b)
    t.recovered(a), t.recovered(b)


@scenario("Beside a capture of a non-blocking stream the legacy stream works, unrecorded; beside a blocking one it breaks it.",
          control="before", variants={"before": dict(inside=False), "inside": dict(inside=True)},
          each={"kind": ("nonblocking", "blocking", "perthread"),
                "call": ("launch", "memset", "async memset", "copy", "async copy", "record", "wait", "free async", "host function")})
def the_legacy_stream_beside_a_capture(t, inside, kind, call):
    stream, legacy = t.stream(kind), t.stream("legacy")
    x, y, event = t.device([0] * 4), t.device([5] * 4), t.event()
    t.cudaEventRecord(event, legacy)
    t.cudaStreamSynchronize(legacy)
    _, pooled = t.cudaMallocAsync(16, legacy)

    def use():
        if call == "launch":
            t.fill(legacy, x, 7)
        elif call == "memset":
            t.cudaMemset(x.ptr, 0, 8)
        elif call == "async memset":
            t.cudaMemsetAsync(x.ptr, 0, 8, legacy)
        elif call == "copy":
            t.cudaMemcpy(x.ptr, y.ptr, 16, t.copies("DeviceToDevice"))
        elif call == "async copy":
            t.cudaMemcpyAsync(x.ptr, y.ptr, 16, t.copies("DeviceToDevice"), legacy)
        elif call == "record":
            t.cudaEventRecord(event, legacy)
        elif call == "wait":
            t.cudaStreamWaitEvent(legacy, event, 0)
        elif call == "free async":
            t.cudaFreeAsync(pooled, legacy)
        else:
            t.cudaLaunchHostFunc(legacy, t.raw.cudaHostFn_t(t.callback(lambda: None)), 0)
    if not inside:
        use()
    t.begin(stream)
    t.fill(stream, y, 9)
    if inside:
        use()
    t.status(stream)
    graph = t.end(stream)
    t.values(x, legacy)
    if graph is not None:
        t.graph(graph)
    if call != "free async" or graph is None:
        t.raw.cudaFreeAsync(pooled, 0) if call != "free async" else None
    t.recovered(stream)


@scenario("A copy made while a non-blocking stream captures is missing from every replay.", control="captured",
          variants={"captured": dict(how="async"), "left out": dict(how="sync")}, each=ALL)
def a_copy_left_out_of_the_graph(t, how, mode):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])
    t.begin(stream, mode)
    if how == "sync":
        t.cudaMemcpy(x.ptr, y.ptr, 16, t.copies("DeviceToDevice"))
    else:
        t.cudaMemcpyAsync(x.ptr, y.ptr, 16, t.copies("DeviceToDevice"), stream)
    t.axpy(stream, x, t.ones, 10)
    graph = t.end(stream)
    t.graph(graph)
    t.values(x, stream)
    t.write(y, [5, 6, 7, 8])
    executable = t.replay(graph, stream)
    t.values(x, stream)
    t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)


@scenario("Host copies beside a capture: pinned and pageable, each way.", control="none",
          variants={"none": dict(host=None, way=None), **{f"{host} {way}": dict(host=host, way=way)
                    for host in ("pinned", "pageable") for way in ("HostToDevice", "DeviceToHost")}},
          each={"mode": MODES, "kind": ("nonblocking", "blocking")}, open=True)
def synchronous_host_copies_beside_a_capture(t, host, way, mode, kind):
    stream, x = t.stream(kind), t.device([1, 2, 3, 4])
    buffer = (t.pageable if host == "pageable" else t.pinned)([5, 6, 7, 8])
    t.begin(stream, mode)
    t.fill(stream, t.spare, 1)
    if host:
        target, source = (x, buffer) if way == "HostToDevice" else (buffer, x)
        t.cudaMemcpy(target.ptr, source.ptr, 16, t.copies(way))
    t.status(stream)
    t.end(stream)
    t.values(x), t.values(buffer)
    t.recovered(stream)


@scenario("The per-thread stream is no legacy stream: work in it beside a capture runs at once.", control="before",
          variants={"before": dict(inside=False), "inside": dict(inside=True)},
          each={"mode": MODES, "kind": ("nonblocking", "blocking")})
def the_per_thread_stream_beside_a_capture(t, inside, mode, kind):
    stream, own, x = t.stream(kind), t.stream("perthread"), t.device([0] * 4)
    if not inside:
        t.fill(own, x, 7)
    t.begin(stream, mode)
    t.fill(stream, t.spare, 1)
    if inside:
        t.fill(own, x, 7)
    t.status(stream)
    graph = t.end(stream)
    if graph is not None:
        t.graph(graph)
    t.values(x, own)
    t.recovered(stream)


@scenario("The legacy stream may be used by another thread beside a capture no more than by this one.", control="nonblocking",
          variants={"nonblocking": dict(kind="nonblocking"), "blocking": dict(kind="blocking")}, each=ALL)
def the_legacy_stream_in_another_thread(t, kind, mode):
    stream, x = t.stream(kind), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, t.spare, 1)
    t.thread(lambda: t.fill(t.stream("legacy"), x, 7))
    t.status(stream)
    t.end(stream)
    t.values(x, 0)
    t.recovered(stream)


@scenario("A blocking capture breaks on the legacy stream even in a thread that is Relaxed.", control="nonblocking",
          variants={"nonblocking": dict(kind="nonblocking"), "blocking": dict(kind="blocking")})
def a_relaxed_thread_and_the_legacy_stream(t, kind):
    stream, x = t.stream(kind), t.device([0] * 4)
    t.cudaThreadExchangeStreamCaptureMode(t.mode("Relaxed"))
    t.begin(stream)
    t.fill(stream, t.spare, 1)
    t.fill(t.stream("legacy"), x, 7)
    t.status(stream)
    t.end(stream)
    t.cudaThreadExchangeStreamCaptureMode(t.mode("Global"))
    t.recovered(stream)


@scenario("Beside two captures the legacy stream breaks the blocking one only.", control="nonblocking",
          variants={"nonblocking": dict(kind="nonblocking"), "blocking": dict(kind="blocking")}, open=True)
def the_legacy_stream_beside_two_captures(t, kind):
    a, b, x = t.stream(), t.stream(kind), t.device([0] * 4)
    t.begin(a, "Relaxed")
    t.begin(b, "Relaxed")
    t.fill(a, t.spare, 1)
    t.fill(t.stream("legacy"), x, 7)
    t.status(a), t.status(b)
    t.end(a), t.end(b)
    t.recovered(a), t.recovered(b)
