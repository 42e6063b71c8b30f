"""Grade submissions with nbgrader, each on its own: one that fails stops no other.

nbgrader reads the notebook and keeps the points; restoring.py puts the given cells back; grading.py runs the tests in the sandbox.
What was graded to its end, and has not changed since, is kept (record.py).
"""
import contextlib
import logging
import os
import warnings
from pathlib import Path
from typing import NamedTuple

from labkit.classroom import course, fit, record, sandbox
from labkit.errors import LabError

JUDGE = "labkit.classroom.grading.Judge"
WARNING = ("WARNING: --unsandboxed. Submissions run as you, with your files and your network. Only limits of time and memory hold.\n"
           "Do this with work of people you trust, or on a machine where nothing is worth taking.")


class Graded(NamedTuple):
    """One submission: points (None where it could not be graded), of how many, why not, the notes for the teacher, kept from before."""
    student: str
    assignment: str
    score: float | None
    most: float | None
    why: str
    notes: list
    kept: bool = False


def submissions(root, student=None, assignment=None):
    """[(student, assignment)] in submitted/. assignment: "05_diamond", "05" or "5". Raises LabError where there is none."""
    found = sorted((path.parent.name, path.name) for path in (root / "submitted").glob("*/*") if path.is_dir() and not path.name.startswith("."))
    named = lambda what: assignment in (None, what) or assignment.isdecimal() and what.partition("_")[0] == assignment.zfill(2)  # noqa: E731
    wanted = [(who, what) for who, what in found if student in (None, who) and named(what)]
    if not wanted:
        which = "".join(f" of {word}" for word in (student,) if word) + "".join(f" for {word}" for word in (assignment,) if word)
        raise LabError(f"There is no submission{which} in {root / 'submitted'}.", "A submission is submitted/STUDENT/NN_slug/NN_slug.ipynb." + _there(found),
                       "Put them there, or let `labkit classroom nbgrader COURSE collect NN_slug` or `zip_collect NN_slug` do it.")
    return wanted


def _there(found):
    """What is there instead, in words."""
    return f" There are those of {', '.join(sorted({who for who, _ in found}))[:200]} for {', '.join(sorted({what for _, what in found}))[:200]}." if found else ""


def autograde(root, student=None, assignment=None, sandboxed=True, force=False, say=print):
    """Grade what is in submitted/; a list of Graded. student, assignment: only those. force: also what is graded and has not changed.

    Raises LabError where nothing can be graded: no course, no submission, no nbgrader, or no sandbox and sandboxed.
    """
    course.needs_nbgrader()
    root = Path(root).resolve()
    if course.read(root) is None:
        raise LabError(f"{root} is no course that labkit made.", "Its seed and its settings are missing.", "`labkit classroom export DIR` makes one.")
    wanted = submissions(root, student, assignment)
    if sandboxed:
        sandbox.require()
    else:
        say(WARNING)
    app = _nbgrader(root, sandboxed)
    out = []
    for who, what in wanted:
        out.append(_one(app, root, who, what, force))
        say(told(out[-1]))
    return out


def told(one):
    """A Graded in a line, and its notes below."""
    points = f"{one.score:g} of {one.most:g}" + ", kept from before" * one.kept if one.score is not None else f"not graded: {one.why}"
    return "\n".join([f"{one.assignment}  {one.student}: {points}", *(f"    look at: {note}" for note in one.notes)])


def _nbgrader(root, sandboxed):
    """nbgrader's autograde, set up as the course's nbgrader_config.py says. Raises LabError where that no longer names the judge."""
    from nbgrader.apps import AutogradeApp
    app = AutogradeApp(log_level=logging.CRITICAL)
    with _inside(root):
        app.initialize(argv=[], root=str(root))
    names = app.config.Autograde.get("autograde_preprocessors", [])
    if JUDGE not in [name if isinstance(name, str) else f"{name.__module__}.{name.__name__}" for name in names]:
        raise LabError(f"{course.CONFIG} of this course does not name {JUDGE}.", "nbgrader would run submissions in a kernel with your rights.",
                       f"Put it first in c.Autograde.autograde_preprocessors, or delete {course.CONFIG} and export again.")
    app.config.Judge.sandboxed = sandboxed
    return app


@contextlib.contextmanager
def _inside(folder):
    """nbgrader reads its settings and writes where it stands."""
    before, path = os.getcwd(), os.environ.get("PATH")
    os.chdir(folder)
    os.environ["PATH"] = course.with_tools()["PATH"]
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.pop("PATH") if path is None else os.environ.update(PATH=path)


def _one(app, root, student, assignment, force):
    """Grade one submission; whatever happens to it is told in the Graded."""
    from nbgrader.converters import Autograde
    folder = root / "submitted" / student / assignment
    why = fit.unfit(folder)
    kept = not why and not force and record.stands(root, student, assignment, record.digest(folder, app.coursedir.db_url))
    if not why and not kept:
        heard = _Heard()
        app.log.addHandler(heard)
        try:
            with _inside(root), warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Object of type <Submitted")      # SQLAlchemy's, about nbgrader's own habits
                app.coursedir.student_id, app.coursedir.assignment_id = student, assignment
                converter = Autograde(coursedir=app.coursedir, parent=app)
                converter.force, converter.post_convert_hook = True, record.finished
                converter.start()
        except (Exception, SystemExit) as error:
            why = heard.reason or f"{type(error).__name__}: {error}".splitlines()[0][:300]
        finally:
            app.log.removeHandler(heard)
    notes = root / record.NOTES / assignment / f"{student}.txt"
    return Graded(student, assignment, *(_points(app, student, assignment) if not why else (None, None)), why,
                  notes.read_text(encoding="utf-8").splitlines() if notes.is_file() and not why else [], kept)


def _points(app, student, assignment):
    from nbgrader.api import Gradebook
    with Gradebook(app.coursedir.db_url) as book:
        found = book.find_submission(assignment, student)
        return found.score, found.max_score


class _Heard(logging.Handler):
    """Keeps the last line of the last traceback that nbgrader logged: the reason, which its own exception does not carry."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.reason = ""

    def emit(self, record):
        lines = record.getMessage().strip().splitlines()
        if lines and lines[0].startswith("Traceback"):
            reasons = [line for line in lines if line and not line[0].isspace() and not line.startswith(("Traceback", "During", "The above"))]
            self.reason = reasons[-1][:300] if reasons else ""
        elif lines and not self.reason and lines[0].startswith("No notebooks"):
            self.reason = lines[0][:300]
