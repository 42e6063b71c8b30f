"""What an answer asked of CUDA while it ran: to count, to see who was destroyed, and to refuse what is gone.

Some things can't be read back: how often a graph was launched, whether an executable was destroyed. Calls listens
(listening.py) for as long as the answer runs.
"""
import contextlib
import functools

from labkit import graph as graphs, kernels
from labkit.backend import cudart
from labkit.errors import LabError
from labkit.labs.listening import exchange, listening

NOT_READY = 600
_INSTANTIATE = ("cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cudaGraphInstantiateWithParams")
CREATE = ("cudaStreamCreate", "cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority")
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
MAKES = {**dict.fromkeys(("cudaStreamEndCapture", "cudaGraphCreate", "cudaGraphClone"), "graph"),
         **dict.fromkeys(_INSTANTIATE, "executable"), **dict.fromkeys(CREATE, "stream")}
ENDS = {"cudaGraphDestroy": "graph", "cudaGraphExecDestroy": "executable", "cudaStreamDestroy": "stream"}
TAKES = {**ENDS, **dict.fromkeys((*_INSTANTIATE, "cudaGraphGetNodes", "cudaGraphClone"), "graph"),
         **dict.fromkeys(("cudaGraphLaunch", "cudaGraphUpload", "cudaGraphExecGetFlags"), "executable"),
         **dict.fromkeys(("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaStreamSynchronize"), "stream")}     # what the first argument is


def number(handle):
    """A handle as an int; -1 for what is none, whatever it is: it may have come from an answer."""
    try:
        return int(handle or 0)
    except Exception:
        return -1


def captures(stream):
    """Whether a stream captures now, or has lost its capture."""
    code, status = cudart.cudaStreamIsCapturing(stream)
    return int(code) != 0 or int(status) != 0


def shown(value, most=80):
    """What an answer returned, for a message: its repr, or its type where that fails."""
    try:
        return repr(value)[:most]
    except Exception:
        return type(value).__name__


def kind(result):
    """What was returned, in a word."""
    return "None" if result is None else type(result).__name__


@contextlib.contextmanager
def following(*names, of=None):
    """{name: [(arguments in CUDA's order, answer)]} of the calls of cudart that are made meanwhile: what was destroyed, what was allocated.

    What is destroyed cannot be asked whether it is still there; so the calls are written down. of: the answer that makes them.
    """
    made = {name: [] for name in names}

    def heard(name, call, given):
        answer = call()
        made[name].append((given, answer))
        return answer
    with listening(names, heard, of):
        yield made


@contextlib.contextmanager
def kernels_launched(heard):
    """While it lasts, heard(kernel, stream as an int, arguments) is told of each kernel that labkit's launch() is to queue or capture. It may raise."""
    start = kernels._launchers.get(cudart) or (kernels._sim_launcher if kernels.is_simulator(cudart) else kernels._gpu_launcher)(cudart)

    def told(stream, kernel, grid, block, shared, values):
        heard(kernel, number(stream), [value if isinstance(value, int) else value.item() for value in values])
        return start(stream, kernel, grid, block, shared, values)
    kernels._launchers[cudart] = start
    with exchange(kernels._launchers, cudart, told):
        yield


