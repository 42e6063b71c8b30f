"""Updating an executable from a graph of another shape, or made in another order: refusals with their reasons, and which nodes pair."""
from tests.conformance.building import apart, chain, copy, diamond, empty, memset, plus, record, run, wait
from tests.conformance.harness import scenario


def _steps(t, what, x, y):
    """The new graph's steps: what the executable has (kernel, memset, kernel), or something that does not fit."""
    one, two, three = plus(t, x, 2), memset(t, y, 0, 2), plus(t, x, 20)
    return {"the same": [one, two, three], "one node more": [one, two, three, plus(t, x, 1)],
            "a node more in front": [plus(t, x, 1), one, two, three],
            "one node less": [one, two], "one node": [one], "nothing": [], "memset for kernel": [two, two, three],
            "kernel for memset": [one, one, three],
            "kernel and memset swapped": [two, one, three], "empty for memset": [one, empty(t), three],
            "copy for memset": [one, copy(t, y, x, 8, "DeviceToDevice"), three],
            "all kinds wrong": [two, one, two], "last is a memset": [one, two, two]}[what]


WRONG = ("the same", "one node more", "a node more in front", "one node less", "one node", "nothing", "memset for kernel", "kernel for memset",
         "kernel and memset swapped", "empty for memset", "copy for memset", "all kinds wrong", "last is a memset")


@scenario("A whole update is refused with a reason when nodes are too many, too few or of another kind; nothing has changed then.",
          control="the same",
          variants={what: dict(what=what) for what in WRONG}, open=True)
def a_whole_update_that_does_not_fit(t, what):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([9] * 4)
    executable = t.instantiate(chain(t, [plus(t, x, 1), memset(t, y, 0, 2), plus(t, x, 10)])[0])
    run(t, executable, stream, x)
    t.exec_update(executable, chain(t, _steps(t, what, x, y))[0])
    t.write(y, [9] * 4)
    run(t, executable, stream, x, y)
    t.exec_update(executable, chain(t, _steps(t, "the same", x, y))[0])
    run(t, executable, stream, x, y)
    t.recovered(stream)


EDGES = {"the same": [(0, 1), (1, 2)], "one edge more": [(0, 1), (1, 2), (0, 2)], "one edge less": [(0, 1)], "no edge": [],
         "another way": [(0, 1), (0, 2)],
         "joined": [(0, 2), (1, 2)], "edges in another order": [(1, 2), (0, 1)], "backwards": [(2, 1), (1, 0)], "a cycle": [(0, 1), (1, 2), (2, 0)]}


@scenario("A whole update compares edges too.", control="the same",
          variants={name: dict(edges=edges) for name, edges in EDGES.items()}, each={"kinds": ("kernels", "mixed")}, open=True)
def a_whole_update_and_edges(t, edges, kinds):
    stream, x, y, z = t.stream(), t.device([0] * 4), t.device([9] * 4), t.device([0] * 4)

    def make(factor, edges):
        middle = plus(t, y, 2 * factor) if kinds == "kernels" else memset(t, y, 0, factor)
        graph, nodes = apart(t, [plus(t, x, factor), middle, plus(t, z, 3 * factor)])
        for start, stop in edges:
            t.add_edges(graph, [nodes[start]], [nodes[stop]])
        return graph
    executable = t.instantiate(make(1, EDGES["the same"]))
    t.exec_update(executable, make(2, edges))
    run(t, executable, stream, x, y, z)
    t.recovered(stream)


@scenario("A diamond is updated from a diamond only.", control="diamond",
          variants={"diamond": dict(form="diamond"), "chain": dict(form="chain"), "fan": dict(form="fan"), "join": dict(form="join"),
                    "side edge": dict(form="side")}, open=True)
def a_whole_update_of_a_diamond(t, form):
    stream, x = t.stream(), [t.device([0] * 4) for _ in range(4)]

    def make(form, a):
        steps = [plus(t, one, a) for one in x]
        if form == "chain":
            return chain(t, steps)[0]
        if form in ("diamond", "side"):
            graph, nodes = diamond(t, *steps)
            if form == "side":
                t.add_edges(graph, [nodes[1]], [nodes[2]])
            return graph
        graph, nodes = apart(t, steps)
        pairs = [(0, 1), (0, 2), (0, 3)] if form == "fan" else [(0, 3), (1, 3), (2, 3)]
        t.add_edges(graph, [nodes[a] for a, _ in pairs], [nodes[b] for _, b in pairs])
        return graph
    executable = t.instantiate(make("diamond", 1))
    t.exec_update(executable, make(form, 5))
    run(t, executable, stream, *x)
    t.recovered(stream)


ORDERS = {"same order": (0, 1, 2, 3), "sides swapped": (0, 2, 1, 3), "last made first": (3, 1, 2, 0), "backwards": (3, 2, 1, 0)}


@scenario("A whole update pairs what two nodes wait for in the order of their edges, whatever the order of the nodes.", control="same order",
          variants={name: dict(order=order) for name, order in ORDERS.items()}, each={"kinds": ("kernels", "mixed"), "edges": ("0", "1")}, open=True)
