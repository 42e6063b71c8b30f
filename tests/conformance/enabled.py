"""Switching nodes of an executable off and on."""
from labkit import kernels
from tests.conformance.building import BOTH, KINDS, allocating, chain, child, copy, diamond, fill, in_order, kernel, memset, one_of, plus, run
from tests.conformance.harness import scenario


def _enabled(t, executable, *nodes):
    """Write down which nodes are on."""
    for node in nodes:
        answer = t.cudaGraphNodeGetEnabled(executable, node)
        if answer[0] == 0:
            t.note("enabled", answer[1])


STEPS = {"kernel": lambda t, x, y: plus(t, x, 1), "memset": lambda t, x, y: memset(t, x, 0, 2, 1), "copy": lambda t, x,
         y: copy(t, x, y, 16, "DeviceToDevice")}


@scenario("A node that is switched off does nothing until it is switched on again.", control="left on",
          variants={"left on": dict(row=""), "off": dict(row="0"), "off and on": dict(row="01"), "off twice": dict(row="00"), "on": dict(row="1"),
                    "off, on and off": dict(row="010")}, each={"kind": tuple(STEPS), **BOTH})
def switching_a_node_off(t, row, kind, made):
    stream, x, y = t.stream(), t.device([9] * 4), t.device([1, 2, 3, 4])
    graph, nodes = chain(t, [STEPS[kind](t, x, y), plus(t, x, 10)], made)
    executable = t.instantiate(graph)
    _enabled(t, executable, *nodes)
    run(t, executable, stream, x)
    for on in row:
        t.cudaGraphNodeSetEnabled(executable, nodes[0], int(on))
        _enabled(t, executable, *nodes)
        run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Kernel, memset and copy nodes can be switched; no other kind.", control="kernel",
          variants={kind: dict(kind=kind) for kind in KINDS}, each={"value": ("0", "1")}, open=True)
def which_kinds_can_be_switched(t, kind, value):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1, 2, 3, 4])
    graph, node = one_of(t, kind, x, y)
    executable = t.instantiate(graph)
    _enabled(t, executable, node)
    t.cudaGraphNodeSetEnabled(executable, node, int(value))
    _enabled(t, executable, node)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Any number but 0 switches on.", control="1",
          variants={str(value): dict(value=value) for value in (1, 0, 2, 255, 1 << 31)}, each={"before": ("on", "off")}, open=True)
def numbers_that_switch(t, value, before):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    executable = t.instantiate(graph)
    if before == "off":
        t.cudaGraphNodeSetEnabled(executable, nodes[0], 0)
    t.cudaGraphNodeSetEnabled(executable, nodes[0], value)
    _enabled(t, executable, nodes[0])
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A value that is no number is refused by the bindings.", control="1",
          variants={"1": dict(value=1), "True": dict(value=True), "-1": dict(value=-1), "None": dict(value=None), "text": dict(value="1")}, open=True)
def values_that_are_no_numbers(t, value):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1)])
    executable = t.instantiate(graph)
    t.attempt("cudaGraphNodeSetEnabled", executable, nodes[0], value)
    _enabled(t, executable, nodes[0])
    t.recovered(stream)


OFF = {"none": (), "first": (0,), "middle": (1,), "last": (3,), "both middles": (1, 2), "all": (0, 1, 2, 3)}


@scenario("The order of the others stays when a node between them is off.", control="none",
          variants={name: dict(off=off) for name, off in OFF.items()}, each={"shape": ("chain", "diamond")})
def the_order_stays_around_a_node_that_is_off(t, off, shape):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([0] * 4)
    steps = [fill(t, x, 2), kernel_add(t, x, x, x), kernel_add(t, y, y, t.ones), kernel_add(t, x, x, y)]
    graph, nodes = chain(t, steps) if shape == "chain" else diamond(t, *steps)
    executable = t.instantiate(graph)
    for place in off:
        t.cudaGraphNodeSetEnabled(executable, nodes[place], 0)
    _enabled(t, executable, *nodes)
    for _ in range(2):
        run(t, executable, stream, x, y)
    for place in off:
        t.cudaGraphNodeSetEnabled(executable, nodes[place], 1)
    run(t, executable, stream, x, y)
    t.recovered(stream)


