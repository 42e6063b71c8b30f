"""24: a warm-up before the capture, and executables for many shapes, of which few are kept."""
import functools

from labkit import graph as graphs
from labkit.arrays import DeviceArray
from labkit.backend import cudart
from labkit.errors import ok
from labkit.kernels import axpy, launch
from labkit.labs.calls import Calls, number
from labkit.labs.caution import GLOBAL, within
from labkit.labs.judging import Lab

LAB = Lab("24_graph_per_shape", "A graph per shape", lesson="17", minutes=15)
DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
SHAPES = 9              # different shapes that come to a service


# ---- part 1 --------------------------------------------------------------------------------------

class _Library:
    """library(buffer, stream): doubles the buffer, by way of a workspace for each stream and size. .calls: [(buffer's address, whether it was captured)]."""

    def __init__(self, t):
        self.t, self.workspaces, self.calls = t, {}, []

    def function(self):
        def library(buffer, stream):
            if not isinstance(buffer, DeviceArray):
                raise TypeError(f"library() takes a buffer and then the stream, and got {type(buffer).__name__} first")
            captured = graphs.capture_state(stream).status != "None"
            self.calls.append((buffer.ptr, captured))
            key = (int(stream), buffer.size)
            if key not in self.workspaces:
                self.workspaces[key] = DeviceArray(ok(cudart.cudaMalloc(buffer.nbytes)), buffer.size, buffer.dtype)
                self.t._buffers.append(self.workspaces[key])            # freed after executables and graphs
            room = self.workspaces[key]
            ok(cudart.cudaMemcpyAsync(room.ptr, buffer.ptr, buffer.nbytes, DEVICE, stream))
            ok(launch(stream, axpy, -(-buffer.size // 256), 256, buffer, room, 1.0, buffer.size))
        return library


@LAB.part(points=3, hints=(
    "What does the library do at its first call that a capture forbids, and what must have happened before for it not to do that?",
    "For which stream, and for which size, does the first call count as the first? And what does it do to the numbers of the buffer that it gets?",
    "Call it once before the begin, on the stream that captures, with the buffer whose numbers nobody needs."))
def warm(t, answer):
    """A graph of one call of the library, which doubles y at each launch. The library was called before, outside of the capture; y has its numbers still."""
    for _ in range(2):                                                   # two libraries: each is cold at first
        library, y, spare = _Library(t), t.buffer(), t.buffer()
        before, _ = t.fresh(y, spare)
        calls = Calls(t)
        result = calls.run(answer, t.stream, library.function(), y, spare)
        t.just(result, 1, "the graph, and nothing else")
        graph = calls.alive(result, "graph")
        inside = [address for address, captured in library.calls if captured]
        names = {y.ptr: "y", spare.ptr: "spare"}
        t.want(inside == [y.ptr], "one call of library in the capture, for y",
               f"{len(inside)} in the capture, for " + ", ".join(names.get(address, "another buffer") for address in inside[:4]) if inside else "none in the capture")
        t.want(not library.calls[0][1], "the first call of library before the capture, as a warm-up", "the first call was in the capture")
        modes = [mode for _, _, mode in calls.of("cudaStreamBeginCapture")]
        t.want(set(modes) <= {int(GLOBAL)}, "a capture of mode Global", "another mode")
        t.expect("after the function has returned", "y", y, before)
        t.shape(graph, {"copy": "Memcpy", "axpy": "axpy"}, [("copy", "axpy")])
        within(t, graph, y=y, **{f"workspace {k}": room for k, room in enumerate(library.workspaces.values())})
        executable = t.executable(graph)
        for which in (1, 2):
            old, rest = t.fresh(y, spare)
            t.launch(executable, which)
            t.expect(f"after launch {which}", "y", y, 2 * old)
            t.expect(f"after launch {which}", "spare", spare, rest)


# ---- part 2 --------------------------------------------------------------------------------------

class _Service:
    """One serve function of the answer, beside what it should do: .kept, {shape: its executable}, the one used last stands last."""

    def __init__(self, t, answer, most):
        self.t, self.most, self.kept, self.worked = t, most, {}, []
        self.y, self.x = t.buffer(t.numbers(SHAPES * t.size)), t.buffer(t.numbers(SHAPES * t.size))
        t.what = self.name = f"With {t.size} floats and most = {most}"
        self.calls = Calls(t)
        self.serve = t.parts_of(self.calls.run(answer, t.stream, self._work(), most), "function")
        t.want(not self.worked, "no call of work before a shape comes", f"{len(self.worked)}")

    def _work(self):
        t = self.t

        def work(shape):
            self.worked.append((shape, graphs.capture_state(t.stream).status == "Active"))
            n = shape * t.size
            for _ in range(2):
                ok(launch(t.stream, axpy, -(-n // 256), 256, self.y, self.x, 1.0, n))
        return work

    def come(self, *shapes):
        """These shapes, one after the other; each is judged."""
        for shape in shapes:
            self._one(shape)

    def _one(self, shape):
        t, hit = self.t, shape in self.kept
        drops = next(iter(self.kept)) if not hit and len(self.kept) == self.most else None
        before = {"executable": set(self.calls.there["executable"]), "asked": len(self.calls.asked), "worked": len(self.worked)}
        old, plus = t.fresh(self.y, self.x)
        had = f"executables for the shapes {', '.join(map(str, self.kept))} (the one used last at the end)" if self.kept else "no executable yet"
        t.what = f"{self.name}, {had}, shape {shape} comes"
        self.calls.run(self.serve, shape)
        asked, worked = self.calls.asked[before["asked"]:], self.worked[before["worked"]:]
        n = shape * t.size
        t.want(len(worked) == (not hit), f"{'no call' if hit else 'one call'} of work", f"{len(worked)} call{'s' * (len(worked) != 1)}")
        t.want(all(captured for _, captured in worked), "work called in a capture", "work called while nothing was captured")
        t.want(all(given == shape for given, _ in worked), "work called for it", f"work called for {worked[0][0] if worked else ''}")
        self._counted(hit, drops, asked, before["executable"])
        old[:n] += 2 * plus[:n]
        t.expect("after serve", "y", self.y, old)
        t.expect("after serve", "x", self.x, plus)
        used = next(first for name, first, _ in asked if name == "cudaGraphLaunch")
        if hit:
            t.want(used == self.kept[shape], "the executable of that shape is launched", "another one is")
        self.kept.pop(drops, None)
        self.kept.pop(shape, None)
        self.kept[shape] = used

    def _counted(self, hit, drops, asked, before):
        """Trouble unless one was launched, the right one was destroyed in time, and no more were made than there may be."""
        t, there = self.t, set(self.calls.there["executable"])
        launches = [one for one in asked if one[0] == "cudaGraphLaunch"]
        note = "" if launches else " (the check listens to what is written as cudart.cudaGraphLaunch)"
        t.want(len(launches) == 1, "one launch", f"{len(launches)}{note}")
        t.want(launches[0][2] == number(t.stream), "a launch on the stream that was given", "one on another stream")
        most = self._at_once(asked, len(before))
        t.want(most <= self.most, f"never more than {self.most} executable{'s' * (self.most > 1)}", f"{most} at once")
        ended = [next((shape for shape, made in self.kept.items() if made == first), None) for name, first, _ in asked if name == "cudaGraphExecDestroy"]
        said = "none is" if drops is None else f"the one of shape {drops} is"
        t.want(ended == ([] if drops is None else [drops]), f"of the executables {said} destroyed",
               ", ".join("one that is new" if shape is None else f"that of shape {shape}" for shape in ended) if ended else "none")
        wanted = len(self.kept) + (not hit) - (drops is not None)
        t.want(len(there) == wanted, f"{wanted} executable{'s' * (wanted > 1)} afterwards", f"{len(there)}")
        graphs_left = len(self.calls.there["graph"])
        t.want(graphs_left <= wanted, "no more graphs than executables are left", f"{graphs_left} graphs, {wanted} executable{'s' * (wanted > 1)}")

    @staticmethod
    def _at_once(asked, count):
        """The most executables at one time during these calls."""
        most = count
        for name, _, _ in asked:
            count += name.startswith("cudaGraphInstantiate")
            count -= name == "cudaGraphExecDestroy"
            most = max(most, count)
        return most

    def in_a_row(self, *shapes):
        """Without waiting, so that executables are dropped that still run: only the numbers are judged, and how many are left."""
        t, serve = self.t, self.serve
        old, plus = t.fresh(self.y, self.x)
        t.what = f"{self.name}, several shapes without a wait in between"

        @functools.wraps(serve, updated=())
        def row(given):
            for shape in given:
                serve(shape)
        self.calls.run(row, shapes)
        for shape in shapes:
            old[:shape * t.size] += 2 * plus[:shape * t.size]
        t.what, when = self.name, f"after the shapes {', '.join(map(str, shapes))} without a wait in between"
        t.expect(when, "y", self.y, old)
        left = len(self.calls.there["executable"])
        t.want(left <= self.most, f"{when}: at most {self.most} executable{'s' * (self.most > 1)}", f"{left}")


@LAB.part(points=5, sizes=(4, 300, 1000), hints=(
    "What does serve have to know about each executable besides its shape, to tell which one was not used for longest? When does that change?",
    "In which order: make and then drop, or drop and then make? Which of the two has one too many for a while, and may either happen inside a capture?",
    "A dictionary keeps the order in which keys were put in. Take a key out and put it in again, and it stands last. Lesson 17 does this under 64 shapes."))
def shapes(t, answer):
    """A function that launches the executable of each shape, made when there is none, with never more than so many: the least recently used is destroyed first."""
    for most in (2, 1, 3):
        service = _Service(t, answer, most)
        a, b, c, d, *rest = (int(n) for n in t.random.permutation(range(1, SHAPES + 1)))
        service.come(a, a, b, a, c, a, b, d, c)
        service.come(*(int(n) for n in t.random.choice([a, b, c, d], 6)))
        service.in_a_row(*rest[:3], a, rest[0])
    two, one = _Service(t, answer, 2), _Service(t, answer, 1)            # each for itself
    two.come(a, b)
    one.come(a)
    two.come(a, c)
    one.come(c)
    two.come(a)
