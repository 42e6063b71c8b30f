"""Wrong answers to exercise 10, and what check() says of each."""
from labkit import cudart, graph, kernel_params, kernels, launched, ok, set_kernel

TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
EXPECT = {
    "only_one__never_on_again": "branches switched on",
    "only_one__switches_the_chosen_off": "branches switched on",
    "only_one__switches_on_only": "branches switched on",
    "only_one__factor_0": "branches switched on",
    "only_one__writes_elsewhere": "branches switched on",
    "only_one__destroys_the_nodes": "a graph with 2",
    "only_one__keeps_the_first": "branches switched on",
    "only_one__also_new_numbers": "expected y",
    "write_to__kernel_setter_for_all": "cudaErrorInvalidValue",
    "write_to__kernels_only": "back for a node of kind",
    "write_to__always_true": "back for a node of kind",
    "write_to__says_nothing": "back for a node of kind",
    "write_to__changes_the_graph": "the buffer of the Kernel node",
    "write_to__the_memset_of_both": "the first buffer of the Memset node",
    "write_to__the_copy_of_both": "the first buffer of the Memcpy node",
    "write_to__memset_to_0": "the buffer of the Memset node",
    "write_to__half_a_copy": "the buffer of the Memcpy node",
    "write_to__copies_at_once": "the buffer of the Memcpy node",
    "write_to__copies_back": "the buffer of the Memcpy node",
}
RIGHT = ("only_one__other_way", "write_to__other_way")


def _switch(executable, node, on):
    ok(cudart.cudaGraphNodeSetEnabled(executable, node, on))


def only_one__never_on_again(executable, branches, chosen):
    for k, node in enumerate(branches):
        if k != chosen:
            _switch(executable, node, 0)


def only_one__switches_the_chosen_off(executable, branches, chosen):
    for k, node in enumerate(branches):
        _switch(executable, node, int(k != chosen))


def only_one__switches_on_only(executable, branches, chosen):
    _switch(executable, branches[chosen], 1)


def only_one__factor_0(executable, branches, chosen):
    for k, node in enumerate(branches):
        if k != chosen:
            ok(set_kernel(executable, node, args={2: 0.0}))


def only_one__writes_elsewhere(executable, branches, chosen):
    """The others run, over no elements."""
    for k, node in enumerate(branches):
        held = launched(node).args
        ok(set_kernel(executable, node, args={3: held[3] if k == chosen else 0}))


def only_one__destroys_the_nodes(executable, branches, chosen):
    for k, node in enumerate(branches):
        if k != chosen:
            ok(cudart.cudaGraphDestroyNode(node))


_first = []


def only_one__keeps_the_first(executable, branches, chosen):
    _first.append(chosen)
    for k, node in enumerate(branches):
        _switch(executable, node, int(k == _first[0]))


def only_one__also_new_numbers(executable, branches, chosen):
    for k, node in enumerate(branches):
        _switch(executable, node, int(k == chosen))
    ok(set_kernel(executable, branches[chosen], args={2: 1.0}))


def only_one__other_way(executable, branches, chosen):
    """Off where it is on, then the chosen one on, with other numbers that mean on."""
    for node in branches:
        if ok(cudart.cudaGraphNodeGetEnabled(executable, node)):
            _switch(executable, node, 0)
    _switch(executable, branches[chosen], True)


def write_to__kernel_setter_for_all(executable, node, target, source):
    ok(set_kernel(executable, node, args={0: target}))
    return True


def write_to__kernels_only(executable, node, target, source):
    if graph.kind(node) != "Kernel":
        return False
    ok(set_kernel(executable, node, args={0: target}))
    return True


def _memset(executable, node, target, value=None):
    params = ok(cudart.cudaGraphMemsetNodeGetParams(node))
    params.dst = target.ptr
    params.value = params.value if value is None else value
    ok(cudart.cudaGraphExecMemsetNodeSetParams(executable, node, params))


def _copy(executable, node, target, source, nbytes):
    ok(cudart.cudaGraphExecMemcpyNodeSetParams1D(executable, node, target.ptr, source.ptr, nbytes, TO_DEVICE))


def _all(executable, node, target, source, value=None, part=1):
    kind = graph.kind(node)
    if kind == "Kernel":
        ok(set_kernel(executable, node, args={0: target}))
    elif kind == "Memset":
        _memset(executable, node, target, value)
    elif kind == "Memcpy":
        _copy(executable, node, target, source, source.nbytes // part)
    return kind in ("Kernel", "Memset", "Memcpy")


def write_to__always_true(executable, node, target, source):
    _all(executable, node, target, source)
    return True


def write_to__says_nothing(executable, node, target, source):
    _all(executable, node, target, source)


def write_to__changes_the_graph(executable, node, target, source):
    if graph.kind(node) == "Kernel":
        ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={0: target})))
        return True
    return _all(executable, node, target, source)


def write_to__memset_to_0(executable, node, target, source):
    return _all(executable, node, target, source, value=0)


def write_to__half_a_copy(executable, node, target, source):
    return _all(executable, node, target, source, part=2)


def write_to__copies_at_once(executable, node, target, source):
    if graph.kind(node) == "Memcpy":
        ok(cudart.cudaMemcpy(target.ptr, source.ptr, source.nbytes, TO_DEVICE))
        return True
    return _all(executable, node, target, source)


def write_to__copies_back(executable, node, target, source):
    if graph.kind(node) == "Memcpy":
        _copy(executable, node, source, target, source.nbytes)
        return True
    return _all(executable, node, target, source)


def write_to__other_way(executable, node, target, source):
    """Parameters made anew from what the graph says, and a table instead of questions."""
    def kernel():
        held = launched(node)
        ok(cudart.cudaGraphExecKernelNodeSetParams(executable, node, kernel_params(kernels.fill, held.grid, held.block, target, *held.args[1:])))

    def memset():
        held, params = ok(cudart.cudaGraphMemsetNodeGetParams(node)), cudart.cudaMemsetParams()
        params.dst, params.elementSize, params.width, params.height, params.pitch, params.value = target.ptr, 1, target.nbytes, 1, 0, held.value
        ok(cudart.cudaGraphExecMemsetNodeSetParams(executable, node, params))
    ways = {"Kernel": kernel, "Memset": memset, "Memcpy": lambda: _copy(executable, node, target, source, target.nbytes)}
    way = ways.get(graph.kind(node))
    if way is not None:
        way()
    return way is not None


def write_to__the_memset_of_both(executable, node, target, source):
    if graph.kind(node) == "Memset":
        params = ok(cudart.cudaGraphMemsetNodeGetParams(node))
        params.dst = target.ptr
        ok(cudart.cudaGraphMemsetNodeSetParams(node, params))
    return _all(executable, node, target, source)


def write_to__the_copy_of_both(executable, node, target, source):
    if graph.kind(node) == "Memcpy":
        ok(cudart.cudaGraphMemcpyNodeSetParams1D(node, target.ptr, source.ptr, source.nbytes, TO_DEVICE))
    return _all(executable, node, target, source)