def the_order_in_which_a_diamond_is_made(t, order, kinds, edges):
    stream, x = t.stream(), [t.device([9] * 4) for _ in range(4)]

    def make(a, order):
        sides = [plus(t, x[1], a), plus(t, x[2], 2 * a) if kinds == "kernels" else memset(t, x[2], 0, a)]
        steps = [plus(t, x[0], a), *sides, plus(t, x[3], 3 * a)]
        _, graph = t.cudaGraphCreate(0)
        nodes = {place: steps[place].add(graph, []) for place in order}
        pairs = [(0, 1), (0, 2), (1, 3), (2, 3)]
        if order is not ORDERS["same order"] and edges == "1":
            pairs = [(0, 2), (0, 1), (2, 3), (1, 3)]
        for start, stop in pairs:
            t.add_edges(graph, [nodes[start]], [nodes[stop]])
        return graph
    executable = t.instantiate(make(1, ORDERS["same order"]))
    t.exec_update(executable, make(2, order))
    run(t, executable, stream, *x)
    t.recovered(stream)


@scenario("A whole update pairs the nodes that none waits for in the order of their making.", control="same order",
          variants={"same order": dict(swapped=False), "swapped": dict(swapped=True)},
          each={"kinds": ("kernels", "kernel and memset", "memset and copy")},
          open=True)
def the_order_in_which_roots_are_made(t, swapped, kinds):
    stream, x, y = t.stream(), t.device([9] * 4), t.device([9] * 4)

    def make(a, swapped=False):
        other = {"kernels": plus(t, y, 2 * a), "kernel and memset": memset(t, y, 0, a)}.get(kinds, memset(t, y, 0, a))
        steps = [copy(t, x, t.ones, 4 * a, "DeviceToDevice") if kinds == "memset and copy" else plus(t, x, a), other]
        return apart(t, steps[::-1] if swapped else steps)[0]
    executable = t.instantiate(make(1))
    t.exec_update(executable, make(3, swapped))
    run(t, executable, stream, x, y)
    t.recovered(stream)


@scenario("After an update that swapped two branches, a node's handle means what stands in its place now.", control="same order",
          variants={"same order": dict(swapped=False), "swapped": dict(swapped=True)},
          each={"shape": ("roots", "edges", "nodes", "ends"), "call": ("kernel", "set enabled")}, open=True)
def handles_after_branches_were_swapped(t, swapped, shape, call):
    stream, x, y, z = t.stream(), t.device([0] * 4), t.device([0] * 4), t.device([0] * 4)

    def make(a, swapped=False):
        """(graph, left): left and right beside each other, between others or not."""
        _, graph = t.cudaGraphCreate(0)
        first = plus(t, z, a).add(graph, []) if shape != "roots" else None
        sides = [plus(t, x, a), plus(t, y, 10 * a)]
        order = (1, 0) if swapped and shape != "edges" else (0, 1)
        made = {place: sides[place].add(graph, [first] if first is not None else []) for place in order}
        if shape in ("edges", "nodes"):
            ends = [made[1], made[0]] if swapped and shape == "edges" else [made[0], made[1]]
            plus(t, z, 100 * a).add(graph, ends)
        return graph, made[0]
    graph, left = make(1)
    executable = t.instantiate(graph)
    t.exec_update(executable, make(2, swapped)[0])
    if call == "kernel":
        t.cudaGraphExecKernelNodeSetParams(executable, left, t.axpy_params(z, t.spare, 0))
    else:
        t.cudaGraphNodeSetEnabled(executable, left, 0)
    run(t, executable, stream, x, y)
    t.recovered(stream)


@scenario("A whole update pairs the branches of a capture in the order in which they were joined.", control="same order",
          variants={"same order": dict(order="ab"), "other order": dict(order="ba"), "work moved to the other stream": dict(order="cross")},
          each={"kinds": ("kernels", "mixed")}, open=True)
def the_order_in_which_branches_are_captured(t, order, kinds):
    a, b = t.stream(), t.stream()
    x, y, z = t.device([9] * 4), t.device([9] * 4), t.device([0] * 4)

    def work(which, stream, factor):
        if which == "a":
            t.axpy(stream, x, t.ones, factor)
        elif kinds == "kernels":
            t.axpy(stream, y, t.ones, 10 * factor)
        else:
            t.cudaMemsetAsync(y.ptr, 0, 4 * factor, stream)

    def make(factor, order):
        t.begin(a)
        t.axpy(a, z, t.ones, factor)
        t.follow(b, a)
        where = {"a": b, "b": a} if order == "cross" else {"a": a, "b": b}
        for which in ("ab" if order == "cross" else order):
            work(which, where[which], factor)
        t.follow(a, b)
        t.axpy(a, z, t.ones, 100 * factor)
        return t.end(a)
    executable = t.instantiate(make(1, "ab"))
    t.exec_update(executable, make(2, order))
    run(t, executable, a, x, y, z)
    t.recovered(a)


@scenario("Event nodes are told apart.", control="the same",
          variants={"the same": dict(first="record", second="wait"), "swapped": dict(first="wait", second="record"),
                    "two records": dict(first="record", second="record"),
                    "empty for record": dict(first="empty", second="wait")}, open=True)
def a_whole_update_of_event_nodes(t, first, second):
    stream, x, event, other = t.stream(), t.device([0] * 4), t.event(), t.event()
    made = {"record": lambda: record(t, event), "wait": lambda: wait(t, other), "empty": lambda: empty(t)}
    executable = t.instantiate(chain(t, [record(t, event), wait(t, other), plus(t, x, 1)])[0])
    t.exec_update(executable, chain(t, [made[first](), made[second](), plus(t, x, 2)])[0])
    run(t, executable, stream, x)
    t.recovered(stream)