def kernel_add(t, z, x, y):
    """z[:] = x + y"""
    return kernel(t, kernels.add, 1, 32, z.ptr, x.ptr, y.ptr, 4)


@scenario("A setter reaches a node that is off; it stays off.", control="on",
          variants={"on": dict(off=False), "off": dict(off=True)}, each={"kind": tuple(STEPS)}, open=True)
def setting_a_node_that_is_off(t, off, kind):
    stream, x, y = t.stream(), t.device([9] * 4), t.device([1, 2, 3, 4])
    graph, nodes = chain(t, [STEPS[kind](t, x, y), plus(t, x, 10)])
    executable = t.instantiate(graph)
    if off:
        t.cudaGraphNodeSetEnabled(executable, nodes[0], 0)
    if kind == "kernel":
        t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], t.axpy_params(x, t.ones, 5))
    elif kind == "memset":
        t.cudaGraphExecMemsetNodeSetParams(executable, nodes[0], t.memset_params(x, 0, 4, 1))
    else:
        t.cudaGraphExecMemcpyNodeSetParams1D(executable, nodes[0], x.ptr, y.ptr, 8, t.copies("DeviceToDevice"))
    _enabled(t, executable, nodes[0])
    run(t, executable, stream, x)
    t.cudaGraphNodeSetEnabled(executable, nodes[0], 1)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A whole update leaves a node off, with the new values.", control="on",
          variants={"on": dict(off=False, same=True), "off": dict(off=True, same=True), "off, other values": dict(off=True, same=False),
                    "off, refused": dict(off=True, same=None)}, each={"kind": tuple(STEPS)}, open=True)
def a_whole_update_and_a_node_that_is_off(t, off, same, kind):
    stream, x, y = t.stream(), t.device([9] * 4), t.device([1, 2, 3, 4])
    graph, nodes = chain(t, [STEPS[kind](t, x, y), plus(t, x, 10)])
    executable = t.instantiate(graph)
    if off:
        t.cudaGraphNodeSetEnabled(executable, nodes[0], 0)
    more = [plus(t, x, 1000)] if same is None else []
    newer, _ = chain(t, [STEPS[kind](t, x, y), plus(t, x, 10 if same else 20), *more])
    t.exec_update(executable, newer)
    _enabled(t, executable, nodes[0])
    run(t, executable, stream, x)
    t.cudaGraphNodeSetEnabled(executable, nodes[0], 1)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Switching is the executable's own affair.", control="on",
          variants={"on": dict(off=False), "off": dict(off=True)})
def switching_in_one_executable(t, off):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    one, two = t.instantiate(graph), t.instantiate(graph)
    if off:
        t.cudaGraphNodeSetEnabled(one, nodes[0], 0)
    third = t.instantiate(graph)
    for executable in (one, two, third):
        _enabled(t, executable, nodes[0])
        run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A node inside a child graph is switched by the node of the child node's own copy.", control="copy's",
          variants={"copy's": dict(which="copy"), "given graph's": dict(which="given"), "the child node": dict(which="child")}, open=True)
def switching_a_node_inside_a_child(t, which):
    stream, x = t.stream(), t.device([0] * 4)
    inside, given = chain(t, [plus(t, x, 1), plus(t, x, 2)])
    graph, nodes = chain(t, [child(t, inside), plus(t, x, 10)])
    executable = t.instantiate(graph)
    own = in_order(t, t.cudaGraphChildGraphNodeGetGraph(nodes[0])[1])
    node = {"copy": own[0], "given": given[0], "child": nodes[0]}[which]
    _enabled(t, executable, node)
    t.cudaGraphNodeSetEnabled(executable, node, 0)
    _enabled(t, executable, node)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A kernel between allocation and free can be switched off.", control="on",
          variants={"on": dict(off=False), "off": dict(off=True)}, open=True)
def switching_in_an_allocating_graph(t, off):
    stream, x = t.stream(), t.device([0] * 4)
    graph = allocating(t, x, 3)
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    nodes = in_order(t, graph)
    if off:
        t.cudaGraphNodeSetEnabled(executable, nodes[2], 0)
    _enabled(t, executable, nodes[2])
    t.write(x, [0] * 4)
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)
