"""Wrong answers to exercise 14, and what check() says of each."""
import numpy as np

from labkit import cudart, keep_alive, kernels, launch, ok, to_device

GLOBAL, UP = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
EXPECT = {
    "keep_buffer__nobody_holds_it": "nobody holds it",
    "keep_buffer__keeps_the_block_only": "nobody holds it",
    "keep_buffer__keeps_the_address": "keep_alive() got",
    "keep_buffer__returns_it_too": "expected: the graph, and nothing else",
    "keep_buffer__in_a_global_list": "something else still holds it",
    "keep_buffer__in_both": "something else still holds it",
    "keep_buffer__a_buffer_of_its_own": "it reads other memory",
    "keep_buffer__kept_by_another_graph": "nobody holds it",
    "keep_buffer__adds_at_once": "found    a graph with no nodes",
    "keep_buffer__other_numbers": "expected y",
    "keep_buffer__only_a_part": "expected y",
    "keep_buffer__only_the_executable": "expected back: graph",
    "pinned_batch__nobody_holds_it": "nobody holds it",
    "pinned_batch__keeps_the_array_only": "nobody holds it",
    "pinned_batch__in_a_global_list": "something else still holds it",
    "pinned_batch__pageable_memory": "an array in other memory",
    "pinned_batch__the_owner_back": "beside the graph the array",
    "pinned_batch__no_array": "expected: the graph and the array",
    "pinned_batch__copy_of_the_array": "an array in other memory",
    "pinned_batch__bytes_and_elements": "bytes, all of y",
    "pinned_batch__twice_the_bytes": ("bytes, all of y", "1 cudaErrorInvalidValue"),
    "pinned_batch__destroyed": "a graph that the function has destroyed",
    "keep_buffer__behind_the_end": "a graph that stays within its buffers",
    "keep_buffer__destroyed": "a graph that the function has destroyed",
    "pinned_batch__copies_at_once": "found    a graph with no nodes",
    "pinned_batch__reads_another_place": "a copy from or to another address",
}
RIGHT = ("keep_buffer__a_box_around_it", "keep_buffer__kept_while_it_captures", "pinned_batch__array_made_anew")
_here = []


def _added(stream, y, block, count=None):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, block, 1.0, count or y.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def keep_buffer__nobody_holds_it(stream, y, values, tensor):
    return _added(stream, y, tensor(values).block)


def keep_buffer__keeps_the_block_only(stream, y, values, tensor):
    mine = tensor(values)
    graph = _added(stream, y, mine.block)
    keep_alive(graph, mine.block)
    return graph


def keep_buffer__keeps_the_address(stream, y, values, tensor):
    mine = tensor(values)
    graph = _added(stream, y, mine.block)
    keep_alive(graph, mine.block.ptr)
    return graph


def keep_buffer__returns_it_too(stream, y, values, tensor):
    mine = tensor(values)
    return _added(stream, y, mine.block), mine


def keep_buffer__in_a_global_list(stream, y, values, tensor):
    _here[:] = [tensor(values)]
    return _added(stream, y, _here[0].block)


def keep_buffer__in_both(stream, y, values, tensor):
    graph = keep_buffer__in_a_global_list(stream, y, values, tensor)
    keep_alive(graph, _here[0])
    return graph


def keep_buffer__a_buffer_of_its_own(stream, y, values, tensor):
    _here[:] = [to_device(values)]
    return _added(stream, y, _here[0])


def keep_buffer__kept_by_another_graph(stream, y, values, tensor):
    mine, other = tensor(values), ok(cudart.cudaGraphCreate(0))
    graph = _added(stream, y, mine.block)
    keep_alive(other, mine)
    ok(cudart.cudaGraphDestroy(other))
    return graph


def keep_buffer__adds_at_once(stream, y, values, tensor):
    mine = tensor(values)
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, mine.block, 1.0, y.size))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    keep_alive(graph, mine)
    return graph


def _held(stream, y, mine, count=None):
    graph = _added(stream, y, mine.block, count)
    keep_alive(graph, mine)
    return graph


def keep_buffer__other_numbers(stream, y, values, tensor):
    return _held(stream, y, tensor(values + 1))


def keep_buffer__only_a_part(stream, y, values, tensor):
    return _held(stream, y, tensor(values), y.size - 1)


