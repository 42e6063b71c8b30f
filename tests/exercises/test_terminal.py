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

from labkit import anew, attempt, exercise, labs, solved, terminal
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


def test_a_cell_that_is_no_python_is_told_once_and_is_why_a_function_is_missing(mine):
    solve(mine)
    change(mine, "def diamond(", "x = = 5\ndef diamond(")
    found = labkit("check", "05")
    code = [cell for cell in json.loads(mine.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    which = 1 + next(k for k, cell in enumerate(code) if "x = = 5" in "".join(cell["source"]))
    assert found.stdout.count("x = = 5") == 1 and f"code cell {which} raised SyntaxError: invalid syntax, in line 1: `x = = 5`" in found.stdout, found.output
    assert "there is no function of that name. The error above is why." in found.stdout
    assert "05 long_branch: right" in found.stdout


def test_a_function_that_no_cell_defines_is_told(mine):
    solve(mine)
    change(mine, "def diamond(", "def another(")
    assert "there is no function of that name. No cell of the notebook, as it is saved, defines it." in labkit("check", "05").stdout


@pytest.mark.parametrize("raises", ["raise KeyboardInterrupt", "import asyncio; raise asyncio.CancelledError", "raise GeneratorExit", "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
                                    "class Mute(Exception):\n    def __str__(self): return 1 / 0\nraise Mute", "import builtins; builtins.print = None; raise ValueError"])
def test_whatever_a_cell_raises_the_rest_is_judged(mine, raises):
    solve(mine)
    change(mine, "GLOBAL = cudart", f"GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal\n{raises}\nGLOBAL = cudart")
    found = labkit("check", "05")
    assert found.exit_code == 0 and found.stdout.count(": right") == 2 and " raised " in found.stdout, found.output


def test_an_interrupt_in_a_function_is_its_own_and_the_next_part_is_judged(mine):
    solve(mine)
    change(mine, "def diamond(stream", "def long_branch(*given): pass\ndef diamond(*given): raise KeyboardInterrupt\ndef not_asked_for(stream")
    found = labkit("check", "05")
    assert found.exit_code == 1 and "05 diamond: not yet" in found.stdout and "05 long_branch: right" in found.stdout, found.output
    assert "KeyboardInterrupt  at  def diamond" in found.stdout and "Traceback" not in found.output


def test_much_that_is_printed_is_cut_and_hides_no_verdict(mine):
    solve(mine)
    change(mine, "def diamond(stream", "for k in range(20000): print('x' * 200)\ndef diamond(*given):\n    print('y' * 10**6)\n    return answer(*given)\ndef answer(stream")
    found = labkit("check", "05")
    assert found.exit_code == 0 and found.stdout.count(": right") == 2 and "characters more, left out" in found.stdout
    assert len(found.stdout) < 10_000


@pytest.mark.parametrize("how", ["functools.partial(diamond)", "(lambda f: lambda *given: f(*given))(diamond)", "functools.lru_cache(diamond)", "type('Called', (), {'__call__': lambda self, *given: inner(*given)})()"])
def test_whatever_can_be_called_is_an_answer_here_too(mine, how):
    solve(mine)
    notebook = json.loads(mine.read_text(encoding="utf-8"))
    notebook["cells"].append({"cell_type": "code", "id": "more", "metadata": {}, "outputs": [], "execution_count": None, "source": f"import functools\ninner = diamond\ndiamond = {how}"})
    mine.write_text(json.dumps(notebook), encoding="utf-8")
    found = labkit("check", "05")
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "601"])
def test_a_limit_that_is_none_is_told(mine, limit):
    found = labkit("check", "05", "--limit", limit)
    assert is_told(found) and "--limit 300" in found.output


