"""The kernel setter of an executable: what it changes, what it refuses, and when it reads the arguments."""
import ctypes

import numpy as np

from labkit import kernels
from tests.conformance.building import BOTH, allocating, chain, fill, in_order, kernel, ones, plus, run
from tests.conformance.harness import scenario

CHANGES = {"nothing": {}, "scalar": dict(a=7), "pointer": dict(to="y"), "source": dict(frm="y"), "elements": dict(n=3), "grid up": dict(grid=4),
           "grid down": dict(grid=1), "grid far up": dict(grid=5000), "block up": dict(block=4), "block down": dict(block=1),
           "block of 1024": dict(block=1024), "shared memory": dict(shared=1024), "48 KiB shared": dict(shared=48 << 10),
           "all at once": dict(a=7, to="y", grid=3, block=1, shared=256)}


def _params(t, x, y, a=2, to="x", frm="ones", n=8, grid=2, block=2, shared=0):
    """x[:grid * block] += a, unless told otherwise."""
    target, source = {"x": x, "y": y}[to], {"ones": ones(t, 8), "y": y}[frm]
    return t.kernel_params(kernels.axpy, grid, block, target.ptr, source.ptr, float(a), n, shared=shared)


def _two_kernels(t, x, made="by hand"):
    """(graph, nodes): x[:4] += 2, then x[:] += 10."""
    return chain(t, [kernel(t, kernels.axpy, 2, 2, x.ptr, ones(t, 8).ptr, 2.0, 8), plus(t, x, 10)], made)


@scenario("The kernel setter changes arguments, grid, block and shared memory of the launches to come.", control="nothing",
          variants={name: dict(change=change) for name, change in CHANGES.items()}, each=BOTH)
def a_kernel_setter_changes_the_next_launch(t, change, made):
    stream, x, y = t.stream(), t.device([0] * 8), t.device([100] * 8)
    graph, nodes = _two_kernels(t, x, made)
    executable = t.instantiate(graph)
    run(t, executable, stream, x, y)
    t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], _params(t, x, y, **change))
    run(t, executable, stream, x, y)
    run(t, executable, stream, x, y)
    t.recovered(stream)


FUNCTIONS = {"the same": "axpy", "same signature": "scale", "another signature": "add"}


@scenario("The kernel setter may put another function in place, with other parameters too.", control="the same",
          variants={name: dict(name=name) for name in FUNCTIONS}, each=BOTH)
def a_kernel_setter_changes_the_function(t, name, made):
    stream, x = t.stream(), t.device([1] * 4)
    base = fill(t, x, 3) if name == "same signature" else plus(t, x, 3)
    graph, nodes = chain(t, [base, plus(t, x, 10)], made)
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    if name == "the same":
        params = t.axpy_params(x, t.ones, 3)
    elif name == "same signature":
        params = t.kernel_params(kernels.scale, 1, 32, x.ptr, 3.0, 4)
    else:
        params = t.kernel_params(kernels.add, 1, 32, x.ptr, x.ptr, t.ones.ptr, 4)
    t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], params)
    run(t, executable, stream, x)
    t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], t.axpy_params(x, t.ones, 1000))
    run(t, executable, stream, x)
    t.recovered(stream)


IMPOSSIBLE = {"good": {}, "grid of 0": dict(grid=0), "block of 0": dict(block=0), "block of 1025": dict(block=1025),
              "block of 4096": dict(block=4096),
              "49 KiB shared": dict(shared=49 << 10), "1 MiB shared": dict(shared=1 << 20), "grid of 2^31": dict(grid=1 << 31)}


@scenario("An impossible shape is refused by the kernel setter; the executable keeps what it had.", control="good",
          variants={name: dict(change=change) for name, change in IMPOSSIBLE.items()}, each=BOTH, open=True)
def an_impossible_kernel_update_is_refused(t, change, made):
    stream, x = t.stream(), t.device([0] * 8)
    graph, nodes = _two_kernels(t, x, made)
    executable = t.instantiate(graph)
    t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], _params(t, x, x, **{"a": 7, **change}))
    run(t, executable, stream, x)
    t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], _params(t, x, x, a=1000))
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Kernel parameters that are not there, or whose function is none.", control="good",
          variants={"good": dict(what="good"), "None": dict(what="None"), "no arguments": dict(what="arguments"),
                    "no function": dict(what="function"),
                    "function 4096": dict(what=4096)}, open=True, isolated=("None", "no arguments", "no function", "function 4096"))
def kernel_parameters_that_are_not_there(t, what):
    stream, x = t.stream(), t.device([0] * 8)
    graph, nodes = _two_kernels(t, x)
    executable = t.instantiate(graph)
    params = _params(t, x, x, a=7)
    if what == "None":
        params = None
    elif what == "arguments":
        params.kernelParams = 0
    elif what != "good":
        params.func = 0 if what == "function" else what
    t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], params)
    run(t, executable, stream, x)
    t.recovered(stream)


