"""labkit check, hint, progress, reset and next, on a work/ of their own."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from labkit import attempt, labs, solved, terminal
from labkit.cli import app
from labkit.errors import LabError
from tests.exercises import sources

LAB = labs.find("05")


def labkit(*words):
    return CliRunner().invoke(app, words)


@pytest.fixture
def mine(work):
    """The path of the learner's own exercise 05, as handed out."""
    assert terminal.work() == work
    return terminal.notebook(LAB)


@pytest.fixture(autouse=True)
def backend_stays(monkeypatch):
    monkeypatch.setenv("LABKIT_BACKEND", os.environ.get("LABKIT_BACKEND", "sim"))


def solve(path):
    shutil.copy(sources.ROOT / "solutions" / path.name, path)


def change(path, old, new):
    """Replace text in the source of the notebook's cells."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps(notebook)
    assert json.dumps(old)[1:-1] in text
    path.write_text(text.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]), encoding="utf-8")


def test_check_of_an_untouched_exercise_is_1_and_helps(mine):
    found = labkit("check", "05")
    assert found.exit_code == 1
    assert found.stdout.count("The function is as it was handed out.") == 2 and "Traceback" not in found.output


def test_check_of_a_solved_exercise_is_0(mine):
    solve(mine)
    found = labkit("check", "5")
    assert found.exit_code == 0, found.output
    assert found.stdout.count(": right") == 2
    assert solved.of(sources.PARTS["diamond"])["solved"]


def test_a_cell_that_raises_is_told_and_the_rest_is_judged(mine):
    solve(mine)
    change(mine, "GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal", "GLOBAL = nothing_of_that_name")
    found = labkit("check", "05")
    assert found.exit_code == 1
    assert "raised NameError: name 'nothing_of_that_name' is not defined, in `GLOBAL = nothing_of_that_name`" in found.stdout
    assert "05 diamond: not yet" in found.stdout


def test_magics_and_prints_of_the_learner_do_no_harm(mine):
    solve(mine)
    change(mine, "GLOBAL = cudart", "%matplotlib inline\nprint('05 diamond: right')\nGLOBAL = cudart")
    found = labkit("check", "05")
    assert found.exit_code == 0 and found.stdout.count("05 diamond: right") == 1


def test_a_thread_that_is_left_does_not_keep_the_check(mine):
    solve(mine)
    change(mine, "GLOBAL = cudart", "import threading, time\nthreading.Thread(target=lambda: time.sleep(1000)).start()\ndisplay(1)\nGLOBAL = cudart")
    assert labkit("check", "05", "--limit", "60").exit_code == 0


def test_a_relative_work_folder_keeps_its_progress(mine, work, monkeypatch):
    solve(mine)
    monkeypatch.chdir(work.parent)
    monkeypatch.setenv("LABKIT_WORK", "work")
    assert labkit("check", "05").exit_code == 0
    assert solved.of(sources.PARTS["diamond"])["solved"] and (work / solved.FOLDER).is_dir()


def test_a_loop_that_does_not_end_is_stopped_with_words(mine):
    change(mine, "# YOUR CODE HERE", "while True: pass")
    started = time.monotonic()
    found = labkit("check", "05", "--limit", "4")
    assert found.exit_code == 1 and "Stopped after 4 s" in found.stdout
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("code", [0, 1])
def test_a_cell_that_ends_python_is_no_right_answer(mine, code):
    solve(mine)
    change(mine, "GLOBAL = cudart", f"import os; os._exit({code})\nGLOBAL = cudart")
    found = labkit("check", "05")
    assert found.exit_code == 1 and "before it had judged every part" in found.stdout


def test_a_crash_is_told(mine):
    change(mine, "# YOUR CODE HERE", "import os; os.kill(os.getpid(), 11)")
    found = labkit("check", "05")
    assert found.exit_code == 1 and "SIGSEGV" in found.stdout


def test_a_notebook_that_is_none_is_told(mine):
    mine.write_text("not json")
    found = labkit("check", "05")
    assert found.exit_code == 1 and "is no notebook any more" in found.output and "labkit reset" in found.output
    assert "Traceback" not in found.output


def test_a_notebook_that_is_gone_is_told(mine):
    mine.unlink()
    found = labkit("check", "05")
    assert found.exit_code == 1 and "labkit reset 05" in found.output


@pytest.mark.parametrize("words", [("check", "99"), ("check", "x"), ("hint", "99"), ("reset", "-"), ("hint", "05", "nobody")])
def test_a_number_that_is_none_ends_in_words(words):
    found = labkit(*words)
    assert found.exit_code in (1, 2) and "Traceback" not in found.output


def test_hint_in_the_terminal_goes_on_where_the_notebook_stopped(mine):
    solved.note_hint(sources.PARTS["diamond"])
    assert "diamond, hint 2 of 3" in labkit("hint", "05").stdout
    assert "long_branch, hint 1 of 3" in labkit("hint", "05", "long_branch").stdout


def test_reset_keeps_the_old_attempt(mine):
    solve(mine)
    labkit("check", "05")
    wrote = mine.read_bytes()
    found = labkit("reset", "05")
    assert found.exit_code == 0 and "05_diamond.attempt-1.ipynb" in found.stdout
    assert mine.with_name("05_diamond.attempt-1.ipynb").read_bytes() == wrote
    assert "YOUR CODE HERE" in mine.read_text(encoding="utf-8")
    assert not solved.of(sources.PARTS["diamond"])["solved"]


def test_a_second_reset_keeps_both_attempts(mine):
    for k in (1, 2):
        solve(mine)
        assert terminal.reset(LAB).name == f"05_diamond.attempt-{k}.ipynb"
    assert terminal.reset(LAB) is None


def test_reset_brings_back_what_was_deleted(mine):
    mine.unlink()
    assert terminal.reset(LAB) is None and mine.exists()


def test_next_goes_on_in_order(mine):
    first = labs.all_labs()[0]
    assert f"Exercise {first.number}, {first.title}" in labkit("next").stdout
    for part in first.parts.values():
        solved.note(part, True)
    assert f"Exercise {labs.all_labs()[1].number}" in labkit("next").stdout


def test_progress_is_a_table_and_a_picture(mine, tmp_path):
    solved.note(sources.PARTS["diamond"], True)
    found = labkit("progress", "--picture", str(tmp_path / "course.png"))
    assert re.search(r"05 +A diamond +03 +8 +■□", found.stdout)
    assert len(re.findall(r"^ ?\d\d ", found.stdout, re.M)) == len(labs.all_labs())
    assert (tmp_path / "course.png").read_bytes()[:4] == b"\x89PNG"


def test_what_judges_nothing_starts_no_gpu():
    code = "import labkit.cli as c, sys; sys.argv = ['labkit', 'next']\ntry: c.app()\nexcept SystemExit: print('cuda.bindings' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(sources.ROOT)})
    assert found.stdout.rstrip().endswith("False") and "labkit runs on" not in found.stdout, found


def test_cells_of_something_else_is_a_lab_error(tmp_path):
    (tmp_path / "x.ipynb").write_text('{"cells": 5}')
    with pytest.raises(LabError, match="no notebook"):
        attempt.cells(tmp_path / "x.ipynb")


def test_thirty_checks_at_once_all_finish_right(mine):
    solve(mine)
    env = {**os.environ, "PYTHONPATH": str(sources.ROOT), "LABKIT_BACKEND": "sim", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    running = [subprocess.Popen([sys.executable, "-m", "labkit", "check", "05"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env) for _ in range(30)]
    said = [child.communicate(timeout=110)[0] for child in running]
    wrong = [text for child, text in zip(running, said) if child.returncode or text.count(": right") != 2]
    assert not wrong, wrong[0]
    assert all(solved.of(part)["solved"] for part in LAB.parts.values())
