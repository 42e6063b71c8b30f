"""11: an executable kept by an update or replaced, and the reason why not."""
import numpy as np

from labkit import graph as graphs
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import add, axpy, fill, launch, scale
from labkit.labs.calls import Calls, kind, number, shown
from labkit.labs.judging import Lab
from labkit.labs.shapes import words
from labkit.update import exec_update

LAB = Lab("11_whole_update", "Whole update", lesson="06", minutes=10)
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


class _Work:
    """Graphs over y, z and x that are told apart by what they leave: each makes y and z from x, and reads nothing else."""

    def __init__(self, t):
        self.t, (self.y, self.z, self.x) = t, (t.buffer() for _ in range(3))
        self.factor = [float(f) for f in t.random.permutation(np.arange(2, 9))[:5]]

    def graph(self, steps):
        """A captured graph of steps: (kernel, its arguments without n) or a buffer to clear."""
        t, grid = self.t, -(-self.t.size // 256)
        ok(cudart.cudaStreamBeginCapture(t.stream, GLOBAL))
        for step in steps:
            if isinstance(step, tuple):
                ok(launch(t.stream, step[0], grid, 256, *step[1:], t.size))
            else:
                ok(cudart.cudaMemsetAsync(step.ptr, 0, step.nbytes, t.stream))
        return t.own(ok(cudart.cudaStreamEndCapture(t.stream)))

    def first(self):
        """y = 0, y += f0 x, z = y + x."""
        return self.graph([self.y, (axpy, self.y, self.x, self.factor[0]), (add, self.z, self.y, self.x)])

    def others(self):
        """{in words: (steps, what they leave in y and z as multiples of x)}: three of the first one's shape, four of another."""
        y, z, x, (_, f, g, h, _) = self.y, self.z, self.x, self.factor
        return {"another factor": ([y, (axpy, y, x, f), (add, z, y, x)], f, f + 1),
                "another node more": ([y, (axpy, y, x, f), (axpy, y, x, g), (add, z, y, x)], f + g, f + g + 1),
                "other buffers": ([z, (axpy, z, x, g), (add, y, z, x)], g + 1, g),
                "a kernel where the memset was": ([(fill, y, 0.0), (axpy, y, x, h), (add, z, y, x)], h, h + 1),
                "another kernel": ([y, (add, y, x, x), (add, z, y, x)], 2, 3),
                "a node fewer": ([(add, y, x, x), (add, z, y, x)], 2, 3),
                "the memset in the middle": ([(add, z, x, x), y, (axpy, y, x, f)], f, 2)}

    def launched(self, executable, when):
        """Launch twice, with new numbers in all buffers: what y and z hold, as multiples of x, must be these."""
        t = self.t
        for which in (1, 2):
            _, _, plus = t.fresh(self.y, self.z, self.x)
            t.launch(executable, which)
            for name, buffer, times in zip("yz", (self.y, self.z), when[1:]):
                t.expect(f"the new graph has {when[0]}, launch {which} of what refresh() returned", name, buffer, times * plus)


def _made_from(executable, graph):
    """Whether this executable was made from this graph, not only updated from it: then it knows the graph's nodes."""
    return not int(cudart.cudaGraphNodeGetEnabled(executable, graphs.nodes(graph)[0])[0])


@LAB.part(points=4, hints=(
    "What tells you whether the update was accepted? What happens in your function when it was not: does it go on?",
    "Which two executables are there after a refusal, and who launches which of them from now on? What becomes of the other one?",
    "Update, look at the code, and only where it is not 0: instantiate, then destroy the old one. A call inside ok would raise instead of letting you look."))
def refresh(t, answer):
    """The same executable, updated, where CUDA accepts the update; else one made from the new graph, and the old one destroyed."""
    work = _Work(t)
    for name in t.random.permutation(list(work.others())):
        steps, *left = work.others()[str(name)]
        plan, new = work.first(), work.graph(steps)
        taken = _accepted(t, plan, new)
        executable, kinds = t.executable(plan), graphs.kinds(new)
        calls = Calls(t, keep=[executable, new])             # what is destroyed too early is there all the same
        back = calls.run(answer, executable, new)
        t.want(isinstance(back, cudart.cudaGraphExec_t) and number(back), "an executable back", kind(back))
        calls.alive(back, "executable")
        t.want(not calls.destroyed(new), "the new graph is left as it is: whoever made it destroys it", "cudaGraphDestroy was called with it")
        t.want(graphs.kinds(new) == kinds, f"the new graph as it was: {words(kinds)}", words(graphs.kinds(new)))
        says = f"the new graph has {name}: CUDA {'takes it over in an update' if taken else 'refuses the update'}"
        same = number(back) == number(executable)
        if taken:
            t.want(not calls.destroyed(executable), f"{says}, so the old executable lives on", "it was destroyed")
            t.want(same, f"{says}, so the same executable comes back", "another one, made from the new graph" if _made_from(back, new) else "another one")
        else:
            t.want(_made_from(back, new), f"{says}, so an executable made from the new graph comes back", "the old one, as it was" if same else "another one")
            t.want(calls.destroyed(executable), f"{says}, so the old one is destroyed", "it is still there")
        calls.tidied("executable", "graph", but=[back])
        work.launched(back, (name, *left))


def _accepted(t, plan, new):
    """Whether an update of an executable of plan from new is accepted here."""
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    code, why = exec_update(executable, new)
    ok(cudart.cudaGraphExecDestroy(executable))
    return not int(code)


@LAB.part(points=3, hints=(
    "What do you need to try an update on, and where does it come from? What becomes of it?",
    "What does labkit's helper give back beside the code, and which of its fields are a word and a kind?",
    "Lesson 06 prints fields of the reason, and the text above names all three. Destroy your executable on both ways out: accepted and refused."))
def why_not(t, answer):
    """None for a graph that an update accepts; for the others the word of the reason and the kind of the node where CUDA stopped."""
    work = _Work(t)
    y, z, x, f = work.y, work.z, work.x, work.factor[4]
    cases = {name: steps for name, (steps, *_) in work.others().items()}
    cases |= {"a memset for the last kernel": [y, (axpy, y, x, f), z], "a scale for the axpy": [y, (scale, y, f), (add, z, y, x)]}
    for name in t.random.permutation(list(cases)):
        plan, new = work.first(), work.graph(cases[str(name)])
        before, kinds = t.fresh(y, z, x), graphs.kinds(new)
        twin = t.executable(work.first())
        code, why = exec_update(twin, new)
        wanted = None if not int(code) else (why.result, why.kind)
        calls = Calls(t, keep=[plan, new])
        back = calls.run(answer, plan, new)
        texts = isinstance(back, (tuple, list)) and all(isinstance(word, str) for word in back)
        found = tuple(back) if texts else back
        t.want(found is wanted or texts and found == wanted, f"the new graph has {name}: {wanted or 'None, since CUDA accepts the update'}", shown(found))
        for letter, buffer, values in zip("yzx", (y, z, x), before):
            t.expect("after why_not(...), which only asks", letter, buffer, values)
        t.want(not any(calls.destroyed(one) for one in (plan, new)), "both graphs are left alone: they were not made here", "one of them destroyed")
        t.want(graphs.kinds(plan) == ["Memset", "Kernel", "Kernel"] and graphs.kinds(new) == kinds, "both graphs as they were", "a changed graph")
        calls.tidied("executable", "graph")
