"""05: a diamond, captured with one more stream and two events."""
import numpy as np

from labkit.labs.calls import Calls
from labkit.labs.caution import as_asked
from labkit.labs.judging import Lab

LAB = Lab("05_diamond", "A diamond", lesson="03", minutes=8)


def _with_a_branch(t, answer, **branch):
    """The answer's graph has fill, axpy beside a branch of scales with these factors, and add, each as asked; launched twice it gives z."""
    x, y, z = (t.buffer() for _ in range(3))
    calls = Calls(t)
    graph = calls.alive(calls.run(answer, t.stream, t.new_stream(), t.event(), t.event(), x, y, z), "graph")
    row = ["fill", *branch, "add"]
    found = t.shape(graph, {"fill": "fill", "axpy": "axpy", **dict.fromkeys(branch, "scale"), "add": "add"},
                    [("fill", "axpy"), ("axpy", "add"), *zip(row, row[1:])])
    ways = {"fill": ["x, 1"], "axpy": ["x, x, 1"], "add": ["z, x, y", "z, y, x"], **{name: [f"y, {a}"] for name, a in branch.items()}}
    for name, node in found.items():
        as_asked(t, node, *ways[name], x=x, y=y, z=z)
    executable = t.executable(graph)
    for which in (1, 2):
        _, right, _ = t.fresh(x, y, z)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "z", z, 2 * np.ones(t.size) + np.prod(list(branch.values())) * right)


@LAB.part(points=3, hints=(
    "What does a stream that is not capturing need to see before it can take part in the capture of another one?",
    "Which event has to be recorded in which stream, and who waits for it: once at the fork, and once at the join?",
    "The two calls are those of lesson 03, cudaEventRecord and cudaStreamWaitEvent, each twice. The helper's last work comes before the second record."))
def diamond(t, answer):
    """A graph of four kernels: fill, then axpy and scale side by side, then add, which waits for both."""
    _with_a_branch(t, answer, scale=3)


@LAB.part(points=3, hints=(
    "How many lines of your diamond say which work is on the branch, and how many say where it forks and joins?",
    "After which of the two kernels must the event be recorded that the main stream waits for?",
    "The fork does not change. The second kernel of the branch goes to the helper before the event that joins it is recorded there."))
def long_branch(t, answer):
    """The diamond with a branch of two kernels: fill, then axpy beside scale and scale, then add."""
    _with_a_branch(t, answer, first=3, second=2)