def test_a_part_whose_check_cannot_be_prepared_is_told_and_the_next_is_judged(mine, monkeypatch, capsys):
    solve(mine)
    prepared = exercise.check_part
    monkeypatch.setattr(exercise, "check_part", lambda part, *given, **more: refusing(LabError("No stream.", "None.", "recover()"))() if part.name == "diamond" else prepared(part, *given, **more))
    monkeypatch.chdir(mine.parent)
    assert not attempt.main(mine)
    said = capsys.readouterr().out
    assert "05 diamond: not judged.\nNo stream." in said and "05 long_branch: right" in said


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
        assert anew.reset(LAB).name == f"05_diamond.attempt-{k}.ipynb"
    assert anew.reset(LAB) is None


def test_reset_brings_back_what_was_deleted(mine):
    mine.unlink()
    assert anew.reset(LAB) is None and mine.exists()


def folder(path):
    path.mkdir()
    (path / "mine.txt").write_text("mine")


ODD = {"a folder": folder, "a link to nowhere": lambda path: path.symlink_to("/nowhere/x.ipynb"), "a link to itself": lambda path: path.symlink_to(path),
       "a pipe": lambda path: os.mkfifo(path), "a device": lambda path: path.symlink_to("/dev/zero")}
UNIX = pytest.mark.skipif(os.name == "nt", reason="pipes, links and rights of Unix")
COMMANDS = [("check", "05"), ("hint", "05"), ("progress",), ("next",), ("reset", "05")]


def is_told(found):
    return found.exit_code == 1 and "Traceback" not in found.output and found.output.count("What to try:") == 1


@UNIX
@pytest.mark.parametrize("what", ODD)
def test_what_stands_in_place_of_a_notebook_is_told_and_reset_keeps_it(mine, what):
    mine.unlink()
    ODD[what](mine)
    found = labkit("check", "05")
    assert is_told(found) and "labkit reset 05" in found.output
    for words in COMMANDS[1:]:
        assert labkit(*words).exit_code == 0, words
    kept = mine.with_name("05_diamond.attempt-1.ipynb")
    assert (kept.is_symlink() or os.path.lexists(kept) and not kept.is_file()) and "YOUR CODE HERE" in mine.read_text(encoding="utf-8")
    assert kept.is_symlink() or what != "a folder" or (kept / "mine.txt").read_text() == "mine"


@UNIX
def test_a_link_to_a_notebook_elsewhere_is_checked_and_reset_leaves_it(mine, work, tmp_path):
    mine.unlink()
    (tmp_path / "else").mkdir()
    shutil.copy(sources.ROOT / "solutions" / mine.name, tmp_path / "else/my.ipynb")
    mine.symlink_to(tmp_path / "else/my.ipynb")
    wrote = mine.read_bytes()
    assert labkit("check", "05").exit_code == 0 and (work / solved.FOLDER).is_dir()
    assert labkit("reset", "05").exit_code == 0
    assert (tmp_path / "else/my.ipynb").read_bytes() == wrote == mine.with_name("05_diamond.attempt-1.ipynb").read_bytes()


def test_exercises_that_is_a_file_is_told(work):
    work.mkdir()
    (work / "exercises").write_text("mine")
    for words in COMMANDS:
        found = labkit(*words)
        assert is_told(found) or found.exit_code == 0 and words[0] not in ("check", "reset"), found.output
    assert (work / "exercises").read_text() == "mine"


def refusing(error):
    def refuses(*given):
        raise error
    return refuses


def test_a_folder_that_takes_nothing_is_told_and_nothing_changes(mine, monkeypatch):
    solve(mine)
    wrote = mine.read_bytes()
    monkeypatch.setattr("labkit.workcopy.write", refusing(PermissionError(13, "Permission denied")))
    found = labkit("reset", "05")
    assert is_told(found) and "Permission denied" in found.output and mine.read_bytes() == wrote
    mine.unlink()
    folder(mine)
    assert is_told(labkit("reset", "05")) and (mine / "mine.txt").exists()


