"""nbgrader's preprocessors for a course of labkit's: Restore (restoring.py), Judge and Review. nbgrader_config.py names them.

Judge takes the place of nbgrader's Execute. No kernel is started: each test runs in a sandboxed process of its own, after
the code cells above it, and what it printed becomes the cell's output. Learners' cells keep no output.
"""
import re
import time
from pathlib import Path

from nbformat import v4
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Float, Integer

from labkit.classroom import judge, suspicion
from labkit.classroom.inside import test_of
from labkit.classroom.limits import Limits
from labkit.classroom.record import NOTES
from labkit.classroom.restoring import Restore  # noqa: F401

_ODD = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\uffff]|[\u202a-\u202e\u2066-\u2069]")


class Judge(NbGraderPreprocessor):
    """Runs the tests of a submission, and notes what a teacher should look at."""

    seconds = Float(60, help="Seconds that one test may take.").tag(config=True)
    notebook_seconds = Float(600, help="Seconds that the tests of one notebook may take together.").tag(config=True)
    memory = Integer(1024, help="MiB that the processes of one test may have together.").tag(config=True)
    processes = Integer(100, help="Processes and threads of one test.").tag(config=True)
    sandboxed = Bool(True, help="Run tests in bubblewrap. False runs a stranger's code with your rights.").tag(config=True)

    def preprocess(self, nb, resources):
        above, notes, left = [], [], self.notebook_seconds
        for number, cell in enumerate(nb.cells, 1):
            if cell.cell_type != "code":
                continue
            cell.outputs, cell.execution_count = [], None
            if not utils.is_grade(cell) or utils.is_solution(cell):
                above.append((f"<cell {number}>", cell.source))
                if not utils.is_locked(cell) and not test_of(cell.source):        # a copied test, or one that lost its marks, does not run
                    notes += [f"cell {number}, {line}" for line in suspicion.look(cell.source)]
                continue
            start = time.monotonic()
            outcome = self._test(above, cell.source, left)
            left -= time.monotonic() - start
            cell.outputs = list(_outputs(outcome))
            if outcome.note:
                notes.append(f"{cell.metadata.nbgrader['grade_id']} {outcome.note}")
        resources["labkit_notes"] = notes = [_plain(note)[:200] for note in notes]
        _keep(resources["nbgrader"], notes)
        return nb, resources

    def _test(self, above, source, left):
        if left <= 0:
            return judge.Outcome(False, "", ("Stopped", "no time left", "Stopped: the tests above used all the time that a notebook has."), "not run: no time left")
        limits = Limits(min(self.seconds, left), self.memory << 20, self.processes)
        return judge.judge(above, source, limits, self.sandboxed)


class Review(NbGraderPreprocessor):
    """Marks the grades of a submission with notes as "needs manual grading", so that the form grader shows them."""

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]
        if resources.get("labkit_notes"):
            with Gradebook(names["db_url"]) as book:
                for cell in filter(utils.is_grade, nb.cells):
                    try:
                        grade = book.find_grade(cell.metadata.nbgrader["grade_id"], names["notebook"], names["assignment"], names["student"])
                    except MissingEntry:
                        continue
                    grade.needs_manual_grade = True
                book.db.commit()
        return nb, resources


def _plain(text):
    """Text that cannot move the cursor, colour a terminal or turn its own direction."""
    return _ODD.sub("?", text)


def _outputs(outcome):
    """A test cell's outputs. nbgrader gives no points where there is an error, all of them where there is none."""
    if outcome.output.strip():
        yield v4.new_output("stream", name="stdout", text=_plain(outcome.output))
    if outcome.error is not None:
        name, value, shown = map(_plain, outcome.error)
        yield v4.new_output("error", ename=name, evalue=value, traceback=shown.splitlines())


def _keep(names, notes):
    """The notes of a submission in a file of their own, beside submitted/ and autograded/ (nbgrader works in the course's folder)."""
    path = Path(NOTES) / names["assignment"] / f"{names['student']}.txt"
    if notes:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(notes) + "\n", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)
