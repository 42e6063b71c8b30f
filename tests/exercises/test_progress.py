"""What of the course is done: kept in small files that no kill can break, shown as a picture."""
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from labkit import backend, labs, solved, workcopy
from tests.exercises import sources

PART = sources.PARTS["diamond"]


def test_nothing_is_done_at_first(work):
    assert all(not any(parts) for _, parts in solved.done())
    assert solved.following() is labs.all_labs()[0]
    assert not work.exists()


def test_what_was_solved_once_stays_solved():
    solved.note(PART, True)
    solved.note(PART, False)
    record = solved.of(PART)
    assert record["solved"] and record["tries"] == 2 and record["on"] == backend.name


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"solved": true}', '{"solved": [1], "tries": {}, "hints": "x", "on": null}', "\x00\xff", "[" * 100_000])
def test_a_broken_file_counts_as_none_and_is_written_anew(work, text):
    file = solved.path(PART)
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("latin-1"))
    assert not solved.of(PART)["solved"]
    solved.progress()
    solved.note(PART, True)
    assert solved.of(PART)["solved"] and solved.of(PART)["tries"] == 1


@pytest.mark.parametrize("numbers", ['"tries": -5, "hints": true', '"tries": 1e400, "hints": 99999999999999999999999', '"tries": "x", "hints": null', '"tries": NaN, "hints": -1'])
def test_odd_numbers_count_as_none_and_the_rest_stays(work, numbers):
    file = solved.path(PART)
    file.parent.mkdir(parents=True)
    file.write_text(f'{{"solved": "2026-01-01", {numbers}, "on": "sim"}}')
    record = solved.of(PART)
    assert record["solved"] == "2026-01-01" and record["tries"] == 0 and record["hints"] in (0, 3)
    solved.note(PART, False)
    assert solved.of(PART)["tries"] == 1 and solved.of(PART)["solved"]


def folder(path):
    path.mkdir()
    (path / "mine.txt").write_text("mine")


ODD = {"folder": folder, "link to nowhere": lambda path: path.symlink_to("/nowhere/x"), "link to itself": lambda path: path.symlink_to(path),
       "pipe": lambda path: os.mkfifo(path), "device": lambda path: path.symlink_to("/dev/zero")}


@pytest.mark.skipif(os.name == "nt", reason="pipes and links of Unix")
@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("where", ["a record", "the folder"])
def test_what_is_no_record_neither_raises_nor_hangs(work, what, where, capsys):
    place = solved.path(PART) if where == "a record" else solved.folder()
    place.parent.mkdir(parents=True)
    ODD[what](place)
    assert not solved.of(PART)["solved"] and not any(solved.done()[0][1])
    solved.note(PART, True)
    assert solved.of(PART)["solved"] or "could not keep your progress" in capsys.readouterr().out
    solved.forget(PART.lab, 1)
    assert not solved.of(PART)["solved"]


def test_where_no_hint_can_be_kept_all_are_given_at_once(work, capsys):
    work.mkdir()
    (work / solved.FOLDER).write_text("a file")
    assert solved.note_hint(PART) == len(PART.hints) + 1
    assert "all hints at once" in capsys.readouterr().out


@pytest.mark.parametrize("given, expected", [("~/mine", os.path.expanduser("~/mine")), (" ", None), ("", None), ("/a b/ä", "/a b/ä")])
def test_the_folder_that_is_named(monkeypatch, tmp_path, given, expected):
    monkeypatch.setenv("LABKIT_WORK", given)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workcopy, "clone", lambda: tmp_path)
    assert solved.folder() == (expected and type(tmp_path)(expected) / solved.FOLDER)


def test_a_folder_that_cannot_be_written_loses_no_verdict(work, capsys, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(workcopy, "write", full)
    solved.note(PART, True)
    assert "could not keep your progress" in capsys.readouterr().out


def test_outside_of_a_clone_the_process_remembers(monkeypatch, tmp_path):
    monkeypatch.delenv("LABKIT_WORK")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workcopy, "clone", lambda: tmp_path)
    monkeypatch.setattr(solved, "_memory", {})
    assert solved.folder() is None
    solved.note(PART, True)
    assert solved.of(PART)["solved"]


def test_the_work_folder_around_a_notebook_is_found(monkeypatch, tmp_path):
    monkeypatch.delenv("LABKIT_WORK")
    (tmp_path / "exercises").mkdir()
    (tmp_path / workcopy.MANIFEST).write_text("{}")
    monkeypatch.chdir(tmp_path / "exercises")
    assert solved.folder() == tmp_path / solved.FOLDER


KILLED = """
import sys
from labkit import solved
from labkit.labs import parts
part, k = parts()["diamond"], 0
print("ready", flush=True)
while True:
    solved.note(part, True)
"""


def test_a_kill_at_any_moment_leaves_a_whole_file(work):
    """Twelve writers, killed after up to a tenth of a second each; the count of tries never goes back."""
    dice, tries = random.Random(6), 0
    for _ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(sources.ROOT), "LABKIT_BACKEND": "sim"})
        while "ready" not in writer.stdout.readline():
            pass
        time.sleep(dice.random() / 10)
        writer.send_signal(signal.SIGKILL) if os.name != "nt" else writer.kill()
        writer.wait()
        file = solved.path(PART)
        if file.exists():
            record = json.loads(file.read_text(encoding="utf-8"))
            assert record["solved"] and record["tries"] >= tries
            tries = record["tries"]
    assert tries > 12


def test_parts_never_share_a_file():
    assert len({solved.path(part) for part in sources.PARTS.values()}) == len(sources.PARTS)


def test_the_picture_shows_what_is_done():
    for part in labs.all_labs()[0].parts.values():
        solved.note(part, True)
    picture = solved.progress()
    first = labs.all_labs()[0]
    assert picture.source["done"][first.slug] == [True] * len(first.parts)
    assert f"1 of {len(labs.all_labs())} exercises done" in picture.alt and picture.png[:4] == b"\x89PNG"


def test_when_all_is_done_the_picture_says_so():
    for part in sources.PARTS.values():
        solved.note(part, True)
    assert "all done" in solved.progress().alt and solved.following() is None
