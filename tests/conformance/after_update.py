"""Around a whole update: where it comes from, what it leaves alone, flags, and which node handles hold after it."""
from labkit import graph as graphs
from tests.conformance.building import chain, change, child, copy, fill, in_order, memset, plus, run
from tests.conformance.harness import MODES, scenario

SOURCES = {"another graph": "other", "its own graph": "own", "its own graph, changed": "changed", "a clone": "clone",
           "a clone, changed": "changed clone", "its own graph, grown": "grown", "a graph in a child": "inside"}


@scenario("An executable is updated from a graph of its shape: its own, a clone, one made again; not from one inside a child node.",
          control="another graph",
          variants={name: dict(source=source) for name, source in SOURCES.items()}, open=True)
def sources_of_a_whole_update(t, source):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    newer = graph
    if source == "other":
        newer, _ = chain(t, [plus(t, x, 2), plus(t, x, 20)])
    elif "clone" in source:
        _, newer = t.cudaGraphClone(graph)
    elif source == "grown":
        plus(t, x, 100).add(graph, nodes[-1:])
    elif source == "inside":
        around, kept = chain(t, [child(t, chain(t, [plus(t, x, 2), plus(t, x, 20)])[0])])
        _, newer = t.cudaGraphChildGraphNodeGetGraph(kept[0])
    if "changed" in source:
        t.cudaGraphKernelNodeSetParams(in_order(t, newer)[0], t.axpy_params(x, t.ones, 5))
    t.exec_update(executable, newer)
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A whole update of graphs without nodes.", control="one node",
          variants={"one node": dict(old=1, new=1), "none": dict(old=0, new=0), "to nothing": dict(old=1, new=0),
                    "from nothing": dict(old=0, new=1)}, open=True)
def a_whole_update_of_empty_graphs(t, old, new):
    stream, x = t.stream(), t.device([0] * 4)
    executable = t.instantiate(chain(t, [plus(t, x, 1)] * old)[0])
    t.exec_update(executable, chain(t, [plus(t, x, 2)] * new)[0])
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A second update counts from the first; a refused one between them changes nothing.", control="one",
          variants={"one": dict(row="a"), "two": dict(row="ab"), "back again": dict(row="ao"), "refused between": dict(row="arb"),
                    "refused first": dict(row="ra"),
                    "refused last": dict(row="ar"), "refused twice": dict(row="rr")})
def whole_updates_in_a_row(t, row):
    stream, x = t.stream(), t.device([0] * 4)
    factors = {"o": (1, 10), "a": (2, 20), "b": (3, 30), "r": (4, 40, 400)}

    def make(step):
        return chain(t, [plus(t, x, a) for a in factors[step]])[0]
    executable = t.instantiate(make("o"))
    for step in row:
        t.exec_update(executable, make(step))
        run(t, executable, stream, x)
    t.recovered(stream)


@scenario("The graph of an update may be destroyed or changed at once.", control="kept",
          variants={"kept": dict(later=None), "destroyed": dict(later="destroy"), "changed": dict(later="change"), "grown": dict(later="grow"),
                    "first graph destroyed": dict(later="destroy first"), "both destroyed": dict(later="destroy both")},
          each={"queued": ("no", "yes")})
def destroying_the_graph_of_an_update(t, later, queued):
    stream, x = t.stream(), t.device([0] * 4)
    graph, _ = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    newer, nodes = chain(t, [plus(t, x, 2), plus(t, x, 20)])
    t.exec_update(executable, newer)
    release = t.gate(stream) if queued == "yes" else None
    if release:
        t.cudaGraphLaunch(executable, stream)
    if later == "change":
        t.cudaGraphKernelNodeSetParams(nodes[0], t.axpy_params(x, t.ones, 1000))
    elif later == "grow":
        plus(t, x, 1000).add(newer, nodes[-1:])
    elif later:
        t.cudaGraphDestroy(newer) if later != "destroy first" else None
        t.cudaGraphDestroy(graph) if later != "destroy" else None
    if release:
        release()
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A whole update of one executable leaves its brother and both graphs alone.", control="updated",
          variants={"updated": dict(which="one"), "brother": dict(which="two"), "first graph": dict(which="first"),
                    "second graph": dict(which="second")})
