"""Wrong answers to exercise 16, and what check() says of each."""
from labkit import cudart, kernels, launch, ok
from labkit.labs.lab_16 import addresses

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
EXPECT = {
    "producer_and_consumer__producer_frees": "expected a graph with MemAlloc, add",
    "producer_and_consumer__nobody_frees": "expected a graph with axpy, MemFree",
    "producer_and_consumer__all_in_one": "expected a graph with MemAlloc, add",
    "producer_and_consumer__one_graph": "expected: the producer and the consumer, two graphs",
    "producer_and_consumer__wrong_way_round": "expected a graph with MemAlloc, add",
    "producer_and_consumer__each_its_own_block": "expected a graph with axpy, MemFree",
    "producer_and_consumer__freed_before_its_use": "found    a graph with MemFree, axpy",
    "producer_and_consumer__reads_another_block": "x of axpy is the producer's block",
    "producer_and_consumer__size_in_elements": "bytes, as many as x has",
    "producer_and_consumer__block_of_a_pool": "found    a graph with add",
    "producer_and_consumer__the_same_twice": "one graph twice",
    "producer_and_consumer__already_run": "your function has launched the graph",
    "producer_and_consumer__destroyed": "a graph that the function has destroyed",
    "producer_and_consumer__behind_the_end": "a graph that stays within its buffers",
    "launch_order__destroys_them": "a call of cudaGraphDestroy",
    "launch_order__as_they_come": "an order in which each block is allocated before it is freed",
    "launch_order__backwards": "an order in which each block is allocated before it is freed",
    "launch_order__allocators_first": "an order in which each block is allocated before it is freed",
    "launch_order__by_handle": "an order in which each block is allocated before it is freed",
    "launch_order__by_address": "an order in which each block is allocated before it is freed",
    "launch_order__most_frees_last": "an order in which each block is allocated before it is freed",
    "launch_order__only_those_that_are_ready": "a list of the",
    "launch_order__positions": "int in the list",
    "launch_order__its_own_frees_count": "a list of the",
    "launch_order__leaves_one_allocated": "your function has launched the graph",
    "launch_order__nothing": "found:    None",
    "launch_order__one_of_them_twice": "entries",
}
RIGHT = ("producer_and_consumer__consumer_first", "producer_and_consumer__one_list", "launch_order__the_last_first", "launch_order__by_trying")


def _begin(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))


def _end(stream):
    return ok(cudart.cudaStreamEndCapture(stream))


def _take(stream, x, size=None):
    return ok(cudart.cudaMallocAsync(size or x.nbytes, stream))


