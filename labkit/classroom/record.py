"""What was graded, and whether to the end: notes/ASSIGNMENT/STUDENT.json, beside the notes for the teacher.

{"graded": a digest of the submission and of the tests that it met, "finished": false until nbgrader wrote the result}
So a grading that was killed is seen, and work that was replaced, and tests that were made anew.
"""
import hashlib
import json
import shutil
from pathlib import Path

from labkit import workcopy

NOTES = "notes"            # for the teacher alone, so not in autograded/, whose files go into the feedback


def _path(root, student, assignment):
    return Path(root, NOTES, assignment, f"{student}.json")


def digest(folder, db_url):
    """A digest of the files in submitted/STUDENT/NN_slug and of the cells that were handed out for it."""
    from nbgrader.api import Gradebook, MissingEntry
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(repr((str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest())).encode())
    with Gradebook(db_url) as book:
        try:
            notebooks = book.find_assignment(folder.name).notebooks
        except MissingEntry:
            notebooks = []
        given = [(notebook.name, one.name, one.source) for notebook in notebooks for one in notebook.source_cells]
        given += [(notebook.name, one.name, one.max_score) for notebook in notebooks for one in notebook.grade_cells]
    found.update(repr(sorted(given, key=repr)).encode())
    return found.hexdigest()


def begin(root, student, assignment, graded):
    """Grading starts: what is there now is unfinished."""
    _save(_path(root, student, assignment), {"graded": graded, "finished": False})


def finished(assignment, student, notebooks):
    """nbgrader's post_convert_hook: this submission is graded, and feedback that was made of an earlier one is out of date."""
    folder = Path(notebooks[0]).resolve().parent           # nbgrader gives "*" for the student when it grades all of them
    root, assignment, student = folder.parents[2], folder.name, folder.parent.name
    _save(_path(root, student, assignment), {**read(root, student, assignment), "finished": True})
    shutil.rmtree(root / "feedback" / student / assignment, ignore_errors=True)


def read(root, student, assignment):
    """The record of a submission, {} where there is none."""
    try:
        found = json.loads(_path(root, student, assignment).read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def stands(root, student, assignment, graded):
    """True where just this was graded, to the end, and the result is still there."""
    results = Path(root, "autograded", student, assignment).glob("*.ipynb")
    return read(root, student, assignment) == {"graded": graded, "finished": True} and any(results)


def _save(path, what):
    workcopy.write(path, (json.dumps(what) + "\n").encode())
