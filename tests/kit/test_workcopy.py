"""work/ is filled, brought up to date, and never loses what a learner wrote."""
import json
import os

import pytest

from labkit import workcopy
from labkit.errors import LabError

LESSON = "notebooks/00_start.ipynb"
NEW = "notebooks/00_start.new.ipynb"


def notebook(*cells, outputs=()):
    return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": cell, "outputs": list(outputs),
                                  "execution_count": len(outputs) or None} for cell in cells],
                       "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


RUN = [{"output_type": "stream", "name": "stdout", "text": "ran"}]


class Clone:
    """A clone with one lesson, one exercise with a data file, and things that are not handed out."""

    def __init__(self, root):
        self.root, self.work = root, root / "work"
        self.ship("version 1")
        self.put("exercises/01_fork.ipynb", notebook("pass"))
        self.put("exercises/sizes.csv", "1,2,3\n")
        self.put("notebooks/.ipynb_checkpoints/00_start-checkpoint.ipynb", notebook("old"))
        self.put("solutions/01_fork.ipynb", notebook("the answer"))

    def put(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def ship(self, *cells, outputs=()):
        self.put(LESSON, notebook(*cells, outputs=outputs))

    def edit(self, *cells, name=LESSON, outputs=()):
        (self.work / name).write_text(notebook(*cells, outputs=outputs), encoding="utf-8")

    def cells(self, name=LESSON):
        found = json.loads((self.work / name).read_text(encoding="utf-8"))
        return ["".join(cell["source"]) for cell in found["cells"]]

    def files(self):
        return sorted(p.relative_to(self.work).as_posix() for p in self.work.rglob("*") if p.is_file())

    def refresh(self):
        return [(note.did, note.name) for note in workcopy.refresh(self.root)]


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


@pytest.fixture
def opened(clone):
    clone.refresh()
    return clone


def test_the_first_time_everything_is_handed_out_and_nothing_else(clone):
    handed = [LESSON, "exercises/01_fork.ipynb", "exercises/sizes.csv"]
    assert clone.refresh() == [("new", name) for name in handed]
    assert clone.files() == sorted([*handed, ".labkit.json"])
    assert clone.cells() == ["version 1"]


def test_no_answer_is_handed_out_before_the_question(clone):
    clone.ship("version 1", outputs=RUN)
    clone.refresh()
    assert "ran" in (clone.root / LESSON).read_text() and "ran" not in (clone.work / LESSON).read_text()


def test_a_second_time_nothing_happens(opened):
    before = (opened.work / LESSON).stat().st_mtime_ns
    assert opened.refresh() == []
    assert (opened.work / LESSON).stat().st_mtime_ns == before


def test_a_copy_can_be_written_where_the_clone_cannot(clone):
    os.chmod(clone.root / LESSON, 0o444)
    clone.refresh()
    assert (clone.work / LESSON).stat().st_mode & 0o200


def test_what_is_missing_is_filled_in(opened):
    (opened.work / LESSON).unlink()
    assert opened.refresh() == [("new", LESSON)]


def test_an_unchanged_file_is_replaced_by_a_newer_version(opened):
    opened.ship("version 2")
    assert opened.refresh() == [("replaced", LESSON)]
    assert opened.cells() == ["version 2"]
    assert opened.refresh() == []


def test_running_a_notebook_is_not_a_change(opened):
    opened.edit("version 1", "", outputs=RUN)      # Shift+Enter on the last cell adds an empty one
    assert opened.refresh() == []
    assert "ran" in (opened.work / LESSON).read_text(), "what it printed stays while there is nothing newer"
    opened.ship("version 2")
    assert opened.refresh() == [("replaced", LESSON)]


def test_new_outputs_alone_are_no_newer_version(opened):
    mine = (opened.work / LESSON).read_bytes()
    opened.ship("version 1", outputs=RUN)
    assert opened.refresh() == [] and (opened.work / LESSON).read_bytes() == mine


@pytest.mark.parametrize("mine", [["version 1", "mine"], ["mine"], []], ids=["added", "edited", "emptied"])
def test_a_changed_file_stays_and_the_newer_one_lies_beside(opened, mine):
    opened.edit(*mine)
    assert opened.refresh() == [], "there is nothing newer yet"
    opened.ship("version 2")
    assert opened.refresh() == [("beside", LESSON)]
    assert (opened.cells(), opened.cells(NEW)) == (mine, ["version 2"])
    assert opened.refresh() == []


def test_a_changed_data_file_stays_too(opened):
    (opened.work / "exercises/sizes.csv").write_text("9\n")
    opened.put("exercises/sizes.csv", "4,5,6\n")
    assert opened.refresh() == [("beside", "exercises/sizes.csv")]
    assert (opened.work / "exercises/sizes.csv").read_text() == "9\n"
    assert (opened.work / "exercises/sizes.new.csv").read_text() == "4,5,6\n"


def test_a_picture_pasted_into_a_text_cell_is_a_change(opened):
    found = json.loads((opened.work / LESSON).read_text())
    found["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "", "attachments": {"a.png": {"image/png": "AA=="}}})
    (opened.work / LESSON).write_text(json.dumps(found))
    opened.ship("version 2")
    assert opened.refresh() == [("beside", LESSON)]


def test_outputs_alone_are_no_reason_for_a_new_file_beside(opened):
    opened.edit("mine")
    opened.ship("version 1", outputs=RUN)
    assert opened.refresh() == []


def test_an_unchanged_new_file_follows_the_clone(opened):
    opened.edit("mine")
    for version in ("version 2", "version 3"):
        opened.ship(version)
        assert opened.refresh() == [("beside", LESSON)]
    assert (opened.cells(), opened.cells(NEW)) == (["mine"], ["version 3"])


def test_a_changed_new_file_is_never_overwritten(opened):
    opened.edit("mine")
    opened.ship("version 2")
    opened.refresh()
    opened.edit("mine too", name=NEW)
    opened.ship("version 3")
    assert opened.refresh() == [("waiting", LESSON)]
    assert (opened.cells(), opened.cells(NEW)) == (["mine"], ["mine too"])
    (opened.work / NEW).rename(opened.work / "notebooks/kept.ipynb")
    assert opened.refresh() == [("beside", LESSON)]
    assert opened.cells(NEW) == ["version 3"]


def test_a_file_of_the_learners_own_at_that_name_is_never_overwritten(opened):
    opened.edit("mine")
    opened.edit("my own notes", name=NEW)
    opened.ship("version 2")
    assert opened.refresh() == [("waiting", LESSON)]
    assert opened.cells(NEW) == ["my own notes"]


def test_a_new_file_that_was_thrown_away_does_not_come_back(opened):
    opened.edit("mine")
    opened.ship("version 2")
    opened.refresh()
    (opened.work / NEW).unlink()
    assert opened.refresh() == []
    opened.ship("version 3")
    assert opened.refresh() == [("beside", LESSON)]


def test_taking_the_new_file_makes_the_copy_unchanged_again(opened):
    opened.edit("mine")
    opened.ship("version 2")
    opened.refresh()
    (opened.work / NEW).replace(opened.work / LESSON)
    assert opened.refresh() == []
    opened.ship("version 3")
    assert opened.refresh() == [("replaced", LESSON)]


@pytest.mark.parametrize("broken", [b"", b"{", b"\xff\xfe\x00", b"[]", b'{"cells": 3}', b'{"cells": [3]}', b"[" * 100_000,
                                    b'{"cells": [{"cell_type": "code", "source": [1]}]}'])
def test_a_broken_notebook_stays_and_a_whole_one_lies_beside(opened, broken):
    (opened.work / LESSON).write_bytes(broken)
    assert opened.refresh() == [("beside", LESSON)]
    assert (opened.work / LESSON).read_bytes() == broken
    assert opened.cells(NEW) == ["version 1"]
    assert opened.refresh() == []


def test_a_broken_notebook_in_the_clone_replaces_nothing(opened):
    opened.put(LESSON, "<<<<<<< HEAD\n")
    assert opened.refresh() == [("failed", LESSON)]
    assert opened.cells() == ["version 1"]


@pytest.mark.parametrize("manifest", [None, "", "{", "[]", '{"files": []}', '{"files": {"%s": 3}}' % LESSON,
                                      '{"files": {"%s": ["x"]}}' % LESSON, '{"files": {"%s": [null, 1]}}' % LESSON])
def test_without_its_memory_it_loses_nothing(opened, manifest):
    opened.edit("mine")
    path = opened.work / ".labkit.json"
    path.unlink() if manifest is None else path.write_text(manifest)
    opened.ship("version 2")
    assert opened.refresh() == [("beside", LESSON)]
    assert (opened.cells(), opened.cells(NEW)) == (["mine"], ["version 2"])
    assert opened.refresh() == []


def test_without_its_memory_a_copy_equal_to_the_clone_is_unchanged(opened):
    (opened.work / ".labkit.json").unlink()
    assert opened.refresh() == []
    opened.ship("version 2")
    assert opened.refresh() == [("replaced", LESSON)]


def test_one_file_that_cannot_be_read_does_not_stop_the_others(opened):
    (opened.work / LESSON).unlink()
    (opened.work / LESSON).mkdir()
    (opened.work / "exercises/01_fork.ipynb").unlink()
    did = opened.refresh()
    assert ("failed", LESSON) in did and ("new", "exercises/01_fork.ipynb") in did


def test_an_interrupted_write_leaves_the_old_file_whole(opened, monkeypatch):
    opened.ship("version 2")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            opened.refresh()
    assert opened.cells() == ["version 1"]
    assert not [name for name in opened.files() if name.endswith(".part") or ".labkit-" in name]
    assert opened.refresh() == [("replaced", LESSON)]


def test_a_full_disk_is_a_note_for_the_file_and_an_error_for_the_folder(opened, monkeypatch):
    opened.ship("version 2")
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(LabError, match="No space left"):
        opened.refresh()
    assert opened.cells() == ["version 1"]


def test_a_work_that_is_a_file_is_explained(clone):
    clone.put("work", "a file")
    with pytest.raises(LabError, match="Make the folder writable, or move it away"):
        clone.refresh()


def test_away_from_a_clone_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(workcopy, "__file__", str(tmp_path / "site-packages/labkit/workcopy.py"))
    with pytest.raises(LabError, match="away from its clone"):
        workcopy.clone()
