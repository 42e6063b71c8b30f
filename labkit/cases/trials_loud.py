"""How the programs of cases 01 to 08 are tried: run(bench, program) raises Trouble, or says nothing.

Each is run with several sizes (SIZES), and what it returns is launched here, with numbers that the
program has not seen: work that is not in the graph gives wrong values.
"""
import threading

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.cases import parts
from labkit.cases.bench import SUCCESS, Trouble
from labkit.errors import NotSimulated, ok
from labkit.kernels import axpy, launch, scale

SIZES = {"05": (4, 1024, 1025, 2000)}                   # the others: (4, 1000, 2000)


def doubled_and_added(bench, executable, y, x, times=3):
    """Launch with new numbers each time: y = 2 * y + x."""
    for k in range(1, times + 1):
        before, more = bench.fresh(y, x)
        bench.launch(executable, k)
        bench.expect(f"launch {k}", "y", y, 2 * before + more)


def case_01(bench, program):
    y, x = bench.buffer(), bench.buffer()
    graph = bench.parts_of(bench.run(program, bench.stream, y, x), "graph")
    doubled_and_added(bench, bench.executable(graph), y, x)


class Watchdog:
    """A thread that asks for an event whenever it is woken: look() wakes it and waits until it has asked."""

    def __init__(self, event):
        self.event, self.codes, self.over = event, [], False
        self.wake, self.asked = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        self.look()                                     # its first call, before any capture

    def _watch(self):
        cudart.cudaSetDevice(0)
        while True:
            self.wake.acquire()
            if self.over:
                return
            self.codes.append(cudart.cudaEventQuery(self.event)[0])
            self.asked.release()

    def look(self):
        self.wake.release()
        if not self.asked.acquire(timeout=10):
            raise Trouble("The watchdog thread did not answer within 10 seconds.")

    def stop(self):
        self.over = True
        self.wake.release()
        self.thread.join(timeout=10)


def case_02(bench, program):
    y, x, other, event = bench.buffer(), bench.buffer(), bench.new_stream(), bench.event()
    ok(cudart.cudaEventRecord(event, other))
    ok(cudart.cudaStreamSynchronize(other))
    dog = Watchdog(event)

    def model(stream):
        first = launch(stream, scale, 8, 256, y, 3.0, y.size)
        dog.look()                                      # it is slow: the watchdog's time comes
        second = launch(stream, axpy, 8, 256, y, x, 1.0, y.size)
        return first if int(first[0]) else second
    try:
        graph = bench.parts_of(bench.run(program, bench.stream, y, model), "graph")
    finally:
        dog.stop()
    executable = bench.executable(graph)
    for k in (1, 2):
        before, more = bench.fresh(y, x)
        bench.launch(executable, k)
        bench.expect(f"launch {k}", "y", y, 0.5 * (3 * before + more))


def case_03(bench, program):
    y, x = bench.buffer(), bench.buffer()
    _, executable = bench.parts_of(bench.run(program, bench.stream, y, x), "graph", "executable")
    for k in (1, 2, 3):
        before, more = bench.fresh(y, x)
        bench.launch(executable, k)
        bench.expect(f"launch {k}", "y", y, before + 2 * more)


def case_04(bench, program):
    y, x = bench.buffer(), bench.buffer()
    side, fork, join = bench.new_stream(), bench.event(), bench.event()
    graph = bench.parts_of(bench.run(program, bench.stream, side, fork, join, y, x), "graph")
    executable = bench.executable(graph)
    for k in (1, 2):
        before, more = bench.fresh(y, x)
        bench.launch(executable, k)
        bench.expect(f"launch {k}", "x", x, 3 * more + 1)
        bench.expect(f"launch {k}", "y", y, 2 * before + 3 * more + 1)
    if not side_by_side(graph):
        raise Trouble(f"{bench.what}: the values are right. Expected in the graph: y's kernel beside those of x, as the contract says; "
                      f"found: one chain, {graphs.edges(graph)}.")
    joined(bench, graph)


