"""A program in a Python process of its own, so that a crash or a hang stays there: `in_child()`.

    def touch(address):
        import ctypes
        print("about to read")
        ctypes.string_at(address, 1)

    in_child(touch, 20, 0)
    # about to read
    # (child: SIGSEGV)

An illegal address breaks CUDA for the rest of a process, and some mistakes end it. In a child they are results.
"""
import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from labkit.alone import standalone
from labkit.backend import backend
from labkit.errors import LabError

KEPT = 20_000                                   # characters of output that are kept
LONGEST = 600                                   # seconds
_ANNOUNCED = re.compile(r"labkit runs on (?:your GPU|the capture simulator): [^\n]*\n")

# What the child runs first: it follows the limit even where its parent is gone, and says what an uncaught exception was.
_START = """
import os, sys
path, limit = sys.argv[1:3]
try:
    import resource, signal
    signal.alarm(int(float(limit)) + 5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
def uncaught(kind, error, trace):
    code, text = getattr(error, "code", None), str(error).strip()
    text = f"{code.name} ({int(code)})" if hasattr(code, "name") else text.splitlines()[0] if text else ""
    with open(path + ".error", "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(kind.__name__ + (": " + text if text else ""))
    sys.__excepthook__(kind, error, trace)
sys.excepthook, sys.argv = uncaught, [path]
with open(path, encoding="utf-8") as file:
    program = compile(file.read(), path, "exec")
exec(program, {"__name__": "__main__", "__file__": path, "__builtins__": __builtins__})
"""


@dataclass(frozen=True, repr=False)
class Child:
    """What became of it. printed: its standard output. ended: "finished", "exit 1", "SIGSEGV", "time limit of 20 s".

    last_error: the uncaught exception that ended it, on one line, or "". errors: the end of its standard error, for a closer look.
    """
    printed: str
    ended: str
    last_error: str = ""
    errors: str = ""

    def __repr__(self):
        text = self.printed.rstrip("\n")
        return (text + "\n" if text else "") + f"(child: {self.ended}{', ' + self.last_error if self.last_error else ''})"


def in_child(program, limit=20, *args):
    """Run `program` in a new Python process for at most `limit` seconds: a Child, whatever happens there.

    program: source text, or a function, which is called there with `args` (numbers, strings, None, and tuples, lists and
    dicts of these). Its source travels and nothing else does, so imports and values belong inside. The child has this process's
    LABKIT_BACKEND, a folder of its own that is deleted afterwards, no input and no display; {KEPT} characters of output are
    kept. At the limit, or when this cell is interrupted, it and all that it started is killed. Raises LabError for a
    program that could not run alone. Stands for: a process of your own for what "Error Handling" calls a corrupted context.
    """
    limit = _seconds(limit)
    source = standalone(program, args)
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "program.py"
        path.write_text(source, encoding="utf-8", errors="surrogatepass")
        printed, errors, ended = _run([sys.executable, "-c", _START, str(path), str(limit)], limit, folder)
        said = Path(f"{path}.error")
        last_error = said.read_text(encoding="utf-8").replace(str(path), path.name) if said.exists() else ""
    return Child(_ANNOUNCED.sub("", printed, count=1), ended, last_error if ended.startswith("exit") else "", errors)


in_child.__doc__ = in_child.__doc__.format(KEPT=f"{KEPT:,}")


def _seconds(limit):
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit <= LONGEST or not math.isfinite(limit):
        raise LabError(f"in_child() got the limit {limit!r:.40}.", f"The limit is a number of seconds, at most {LONGEST}.",
                       "Write in_child(program, 20), and what the program takes after it: in_child(program, 20, 3).")
    return limit


def _run(command, limit, folder):
    """(printed, end of standard error, how it ended)."""
    new_group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if os.name == "nt" else {"start_new_session": True}
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                             env=_environment(), **new_group)
    out, err = _Reader(child.stdout), _Reader(child.stderr)
    late = False
    try:
        child.wait(limit)
    except subprocess.TimeoutExpired:
        late = True
    finally:                                     # also when this cell is interrupted
        _kill(child)
    return out.text(), err.text(), f"time limit of {limit:g} s" if late else _ended(child.returncode)


def _environment():
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "LABKIT_RECORD", "PYTHONSTARTUP", "PYTHONINSPECT")}
    home = str(Path(__file__).resolve().parents[1])
    path = [home, *(os.path.abspath(folder) for folder in env.get("PYTHONPATH", "").split(os.pathsep) if folder)]
    return {**env, "LABKIT_BACKEND": backend.name, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1",
            "PYTHONIOENCODING": "utf-8:backslashreplace"}


def _kill(child):
    """End the child and what it started, if anything still runs."""
    if os.name == "nt":
        if child.poll() is None:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(child.pid)], capture_output=True)
            child.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):      # its session ends with it
            os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):     # the driver may hold on to a process for ever
        child.wait(5)


def _ended(code):
    if code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
        return f"signal {-code}"
    return "finished" if code == 0 else f"exit {code}" if code < 1 << 31 else f"crash {code:#x}"      # Windows numbers its crashes


class _Reader(threading.Thread):
    """Reads a pipe to its end, so that the child never waits for room, and keeps the first KEPT characters."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.kept, self.more = pipe, bytearray(), 0
        self.start()

    def run(self):
        with self.pipe, contextlib.suppress(OSError, ValueError):
            while piece := self.pipe.read1(65536):
                room = max(0, 4 * KEPT - len(self.kept))      # at most 4 bytes a character
                self.kept += piece[:room]
                self.more += len(piece[room:])

    def text(self):
        self.join(1)                              # something that left the child's session may hold the pipe open
        text = bytes(self.kept).decode("utf-8", errors="replace").replace("\r\n", "\n")
        cut = len(text) - KEPT
        return text if cut <= 0 and not self.more else text[:KEPT] + "\n... and more, left out\n"
