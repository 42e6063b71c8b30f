"""Nodes whose memory was freed, before their graph became an executable and after."""
from tests.conformance.harness import Buffer, scenario

NODES = ("copy from it", "copy to it", "memset", "kernel")


def _graph(t, stream, node, x, buffer):
    """A graph of one node that uses a buffer; x is the other end of a copy, and what the kernel adds to."""
    t.begin(stream)
    if node == "kernel":
        t.axpy(stream, x, buffer, 1)
    elif node == "memset":
        t.cudaMemsetAsync(buffer.ptr, 0, buffer.nbytes, stream)
    else:
        ends = (x.ptr, buffer.ptr) if node == "copy from it" else (buffer.ptr, x.ptr)
        t.cudaMemcpyAsync(*ends, buffer.nbytes, t.copies("DeviceToDevice"), stream)
    return t.end(stream)


@scenario("A node on memory that was freed: instantiating takes a kernel, refuses a memset while nobody owns the memory, and dies of a copy.",
          control="kept", variants={"kept": dict(when="never"), "freed": dict(when="captured"), "freed and taken": dict(when="captured", taken=True),
                                    "freed and taken when instantiated": dict(when="instantiated", taken=True)},
          each={"node": NODES}, isolated=("freed", "freed and taken", "freed and taken when instantiated"), open=True)
def a_node_on_freed_memory(t, when, node, taken=False):
    stream, x = t.stream(), t.device([0] * 4)
    buffer = t.device([1, 2, 3, 4])

    def give_up(step):
        if step == when:
            t.cudaFree(buffer.ptr)
        if step == when and taken:
            t.note("taken", int(t._put("cudaMalloc", buffer.nbytes)) == buffer.ptr)
            t.write(Buffer(buffer.ptr, 4), [5, 6, 7, 8])
    graph = _graph(t, stream, node, x, buffer)
    give_up("captured")
    executable = t.instantiate(graph)
    give_up("instantiated")
    if executable is not None and (when == "never" or taken):
        t.cudaGraphLaunch(executable, stream)
        t.values(x, stream)
    t.recovered(stream)


@scenario("An update from a graph with a node on freed memory: it takes a kernel, refuses a memset, and dies of a copy.", control="kept",
          variants={"kept": dict(free=False), "freed": dict(free=True)}, each={"node": NODES}, isolated=("freed",), open=True)
def an_update_to_freed_memory(t, free, node):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([2] * 4)
    buffer = t.device([1, 2, 3, 4])
    executable, newer = t.instantiate(_graph(t, stream, node, x, y)), _graph(t, stream, node, x, buffer)
    if free:
        t.cudaFree(buffer.ptr)
    t.exec_update(executable, newer)
    if not free:
        t.cudaGraphLaunch(executable, stream)
        t.values(x, stream)
    t.recovered(stream)
