"""A learner's saved notebook, run and checked in a process of its own. What `labkit check 05` starts.

    python -m labkit.attempt work/exercises/05_diamond.ipynb

Cells run in order, as "restart and run all" would, without those that only check, hint or show progress, and
without a screen: pictures and widgets go nowhere. A cell that raises is told and the next one runs, since a part may not need it.
"""
import ast
import builtins
import contextlib
import io
import json
import linecache
import os
import sys
import traceback
from pathlib import Path

from labkit import exercise, labs, workcopy
from labkit.asking import only_asks
from labkit.errors import LabError
from labkit.raised import place, why, words

SHOWN = 2_000          # characters that a part may print


def cells(path):
    """[(number, source)] of the code cells of a notebook file, numbers from 1 over these. Raises LabError for what is no notebook."""
    try:
        found = json.loads((workcopy.read(path) or b"").decode("utf-8-sig"))["cells"]
        found = [cell["source"] for cell in found if cell["cell_type"] == "code"]
        return [(k, source if isinstance(source, str) else "".join(source)) for k, source in enumerate(found, 1)]
    except OSError as no:
        raise LabError(f"labkit could not read {Path(path).name}: {why(no)}.", "The check runs the notebook as it is saved.", "Save it in work/exercises/, then check again.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise LabError(f"{Path(path).name} is no notebook any more.", "The check runs its code cells.", f"`labkit reset {Path(path).name[:2]}` hands out a new one, and keeps this file beside it.") from None


def run(path):
    """(names that the cells left, [(what went wrong, in a line; the cell)])."""
    names, wrong = {"__name__": "__main__", "display": lambda *things, **how: None}, []
    for number, source in cells(path):
        if only_asks(source):
            continue
        name = f"<code cell {number}>"
        source = _plain(source)
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        try:
            with contextlib.redirect_stdout(_Room(0)):
                exec(compile(source, name, "exec"), names)
        except BaseException as error:           # KeyboardInterrupt too: nobody can interrupt this process but the cell itself
            where = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
            said, line = words(error), f", in `{where[-1].line}`" if where and where[-1].line else ""
            if isinstance(error, SyntaxError) and error.filename == name:
                said, line = f"{type(error).__name__}: {error.msg}", f", in line {error.lineno}" + f": `{(error.text or '').strip()}`" * bool(error.text)
            wrong.append((f"code cell {number} raised {said}{line}", source))
    return names, wrong


class _Room(io.TextIOBase):
    """A standard output that keeps its first `most` characters."""

    def __init__(self, most):
        self.most, self.kept, self.more = most, "", 0

    def writable(self):
        return True

    def write(self, text):
        room = text[:self.most - len(self.kept)]
        self.kept += room
        self.more += len(text) - len(room)
        return len(text)


@contextlib.contextmanager
def _bounded():
    """Within: of what is printed the first SHOWN characters are shown, afterwards."""
    room = _Room(SHOWN)
    try:
        with contextlib.redirect_stdout(room):
            yield
    finally:
        ends = "" if room.kept.endswith("\n") or not room.kept else "\n"
        sys.stdout.write(room.kept + ends + f"... and {room.more:,} characters more, left out\n" * bool(room.more))


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
    os.chdir(os.path.dirname(os.path.abspath(path)))
    sys.path.insert(0, os.getcwd())
    own = dict(vars(builtins))
    names, wrong = run(path)
    vars(builtins).update(own)                   # a cell may have given print another meaning
    for line, _ in wrong:
        print(line)
    verdicts = [_judge(part, names.get(part.name), [source for _, source in wrong]) for part in lab.parts.values()]
    return all(verdicts)


def _judge(part, answer, broken):
    """Whether a part is right. broken: cells that raised; where its check could not be prepared, that is said, and the next part is judged."""
    try:
        return bool(exercise.check_part(part, answer, terminal=True, aside=_bounded(), missing=_missing(part, broken)))
    except LabError as no:
        print(f"{part.lab.number} {part.name}: not judged.\n{no}")
        return False


def _missing(part, broken):
    """Why no function of a part's name may be there."""
    return "The error above is why." if any(f"def {part.name}" in source for source in broken) else "No cell of the notebook, as it is saved, defines it."


def finish(path):
    """main(), and then the end of this process, whatever threads a cell has left: exit code 0 when all is right."""
    code = 1
    try:
        code = 0 if main(path) else 1
    except LabError as no:
        sys.stdout.write(f"{no}\n")
    except BaseException as error:
        sys.stdout.write(f"The check itself could not go on: {words(error)} ({place(error)}). Your notebook is as you saved it.\n")
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    finish(sys.argv[1])