class Calls:
    """What an answer asks of CUDA while it runs: to count, and to see who was destroyed.

    .asked: [(name, first argument, second)], handles as ints. .there: {"graph", "executable", "stream": {handle: what the answer
    made and did not destroy}}. .gone: {(kind, handle)} destroyed. .nodes, .flags: {executable: nodes of its graph, flags it was made with}.
    .busy: was there work left in t.stream when it returned? A call with what is gone is refused before CUDA sees it.
    keep: handles that the answer may not destroy; it is told success, and they stay. look(graph): looks at each graph before it
    becomes an executable; the words that it returns are raised.
    """

    def __init__(self, t, keep=(), look=None):
        self.t, self.look, self.keep, self.asked, self.gone, self.busy = t, look, {int(one) for one in keep}, [], set(), False
        self.there, self.nodes, self.flags = {"graph": {}, "executable": {}, "stream": {}}, {}, {}

    def run(self, answer, *args):
        """t.run(answer, *args), listened to. What the answer leaves behind is t's from then on."""
        @functools.wraps(answer, updated=())
        def followed(*given):
            try:
                with listening({*MAKES, *TAKES, *WAITS}, self._heard, answer):
                    result = answer(*given)
            finally:
                self._hand_over()
            self.busy = int(cudart.cudaStreamQuery(self.t.stream)[0]) == NOT_READY
            return result
        return self.t.run(followed, *args)

    def _hand_over(self):
        """What the answer left behind is the Try's to destroy, once; what it destroyed itself is not."""
        for mine, kind in ((self.t._streams, "stream"), (self.t._execs, "executable"), (self.t._graphs, "graph")):
            mine[:] = [one for one in mine if (kind, number(one)) not in self.gone]
            mine += [one for handle, one in self.there[kind].items() if all(number(other) != handle for other in mine)]

    def _heard(self, name, call, given):
        first, second = [*map(number, given), 0, 0][:2]
        kind = TAKES.get(name)
        if (kind, first) in self.gone:
            raise LabError(f"{name} was given the handle of a destroyed {kind}.", "Behind such a handle is nothing, or somebody else; on a GPU this may end the program.",
                           "Destroy it after its last use.")
        self.asked.append((name, first, second))
        if name in ENDS and first in self.keep:
            return (cudart.cudaError_t.cudaSuccess,)
        count = 0
        if name in _INSTANTIATE:
            count, wrong = self._looked_at(given)
            if wrong:
                raise LabError("The graph that is to become an executable would go wrong.", wrong, "Look at its nodes and edges.")
        result = call()
        if int(result[0]) == 0:
            self._note(name, first, count, given, result)
        return result

    def _looked_at(self, given):
        if not given or number(given[0]) <= 0:             # CUDA is the one to refuse it
            return 0, None
        return len(graphs.nodes(given[0])), self.look(given[0]) if self.look else None

    def _note(self, name, first, count, given, result):
        if name in ENDS:
            self.there[ENDS[name]].pop(first, None)
            self.gone.add((ENDS[name], first))
        elif name in MAKES and number(result[1]) > 0:
            made = number(result[1])
            self.there[MAKES[name]][made] = result[1]
            self.gone.discard((MAKES[name], made))         # a handle may come again
            if name in _INSTANTIATE:
                extra = given[1] if len(given) > 1 else 0
                self.nodes[made], self.flags[made] = count, int(getattr(extra, "flags", extra))
                if name.endswith("Params") and self.flags[made] & cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagUpload:
                    self.asked.append(("cudaGraphUpload", made, number(extra.uploadStream)))

    def of(self, *names):
        """The calls of these names, in order."""
        return [one for one in self.asked if one[0] in names]

    def alive(self, result, *kinds):
        """What the answer returned, of this kind or of these ("graph", "executable"), and not destroyed: else Trouble."""
        self._hand_over()
        for one, kind in zip(result if isinstance(result, (tuple, list)) else [result], kinds):
            self.t.want((kind, number(one)) not in self.gone, f"back: the {kind}, to be used", f"{'an' if kind == 'executable' else 'a'} {kind} that the function has destroyed")
        try:
            return self.t.parts_of(result, *kinds)
        finally:
            self._hand_over()                              # what came back beside it may be destroyed

    def destroyed(self, one):
        """Whether the answer asked for its destruction, also where it was kept."""
        return any(name in ENDS and first == number(one) for name, first, _ in self.asked)

    def tidied(self, *kinds, but=()):
        """Trouble unless the answer destroyed all that it made of these kinds. but: what it returned."""
        for kind in kinds:
            left = len(set(self.there[kind]) - {number(one) for one in but})
            self.t.want(not left, f"each {kind} that the function made is destroyed in the end", f"{left} {kind}{'s' * (left > 1)} not destroyed (the check hears what is written as cudart.{next(name for name, of in ENDS.items() if of == kind)})")

    def launches(self, count, *, made=1):
        """Trouble unless the answer made so many executables and launched so often, always in t.stream."""
        found, executables = self.of("cudaGraphLaunch"), len(self.of(*_INSTANTIATE))
        note = "" if found else " (the check hears what is written as cudart.cudaGraphLaunch)"
        self.t.want(len(found) == count, f"{count} launch{'es' * (count != 1)} of an executable", f"{len(found)}{note}")
        self.t.want(executables == made, f"{made} instantiation{'s' * (made != 1)}", f"{executables}")
        self.in_the_stream()

    def in_the_stream(self, since=0):
        """Trouble where a launch, of the calls from `since` on, is not in t.stream."""
        other = [one for one in self.asked[since:] if one[0] == "cudaGraphLaunch" and one[2] != number(self.t.stream)]
        self.t.want(not other, "every launch in the stream that was given", f"{len(other)} in another stream")

    def nothing_made(self, since, when):
        """Trouble where an executable was made, in the calls from `since` on. when: in words, why there is no need."""
        made = [one for one in self.asked[since:] if one[0] in _INSTANTIATE]
        self.t.want(not made, f"{when}: an executable that is there is launched", f"{len(made)} instantiation{'s' * (len(made) != 1)}")

    def waited(self):
        self.t.want(not self.busy, "all work is finished when the function returns", "the stream still had work to do")
