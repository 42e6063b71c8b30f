"""What judges do before they launch a learner's graph: keep the stream busy, and see that no node reaches past a buffer."""
from labkit import graph as graphs
from labkit.backend import cudart
from labkit.cases.bench import Trouble
from labkit.errors import ok
from labkit.kernels import launch
from labkit.labs.kernels import occupy
from labkit.readback import names
from labkit.update import launched

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
BUSY_MS = 20


def busy(t, *used):
    """Give the stream something to do for a while: whoever does not wait is seen. used: kernels to be loaded before."""
    for kernel in (occupy, *used):
        _ = kernel.func
    ok(launch(t.stream, occupy, 1, 1, BUSY_MS))


def beyond(graph, **buffers):
    """None, or in words which node would reach past a buffer. buffers: all that the graph may touch, by name."""
    for node in graphs.nodes(graph):
        kind, reaches = graphs.kind(node), []
        if kind == "Kernel":
            found = launched(node)
            kind, values = found.kernel.name, dict(zip(names(found.kernel), found.args))
            threads = found.grid[0] * found.block[0]
            reaches = [(name, int(values[name]), 4 * max(0, min(threads, int(values.get("n", 0))))) for name, p in zip(values, found.kernel.params) if p.pointer]
        elif kind == "Memset":
            found = ok(cudart.cudaGraphMemsetNodeGetParams(node))
            reaches = [("its target", int(found.dst), int(found.width) * int(found.elementSize) * max(1, int(found.height)))]
        for name, address, count in reaches:
            home = next((b for b in buffers.values() if b.ptr <= address < b.ptr + b.nbytes), None)
            if home is None:
                return f"{kind} has an address as {name} that lies in none of the buffers: {', '.join(buffers)}."
            if address + count > home.ptr + home.nbytes:
                return f"{kind} goes over {count} bytes from {name} on; {home.ptr + home.nbytes - address} are there."
    return None


def within(t, graph, **buffers):
    """Trouble where a node of the graph would reach past a buffer: seen before it is launched."""
    wrong = beyond(graph, **buffers)
    if wrong:
        raise Trouble(f"{t.what}:\n  expected: a graph that stays within its buffers\n  found:    {wrong}")


def captured(t, work):
    """The graph, owned by t, of what work(stream) queues."""
    ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
    work(t.stream)
    return t.own(ok(cudart.cudaStreamEndCapture(t.stream)))
