"""Where in the learner's program something ran: the innermost line that is neither a library's nor the kit's.

`locate` looks outwards from a frame. A statement over several lines is one line, named by its first.
"""
import ast
import functools
import inspect
import linecache
import os
import sys
import sysconfig
import threading
import types
from typing import NamedTuple

from labkit.trace import statements

_KIT = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STDLIB = tuple({os.path.abspath(sysconfig.get_paths()[key]) + os.sep for key in ("stdlib", "platstdlib")})
_QUIET = ("IPython", "ipykernel", "zmq", "tornado", "jupyter_client", "jupyter_core", "traitlets", "comm", "pytest", "_pytest", "pluggy", "nbval",
          "xdist", "execnet", "matplotlib", "numpy", "debugpy", "coverage")
UNKNOWN = object()  # the value of an expression that can't be read without running something


class Place(NamedTuple):
    """file: its name, or "In [12]" for a cell. line, text: of the statement. call: the text of the call that ran there, or "".
    inside: "file:line call" of a library's line it led to, or "". destructor: what ran the call, where it was a __del__, or ""."""
    file: str
    line: int
    text: str
    call: str
    inside: str
    destructor: str

    def __str__(self):
        return f"{self.file}:{self.line}" if not self.file.startswith("In [") else f"{self.file}, line {self.line}"


@functools.lru_cache(None)
def whose(filename):
    """"own", "library", or "quiet": the kit, the standard library, and packages that make no CUDA call."""
    path = os.path.abspath(filename)
    if path.endswith(f"{os.sep}_fast_enum.py"):  # the enums of the CUDA bindings
        return "quiet"
    for part in ("site-packages", "dist-packages"):
        if f"{os.sep}{part}{os.sep}" in path:
            package = path.rsplit(f"{os.sep}{part}{os.sep}", 1)[1].split(os.sep)[0].removesuffix(".py")
            return "quiet" if package in _QUIET else "library"
    if filename.startswith("<"):
        return "own" if filename.startswith(("<stdin", "<ipython", "<cell", "<watched")) else "quiet"
    if path.endswith(f"{os.sep}weakref.py"):  # its finalizers call what the program gave them
        return "library"
    return "quiet" if path.startswith((_KIT, *_STDLIB)) else "own"


def quiet(code):
    return whose(code.co_filename) == "quiet"


