"""AutoFreeOnLaunch, and executables made again while memory is held."""
from labkit import kernels
from tests.conformance.counting import GraphMemory, captured
from tests.conformance.harness import Buffer, scenario

AUTO_FREE = 1


def _kept(t, stream, size=16, value=3):
    """(graph, buffer) of a captured allocation that is filled and kept."""
    t.begin(stream)
    buffer = Buffer(int(t.cudaMallocAsync(size, stream)[1]), 4)
    t.launch(stream, kernels.fill, 1, 32, buffer.ptr, float(value), 4)
    return t.end(stream), buffer


def _instantiate(t, graph, call):
    if call == "Instantiate":
        return t.cudaGraphInstantiate(graph, AUTO_FREE)[1]
    if call == "InstantiateWithFlags":
        return t.cudaGraphInstantiateWithFlags(graph, AUTO_FREE)[1]
    params = t.raw.cudaGraphInstantiateParams()
    params.flags = AUTO_FREE
    t.keep.append(params)
    return t.cudaGraphInstantiateWithParams(graph, params)[1]


CALLS = {"call": ("Instantiate", "InstantiateWithFlags", "InstantiateWithParams")}


@scenario("AutoFreeOnLaunch frees before each launch what the last one left; the last one's memory is the program's to free.", control="once",
          variants={"once": dict(launches=1), "three times": dict(launches=3)}, each=CALLS)
def counting_auto_free(t, launches, call):
    stream, count = t.stream(), GraphMemory(t)
    graph, buffer = _kept(t, stream, 20 << 20)
    executable = _instantiate(t, graph, call)
    for number in range(launches):
        t.cudaGraphLaunch(executable, stream)
        count(f"launched {number}")
    t.cudaStreamSynchronize(stream)
    t.cudaDeviceGraphMemTrim(0)
    count("trimmed")
    t.values(buffer, stream)
    t.cudaFreeAsync(buffer.ptr, stream)
    t.cudaStreamSynchronize(stream)
    t.cudaDeviceGraphMemTrim(0)
    count("freed and trimmed")
    t.recovered(stream)


@scenario("What AutoFreeOnLaunch frees is freed once: it is there until the next launch, and the program may free it before.", control="left",
          variants={"left": dict(free=None), "freed outside": dict(free="async"), "freed by cudaFree": dict(free="sync"), "freed twice": dict(free="twice"),
                    "freed by a second graph": dict(free="graph"), "a second graph, too late": dict(free="late")},
          each={"waiting": ("between", "at the end")})
def auto_free_and_other_frees(t, free, waiting):
    stream = t.stream()
    graph, buffer = _kept(t, stream)
    executable = t.instantiate(graph, AUTO_FREE)
    t.begin(stream)
    t.cudaFreeAsync(buffer.ptr, stream)
    freeing = t.instantiate(t.end(stream))
    for _ in range(2):
        t.cudaGraphLaunch(executable, stream)
        if waiting == "between":
            t.cudaStreamSynchronize(stream)
        if free in ("async", "twice"):
            t.cudaFreeAsync(buffer.ptr, stream)
        if free == "twice":
            t.cudaFreeAsync(buffer.ptr, stream)
        elif free == "sync":
            t.cudaFree(buffer.ptr)
        elif free in ("graph", "late"):
            t.cudaGraphLaunch(freeing, stream)
        if free == "late":
            t.cudaGraphLaunch(freeing, stream)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("The memory that is left outlives the executable and the graph.", control="both kept",
          variants={"both kept": dict(gone=""), "executable destroyed": dict(gone="e"), "both destroyed": dict(gone="eg"),
                    "both destroyed, freed twice": dict(gone="eg", again=True)}, each={"free": ("async", "sync", "graph")})
def what_auto_free_leaves(t, gone, free, again=False):
    stream, count = t.stream(), GraphMemory(t)
    graph, buffer = _kept(t, stream)
    executable = t.instantiate(graph, AUTO_FREE)
    t.begin(stream)
    t.cudaFreeAsync(buffer.ptr, stream)
    freeing = t.instantiate(t.end(stream))
    for _ in range(2):
        t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    if "e" in gone:
        t.cudaGraphExecDestroy(executable)
    if "g" in gone:
        t.cudaGraphDestroy(graph)
    t.cudaDeviceGraphMemTrim(0)
    count("left")
    t.values(buffer, stream)
    if free == "graph":
        t.cudaGraphLaunch(freeing, stream)
    elif free == "sync":
        t.cudaFree(buffer.ptr)
    else:
        t.cudaFreeAsync(buffer.ptr, stream)
    if again:
        t.cudaFreeAsync(buffer.ptr, stream)
    t.cudaStreamSynchronize(stream)
    t.cudaDeviceGraphMemTrim(0)
    count("freed")
    t.recovered(stream)


