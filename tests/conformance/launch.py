"""Launches, the last error, and how streams wait for each other outside of captures."""
from labkit import kernels
from tests.conformance.capture_begin_end import BAD
from tests.conformance.harness import scenario


@scenario("Grid and block decide how many threads there are.", control="1 x 32",
          variants={"1 x 32": dict(grid=1, block=32), "1 x 2": dict(grid=1, block=2), "2 x 2": dict(grid=2, block=2),
                    "3 x 1": dict(grid=3, block=1), "4 x 8": dict(grid=4, block=8), "(2,1) x 4": dict(grid=(2, 1), block=4),
                    "(1,2) x 4": dict(grid=(1, 2), block=4), "(1,2,3) x (4,2)": dict(grid=(1, 2, 3), block=(4, 2)), "2 x (3,2,2)": dict(grid=2, block=(3, 2, 2)),
                    "1 x 1024": dict(grid=1, block=1024)})
def grid_and_block_decide_how_many_threads(t, grid, block):
    stream, x = t.stream(), t.device([0] * 40)
    t.launch(stream, kernels.fill, grid, block, x.ptr, 1.0, 40)
    t.values(x, stream)


@scenario("A launch that no GPU could run is refused, and runs nothing.", control="good",
          variants={name: dict(shape=shape) for name, shape in BAD.items()})
def an_impossible_launch_is_refused(t, shape):
    stream, x = t.stream(), t.device([0] * 4)
    grid, block, shared = shape
    t.launch(stream, kernels.fill, grid, block, x.ptr, 1.0, 4, shared=shared)
    t.cudaPeekAtLastError()
    t.cudaGetLastError()
    t.values(x, stream)
    t.recovered(stream)


@scenario("How much dynamic shared memory a launch may ask for.", control="0",
          variants={str(size): dict(size=size) for size in (0, 1024, 48 * 1024, 48 * 1024 + 1, 64 * 1024)}, open=True)
def dynamic_shared_memory(t, size):
    stream, x = t.stream(), t.device([0] * 4)
    t.launch(stream, kernels.fill, 1, 32, x.ptr, 1.0, 4, shared=size)
    t.values(x, stream)
    t.recovered(stream)


@scenario("The last error stays until it is got; a peek leaves it.", control="no error",
          variants={"no error": dict(fail=False), "error": dict(fail=True)}, each={"peek": ("no", "yes")})
def the_last_error_is_kept_until_it_is_got(t, fail, peek):
    if fail:
        t.cudaEventCreateWithFlags(64)
    if peek == "yes":
        t.cudaPeekAtLastError()
    t.cudaDeviceSynchronize()
    t.cudaGetLastError()
    t.cudaGetLastError()
    t.recovered()


def _fail(t, what, stream):
    if what == "malloc in a capture":
        t.begin(stream)
        t.cudaMalloc(64)
        t.end(stream)
    elif what == "end without begin":
        t.end(stream)
    elif what == "begin on legacy":
        t.begin(0)
    elif what == "free":
        t.cudaFree(64)
    elif what == "unjoined":
        other = t.stream()
        t.begin(stream)
        t.follow(other, stream)
        t.fill(other, t.spare, 1)
        t.end(stream)
    elif what == "launch":
        t.launch(stream, kernels.fill, 1, 4096, t.spare.ptr, 1.0, 4)
    elif what == "launch of nothing":
        t.cudaGraphLaunch(None, stream)
    elif what == "too much memory":
        t.cudaMalloc(1 << 50)
    elif what == "query of a captured event":
        event = t.event()
        t.begin(stream)
        t.cudaEventRecord(event, stream)
        t.end(stream)
        t.cudaEventQuery(event)


FAILURES = ("malloc in a capture", "end without begin", "begin on legacy", "free", "unjoined", "launch", "launch of nothing",
            "too much memory", "query of a captured event")


@scenario("Which refusals the last error remembers.", control="nothing",
          variants={"nothing": dict(what=None), **{what: dict(what=what) for what in FAILURES}}, open=True)
def what_the_last_error_remembers(t, what):
    stream = t.stream()
    _fail(t, what, stream)
    t.cudaPeekAtLastError()
    t.cudaGetLastError()
    t.cudaGetLastError()
    t.recovered(stream)


@scenario("The last error is the thread's own.", control="no error",
          variants={"no error": dict(thread="other", fail=False), "same": dict(thread="same", fail=True),
                    "other": dict(thread="other", fail=True)}, open=True)
def the_last_error_is_the_threads_own(t, thread, fail):
    if fail:
        t.cudaEventCreateWithFlags(64)
    t.here_or_there(thread, lambda: t.cudaGetLastError())
    t.cudaGetLastError()
    t.recovered()


