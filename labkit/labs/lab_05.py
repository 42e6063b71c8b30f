"""05: a diamond, captured with one more stream and two events."""
import numpy as np

from labkit.labs.judging import Lab
from labkit.update import launched

LAB = Lab("05_diamond", "A diamond", lesson="03", minutes=8)


@LAB.part(points=3, hints=(
    "What does a stream that is not capturing need to see before it can take part in the capture of another one?",
    "Which event has to be recorded in which stream, and who waits for it: once at the fork, and once at the join?",
    "The two calls are those of lesson 03, cudaEventRecord and cudaStreamWaitEvent, each twice. The helper's last work comes before the second record."))
def diamond(t, answer):
    """A graph of four kernels: fill, then axpy and scale side by side, then add, which waits for both."""
    x, y, z = (t.buffer() for _ in range(3))
    graph = t.parts_of(t.run(answer, t.stream, t.new_stream(), t.event(), t.event(), x, y, z), "graph")
    t.shape(graph, {"fill": "fill", "axpy": "axpy", "scale": "scale", "add": "add"},
            [("fill", "axpy"), ("fill", "scale"), ("axpy", "add"), ("scale", "add")])
    executable = t.executable(graph)
    for which in (1, 2):
        _, right, _ = t.fresh(x, y, z)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "z", z, 2 * np.ones(t.size) + 3 * right)


@LAB.part(points=3, hints=(
    "How many lines of your diamond say which work is on the branch, and how many say where it forks and joins?",
    "After which of the two kernels must the event be recorded that the main stream waits for?",
    "The fork does not change. The second kernel of the branch goes to the helper before the event that joins it is recorded there."))
def long_branch(t, answer):
    """The diamond with a branch of two kernels: fill, then axpy beside scale and scale, then add."""
    x, y, z = (t.buffer() for _ in range(3))
    graph = t.parts_of(t.run(answer, t.stream, t.new_stream(), t.event(), t.event(), x, y, z), "graph")
    found = t.shape(graph, {"fill": "fill", "axpy": "axpy", "first": "scale", "second": "scale", "add": "add"},
                    [("fill", "axpy"), ("fill", "first"), ("first", "second"), ("axpy", "add"), ("second", "add")])
    factors = sorted(launched(found[name]).args[1] for name in ("first", "second"))
    t.want(factors == [2.0, 3.0], "one scale by 3 and one by 2", f"scales by {factors[0]:g} and {factors[1]:g}")
    executable = t.executable(graph)
    for which in (1, 2):
        _, right, _ = t.fresh(x, y, z)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "z", z, 2 * np.ones(t.size) + 6 * right)
