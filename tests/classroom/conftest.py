"""A course in a temporary folder. `make test-classroom` runs these tests; they need nbgrader, and bubblewrap for most.

A machine without a working bwrap fails here, as a skipped sandbox test says nothing. LABKIT_NO_SANDBOX_TESTS=1 skips them all the same.
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import warnings

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("nbgrader") else ["test_*.py"]

NAME = "05_diamond"


class Course:
    """A course with one exercise handed out, and short limits for its tests: 4 s, 300 MiB, 40 processes."""

    def __init__(self, root, like=None):
        from labkit.classroom import course
        self.root = root
        if like is not None:                       # nbgrader takes seconds to start, and a course may be moved
            shutil.copytree(like.root, root)
            return
        course.export(root, only=["05"], seed=5)
        config = root / "nbgrader_config.py"
        text = config.read_text()
        for name, value in (("seconds", 4), ("memory", 300), ("processes", 40)):
            text, count = re.subn(rf"c\.Judge\.{name} = \d+", f"c.Judge.{name} = {value}", text)
            assert count == 1
        config.write_text(text)
        self.nbgrader("generate_assignment", NAME)

    def nbgrader(self, *words, good=True):
        """One of nbgrader's own commands in the course; what it said."""
        from labkit.classroom.course import with_tools
        done = subprocess.run([sys.executable, "-m", "nbgrader", *words], cwd=self.root, env=with_tools(), capture_output=True, text=True, timeout=120)
        assert (done.returncode == 0) == good, done.stderr
        return done.stdout + done.stderr

    def notebook(self, kind="release"):
        return json.loads((self.root / kind / NAME / f"{NAME}.ipynb").read_text())

    def solution(self, part):
        return cell(self.notebook("source"), part)["source"]

    def submit(self, student, diamond=None, long_branch=None, extra=None, change=None):
        """Place a submission: cells that take the place of the stubs, a cell before all parts, and a function that changes the notebook."""
        made = self.notebook()
        for name, text in (("diamond", diamond), ("long_branch", long_branch)):
            if text is not None:
                cell(made, name)["source"] = text
        if extra:
            made["cells"].insert(3, {"cell_type": "code", "source": extra, "metadata": {}, "outputs": [], "execution_count": None, "id": "extra"})
        if change:
            change(made)
        folder = self.root / "submitted" / student / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_text(json.dumps(made))
        return folder


@pytest.fixture
def no_tests_run(monkeypatch):
    """In place of the sandbox: every test passes. The list of the tests that came to be judged."""
    from labkit.classroom import judge
    run = []

    def passes(cells, test, *a):
        run.append(test)
        return judge.Outcome(True, "", None, "")

    monkeypatch.setattr(judge, "judge", passes)
    return run


def as_nbgrader(root):
    """What plain `nbgrader autograde 05_diamond` does for all students, as nbgrader_config.py says, in this process; raises what it raises."""
    from labkit.classroom.autograde import _inside, _nbgrader
    from nbgrader.converters import Autograde
    app = _nbgrader(root, True)
    with _inside(root), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Object of type <Submitted")
        app.coursedir.assignment_id, app.coursedir.student_id = NAME, "*"
        Autograde(coursedir=app.coursedir, parent=app).start()


def cell(notebook, grade_id):
    """The cell of a name, its source as one string."""
    found, = (c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)
    found["source"] = "".join(found["source"])
    return found


@pytest.fixture(scope="session")
def sandboxed():
    """A sandbox can be made here; else the test fails with the advice."""
    if os.environ.get("LABKIT_NO_SANDBOX_TESTS"):
        pytest.skip("LABKIT_NO_SANDBOX_TESTS is set")
    from labkit.classroom import sandbox
    from labkit.errors import LabError
    try:
        sandbox.require()
    except LabError as no:
        pytest.fail(f"{no}\n(LABKIT_NO_SANDBOX_TESTS=1 leaves these tests out.)", pytrace=False)


@pytest.fixture(scope="session")
def make_course(tmp_path_factory):
    """A function: folder -> a Course there."""
    first = Course(tmp_path_factory.mktemp("first") / "course")
    return lambda root: Course(root, like=first)
