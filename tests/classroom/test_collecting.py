"""What learning platforms and browsers make of a file's name, and what is said where a name does not fit."""
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from labkit.classroom import collecting, fit
from labkit.classroom.commands import _named, app
from tests.classroom.conftest import NAME
from typer.testing import CliRunner


@pytest.mark.parametrize("path, found", [
    ("Anna Meier_12345_assignsubmission_file_/05_diamond.ipynb", ("Anna Meier", "", 0)),
    ("moodle/Anna Meier_12345_assignsubmission_file_/05_diamond/05_diamond.ipynb", ("Anna Meier", "", 0)),
    ("zara_attempt_x_05_diamond.ipynb", ("zara", "", 0)),
    ("05_diamond_zara_attempt_2026-01-30-15-00-07_05_diamond.ipynb", ("zara", "2026-01-30 15:00:07", 0)),
    ("Exercise 5_zara_attempt_2026-01-30-15-00-07_05_diamond.ipynb", ("zara", "2026-01-30 15:00:07", 0)),
    ("meieranna_4711_81234_05_diamond-2.ipynb", ("meieranna", "", 2)),
    ("zara/05_diamond (1).ipynb", ("zara", "", 1)),
    ("zara/05_diamond-Copy12.ipynb", ("zara", "", 12)),
    ("zara.ipynb", None), ("05_diamond.ipynb", None), ("zara/06_wide_fork.ipynb", None), ("zara/05_diamond.txt", None),
    ("__MACOSX/zara/._05_diamond.ipynb", None), ("zara/.ipynb_checkpoints/05_diamond-checkpoint.ipynb", None)])
def test_the_student_is_read_from_the_name(path, found):
    assert collecting.read(Path("/top", path), Path("/top"), NAME) == found


def test_zip_collect_takes_what_platforms_hand_out(make_course, tmp_path):
    course = make_course(tmp_path / "course")
    archive, handed = course.root / "downloaded" / NAME / "archive", course.root / "release" / NAME / f"{NAME}.ipynb"
    archive.mkdir(parents=True)
    shutil.copy(handed, archive / "zara_attempt_x_05_diamond.ipynb")
    shutil.copy(handed, archive / "ben_1_2_05_diamond.ipynb")
    made = json.loads(handed.read_text())
    made["metadata"]["second"] = True
    (archive / "ben_1_3_05_diamond (1).ipynb").write_text(json.dumps(made))
    with zipfile.ZipFile(archive / "all.zip", "w") as packed:
        packed.write(handed, "Anna Meier_7_assignsubmission_file_/05_diamond.ipynb")
    course.nbgrader("zip_collect", NAME)
    assert sorted(str(path.relative_to(course.root / "submitted")) for path in (course.root / "submitted").rglob("*.ipynb")) == [
        f"{student}/{NAME}/{NAME}.ipynb" for student in ("Anna Meier", "ben", "zara")]
    assert "second" in json.loads((course.root / "submitted" / "ben" / NAME / f"{NAME}.ipynb").read_text())["metadata"]


@pytest.mark.parametrize("files, word", [
    ({f"{NAME}.ipynb": '{"nbformat": 4, "cells": []}'}, ""),
    ({"05_diamond (1).ipynb": "{}"}, f"is called '05_diamond \\(1\\).ipynb'; call it {NAME}.ipynb"),
    ({"a.ipynb": "{}", "b.ipynb": "{}"}, "none of its notebooks"),
    ({"answer.pdf": "%PDF"}, f"no notebook {NAME}.ipynb in it"),
    ({f"{NAME}.ipynb": "%PDF-1.4"}, "no JSON"),
    ({f"{NAME}.ipynb": ""}, "no JSON"),
    ({f"{NAME}.ipynb": "[]"}, "today's format"),
    ({f"{NAME}.ipynb": '{"nbformat": 3, "worksheets": []}'}, "today's format")])
def test_what_does_not_fit_is_told_in_words(tmp_path, files, word):
    import re
    folder = tmp_path / "submitted" / "ann" / NAME
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    assert re.search(word, fit.unfit(folder)) and bool(word) == bool(fit.unfit(folder))


def test_an_assignment_of_the_teachers_own_has_its_own_notebooks(tmp_path):
    for place in ("source/project", "submitted/ann/project"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "part_one.ipynb").write_text('{"nbformat": 4, "cells": []}')
    assert fit.unfit(tmp_path / "submitted" / "ann" / "project") == ""


def test_nbgraders_commands_take_a_number(tmp_path):
    (tmp_path / "source" / NAME).mkdir(parents=True)
    assert _named(tmp_path, ["generate_feedback", "5", "--force"]) == ["generate_feedback", NAME, "--force"]
    for words in (["autograde", NAME, "--student", "5"], ["export"], ["collect", "6"], []):
        assert _named(tmp_path, words) == words


def test_the_help_has_every_step_and_a_course_keeps_work_out_of_git(make_course, tmp_path):
    said = CliRunner().invoke(app, ["--help"]).output
    assert all(word in said for word in ("export", "generate_assignment", "submitted/STUDENT", "zip_collect", "autograde", "generate_feedback", "grades.csv", "docs/teaching.md"))
    ignored = (make_course(tmp_path / "course").root / ".gitignore").read_text().splitlines()
    assert {"gradebook.db*", "submitted/", "autograded/", "feedback/", "notes/", "downloaded/"} <= set(ignored)