def _arguments(form, ptr, a, n):
    """(kernelParams, the float behind it) of axpy(ptr, ptr, a, n) in one of the forms that the bindings take."""
    held = [ctypes.c_void_p(ptr), ctypes.c_void_p(ptr), ctypes.c_float(a), ctypes.c_int(n)]
    addresses = [ctypes.addressof(one) for one in held]
    if form == "values and types":
        return ((ptr, ptr, a, n), tuple(type(one) for one in held)), held
    if form == "C values":
        return (tuple(held), tuple(type(one) for one in held)), held
    if form == "array of addresses":
        return np.array(addresses, np.uint64), held
    array = (ctypes.c_void_p * 4)(*addresses)
    return ctypes.addressof(array), [array, *held]


FORMS = ("values and types", "C values", "array of addresses", "address of addresses")


@scenario("Kernel arguments may be given as values, as C values, or as addresses of values.", control="values and types",
          variants={form: dict(form=form) for form in FORMS}, each={"call": ("add", "executable", "graph")})
def forms_of_kernel_arguments(t, form, call):
    stream, x = t.stream(), t.device([1] * 4)
    params = t.axpy_params(x, t.ones, 1)
    given, held = _arguments(form, x.ptr, 2.0, 4)
    t.keep.append((given, held))
    if call == "add":
        params.kernelParams = given
    graph, executable = t.cudaGraphCreate(0)[1], None
    _, node = t.cudaGraphAddKernelNode(graph, [], 0, params)
    params.kernelParams = given
    if call == "graph":
        t.cudaGraphKernelNodeSetParams(node, params)
    executable = t.instantiate(graph)
    if call == "executable":
        t.cudaGraphExecKernelNodeSetParams(executable, node, params)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("The setter copies the arguments when it is called.", control="left alone",
          variants={"left alone": dict(steps="sl"), "changed before the launch": dict(steps="scl"), "changed and set again": dict(steps="slcsl")},
          each={"form": FORMS[1:]})
def arguments_are_copied_when_they_are_set(t, steps, form):
    stream, x = t.stream(), t.device([1] * 4)
    graph, nodes = chain(t, [plus(t, x, 1), plus(t, x, 10)])
    executable = t.instantiate(graph)
    params = t.axpy_params(x, t.ones, 1)
    params.kernelParams, held = _arguments(form, x.ptr, 2.0, 4)
    t.keep.append((params, held))
    for step in steps:
        if step == "s":
            t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], params)
        elif step == "c":
            held[-2].value = 100.0
        else:
            run(t, executable, stream, x)
    t.recovered(stream)


@scenario("Setting once more replaces what was set; nodes may be set in any order.", control="one",
          variants={"one": dict(row=[(0, 3)]), "twice the same": dict(row=[(0, 3), (0, 3)]), "twice": dict(row=[(0, 3), (0, 4)]),
                    "both": dict(row=[(0, 3), (1, 30)]), "backwards": dict(row=[(1, 30), (0, 3)]), "back again": dict(row=[(0, 3), (0, 2)])})
def the_last_setter_counts(t, row):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 2), plus(t, x, 10)])
    executable = t.instantiate(graph)
    for place, a in row:
        t.cudaGraphExecKernelNodeSetParams(executable, nodes[place], t.axpy_params(x, t.ones, a))
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A change reaches one executable: not its brothers, and not the graph.", control="nothing set",
          variants={"nothing set": dict(change=False), "set": dict(change=True)}, each=BOTH)
def a_setter_changes_one_executable(t, change, made):
    stream, x = t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 2), plus(t, x, 10)], made)
    one, two = t.instantiate(graph), t.instantiate(graph)
    if change:
        t.cudaGraphExecKernelNodeSetParams(one, nodes[0], t.axpy_params(x, t.ones, 7))
    for executable in (one, two, t.instantiate(graph)):
        run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A kernel between allocation and free can be set.", control="nothing set",
          variants={"nothing set": dict(change=False), "set": dict(change=True)})
def a_setter_in_an_allocating_graph(t, change):
    stream, x = t.stream(), t.device([0] * 4)
    graph = allocating(t, x, 3)
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    if change:
        nodes = in_order(t, graph)
        ptr = int(t.cudaGraphMemAllocNodeGetParams(nodes[0])[1].dptr)
        t.cudaGraphExecKernelNodeSetParams(executable, nodes[1], t.kernel_params(kernels.fill, 1, 32, ptr, 7.0, 4))
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.recovered(stream)
