"""What watch() looks at beside the status: streams that were drawn into the capture, and work that did not go into it."""
import ast
import sys

from labkit import graph
from labkit.backend import cudart
from labkit.called import WORK, argument, handle_of
from labkit.everywhere import LINE, RAISED
from labkit.gpu_arrays import array_work, current_streams
from labkit.place import UNKNOWN, call_at, calls_in, locate, name_of, read, statement, whose
from labkit.watched import Fork, Frozen, LeftOut

LEGACY, PER_THREAD = (0, 1), 2


def _home(frame, code):
    """The innermost frame of a code, from `frame` outwards; None where there is none."""
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


def _call(frame, doing):
    """(the frame, the ast.Call) of a call that is over."""
    call = call_at(doing.code, doing.offset)
    if call is None and doing.line is not None:
        call = next((c for c in calls_in(doing.code, doing.line) if name_of(c) == doing.what.name), None)
    return _home(frame, doing.code), call


class Forks:
    """Streams that became part of the capture. loose: those whose work the origin does not wait for."""

    def __init__(self, watch):
        self.watch, self.loose, self.before = watch, [], []  # before: of earlier captures
        self.forget()

    def forget(self):
        """Another capture begins."""
        self.before, self.loose = self.found(), []
        self.known, self.gone = {}, {}  # handle: (Fork, nodes it began after); handle: nodes at its end

    def found(self):
        """All that nobody joined. An end that succeeded knows better."""
        ended = self.watch.ended
        return self.before + (self.loose if ended is None or int(ended) else [])

    def waited(self, frame, doing):
        """A wait for an event is over: is there a stream that it drew in?"""
        home, call = _call(frame, doing)
        handles = "StreamWaitEvent" in doing.what.name or doing.what.name == "streamWaitEvent"     # else an int is a time, not a stream
        names = {doing.first: ""} if doing.first is not None and handles else {}
        if call is not None and home is not None:
            for node in ([call.func.value] if isinstance(call.func, ast.Attribute) else []) + call.args:
                value = read(node, home)
                number = handle_of(value)
                if number is not None and (handles or not isinstance(value, int)):
                    names[number] = ast.unparse(node)
        for number, name in names.items():
            if number in self.known or number in (self.watch.stream, *LEGACY) or number in self.gone:
                continue
            if number < 4096 and number != PER_THREAD:  # a flag or a count, no handle
                continue
            state = graph.capture_state(number)
            if state.status == "Active" and state.id == self.watch._id:
                place = locate(frame, doing.code, doing.offset, doing.line)
                own = name and whose(doing.code.co_filename) == "own"
                again = sum((one.file, one.line) == (place.file, place.line) for one, _ in self.known.values())
                shown = (name if own else "a stream") + f" (fork number {again + 1} at this line)" * bool(again)
                fork = Fork(shown, place.file, place.line, place.text, place)
                self.known[number] = (fork, {int(node) for node in state.dependencies})

    def destroyed(self, number):
        """A forked stream is about to be destroyed: it can't be asked any more."""
        if number in self.known:
            self.gone[number] = {int(node) for node in graph.capture_state(number).dependencies}

    def look(self):
        """Which forked streams are not joined now? Their last nodes are not before what the origin's next node waits for."""
        state = graph.capture_state(self.watch.stream)
        if state.status != "Active" or not self.known:
            return
        nodes, before = [int(node) for node in graph.nodes(state.graph)], {}
        for a, b in graph.edges(state.graph):
            before.setdefault(nodes[b], []).append(nodes[a])
        reached, todo = set(), [int(node) for node in state.dependencies]
        while todo:
            node = todo.pop()
            if node not in reached:
                reached.add(node)
                todo += before.get(node, [])
        self.loose = []
        for number, (fork, start) in self.known.items():
            if number in self.gone:
                last = self.gone[number]
            else:
                side = graph.capture_state(number)
                last = {int(node) for node in side.dependencies} if side.id == state.id else set()
            if last - start - reached:
                self.loose.append(fork)


class Missing:
    """Work that was given to a stream outside the capture; and what launches inside it keep."""

    def __init__(self, watch):
        self.watch = watch

    def _inside(self, stream):
        """"here", "elsewhere" (in another capture), or None for a stream that is not capturing."""
        code, status = cudart.cudaStreamIsCapturing(stream)
        if int(code) or not int(status):
            return None
        return "here" if graph.capture_state(stream).id == self.watch._id else "elsewhere"

    def _list(self, me, place, call, stream):
        """List it, if it was the capturing thread's work, or went to the legacy stream."""
        legacy = stream is None or stream in LEGACY
        if place is not None and (legacy or me == self.watch._capturer):
            where = "the legacy default stream" if legacy else "another stream"
            self.watch.left_out.append(LeftOut(place.file, place.line, place.text, call, where, self.watch._threads[me].name, place))

    def launched(self, me, frame, answer):
        """labkit.launch() returns: everything about it is known."""
        if self.watch.status != 1 or not (isinstance(answer, tuple) and int(answer[0]) == 0):
            return
        given, place = frame.f_locals, locate(frame)
        stream = handle_of(given["stream"]) or 0
        inside, kernel = self._inside(stream), given["kernel"]
        if inside == "here" and place is not None:
            values = tuple(value for p, value in zip(kernel.params, given["args"]) if not p.pointer)
            self.watch.frozen.append(Frozen(kernel.name, values, place.file, place.line, place.text))
        elif inside is None:
            self._list(me, place, "launch", stream)

    def called(self, me, frame, doing):
        """A call that queues work, or does it, has succeeded as far as can be seen."""
        home, call = _call(frame, doing)
        at, size = WORK[doing.what.name]
        stream = None
        if at is not None:
            value = argument(call, home, at) if home is not None else UNKNOWN
            stream = handle_of(0 if value is None else value)
            if value is UNKNOWN or stream is None or self._inside(stream) is not None:
                return
        if size is not None and home is not None and argument(call, home, size) == 0:
            return
        self._list(me, locate(frame, doing.code, doing.offset, doing.line), doing.what.name, stream)

    def statement(self, mine, me, kind, frame, code, line):
        """A statement of the capturing thread is over, another begins. Did it give work of CuPy or PyTorch to a stream outside?"""
        watch = self.watch
        open_, mine.arrays = getattr(mine, "arrays", None), None
        if open_ is not None and watch.status == 1 and kind != RAISED:
            self._arrays(me, frame, *open_)
        libraries = "cupy" in sys.modules or "torch" in sys.modules
        if libraries and kind == LINE and me == watch._capturer and watch.status == 1 and whose(code.co_filename) == "own":
            outside = {name: stream for name, stream in current_streams().items() if self._inside(stream) is None}
            if outside:
                state = graph.capture_state(watch.stream)
                mine.arrays = (code, line, outside, len(graph.nodes(state.graph)))

    def _arrays(self, me, frame, code, line, outside, before):
        home = _home(frame, code)
        if home is None or len(graph.nodes(graph.capture_state(self.watch.stream).graph)) != before:
            return
        library = array_work(statement(code, line)[1], home)
        if library in outside:
            self._list(me, locate(home, code, None, line), library, outside[library])
