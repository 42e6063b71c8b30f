"""The pages behind graph memory, which graphs share."""
from tests.conformance.counting import GraphMemory, captured
from tests.conformance.harness import scenario

TURNS = {  # graphs as (MiB, "freed" in the graph or "kept"), then what is done with them
    "freed in the graph": ("20f 20f 20f", "launch0 launch1 launch2 launch0"),
    "kept": ("20k 20k 20k 20k", "launch0 launch1 launch2 launch3 trim free0 free1 free2 free3 trim launch0 launch1 launch2 launch3"),
    "small ones, freed": ("1f 1f 1f", "launch0 launch1 launch2"), "small ones, kept": ("1k 1k 1k", "launch0 launch1 launch2"),
    "kept, then freed": ("1k 1f", "launch0 launch1 free0 launch1 launch0"), "freed, then kept": ("1f 1k", "launch0 launch1 launch0 free1 launch1"),
    "kept, freed outside, another": ("1k 1k", "launch0 free0 launch1 launch0"),
    "kept and freed in turn": ("1k 1k", "launch0 free0 launch1 free1 launch0 free0 launch1"),
    "40 then 20": ("40f 20f 70f", "launch0 launch1 launch0 launch1 launch2"),
    "20 then 40": ("20f 40f 70f", "launch0 launch1 launch0 launch1 launch2"),
    "20 then 40, kept": ("20k 40k 70f", "launch0 launch1 launch2 free0 free1 launch2 trim"),
    "trimmed between": ("20f 20f", "launch0 trim launch1 launch0"),
    "trimmed while one is kept": ("20k 20f", "launch0 launch1 trim launch1 free0 trim launch0 trim"),
    "executable destroyed": ("20f 20f", "launch0 destroy0 launch1"),
    "executable destroyed while kept": ("20k 20k", "launch0 destroy0 launch1 free0 free1 trim"),
    "uploaded": ("20f 20f", "upload0 upload1 launch0 launch1"), "uploaded and kept": ("20k 20k", "upload0 upload1 launch0 launch1"),
    "freed, kept, freed": ("20f 20k 20f", "launch0 launch1 launch2 launch0 launch2 free1 launch1"),
    "freed by cudaFree": ("20k 20k", "launch0 cudaFree0 launch1 cudaFree1 trim"),
    "large and many small": ("100f 20k 20k 20k", "launch0 launch1 launch2 launch3 launch0"),
    "a freed page between kept ones": ("20k 20k 20k 40f", "launch0 launch1 launch2 free1 launch3 free0 free2 trim"),
}


def _turns(t, graphs, turns, count, waiting):
    stream, places, executables = t.stream(), [], []
    for one in graphs.split():
        graph, found = captured(t, stream, f"a{one[:-1]}" + (" -a" if one[-1] == "f" else ""))
        places.append(found["a"])
        executables.append(t.instantiate(graph))
    for turn in turns.split():
        if turn == "trim":
            t.cudaStreamSynchronize(stream)
            t.cudaDeviceGraphMemTrim(0)
            count(turn)
            continue
        name, which = turn[:-1], int(turn[-1])
        if name in ("launch", "upload"):
            getattr(t, f"cudaGraph{name.title()}")(executables[which], stream)
        elif name == "free":
            t.cudaFreeAsync(places[which], stream)
        elif name == "cudaFree":
            t.cudaFree(places[which])
        else:
            t.cudaGraphExecDestroy(executables[which])
        if waiting == "between":
            t.cudaStreamSynchronize(stream)
        count(turn)
    t.cudaStreamSynchronize(stream)
    count("waited")
    t.recovered(stream)


@scenario("Graphs share pages on which nothing is held; a graph keeps its pages until it must take others.", control="freed in the graph",
          variants={name: dict(graphs=graphs, turns=turns) for name, (graphs, turns) in TURNS.items()}, each={"waiting": ("between", "at the end")},
          open=True)
def graphs_share_pages(t, graphs, turns, waiting):
    _turns(t, graphs, turns, GraphMemory(t), waiting)


@scenario("Pages whose last work is in another stream and not finished are not shared, not even in the order of events.", control="same stream",
          variants={"same stream": dict(how="same"), "waited": dict(how="waited"), "held up": dict(how="busy"), "ordered by an event": dict(how="event"),
                    "uploaded while held up": dict(how="busy", call="Upload")}, each={"memory": ("freed", "kept")}, open=True)
def pages_and_other_streams(t, how, memory, call="Launch"):
    a, b, count = t.stream(), t.stream(), GraphMemory(t)
    executables, places = [], []
    for text in ("a20 -a", "a20 -a" if memory == "freed" else "a20"):
        graph, found = captured(t, a, text)
        places.append(found["a"])
        executables.append(t.instantiate(graph))
    let_go = None if how in ("same", "waited") else t.gate(a)
    t.cudaGraphLaunch(executables[0], a)
    if how == "waited":
        t.cudaStreamSynchronize(a)
    elif how == "event":
        t.follow(b, a)
    second = a if how == "same" else b
    getattr(t, f"cudaGraph{call}")(executables[1], second)
    count("second")
    if let_go:
        let_go()
    t.cudaDeviceSynchronize()
    count("waited")
    if memory == "kept" and call == "Launch":
        t.cudaFreeAsync(places[1], second)
        t.cudaDeviceSynchronize()
    t.cudaGraphLaunch(executables[0], a)
    t.cudaGraphLaunch(executables[1], a)
    t.cudaDeviceSynchronize()
    count("in turn")


@scenario("What was kept and freed outside is shared once the free is done, or in the stream of the free.", control="same stream",
          variants={"same stream": dict(free="a", launch="a"), "waited": dict(free="a", launch="b", wait=True), "held up": dict(free="a", launch="b"),
                    "held up, other stream": dict(free="b", launch="a"), "freed in a third stream": dict(free="b", launch="c"),
                    "held up before the launch": dict(free="b", launch="b", wait=False, gate=True), "ordered by an event": dict(free="a", launch="b", order=True)}, open=True)
def pages_of_a_free_outside(t, free, launch, wait=False, order=False, gate=False):
    streams, count = {"a": t.stream(), "b": t.stream(), "c": t.stream()}, GraphMemory(t)
    first, places = captured(t, streams["a"], "a20")
    second, others = captured(t, streams["a"], "a20 -a")
    one, two = t.instantiate(first), t.instantiate(second)
    t.cudaGraphLaunch(one, streams["a"])
    t.cudaDeviceSynchronize()
    let_go = None if wait or free == launch and not gate else t.gate(streams[free])
    t.cudaFreeAsync(places["a"], streams[free])
    if wait:
        t.cudaStreamSynchronize(streams[free])
    if order:
        t.follow(streams[launch], streams[free])
    t.cudaGraphLaunch(two, streams[launch])
    count("second")
    if let_go:
        let_go()
    t.cudaDeviceSynchronize()
    count("waited")


@scenario("One executable in two streams has one set of pages.", control="same stream",
          variants={"same stream": dict(other=False), "other stream": dict(other=True)}, each={"first": ("done", "held up")})
def pages_of_one_executable_in_two_streams(t, other, first):
    a, b, count = t.stream(), t.stream(), GraphMemory(t)
    executable = t.instantiate(captured(t, a, "a20 -a")[0])
    let_go = t.gate(a) if first == "held up" else None
    t.cudaGraphLaunch(executable, a)
    count("first")
    t.cudaGraphLaunch(executable, b if other else a)
    count("second")
    if let_go:
        let_go()
    t.cudaDeviceSynchronize()
    count("waited")
