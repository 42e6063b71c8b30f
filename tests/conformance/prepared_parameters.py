"""labkit's kernel parameters: they do what plain ones do, and a graph's node gives them back."""
from labkit import kernels, update
from tests.conformance.building import BOTH, chain, child, in_order, kernel, memset, plus, run
from tests.conformance.harness import scenario


def _axpy(t, x, a, grid=2, block=2, shared=0):
    """x[:grid * block] += a * x"""
    return update.kernel_params(kernels.axpy, grid, block, x.ptr, x.ptr, a, x.n, shared=shared, cudart=t.raw)


@scenario("Parameters that labkit made do what plain ones do, in every call.", control="plain",
          variants={"plain": dict(labkit=False), "labkit's": dict(labkit=True)}, each={"call": ("add", "executable", "graph")})
def parameters_made_by_labkit(t, labkit, call):
    stream, x = t.stream(), t.device([1] * 4)
    params = _axpy(t, x, 2.0) if labkit else t.kernel_params(kernels.axpy, 2, 2, x.ptr, x.ptr, 2.0, 4)
    _, graph = t.cudaGraphCreate(0)
    _, node = t.cudaGraphAddKernelNode(graph, [], 0, params if call == "add" else t.axpy_params(x, x, 1))
    if call == "graph":
        t.cudaGraphKernelNodeSetParams(node, params)
    executable = t.instantiate(graph)
    if call == "executable":
        t.cudaGraphExecKernelNodeSetParams(executable, node, params)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Prepared parameters are set again and again, on any node.", control="one",
          variants={"one": dict(row="a"), "by turns": dict(row="abab"), "changed copies": dict(row="acd"), "wider": dict(row="ae"),
                    "impossible": dict(row="afa")})
def prepared_parameters_are_set_again(t, row):
    stream, x = t.stream(), t.device([1] * 4)
    graph, nodes = chain(t, [plus(t, x, 0), plus(t, x, 0)])
    executable, first = t.instantiate(graph), _axpy(t, x, 1.0)
    made = {"a": first, "b": _axpy(t, x, 2.0), "c": first.but(args={2: 3.0}), "d": first.but(grid=1), "e": first.but(block=1, args={2: 4.0}),
            "f": first.but(block=4096)}
    for step in row:
        for node in nodes:
            t.cudaGraphExecKernelNodeSetParams(executable, node, made[step])
        run(t, executable, stream, x)
    t.recovered(stream)


SEEN = {"by hand": "hand", "captured": "captured", "set in the graph": "set", "set in the executable": "set in", "in a clone": "clone",
        "in a child": "child",
        "without threads to spare": "small", "with shared memory": "shared"}


@scenario("A kernel node of a graph tells what it was launched with.", control="by hand",
          variants={name: dict(what=what) for name, what in SEEN.items()})
def what_a_kernel_was_launched_with(t, what):
    x = t.device([1] * 4)
    shared = 256 if what == "shared" else 0
    graph, nodes = chain(t, [kernel(t, kernels.axpy, 3, 1 if what == "small" else 64, x.ptr, t.ones.ptr, 2.5, 3, shared=shared), plus(t, x, 1)],
                         "captured" if what == "captured" else "by hand")
    node = nodes[0]
    if what == "set":
        t.cudaGraphKernelNodeSetParams(node, t.kernel_params(kernels.scale, 1, 8, x.ptr, -1.5, 2))
    elif what == "set in":
        t.cudaGraphExecKernelNodeSetParams(t.instantiate(graph), node, t.kernel_params(kernels.scale, 1, 8, x.ptr, -1.5, 2))
    elif what == "clone":
        node = t.cudaGraphNodeFindInClone(node, t.cudaGraphClone(graph)[1])[1]
    elif what == "child":
        _, around = chain(t, [child(t, graph)])
        node = in_order(t, t.cudaGraphChildGraphNodeGetGraph(around[0])[1])[0]
    found = update.launched(node, cudart=t.raw)
    t.note("launched", [found.kernel.name, list(found.grid), list(found.block), found.shared])
    t.note("arguments", [{x.ptr: "x", t.ones.ptr: "ones"}[given] if param.pointer else given for param,
                         given in zip(found.kernel.params, found.args)])
    t.recovered()


SETS = {"nothing": {}, "argument": dict(args={2: 5.0}), "two arguments": dict(args={2: 5.0, 3: 2}), "all arguments": dict(args="all"),
        "grid": dict(grid=1),
        "block": dict(block=1), "shared memory": dict(shared=512), "kernel": dict(kernel=kernels.add, args="add"),
        "all": dict(grid=1, block=3, shared=64, args={2: 7.0}),
        "grid of 0": dict(grid=0), "block of 4096": dict(block=4096), "1 MiB shared": dict(shared=1 << 20)}


@scenario("One call of labkit changes a part of a kernel node and leaves the rest.", control="nothing",
          variants={name: dict(change=change) for name, change in SETS.items()}, each=BOTH, open=True)
def changing_a_part_of_a_kernel_node(t, change, made):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [kernel(t, kernels.axpy, 2, 2, x.ptr, t.ones.ptr, 2.0, 4), plus(t, x, 10)], made)
    executable = t.instantiate(graph)
    given = {"all": (x.ptr, t.ones.ptr, 3.0, 3), "add": (x.ptr, x.ptr, t.ones.ptr, 4)}
    change = {**change, "args": given.get(change["args"], change["args"])} if isinstance(change.get("args"), str) else change
    for more in (change, {"args": {2: 100.0}}):
        code, = update.set_kernel(executable, nodes[0], cudart=t.raw, **more)
        t.add("cudaGraphExecKernelNodeSetParams", code.name)
        run(t, executable, stream, x)
    t.recovered(stream)


@scenario("labkit's call on a node that is none of this executable's, or no kernel, gives CUDA's code.", control="own kernel",
          variants={"own kernel": dict(which="own"), "another graph's": dict(which="other"), "a memset": dict(which="memset"),
                    "no node": dict(which=0),
                    "no executable": dict(which="executable")}, open=True, isolated=("no node", "no executable"))
def changing_a_part_of_a_wrong_node(t, which):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1), memset(t, t.spare, 0)])
    _, others = chain(t, [plus(t, x, 1), memset(t, t.spare, 0)])
    executable = t.instantiate(graph)
    node = {"other": others[0], "memset": nodes[1], 0: 0}.get(which, nodes[0])
    code, = update.set_kernel(0 if which == "executable" else executable, node, args={2: 5.0}, cudart=t.raw)
    t.add("cudaGraphExecKernelNodeSetParams", code.name)
    run(t, executable, stream, x)
    t.recovered(stream)
