"""Errors that say what to do next: `ok()` and `LabError`. catalogue.py holds what each code means; explain() shows all of a page.

The CUDA bindings raise nothing. Every call returns a tuple whose first entry is a code, and a
program that does not look at it goes on with a null graph in its hands. `ok` looks:

    stream = ok(cudart.cudaStreamCreate())      # (err, stream) -> stream
    ok(cudart.cudaStreamSynchronize(stream))    # (err,)        -> None
"""
import linecache
import os
import sys

from labkit.catalogue import ARGUMENT, CATALOGUE, UNKNOWN

_HERE = os.path.dirname(__file__)


class LabError(Exception):
    """What you did, what it means, what to try, and the CUDA name last.

    did, means, try_: one sentence each. code: the CUDA enum member, where CUDA gave one.
    """

    def __init__(self, did, means, try_, code=None):
        self.did, self.means, self.try_, self.code = did, means, try_, code
        lines = [did, f"  What it means: {means}", f"  What to try:   {try_}"]
        if code is not None:
            lines.append(f"  CUDA says:     {code.name} ({int(code)})")
        super().__init__("\n".join(lines))

    def _render_traceback_(self):
        """Jupyter shows these lines in place of a traceback through labkit's own files."""
        return [f"{type(self).__name__}: {self}"]


class NotSimulated(LabError, AttributeError):
    """The real function or behaviour exists; this simulator does not have it."""


class Undefined(LabError):
    """The program does something whose outcome CUDA leaves open, so no answer would be true."""


def _caller_line():
    """The source line, stripped, of the first caller outside this package: the learner's own line."""
    frame = sys._getframe(1)
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()


def ok(result):
    """Check the code of a CUDA call and hand back its values.

    (err,) -> None, (err, v) -> v, (err, v, w) -> (v, w). Raises LabError when err is not success
    (its `.code` is err), or when `result` is not what a CUDA call returns.
    Stands for: CUDA Runtime API, Error Handling.
    """
    if not (isinstance(result, tuple) and result and hasattr(result[0], "name") and hasattr(result[0], "value")):
        raise LabError(f"ok() got {type(result).__name__} {result!r:.60}.",
                       "ok() reads the tuple that a call of cudart returns; its first entry is the code.",
                       "Write ok(cudart.someCall(...)), and do not unpack the tuple first.")
    code = result[0]
    if int(code):
        line = _caller_line()
        means, try_ = getattr(result[-1], "explained", None) or CATALOGUE.get(int(code), UNKNOWN)     # exec_update knows more than the code says
        if int(code) == 1 and (means, try_) == CATALOGUE[1]:
            try_ = next((hint for call, hint in ARGUMENT.items() if call in line), try_)
        raise LabError(f"This call was refused: {line}" if line else "A CUDA call was refused.", means, try_, code=code)
    if len(result) < 3:
        return result[1] if len(result) == 2 else None
    return result[1:]