def what_a_whole_update_leaves_alone(t, which):
    stream, x = t.stream(), t.device([0] * 4)
    graph, _ = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    newer, _ = chain(t, [plus(t, x, 2), plus(t, x, 20)])
    one, two = t.instantiate(graph), t.instantiate(graph)
    t.exec_update(one, newer)
    t.graph(graph), t.graph(newer)
    run(t, {"one": one, "two": two}.get(which) or t.instantiate(graph if which == "first" else newer), stream, x)
    t.recovered(stream)


@scenario("After an update the executable still knows its first graph's nodes, and not the new one's.", control="first graph's",
          variants={"first graph's": dict(which="old"), "new graph's": dict(which="new"),
                    "no update, new graph's": dict(which="new", after="no update"),
                    "refused, first graph's": dict(which="old", after="refused update"),
                    "refused, new graph's": dict(which="new", after="refused update")},
          each={"call": ("kernel", "memset", "copy", "set enabled", "get enabled")}, open=True)
def node_handles_after_a_whole_update(t, which, call, after="update"):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])

    def make(a, *more):
        middle = {"memset": memset(t, x, 0x3F800000, 4), "copy": copy(t, x, y, 16, "DeviceToDevice")}.get(call) or fill(t, x, 2 * a)
        return chain(t, [middle, plus(t, x, 10 * a), *more])
    graph, old = make(1)
    newer, new = make(2, *([plus(t, x, 1000)] if after == "refused update" else []))
    executable = t.instantiate(graph)
    if after != "no update":
        t.exec_update(executable, newer)
    change(t, call, executable, {"old": old, "new": new}[which][0], x, y)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("After an update the first graph may be gone; its nodes are then no longer to be used.", control="first graph kept",
          variants={"first graph kept": dict(gone=False), "first graph destroyed": dict(gone=True)}, undefined=["first graph destroyed"])
def node_handles_of_a_first_graph_that_is_gone(t, gone):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1)])
    newer, _ = chain(t, [plus(t, x, 2)])
    executable = t.instantiate(graph)
    t.exec_update(executable, newer)
    if gone:
        t.cudaGraphDestroy(graph)
    t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], t.axpy_params(x, t.ones, 5))
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A whole update overrides what setters had set, and setters what an update had.", control="update",
          variants={"update": dict(row="u"), "setter, then update": dict(row="su"), "update, then setter": dict(row="us"), "setter": dict(row="s"),
                    "setter, then refused update": dict(row="sr"), "setter, then update from its own graph": dict(row="so")})
def setters_and_whole_updates(t, row):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    executable = t.instantiate(graph)
    for step in row:
        if step == "s":
            t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], t.axpy_params(x, t.ones, 5))
        else:
            newer = {"u": lambda: chain(t, [plus(t, x, 2), plus(t, x, 20)])[0], "o": lambda: graph, "r": lambda: chain(t, [plus(t, x, 3)])[0]}[step]()
            t.exec_update(executable, newer)
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)


FLAGS = {"none": 0, "AutoFreeOnLaunch": 1, "DeviceLaunch": 4, "UseNodePriority": 8}


@scenario("Executables with flags are changed like any other.", control="none",
          variants={name: dict(flags=flags) for name, flags in FLAGS.items()}, each={"how": ("update", "kernel", "set enabled")}, open=True)
