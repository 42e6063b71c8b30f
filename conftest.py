"""What nbval leaves out, added after each notebook cell of the one pytest run.

nbval compares the text of the cells tagged `nbval-check-output`. Added here: a cell tagged
`expects-figure` must have made a picture in this run; a checked cell must have a recording, or be
listed in authoring/unrecorded.txt; a `raises-exception` cell must raise; widget views are not
compared; a final `;` keeps a value quiet; and on a GPU other than the recorded one a difference says so.
"""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
# pictures.py, inprocess.py and the builder serve several tests, and this file.
sys.path[:0] = [str(ROOT / "tests" / "notebooks"), str(ROOT / "tools")]

try:
    from nbval.kernel import RunningKernel
    from nbval.plugin import IPyNbCell, NbCellError

    def _execute(self, source, allow_stdin=None):
        """Run a cell as Jupyter does. nbval keeps no history, and then IPython overlooks a final `;`."""
        return self.kc.execute(source, allow_stdin=allow_stdin, stop_on_error=False)

    RunningKernel.execute_cell_input = _execute
except ImportError:  # `pytest tests` without nbval: there are no cells to look at
    IPyNbCell = NbCellError = ()

CELL_TIMEOUT = 120  # seconds; nbval's own default is 2000


def pytest_configure(config):
    if getattr(config.option, "nbval_cell_timeout", 0) > CELL_TIMEOUT:
        config.option.nbval_cell_timeout = CELL_TIMEOUT
    os.environ.pop("LABKIT_RECORD", None)  # a test run never writes recordings
    path = os.environ.get("PYTHONPATH")  # the kernels import the labkit of this checkout, installed or not
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), path] if path else [str(ROOT)])


def pytest_itemcollected(item):
    """Leave out of the comparison what nbval cannot compare: widgets and plotted numbers."""
    if not isinstance(item, IPyNbCell):
        return
    import pictures
    from labkit import cells
    compare = item.compare_outputs
    skip = (*item.parent.skip_compare, pictures.PLOTTED)
    item.compare_outputs = lambda test, ref: compare(cells.settle(test), ref, skip)


def unrecorded():
    """{(notebook name, cell index)} of the cells that wait for a recording."""
    lines = (ROOT / "authoring/unrecorded.txt").read_text(encoding="utf-8").splitlines()
    return {(line.split(":")[0], int(line.split(": ")[1].split()[0])) for line in lines}


def elsewhere(cell):
    """Why a difference here may be the driver's: this GPU is not the recorded one. Else None."""
    from labkit import cells
    from labkit.backend import backend
    if backend.name != "gpu":
        return None
    from labkit.record import here
    then, now = cells.recorded(cell) or "", here()
    if then.split(" · ")[:2] == now.split(" · ")[:2]:  # GPU and driver
        return None
    return f"differs from the recorded driver: recorded on {then}, this is {now}"


def problems(item):
    """What is wrong with the outputs of a cell that has just run, beyond nbval's comparison."""
    import pictures
    from labkit import cells
    outputs, tags = item.test_outputs or [], cells.tags(item.cell)
    if cells.FIGURE in tags:
        yield from pictures.problems(outputs, bool(cells.recorded(item.cell)))
    if item.options["check"] and not cells.recorded(item.cell):
        if (item.parent.path.name, item.cell_num) not in unrecorded():
            yield "a checked cell without a recording, and not listed in authoring/unrecorded.txt"
    if item.options["check"] and not cells.printed(outputs).strip():
        yield "a checked cell printed nothing, so nothing was checked"
    if item.options["check_exception"] and not any(o["output_type"] == "error" for o in outputs):
        yield "tagged raises-exception, and nothing was raised"


def _fail_on(item):
    found = list(problems(item))
    if found:
        raise NbCellError(item.cell_num, "; ".join(found), item.cell.source)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if not isinstance(item, IPyNbCell):
        return (yield)
    try:
        result = yield
    except NbCellError as error:
        if str(error) == "Cell outputs differ":
            _fail_on(item)
            if (reason := elsewhere(item.cell)) is not None:
                pytest.xfail(reason)
        raise
    _fail_on(item)
    return result
