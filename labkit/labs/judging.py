"""How a part of an exercise is judged: with several sizes and numbers, by what it makes and what that does.

    LAB = Lab("05_diamond", "A diamond", lesson="03", minutes=8)

    @LAB.part(points=4, hints=("...?", "...?", "...?"))
    def diamond(t, answer):
        '''A graph in which two kernels wait for the first, and the last for both.'''
        graph = t.parts_of(t.run(answer, t.stream, ...), "graph")
        t.shape(graph, {"first": "fill", ...}, [("first", "left"), ...])
        ...

The function has the name of the learner's. It is called with a fresh Try for each size, and with the answer;
what is wrong it raises, as Trouble. Not here: time limits; the terminal and the classroom have them.
"""
import ast
import contextlib
import functools
import inspect
import textwrap

import numpy as np

from labkit.backend import cudart
from labkit.cases.bench import Bench, Trouble
from labkit.errors import LabError
from labkit.labs import shapes, speed
from labkit.labs.listening import listening, one_at_a_time, unchanged

SIZES = (4, 1000, 2048)
_CAPTURES = ("cudaStreamBeginCapture", "cudaStreamBeginCaptureToGraph", "cudaStreamDestroy")


class Lab:
    """One exercise: .number "05", .slug "05_diamond", .title, .lesson "03" (that it goes with), .minutes, .parts {name: Part}."""

    def __init__(self, slug, title, lesson, minutes):
        self.number, self.slug, self.title, self.lesson, self.minutes, self.parts = slug[:2], slug, title, lesson, minutes, {}

    def part(self, points, hints, sizes=SIZES):
        """A decorator: the function judges the part of this name. sizes: what is tried, one Try each."""
        def add(judge):
            self.parts[judge.__name__] = Part(self, judge, points, tuple(hints), tuple(sizes))
            return judge
        return add

    def __repr__(self):
        return f"Lab({self.slug})"


