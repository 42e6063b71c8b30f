"""The builder: what it keeps, what it drops, and what it refuses. In a root of its own."""

import json

import nbformat
import pytest

import build_notebooks
import lint_lessons
from labkit import cells

LESSON = '''# %% [markdown]
# # Does it add?

# %%
from labkit import ok

# %% tags=["nbval-check-output"]
print(1 + 1)

# %% [markdown]
# The sum.

# %% tags=["expects-figure"]
print("picture")
'''
HERE = "NVIDIA H200 · driver 580.159.04 · CUDA 13.0 · 2026-12-02 · recorded"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "authoring/lessons").mkdir(parents=True)
    write(tmp_path, LESSON)
    assert build(tmp_path) == 0
    return tmp_path


def write(root, text):
    (root / "authoring/lessons/00_add.py").write_text(text, encoding="utf-8")


def build(root, *more):
    return build_notebooks.main(["--root", str(root), *map(str, more)])


def notebook(root):
    return json.loads((root / "notebooks/00_add.ipynb").read_text(encoding="utf-8"))


def unrecorded(root):
    return (root / "authoring/unrecorded.txt").read_text(encoding="utf-8").splitlines()


def record(root, folder):
    """What `labkit record` would leave in `folder`, with the index of each cell as its output."""
    ran = notebook(root)
    for index, cell in enumerate(cells.code_cells(ran)):
        cell["execution_count"] = index + 1
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": f"{index}\n"}]
        cell["metadata"]["labkit"].update(recorded=HERE, outputs=cells.seal(cell["outputs"], HERE))
    for kind in build_notebooks.FIGURES:
        (folder / kind).mkdir(parents=True)
        (folder / kind / "x.json").write_text('{"entries": []}')
    (folder / "notebooks").mkdir()
    (folder / "notebooks/00_add.ipynb").write_text(json.dumps(ran))


