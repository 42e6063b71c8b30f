"""A learner's saved notebook, run and checked in a process of its own. What `labkit check 05` starts.

    python -m labkit.attempt work/exercises/05_diamond.ipynb

Cells run in order, as "restart and run all" would, without those that only check, hint or show progress, and
without a screen: pictures and widgets go nowhere. A cell that raises is told and the next one runs, since a part may not need it.
"""
import ast
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
        found = json.loads(Path(path).read_text(encoding="utf-8-sig"))["cells"]
        return [(k, cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"]))
                for k, cell in enumerate(found, 1) if cell["cell_type"] == "code"]
    except OSError as no:
        raise LabError(f"labkit could not read {Path(path).name}: {no.strerror or no}.", "The check runs the notebook as it is saved.", "Save it in work/exercises/, then check again.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LabError(f"{Path(path).name} is no notebook any more.", "The check runs its code cells.", "`labkit reset NN` hands out a new one, and keeps this file beside it.") from None


def run(path):
    """(names that the cells left, [what went wrong, a line each])."""
    names, wrong = {"__name__": "__main__", "display": lambda *things, **how: None}, []
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
    """A cell without its %magics and !commands; what is plain Python stays as it is."""
    try:
        ast.parse(source)
        return source
    except (SyntaxError, ValueError):
        lines = [line[:len(line) - len(line.lstrip())] + "pass" if line.lstrip().startswith(("%", "!")) else line for line in source.split("\n")]
        return "\n".join(lines)


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


def finish(path):
    """main(), and then the end of this process, whatever threads a cell has left: exit code 0 when all is right."""
    try:
        code = 0 if main(path) else 1
    except LabError as no:
        print(no)
        code = 1
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    finish(sys.argv[1])