class Part:
    """One function that a learner writes: .name, .lab, .points, .hints (three), .sizes, .wanted (what is expected, in a sentence)."""

    def __init__(self, lab, judge, points, hints, sizes):
        self.lab, self.name, self.judge, self.points, self.hints, self.sizes = lab, judge.__name__, judge, points, hints, sizes
        self.wanted = " ".join(inspect.getdoc(judge).split())

    def __repr__(self):
        return f"Part({self.lab.number} {self.name})"

    def tries(self, seed=None):
        """[(size, seed)] to try. With a seed other sizes too, which nobody can know who does not know it."""
        if seed is None:
            return [(size, k) for k, size in enumerate(self.sizes)]
        dice = np.random.default_rng(seed)
        return [(size + int(dice.integers(1, size // 2 + 2)), int(dice.integers(2 ** 31))) for size in self.sizes]


class Try(Bench):
    """A Bench (labkit/cases/bench.py) with what only exercises ask: shapes, notes and ratios."""

    def __init__(self, size, seed, notes):
        super().__init__(size, seed)
        self.notes, self._others = notes, {}

    def run(self, program, *args, again=False):
        @functools.wraps(program, updated=())
        def heard(*given):
            with listening(_CAPTURES, self._begun, program):
                return program(*given)
        try:
            with unchanged():
                return super().run(heard, *args, again=again)
        except (SystemExit, GeneratorExit) as gone:
            raise Trouble(f"{self.what}: the function ended with {type(gone).__name__}; a function of yours returns.") from None

    def _means(self, error):
        return f"\n  {error.means} More: labkit explain {int(error.code)}"

    def _perhaps(self, error):
        """What is often behind a TypeError or an OverflowError of the bindings."""
        if isinstance(error, TypeError) and any(word in str(error) for word in ("an integer is required", "'tuple'", "got tuple")):
            return "\n  A call of cudart returns a tuple, (code, value); ok(...) hands back the value."
        return "\n  Are the arguments in the order of the docstring?" if isinstance(error, OverflowError) and "enum" in str(error) else ""

    def _begun(self, name, call, given):
        """A capture that is begun on a stream of the answer's own is ended with the run too, if it is left open."""
        answer = call()
        if given and not int(answer[0]):
            stream = given[0] or 0
            if name == "cudaStreamDestroy":
                self._others.pop(int(stream), None)
            else:
                self._others[int(stream)] = stream
        return answer

    def end_captures(self):
        mine, others = self._streams, [stream for number, stream in self._others.items() if all(number != int(one) for one in self._streams)]
        self._streams = mine + others
        try:
            return super().end_captures()
        finally:
            self._streams = mine
            self._others.clear()

    def own(self, graph):
        """A graph of the judge's own, destroyed with the Try. Returns it."""
        self.take_over([graph])
        return graph

    def just(self, result, count, what):
        """Trouble unless `count` things came back, which `what` says in words. Graphs and executables among them are the Try's, whatever else is wrong."""
        given = result if isinstance(result, (tuple, list)) else (result,)
        self.take_over(given)
        found = 0 if result is None else len(given)
        self.want(found == count, what, f"{found} things came back" if found > 1 else f"only {type(result).__name__} came back" if found else "None came back")

    def want(self, condition, expected, found):
        """Trouble unless condition: both in words."""
        if not condition:
            raise Trouble(f"{self.what}:\n  expected: {expected}\n  found:    {found}")

    def note(self, line):
        """A line that is said with the verdict, once."""
        if line not in self.notes:
            self.notes.append(line)

    def expect(self, when, name, found, expected):
        try:
            super().expect(when, name, found, expected)
        except Trouble as trouble:
            trouble.drawn = shapes.values_of(name, when, found, expected)
            raise

    def shape(self, graph, nodes, edges=()):
        """{name: node handle}, or Trouble unless the graph has just these nodes, in this order.

        nodes: {name: a kernel's name or a node's kind}. edges: pairs of names. Two graphs are alike when a path leads from one
        node to another in both or in neither; an edge too many where a path leads anyway does no harm.
        """
        wanted, found = shapes.Wanted(nodes, edges), shapes.Found(graph)
        matched = shapes.match(wanted, found)
        if matched is None:
            trouble = Trouble(f"{self.what}:\n  expected a graph with {wanted.listed()}\n  found    a graph with {found.listed()}")
            trouble.drawn = ("shapes", wanted, found)
            raise trouble
        return {name: found.handles[k] for name, k in zip(nodes, matched)}

    def faster(self, name, fast, other, slow, factor):
        """Trouble unless fast() takes at most 1/factor of slow()'s time, both timed in turns now. On the simulator only a note."""
        with self._calls(name):
            line, reached = speed.ratio(self.stream, name, fast, other, slow, factor)
        if not reached:
            raise Trouble(f"{self.what}: {line}")
        self.note(line)

    @contextlib.contextmanager
    def _calls(self, name):
        try:
            yield
        except LabError as error:
            raise Trouble(f"{self.what}, timing {name}: {error.did} {error.means}", error.code) from None


def untouched(function):
    """True for a function whose body is its docstring and nothing else."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0].body
    except (OSError, TypeError, SyntaxError, AttributeError, IndexError):
        return False
    return all(isinstance(line, ast.Pass) or isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in body)


@one_at_a_time
def judge(part, answer, seed=None):
    """(None or the Trouble, notes) of an answer. Raises LabError only where the check itself could not be prepared."""
    _, mode = cudart.cudaThreadExchangeStreamCaptureMode(cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal)
    try:
        return _judge(part, answer, seed)
    finally:
        if mode is not None:
            cudart.cudaThreadExchangeStreamCaptureMode(mode)


def _judge(part, answer, seed):
    notes = []
    for size, number in part.tries(seed):
        try:
            t = Try(size, number, notes)
            with t:
                part.judge(t, answer)
        except Trouble as trouble:
            return trouble, notes
        except LabError as error:
            if not t.ran:
                raise LabError(f"check() could not prepare {part.name}.", error.means, "If a capture is open somewhere, recover() ends it; where it finds none, the stream was lost with its function: restart the kernel. Then check again.", error.code) from None
            return Trouble(f"With {size} floats, after your function had run, the check could not go on:\n  {error.did}\n  {error.means}", error.code), notes
    return None, notes
