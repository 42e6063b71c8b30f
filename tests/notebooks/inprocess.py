"""Run a notebook's code cells in this process: no kernel, so the tests can do it often.

    checked_cells(notebook) -> indices of the cells tagged nbval-check-output
    run_checked(notebook)   -> ids of the checked cells whose text is not the recorded text

A cell runs as Jupyter runs it, as far as the lessons need: one namespace, the last expression
shown, its source readable through linecache. Pictures are drawn into memory and dropped.
"""

import ast
import contextlib
import io
import json
import linecache
from pathlib import Path

from labkit import cells, recover, sim
from labkit.backend import backend

ROOT = Path(__file__).resolve().parents[2]


def load(notebook):
    """A notebook as a dictionary; `notebook` is one already, a path, or a name in notebooks/."""
    if isinstance(notebook, dict):
        return notebook
    path = Path(notebook)
    path = path if path.is_file() else ROOT / "notebooks" / path
    return json.loads(path.read_text(encoding="utf-8"))


def checked_cells(notebook):
    """The indices, among the code cells, of those whose text is held to the recorded text."""
    found = enumerate(cells.code_cells(load(notebook)))
    return [index for index, cell in found if cells.CHECKED in cells.tags(cell)]


def _shown(value):
    """What Jupyter prints for the value of a cell's last expression."""
    if value is None or hasattr(value, "_repr_png_") or hasattr(value, "savefig"):
        return ""
    if hasattr(value, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        return "" if "image/png" in data else data.get("text/plain", "")
    return repr(value)


class Session:
    """One namespace for the cells of a notebook. `run` returns (what was printed, exception).

    It starts as a new kernel would: nothing of an earlier session is left open.
    """

    def __init__(self):
        if backend.name == "sim":
            sim.reset()
        else:
            self._end_captures()
        self.names = Session.latest = {"__name__": "__main__"}
        self.count = 0

    latest = {}  # the names of the session before

    @classmethod
    def _end_captures(cls):
        with contextlib.redirect_stdout(io.StringIO()):
            eval("recover()", {**cls.latest, "recover": recover})

    def run(self, source):
        self.count += 1
        filename = f"<cell {self.count}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), _no_display():
            try:
                body = ast.parse(source, filename).body
                last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
                exec(compile(ast.Module(body, []), filename, "exec"), self.names)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), filename, "eval"), self.names)
                    out.write("" if source.rstrip().endswith(";") else _shown(value))
            except Exception as error:
                return out.getvalue().rstrip("\n"), error
        return out.getvalue().rstrip("\n"), None


@contextlib.contextmanager
def _no_display():
    """IPython's display() prints without a kernel; here it is silent, as pictures are not text."""
    import IPython.display
    import IPython.core.display_functions as functions
    import matplotlib
    matplotlib.use("Agg")
    before = functions.display
    functions.display = IPython.display.display = lambda *objects, **options: None
    try:
        yield
    finally:
        functions.display = IPython.display.display = before


def run_all(notebook):
    """[(code cell, what it printed, exception)] of one run from the top, in a new namespace."""
    session = Session()
    return [(cell, *session.run(cells.text(cell["source"])))
            for cell in cells.code_cells(load(notebook))]


def run_checked(notebook):
    """The ids of the checked cells that fail: they raise, or print other than was recorded.

    Cells without a recording cannot fail that way. A cell that is not checked may raise; the
    checked cells after it then show it.
    """
    failing = []
    for cell, text, error in run_all(notebook):
        if cells.CHECKED in cells.tags(cell) and (error is not None or (
                cells.recorded(cell) and text != cells.printed(cell["outputs"]))):
            failing.append(cell["id"])
    return failing
