"""Change what an executable graph does: one node, many at once, or all of it, with the reason when CUDA refuses.

    set_kernel(executable, node, args={2: 3.0})     # all as the graph says, but args[2] is 3.0
    launched(node)                                  # axpy<<<(4, 1, 1), (256, 1, 1)>>>(0x7f..., 0x7f..., 2.0, 1000)
    err, why = exec_update(executable, graph)       # NodeTypeChanged at node 1 (Memset)
    copy = prepare_update(graph, {node: p})         # then cudart.cudaGraphExecUpdate(executable, copy), as often as you like

`launched` and `exec_update` ask the driver, since the runtime's own calls fall short from Python: one does
not name kernels that were launched through the driver, the other drops the reason when it fails.
`cudart=` names another runtime module; leave it alone outside the kit's own tests.
"""
import ctypes
from functools import lru_cache

import numpy as np

from labkit import driver, graph as graphs, kernels
from labkit.backend import cudart as _chosen
from labkit.errors import LabError, ok
from labkit.params import KernelParams, kernel_params
from labkit.reasons import UpdateResult


# ---- what a node was launched with ----------------------------------------------------------------

def launched(node, cudart=_chosen):
    """What a kernel node of a graph was launched with, as kernel_params gives it: pointers as addresses, numbers as plain numbers.

    Raises LabError for a node that is no kernel node, or whose kernel labkit did not load.
    Stands for: CUDA Driver API, cuGraphKernelNodeGetParams.
    """
    node = _handle("launched()", "node", node)
    code, kind = _kind(node, cudart)
    if kind != "Kernel":
        raise LabError(f"launched() got a node of kind {kind}." if kind else "launched() got a handle that is no node.",
                       "Only a kernel node was launched with a kernel.", "Ask graph.kinds(graph) which nodes are kernels.", code)
    kernel, grid, block, shared, args = (_from_simulator if kernels.is_simulator(cudart) else _from_driver)(node, cudart)
    return kernel_params(kernel, grid, block, *args, shared=shared, cudart=cudart)


def _kind(node, cudart):
    """(None, the kind of a node), or (the code that refused to tell, "")."""
    code, kind = cudart.cudaGraphNodeGetType(node)
    return (code, "") if int(code) else (None, kind.name.removeprefix("cudaGraphNodeType"))


def _from_simulator(node, cudart):
    from labkit import sim
    kernel, grid, block, shared, values = sim.launched(node)
    return kernel, grid, block, shared, [v.item() if isinstance(v, np.generic) else v for v in values]


def _from_driver(node, cudart):
    from cuda.bindings import driver as cuda
    kernels.give_context(cudart)
    code, found = cuda.cuGraphKernelNodeGetParams(node)
    kernel = None if int(code) else _loaded(int(found.kern), int(found.func))
    if kernel is None or kernel.params and not int(found.kernelParams):
        raise LabError("launched() got a kernel node whose kernel labkit did not load.",
                       "Another package launched it, so the types of its arguments are unknown.",
                       "Keep the parameters that you launch with.", cudart.cudaError_t(int(code)) if int(code) else None)
    return (kernel, (found.gridDimX, found.gridDimY, found.gridDimZ), (found.blockDimX, found.blockDimY, found.blockDimZ),
            found.sharedMemBytes, kernel.read(int(found.kernelParams)))


_functions = {}                                            # CUfunction as int: the cudaKernel_t that it is in this context


def _loaded(*handles):
    """The Kernel behind one of these handles (CUkernel or CUfunction; 0 is none), or None. Stands for: cuKernelGetFunction."""
    ours = kernels.on_gpu
    if not any(handle in ours for handle in handles):
        from cuda.bindings import driver as cuda
        for kernel in ours.keys() - set(_functions.values()):
            code, function = cuda.cuKernelGetFunction(kernel)
            if not int(code):
                _functions[int(function)] = kernel
    return next((ours[kernel] for kernel in (_functions.get(handle, handle) for handle in handles) if kernel in ours), None)


def set_kernel(executable, node, kernel=None, grid=None, block=None, args=None, shared=None, cudart=_chosen):
    """Let a kernel node run in this executable as the graph says, with the named parts changed: (err,), like every call of cudart.

    args: all of them as a tuple, or {position: new value}. What earlier calls changed on this node does not count: the graph's own
    node is where it starts. Raises LabError as kernel_params and launched do; what CUDA refuses (another graph's node, another
    kind of node, an impossible size) comes back as its code. Stands for: CUDA Runtime API, cudaGraphExecKernelNodeSetParams.
    """
    executable, node = _handle("set_kernel()", "executable", executable), _handle("set_kernel()", "node", node)
    if _kind(node, cudart)[1] != "Kernel":                 # CUDA is the one to say no: any parameters will do
        return cudart.cudaGraphExecKernelNodeSetParams(executable, node, kernel_params(kernels.fill, 1, 1, 0, 0.0, 0, cudart=cudart))
    changed = launched(node, cudart).but(kernel, grid, block, args, shared)
    return cudart.cudaGraphExecKernelNodeSetParams(executable, node, changed)


# ---- many nodes in one call ----------------------------------------------------------------------