def test_progress_that_cannot_be_set_aside_is_told_and_the_notebook_is_new(mine, monkeypatch):
    solve(mine)
    solved.note(sources.PARTS["diamond"], True)
    monkeypatch.setattr(solved.os, "replace", lambda old, new: refusing(PermissionError(13, "Permission denied"))() if str(new).endswith(".json") else os.rename(old, new))
    found = labkit("reset", "05")
    assert found.exit_code == 0 and "could not set your progress aside" in found.output and "YOUR CODE HERE" in mine.read_text(encoding="utf-8")


@UNIX
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read and write everything")
def test_a_notebook_that_may_not_be_read_is_told_and_set_aside(mine):
    mine.chmod(0)
    assert is_told(labkit("check", "05"))
    assert labkit("reset", "05").exit_code == 0 and mine.with_name("05_diamond.attempt-1.ipynb").exists()


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied", "/somewhere"), RuntimeError("odd"), KeyError()])
@pytest.mark.parametrize("words", COMMANDS)
def test_an_error_that_nobody_expected_ends_in_words(mine, monkeypatch, error, words):
    monkeypatch.setattr(labs, "find", refusing(error))
    monkeypatch.setattr(solved, "done", refusing(error))
    found = labkit(*words)
    assert is_told(found), (found.output, found.exception)


@pytest.mark.parametrize("name, says", [("", "does not end in .png"), ("x.jpg", "does not end in .png"), ("course", "does not end in .png"), ("none/x.png", "There is no folder"), (".", "is a folder"), ("made.png", "is a folder")])
def test_a_place_that_takes_no_picture_is_told(mine, tmp_path, monkeypatch, name, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.png").mkdir()
    found = labkit("progress", "--picture", name)
    assert is_told(found) and says in found.output and "A diamond" in found.output


def test_a_picture_that_may_not_be_written_is_told(mine, tmp_path, monkeypatch):
    monkeypatch.setattr("labkit.workcopy.write", refusing(PermissionError(13, "Permission denied")))
    found = labkit("progress", "--picture", str(tmp_path / "x.png"))
    assert is_told(found) and "Permission denied" in found.output


def test_a_terminal_without_squares_gets_signs(mine):
    found = subprocess.run([sys.executable, "-m", "labkit", "progress"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(sources.ROOT), "PYTHONIOENCODING": "ascii"})
    assert found.returncode == 0 and re.search(r"05 +A diamond +03 +8 +\.\.", found.stdout), found


@pytest.mark.parametrize("word", ["5", "05", " 5 ", "0005", "05_diamond", "05_diamond.ipynb", "work/exercises/05_diamond.ipynb", "exercises\\05_diamond.ipynb"])
def test_an_exercise_has_many_names(mine, word):
    assert terminal.named(word) is LAB


def test_the_path_of_the_own_copy_is_a_name_and_another_file_is_not(mine):
    assert terminal.named(str(mine)) is LAB
    with pytest.raises(LabError, match="is not your copy"):
        terminal.named(str(sources.ROOT / "exercises/05_diamond.ipynb"))


@pytest.mark.parametrize("word", ["", "99", "-1", "5.0", "²", "9" * 5000, "05_diamond.attempt-1.ipynb", "/"])
def test_what_names_no_exercise_is_told(mine, word):
    with pytest.raises(LabError, match="labkit progress"):
        terminal.named(word)


def test_the_name_of_a_part_leads_to_its_exercise(mine):
    found = labkit("check", "diamond")
    assert is_told(found) and "diamond is a part of exercise 05" in found.output and "`labkit hint 05 diamond`" in found.output


def test_next_names_the_way_to_a_notebook_that_is_gone(mine):
    mine.with_name("01_first_graph.ipynb").unlink()
    assert "`labkit reset 01` hands it out" in labkit("next").stdout


def test_next_when_all_is_done_says_so(mine):
    for part in sources.PARTS.values():
        solved.note(part, True)
    assert "exercises are done" in labkit("next").stdout


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
