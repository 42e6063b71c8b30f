"""Beginning a capture, ending it, and what is true in between."""
from labkit import kernels
from tests.conformance.harness import MODES, scenario

ALL = {"mode": MODES}


@scenario("Work given to a capturing stream does not run; it runs at each launch of the graph.", control="eager",
          variants={"eager": dict(capture=False), "captured": dict(capture=True)}, each=ALL)
def capture_records_and_does_not_run(t, capture, mode):
    stream, x = t.stream(), t.device([1, 2, 3, 4])
    if capture:
        t.begin(stream, mode)
    t.axpy(stream, x, t.ones, 2)
    if not capture:
        t.values(x, stream)
        return
    graph = t.end(stream)
    t.graph(graph)
    t.values(x, stream)
    executable = t.instantiate(graph)
    t.values(x, stream)
    for _ in range(2):
        t.cudaGraphLaunch(executable, stream)
        t.values(x, stream)


@scenario("Only the legacy stream refuses to capture.", control="nonblocking",
          variants={kind: dict(kind=kind) for kind in
                    ("nonblocking", "blocking", "perthread", "legacy", "null", "None")}, each=ALL)
def begin_on_the_legacy_stream_is_refused(t, kind, mode):
    stream, x = t.stream(kind), t.device([0] * 4)
    began = t.begin(stream, mode)
    if began == 0:
        t.status(stream)
        t.fill(stream, x, 3)
    graph = t.end(stream)
    if graph is not None and int(graph):
        t.graph(graph)
        t.replay(graph, stream)
        t.values(x, stream)
    t.recovered()


@scenario("A capture that was not begun cannot be ended.", control="begun",
          variants={"begun": dict(begin=1, end=1), "not begun": dict(begin=0, end=1), "ended twice": dict(begin=1, end=2)})
def end_without_begin_is_an_illegal_state(t, begin, end):
    stream = t.stream()
    if begin:
        t.begin(stream)
    for _ in range(end):
        t.end(stream)
        t.status(stream)
    t.recovered(stream)


@scenario("A stream that is capturing cannot begin again, and the capture that is open goes on or not.", control="once",
          variants={"once": dict(again=None), **{f"again {mode}": dict(again=mode) for mode in MODES}}, each=ALL, open=True)
