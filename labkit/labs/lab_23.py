"""23: numbers that are new in each replay: moved on by the graph itself, or fetched from the host."""
import numpy as np

from labkit.backend import cudart
from labkit.cases.parts import _numbers
from labkit.errors import ok
from labkit.labs.calls import Calls
from labkit.labs.caution import whole
from labkit.labs.judging import Lab
from labkit.labs.memory import HostMemory, argument, copies
from labkit.labs.held import held, later, wrapped

LAB = Lab("23_fresh_numbers", "Fresh numbers", lesson="16", minutes=12)
POISON = -99.0
HELD = 0.1              # seconds that the stream stands still where set_number waits for it, as it should


@LAB.part(points=4, hints=(
    "Which of the kernels is to be in the graph: the one that makes the numbers, the one that moves the step on, or both?",
    "Does the first replay see the step that stands there at the beginning, or the next one? What does that say about the order?",
    "Give each kernel the buffer itself. A number that Python reads from it at the capture is frozen, and a kernel launched outside of the capture runs once."))
def step_counter(t, answer):
    """A graph of noise_at and then advance: each launch fills y with the numbers of the step that stands in step, and leaves it one higher."""
    y, start = t.buffer(), int(t.random.integers(5, 1000))
    step = t.buffer([start], np.int32)
    old, = t.fresh(y)
    calls = Calls(t)
    result = calls.run(answer, t.stream, y, step)
    t.just(result, 1, "the graph, and nothing else")
    graph = calls.alive(result, "graph")
    t.expect("after the capture and before any launch", "y", y, old)
    t.expect("after the capture and before any launch", "step", step, [start])
    found = t.shape(graph, {"numbers": "noise_at", "advance": "advance"}, [("numbers", "advance")])
    argument(t, found["numbers"], 0, "y", y.ptr, "the buffer y")
    argument(t, found["numbers"], 1, "the second argument", step.ptr, "the buffer step")
    argument(t, found["advance"], 0, "the first argument", step.ptr, "the buffer step")
    whole(t, found["numbers"])
    whole(t, found["advance"], 1)
    first, second = t.executable(graph), t.executable(graph)             # both move on the same step
    for which, executable in enumerate((first, first, second, first), 1):
        t.put(y, np.full(t.size, POISON))
        t.launch(executable, which)
        _moved(t, f"after launch {which}, the step having started at {start}", y, step, start + which - 1)
    for again in (start, int(t.random.integers(2000, 9000))):
        t.put(step, [again])
        for which in (1, 2):
            t.put(y, np.full(t.size, POISON))
            t.launch(first, which)
            _moved(t, f"after launch {which} from the step {again} on, which the check wrote", y, step, again + which - 1)
    for _ in range(3):
        ok(cudart.cudaGraphLaunch(first, t.stream))
    ok(cudart.cudaStreamSynchronize(t.stream))
    _moved(t, "after three more launches without a wait in between", y, step, again + 4)


def _moved(t, when, y, step, ran):
    """Trouble unless this was the step of the last replay."""
    t.expect(when, "step", step, [ran + 1])
    t.expect(f"{when} (the numbers of step {ran})", "y", y, _numbers(ran, t.size))


# ---- part 2 --------------------------------------------------------------------------------------

