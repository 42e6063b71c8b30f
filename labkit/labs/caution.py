"""What judges do before they launch a learner's graph: keep the stream busy, read each node's arguments, and see that none reaches past a buffer or runs beside another."""
import contextlib

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.cases.bench import Trouble
from labkit.errors import ok
from labkit.kernels import launch
from labkit.labs.kernels import occupy
from labkit.labs.listening import listening
from labkit.labs.shapes import Found
from labkit.readback import names
from labkit.update import launched

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
BUSY_MS = 20


def busy(t, *used):
    """Give the stream something to do for a while: whoever does not wait is seen. used: kernels to be loaded before."""
    for kernel in (occupy, *used):
        _ = kernel.func
    ok(launch(t.stream, occupy, 1, 1, BUSY_MS))


@contextlib.contextmanager
def busy_after(t, function, name="cudaGraphLaunch", count=1):
    """Give the stream something to do behind so many calls of this name by the function: whoever waits only before it is seen, on a fast GPU too."""
    left = [count]

    def heard(name, call, given):
        answer = call()
        left[0] -= not int(answer[0])
        if left == [0] and graphs.capture_state(t.stream).status == "None":
            left[0] = -1
            busy(t)
        return answer
    with listening((name,), heard, function):
        yield


def beyond(graph, **buffers):
    """None, or in words which node would reach past a buffer. buffers: all that the graph may touch, by name."""
    for node in graphs.nodes(graph):
        kind, reaches = graphs.kind(node), []
        if kind == "Kernel":
            found = launched(node)
            kind, values = found.kernel.name, dict(zip(names(found.kernel), found.args))
            threads = found.grid[0] * found.block[0]
            reaches = [(name, int(values[name]), 4 * max(0, _floats(kind, name, values, threads))) for name, p in zip(values, found.kernel.params) if p.pointer]
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


def _floats(kernel, name, values, threads):
    """How many floats a kernel uses, from a pointer on."""
    if kernel == "dense":
        rows, inner, cols = (int(values[size]) for size in ("rows", "inner", "cols"))
        return {"y": min(threads, rows * cols), "x": rows * inner, "w": inner * cols}[name]
    return min(threads, int(values.get("n", 0)))


def within(t, graph, **buffers):
    """Trouble where a node of the graph would reach past a buffer: seen before it is launched."""
    wrong = beyond(graph, **buffers)
    if wrong:
        raise Trouble(f"{t.what}:\n  expected: a graph that stays within its buffers\n  found:    {wrong}")


def whole(t, node, size=None, why=""):
    """Trouble unless a kernel goes over so many elements (all of t.size), each once: its last argument, where it is a number, and its threads."""
    found, size = launched(node), t.size if size is None else size
    name, threads = found.kernel.name, found.grid[0] * found.block[0]
    if not found.kernel.params[-1].pointer:
        t.want(int(found.args[-1]) == size, f"{names(found.kernel)[-1]} of {name} is {size}", f"{int(found.args[-1])}")
    t.want(threads >= size, f"at least {size} thread{'s' * (size != 1)} of {name}{why}", f"{threads}")
    row = (*found.grid[1:], *found.block[1:]) == (1, 1, 1, 1)
    t.want(row, f"the threads of {name} in one row: one number each as grid and block", f"grid {found.grid}, block {found.block}")


def as_asked(t, node, *ways, **buffers):
    """Trouble unless a kernel goes over all elements and has these arguments, n left out: as in "x, 1", or as in another of the ways."""
    whole(t, node)
    work, places = launched(node), {buffer.ptr: name for name, buffer in buffers.items()}
    given = ", ".join(places.get(int(value), "another address") if p.pointer else f"{value:g}" for value, p in zip(work.args[:-1], work.kernel.params))
    t.want(given in ways, f"{work.kernel.name}({ways[0]}, n)", f"{work.kernel.name}({given}, n)")


def captured(t, work):
    """The graph, owned by t, of what work(stream) queues."""
    ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
    work(t.stream)
    return t.own(ok(cudart.cudaStreamEndCapture(t.stream)))


def side_by_side(graph):
    """None, or in words which two nodes of a graph do not wait for one another, where each needs what the last one wrote."""
    found = Found(graph)
    count = len(found.labels)
    pair = next(((a, b) for a in range(count) for b in range(a + 1, count) if b not in found.paths[a] and a not in found.paths[b]), None)
    return pair and f"Two of its nodes, {found.labels[pair[0]]} and {found.labels[pair[1]]}, run side by side: neither waits for the other."