def shown(filename):
    """A file's base name; "In [12]" for a notebook's cell. Never a path."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In [{cells[filename]}]" if filename in cells else os.path.basename(filename)


@functools.lru_cache(64)
def _parsed(filename, source):
    """(owner of each line, {(line, end line, column, end column): the ast.Call there}) of a source text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}, {}
    calls = {(n.lineno, n.end_lineno, n.col_offset, n.end_col_offset): n for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return statements(source), calls


def parsed(code):
    return _parsed(code.co_filename, "".join(linecache.getlines(code.co_filename)))


def line_at(code, offset):
    """The line of an instruction."""
    return _positions(code)[offset // 2][0] if offset is not None and offset >= 0 else code.co_firstlineno


@functools.lru_cache(256)
def _positions(code):
    return list(code.co_positions())


def call_at(code, offset):
    """The ast.Call at an instruction, or None."""
    if offset is None or offset < 0:
        return None
    return parsed(code)[1].get(_positions(code)[offset // 2])


def statement(code, line):
    """(first line, text on one line) of the statement that a line belongs to."""
    first, last = parsed(code)[0].get(line, (line, line))
    lines = linecache.getlines(code.co_filename)[first - 1:last]
    return first, " ".join(part.strip() for part in lines)


def calls_in(code, line):
    """The calls in the statement of a line, in the order they are made."""
    owner, calls = parsed(code)
    first, last = owner.get(line, (line, line))
    return [calls[where] for where in sorted((w for w in calls if first <= w[0] <= last), key=lambda w: (w[1], w[3]))]


def name_of(call):
    """The last word of what an ast.Call calls: "cudaMalloc"."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def locate(frame, code=None, offset=None, line=None):
    """The Place of the innermost line of the learner's own, seen from `frame`; None where there is none.

    code, offset or line: what was running, where `frame` has gone on already. A destructor's own lines are not
    the program's: the line on which it happened to run is.
    """
    start = frame
    while start is not None and start.f_code is not code:
        start = start.f_back
    if start is None and code is not None and whose(code.co_filename) == "own":  # another thread's, which Python does not show now
        number = line or line_at(code, offset)
        found = call_at(code, offset)
        return Place(shown(code.co_filename), *statement(code, number), ast.unparse(found.func) if found is not None else "", "", "")
    current, inside, destructor = start or frame, "", ""
    moved = start is not None
    while current is not None:
        here = current.f_code
        at, number = (offset, line) if moved else (current.f_lasti, None)
        moved = False
        number = number or line_at(here, at) or here.co_firstlineno
        kind = whose(here.co_filename)
        if kind != "quiet":
            first, text = statement(here, number)
            found = call_at(here, at)
            call = ast.unparse(found.func) if found is not None else ""
            if here.co_name == "__del__" and kind == "own":
                owner = getattr(here, "co_qualname", "").removesuffix(".__del__").split(".")[-1]
                destructor = destructor or f"__del__ of {owner} ({shown(here.co_filename)}:{first}: {text})"
            elif kind == "own":
                return Place(shown(here.co_filename), first, text, call, inside, destructor)
            elif not inside:
                inside = f"{shown(here.co_filename)}:{number} {call or text}".rstrip()
        current = current.f_back
    return None


def variables(frame):
    """A frame's local variables as a plain dict. Before 3.13 a frame keeps the dict that it gives out, and with it
    what the program may want to let go of: so it is emptied, except under a tracer, which writes it back."""
    found = frame.f_locals
    copy = dict(found)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info[:2] == (3, 12) and sys.gettrace() is None:
        found.clear()
    return copy


def read(node, frame, names=None):
    """The value of an expression, read without running anything of the program; UNKNOWN where that can't be."""
    names = variables(frame) if names is None else names
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for space in (names, frame.f_globals, vars(__import__("builtins"))):
            if node.id in space:
                return space[node.id]
    elif isinstance(node, ast.Attribute):
        owner = read(node.value, frame, names)
        plain = inspect.getattr_static(owner, node.attr, UNKNOWN) if owner is not UNKNOWN else UNKNOWN
        getter = getattr(plain, "fget", None)
        if plain is UNKNOWN and not isinstance(owner, types.ModuleType):
            return UNKNOWN
        if owner is not UNKNOWN and (getter is None or (hasattr(getter, "__code__") and getter.__code__.co_filename.startswith(_KIT))):
            return getattr(owner, node.attr, UNKNOWN)
    elif isinstance(node, ast.Subscript):
        owner, key = read(node.value, frame, names), read(node.slice, frame, names)
        if type(owner) in (list, tuple, dict) and type(key) in (int, str):
            return owner[key]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add, ast.Sub)):
        a, b = read(node.left, frame, names), read(node.right, frame, names)
        if type(a) is type(b) is int:
            return a * b if isinstance(node.op, ast.Mult) else a + b if isinstance(node.op, ast.Add) else a - b
    return UNKNOWN


def older_threads(me):
    """Names of the learner's threads that were there before the block."""
    def own(frame):
        while frame is not None:
            if not quiet(frame.f_code) and whose(frame.f_code.co_filename) == "own":
                return True
            frame = frame.f_back
        return False
    frames = sys._current_frames()
    return tuple(t.name for t in threading.enumerate() if t.ident != me and
                 (own(frames.get(t.ident)) and t is not threading.main_thread() or t.name.startswith("ThreadPoolExecutor")))
