"""01: the first graph."""
from labkit import kernels
from labkit.errors import ok
from labkit.kernels import launch
from labkit.labs.calls import Calls
from labkit.labs.caution import busy, busy_after, captured, within
from labkit.labs.judging import Lab
from labkit.update import launched

LAB = Lab("01_first_graph", "The first graph", lesson="00", minutes=3)


@LAB.part(points=2, hints=(
    "Between which two calls does CUDA write down what is queued? On which stream must they be asked?",
    "What does the second of the two calls hand over, and does ok give you a tuple or the value?",
    "Begin on the stream, launch axpy there with the arguments y, x, 2.0 and the count, end on the stream, and give back what the end hands over. It is the first graph of lesson 00."))
def capture_one(t, answer):
    """A graph of one node, axpy in blocks of 256 threads, that adds 2 x to y at each launch; nothing runs while it is captured."""
    y, x = t.buffer(), t.buffer()
    before, _ = t.fresh(y, x)
    calls = Calls(t)
    graph = calls.alive(calls.run(answer, t.stream, y, x), "graph")
    t.expect("after the capture, before any launch", "y", y, before)
    node = t.shape(graph, {"axpy": "axpy"})["axpy"]
    within(t, graph, y=y, x=x)
    count, found = -(-t.size // 256), launched(node)
    t.want((found.grid, found.block) == ((count, 1, 1), (256, 1, 1)), f"{count} block{'s' * (count > 1)} of 256 threads", f"grid {found.grid}, block {found.block}")
    calls.tidied("executable")
    executable = t.executable(graph)
    for which in (1, 2, 3):
        old, plus = t.fresh(y, x)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", y, old + 2 * plus)


@LAB.part(points=3, hints=(
    "A graph can not be launched. What is made of it first, and how often does that have to be made?",
    "A launch only queues. Who waits, and for what, before the function returns?",
    "Three calls of lesson 00 and 02 and one wait: instantiate, launch in a loop, cudaStreamSynchronize, and at last cudaGraphExecDestroy. The graph itself is not yours to destroy."))
def replay(t, answer):
    """The graph is run so many times by one executable in the given stream; all is finished, and the executable destroyed, on return."""
    y, x = t.buffer(), t.buffer()
    graph = captured(t, lambda stream: ok(launch(stream, kernels.axpy, -(-t.size // 256), 256, y, x, 2.0, t.size)))
    for times in (3, 1, int(t.random.integers(4, 9))):
        old, plus = t.fresh(y, x)
        busy(t)
        calls = Calls(t, keep=[graph])
        with busy_after(t, answer, count=times):
            calls.run(answer, t.stream, graph, times)
        t.want(not calls.destroyed(graph), "the graph is left alone: it was not made here", "cudaGraphDestroy was called with it")
        t.expect(f"after replay(..., times={times})", "y", y, old + 2 * times * plus)
        calls.launches(times)
        calls.waited()
        calls.tidied("executable", "graph")