@scenario("AutoFreeOnLaunch changes nothing where the graph frees all that it allocates.", control="all freed",
          variants={"all freed": dict(text="a20 b20 -a -b"), "one kept": dict(text="a20 b20 -a"), "freed before the next": dict(text="a20 -a b20"),
                    "both kept": dict(text="a20 b20")})
def auto_free_of_some(t, text):
    stream, count = t.stream(), GraphMemory(t)
    graph, places = captured(t, stream, text)
    executable = t.instantiate(graph, AUTO_FREE)
    for number in range(3):
        t.cudaGraphLaunch(executable, stream)
        count(f"launched {number}")
    t.cudaStreamSynchronize(stream)
    for name in places:
        if f"-{name}" not in text.split():
            t.cudaFreeAsync(places[name], stream)
    t.cudaStreamSynchronize(stream)
    t.cudaDeviceGraphMemTrim(0)
    count("freed and trimmed")
    t.recovered(stream)


@scenario("AutoFreeOnLaunch works across streams: a launch waits for the one before.", control="same stream",
          variants={"same stream": dict(other=False), "other stream": dict(other=True)}, each={"first": ("done", "held up")})
def auto_free_in_two_streams(t, other, first):
    a, b = t.stream(), t.stream()
    graph, buffer = _kept(t, a)
    executable = t.instantiate(graph, AUTO_FREE)
    let_go = t.gate(a) if first == "held up" else None
    t.cudaGraphLaunch(executable, a)
    t.cudaGraphLaunch(executable, b if other else a)
    if let_go:
        let_go()
    t.cudaDeviceSynchronize()
    t.values(buffer, a)
    t.cudaFreeAsync(buffer.ptr, b)
    t.recovered(b)


@scenario("An executable is made again when the memory is freed that the last one left; while it is held, that may crash or lose it.", control="freed before",
          variants={"freed before": dict(free=True, flags=0), "held": dict(free=False, flags=0), "held, AutoFreeOnLaunch": dict(free=False, flags=AUTO_FREE)},
          each={"first": ("plain", "AutoFreeOnLaunch")}, undefined=("held", "held, AutoFreeOnLaunch"))
def making_an_executable_while_memory_is_held(t, free, flags, first):
    stream, count = t.stream(), GraphMemory(t)
    graph, buffer = _kept(t, stream)
    executable = t.instantiate(graph, AUTO_FREE if first == "AutoFreeOnLaunch" else 0)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    t.cudaGraphExecDestroy(executable)
    if free:
        t.cudaFreeAsync(buffer.ptr, stream)
        t.cudaStreamSynchronize(stream)
    again = t.instantiate(graph, flags)
    t.cudaGraphUpload(again, stream)
    t.cudaGraphLaunch(again, stream)
    t.cudaStreamSynchronize(stream)
    count("launched again")
    t.values(buffer, stream)
    t.cudaFreeAsync(buffer.ptr, stream)
    t.cudaGraphLaunch(again, stream)
    t.values(buffer, stream)
    t.recovered(stream)


@scenario("An executable that is destroyed leaves its graph free for the next, also while a launch of it is queued.", control="done",
          variants={"done": dict(held_up=False), "held up": dict(held_up=True)}, each={"memory": ("freed", "kept")}, undefined=("done/kept", "held up/kept"))
def making_an_executable_while_one_runs(t, held_up, memory):
    stream, count = t.stream(), GraphMemory(t)
    graph, places = captured(t, stream, "a4 -a" if memory == "freed" else "a4", 1 << 10)
    executable = t.instantiate(graph)
    let_go = t.gate(stream) if held_up else None
    t.cudaGraphLaunch(executable, stream)
    t.cudaGraphExecDestroy(executable)
    again = t.instantiate(graph)
    if memory == "kept":
        t.cudaFreeAsync(places["a"], stream)
    t.cudaGraphLaunch(again, stream)
    count("launched again")
    if let_go:
        let_go()
    t.cudaStreamSynchronize(stream)
    count("waited")
    t.recovered(stream)
