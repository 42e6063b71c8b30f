"""The capture simulator: the CUDA Runtime API's streams, memory and graphs in Python and NumPy.

`labkit.sim.runtime` stands in for `cuda.bindings.runtime`: same names, arguments, tuples and codes.
It is a machine of rules, not of speed: it has no clock, and it knows no kernel but its NumPy twin.
Not here: textures, other devices, interprocess memory, graphics.
"""
from . import capture, engine, execute, graph, kernels, runtime, stream as streams, update, user_object, values, work
from .values import line
from .world import Refused, world


def register(kernel):
    """The handle (cudaKernel_t) of a labkit Kernel: what `launch` and cudaKernelNodeParams.func take."""
    with world.lock:
        return values.cudaKernel_t(kernels.register(kernel))


def launch(stream, func, grid, block, shared, values_):
    """Launch a kernel: (code,). grid, block: (x, y, z); shared: bytes; values_: Kernel.pack's output.
    Stands for cuLaunchKernel, so it leaves the runtime's last error alone."""
    at = runtime._names.Stream.convert(stream)
    try:
        if engine.in_callback():
            raise Refused("NotPermitted")
        if world.broken:
            raise Refused(world.broken)
        with world.lock:
            queue = streams.stream_of(at)
            capture.guard("work", queue)
            kernel = kernels.kernel_of(int(func))
            streams.launch(queue, lambda: work.Kernel(kernel, grid, block, shared, values_))
    except Refused as no:
        return (values.error(no.code),)
    return (values.enum("cudaError_t")(0),)


def launched(node):
    """(Kernel, grid, block, shared, values) of a kernel node of a graph, by its handle; grid, block: (x, y, z).

    values: what Kernel.pack gives. Raises Refused("InvalidValue") for a node of another kind.
    """
    at = runtime._names.Node.convert(node)
    with world.lock:
        job = graph.node_of(at, "Kernel").work
    return job.kernel, job.grid, job.block, job.shared, job.values


def exec_update(executable, graph_):
    """Update an executable with a graph, both by handle: (code, result, error node, from node).

    result: a number of cudaGraphExecUpdateResult; the nodes are handles of the graph, or 0. Stands for
    cuGraphExecUpdate, so it leaves the runtime's last error alone.
    """
    names = runtime._names
    at, given = names.Exec.convert(executable), names.Graph.convert(graph_)
    try:
        if engine.in_callback():
            raise Refused("NotPermitted")
        with world.lock:
            update.update(execute.exec_of(at), graph.graph_of(given))
    except update.CannotUpdate as no:
        return (values.error(no.code), no.result, *[node.handle if node else 0 for node in (no.node, no.other)])
    except Refused as no:
        return (values.error(no.code), update.ERROR, 0, 0)
    finally:
        user_object.destroy()
    return (values.enum("cudaError_t")(0), 0, 0, 0)


def set_line(number):
    """Speak the 12.9 line (12) or the 13.x line (13) of the bindings from now on."""
    values.set_line(number)
    runtime._speak()


def reset():
    """Forget the whole world: streams, memory, graphs, captures, last errors, thread modes. For tests."""
    world.reset()
