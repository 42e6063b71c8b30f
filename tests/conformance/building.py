"""Small graphs for the chapters on updates: chains of nodes, captured or made by hand."""
import time
from dataclasses import dataclass

from labkit import graph as graphs
from labkit import kernels
from labkit.errors import NotSimulated

BOTH = {"made": ("by hand", "captured")}
EXTERNAL = 1


@dataclass
class Step:
    """One node: how a capture makes it, `capture(stream)`, and how it is added by hand, `add(graph, after)`."""
    capture: object
    add: object


def kernel(t, function, grid, block, *arguments, shared=0):
    return Step(lambda stream: t.launch(stream, function, grid, block, *arguments, shared=shared),
                lambda graph, after: t.cudaGraphAddKernelNode(graph, after, len(after),
                                                              t.kernel_params(function, grid, block, *arguments, shared=shared))[1])


def fill(t, x, value):
    """x[:] = value"""
    return kernel(t, kernels.fill, 1, 32, x.ptr, float(value), x.n)


def plus(t, x, a):
    """x[:] += a"""
    return kernel(t, kernels.axpy, 1, 32, x.ptr, ones(t, x.n).ptr, float(a), x.n)


def ones(t, n):
    """A buffer of so many ones, the same one whenever it is asked for."""
    if n <= t.ones.n:
        return t.ones
    kept = vars(t).setdefault("more_ones", {})
    if n not in kept:
        kept[n] = t.device([1] * n)
    return kept[n]


def memset(t, x, value, width=None, element=4, height=1, pitch=0):
    def capture(stream):
        assert element == 1 and height == 1, "a captured memset sets bytes"
        t.cudaMemsetAsync(x.ptr, value, width, stream)

    def add(graph, after):
        params = t.memset_params(x, value, width, element)
        params.height, params.pitch = height, pitch
        return t.cudaGraphAddMemsetNode(graph, after, len(after), params)[1]
    return Step(capture, add)


def copy(t, to, frm, nbytes, way):
    return Step(lambda stream: t.cudaMemcpyAsync(to.ptr, frm.ptr, nbytes, t.copies(way), stream),
                lambda graph, after: t.cudaGraphAddMemcpyNode1D(graph, after, len(after), to.ptr, frm.ptr, nbytes, t.copies(way))[1])


def host(t, function, data=0):
    """A host node, by hand only: what the bindings capture runs once."""
    return Step(None, lambda graph, after: t.cudaGraphAddHostNode(graph, after, len(after), host_params(t, function, data))[1])


def host_params(t, function, data=0):
    """function(data), or no function at all (None)."""
    params = t.raw.cudaHostNodeParams()
    params.fn = t.raw.cudaHostFn_t(t.receiver(function) if function else 0)
    params.userData = data
    t.keep.append(params)
    return params


def record(t, event):
    return Step(lambda stream: t.cudaEventRecordWithFlags(event, stream, EXTERNAL),
                lambda graph, after: t.cudaGraphAddEventRecordNode(graph, after, len(after), event)[1])


def wait(t, event):
    return Step(lambda stream: t.cudaStreamWaitEvent(stream, event, EXTERNAL),
                lambda graph, after: t.cudaGraphAddEventWaitNode(graph, after, len(after), event)[1])


def empty(t):
    return Step(None, lambda graph, after: t.cudaGraphAddEmptyNode(graph, after, len(after))[1])


def child(t, inside):
    return Step(None, lambda graph, after: t.cudaGraphAddChildGraphNode(graph, after, len(after), inside)[1])


def chain(t, steps, made="by hand"):
    """(graph, nodes): the steps one after the other."""
    if made == "captured":
        stream = t.stream()
        t.begin(stream)
        for step in steps:
            step.capture(stream)
        graph = t.end(stream)
        return graph, in_order(t, graph)
    _, graph = t.cudaGraphCreate(0)
    nodes = []
    for step in steps:
        nodes.append(step.add(graph, nodes[-1:]))
    return graph, nodes


def apart(t, steps):
    """(graph, nodes): the steps beside each other."""
    _, graph = t.cudaGraphCreate(0)
    return graph, [step.add(graph, []) for step in steps]