class _Set:
    """One set of buffers, and what the answer made for it."""

    def __init__(self, t):
        memory = HostMemory(1)
        t._buffers.append(memory)                 # freed after executables and graphs
        self.t, self.y, self.x, self.rate, self.cell = t, t.buffer(), t.buffer(), t.buffer([POISON]), memory.view()
        self.cell[0] = self.number = float(t.random.integers(2, 50))

    def capture(self, answer):
        t, before = self.t, self.t.fresh(self.y, self.x)
        calls = Calls(t)
        with copies(answer) as made:
            result = calls.run(answer, t.stream, self.y, self.x, self.rate, self.cell)
        t.just(result, 2, "the graph and the function set_number")
        graph, self.set = calls.alive(result, "graph", "function")
        t.expect("after the capture and before any launch", "y", self.y, before[0])
        t.expect("after the capture and before any launch", "rate", self.rate, [POISON])
        t.want(self.cell[0] == self.number, f"after the capture {self.number:g} in cell, as before", f"{self.cell[0]:g}")
        found = t.shape(graph, {"copy": "Memcpy", "axpy": "axpy_at"}, [("copy", "axpy")])
        for to, from_, count in made:                       # a copy past the end must not run
            t.want((to, from_) == (self.rate.ptr, self.cell.ctypes.data), "a copy of cell to rate", "a copy from or to another address")
            t.want(count == 4, "a copy of 4 bytes, one float32", f"{count} bytes")
        for position, name in enumerate(("y", "x", "rate")):
            argument(t, found["axpy"], position, f"argument {position}", getattr(self, name).ptr, f"the buffer {name}")
        whole(t, found["axpy"])
        self.executable = t.executable(graph)

    def fresh(self):
        self.t.put(self.rate, [POISON])
        return self.t.fresh(self.y, self.x)

    def expect(self, when, total, old, plus):
        self.t.expect(when, "y", self.y, old + total * plus)
        self.t.expect(when, "x", self.x, plus)

    def launched(self, when, number):
        old, plus = self.fresh()
        self.t.launch(self.executable)
        self.expect(f"after a launch, {when}", number, old, plus)

    def tell(self, *numbers):
        """Call set_number with each. It must launch nothing and write into cell."""
        old, plus = self.fresh()
        for number in numbers:
            calls, _ = later(self.t, self.set, number)
            self.t.want(not calls.of("cudaGraphLaunch"), "set_number launches nothing", "a call of cudaGraphLaunch")
            self.t.want(self.cell[0] == number, f"{number:g} in cell after set_number({number:g})", f"{self.cell[0]:g}")
        self.t.expect("after set_number and before a launch", "y", self.y, old)


@LAB.part(points=4, hints=(
    "What does the graph keep of cell: the number, or its address? And when is the number read?",
    "A launch may still wait for its turn when set_number is called. Whose number does it then get, if set_number writes at once?",
    "Lesson 16 has it under the three batches: wait for the stream, then overwrite. In which order, and in which of the two functions?"))
def host_number(t, answer):
    """A graph of a copy and axpy_at, in a row, and a function set_number. Each launch makes y += number x, with the number that was set last before it."""
    here, other = _Set(t), _Set(t)
    here.capture(answer)
    other.capture(answer)
    here.launched("with what stood in cell at first", here.number)
    for which in (1, 2):
        a, b, c = (float(n) for n in t.random.permutation(np.arange(2, 60))[:3])
        here.tell(a)
        other.tell(c)
        here.launched(f"after set_number({a:g})", a)
        here.launched(f"the second one after set_number({a:g})", a)
        other.launched(f"after set_number({c:g}) of another graph", c)
        here.tell(b, c)
        here.launched(f"after set_number({b:g}) and set_number({c:g})", c)
    here.cell[0] = a
    here.launched(f"with {a:g} written into cell by the check", a)
    _in_flight(t, here, a, b)


def _in_flight(t, here, first, second):
    """A launch that has not run yet when the next number is set."""
    here.tell(first)
    old, plus = here.fresh()

    def both(number):
        ok(cudart.cudaGraphLaunch(here.executable, t.stream))
        here.set(number)
        ok(cudart.cudaGraphLaunch(here.executable, t.stream))
        gate.set()
    with held(t, HELD) as gate:
        t.run(wrapped(here.set, both), second, again=True)
    here.expect(f"set_number({first:g}), a launch, set_number({second:g}) while it still waits for its turn, a launch: y + {first:g} x + {second:g} x", first + second, old, plus)
