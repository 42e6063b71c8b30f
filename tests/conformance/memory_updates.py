"""Whole updates of executables whose graph allocates memory."""
from tests.conformance.building import allocating, chain, fill, in_order, plus, run
from tests.conformance.harness import Buffer, scenario


@scenario("A graph that allocates is updated from one that allocates as often; sizes may differ.", control="the same",
          variants={"the same": dict(value=5), "larger": dict(value=5, n=1024), "smaller": dict(value=5, n=1),
                    "another pair": dict(value=5, extra=True),
                    "not freed": dict(value=5, free=False), "no allocation": dict(value=None)}, each={"launched": ("yes", "no")}, open=True)
def a_whole_update_of_an_allocating_graph(t, launched, value, **form):
    stream, x = t.stream(), t.device([0] * 4)
    executable = t.instantiate(allocating(t, x, 3, n=4))
    if launched == "yes":
        run(t, executable, stream, x)
    newer = allocating(t, x, value, **form) if value else chain(t, [fill(t, x, 7), plus(t, x, 1)])[0]
    t.exec_update(executable, newer)
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("After an update with graph memory it is the new graph that has an executable, and the first one that may be instantiated.",
          control="neither",
          variants={"neither": dict(which=None), "first graph": dict(which="first"), "new graph": dict(which="new"),
                    "new graph, executable destroyed": dict(which="new", destroy=True),
                    "first graph, executable destroyed": dict(which="first", destroy=True)}, open=True)
def instantiating_after_an_update_with_memory(t, which, destroy=False):
    stream, x = t.stream(), t.device([0] * 4)
    first = allocating(t, x, 3)
    executable = t.instantiate(first)
    newer = allocating(t, x, 5)
    t.exec_update(executable, newer)
    run(t, executable, stream, x)
    if destroy:
        t.cudaGraphExecDestroy(executable)
    if which:
        again = t.instantiate(first if which == "first" else newer)
        if again is not None:
            run(t, again, stream, x)
    t.recovered(stream)


@scenario("A graph that allocates and has an executable of its own is no source of an update.", control="no memory",
          variants={"no memory": dict(memory=False), "memory": dict(memory=True)}, open=True)
def updating_from_a_graph_that_is_instantiated(t, memory):
    stream, x = t.stream(), t.device([0] * 4)

    def make(value):
        return allocating(t, x, value) if memory else chain(t, [fill(t, x, value)])[0]
    executable, newer = t.instantiate(make(3)), make(5)
    other = t.instantiate(newer)
    t.exec_update(executable, newer)
    run(t, executable, stream, x)
    run(t, other, stream, x)
    t.recovered(stream)


@scenario("An executable is updated while the memory of its last launch is not freed; the next launch uses the new graph's.",
          control="freed in the graph",
          variants={"freed in the graph": dict(free=True, flags=0), "left allocated": dict(free=False, flags=0),
                    "left allocated, AutoFreeOnLaunch": dict(free=False, flags=1)}, open=True)
def updating_while_memory_is_held(t, free, flags):
    stream, x = t.stream(), t.device([0] * 4)
    graph = allocating(t, x, 3, free=free)
    executable = t.instantiate(graph, flags)
    run(t, executable, stream, x)
    newer = allocating(t, x, 5, free=free)
    t.exec_update(executable, newer)
    run(t, executable, stream, x)
    if not free:
        held = [int(t.cudaGraphMemAllocNodeGetParams(in_order(t, one)[0])[1].dptr) for one in (graph, newer)]
        for ptr in dict.fromkeys(held):
            t.cudaFreeAsync(ptr, stream)
        t.cudaStreamSynchronize(stream)
        run(t, executable, stream, x)
        for ptr in dict.fromkeys(held):
            t.raw.cudaFreeAsync(ptr, stream)
    t.recovered(stream)


@scenario("Memory that an updated graph leaves allocated is read at the new graph's address.", control="first graph",
          variants={"first graph": dict(update=False), "new graph": dict(update=True)}, open=True, isolated=("new graph",))
def memory_of_an_updated_graph(t, update):
    stream, x = t.stream(), t.device([0] * 4)
    graph = allocating(t, x, 3, free=False)
    newer = allocating(t, x, 5, free=False)
    executable = t.instantiate(graph)
    if update:
        t.exec_update(executable, newer)
    run(t, executable, stream, x)
    source = newer if update else graph
    buffer = Buffer(int(t.cudaGraphMemAllocNodeGetParams(in_order(t, source)[0])[1].dptr), 4)
    t.values(buffer, stream)
    t.cudaFreeAsync(buffer.ptr, stream)
    t.cudaStreamSynchronize(stream)
    run(t, executable, stream, x)
    t.raw.cudaFreeAsync(buffer.ptr, stream)
    t.recovered(stream)