def keep_buffer__only_the_executable(stream, y, values, tensor):
    return ok(cudart.cudaGraphInstantiate(_held(stream, y, tensor(values)), 0))


def keep_buffer__a_box_around_it(stream, y, values, tensor):
    """A function that closes over the Tensor, in a list."""
    mine = tensor(values)
    graph = _added(stream, y, mine.block)
    keep_alive(graph, [lambda: mine])
    return graph


def keep_buffer__kept_while_it_captures(stream, y, values, tensor):
    """The graph is made first; capturing adds to it."""
    graph, mine = ok(cudart.cudaGraphCreate(0)), tensor(values)
    keep_alive(graph, mine)
    ok(cudart.cudaStreamBeginCaptureToGraph(stream, graph, [], None, 0, GLOBAL))
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, mine.block, 1.0, y.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def _copied(stream, y, address, size=None):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(y.ptr, address, size or y.nbytes, UP, stream))
    return ok(cudart.cudaStreamEndCapture(stream))


def pinned_batch__nobody_holds_it(stream, y, pinned):
    array = pinned().array
    return _copied(stream, y, array.ctypes.data), array


def pinned_batch__keeps_the_array_only(stream, y, pinned):
    array = pinned().array
    graph = _copied(stream, y, array.ctypes.data)
    keep_alive(graph, array)
    return graph, array


def pinned_batch__in_a_global_list(stream, y, pinned):
    _here[:] = [pinned()]
    return _copied(stream, y, _here[0].array.ctypes.data), _here[0].array


def pinned_batch__pageable_memory(stream, y, pinned):
    array = np.zeros(y.size, np.float32)
    graph = _copied(stream, y, array.ctypes.data)
    keep_alive(graph, array)
    return graph, array


def pinned_batch__the_owner_back(stream, y, pinned):
    owner = pinned()
    return _copied(stream, y, owner.array.ctypes.data), owner


def pinned_batch__no_array(stream, y, pinned):
    owner = pinned()
    graph = _copied(stream, y, owner.array.ctypes.data)
    keep_alive(graph, owner)
    return graph


def pinned_batch__copy_of_the_array(stream, y, pinned):
    owner = pinned()
    graph = _copied(stream, y, owner.array.ctypes.data)
    keep_alive(graph, owner)
    return graph, owner.array.copy()


def pinned_batch__bytes_and_elements(stream, y, pinned):
    owner = pinned()
    graph = _copied(stream, y, owner.array.ctypes.data, y.size)
    keep_alive(graph, owner)
    return graph, owner.array


def pinned_batch__twice_the_bytes(stream, y, pinned):
    owner = pinned()
    graph = _copied(stream, y, owner.array.ctypes.data, 2 * y.nbytes)
    keep_alive(graph, owner)
    return graph, owner.array


def pinned_batch__destroyed(stream, y, pinned):
    owner = pinned()
    graph = _copied(stream, y, owner.array.ctypes.data)
    keep_alive(graph, owner)
    ok(cudart.cudaGraphDestroy(graph))
    return graph, owner.array


def keep_buffer__behind_the_end(stream, y, values, tensor):
    mine = tensor(values)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, -(-y.nbytes // 256), 256, y, mine.block, 1.0, y.nbytes))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    keep_alive(graph, mine)
    return graph


def keep_buffer__destroyed(stream, y, values, tensor):
    graph = _held(stream, y, tensor(values))
    ok(cudart.cudaGraphDestroy(graph))
    return graph


def pinned_batch__copies_at_once(stream, y, pinned):
    owner = pinned()
    ok(cudart.cudaMemcpy(y.ptr, owner.array.ctypes.data, y.nbytes, UP))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    graph = ok(cudart.cudaStreamEndCapture(stream))
    keep_alive(graph, owner)
    return graph, owner.array


def pinned_batch__reads_another_place(stream, y, pinned):
    owner = pinned()
    graph = _copied(stream, y, owner.array.copy().ctypes.data)
    keep_alive(graph, owner)
    return graph, owner.array


def pinned_batch__array_made_anew(stream, y, pinned):
    """A view of the same memory, and the owner held through a tuple."""
    owner = pinned()
    graph = _copied(stream, y, owner.array.ctypes.data)
    keep_alive(graph, (owner,))
    return graph, owner.array[:]
