"""04: many launches become one, or a few."""
import numpy as np

from labkit import kernels
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import launch
from labkit.labs.calls import Calls, number
from labkit.labs.caution import side_by_side
from labkit.labs.judging import Lab

LAB = Lab("04_one_launch", "One launch", lesson="01", minutes=6)
MANY, FACTOR = 200, 1.5                # kernels in part 1; what a plain stream has to take longer (the notebook says it too)


class _Steps:
    """Small kernels whose order can be told by their result: y += a x and y *= 0.5 in turns. steps[k](stream) queues the k-th."""

    def __init__(self, t, count):
        self.t, self.y, self.x, self.asked = t, t.buffer(), t.buffer(), []
        self.factors = [float(a) for a in t.random.permutation(count) + 1]      # no two alike
        self.steps = [self._step(k, a) for k, a in enumerate(self.factors)]
        for kernel in (kernels.axpy, kernels.scale):
            _ = kernel.func

    def _step(self, k, a):
        grid, n, y, x = -(-self.t.size // 256), self.t.size, self.y, self.x
        args = (kernels.scale, grid, 256, y, 0.5, n) if k % 2 else (kernels.axpy, grid, 256, y, x, a, n)

        def step(stream):
            self.asked.append((k, number(stream)))
            ok(launch(stream, *args))
        return step

    def work(self, stream):
        for step in self.steps:
            step(stream)

    def after(self, first, y, x):
        """What the first so many steps make of y."""
        y = y.astype(np.float64)
        for k, a in enumerate(self.factors[:first]):
            y = y * 0.5 if k % 2 else y + a * x
        return y

    def queued_once(self):
        order, count = [k for k, _ in self.asked], len(self.steps)
        found = "another order" if len(order) == count else f"{len(order)} of {count} were queued"
        self.t.want(order == list(range(count)), "each kernel is queued once, in order, while the function runs", found)


@LAB.part(points=3, hints=(
    "Where does the time of many small launches go, as lesson 01 has it, and which call is made once for all of them in a replay?",
    "What has to be queued only once, while the stream captures, so that it can be launched at any time later?",
    "Begin, call work, end, cudaGraphInstantiate. The executable does not need the graph, which you destroy. Do not launch it."))
def one_launch(t, answer):
    """An executable that does all that work queues by one launch, faster than the plain stream by the factor that is asked; nothing has run before."""
    made = _Steps(t, MANY)

    def work(stream):
        made.work(stream)
    before, _ = t.fresh(made.y, made.x)
    calls = Calls(t)
    executable = calls.alive(calls.run(answer, t.stream, work), "executable")
    t.expect("after one_launch(stream, work), before any launch", "y", made.y, before)
    made.queued_once()
    for which in (1, 2):
        old, plus = t.fresh(made.y, made.x)
        t.launch(executable, which)
        t.expect(f"after launch {which}", "y", made.y, made.after(MANY, old, plus))
    calls.tidied("graph")
    t.want(len(calls.there["executable"]) == 1, "one executable", f"{len(calls.there['executable'])}")
    t.faster("your executable", lambda: ok(cudart.cudaGraphLaunch(executable, t.stream)), "the plain stream", lambda: made.work(t.stream), FACTOR)


@LAB.part(points=4, hints=(
    "How many graphs are needed for 7 steps of which at most 3 go into one? Which steps does the second of them get?",
    "Each piece is captured for itself. Which of the steps are called between its begin and its end?",
    "A range with a stride gives where each piece begins, and a slice of the list gives its steps. The last piece may be shorter. Each piece is what part 1 makes."))
def in_pieces(t, answer):
    """A list of executables, as few as can be, none with more nodes than asked, that do all steps when they are launched in order."""
    drawn = int(t.random.integers(8, 20)), int(t.random.integers(2, 6))
    for count, most in ((7, 3), (6, 6), (3, 1), (4, 9), (8, 2), drawn):
        made, when = _Steps(t, count), f"for {count} steps, at most {most} in one graph"
        before, _ = t.fresh(made.y, made.x)
        calls = Calls(t, look=side_by_side)
        result = calls.run(answer, t.stream, list(made.steps), most)
        t.want(isinstance(result, (list, tuple)), f"back, {when}: a list of executables", "None" if result is None else type(result).__name__)
        pieces = [calls.alive(one, "executable") for one in result]
        t.expect(f"after in_pieces, {when}, before any launch", "y", made.y, before)
        few = -(-count // most)
        t.want(len(pieces) == few, f"{few} executable{'s' * (few > 1)}, {when}", f"{len(pieces)}")
        made.queued_once()
        nodes = [calls.nodes.get(number(one), 0) for one in pieces]
        t.want(max(nodes) <= most and sum(nodes) == count, f"at most {most} nodes in each graph, {count} in all", " + ".join(map(str, nodes)) + " nodes")
        for _ in (1, 2):
            old, plus = t.fresh(made.y, made.x)
            for which, piece in enumerate(pieces, 1):
                t.launch(piece, which)
                t.expect(f"{when}, after piece {which} of {few}", "y", made.y, made.after(sum(nodes[:which]), old, plus))
        calls.tidied("graph", "executable", but=pieces)
