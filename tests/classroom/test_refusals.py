"""Without a sandbox no stranger's code runs, unless the teacher says so."""
import os
import shutil
import sys
from pathlib import Path

import pytest
from labkit.classroom import autograde, judge, limits, sandbox
from labkit.classroom.commands import app
from labkit.errors import LabError
from tests.classroom.conftest import NAME
from typer.testing import CliRunner


@pytest.fixture
def without_bwrap(monkeypatch, tmp_path):
    """A PATH with everything but bwrap."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if tool.name != "bwrap" and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    monkeypatch.setenv("PATH", str(tools))
    assert not shutil.which("bwrap") and shutil.which("sh")


@pytest.fixture
def trap(make_course, tmp_path):
    """(course, file that exists once a submission has run). The submission is right, and leaves the file."""
    course, sprung = make_course(tmp_path / "course"), tmp_path / "sprung"
    course.submit("ann", course.solution("diamond"), course.solution("long_branch"), f"open({str(sprung)!r}, 'w').close()")
    return course, sprung


def test_without_bwrap_nothing_runs_and_the_advice_is_given(trap, without_bwrap):
    course, sprung = trap
    said = CliRunner().invoke(app, ["autograde", str(course.root)])
    assert said.exit_code == 1 and "apt install bubblewrap" in said.output and "--unsandboxed" in said.output
    assert not sprung.exists() and not (course.root / "autograded").exists()


def test_nbgraders_own_autograde_is_refused_too(trap, without_bwrap):
    course, sprung = trap
    said = course.nbgrader("autograde", NAME, good=False)
    assert "found no bwrap" in said
    assert not sprung.exists() and not (course.root / "autograded" / "ann" / NAME).exists()


def test_a_bwrap_that_may_not_is_no_sandbox(trap, without_bwrap, tmp_path):
    course, sprung = trap
    fake = tmp_path / "tools" / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    sandbox._works.cache_clear()
    try:
        with pytest.raises(LabError, match="No permissions"):
            autograde.autograde(course.root)
    finally:
        sandbox._works.cache_clear()
    assert not sprung.exists()


def test_unsandboxed_warns_loudly_and_grades(trap, without_bwrap):
    course, sprung = trap
    said = CliRunner().invoke(app, ["autograde", str(course.root), "--unsandboxed"])
    assert said.exit_code == 0 and "WARNING" in said.output and "6 of 6" in said.output
    assert sprung.exists()


def test_unsandboxed_still_has_limits():
    outcome = judge.judge([("<cell 1>", "def f(): pass")], "while True: pass", limits.Limits(2, 300 << 20, 40), sandboxed=False)
    assert not outcome.passed and "2 seconds" in outcome.note
    outcome = judge.judge([("<cell 1>", "x = []")], "while True: x.append(bytearray(10 << 20))", limits.Limits(20, 300 << 20, 4000), sandboxed=False)
    assert not outcome.passed and outcome.error[0] == "MemoryError" or "memory" in outcome.note


def test_a_config_that_lost_the_judge_is_refused(trap):
    course, sprung = trap
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text().replace('"labkit.classroom.grading.Judge"', '"nbgrader.preprocessors.Execute"'))
    with pytest.raises(LabError, match="does not name"):
        autograde.autograde(course.root)
    assert not sprung.exists()


def test_in_the_sandbox_the_trap_does_not_spring(trap, sandboxed):
    course, sprung = trap
    said = CliRunner().invoke(app, ["autograde", str(course.root), "--student", "ann"])
    assert said.exit_code == 0 and "6 of 6" in said.output and "look at: cell 4, line 1: open()" in said.output
    assert not sprung.exists()


def test_the_sandbox_holds_little(sandboxed):
    look = ("import os\nprint(sorted(os.listdir('/')), sorted(os.environ), os.getuid(), len([p for p in os.listdir('/proc') if p.isdecimal()]))\n"
            "import labkit\nprint(os.path.dirname(labkit.__file__), os.access(os.path.dirname(labkit.__file__), os.W_OK), os.listdir('/tmp'))\n"
            "print(sorted(os.listdir('/labkit-root')))")
    outcome = judge.judge([], look)
    assert outcome.passed, outcome
    first, second, third = outcome.output.splitlines()
    assert "'work'" not in first and "SECRET" not in first and "HOME" in first
    assert not sandbox.is_root() or " 0 " not in first
    assert second.startswith("/labkit-root/labkit False") and third == "['labkit']"


def test_the_environment_does_not_go_in(sandboxed, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_TEACHER", "x")
    assert "A_SECRET" not in judge.judge([], "import os; print(dict(os.environ))").output


def test_a_fault_of_this_machine_is_no_zero(monkeypatch, sandboxed):
    monkeypatch.setattr(sandbox, "SCRIPT", "labkit/classroom/gone.py")
    with pytest.raises(LabError, match="not be started"):
        judge.judge([], "pass")


def test_no_course_and_no_submission_are_told(make_course, tmp_path):
    with pytest.raises(LabError, match="no course"):
        autograde.autograde(tmp_path)
    with pytest.raises(LabError, match="no submission"):
        autograde.autograde(make_course(tmp_path / "course").root)


def test_the_command_line_names_what_it_did(tmp_path):
    run = CliRunner()
    said = run.invoke(app, ["export", str(tmp_path / "c"), "--only", "05", "--seed", "1"])
    assert said.exit_code == 0 and "1 exercise in" in said.output
    assert run.invoke(app, ["export", str(tmp_path / "c"), "--only", "99"]).exit_code == 1
    assert run.invoke(app, ["nbgrader", str(tmp_path), "generate_assignment", NAME]).exit_code == 1
    assert sys.executable
