"""Generate, collect, autograde, feedback: right, half-right, empty and hostile submissions in one class."""
import hashlib
import json
import os
import re
import socket
import time
from pathlib import Path

import labkit
import pytest
from tests.classroom.conftest import NAME, cell
from tests.classroom.hostile import ATTACKS, CALLS_HOME, DELETES

RESULTS = ("autograded", "feedback", "notes", "gradebook.db", ".nbgrader.log")


def tree(*roots):
    """{path: digest} of all files but the results of grading."""
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for root in roots for path in sorted(Path(root).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and not set(path.parts) & set(RESULTS)}


@pytest.fixture(scope="module")
def graded(sandboxed, make_course, tmp_path_factory):
    """(course, {student: Graded}, {student: seconds}, files before, files after, connections seen)."""
    from labkit.classroom.autograde import autograde
    place = tmp_path_factory.mktemp("class")
    course, home, package = make_course(place / "course"), place / "home", Path(labkit.__file__).parent / "classroom"
    (home / "deep").mkdir(parents=True)
    for canary in (place / "canary", home / "canary", home / "deep" / "canary"):
        canary.write_text("alive")
    right, branch = course.solution("diamond"), course.solution("long_branch")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        course.submit("right", right, branch)
        course.submit("half", right)
        course.submit("empty")
        course.submit("helper_cell", right.replace("-(-x.size // 256)", "blocks(x.size)"), branch, "def blocks(n):\n    return -(-n // 256)\ndraw_nothing(1)\n%matplotlib inline")
        course.submit("hard_coded", right.replace("x.size,", "min(x.size, 2048),"), branch)
        course.submit("no_tests", None, branch, change=lambda made: made["cells"].__delitem__(slice(7, 9)))
        course.submit("no_answer_cell", None, branch, change=lambda made: made["cells"].remove(cell(made, "diamond")))
        course.submit("more_points", None, branch, change=lambda made: [c["metadata"]["nbgrader"].update(points=100) for c in made["cells"] if c["metadata"].get("nbgrader", {}).get("grade")])
        course.submit("other_tests", None, branch, change=lambda made: cell(made, "diamond-visible").update(source="print('right')"))
        course.submit("deletes", DELETES.format(course=str(course.root), home=str(home), labkit=str(package.parent)), branch)
        course.submit("calls_home", CALLS_HOME.format(port=server.getsockname()[1]), branch)
        (course.submit("no_notebook") / f"{NAME}.ipynb").write_text("{")
        (course.submit("link", right) / "notes.txt").symlink_to(home / "canary")
        for student, (diamond, extra, *_) in ATTACKS.items():
            course.submit(student, diamond, branch, extra)
        before, laps = tree(place, package), [time.monotonic()]
        done = autograde(course.root, say=lambda line: laps.append(time.monotonic()))
        after, seen = tree(place, package), 0
        try:
            server.accept()
            seen = 1
        except TimeoutError:
            pass
    return course, {one.student: one for one in done}, {one.student: b - a for one, a, b in zip(done, laps, laps[1:])}, before, after, seen


EXPECTED = {"right": 6, "half": 3, "empty": 0, "helper_cell": 6, "hard_coded": 4.5, "no_tests": 3, "no_answer_cell": 3, "more_points": 3, "other_tests": 3, "deletes": 3, "calls_home": 3,
            **{student: points for student, (_, _, points, _) in ATTACKS.items()}}


@pytest.mark.parametrize("student", EXPECTED)
def test_points_are_those_that_were_earned(graded, student):
    course, done, *_ = graded
    assert (done[student].score, done[student].most) == (EXPECTED[student], 6), done[student]
    from nbgrader.api import Gradebook
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        assert book.find_submission(NAME, student).score == EXPECTED[student]


@pytest.mark.parametrize("student", [student for student, attack in ATTACKS.items() if attack[3]])
def test_what_is_odd_is_noted_for_the_teacher_and_marked_for_review(graded, student):
    course, done, *_ = graded
    assert any(ATTACKS[student][3] in note for note in done[student].notes), done[student].notes
    from nbgrader.api import Gradebook
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        assert book.find_submission(NAME, student).needs_manual_grade


@pytest.mark.parametrize("student", ["right", "half", "empty", "helper_cell"])
def test_honest_work_is_not_accused(graded, student):
    assert graded[1][student].notes == []


@pytest.mark.parametrize("student, word", [("no_notebook", "JSON"), ("link", "no ordinary file")])
def test_what_cannot_be_graded_is_told_and_stops_nobody(graded, student, word):
    assert graded[1][student].score is None and word in graded[1][student].why


def test_nothing_outside_the_results_changed(graded):
    _, _, _, before, after, _ = graded
    assert len(before) > 40 and before == after


def test_no_submission_saw_the_course_or_the_network(graded):
    course, done, _, _, _, connections = graded
    said = {student: "".join(json.dumps(c["outputs"]) for c in json.loads((course.root / "autograded" / student / NAME / f"{NAME}.ipynb").read_text())["cells"]
                             if c["cell_type"] == "code") for student in ("deletes", "calls_home")}
    assert str(course.root) + " False" in said["deletes"] and "SQLite" not in said["deletes"] and "FileNotFoundError" in said["deletes"]
    assert "no network" in said["calls_home"] and "reached" not in said["calls_home"] and not connections


def test_time_is_limited(graded):
    """Two tests of four seconds each may run into the limit; the rest is nbgrader's own work, on a machine that may be busy."""
    laps = graded[2]
    assert 8 <= laps["endless_loop"] < 40 and all(lap < 60 for lap in laps.values()), laps


def test_no_process_is_left(graded):
    """Of those that run now, which other tests may have started, none stays."""
    def running():
        return {name for name in os.listdir("/proc") if name.isdecimal() and b"classroom/inside.py" in _read(f"/proc/{name}/cmdline")}

    mine, end = running(), time.monotonic() + 30
    while mine and time.monotonic() < end:
        time.sleep(0.1)
        mine &= running()
    assert not mine


def _read(path):
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def test_output_is_bounded(graded):
    for path in (graded[0].root / "autograded").rglob("*.ipynb"):
        assert path.stat().st_size < 200_000, path


def test_feedback_says_what_was_expected_and_runs_nothing(graded):
    course, done, *_ = graded
    course.nbgrader("generate_feedback", NAME)
    for student in ("half", "empty", "endless_loop"):
        page = (course.root / "feedback" / student / NAME / f"{NAME}.html").read_text()
        assert "expected back: graph; found: None" in page or "more than 4 seconds" in page
    pages = {path.parent.parent.name: path.read_text() for path in (course.root / "feedback").glob("*/*/*.html")}
    assert len(pages) == len([one for one in done.values() if one.score is not None])
    assert "no cell above this one defines it" in pages["no_answer_cell"]
    assert not any(re.search("seed=|HIDDEN", page) for page in pages.values()) and all("when this is graded" in page for page in pages.values())


def test_a_second_run_grades_only_what_is_new(graded):
    from labkit.classroom.autograde import autograde
    course = graded[0]
    path = course.root / "autograded" / "right" / NAME / f"{NAME}.ipynb"
    then = path.stat().st_mtime_ns
    assert autograde(course.root, "right", say=lambda line: None)[0].score == 6
    assert path.stat().st_mtime_ns == then
    assert autograde(course.root, "right", "05", force=True, say=lambda line: None)[0].score == 6
    assert path.stat().st_mtime_ns != then
