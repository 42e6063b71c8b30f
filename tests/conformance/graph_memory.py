"""Graph memory counted: when it is taken, when it comes back, its high marks."""
from tests.conformance.building import allocating, run
from tests.conformance.counting import MIB, PAGE, GraphMemory, captured, graph_attribute, use
from tests.conformance.harness import scenario

KEPT = {"memory": ("freed in the graph", "kept")}
TEXTS = {"freed in the graph": "a4 -a", "kept": "a4"}


def _made(t, stream, memory, unit=1 << 10):
    """(executable, graph, address) of a graph with one allocation."""
    graph, places = captured(t, stream, TEXTS[memory], unit)
    return t.instantiate(graph), graph, places["a"]


@scenario("Graph memory is taken by the first upload or launch, at the call, and comes back with a trim.", control="launched",
          variants={"launched": dict(calls=("Launch",)), "uploaded": dict(calls=("Upload",)), "uploaded and launched": dict(calls=("Upload", "Launch")),
                    "launched and uploaded": dict(calls=("Launch", "Upload")), "neither": dict(calls=())}, each={**KEPT, "work": ("ready", "held up")})
def graph_memory_comes_with_the_first_launch(t, calls, memory, work):
    stream, count = t.stream(), GraphMemory(t)
    graph, places = captured(t, stream, TEXTS[memory], 1 << 10)
    count("captured")
    executable = t.instantiate(graph)
    count("instantiated")
    let_go = t.gate(stream) if work == "held up" else None
    for call in calls:
        getattr(t, f"cudaGraph{call}")(executable, stream)
        count(call)
    if let_go:
        let_go()
    t.cudaStreamSynchronize(stream)
    count("waited")
    if memory == "kept" and "Launch" in calls:
        t.cudaFreeAsync(places["a"], stream)
        count("freed")
        t.cudaStreamSynchronize(stream)
    t.cudaGraphExecDestroy(executable)
    count("executable destroyed")
    t.cudaGraphDestroy(graph)
    count("graph destroyed")
    t.cudaDeviceGraphMemTrim(0)
    count("trimmed")
    t.recovered(stream)


@scenario("An executable that another follows from the same graph takes no more memory.", control="one",
          variants={"one": dict(executables=1), "one after the other": dict(executables=3)}, each={"memory": ("freed in the graph",)})
def graph_memory_of_the_next_executable(t, executables, memory):
    stream, count = t.stream(), GraphMemory(t)
    executable, graph, _ = _made(t, stream, memory)
    for number in range(executables):
        t.cudaGraphLaunch(executable, stream)
        t.cudaStreamSynchronize(stream)
        count(f"launched {number}")
        t.cudaGraphExecDestroy(executable)
        executable = t.instantiate(graph)
        count(f"made again {number}")
    t.cudaDeviceGraphMemTrim(0)
    count("trimmed")


@scenario("A trim gives back what no allocation holds and no unfinished launch works on; the executable takes it again.", control="idle",
          variants={"idle": dict(when="idle"), "nothing there": dict(when="before"), "twice": dict(when="twice"), "held up": dict(when="held up"),
                    "uploaded only": dict(when="uploaded"), "executable destroyed while held up": dict(when="destroyed")}, each=KEPT)
def trimming_graph_memory(t, when, memory):
    stream, count = t.stream(), GraphMemory(t)
    executable, _, ptr = _made(t, stream, memory)
    if when == "before":
        t.cudaDeviceGraphMemTrim(0)
        count("trimmed before")
    let_go = t.gate(stream) if when in ("held up", "destroyed") else None
    (t.cudaGraphUpload if when == "uploaded" else t.cudaGraphLaunch)(executable, stream)
    if when == "destroyed":
        t.cudaGraphExecDestroy(executable)
    if let_go:
        t.cudaDeviceGraphMemTrim(0)
        count("trimmed while held up")
        let_go()
    t.cudaStreamSynchronize(stream)
    for number in range(2 if when == "twice" else 1):
        t.cudaDeviceGraphMemTrim(0)
        count(f"trimmed {number}")
    if when == "destroyed":
        return
    if memory == "kept" and when != "uploaded":
        t.cudaFreeAsync(ptr, stream)
        count("freed")
        t.cudaStreamSynchronize(stream)
        t.cudaDeviceGraphMemTrim(0)
        count("trimmed again")
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    count("launched again")


@scenario("A free outside of graphs counts for a trim when it is done.", control="waited",
          variants={"waited": dict(wait=True), "held up": dict(wait=False)}, each={"call": ("same stream", "other stream")}, open=True)
def trimming_after_a_free(t, wait, call):
    stream, count = t.stream(), GraphMemory(t)
    other = t.stream() if call == "other stream" else stream
    executable, _, ptr = _made(t, stream, "kept")
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    let_go = None if wait else t.gate(other)
    t.cudaFreeAsync(ptr, other)
    count("freed")
    if wait:
        t.cudaStreamSynchronize(other)
    t.cudaDeviceGraphMemTrim(0)
    count("trimmed")
    if let_go:
        let_go()
    t.cudaDeviceSynchronize()
    count("waited")
    t.cudaDeviceGraphMemTrim(0)
    count("trimmed again")


@scenario("The memory that is held keeps its values through a trim and the end of its graph.", control="no trim",
          variants={"no trim": dict(trims=0), "trimmed": dict(trims=1)}, each={"gone": ("nothing", "executable", "both")})
