"""The hook in the root conftest: each case is a cell that nbval alone would pass, or misjudge."""

import importlib.util
import os
import shutil
import subprocess
import sys

import nbformat
import pytest

from inprocess import ROOT
from labkit import cells

HERE = "NVIDIA H200 · driver 580.159.04 · CUDA 13.0 · 2026-12-02 · recorded"
PLOT = ("import matplotlib.pyplot as plt\nfig = plt.figure(figsize=({size}))\n{draw}\n"
        "from IPython.display import display\nimport io\nbuf = io.BytesIO()\nfig.savefig(buf)\nplt.close(fig)\n"
        "import base64\ndisplay({{'image/png': base64.b64encode(buf.getvalue()).decode(), 'text/plain': {alt},\n         {data}}}, raw=True)")
ALT = "'A line that rises from zero to one.'"
RISES = "fig.gca().plot([0, 1])"
CHECK, FIGURE = "nbval-check-output", "expects-figure"


def plot(size="5, 3", draw=RISES, alt=ALT, **source):
    source = {"figure": "graph", "provenance": ["read from the simulator"], **source}
    return PLOT.format(size=size, draw=draw, alt=alt, data=f"'application/vnd.labkit+json': {source!r}")


# name: (source, tags, recorded text or None, passes, what the report says)
CASES = {
    "a good picture": (plot(), [FIGURE], "", True, ""),
    "no picture": ("print(1)", [FIGURE], "", False, "this run made none"),
    "a picture returned, not shown": ("1", [FIGURE], "", False, "this run made none"),
    "a blank picture": (plot(draw="pass"), [FIGURE], "", False, "a blank picture"),
    "a tiny picture": (plot(size="1, 1"), [FIGURE], "", False, "too small to read"),
    "no alt text": (plot(alt="'<Figure size 500x300 with 1 Axes>'"), [FIGURE], "", False, "alt text says nothing"),
    "no data": (plot().replace("application/vnd.labkit+json", "text/html"), [FIGURE], "", False, "without its data"),
    "no provenance": (plot(provenance=[]), [FIGURE], "", False, "where it comes from"),
    "recorded, yet no figures": (plot(missing="no recording for this code"), [FIGURE], "", False, "without its figures"),
    "unrecorded, and no figures": (plot(missing="no recording for this code"), [FIGURE], None, True, ""),
    "numbers nobody recorded": (
        plot(figure="cost", experiment="none", x="n", provenance=["H200 · recorded"],
             series=[{"name": "stream", "what": "e2e", "x": [1], "y": [2], "low": [1], "high": [3]}]),
        [FIGURE], "", False, "which no recording"),
    "broken bytes": ("from IPython.display import display\n"
                     "display({'image/png': 'iVBORw0KGgo=', 'text/plain': " + ALT + "}, raw=True)",
                     [FIGURE], "", False, "does not decode"),
    "the recorded text": ("print(2)", [CHECK], "2\n", True, ""),
    "a final semicolon": ("print(2)\n(1, 2);", [CHECK], "2\n", True, ""),
    "another text": ("print(3)", [CHECK], "2\n", False, "outputs differ"),
    "checked and unrecorded": ("print(4)", [CHECK], None, False, "without a recording"),
    "checked, unrecorded, listed": ("print(5)", [CHECK], None, True, ""),
    "checked and silent": ("x = 1", [CHECK], "", False, "printed nothing"),
    "a widget beside the text": (
        "from IPython.display import display\nprint(6)\n"
        "display({'application/vnd.jupyter.widget-view+json': {}, 'text/plain': 'w'}, raw=True)",
        [CHECK], "6\n", True, ""),
    "raises-exception and nothing raised": ("x = 2", ["raises-exception"], "", False, "nothing was raised"),
    "raises-exception and raised": ("1 / 0", ["raises-exception"], "", True, ""),
    "not checked": ("print(7)", [], "8\n", True, ""),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """{case: (passed, text)} of one nbval run over all cases."""
    root = tmp_path_factory.mktemp("nbval")
    for name in ("conftest.py", "tests/notebooks/pictures.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    listed = list(CASES).index("checked, unrecorded, listed")
    (root / "authoring").mkdir()
    (root / "authoring/unrecorded.txt").write_text(f"cases.ipynb: {listed:02d} print(5)\n")
    book = nbformat.v4.new_notebook()
    for index, (source, tags, text, _, _) in enumerate(CASES.values()):
        cell = nbformat.v4.new_code_cell(source, metadata={"tags": tags}, id=f"cell-{index}")
        if text is not None:
            cell.execution_count = index + 1
            cell.outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
            cell.metadata["labkit"] = {"recorded": HERE, "outputs": cells.seal(cell.outputs, HERE)}
        book.cells.append(cell)
    nbformat.write(book, str(root / "cases.ipynb"))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env", "-p", "no:cacheprovider", "-rA",
         "--color=no", f"--rootdir={root}", "-c", "/dev/null", str(root / "cases.ipynb")],
        capture_output=True, text=True, cwd=root, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))})
    found = {}
    for index, name in enumerate(CASES):
        passed = f"PASSED cases.ipynb::Cell {index}\n" in run.stdout
        start = run.stdout.find(f"cases.ipynb::Cell {index} _")
        end = run.stdout.find("\n____", start)
        found[name] = passed, run.stdout[start:end] if start >= 0 else run.stdout
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_hook_judges(name, report):
    passed, text = report[name]
    _, _, _, passes, says = CASES[name]
    assert passed == passes, text
    assert passes or says in text, text


@pytest.mark.parametrize("here, differs", [
    (HERE.replace("12-02", "12-09"), False),
    (HERE.replace("580.159.04", "610.10"), True),
    (HERE.replace("H200", "L4"), True),
], ids=["another day", "another driver", "another GPU"])
def test_a_difference_on_another_gpu_or_driver_says_so(here, differs, monkeypatch):
    from labkit import record
    from labkit.backend import Backend
    module = sys.modules["labkit.backend"]  # labkit.backend is the Backend itself
    spec = importlib.util.spec_from_file_location("root_conftest", ROOT / "conftest.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    cell = {"execution_count": 1, "outputs": [], "metadata": {"labkit": {"recorded": HERE, "outputs": cells.seal([], HERE)}}}
    monkeypatch.setattr(module, "backend", Backend("gpu", "a test says so"))
    monkeypatch.setattr(record, "here", lambda: here)
    assert bool(hooks.elsewhere(cell)) is differs
    if differs:
        assert hooks.elsewhere(cell).startswith("differs from the recorded driver")
    monkeypatch.setattr(module, "backend", Backend("sim", "a test says so"))
    assert hooks.elsewhere(cell) is None
