"""16: a block that one graph allocates and another one frees."""
import numpy as np

from labkit import graph as graphs
from labkit.arrays import DeviceArray
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import add, axpy, fill, launch
from labkit.labs.calls import Calls, kind
from labkit.labs.caution import within
from labkit.labs.judging import Lab
from labkit.labs.memory import MIB, argument, captured, given_back, not_taken, taken, used
from labkit.params import kernel_params

LAB = Lab("16_free_elsewhere", "Freed elsewhere", lesson="09", minutes=10)


@LAB.part(points=4, hints=(
    "What do two captures have in common when the second one uses what the first one allocated: the stream, the graph, or a number?",
    "Must the first graph run before the second is captured? Which of the two frees?",
    "Capture twice, one after the other, and keep the address in a variable between them. Lesson 09 frees elsewhere in the same way."))
def producer_and_consumer(t, answer):
    """Two graphs: MemAlloc and add, and axpy and MemFree of the same block. Launched in turn they add 2 x to y, as often as you like."""
    x, y = t.buffer(), t.buffer()
    calls = Calls(t)
    result = calls.run(answer, t.stream, x, y)
    t.just(result, 2, "the producer and the consumer, two graphs")
    for one in result:
        calls.alive(one, "graph")
    producer, consumer = t.parts_of(result, "graph", "graph")
    t.want(int(producer) != int(consumer), "two graphs", "one graph twice")
    first = t.shape(producer, {"alloc": "MemAlloc", "add": "add"}, [("alloc", "add")])
    second = t.shape(consumer, {"axpy": "axpy", "free": "MemFree"}, [("axpy", "free")])
    size, address = taken(first["alloc"])
    t.want(size == x.nbytes, f"a block of {x.nbytes} bytes, as many as x has", f"{size} bytes")
    t.want(given_back(second["free"]) == address, "the consumer frees the producer's block", "it frees another address")
    argument(t, first["add"], 0, "z", address, "the block")
    argument(t, second["axpy"], 1, "x", address, "the producer's block")
    for graph in (producer, consumer):
        within(t, graph, x=x, y=y, block=DeviceArray(address, x.size, np.float32))
    not_taken(t, address)
    start = used()
    both = [t.executable(graph) for graph in (producer, consumer)]
    for which in (1, 2, 3):
        plus, old = t.fresh(x, y)
        t.launch(both[0], which)
        t.expect(f"after the producer's launch {which}", "y", y, old)
        t.launch(both[1], which)
        t.expect(f"after the consumer's launch {which}", "y", y, old + 2 * plus)
    left = used() - start
    t.want(left <= 0, "all freed once the consumer has run", f"{left // MIB} MiB of graph memory still in use")


# ---- many graphs that free for one another -------------------------------------------------------

def addresses(plan):
    """(what the graph allocates, what it frees), two sets of addresses."""
    nodes = [(graphs.kind(node), node) for node in graphs.nodes(plan)]
    return ({taken(node)[1] for kind, node in nodes if kind == "MemAlloc"}, {given_back(node) for kind, node in nodes if kind == "MemFree"})