def held_memory_through_a_trim(t, trims, gone):
    stream, x, count = t.stream(), t.device([0] * 4), GraphMemory(t)
    graph = allocating(t, x, 3, free=False)
    ptr = int(t.cudaGraphMemAllocNodeGetParams(next(iter(t.cudaGraphGetRootNodes(graph, 1)[1])))[1].dptr)
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    if gone != "nothing":
        t.cudaGraphExecDestroy(executable)
    if gone == "both":
        t.cudaGraphDestroy(graph)
    for _ in range(trims):
        t.cudaDeviceGraphMemTrim(0)
    count("held")
    t.write(x, [0] * 4)
    t.cudaMemcpyAsync(x.ptr, ptr, 16, t.copies("DeviceToDevice"), stream)
    t.values(x, stream)
    t.cudaFreeAsync(ptr, stream)
    t.cudaStreamSynchronize(stream)
    t.cudaDeviceGraphMemTrim(0)
    count("freed and trimmed")


@scenario("A high mark is set to 0 only, which makes it the current value; current values cannot be set.", control="UsedMemHigh to 0",
          variants={f"{name} to {value}": dict(name=name, value=value)
                    for name in ("UsedMemHigh", "ReservedMemHigh", "UsedMemCurrent", "ReservedMemCurrent") for value in (0, 7, PAGE)},
          each={"now": ("held", "trimmed")})
def setting_a_counter_of_graph_memory(t, name, value, now):
    stream, count = t.stream(), GraphMemory(t)
    executable, _, ptr = _made(t, stream, "kept", PAGE)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    if now == "trimmed":
        t.cudaFreeAsync(ptr, stream)
        t.cudaStreamSynchronize(stream)
        t.cudaDeviceGraphMemTrim(0)
    count("before")
    t.cudaDeviceSetGraphMemAttribute(0, graph_attribute(t, name), t.u64(value))
    count("after")
    t.recovered(stream)


@scenario("A graph attribute is a 64-bit value of its own type; a number is not taken.", control="u64",
          variants={"u64": dict(make="u64"), "int": dict(make=int), "None": dict(make=None)}, open=True)
def the_type_of_a_graph_attribute(t, make):
    value = t.u64(0) if make == "u64" else make and make(0)
    t.attempt("cudaDeviceSetGraphMemAttribute", 0, graph_attribute(t, "UsedMemHigh"), value)
    _, found = t.cudaDeviceGetGraphMemAttribute(0, graph_attribute(t, "UsedMemHigh"))
    t.note("equal to another of its value", found == t.u64(int(found)))
    t.note("text", [type(found).__name__, repr(t.u64(5))])
    t.recovered()


@scenario("Counters and trims are the device's: any thread reads and makes them.", control="same thread",
          variants={"same thread": dict(thread="same"), "other thread": dict(thread="other")})
def graph_memory_from_another_thread(t, thread):
    stream, count = t.stream(), GraphMemory(t)
    executable, _, _ = _made(t, stream, "freed in the graph")
    t.here_or_there(thread, lambda: t.cudaGraphLaunch(executable, stream))
    t.here_or_there(thread, lambda: t.cudaStreamSynchronize(stream))
    t.here_or_there(thread, lambda: count("launched"))
    t.here_or_there(thread, lambda: t.cudaDeviceGraphMemTrim(0))
    count("trimmed")


def _filling(t, stream, x, value, size):
    """A captured graph: allocate so many bytes, write the first four floats, copy them to x, free."""
    t.begin(stream)
    ptr = int(t.cudaMallocAsync(size, stream)[1])
    use(t, stream, ptr, value)
    t.cudaMemcpyAsync(x.ptr, ptr, 16, t.copies("DeviceToDevice"), stream)
    t.cudaFreeAsync(ptr, stream)
    return t.end(stream)


@scenario("A whole update brings the new graph's memory; what the old one had stays reserved.", control="as large",
          variants={"as large": dict(size=20 * MIB), "larger": dict(size=40 * MIB), "smaller": dict(size=1 << 10)}, each={"launched": ("yes", "no")},
          open=True)
def graph_memory_after_a_whole_update(t, size, launched):
    stream, x, count = t.stream(), t.device([0] * 4), GraphMemory(t)
    executable = t.instantiate(_filling(t, stream, x, 3, 20 * MIB))
    if launched == "yes":
        run(t, executable, stream, x)
        count("launched")
    newer = _filling(t, stream, x, 5, size)
    t.exec_update(executable, newer)
    count("updated")
    run(t, executable, stream, x)
    count("launched again")
    t.cudaGraphExecDestroy(executable)
    t.cudaDeviceGraphMemTrim(0)
    count("trimmed")
    t.recovered(stream)


@scenario("Work after a launch may use what it left allocated; before the launch it may not.", control="launched",
          variants={"launched": dict(call="Launch"), "uploaded": dict(call="Upload")}, each={"stream": ("same", "other")})
def using_graph_memory_that_is_only_uploaded(t, call, stream):
    a = t.stream()
    b = a if stream == "same" else t.stream()
    executable, _, ptr = _made(t, a, "kept")
    use(t, a, t.spare.ptr)
    getattr(t, f"cudaGraph{call}")(executable, a)
    t.cudaStreamSynchronize(a)
    t.cudaMemsetAsync(ptr, 0, 16, b)
    t.cudaMemcpyAsync(t.spare.ptr, ptr, 16, t.copies("DeviceToDevice"), b)
    t.cudaStreamSynchronize(b)
    t.recovered(a)