def joined(bench, graph):
    """The values may be right by luck, where nothing makes the last node wait: there must be one that comes after all others."""
    after = reached(graph)
    work = [k for k, kind in enumerate(graphs.kinds(graph)) if kind in ("Kernel", "Memcpy", "Memset", "Graph", "Host")]
    if not any(all(k == last or last in after[k] for k in work) for last in work):
        raise Trouble(f"{bench.what}: the values are right, by luck. Expected in the graph: a last node that waits for all others; "
                      f"found {graphs.kinds(graph)} with the edges {graphs.edges(graph)}.")


def reached(graph):
    """{node: all nodes after it}, by position."""
    after = {k: set() for k in range(len(graphs.nodes(graph)))}
    edges = graphs.edges(graph)
    for _ in after:
        for a, b in edges:
            after[a] |= {b} | after[b]
    return after


def side_by_side(graph):
    """Are there two kernels of which neither waits for the other?"""
    after = reached(graph)
    found = [k for k, kind in enumerate(graphs.kinds(graph)) if kind == "Kernel"]
    return any(a not in after[b] and b not in after[a] for a in found for b in found if a < b)


def case_05(bench, program):
    y, x = bench.buffer(), bench.buffer()
    _, executable = bench.parts_of(bench.run(program, bench.stream, y, x), "graph", "executable")
    doubled_and_added(bench, executable, y, x)


def elapsed(start, stop):
    """The code of asking for the time between two events; without a clock, success where a GPU would have one."""
    try:
        return cudart.cudaEventElapsedTime(start, stop)[0]
    except NotSimulated:
        return SUCCESS


def case_06(bench, program):
    y, start, stop = bench.buffer(), bench.event(), bench.event()
    graph = bench.parts_of(bench.run(program, bench.stream, start, stop, y), "graph")
    executable = bench.executable(graph)
    for k in (1, 2):
        before, = bench.fresh(y)
        bench.launch(executable, k)
        bench.expect(f"launch {k}", "y", y, 2 * before)
        code = elapsed(start, stop)
        if int(code):
            raise Trouble(f"{bench.what}: y is right; asking for the time from start to stop answers {int(code)} {code.name}.", code)
    kinds, after = graphs.kinds(graph), reached(graph)
    at = {int(ok(cudart.cudaGraphEventRecordNodeGetEvent(node))): k for k, node in enumerate(graphs.nodes(graph)) if kinds[k] == "EventRecord"}
    first, last = at.get(int(start)), at.get(int(stop))
    if first is None or last is None or not any(k in after[first] and last in after[k] for k, kind in enumerate(kinds) if kind == "Kernel"):
        raise Trouble(f"{bench.what}: expected in the graph: start, the kernel, stop, in this order, at each launch; "
                      f"found: {', '.join(kinds)} with the edges {graphs.edges(graph)}.")


def case_07(bench, program):
    held, what = {"step": None}, bench.what
    try:
        for turn in (1, 2, 3):
            bench.what = f"{what}, call {turn}"
            y, x = bench.buffer(), bench.buffer()
            bench.run(program, bench.stream, y, x, held)
            if not isinstance(held.get("step"), parts.Step):
                raise Trouble(f'{bench.what}: expected a Step in held["step"]; found {type(held.get("step")).__name__}.')
            doubled_and_added(bench, held["step"].executable, y, x, 2)
    finally:
        bench.end_captures()                            # before the last Step goes
        held.clear()


def case_08(bench, program):
    y, x = bench.buffer(), bench.buffer()
    ok(cudart.cudaStreamBeginCapture(bench.stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    ok(launch(bench.stream, scale, 8, 256, y, 2.0, y.size))
    part = bench.parts_of(ok(cudart.cudaStreamEndCapture(bench.stream)), "graph")
    graph = bench.parts_of(bench.run(program, bench.stream, y, x, part, bench.executable(part)), "graph")
    doubled_and_added(bench, bench.executable(graph), y, x)
    joined(bench, graph)
