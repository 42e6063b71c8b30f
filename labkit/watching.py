"""How watch() learns what happened: after each event of the tracer it asks for the stream's status, and remembers what each thread does next.

When the status has changed, a thread was in something that did it. That is what the thread which noticed has just done, or a
call of CUDA that another thread has not come back from; each call's own code decides.
"""
import sys
import threading
from threading import get_ident

from labkit import graph, kernels
from labkit.backend import backend, cudart
from labkit.called import ROLES, Called, argument, assigned_code, called, code_in, handle_of, peek
from labkit.everywhere import BACK, CALL, LINE, RAISED
from labkit.place import call_at, calls_in, locate, name_of, whose
from labkit.watched import Guilty

NONE, ACTIVE, INVALIDATED = range(3)
_LATER = (0, 600, 901)  # codes that are no reason: success, not ready, "it was lost before"


class _Doing:
    """What a thread has been doing since its last event. what: the Called, or None for a line. role: of calls of interest (ROLES).
    first: the stream it was given first. before: the thread's last error before it, where that tells its code."""
    __slots__ = ("what", "code", "offset", "line", "role", "before", "first", "by_text")

    def __init__(self, what, code, offset, line=None):
        self.what, self.code, self.offset, self.line = what, code, offset, line
        self.by_text, self.role, self.before, self.first = False, None, None, None


class Thread:
    """doing: _Doing. open: things of this thread whose code is not known yet. line: (code, line) of the statement it is in.
    error: its last error as last seen."""

    def __init__(self, ident):
        known = threading._active.get(ident)
        self.name = known.name if known is not None else ""
        self.deaf = known is None or isinstance(known, threading._DummyThread)  # CUDA's own thread: a host function must not call CUDA
        self.doing, self.open, self.line, self.error = _Doing(None, None, None), [], None, None


