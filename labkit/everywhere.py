"""The tracer that follows all threads and all code: `everywhere`, for watch.

`lines` (trace.py) follows one block. Python 3.12 and newer use sys.monitoring here too. 3.11 uses sys.settrace: there
only threads that the block starts are followed, calls of functions that are not Python's own are not seen, and another tracer
(coverage, a debugger) pauses until the block ends.
"""
import sys
import threading

from labkit.trace import take_tool

LINE, CALL, DONE, BACK, RAISED = "line", "call", "done", "back", "raised"


class everywhere:
    """Follow all threads and all code until stop(): `hear(kind, frame, code, offset, line, what, given)`.

    LINE: a line is about to run. CALL: `what` is about to be called, `given` its first argument (or sys.monitoring.MISSING). DONE: it
    was no Python function, and has returned or raised. BACK: a Python function returns `given`. RAISED: the exception `given` passes.
    offset: of the instruction in `code`, or None. quiet(code): code to leave alone. heard: {code: names}, code that is
    quiet but for its return; names(frame) gives (what, first argument) where a Python function has many names, else None.
    On 3.11 only calls of Python functions are told. `hear` must not raise.
    """

    def __init__(self, hear, quiet, heard=()):
        self.hear, self.quiet, self.heard, self._undo = hear, quiet, dict(heard), []

    def start(self, frame):
        """frame: that of the block."""
        try:
            (self._monitor if hasattr(sys, "monitoring") else self._settrace)(frame)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        while self._undo:
            self._undo.pop()()

    def _monitor(self, frame):
        monitoring, tool = sys.monitoring, take_tool(self._undo)
        hear, quiet, heard, events, off = self.hear, self.quiet, self.heard, monitoring.events, monitoring.DISABLE

        def on_line(code, number):
            return off if quiet(code) else hear(LINE, sys._getframe(1), code, None, number, None, None)

        def on_call(code, offset, what, first):
            return off if quiet(code) else hear(CALL, sys._getframe(1), code, offset, None, what, first)

        def on_done(code, offset, what, first):
            if not quiet(code):
                hear(DONE, sys._getframe(1), code, offset, None, what, None)

        def on_return(code, offset, value):
            return off if quiet(code) and code not in heard else hear(BACK, sys._getframe(1), code, offset, None, None, value)

        def on_raise(code, offset, error):
            if not quiet(code):
                hear(RAISED, sys._getframe(1), code, offset, None, None, error)

        callbacks = {events.LINE: on_line, events.CALL: on_call, events.C_RETURN: on_done, events.C_RAISE: on_done,
                     events.PY_RETURN: on_return, events.RAISE: on_raise}
        for event, callback in callbacks.items():
            monitoring.register_callback(tool, event, callback)
            self._undo.append(lambda event=event: monitoring.register_callback(tool, event, None))
        self._undo.append(lambda: monitoring.set_events(tool, 0))
        monitoring.set_events(tool, sum(callbacks))
        monitoring.restart_events()  # what another tool, or an earlier watch, has switched off under this number

    def _settrace(self, frame):
        before, own = sys.gettrace(), frame.f_trace
        if not _following:
            _before[:] = [threading.gettrace()]
        _following.append(self)
        self._undo.append(self._settrace_no_more)
        self._undo.append(lambda: sys.settrace(before))
        self._undo.append(lambda: setattr(frame, "f_trace", own))
        outer = own if getattr(own, "labkit", False) and own is not _in_frame else None

        def block(frame, event, arg):
            if outer is not None:
                outer(frame, event, arg)
            _in_frame(frame, event, arg)
            return block

        block.labkit = True
        frame.f_trace = block if own is not _in_frame else own
        threading.settrace(_new_frame)
        sys.settrace(_new_frame)

    def _settrace_no_more(self):
        _following.remove(self)
        if not _following:
            threading.settrace(*_before)


_following, _before = [], []  # on 3.11: every `everywhere` that is on; the tracer of new threads before the first


def _new_frame(frame, event, arg):
    """A Python function is called."""
    if not _following:  # a thread that outlived its block
        sys.settrace(None)
        return None
    code, back = frame.f_code, frame.f_back
    if any(one.heard.get(code) for one in _following):  # its names are there from its first line on
        return _in_named
    for one in _following:
        if back is not None and not one.quiet(back.f_code):
            one.hear(CALL, back, back.f_code, back.f_lasti, None, code, None)
    if any(not one.quiet(code) for one in _following):
        return _in_frame
    frame.f_trace_lines = False
    return _in_frame if any(code in one.heard for one in _following) else None


def _in_named(frame, event, arg):
    """The first line of a function with many names: now it can be told which was called."""
    back = frame.f_back
    for one in _following:
        names = one.heard.get(frame.f_code)
        if names and event == "line" and back is not None and not one.quiet(back.f_code):
            one.hear(CALL, back, back.f_code, back.f_lasti, None, *names(frame))
    frame.f_trace_lines = False
    return _in_frame


def _in_frame(frame, event, arg):
    """A line, the return or an exception of a function that is followed."""
    if not _following:
        frame.f_trace = None
        return None
    for one in _following:
        code, at = frame.f_code, (frame.f_lasti, None)
        quiet = one.quiet(code)
        if event == "line" and not quiet:
            one.hear(LINE, frame, code, None, frame.f_lineno, None, None)
        elif event == "return" and (not quiet or code in one.heard):
            one.hear(BACK, frame, code, *at, None, arg)
        elif event == "exception" and not quiet:
            one.hear(RAISED, frame, code, *at, None, arg[1])
    return _in_frame


_new_frame.labkit = _in_frame.labkit = True  # the tracers that `lines` goes along with
