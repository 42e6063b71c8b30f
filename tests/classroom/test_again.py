"""A second run: what was killed is graded again, what changed too, and the rest is kept. No test is run here."""
import json

import pytest
from labkit.classroom import autograde as grader, record, sandbox
from labkit.classroom.commands import app
from tests.classroom.conftest import NAME, as_nbgrader, cell
from typer.testing import CliRunner


class Killed(BaseException):
    """What nothing catches, so that all stays as kill -9 leaves it."""


@pytest.fixture
def course(make_course, tmp_path, no_tests_run, monkeypatch):
    monkeypatch.setattr(sandbox, "require", lambda: None)
    made = make_course(tmp_path / "course")
    made.submit("ann")
    return made


def grade(course, **more):
    return {one.student: one for one in grader.autograde(course.root, say=lambda line: None, **more)}


def page(course, student="ann"):
    """A page of feedback, as it was made before."""
    path = course.root / "feedback" / student / NAME / f"{NAME}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("old")
    return path


def kill(course, monkeypatch, how):
    """A run that ends in the middle of its second test."""
    from labkit.classroom import judge
    passes, run = judge.judge, []

    def killed(*a):
        run.append(a)
        if len(run) == 2:
            raise Killed
        return passes(*a)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(judge, "judge", killed)
        how()


def test_what_has_not_changed_is_kept_and_told(course, no_tests_run):
    assert not grade(course)["ann"].kept and len(no_tests_run) == 4
    course.submit("ben")
    old = page(course)
    said = CliRunner().invoke(app, ["autograde", str(course.root)])
    assert said.exit_code == 0 and len(no_tests_run) == 8
    assert "ann: 6 of 6, kept from before" in said.output and "ben: 6 of 6\n" in said.output and "1 graded, 1 kept from before, 0 not graded" in said.output
    assert old.exists() and f"generate_feedback {NAME}" in said.output


@pytest.mark.parametrize("by_nbgrader", [False, True])
def test_a_killed_run_is_graded_again(course, monkeypatch, by_nbgrader):
    kill(course, monkeypatch, lambda: as_nbgrader(course.root) if by_nbgrader else grade(course))
    assert (course.root / "autograded" / "ann" / NAME / f"{NAME}.ipynb").exists()
    assert grade(course)["ann"][2:] == (6, 6, "", [], False)
    assert grade(course)["ann"].kept


def test_a_killed_second_grading_is_graded_again(course, monkeypatch):
    grade(course)
    kill(course, monkeypatch, lambda: grade(course, force=True))
    assert not grade(course)["ann"].kept


def test_work_that_was_replaced_is_graded_again_and_its_feedback_goes(course):
    course.submit("ben")
    grade(course)
    path, of_ann, of_ben = course.root / "submitted" / "ann" / NAME / f"{NAME}.ipynb", page(course), page(course, "ben")
    made = json.loads(path.read_text())
    cell(made, "diamond")["source"] = "def diamond(): pass"
    path.write_text(json.dumps(made))
    done = grade(course)
    assert (done["ann"].kept, done["ben"].kept) == (False, True)
    assert not of_ann.exists() and of_ben.exists()


def test_tests_that_were_made_anew_are_run(course):
    from nbgrader.api import Gradebook
    grade(course)
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as book:
        book.find_source_cell("given-00", NAME, NAME).source += " "
        book.db.commit()
        assert not record.stands(course.root, "ann", NAME, record.digest(course.root / "submitted" / "ann" / NAME, book.db.get_bind().url.render_as_string()))


def test_what_nbgrader_graded_is_kept_too(course):
    old = page(course)
    as_nbgrader(course.root)
    assert grade(course)["ann"].kept and not old.exists()


def test_a_result_that_was_deleted_is_made_again(course):
    grade(course)
    (course.root / "autograded" / "ann" / NAME / f"{NAME}.ipynb").unlink()
    assert not grade(course)["ann"].kept


def test_plain_nbgrader_refuses_links_and_goes_on(course, tmp_path):
    """The link's target is copied into autograded/ before any preprocessor runs; it must not stay there."""
    (tmp_path / "secret").write_text("secret")
    (course.submit("aaa") / "notes.txt").symlink_to(tmp_path / "secret")
    (course.root / "submitted" / "bbb" / NAME).mkdir(parents=True)
    (course.root / "submitted" / "bbb" / NAME / f"{NAME}.ipynb").symlink_to(course.root / "submitted" / "ann" / NAME / f"{NAME}.ipynb")
    with pytest.raises(Exception, match="error log|traceback"):
        as_nbgrader(course.root)
    assert sorted(path.parent.parent.name for path in (course.root / "autograded").rglob("*") if path.is_file()) == ["ann"]


@pytest.mark.parametrize("word", ["5", "05", NAME])
def test_an_exercise_has_three_names(course, word):
    assert grader.submissions(course.root, assignment=word) == [("ann", NAME)]


def test_what_is_there_is_named_where_nothing_fits(course):
    with pytest.raises(grader.LabError, match=f"(?s)for 06.*ann.*{NAME}"):
        grader.submissions(course.root, assignment="06")
