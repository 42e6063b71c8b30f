"""Which nodes and executables a change knows: its own graph's nodes, of the right kind, from any thread."""
from tests.conformance.building import KINDS, chain, change, child, copy, fill, host_params, in_order, memset, one_of, plus, run
from tests.conformance.harness import MODES, scenario


NODES = {"own": "own", "same shape": "other", "clone's": "clone", "made later": "later", "None": "None", "0": "0", "destroyed": "destroyed",
         "of a destroyed graph": "graph"}


@scenario("A setter knows the nodes of the graph that the executable was made from, and no others.", control="own",
          variants={name: dict(which=which) for name, which in NODES.items()},
          each={"call": ("kernel", "memset", "copy", "set enabled", "get enabled")}, open=True, isolated=("None", "0"),
          undefined=["destroyed", "of a destroyed graph"])
def nodes_of_other_graphs(t, which, call):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])

    def make():
        return chain(t, [{"memset": memset(t, x, 0, 4), "copy": copy(t, x, y, 16, "DeviceToDevice")}.get(call) or fill(t, x, 2), plus(t, x, 10)])
    graph, nodes = make()
    executable = t.instantiate(graph)
    node = nodes[0]
    if which == "other":
        node = make()[1][0]
    elif which == "clone":
        node = in_order(t, t.cudaGraphClone(graph)[1])[0]
    elif which == "later":
        node = {"memset": memset(t, x, 0, 4), "copy": copy(t, x, y, 16, "DeviceToDevice")}.get(call, fill(t, x, 2)).add(graph, nodes[-1:])
    elif which in ("None", "0"):
        node = None if which == "None" else 0
    elif which == "destroyed":
        t.cudaGraphDestroyNode(node)
    elif which == "graph":
        t.cudaGraphDestroy(graph)
    change(t, call, executable, node, x, y)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("An executable made from a clone knows the clone's nodes.", control="clone's",
          variants={"clone's": dict(original=False), "original's": dict(original=True)}, open=True)
def the_executable_of_a_clone(t, original):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [fill(t, x, 2), plus(t, x, 10)])
    _, clone = t.cudaGraphClone(graph)
    executable = t.instantiate(clone)
    node = nodes[0] if original else in_order(t, clone)[0]
    t.cudaGraphExecKernelNodeSetParams(executable, node, t.fill_params(x, 7))
    run(t, executable, stream, x)
    t.recovered(stream)


WHOSE = ("executable", "null", "0", "destroyed")
CALLS = ("kernel", "memset", "copy", "set enabled", "get enabled", "update", "upload", "launch")


@scenario("Nothing can be set in an executable that is null or destroyed; a destroyed one may not be updated, uploaded or launched.",
          control="executable",
          variants={whose: dict(whose=whose) for whose in WHOSE}, each={"call": CALLS}, open=True, isolated=("null", "0", "destroyed"),
          undefined=["destroyed/update", "destroyed/upload", "destroyed/launch"])
def an_executable_that_is_not_there(t, whose, call):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])
    graph, nodes = chain(t, [fill(t, x, 2), memset(t, y, 0x3F800000, 4), copy(t, x, y, 16, "DeviceToDevice")])
    executable = t.instantiate(graph)
    if whose == "destroyed":
        t.cudaGraphExecDestroy(executable)
    given = {"null": None, "0": 0}.get(whose, executable)
    if call == "update":
        t.exec_update(given, graph, ask=False)
    elif call == "upload":
        t.cudaGraphUpload(given, stream)
    elif call == "launch":
        t.cudaGraphLaunch(given, stream)
    else:
        change(t, call, given, nodes[{"memset": 1, "copy": 2}.get(call, 0)], x, y)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("A kernel inside a child graph is set by the node of the child node's own copy.", control="copy's",
          variants={"copy's": dict(which="copy"), "given graph's": dict(which="given"), "two deep": dict(which="deep"),
                    "the child node itself": dict(which="child")}, open=True, isolated=("two deep",))
def setting_a_kernel_inside_a_child(t, which):
    stream, x = t.stream(), t.device([0] * 4)
    inside, given = chain(t, [plus(t, x, 1), plus(t, x, 2)])
    if which == "deep":
        inside, _ = chain(t, [child(t, inside)])
    graph, nodes = chain(t, [plus(t, x, 10), child(t, inside), plus(t, x, 100)])
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    own = t.cudaGraphChildGraphNodeGetGraph(nodes[1])[1]
    node = {"given": given[0], "child": nodes[1]}.get(which) or in_order(t, own)[0]
    if which == "deep":
        node = in_order(t, t.cudaGraphChildGraphNodeGetGraph(node)[1])[0]
    t.cudaGraphExecKernelNodeSetParams(executable, node, t.axpy_params(x, t.ones, 5))
    run(t, executable, stream, x)
    t.recovered(stream)


SETTERS = ("kernel", "memset", "memcpy", "host", "record", "wait", "child")


@scenario("Each setter takes nodes of its own kind only.", control="own",
          variants={"own": dict(kind=None), **{kind: dict(kind=kind) for kind in KINDS}}, each={"setter": SETTERS}, open=True)
def a_setter_takes_its_own_kind(t, kind, setter):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])
    graph, node = one_of(t, kind or setter, x, y)
    executable = t.instantiate(graph)
    if setter == "host":
        t.cudaGraphExecHostNodeSetParams(executable, node, host_params(t, lambda data: None))
    elif setter in ("record", "wait"):
        name = {"record": "cudaGraphExecEventRecordNodeSetEvent", "wait": "cudaGraphExecEventWaitNodeSetEvent"}[setter]
        getattr(t, name)(executable, node, t.event())
    elif setter == "child":
        t.cudaGraphExecChildGraphNodeSetParams(executable, node, chain(t, [fill(t, x, 5)])[0])
    else:
        change(t, {"memcpy": "copy"}.get(setter, setter), executable, node, x, y)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("An executable is set from any thread, and while a capture is on elsewhere.", control="this thread",
          variants={"this thread": dict(thread="same", mode=None), "other thread": dict(thread="other", mode=None),
                    **{f"beside a {mode} capture": dict(thread="same", mode=mode) for mode in MODES},
                    **{f"other thread beside a {mode} capture": dict(thread="other", mode=mode) for mode in MODES}},
          each={"call": ("kernel", "memset", "copy", "set enabled", "update")}, open=True)
def setting_from_another_thread_or_beside_a_capture(t, thread, mode, call):
    stream, elsewhere, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])
    kind = {"copy": "memcpy", "set enabled": "kernel", "update": "kernel"}.get(call, call)
    graph, node = one_of(t, kind, x, y)
    newer, _ = chain(t, [fill(t, x, 7), plus(t, x, 10)])
    executable = t.instantiate(graph)
    if mode:
        t.begin(elsewhere, mode)
        t.fill(elsewhere, y, 1)
    if call == "update":
        t.here_or_there(thread, lambda: t.exec_update(executable, newer, ask=mode is None))
    else:
        t.here_or_there(thread, lambda: change(t, call, executable, node, x, y))
    if mode:
        t.status(elsewhere)
        t.end(elsewhere)
    run(t, executable, stream, x)
    t.recovered(stream)