@scenario("A success after a refusal does not clear the last error; a second refusal replaces it.", control="one",
          variants={"one": dict(calls=""), "success": dict(calls="s"), "refusal": dict(calls="r"), "both": dict(calls="rs")}, open=True)
def the_latest_refusal_is_the_last_error(t, calls):
    if calls:
        t.cudaEventCreateWithFlags(64)
    for call in calls:
        t.cudaEventCreate() if call == "s" else t.cudaMalloc(1 << 50)
    t.cudaGetLastError()
    t.cudaGetLastError()
    t.recovered()


@scenario("The legacy stream waits for blocking streams, and they for it.", control="one stream",
          variants={"one stream": dict(row=("legacy", "legacy")), "blocking, then legacy": dict(row=("blocking", "legacy")),
                    "legacy, then blocking": dict(row=("legacy", "blocking")), "null, then blocking": dict(row=("null", "blocking")),
                    "per-thread, then legacy": dict(row=("perthread", "legacy")),
                    "legacy, then per-thread": dict(row=("legacy", "perthread")),
                    "blocking, legacy, blocking": dict(row=("blocking", "legacy", "blocking"))})
def the_legacy_stream_waits_for_blocking_streams(t, row):
    streams, x = [t.stream(kind) for kind in row], t.device([1] * 4)
    for number, stream in enumerate(streams):
        t.axpy(stream, x, x, 1)
        t.axpy(stream, x, t.ones, 10 ** number)
    t.values(x, streams[-1])


@scenario("Waiting for a stream, an event or the device runs what was queued.", control="stream",
          variants={how: dict(how=how) for how in ("stream", "event", "device", "copy")})
def waiting_runs_what_was_queued(t, how):
    stream, x, event = t.stream("blocking"), t.device([0] * 4), t.event()
    t.fill(stream, x, 2)
    t.cudaEventRecord(event, stream)
    if how == "stream":
        t.cudaStreamSynchronize(stream)
        t.cudaStreamQuery(stream)
    elif how == "event":
        t.cudaEventSynchronize(event)
        t.cudaEventQuery(event)
    elif how == "device":
        t.cudaDeviceSynchronize()
        t.cudaEventQuery(event)
    t.values(x)


@scenario("A stream tells its flags and priority.", control="blocking",
          variants={kind: dict(kind=kind) for kind in ("blocking", "nonblocking", "legacy", "null", "perthread")})
def a_stream_tells_its_flags(t, kind):
    stream = t.stream(kind)
    t.note("flags", t.cudaStreamGetFlags(stream)[1])
    t.note("priority", t.cudaStreamGetPriority(stream)[1])


@scenario("Priorities outside the range are moved into it.", control="0",
          variants={str(ask): dict(ask=ask) for ask in (0, -1, -5, -100, 3)}, open=True)
def stream_priorities(t, ask):
    _, stream = t.cudaStreamCreateWithPriority(1, ask)
    if stream is not None:
        t.note("flags", t.cudaStreamGetFlags(stream)[1])
        t.note("priority", t.cudaStreamGetPriority(stream)[1])
    t.recovered()


@scenario("Flags of streams that do not exist are refused.", control="0",
          variants={str(flags): dict(flags=flags) for flags in (0, 1, 2, 16)}, open=True)
def stream_flags(t, flags):
    t.cudaStreamCreateWithFlags(flags)
    t.cudaStreamCreateWithPriority(flags, 0)
    t.recovered()


@scenario("Work of two threads in one stream keeps the order in which it was given.", control="same",
          variants={"same": dict(thread="same"), "other": dict(thread="other")})
def two_threads_in_one_stream(t, thread):
    stream, x = t.stream(), t.device([0] * 4)
    t.fill(stream, x, 1)
    t.here_or_there(thread, lambda: t.axpy(stream, x, x, 1))
    t.axpy(stream, x, t.ones, 5)
    t.values(x, stream)


@scenario("The per-thread stream is another one in every thread.", control="same",
          variants={"same": dict(thread="same"), "other": dict(thread="other")}, each={"capturing": ("no", "yes")}, open=True)
def the_per_thread_stream_of_each_thread(t, thread, capturing):
    own, x = t.stream("perthread"), t.device([0] * 4)
    if capturing == "yes":
        t.begin(own, "Relaxed")
    t.here_or_there(thread, lambda: t.status(own))
    t.here_or_there(thread, lambda: t.fill(own, x, 3))
    t.here_or_there(thread, lambda: t.status(own))
    if thread == "other":
        t.thread(lambda: t.cudaStreamSynchronize(own))
    if capturing == "yes":
        t.graph(t.end(own))
    else:
        t.cudaStreamSynchronize(own)
    t.values(x)
    t.recovered()
