"""The lessons as they are shipped: built from their source, recorded, checked, and hard to break."""

import copy
import random

import pytest

import build_notebooks
import inprocess
import lint_lessons
from labkit import LabError, cells
from labkit.backend import backend

ROOT = inprocess.ROOT
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# What may not shrink silently: raise these when a lesson adds some.
LESSONS, CHECKED, FIGURES = 20, 157, 53


def ids(paths):
    return [path.stem for path in paths]


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=ids(NOTEBOOKS))
def notebook(request):
    return inprocess.load(request.param)


def test_the_notebooks_are_what_authoring_builds():
    assert build_notebooks.differences(ROOT, build_notebooks.build(ROOT)) == []


def test_the_lessons_keep_the_rules():
    assert lint_lessons.lint(ROOT / "authoring/lessons")[0] == []


def test_lessons_checked_cells_and_figures_do_not_shrink():
    tags = [cells.tags(c) for path in NOTEBOOKS for c in cells.code_cells(inprocess.load(path))]
    assert len(NOTEBOOKS) >= LESSONS
    assert sum(cells.CHECKED in t for t in tags) >= CHECKED
    assert sum(cells.FIGURE in t for t in tags) >= FIGURES


def test_every_recorded_output_belongs_to_its_code(notebook):
    for cell, digest in zip(cells.code_cells(notebook), cells.digests(notebook)):
        assert cell["metadata"]["labkit"]["digest"] == digest
        assert cell["execution_count"] is not None or cell["outputs"] == []


def test_every_recording_names_a_gpu_and_a_day(notebook):
    for cell in cells.code_cells(notebook):
        where = cells.recorded(cell)
        if where is not None:
            assert where.startswith("NVIDIA ") and "driver" in where, where


def test_every_recorded_checked_cell_holds_text(notebook):
    for index in inprocess.checked_cells(notebook):
        cell = cells.code_cells(notebook)[index]
        if cells.recorded(cell):
            assert cells.printed(cell["outputs"]).strip(), cell["id"]


def test_run_in_this_process_no_cell_raises_and_no_checked_cell_differs(notebook):
    assert inprocess.run_checked(notebook) == []
    assert [(cell["id"], error) for cell, _, error in inprocess.run_all(notebook) if error] == []


def test_a_checked_cell_that_prints_something_else_is_found(notebook):
    if not any(map(cells.recorded, cells.code_cells(notebook))):
        pytest.skip("nothing of it is recorded yet: authoring/unrecorded.txt lists its cells")
    for index in inprocess.checked_cells(notebook):
        cell = cells.code_cells(notebook)[index]
        if cells.recorded(cell):
            spoilt = copy.deepcopy(notebook)
            cells.code_cells(spoilt)[index]["source"] = [*cell["source"], "\nprint('one line more')"]
            assert cell["id"] in inprocess.run_checked(spoilt)
            return
    pytest.fail("no recorded checked cell to spoil")


def test_run_twice_in_one_namespace_every_cell_still_runs(notebook):
    session = inprocess.Session()
    for _ in range(2):
        for cell in cells.code_cells(notebook):
            _, error = session.run(cells.text(cell["source"]))
            assert error is None, (cell["id"], error)


def test_every_cell_run_twice_in_a_row_raises_nothing_unexplained(notebook):
    session = inprocess.Session()
    for cell in cells.code_cells(notebook):
        for again in (False, True):         # a cell that destroys things drops their names, so that nobody uses them
            _, error = session.run(cells.text(cell["source"]))
            assert error is None or isinstance(error, (LabError, NameError) if again else LabError), (cell["id"], error)


def test_run_in_reverse_only_labkit_and_missing_names_complain(notebook):
    session = inprocess.Session()
    session.run(cells.text(cells.code_cells(notebook)[0]["source"]))
    for cell in reversed(cells.code_cells(notebook)):
        _, error = session.run(cells.text(cell["source"]))
        assert error is None or isinstance(error, (LabError, NameError)), (cell["id"], error)


@pytest.mark.parametrize("seed", range(2))
def test_all_lessons_in_random_order_in_one_kernel_run_and_print_what_was_recorded(seed):
    order, session, differ = random.Random(seed).sample(NOTEBOOKS, len(NOTEBOOKS)), inprocess.Session(), []
    for cell in (cell for path in order for cell in cells.code_cells(inprocess.load(path))):
        printed, error = session.run(cells.text(cell["source"]))
        if error or cells.CHECKED in cells.tags(cell) and cells.recorded(cell) and printed != cells.printed(cell["outputs"]):
            differ.append((cell["id"], error or printed))
    assert differ == []