class Watching:
    """The part of watch that hears the events. What it keeps is made in watch.__enter__."""

    def _hear(self, kind, frame, code, offset, line, what, given):
        try:
            me = get_ident()
            mine = self._threads.get(me)
            if mine is None:
                mine = self._threads[me] = Thread(me)
            if not mine.deaf:
                self._event(mine, me, kind, frame, code, offset, line, what, given)
        except Exception as problem:  # inside the learner's line it would look like the learner's own
            self.trouble = self.trouble or problem

    def _event(self, mine, me, kind, frame, code, offset, line, what, given):
        doing = mine.doing
        if kind == CALL and doing.by_text and doing.code is code:  # a property or an argument of the same line
            return
        answered = kind in (CALL, BACK, RAISED) and given is not None
        while not self._gone:
            turns = self._turns  # read before the question: an answer from before a turn is no news
            asked, status = cudart.cudaStreamIsCapturing(self.stream)
            if int(asked) or int(status) == self.status or self._turn(int(status), turns, me, mine, frame):
                break
        if doing.role is not None or doing.before is not None:
            mine.doing = _Doing(None, doing.code, doing.offset, doing.line)  # once only
            self._over(mine, me, doing, frame)
        if mine.open and (answered or kind == LINE):
            self._answer(mine, code_in(given) if answered else assigned_code(frame, *mine.line) if mine.line else None, kind == LINE)
        if code is kernels.launch.__code__:
            if not self._gone:
                self._missing.launched(me, frame, given)
            return
        if kind == BACK:
            back = frame.f_back
            if code in self._names or back is None:
                return
            mine.doing = _Doing(None, back.f_code, back.f_lasti)
        elif kind == CALL:
            mine.doing = self._calling(mine, me, called(what), frame, code, offset, given)
        else:
            mine.doing = _Doing(None, code, offset, line)
        if kind != CALL and (kind == LINE or mine.line is not None):
            self._missing.statement(mine, me, kind, frame, code, line)
            if kind == LINE:
                mine.line = (code, line)
                if backend.name == "gpu" and not hasattr(sys, "monitoring"):
                    self._by_text(mine, me, frame, code, line)

    def _calling(self, mine, me, what, frame, code, offset, first):
        """A call begins: note what it may be about."""
        doing = _Doing(what, code, offset)
        if what.runtime:
            doing.before = peek()
        role = ROLES.get(what.name)
        if role is None or self._gone:
            return doing
        doing.first = handle_of(first) if role != "work" else None
        if role == "end" and self.status == ACTIVE and doing.first in (self.stream, None):
            self._forks.look()
            self._count()
        elif role == "destroy":
            self._forks.destroyed(doing.first)
            self._gone = doing.first == self.stream
        doing.role = role
        return doing

    def _by_text(self, mine, me, frame, code, line):
        """Python 3.11 does not tell of calls of compiled functions: take the first of interest from the line's text."""
        calls = calls_in(code, line)
        calls = [c for c in calls if name_of(c) in ROLES] or [c for c in calls if name_of(c).startswith("cuda")]
        if calls:
            doing = self._calling(mine, me, Called(name_of(calls[0]), cudart.__name__), frame, code, None, argument(calls[0], frame, 0))
            doing.line, doing.by_text, mine.doing = line, True, doing

    def _over(self, mine, me, doing, frame):
        """A call of interest is over: see what came of it."""
        code = None
        if doing.before is not None:
            code = mine.error = peek()
            if int(code) and int(code) == int(doing.before):  # it could be that of an earlier call
                code = None
        if code is not None:
            self._answer(mine, code, False)
            if int(code) not in (600, *range(900, 909), 0) and self.status == ACTIVE and me == self._capturer:
                self.refused.append(self._name(frame, doing, mine, code))
        elif doing.role == "begin" and doing.first in (self.stream, None) and self.status != INVALIDATED:
            mine.open.append(("begin", doing, self._name(frame, doing, mine, None)))
        if doing.role == "begin" and doing.first in (self.stream, None) and self.status == NONE and code is not None and int(code):
            self.guilty = self.guilty or self._name(frame, doing, mine, code, "no capture began")
        elif doing.role == "wait" and self.status == ACTIVE:
            self._forks.waited(frame, doing)
        elif doing.role == "work" and self.status == ACTIVE and (code is None or not int(code)):
            self._missing.called(me, frame, doing)
        elif doing.role == "destroy" and self._gone and self.status == ACTIVE:
            self.status = NONE
            self.guilty = self.guilty or self._name(frame, doing, mine, code, "its stream was destroyed: it can't end any more")

    def _count(self):
        state = graph.capture_state(self.stream)
        if state.status == "Active":
            self.nodes = len(graph.nodes(state.graph))

    # ---- the status has changed ----

    def _turn(self, status, turns, me, mine, frame):
        """The stream's status is another. False: another thread was faster, ask again."""
        with self._lock:  # no thread goes on before it has seen the new status: so what each was doing is still there
            if turns != self._turns:
                return False
            before, self._turns = self.status, turns + 1
            doing = {ident: thread.doing for ident, thread in list(self._threads.items())}
            self.lost |= status == INVALIDATED
            if status == INVALIDATED and self.guilty is None:
                self._suspect(me, doing, frame)
            elif status == NONE and before == ACTIVE:
                ends = [i for i, d in doing.items() if d.role == "end"]  # the thread that ends it may not be the one that notices
                self._over_now(me if not ends or me in ends else ends[0], doing, me, frame)
            self.status = status
        if status == ACTIVE:
            starts = [i for i, d in doing.items() if d.role == "begin"]
            self._began(me if not starts or me in starts else starts[0])
        elif status == INVALIDATED:
            self._lost(me, mine, doing[me])
        return True

    def _began(self, ident):
        self._capturer, self.captures = ident, self.captures + 1
        self._forks.forget()
        self._id, self.ended, self._suspects = graph.capture_state(self.stream).id, None, {}

    def _suspect(self, me, doing, frame):
        """Who was in a call of CUDA when it happened? The reason is the call whose code is one; each thread tells its own later."""
        frames = {**sys._current_frames(), me: frame}
        for ident, one in doing.items():
            if ident == me or (one.what is not None and one.what.cuda):
                found = self._name(frames.get(ident), one, self._threads[ident], None)
                if found is not None:
                    found.mine, found.weight = ident == me, 2 if one.what is None or one.what.cuda else 1
                    self._suspects[ident] = found
                    self._threads[ident].open.append(("lost", one, found))

    def _lost(self, me, mine, doing):
        if me in self._suspects and doing.before is None and mine.error is not None:  # no call was seen, and yet there was one
            now = peek()
            if int(now) and int(now) != int(mine.error):
                self._suspects[me].code = now
        self._judge()

    def _judge(self):
        def rank(one):
            if one.code is None:
                return one.weight if one.mine else 1.5
            return 0 if int(one.code) in _LATER else 3 + one.mine
        with self._lock:  # two threads may judge at once: the later one must see what the other learned
            self.guilty = max(list(self._suspects.values()), key=rank, default=self.guilty)

    def _over_now(self, ident, doing, me, frame):
        """The capture has ended; with which code is seen where CUDA or the program shows it."""
        mine, frame = self._threads[ident], frame if ident == me else sys._current_frames().get(ident)
        mine.open.append(("ended", doing[ident], self._name(frame, doing[ident], mine, None, "the capture ended without a graph")))

    def _answer(self, mine, code, last):
        """A code of this thread has been seen: it is that of what was open."""
        if code is not None:
            for why, doing, one in mine.open:
                if one is not None:
                    one.code = code
                if why == "ended":
                    self.ended = code
                    if int(code) and (int(code) != 904 or not self._forks.loose) and one is not None:
                        self.guilty = self.guilty or one
                elif why == "begin" and int(code) and self.status == NONE:
                    one.became = "no capture began"
                    self.guilty = self.guilty or one
                elif why == "begin" and int(code):
                    self.refused.append(one)
                elif why == "lost":
                    self._judge()
        if code is not None or last:
            mine.open = []

    def _name(self, frame, doing, mine, code, became="Invalidated"):
        """The Guilty for what a thread was doing; None where no line of the learner's own is to be seen."""
        place = locate(frame, doing.code, doing.offset, doing.line)
        if place is None:
            return None
        name = doing.what.name if doing.what is not None else place.call.rsplit(".", 1)[-1]
        if not name and doing.code is not None and doing.line is not None and whose(doing.code.co_filename) == "own":
            calls = [name_of(c) for c in calls_in(doing.code, doing.line)]
            name = next((c for c in calls if c.startswith(("cuda", "launch"))), "") if not hasattr(sys, "monitoring") else ""
        elif doing.what is None and call_at(doing.code, doing.offset) is None and hasattr(sys, "monitoring"):
            name = ""
        return Guilty(place, name, mine.name, code, became)