def prepare_update(graph, params, cudart=_chosen):
    """A copy of `graph` in which these kernel nodes have these parameters, to update an executable with in one call: cudaGraph_t.

        copy = prepare_update(graph, {node: p for node in graph_nodes})
        ok(cudart.cudaGraphExecUpdate(executable, copy))

    params: {kernel node of `graph`: kernel_params}. Every other node is as in `graph`, and the update sets it to that. `graph` itself
    does not change. CUDA copies the arguments, not the buffers they point to; destroy the copy with cudaGraphDestroy in the end.
    Raises LabError for a node that is no kernel node of `graph`, for anything but kernel_params, and for what CUDA refuses:
    a graph with memory nodes (NotSupported), an impossible size (InvalidValue). No copy is left then.
    Stands for: CUDA Runtime API, cudaGraphClone, cudaGraphNodeFindInClone, cudaGraphKernelNodeSetParams.
    """
    graph = _handle("prepare_update()", "graph", graph)
    if not isinstance(params, dict):
        raise LabError(f"prepare_update() got {type(params).__name__} as its parameters.", "It is told which node gets which.",
                       "Write {node: kernel_params(...)}, a dict.")
    place = {int(node): i for i, node in enumerate(graphs.nodes(graph, cudart))}
    for node, p in params.items():
        handle = _handle("prepare_update()", "node", node)
        if handle not in place:
            raise LabError(f"prepare_update() got {node!r:.60}, which is no node of this graph.",
                           "A node belongs to the one graph that it was made in.", "Take the nodes of the graph that you pass: graph.nodes(graph).")
        kind = graphs.kind(node, cudart)
        if kind != "Kernel":
            raise LabError(f"prepare_update() got parameters for node {place[handle]} ({kind}).",
                           "They are for kernel nodes only.", "Ask graph.kinds(graph) which nodes are kernels.")
        if not isinstance(p, KernelParams):
            raise LabError(f"prepare_update() got {type(p).__name__} for node {place[handle]}.", "A kernel node gets what kernel_params() made.",
                           "Write {node: kernel_params(kernel, grid, block, *args)}.")
    copy = ok(cudart.cudaGraphClone(graph))
    try:
        for node, p in params.items():
            ok(cudart.cudaGraphKernelNodeSetParams(ok(cudart.cudaGraphNodeFindInClone(node, copy)), p))
    except BaseException:
        cudart.cudaGraphDestroy(copy)
        raise
    return copy


# ---- the whole graph, and why not -----------------------------------------------------------------

def exec_update(executable, graph, cudart=_chosen):
    """Let the executable do what `graph` says, node by node: (err, UpdateResult). With ok() a refusal is a LabError that holds the reason.

    After a refusal the executable is as it was. Stands for: CUDA Runtime API, cudaGraphExecUpdate.
    """
    executable, graph = _handle("exec_update()", "executable", executable), _handle("exec_update()", "graph", graph)
    if kernels.is_simulator(cudart):
        from labkit import sim
        code, number, *at = sim.exec_update(executable, graph)
    else:
        kernels.give_context(cudart)
        found = _Info()
        code = cudart.cudaError_t(_driver_update()(executable, graph, ctypes.byref(found)))
        number, at = found.result, (found.node or 0, found.other or 0)
    return code, _result(code, number, at, graph, cudart)


class _Info(ctypes.Structure):
    """CUgraphExecUpdateResultInfo."""
    _fields_ = [("result", ctypes.c_int), ("node", ctypes.c_void_p), ("other", ctypes.c_void_p)]


@lru_cache
def _driver_update():
    call = driver._library().cuGraphExecUpdate_v2
    call.argtypes, call.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_Info)], ctypes.c_int
    return call


SUCCESS = UpdateResult("Success")


def _result(code, number, at, graph, cudart):
    if not int(code):
        return SUCCESS
    number = number or int(cudart.cudaGraphExecUpdateResult.cudaGraphExecUpdateError)     # refused before it looked
    name = cudart.cudaGraphExecUpdateResult(number).name.removeprefix("cudaGraphExecUpdate")
    name = name if name == "Error" else name.removeprefix("Error")
    if not at[0]:
        return UpdateResult(name)
    place = {int(node): i for i, node in enumerate(graphs.nodes(graph, cudart))}
    node, other = [cudart.cudaGraphNode_t(handle) if handle else None for handle in at]
    return UpdateResult(name, node, other, place.get(at[0]), graphs.kind(node, cudart), place.get(at[1]))


_NAMES = {"executable": "graphexec", "graph": "graph", "node": "graphnode"}


@lru_cache
def _is_handle(cls, what):
    name = cls.__name__.removeprefix("cuda").removeprefix("CU").removesuffix("_t").lower()     # cudaGraph_t or CUgraph
    return issubclass(cls, (int, np.integer, type(None))) or name == _NAMES[what] and hasattr(cls, "__int__")


def _handle(call, what, value):
    """The value of a handle as int. Takes what the bindings take (a handle, a number, None), and refuses another kind of handle."""
    if not _is_handle(type(value), what):
        raise LabError(f"{call} got {type(value).__name__} as its {what}.", "Each kind of CUDA object has a handle of its own kind.",
                       "A call of cudart returns a tuple with a code and the handle: unpack it with ok(...). "
                       "If it was unpacked, look at the order of the arguments.")
    return 0 if value is None else int(value)
