"""13: memory that a graph allocates itself, and the address that the capture fixed."""
import numpy as np

from labkit.arrays import DeviceArray
from labkit.backend import cudart
from labkit.cases.bench import Trouble
from labkit.errors import ok
from labkit.labs.calls import Calls, kind
from labkit.labs.caution import within
from labkit.labs.judging import Lab
from labkit.labs.memory import argument, given_back, not_taken, taken

LAB = Lab("13_allocate_inside", "Allocate inside", lesson="08", minutes=8)


@LAB.part(points=3, hints=(
    "Which two calls take and give back memory in the order of a stream, so that a capture can write them down?",
    "What kind of value does the allocation hand you, and may a kernel have it in place of a buffer? Is the size that it wants one in elements?",
    "Four calls between begin and end, all on the stream: lesson 08 has them under its second way. The free is the last."))
def scratch(t, answer):
    """A graph of four nodes in a row: MemAlloc, add, axpy, MemFree. Each launch makes y = 3 y + 2 x."""
    x, y = t.buffer(), t.buffer()
    calls = Calls(t)
    result = calls.run(answer, t.stream, x, y)
    t.just(result, 1, "the graph, and nothing else")
    graph = calls.alive(result, "graph")
    found = t.shape(graph, {"alloc": "MemAlloc", "add": "add", "axpy": "axpy", "free": "MemFree"},
                    [("alloc", "add"), ("add", "axpy"), ("axpy", "free")])
    size, address = taken(found["alloc"])
    t.want(size == x.nbytes, f"a block of {x.nbytes} bytes, as many as x has", f"{size} bytes")
    t.want(given_back(found["free"]) == address, "the MemFree node frees the graph's block", "it frees another address")
    argument(t, found["add"], 0, "z", address, "the block")
    argument(t, found["axpy"], 1, "x", address, "the block")
    within(t, graph, x=x, y=y, block=DeviceArray(address, x.size, np.float32))
    executable = t.executable(graph)
    for which in (1, 2, 3):
        plus, old = t.fresh(x, y)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", y, 3 * old + 2 * plus)
        t.expect(f"after launch {which}", "x", x, plus)


@LAB.part(points=3, hints=(
    "When does the address come to be known: at the capture, or at the first launch? And when the memory?",
    "Is there anything in the capture that must not be there, if the numbers are to be read after the launch?",
    "Lesson 08 keeps the allocation's answer in a variable and returns it beside the graph. The size is in bytes: a float has 4."))
def kept_block(t, answer):
    """A graph of two nodes, MemAlloc and fill, and the address of its block. Whoever has the address reads the numbers after a launch."""
    value = float(t.random.integers(2, 100))
    calls = Calls(t)
    result = calls.run(answer, t.stream, t.size, value)
    t.just(result, 2, "the graph and the address")
    graph, address = calls.alive(result, "graph"), result[1]
    found = t.shape(graph, {"alloc": "MemAlloc", "fill": "fill"}, [("alloc", "fill")])
    size, place = taken(found["alloc"])
    t.want(size == 4 * t.size, f"a block for {t.size} floats, {4 * t.size} bytes", f"{size} bytes")
    t.want(isinstance(address, (int, np.integer, DeviceArray)) and int(address) == place,
           "beside the graph the address that its MemAlloc node has, an int", f"{kind(address)}, and not that address")
    argument(t, found["fill"], 0, "y", place, "the block")
    not_taken(t, place)
    numbers = DeviceArray(place, t.size, np.float32)
    within(t, graph, block=numbers)
    executable = t.executable(graph)
    for which in (1, 2):
        t.launch(executable, which)
        t.expect(f"after launch {which}", "the block", numbers, np.full(t.size, value))
        t.put(numbers, np.zeros(t.size))
        code = cudart.cudaFreeAsync(place, t.stream)[0]
        if int(code):
            raise Trouble(f"{t.what}: the block could not be freed after launch {which}: {int(code)} {code.name}.", code)
        ok(cudart.cudaStreamSynchronize(t.stream))
