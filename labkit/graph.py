"""Read a graph and the state of a capture: one form over the CUDA 12 and 13 bindings.

Eight calls differ between the two lines: 13.x hands out edge data with every edge. Lessons use
these functions in their place. Each checks its code and raises LabError. `cudart=` names another
runtime module; leave it alone outside the kit's own tests.
Stands for: CUDA Runtime API, Graph Management and Stream Management.
"""
import os
import tempfile
from typing import NamedTuple

from labkit.backend import cudart as _chosen
from labkit.errors import LabError, ok

NO_HANDLE = (str, bytes, float, list, tuple, set, dict)    # what a handle never is


class CaptureState(NamedTuple):
    """status: "None", "Active" or "Invalidated". id: same for all streams of one capture.
    graph: the growing graph. dependencies: the nodes that the stream's next node will follow."""
    status: str
    id: int
    graph: object
    dependencies: list


def _line13(cudart):
    return cudart.cudaRuntimeGetVersion()[1] >= 13000


def _handle(handle, what="graph"):
    """The handle itself, or LabError for what can't be one (the bindings would raise a TypeError of their own)."""
    if isinstance(handle, NO_HANDLE):
        raise LabError(f"A {type(handle).__name__} was passed where a {what} is expected: {handle!r:.40}.",
                       "A handle is what a call of cudart returned beside its code.", f"Pass the {what} itself, unpacked with ok(...).")
    return handle


def _counted(call, handle, what="graph"):
    """CUDA's two-step lists: ask how many, then ask for that many."""
    _handle(handle, what)
    count = ok(call(handle))[-1]
    return ok(call(handle, count)) if count else tuple([] for _ in ok(call(handle)))


def nodes(graph, cudart=_chosen):
    """The graph's node handles, in the order CUDA gives them."""
    return list(_counted(cudart.cudaGraphGetNodes, graph)[0])


def kinds(graph, cudart=_chosen):
    """The kind of each node: "Kernel", "Memcpy", "Memset", "Host", "MemAlloc", "Graph" (a child) ..."""
    return [kind(node, cudart) for node in nodes(graph, cudart)]


def kind(node, cudart=_chosen):
    """The kind of one node, as a word."""
    return ok(cudart.cudaGraphNodeGetType(_handle(node, "node"))).name.removeprefix("cudaGraphNodeType")


def edges(graph, cudart=_chosen):
    """The edges as sorted pairs (i, j) of positions in nodes(graph): j runs after i."""
    place = {int(node): i for i, node in enumerate(nodes(graph, cudart))}
    from_, to = _counted(cudart.cudaGraphGetEdges, graph)[:2]
    return sorted((place[int(a)], place[int(b)]) for a, b in zip(from_, to))


def dependencies(node, cudart=_chosen):
    """The nodes that must finish before `node` starts."""
    return list(_counted(cudart.cudaGraphNodeGetDependencies, node, "node")[0])


def dependents(node, cudart=_chosen):
    """The nodes that wait for `node`."""
    return list(_counted(cudart.cudaGraphNodeGetDependentNodes, node, "node")[0])


def capture_state(stream, cudart=_chosen):
    """What the stream is capturing, without disturbing it (CaptureState)."""
    status, id_, graph, deps = ok(cudart.cudaStreamGetCaptureInfo(_handle(stream, "stream")))[:4]
    word = status.name.removeprefix("cudaStreamCaptureStatus")
    return CaptureState(word, id_, graph, list(deps)) if word == "Active" else CaptureState(word, 0, None, [])


def update_capture_dependencies(stream, nodes, replace=False, cudart=_chosen):
    """Let the stream's next node follow `nodes` too, or, with replace=True, only `nodes`."""
    flags = getattr(cudart, "cudaStreamUpdateCaptureDependenciesFlags")
    flag = int(flags.cudaStreamSetCaptureDependencies if replace else flags.cudaStreamAddCaptureDependencies)
    extra = (None,) if _line13(cudart) else ()
    ok(cudart.cudaStreamUpdateCaptureDependencies(stream, nodes, *extra, len(nodes), flag))


def add_dependencies(graph, from_, to, cudart=_chosen):
    """Add the edges from_[k] -> to[k]."""
    extra = (None,) if _line13(cudart) else ()
    ok(cudart.cudaGraphAddDependencies(graph, from_, to, *extra, len(from_)))


def remove_dependencies(graph, from_, to, cudart=_chosen):
    """Remove the edges from_[k] -> to[k]."""
    extra = (None,) if _line13(cudart) else ()
    ok(cudart.cudaGraphRemoveDependencies(graph, from_, to, *extra, len(from_)))


def add_node(graph, dependencies, params, cudart=_chosen):
    """Add a node described by a cudaGraphNodeParams; returns its handle."""
    extra = (None,) if _line13(cudart) else ()
    return ok(cudart.cudaGraphAddNode(graph, dependencies, *extra, len(dependencies), params))


def dot(graph, cudart=_chosen):
    """The graph in the DOT language, as CUDA writes it (cudaGraphDebugDotPrint)."""
    _handle(graph)
    handle, path = tempfile.mkstemp(suffix=".dot")
    os.close(handle)
    try:
        ok(cudart.cudaGraphDebugDotPrint(graph, path.encode(), 0))
        with open(path) as file:
            return file.read()
    finally:
        os.unlink(path)