def begin_on_a_capturing_stream(t, again, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    if again:
        t.begin(stream, again)
        t.status(stream)
    t.axpy(stream, x, t.ones, 1)
    graph = t.end(stream)
    if graph is not None:
        t.graph(graph)
    t.recovered(stream)


@scenario("Two streams can capture side by side; each gets its own graph.", control="one",
          variants={"one": dict(second=None, order="ab"), "ended in order": dict(second="Global", order="ab"),
                    "ended in reverse": dict(second="Global", order="ba"), "other mode": dict(second="Relaxed", order="ab")},
          each=ALL)
def two_captures_side_by_side(t, second, order, mode):
    a, b, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([0] * 4)
    t.begin(a, mode)
    t.fill(a, x, 1)
    if second:
        t.begin(b, second)
        t.fill(b, y, 2)
        t.axpy(b, y, t.ones, 1)
        t.note("same capture", t.raw.cudaStreamGetCaptureInfo(a)[2] == t.raw.cudaStreamGetCaptureInfo(b)[2])
    t.axpy(a, x, t.ones, 1)
    for name in order:
        if name == "b" and not second:
            continue
        stream, buffer = {"a": (a, x), "b": (b, y)}[name]
        graph = t.end(stream)
        t.graph(graph)
    t.status(a), t.status(b)
    t.recovered(a), t.recovered(b)


@scenario("A capture without work gives a graph without nodes, which instantiates and launches.", control="one kernel",
          variants={"one kernel": dict(work=1), "no work": dict(work=0)}, each=ALL)
def an_empty_capture_is_a_graph(t, work, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    t.info(stream)
    if work:
        t.fill(stream, x, 1)
    t.info(stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)


@scenario("A memset or copy of zero bytes succeeds and adds no node.", control="some bytes",
          variants={"some bytes": dict(count=16), "zero bytes": dict(count=0)},
          each={"call": ("memset", "copy", "host copy")})
def zero_bytes_add_no_node(t, count, call):
    stream, x, y, host = t.stream(), t.device([1] * 4), t.device([2] * 4), t.pinned([3] * 4)
    t.begin(stream)
    if call == "memset":
        t.cudaMemsetAsync(x.ptr, 0, count, stream)
    elif call == "copy":
        t.cudaMemcpyAsync(x.ptr, y.ptr, count, t.copies("DeviceToDevice"), stream)
    else:
        t.cudaMemcpyAsync(x.ptr, host.ptr, count, t.copies("HostToDevice"), stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)


BAD = {"good": (1, 32, 0), "block of 4096": (1, 4096, 0), "grid of 0": (0, 32, 0), "block of 0": (1, 0, 0),
       "1 MiB shared": (1, 32, 1 << 20), "grid y of 70000": ((1, 70000), 32, 0), "block z of 128": (1, (1, 1, 128), 0)}


@scenario("A launch that no GPU could run is refused, and invalidates the capture.", control="good",
          variants={name: dict(shape=shape) for name, shape in BAD.items()}, each=ALL)
def an_impossible_launch_invalidates_the_capture(t, shape, mode):
    stream, x = t.stream(), t.device([0] * 4)
    grid, block, shared = shape
    t.begin(stream, mode)
    t.launch(stream, kernels.fill, grid, block, x.ptr, 1.0, 4, shared=shared)
    t.status(stream)
    t.axpy(stream, x, t.ones, 1)
    t.end(stream)
    t.status(stream)
    t.recovered(stream)


def _later(t, what, stream, event, x, host):
    if what == "launch":
        t.fill(stream, x, 1)
    elif what == "memset":
        t.cudaMemsetAsync(x.ptr, 0, 16, stream)
    elif what == "copy":
        t.cudaMemcpyAsync(x.ptr, host.ptr, 16, t.copies("HostToDevice"), stream)
    elif what == "record":
        t.cudaEventRecord(event, stream)
    elif what == "wait":
        t.cudaStreamWaitEvent(stream, event, 0)
    elif what == "allocate":
        t.cudaMallocAsync(64, stream)
    elif what == "host function":
        t.cudaLaunchHostFunc(stream, t.raw.cudaHostFn_t(t.callback(lambda: None)), 0)
    elif what == "info":
        t.cudaStreamGetCaptureInfo(stream)
    elif what == "dependencies":
        t.update_dependencies(stream, [], 1)
    elif what == "begin":
        t.begin(stream)


LATER = ("launch", "memset", "copy", "record", "wait", "allocate", "host function", "info", "dependencies", "begin")


@scenario("After the first refusal, work on the invalidated stream answers 901, and so does the end.", control="control",
          variants={"control": dict(broken=False), "broken": dict(broken=True)}, each={"what": LATER[:-1]})
def later_work_on_an_invalidated_stream_says_so(t, broken, what):
    stream, event, x, host = t.stream(), t.event(), t.device([0] * 4), t.pinned([1] * 4)
    t.begin(stream)
    t.fill(stream, x, 1)
    t.cudaEventRecord(event, stream)
    if broken:
        t.cudaDeviceSynchronize()
    _later(t, what, stream, event, x, host)
    t.status(stream)
    t.end(stream)
    t.status(stream)
    t.recovered(stream)


@scenario("A second begin on an invalidated stream is refused too.", control="control",
          variants={"control": dict(broken=False), "broken": dict(broken=True)}, open=True)
def begin_on_an_invalidated_stream(t, broken):
    stream = t.stream()
    t.begin(stream)
    if broken:
        t.cudaDeviceSynchronize()
        t.begin(stream)
    t.status(stream)
    t.end(stream)
    t.status(stream)
    t.recovered(stream)


@scenario("What a refused call in another place says does not change because a capture is invalidated.", control="control",
          variants={"control": dict(broken=False), "broken": dict(broken=True)}, open=True)
def another_stream_works_beside_an_invalidated_capture(t, broken):
    a, b, x = t.stream(), t.stream(), t.device([0] * 4)
    t.begin(a)
    if broken:
        t.cudaDeviceSynchronize()
    t.fill(b, x, 1)
    if broken:
        t.cudaStreamSynchronize(b)
        t.cudaStreamQuery(b)
        p = t.cudaMalloc(64)[1]
        t.note("allocated", p is not None)
    t.end(a)
    t.values(x, b)
    t.recovered(a)


@scenario("What happens to a stream that is destroyed while it captures.", control="after the end",
          variants={"after the end": dict(when="after"), "empty": dict(when="empty"), "with work": dict(when="work")}, open=True, isolated=True, each=ALL)
def destroying_a_capturing_stream(t, when, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    if when != "empty":
        t.fill(stream, x, 1)
    if when == "after":
        graph = t.end(stream)
        t.cudaStreamDestroy(stream)
        t.replay(graph, t.stream())
        t.values(x)
        return
    code, = t.cudaStreamDestroy(stream)
    if code != 0:
        t.status(stream)
        t.end(stream)
        t.cudaStreamDestroy(stream)
    t.cudaMalloc(64)
    t.recovered()


@scenario("Asking for the status never disturbs a capture, but the legacy stream cannot be asked beside a blocking one.",
          control="itself", variants={"itself": dict(ask="self"), "another": dict(ask="nonblocking"),
                                      "another blocking": dict(ask="blocking"), "legacy": dict(ask="legacy"),
                                      "null": dict(ask="null"), "perthread": dict(ask="perthread")},
          each={"kind": ("nonblocking", "blocking")})
def asking_for_the_status(t, ask, kind):
    stream = t.stream(kind)
    asked = stream if ask == "self" else t.stream(ask)
    t.status(asked)
    t.begin(stream)
    t.status(asked)
    t.cudaStreamGetCaptureInfo(asked)
    t.status(stream)
    t.end(stream)
    t.status(asked)
    t.recovered(stream)


@scenario("The capture info holds the growing graph and the nodes that the next node will follow.", control="chain",
          variants={"chain": dict(fork=False), "fork": dict(fork=True)}, each=ALL)
def capture_info_shows_the_growing_graph(t, fork, mode):
    a, b, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([0] * 4)
    t.info(a)
    t.begin(a, mode)
    t.info(a)
    t.fill(a, x, 1)
    t.info(a)
    if fork:
        event = t.follow(b, a)
        t.info(b)
        t.fill(b, y, 2)
        t.info(b)
        t.axpy(a, x, t.ones, 1)
        t.info(a)
        info, other = t.raw.cudaStreamGetCaptureInfo(a), t.raw.cudaStreamGetCaptureInfo(b)
        t.note("same id", info[2] == other[2])
        t.note("same graph", int(info[3]) == int(other[3]))
        t.follow(a, b, event)
        t.info(a)
    t.axpy(a, x, y, 1)
    t.info(a)
    graph = t.end(a)
    t.info(a)
    t.graph(graph)
    t.replay(graph, a)
    t.values(x, a)


@scenario("The graph that the capture info shows is the graph that the end returns.", control="one capture",
          variants={"one capture": dict(captures=1), "two captures": dict(captures=2)})
def each_capture_has_its_own_id_and_graph(t, captures):
    stream, x, seen = t.stream(), t.device([0] * 4), []
    for _ in range(captures):
        t.begin(stream)
        t.fill(stream, x, 1)
        _, _, number, graph, *_ = t.raw.cudaStreamGetCaptureInfo(stream)
        ended = t.end(stream)
        t.note("same graph", int(ended) == int(graph))
        seen.append(number)
    t.note("ids", len(set(seen)))
    t.note("id is zero", [number == 0 for number in seen])


@scenario("Dependencies of a capture can be set and added to by hand.", control="untouched",
          variants={"untouched": dict(how=None), "set to nothing": dict(how="nothing"), "set to the first": dict(how="first"),
                    "first added": dict(how="add"), "nothing added": dict(how="add nothing")}, each=ALL)
def update_capture_dependencies(t, how, mode):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 1)
    first = list(t.raw.cudaStreamGetCaptureInfo(stream)[4])
    t.axpy(stream, x, t.ones, 1)
    if how == "nothing":
        t.update_dependencies(stream, [], 1)
    elif how == "first":
        t.update_dependencies(stream, first, 1)
    elif how == "add":
        t.update_dependencies(stream, first, 0)
    elif how == "add nothing":
        t.update_dependencies(stream, [], 0)
    t.info(stream)
    t.fill(stream, y, 5)
    t.info(stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream), t.values(y, stream)


@scenario("Nodes set aside with an empty dependency set need no join.", control="joined",
          variants={"joined": dict(join=True), "left open": dict(join=False)}, open=True)
def setting_dependencies_aside_needs_no_join(t, join):
    a, b, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([0] * 4)
    t.begin(a)
    t.fill(a, x, 1)
    t.follow(b, a)
    t.fill(b, y, 2)
    if join:
        t.follow(a, b)
    else:
        t.update_dependencies(b, [], 1)
    t.info(b)
    graph = t.end(a)
    if graph is not None:
        t.graph(graph)
    t.recovered(a), t.recovered(b)


@scenario("Dependencies must belong to the capture's graph, the stream must be capturing, the flag must exist.", control="good",
          variants={"good": dict(what="good"), "not capturing": dict(what="idle"), "node of another graph": dict(what="foreign"),
                    "flag 7": dict(what="flag"), "twice the same": dict(what="twice")}, open=True)
def wrong_capture_dependencies(t, what):
    stream, x = t.stream(), t.device([0] * 4)
    other = t.raw.cudaGraphCreate(0)[1]
    t.made["cudaGraphDestroy", int(other)] = other
    foreign = t.raw.cudaGraphAddEmptyNode(other, [], 0)[1]
    if what == "idle":
        t.update_dependencies(stream, [], 1)
        t.recovered(stream)
        return
    t.begin(stream)
    t.fill(stream, x, 1)
    own = list(t.raw.cudaStreamGetCaptureInfo(stream)[4])
    nodes = {"foreign": [foreign], "twice": own * 2}.get(what, own)
    t.update_dependencies(stream, nodes, 7 if what == "flag" else 1)
    t.status(stream)
    t.axpy(stream, x, t.ones, 1)
    graph = t.end(stream)
    if graph is not None:
        t.graph(graph)
    t.recovered(stream)


@scenario("A capture can go into a graph that is there, after nodes that it holds.", control="empty graph",
          variants={"empty graph": dict(nodes=0, after=0), "new roots": dict(nodes=1, after=0),
                    "after one": dict(nodes=2, after=1), "after two": dict(nodes=2, after=2)}, each=ALL)
def begin_capture_to_graph(t, nodes, after, mode):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    there = [t.cudaGraphAddEmptyNode(graph, [], 0)[1] for _ in range(nodes)]
    t.begin_to_graph(stream, graph, there[:after], mode)
    t.info(stream)
    t.fill(stream, x, 1)
    t.axpy(stream, x, t.ones, 2)
    ended = t.end(stream)
    t.note("same graph", int(ended) == int(graph))
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
    t.begin_to_graph(stream, graph, [], mode)
    t.fill(stream, x, 1)
    t.end(stream)
    t.graph(graph)


@scenario("A capture cannot go into no graph, after a node of another graph, or on the legacy stream.", control="good",
          variants={"good": dict(what="good"), "foreign node": dict(what="foreign"), "no graph": dict(what="null"),
                    "legacy stream": dict(what="legacy"), "capturing stream": dict(what="busy")}, open=True)
def wrong_begin_capture_to_graph(t, what):
    stream, x = t.stream("legacy" if what == "legacy" else "nonblocking"), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    _, other = t.cudaGraphCreate(0)
    _, foreign = t.cudaGraphAddEmptyNode(other, [], 0)
    if what == "busy":
        t.begin(stream)
    t.begin_to_graph(stream, None if what == "null" else graph, [foreign] if what == "foreign" else [])
    t.status(stream)
    t.end(stream)
    t.recovered()


@scenario("A capture that is broken takes the given graph with it.", control="whole",
          variants={"whole": dict(broken=False), "broken": dict(broken=True)}, open=True, isolated=True)
def a_broken_capture_to_graph(t, broken):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    t.cudaGraphAddEmptyNode(graph, [], 0)
    t.begin_to_graph(stream, graph)
    t.fill(stream, x, 1)
    if broken:
        t.cudaDeviceSynchronize()
    t.end(stream)
    t.cudaGraphGetNodes(graph)
    t.cudaGraphAddEmptyNode(graph, [], 0)
    t.recovered(stream)


@scenario("Only the thread that began it may end a capture, except in Relaxed mode.", control="same",
          variants={"same": dict(thread="same"), "other": dict(thread="other")}, each=ALL)
def end_from_another_thread(t, thread, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream, mode)
    t.fill(stream, x, 3)
    graph = t.here_or_there(thread, lambda: t.end(stream))
    t.status(stream)
    if graph is not None:
        t.graph(graph)
        t.replay(graph, stream)
        t.values(x, stream)
    t.end(stream) if graph is None else None
    t.recovered(stream)


@scenario("A capture that is lost says so at its end, in whatever thread that comes.", control="control",
          variants={"control": dict(lost=False, thread="same"), "same": dict(lost=True, thread="same"),
                    "other": dict(lost=True, thread="other")}, each=ALL)
def ending_a_lost_capture(t, lost, thread, mode):
    stream = t.stream()
    t.begin(stream, mode)
    if lost:
        t.cudaDeviceSynchronize()
    t.here_or_there(thread, lambda: t.end(stream))
    t.status(stream)
    t.recovered(stream)


@scenario("What no capture allows keeps its own code when the capture is lost already.", control="free",
          variants={"free": dict(begun=False, lost=False), "whole": dict(begun=True, lost=False), "lost": dict(begun=True, lost=True)},
          each={"what": ("launch", "upload", "flags")})
def what_no_capture_allows(t, begun, lost, what):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream)
    t.fill(stream, x, 3)
    executable = t.instantiate(t.end(stream))
    if begun:
        t.begin(stream)
    if lost:
        t.cudaDeviceSynchronize()
    if what == "launch":
        t.cudaGraphLaunch(executable, stream)
    elif what == "upload":
        t.cudaGraphUpload(executable, stream)
    else:
        t.cudaStreamGetFlags(stream)
    t.status(stream)
    if begun:
        t.end(stream)
    t.recovered(stream)


@scenario("A graph cannot be launched into a capture.", control="after the end",
          variants={"after the end": dict(inside=False), "inside": dict(inside=True)}, each=ALL)
def graph_launch_inside_a_capture(t, inside, mode):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream)
    t.fill(stream, x, 3)
    executable = t.instantiate(t.end(stream))
    t.begin(stream, mode)
    if inside:
        t.cudaGraphLaunch(executable, stream)
        t.status(stream)
    t.end(stream)
    t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)
    t.recovered(stream)


