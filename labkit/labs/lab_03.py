"""03: a chain, and a count of launches."""
import numpy as np

from labkit import kernels
from labkit.backend import cudart
from labkit.errors import ok
from labkit.labs.calls import Calls
from labkit.labs.caution import beyond, busy, busy_after, within
from labkit.labs.judging import Lab
from labkit.update import launched

LAB = Lab("03_chain", "A chain", lesson="02", minutes=5)


@LAB.part(points=3, hints=(
    "How does y come to be the same after every launch, whatever it was before? Which node has to be the first?",
    "What does a loop leave behind when it runs during a capture: one node, or one for each turn? And which value of the factor is in each?",
    "cudaMemsetAsync takes an address, a value, a count of bytes and the stream. How many bytes has y? Then one axpy for each factor, in a loop."))
def chain(t, answer):
    """A graph that is a chain: Memset of y to 0, then an axpy for each factor, in their order; y is the sum of factor x after each launch."""
    y, x = t.buffer(), t.buffer()
    for length in (3, 1, int(t.random.integers(4, 9))):
        factors = [float(a) for a in t.random.permutation(9)[:length] + 1]
        before, _ = t.fresh(y, x)
        calls, line = Calls(t), [f"axpy {k}" for k in range(length)]
        graph = calls.alive(calls.run(answer, t.stream, y, x, list(factors)), "graph")
        t.expect(f"after chain(..., {factors}), before any launch", "y", y, before)
        found = t.shape(graph, {"memset": "Memset", **dict.fromkeys(line, "axpy")}, list(zip(["memset", *line], line)))
        within(t, graph, y=y, x=x)
        byte = int(ok(cudart.cudaGraphMemsetNodeGetParams(found["memset"])).value)
        t.want(byte == 0, "a memset of each byte to 0", f"to {byte}")
        in_order = [launched(found[name]).args[2] for name in line]
        t.want(in_order == factors, f"axpy by {', '.join(f'{a:g}' for a in factors)}, in this order", f"axpy by {', '.join(f'{a:g}' for a in in_order)}")
        executable = t.executable(graph)
        for which in (1, 2):
            _, plus = t.fresh(y, x)
            t.launch(executable, which)
            t.expect(f"after chain(..., {factors}) and launch {which}", "y", y, sum(factors) * plus)


@LAB.part(points=3, hints=(
    "Lesson 02 counts seven steps. Which of them belong in the loop?",
    "What do graph and executable leave behind when the function returns, and what may still be running then?",
    "Only the launch is repeated. Then come cudaStreamSynchronize, cudaGraphExecDestroy and cudaGraphDestroy."))
def n_times(t, answer):
    """y has grown by x for each of so many launches of one graph with one kernel; all is finished, graph and executable are destroyed."""
    y, x = t.buffer(), t.buffer()
    for times in (2, 1, int(t.random.integers(5, 12))):
        old, plus = t.fresh(y, x)
        busy(t, kernels.axpy)
        calls = Calls(t, look=lambda graph: beyond(graph, y=y, x=x))
        with busy_after(t, answer, count=times):
            calls.run(answer, t.stream, y, x, times)
        t.expect(f"after n_times(..., {times})", "y", y, old + np.float32(times) * plus)
        calls.launches(times)
        nodes = list(calls.nodes.values())
        t.want(nodes == [1], "one kernel in the graph", f"{nodes[0]} nodes")
        calls.waited()
        calls.tidied("executable", "graph")