def changing_an_executable_with_flags(t, flags, how):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    executable = t.instantiate(graph, flags)
    run(t, executable, stream, x)
    if how == "kernel":
        t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], t.axpy_params(x, t.ones, 5))
    elif how == "set enabled":
        t.cudaGraphNodeSetEnabled(executable, nodes[0], 0)
    else:
        t.exec_update(executable, chain(t, [plus(t, x, 2), plus(t, x, 20)])[0])
    t.note("flags", t.cudaGraphExecGetFlags(executable)[1])
    t.cudaGraphUpload(executable, stream)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A refused update leaves an executable with flags as it was.", control="accepted",
          variants={"accepted": dict(flags=0, nodes=2), **{f"refused, {name}": dict(flags=flags, nodes=1) for name, flags in FLAGS.items()}},
          open=True)
def a_refused_update_of_an_executable_with_flags(t, flags, nodes):
    stream, x = t.stream(), t.device([0] * 4)
    executable = t.instantiate(chain(t, [plus(t, x, 1), plus(t, x, 10)])[0], flags)
    t.exec_update(executable, chain(t, [plus(t, x, 2), plus(t, x, 20)][:nodes])[0])
    t.note("flags", t.cudaGraphExecGetFlags(executable)[1])
    run(t, executable, stream, x)
    t.recovered(stream)


HANDLES = {"good": ("good", "good"), "executable null": (0, "good"), "executable None": (None, "good"), "graph null": ("good", 0),
           "graph None": ("good", None),
           "both null": (0, 0), "executable destroyed": ("destroyed", "good"), "graph destroyed": ("good", "destroyed")}


@scenario("A whole update refuses handles that are null and a destroyed graph; a destroyed executable may not be updated.", control="good",
          variants={name: dict(pair=pair) for name, pair in HANDLES.items()}, open=True, isolated=True, undefined=["executable destroyed"])
def handles_of_a_whole_update(t, pair):
    stream, x = t.stream(), t.device([0] * 4)
    executable = t.instantiate(chain(t, [plus(t, x, 1)])[0])
    newer, _ = chain(t, [plus(t, x, 2)])
    given, source = [{"good": handle}.get(what, handle if what == "destroyed" else what) for what, handle in zip(pair, (executable, newer))]
    if pair[0] == "destroyed":
        t.cudaGraphExecDestroy(executable)
    if pair[1] == "destroyed":
        t.cudaGraphDestroy(newer)
    t.exec_update(given, source, ask=False)
    if pair[0] != "destroyed":
        run(t, executable, stream, x)
    t.recovered(stream)


@scenario("What the binding returns of a whole update: the result when it succeeds.", control="accepted",
          variants={"accepted": dict(steps=2), "refused": dict(steps=1)})
def what_a_whole_update_returns(t, steps):
    stream, x = t.stream(), t.device([0] * 4)
    executable = t.instantiate(chain(t, [plus(t, x, 1)] * 2)[0])
    _, info = t.cudaGraphExecUpdate(executable, chain(t, [plus(t, x, 2)] * steps)[0])
    if info is not None:
        t.note("result", info.result.name.removeprefix("cudaGraphExecUpdate"))
        t.note("nodes", [int(info.errorNode), int(info.errorFromNode)])
    t.recovered(stream)


@scenario("A graph that is still being captured may be the source of an update.", control="after the end",
          variants={"after the end": dict(early=False), "before the end": dict(early=True)}, each={"mode": MODES}, open=True)
def updating_from_a_graph_that_grows(t, early, mode):
    stream, other, x = t.stream(), t.stream(), t.device([0] * 4)
    executable = t.instantiate(chain(t, [plus(t, x, 1)])[0])
    t.begin(stream, mode)
    t.axpy(stream, x, t.ones, 2)
    if early:
        growing = graphs.capture_state(stream, cudart=t.raw).graph
        t.exec_update(executable, growing, ask=False)
        t.status(stream)
    graph = t.end(stream)
    if not early:
        t.exec_update(executable, graph)
    run(t, executable, other, x)
    t.recovered(stream)