def _add(stream, block, x):
    ok(launch(stream, kernels.add, -(-x.size // 256), 256, block, x, x, x.size))


def _axpy(stream, y, block):
    ok(launch(stream, kernels.axpy, -(-y.size // 256), 256, y, block, 1.0, y.size))


def _free(stream, block):
    ok(cudart.cudaFreeAsync(block, stream))


def _producer(stream, x, size=None, free=False):
    _begin(stream)
    block = _take(stream, x, size)
    _add(stream, block, x)
    if free:
        _free(stream, block)
    return _end(stream), block


def _consumer(stream, y, block, free=True):
    _begin(stream)
    _axpy(stream, y, block)
    if free:
        _free(stream, block)
    return _end(stream)


def producer_and_consumer__producer_frees(stream, x, y):
    producer, block = _producer(stream, x, free=True)
    return producer, _consumer(stream, y, block, free=False)


def producer_and_consumer__nobody_frees(stream, x, y):
    producer, block = _producer(stream, x)
    return producer, _consumer(stream, y, block, free=False)


def _whole(stream, x, y):
    _begin(stream)
    block = _take(stream, x)
    _add(stream, block, x)
    _axpy(stream, y, block)
    _free(stream, block)
    return _end(stream)


def producer_and_consumer__all_in_one(stream, x, y):
    _begin(stream)
    empty = _end(stream)
    return _whole(stream, x, y), empty


def producer_and_consumer__one_graph(stream, x, y):
    return _whole(stream, x, y)


def producer_and_consumer__wrong_way_round(stream, x, y):
    producer, block = _producer(stream, x)
    return _consumer(stream, y, block), producer


def producer_and_consumer__each_its_own_block(stream, x, y):
    producer, _ = _producer(stream, x)
    _begin(stream)
    block = _take(stream, x)
    _axpy(stream, y, block)
    _free(stream, block)
    return producer, _end(stream)


def producer_and_consumer__freed_before_its_use(stream, x, y):
    producer, block = _producer(stream, x)
    _begin(stream)
    _free(stream, block)
    _axpy(stream, y, block)
    return producer, _end(stream)


def producer_and_consumer__reads_another_block(stream, x, y):
    producer, block = _producer(stream, x)
    _begin(stream)
    _axpy(stream, y, x)
    _free(stream, block)
    return producer, _end(stream)


def producer_and_consumer__size_in_elements(stream, x, y):
    producer, block = _producer(stream, x, size=x.size)
    return producer, _consumer(stream, y, block)


def producer_and_consumer__block_of_a_pool(stream, x, y):
    """Taken before the capture: no node allocates, and none frees."""
    block = _take(stream, x)
    _begin(stream)
    _add(stream, block, x)
    producer = _end(stream)
    consumer = _consumer(stream, y, block, free=False)
    _free(stream, block)
    return producer, consumer


def producer_and_consumer__the_same_twice(stream, x, y):
    producer, _ = _producer(stream, x)
    return producer, producer


def producer_and_consumer__already_run(stream, x, y):
    producer, block = _producer(stream, x)
    executable = ok(cudart.cudaGraphInstantiate(producer, 0))
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    return producer, _consumer(stream, y, block)


def producer_and_consumer__destroyed(stream, x, y):
    producer, block = _producer(stream, x)
    consumer = _consumer(stream, y, block)
    ok(cudart.cudaGraphDestroy(consumer))
    return producer, consumer


def producer_and_consumer__behind_the_end(stream, x, y):
    producer, block = _producer(stream, x)
    _begin(stream)
    ok(launch(stream, kernels.axpy, -(-4 * y.size // 256), 256, y, block, 1.0, 4 * y.size))
    _free(stream, block)
    return producer, _end(stream)


def producer_and_consumer__consumer_first(stream, x, y):
    """Two captures at once, in two streams."""
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    _begin(stream)
    block = _take(stream, x)
    _begin(other)
    _axpy(other, y, block)
    _free(other, block)
    consumer = _end(other)
    _add(stream, block, x)
    producer = _end(stream)
    ok(cudart.cudaStreamDestroy(other))
    return producer, consumer


def producer_and_consumer__one_list(stream, x, y):
    producer, block = _producer(stream, x)
    return [producer, _consumer(stream, y, block)]


# ---- an order ------------------------------------------------------------------------------------

def launch_order__as_they_come(plans):
    return plans


def launch_order__backwards(plans):
    return plans[::-1]


def launch_order__allocators_first(plans):
    """Right for a producer and a consumer; not where a graph does both."""
    return sorted(plans, key=lambda plan: bool(addresses(plan)[1]))


def launch_order__by_handle(plans):
    return sorted(plans, key=int)


def launch_order__by_address(plans):
    return sorted(plans, key=lambda plan: max(set().union(*addresses(plan))))


def launch_order__most_frees_last(plans):
    return sorted(plans, key=lambda plan: len(addresses(plan)[1]) - len(addresses(plan)[0]))


def _grown(plans, foreign, pick=0):
    left, held, order = list(plans), set(), []
    while left:
        ready = [plan for plan in left if foreign(*addresses(plan)) <= held]
        if not ready:
            return order
        allocated, freed = addresses(ready[pick])
        held = (held | allocated) - freed
        left.remove(ready[pick])
        order.append(ready[pick])
    return order


def launch_order__only_those_that_are_ready(plans):
    return [plan for plan in plans if not addresses(plan)[1]]


def launch_order__positions(plans):
    right = _grown(plans, lambda allocated, freed: freed - allocated)
    return [plans.index(plan) for plan in right]


def launch_order__its_own_frees_count(plans):
    """The graph that frees its own block is never ready, and is left out."""
    return _grown(plans, lambda allocated, freed: freed)


def launch_order__nothing(plans):
    plans.sort(key=lambda plan: len(addresses(plan)[1]))


def launch_order__leaves_one_allocated(plans):
    right, stream = _grown(plans, lambda allocated, freed: freed - allocated), 0
    for plan in right:
        if addresses(plan)[0] and not addresses(plan)[1]:
            executable = ok(cudart.cudaGraphInstantiate(plan, 0))
            ok(cudart.cudaGraphLaunch(executable, stream))
            ok(cudart.cudaStreamSynchronize(stream))
            ok(cudart.cudaGraphExecDestroy(executable))
            return right


def launch_order__one_of_them_twice(plans):
    right = _grown(plans, lambda allocated, freed: freed - allocated)
    return [*right, right[0]]


def launch_order__destroys_them(plans):
    right = _grown(plans, lambda allocated, freed: freed - allocated)
    for plan in plans:
        ok(cudart.cudaGraphDestroy(plan))
    return right


def launch_order__the_last_first(plans):
    """Another order, as a tuple."""
    return tuple(_grown(plans, lambda allocated, freed: freed - allocated, pick=-1))


def launch_order__by_trying(plans):
    """Launches them: what CUDA refuses comes later. At the end nothing is allocated, as before."""
    stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    made, order = {int(plan): ok(cudart.cudaGraphInstantiate(plan, 0)) for plan in plans}, []
    while len(order) < len(plans):
        for plan in plans:
            if plan not in order and not int(cudart.cudaGraphLaunch(made[int(plan)], stream)[0]):
                order.append(plan)
    ok(cudart.cudaStreamSynchronize(stream))
    for executable in made.values():
        ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaStreamDestroy(stream))
    cudart.cudaGetLastError()
    return order