@pytest.fixture
def recorded(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    record(root, folder)
    assert build(root, "--from", folder) == 0
    return root


def outputs(root):
    return [cells.printed(cell["outputs"]) for cell in cells.code_cells(notebook(root))]


def test_a_new_lesson_is_unrecorded_in_every_code_cell(root):
    assert unrecorded(root) == [
        "00_add.ipynb: 00 from labkit import ok",
        "00_add.ipynb: 01 print(1 + 1)",
        '00_add.ipynb: 02 print("picture")']


def test_building_twice_gives_the_same_bytes(recorded):
    before = (recorded / "notebooks/00_add.ipynb").read_bytes()
    assert build(recorded) == 0
    assert (recorded / "notebooks/00_add.ipynb").read_bytes() == before
    assert b"\r" not in before and before.endswith(b"}\n")
    nbformat.validate(nbformat.reads(before.decode(), as_version=4))


def test_a_recording_is_taken_in_with_its_counts_and_its_place(recorded):
    assert outputs(recorded) == ["0", "1", "2"] and unrecorded(recorded) == []
    ran = cells.code_cells(notebook(recorded))
    assert [cell["execution_count"] for cell in ran] == [1, 2, 3]
    assert {cell["metadata"]["labkit"]["recorded"] for cell in ran} == {HERE}


def test_the_figures_of_a_recording_go_into_the_data(recorded):
    for kind in build_notebooks.FIGURES:
        assert (recorded / "labkit/data" / kind / "x.json").is_file()


def test_a_changed_text_cell_keeps_every_output(recorded):
    write(recorded, LESSON.replace("The sum.", "The sum, in other words."))
    assert build(recorded) == 0
    assert outputs(recorded) == ["0", "1", "2"] and unrecorded(recorded) == []


def test_a_changed_code_cell_drops_its_output_and_all_later_ones(recorded):
    write(recorded, LESSON.replace("1 + 1", "1 + 2"))
    assert build(recorded) == 0
    assert outputs(recorded) == ["0", "", ""]
    assert unrecorded(recorded) == ["00_add.ipynb: 01 print(1 + 2)", '00_add.ipynb: 02 print("picture")']


def test_an_old_recording_does_not_fit_changed_code(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    record(root, folder)
    write(root, LESSON.replace("1 + 1", "1 + 2"))
    assert build(root, "--from", folder) == 0
    assert outputs(root) == ["0", "", ""]


def test_outputs_edited_by_hand_or_lost_counts_are_unrecorded(recorded):
    path = recorded / "notebooks/00_add.ipynb"
    path.write_text(path.read_text().replace('"execution_count": 2', '"execution_count": null'))
    assert build(recorded) == 0
    assert unrecorded(recorded) == ["00_add.ipynb: 01 print(1 + 1)"]


@pytest.mark.parametrize("forged", ["a number", "the place"])
def test_a_recording_edited_by_hand_is_none(recorded, forged, capsys):
    path, text = recorded / "notebooks/00_add.ipynb", (recorded / "notebooks/00_add.ipynb").read_text(encoding="utf-8")
    book = json.loads(text)
    ran = cells.code_cells(book)[1]
    if forged == "a number":
        ran["outputs"] = cells.code_cells(book)[2]["outputs"]
    else:
        ran["metadata"]["labkit"]["recorded"] = HERE.replace("H200", "RTX 9090")
    path.write_text(json.dumps(book, indent=1), encoding="utf-8")
    assert build(recorded, "--check") == 1 and "00_add.ipynb" in capsys.readouterr().out
    assert build(recorded) == 0 and unrecorded(recorded) == ["00_add.ipynb: 01 print(1 + 1)"]


def test_check_passes_on_what_was_built_and_writes_nothing(recorded, capsys):
    assert build(recorded, "--check") == 0
    assert "1 notebooks match" in capsys.readouterr().out


@pytest.mark.parametrize("spoil", ["source", "list", "stale", "missing"])
def test_check_fails_on_each_kind_of_difference(recorded, spoil, capsys):
    capsys.readouterr()
    name = "notebooks/00_add.ipynb"
    if spoil == "source":
        write(recorded, LESSON.replace("The sum.", "Another."))
    elif spoil == "list":
        (recorded / "authoring/unrecorded.txt").write_text("00_add.ipynb: 00 x\n")
        name = "authoring/unrecorded.txt"
    elif spoil == "stale":
        name = "notebooks/09_gone.ipynb"
        (recorded / name).write_text("{}")
    else:
        (recorded / name).unlink()
    before = sorted(recorded.rglob("*"))
    assert build(recorded, "--check") == 1
    assert name in capsys.readouterr().out
    assert sorted(recorded.rglob("*")) == before


def test_a_build_removes_a_notebook_that_no_lesson_makes(recorded):
    (recorded / "notebooks/09_gone.ipynb").write_text("{}")
    assert build(recorded) == 0
    assert not (recorded / "notebooks/09_gone.ipynb").exists()


def test_checking_tags_do_not_change_a_digest_and_others_do():
    def digest(tags):
        cell = {"cell_type": "code", "source": "a", "metadata": {"tags": tags}}
        return cells.digests({"cells": [cell]})
    assert digest([]) == digest(list(cells.TAGS)) != digest(["another"])


def test_settle_drops_widgets_and_joins_streams():
    def stream(text):
        return {"output_type": "stream", "name": "stdout", "text": text}
    widget = {"output_type": "display_data", "metadata": {}, "data": {
        "application/vnd.jupyter.widget-view+json": {}, "text/plain": "interactive()"}}
    assert cells.settle([stream("a"), widget, stream("b")]) == [stream("ab")]


GOOD_CELL = "print(1 + 1)"
BROKEN = {
    "12": (GOOD_CELL, "\n".join(["a = 1"] * 13)),
    "magics": (GOOD_CELL, "%time 1"),
    "labkit.graph": (GOOD_CELL, "ok(cudart.cudaGraphGetEdges(graph))"),
    "cudaStreamGetCaptureInfo_v3": (GOOD_CELL, "f = cudart.cudaStreamGetCaptureInfo_v3"),
    "tags, not in a comment": (GOOD_CELL, "# NBVAL_SKIP\nprint(2)"),
    "import": ("from labkit import ok", "from labkit import ok\na = 1"),
    "unknown tag 'raises-exception'": ('"nbval-check-output"', '"nbval-check-output", "raises-exception"'),
    "no cell carries the tag nbval-check-output": ('"nbval-check-output"', ''),
    "no cell carries the tag expects-figure": ('"expects-figure"', ''),
    "words": ("The sum.", "word " * 71),
    "starts with its title": ("# # Does it add?", "# Does it add?"),
    "at most 30": ("# The sum.", "# The sum.\n\n" + "# %%\na = 1\n\n" * 30),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_lint_finds(reason):
    assert lint_lessons.lint_notebook(lint_lessons.parse(LESSON)) == ([], [])
    old, new = BROKEN[reason]
    assert old in LESSON
    errors, _ = lint_lessons.lint_notebook(lint_lessons.parse(LESSON.replace(old, new)))
    assert any(reason in error for error in errors), errors


def test_lint_lets_prose_and_comments_name_a_line_dependent_call():
    text = LESSON.replace("The sum.", "`cudaGraphAddNode` adds.").replace(
        GOOD_CELL, "print(2)  # like cudaGraphGetEdges")
    assert lint_lessons.lint_notebook(lint_lessons.parse(text))[0] == []


@pytest.mark.parametrize("prose, warned", [
    ("A launch takes 5 us.", 1), ("A launch takes 5 µs.", 1), ("Five launches.", 0),
    ("5 us on an H200, 2026-12-02.", 0), ("A focus on 5 uses.", 0)])
def test_lint_warns_of_a_duration_without_place_and_date(prose, warned):
    text = LESSON.replace("The sum.", prose)
    assert len(lint_lessons.lint_notebook(lint_lessons.parse(text))[1]) == warned


def test_a_heading_that_asks_keeps_its_mark():
    assert lint_lessons.parse(LESSON).cells[0].source == "# Does it add?"


def test_the_picture_in_the_readme_is_the_recorded_one():
    picture = build_notebooks.readme_picture(build_notebooks.build(build_notebooks.ROOT))
    assert picture[:4] == b"\x89PNG" and (build_notebooks.ROOT / "docs/launch_cost.png").read_bytes() == picture
    assert "docs/launch_cost.png" in (build_notebooks.ROOT / "README.md").read_text(encoding="utf-8")