def diamond(t, first, left, right, last):
    """(graph, nodes): first, then left and right beside each other, then last."""
    _, graph = t.cudaGraphCreate(0)
    top = first.add(graph, [])
    sides = [left.add(graph, [top]), right.add(graph, [top])]
    return graph, [top, *sides, last.add(graph, sides)]


def in_order(t, graph):
    """The nodes of a chain, the first one first."""
    places = t._canonical(graph)[2]
    return sorted(graphs.nodes(graph, cudart=t.raw), key=lambda node: places[int(node)])


def allocating(t, x, value, n=None, extra=False, free=True):
    """A captured graph: allocate n floats (4), fill them with value, copy them to x, free them."""
    stream, n = t.stream(), n or 4
    t.begin(stream)
    ptr = int(t.cudaMallocAsync(4 * n, stream)[1])
    more = int(t.cudaMallocAsync(4 * n, stream)[1]) if extra else 0
    t.launch(stream, kernels.fill, 1, max(n, 32), ptr, float(value), n)
    t.cudaMemcpyAsync(x.ptr, ptr, min(4 * n, x.nbytes), t.copies("DeviceToDevice"), stream)
    if more:
        t.cudaFreeAsync(more, stream)
    if free:
        t.cudaFreeAsync(ptr, stream)
    return t.end(stream)


def node_params(t, kind):
    """A cudaGraphNodeParams of a kind ("Kernel", "Memset" ...), to be filled in."""
    params = t.raw.cudaGraphNodeParams()
    params.type = getattr(t.raw.cudaGraphNodeType, f"cudaGraphNodeType{kind}")
    t.keep.append(params)
    return params


def run(t, executable, stream, *buffers):
    """Launch, wait, and write down what the buffers hold; a code that does not come is a refusal too."""
    t.cudaGraphLaunch(executable, stream)
    for buffer in buffers:
        t.values(buffer, stream)


KINDS = ("kernel", "memset", "memcpy", "host", "record", "wait", "child", "empty", "alloc", "free")


def one_of(t, kind, x, y):
    """(graph, node) of one node of a kind."""
    if kind in ("alloc", "free"):
        graph = allocating(t, x, 3)
        return graph, in_order(t, graph)[0 if kind == "alloc" else -1]
    step = {"kernel": lambda: fill(t, x, 2), "memset": lambda: memset(t, x, 0, 4), "memcpy": lambda: copy(t, x, y, 16, "DeviceToDevice"),
            "host": lambda: host(t, lambda data: None), "record": lambda: record(t, t.event()), "wait": lambda: wait(t, t.event()),
            "child": lambda: child(t, chain(t, [fill(t, x, 3)])[0]), "empty": lambda: empty(t)}[kind]()
    graph, nodes = chain(t, [step, plus(t, x, 10)])
    return graph, nodes[0]


def change(t, call, executable, node, x, y):
    """One call that changes (or reads) a node of an executable."""
    if call == "kernel":
        t.cudaGraphExecKernelNodeSetParams(executable, node, t.fill_params(x, 7))
    elif call == "memset":
        t.cudaGraphExecMemsetNodeSetParams(executable, node, t.memset_params(x, 0x40000000, 2))
    elif call == "copy":
        t.cudaGraphExecMemcpyNodeSetParams1D(executable, node, x.ptr, y.ptr, 8, t.copies("DeviceToDevice"))
    elif call == "set enabled":
        t.cudaGraphNodeSetEnabled(executable, node, 0)
    else:
        t.note("enabled", t.cudaGraphNodeGetEnabled(executable, node)[1])


def is_recorded(t, start, event):
    """Write down whether an event was recorded for timing; the time itself is nobody's business."""
    try:
        code = t.raw.cudaEventElapsedTime(start, event)[0].name
    except NotSimulated:  # both are recorded, and the simulator has no clock
        code = "cudaSuccess"
    t.note("recorded", code)


def finishes(t, stream):
    """Write down whether a stream is done within a quarter of a second."""
    for _ in range(50):
        if t.raw.cudaStreamQuery(stream)[0] == 0:
            break
        time.sleep(0.005)
    else:
        t.note("finished", False)
        return
    t.note("finished", True)
