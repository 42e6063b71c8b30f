"""A learner's saved notebook, run and checked in a process of its own. What `labkit check 05` starts.

    python -m labkit.attempt work/exercises/05_diamond.ipynb

Cells run in order, as "restart and run all" would, without those that only check, hint or show progress, and
without a screen: pictures and widgets go nowhere. A cell that raises is told and the next one runs, since a part may not need it.
"""
import contextlib
import io
import json
import linecache
import os
import sys
import traceback
from pathlib import Path

from labkit import exercise, labs
from labkit.asking import only_asks
from labkit.errors import LabError


def cells(path):
    """[(number, source)] of the code cells of a notebook file, numbers from 1 over all its cells. Raises LabError for what is no notebook."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        return [(k, cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"]))
                for k, cell in enumerate(found, 1) if cell["cell_type"] == "code"]
    except OSError as no:
        raise LabError(f"labkit could not read {Path(path).name}: {no.strerror or no}.", "The check runs the notebook as it is saved.", "Save it in work/exercises/, then check again.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LabError(f"{Path(path).name} is no notebook any more.", "The check runs its code cells.", "`labkit reset NN` hands out a new one, and keeps this file beside it.") from None


def run(path):
    """(names that the cells left, [what went wrong, a line each])."""
    names, wrong = {"__name__": "__main__"}, []
    for number, source in cells(path):
        if only_asks(source):
            continue
        name = f"<cell {number}>"
        source = _plain(source)
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(source, name, "exec"), names)
        except (Exception, SystemExit) as error:
            where = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
            line = f", in `{where[-1].line}`" if where and where[-1].line else f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            said = str(error).strip().splitlines()
            wrong.append(f"cell {number} raised {type(error).__name__}{': ' + said[0] if said else ''}{line}")
    return names, wrong


def _plain(source):
    """What Jupyter makes of %magics and !commands, where it is installed."""
    try:
        from IPython.core.inputtransformer2 import TransformerManager
        return TransformerManager().transform_cell(source)
    except (ImportError, SyntaxError):
        return source


def main(path):
    """Run and check a saved exercise; True when all parts are right."""
    lab = labs.find(Path(path).stem.partition(".")[0])
    os.chdir(Path(path).resolve().parent)
    sys.path.insert(0, os.getcwd())
    names, wrong = run(path)
    for line in wrong:
        print(line)
    verdicts = [exercise.check_part(part, names.get(part.name), terminal=True) for part in lab.parts.values()]
    return all(verdicts)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1]) else 1)
