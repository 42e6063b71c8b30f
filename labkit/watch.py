"""Which line broke my capture? watch() follows the program and asks CUDA after each line and call.

    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, mode))
        ok(launch(stream, kernels.fill, 1, 4, x, 1.0, 4))
        cudart.cudaMalloc(16)                   # watch: the capture was lost here
        cudart.cudaStreamEndCapture(stream)

It reads (is the stream capturing, which nodes are there, what is the last error) and changes nothing. It follows all threads and
all code, CuPy's and PyTorch's Python lines too. On Python 3.11 only threads that the block starts are followed.
Each line and each call costs microseconds (H200, Python 3.12, 2026-12-02: an empty line 3.9 in place of 0.009, a captured launch 78 in
place of 4.3): a time taken in a watched block means nothing.
Outside the block watch costs nothing.
"""
import sys
import threading
from threading import get_ident

from labkit import kernels
from labkit.backend import backend, cudart
from labkit.called import handle_of, peek
from labkit.errors import LabError
from labkit.everywhere import LINE, RAISED, everywhere
from labkit.left_out import Forks, Missing
from labkit.place import older_threads, quiet
from labkit.watched import Report
from labkit.watching import ACTIVE, INVALIDATED, NONE, Thread, Watching


class watch(Watching):
    """`with watch(stream) as w:` names the line and call at which a capture on `stream` was lost.

    stream: a cudaStream_t, its number, or a Stream of CuPy or PyTorch. Prints w.report() when the block ends.
    w.guilty: None, or an object with file, line, text, call, thread and code. w.left_out: work that ran at once and is not in
    the graph. w.unjoined: forked streams that nobody joined, with the line that forked them. w.refused: calls that were refused
    while the capture went on. w.frozen: the numbers that each launch() keeps. Raises LabError for what is no stream, and when two
    watches or films are on already; never swallows an exception.
    Stands for: cudaStreamIsCapturing, cudaStreamGetCaptureInfo, cudaGraphGetNodes, cudaPeekAtLastError.
    """

    def __init__(self, stream):
        self._owner, self.stream = stream, handle_of(stream)
        if self.stream is None:
            what = "nothing (None)" if stream is None else f"{'an' if type(stream).__name__[0] in 'aeiou' else 'a'} {type(stream).__name__}"
            raise LabError(f"watch() got {what}.", "It watches the capture on one stream.",
                           "Pass the stream that begins the capture: a cudaStream_t, its number, or a Stream of CuPy or PyTorch.")
        self._forget()
        self._tracer, self.status, self._forks = None, None, None  # not on yet

    def _forget(self):
        self.guilty, self.left_out, self.refused, self.frozen = None, [], [], []
        self.nodes, self.captures, self.ended, self.trouble, self.lost = 0, 0, None, None, False
        self.older = ()

    # ---- on and off ----

    def __enter__(self):
        if self._tracer is not None:
            raise LabError("This watch is on already.", "It follows one block at a time.", "Make another: with watch(stream) as w2.")
        code, status = cudart.cudaStreamIsCapturing(self.stream)
        if int(code):
            raise LabError("watch() could not ask the stream whether it is capturing.", "It is no live stream, or another capture forbids it.",
                           "Pass a stream that has not been destroyed.", code=code)
        self._forget()
        frame, me = sys._getframe(1), get_ident()
        self.status, self._turns, self._gone, self._id, self._capturer = NONE, 0, False, 0, me
        self._threads, self._lock, self._suspects = {me: Thread(me)}, threading.Lock(), {}
        self._threads[me].deaf, self._threads[me].error = False, peek()
        self._forks, self._missing = Forks(self), Missing(self)
        if int(status) == ACTIVE:
            self._began(me)
        self.status, self.lost = int(status), int(status) == INVALIDATED
        heard = {kernels.launch.__code__: None}
        if not hasattr(sys, "monitoring"):
            self.older = older_threads(me)
            if backend.name == "sim":
                calls = {one.__wrapped__: one for one in vars(cudart).values() if hasattr(one, "__wrapped__")}
                heard[cudart.cudaMalloc.__code__] = lambda frame: (  # one code, many names
                    calls[frame.f_locals["function"]], (*frame.f_locals["given"], None)[0])
        self._names = set(heard) - {kernels.launch.__code__}
        tracer = everywhere(self._hear, quiet, heard)
        tracer.start(frame)
        self._tracer = tracer
        return self

    def __exit__(self, kind, value, traceback):
        self._tracer.stop()
        self._tracer = None
        frame = sys._getframe(1)
        self._hear(RAISED if value is not None else LINE, frame, frame.f_code, None, frame.f_lineno, None, value)
        try:
            if self.status == ACTIVE:
                self._forks.look()
                self._count()
        except Exception as problem:  # never in place of what the block raised
            self.trouble = self.trouble or problem
        self._owner = None
        try:
            print(self.report())
        except UnicodeError:  # a terminal that lacks a letter
            print(self.report().encode("ascii", "backslashreplace").decode())
        except (OSError, ValueError):  # nobody can read it any more
            pass
        return False

    def report(self):
        """What was seen, as text."""
        return str(Report(self))

    @property
    def unjoined(self):
        """Forked streams not joined at the end of a capture, or now: Fork(stream, file, line, text)."""
        return self._forks.found() if self._forks is not None else []

    def __repr__(self):
        return self.report()