@scenario("A graph launched into another stream beside a capture runs at once.", control="no capture",
          variants={"no capture": dict(mode=None), **{mode: dict(mode=mode) for mode in MODES}})
def graph_launch_beside_a_capture(t, mode):
    a, b, x = t.stream(), t.stream(), t.device([0] * 4)
    t.begin(a)
    t.axpy(a, x, t.ones, 1)
    executable = t.instantiate(t.end(a))
    if mode:
        t.begin(b, mode)
    t.cudaGraphLaunch(executable, a)
    if mode:
        t.status(b)
        t.graph(t.end(b))
    t.values(x, a)


@scenario("A mode that does not exist is refused.", control="0",
          variants={"0": dict(mode=0), "2": dict(mode=2), "3": dict(mode=3), "-1": dict(mode=-1)}, open=True)
def begin_with_a_mode_that_does_not_exist(t, mode):
    stream = t.stream()
    t.attempt("cudaStreamBeginCapture", stream, mode)
    t.status(stream)
    t.end(stream)
    t.recovered(stream)


@scenario("A stream can capture again and again.", control="once",
          variants={"once": dict(times=1), "three times": dict(times=3)}, each={"kind": ("nonblocking", "blocking", "perthread")})
def a_stream_captures_again(t, times, kind):
    stream, x = t.stream(kind), t.device([0] * 4)
    for step in range(times):
        t.begin(stream)
        for _ in range(step + 1):
            t.axpy(stream, x, t.ones, 1)
        graph = t.end(stream)
        t.graph(graph)
        t.replay(graph, stream)
        t.values(x, stream)


@scenario("Nodes come in the order in which they were captured.", control="two kinds",
          variants={"two kinds": dict(many=2), "five kinds": dict(many=5)}, open=True)
def nodes_are_listed_in_the_order_of_capture(t, many):
    from labkit import graph as graphs
    stream, x, host = t.stream(), t.device([0] * 4), t.pinned([1] * 4)
    t.begin(stream)
    t.fill(stream, x, 1)
    t.cudaMemsetAsync(x.ptr, 0, 16, stream)
    if many == 5:
        t.cudaMemcpyAsync(x.ptr, host.ptr, 16, t.copies("HostToDevice"), stream)
        t.axpy(stream, x, t.ones, 1)
        t.cudaMemsetAsync(x.ptr, 0, 8, stream)
    graph = t.end(stream)
    t.note("kinds", graphs.kinds(graph, cudart=t.raw))
    t.note("edges", [list(edge) for edge in graphs.edges(graph, cudart=t.raw)])