def _chain(t, x, y, length):
    """`length` graphs in their order: the first takes a block, the last adds it to y and frees it; each between frees one and takes one. y += length x.

    They are made by hand in a random order, so that neither handles nor addresses tell in which order they belong.
    """
    grid, n = -(-t.size // 256), t.size
    plans, blocks = [None] * length, [None] * length       # blocks: (node, address)
    for k in t.random.permutation(length):
        plans[k] = t.own(ok(cudart.cudaGraphCreate(0)))
        blocks[k] = _block(plans[k], y.nbytes) if k < length - 1 else None
    for k, plan in enumerate(plans):
        before = blocks[k - 1][1] if k else None
        if k == length - 1:
            work, waits = kernel_params(axpy, grid, 256, y, before, 1.0, n), []
        else:
            work, waits = kernel_params(add, grid, 256, blocks[k][1], before if k else x, x, n), [blocks[k][0]]
        node = ok(cudart.cudaGraphAddKernelNode(plan, waits, len(waits), work))
        if k:
            ok(cudart.cudaGraphAddMemFreeNode(plan, [node], 1, before))
    return plans


def _block(plan, size):
    """A MemAlloc node in a graph: (the node, the address)."""
    params = cudart.cudaMemAllocNodeParams()
    params.bytesize = size
    params.poolProps.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    params.poolProps.location.type, params.poolProps.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    node = ok(cudart.cudaGraphAddMemAllocNode(plan, [], 0, params))
    return node, int(params.dptr)


def _alone(t, y):
    """A graph that allocates and frees a block of its own: it fits anywhere. y += 1."""
    grid = -(-t.size // 256)

    def work():
        block = ok(cudart.cudaMallocAsync(y.nbytes, t.stream))
        ok(launch(t.stream, fill, grid, 256, block, 1.0, t.size))
        ok(launch(t.stream, axpy, grid, 256, y, block, 1.0, t.size))
        ok(cudart.cudaFreeAsync(block, t.stream))
    return captured(t, work)[0]


@LAB.part(points=5, hints=(
    "When is a graph ready to be launched, if you know which blocks are allocated at that moment?",
    "What does a launch do to the set of blocks that are allocated? And what of a block that the graph both takes and frees?",
    "Go on as long as graphs are left: find one all of whose foreign frees are allocated now, put it behind the others, and bring the set up to date."))
def launch_order(t, answer):
    """All of the graphs, each once, in an order in which no launch frees a block that is not allocated at that moment."""
    x, y = t.buffer(), t.buffer()
    for round_ in range(3):
        lengths = [int(t.random.integers(2, 6)), int(t.random.integers(2, 4))]
        plans = [*_chain(t, x, y, lengths[0]), *_chain(t, x, y, lengths[1]), _alone(t, y)]
        handles, memory = [int(plan) for plan in plans], [addresses(plan) for plan in plans]
        mixed = _mixed(t, plans, memory)
        calls = Calls(t, keep=plans)
        result = calls.run(answer, list(mixed))
        ended = [first for name, first, _ in calls.of("cudaGraphDestroy") if first in calls.keep]
        t.want(not ended, "the graphs stay: they are to be launched", "a call of cudaGraphDestroy")
        order = _positions(t, result, handles)
        held = set()
        for place, k in enumerate(order):
            takes, frees = memory[k]
            early = frees - takes - held
            t.want(not early, "an order in which each block is allocated before it is freed",
                   f"graph {place + 1} of {len(order)} in yours frees {len(early)} block{'s' * (len(early) != 1)} that no graph before it has allocated")
            held = (held | takes) - frees
        not_taken(t, *sorted(set().union(*(takes for takes, _ in memory))))
        executables = [t.executable(plans[k]) for k in order]
        for which in (1, 2):
            plus, old = t.fresh(x, y)
            for executable in executables:
                t.launch(executable, which)
            t.expect(f"after all of them, time {which}", "y", y, old + sum(lengths) * plus + 1)


def _mixed(t, plans, memory):
    """The graphs in an order that works neither forwards nor backwards."""
    while True:
        order = [int(k) for k in t.random.permutation(len(plans))]
        if not any(_works([memory[k] for k in one]) for one in (order, order[::-1])):
            return [plans[k] for k in order]


def _works(memory):
    held = set()
    for takes, frees in memory:
        if frees - takes - held:
            return False
        held = (held | takes) - frees
    return True


def _positions(t, result, handles):
    """The learner's order as positions in the judge's; Trouble where it is no order of these graphs."""
    what = f"a list of the {len(handles)} graphs, each once"
    t.want(isinstance(result, (list, tuple)), what, kind(result))
    others = [type(one).__name__ for one in result if not isinstance(one, cudart.cudaGraph_t)]
    t.want(not others, what, f"{others[0] if others else ''} in the list")
    found = [int(one) for one in result]
    t.want(sorted(found) == sorted(handles), what, f"{len(found)} entries, {len(set(found) & set(handles))} of the graphs among them")
    return [handles.index(one) for one in found]
