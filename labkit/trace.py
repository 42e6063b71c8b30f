"""The kit's line tracer: tells, after each line of a with-block has run, which line that was.

    with lines(lambda line: print(line.number, line.text)):
        a = 1
        b = 2

Only the lines of the block's own frame are followed: a function called there is one line (everywhere.py follows
all). Python 3.12 and newer use sys.monitoring, on this one code object; 3.11 uses sys.settrace, and pauses
another tracer (coverage, a debugger) until the block ends. When off, it costs nothing.
"""

import ast
import linecache
import sys
from typing import NamedTuple

from labkit.errors import LabError

TOOL_IDS = (4, 3)  # 0, 1, 2 and 5 are for debuggers, coverage, profilers and optimizers


class Line(NamedTuple):
    """A statement: the number of its first line, and its text on one line."""
    number: int
    text: str


def statements(source):
    """{line number: (first, last)} of the statement each line of `source` belongs to.

    A compound statement (for, with, if) owns its header only. Empty where `source` is not Python.
    """
    owner = {}
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return owner
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            for number in range(node.lineno, last + 1):
                owner.setdefault(number, (node.lineno, last))
    return owner


class lines:
    """Context manager: `after(Line)` is called when a line of the caller's block has run.

    after: must not raise; what it raises is kept, ends the calls, and comes out of the block.
    frame: whose lines; the caller's by default. Raises LabError when both tool ids are taken.
    The line that raises or is interrupted counts as run, and the tracer is off afterwards.
    """

    def __init__(self, after, frame=None):
        self.after = after
        self.frame = frame or sys._getframe(1)
        self.error = None
        code = self.frame.f_code
        self.source = linecache.getlines(code.co_filename, self.frame.f_globals)
        self.owner = statements("".join(self.source))
        self.running = None  # the statement that runs now, as (first, last)
        self.position = -1  # of its latest event, in the bytecode

    def __enter__(self):
        self.opening = self._statement(self.frame.f_lineno)
        self._undo = []  # how to put things back, latest first
        try:
            start = self._monitor if hasattr(sys, "monitoring") else self._settrace
            start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind, value, traceback):
        self._stop()
        self._done()
        if self.error is not None and kind is None:
            raise self.error
        return False

    def _stop(self):
        while self._undo:
            self._undo.pop()()

    def _statement(self, number):
        return self.owner.get(number, (number, number))

    def _event(self, number):
        """Line `number` is about to run, so the statement before it has run."""
        statement, position = self._statement(number), self.frame.f_lasti
        # A call over several lines gives several events; only a jump back starts it again.
        if statement != self.running or position <= self.position:
            self._done()
            self.running = statement
        self.position = position

    def _done(self):
        statement, self.running = self.running, None
        if statement is None or statement == self.opening or self.error is not None:
            return
        first, last = statement
        text = " ".join(line.strip() for line in self.source[first - 1:last])
        try:
            self.after(Line(first, text))
        except Exception as error:  # inside a traced line it would look like the learner's own
            self.error = error

    def _monitor(self):
        monitoring, tool = sys.monitoring, take_tool(self._undo)
        code, event = self.frame.f_code, monitoring.events.LINE

        def on_line(code, number):
            if sys._getframe(1) is self.frame:  # not another thread or call of the same code
                self._event(number)

        monitoring.register_callback(tool, event, on_line)
        self._undo.append(lambda: monitoring.register_callback(tool, event, None))
        monitoring.set_local_events(tool, code, event)
        self._undo.append(lambda: monitoring.set_local_events(tool, code, 0))

    def _settrace(self):
        before, own = sys.gettrace(), self.frame.f_trace
        outer = own if getattr(own, "labkit", False) else None  # a watch or film around this one goes on

        def on_line(frame, event, arg):
            if outer is not None:
                outer(frame, event, arg)
            if event == "line":
                self._event(frame.f_lineno)
            return on_line

        on_line.labkit = True
        self._undo.append(lambda: sys.settrace(before))
        self._undo.append(lambda: setattr(self.frame, "f_trace", own))
        self.frame.f_trace = on_line
        if not getattr(before, "labkit", False):
            sys.settrace(lambda frame, event, arg: None)  # follow no new frame


def take_tool(undo):
    """Take one of the two tool ids; how to free it goes into `undo`."""
    monitoring = sys.monitoring
    tool = next((i for i in TOOL_IDS if monitoring.get_tool(i) is None), None)
    if tool is None:
        holders = " and ".join(str(monitoring.get_tool(i)) for i in TOOL_IDS)
        raise LabError("You asked to follow a block line by line.",
                       f"Python lends few tools that right at once, and {holders} hold it.",
                       "Leave the other film, watch or tool first, or restart the kernel.")
    monitoring.use_tool_id(tool, "labkit")
    undo.append(lambda: monitoring.free_tool_id(tool))
    return tool
