"""The given cells come back as they were handed out, whatever became of them. No test is run here."""
import copy
import re

import nbformat
import pytest
from labkit.classroom.restoring import given_cells, restored
from nbgrader.nbgraderformat import MetadataValidator
from tests.classroom.conftest import NAME, as_nbgrader


@pytest.fixture(scope="module")
def class_(make_course, tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("restore") / "course")


@pytest.fixture(scope="module")
def given(class_):
    from nbgrader.api import Gradebook
    with Gradebook(f"sqlite:///{class_.root / 'gradebook.db'}") as book:
        return given_cells(book.find_notebook(NAME, NAME))


@pytest.fixture
def cells(class_):
    """Those of the notebook that is handed out, solved."""
    made = nbformat.read(class_.root / "release" / NAME / f"{NAME}.ipynb", as_version=4).cells
    for name in ("diamond", "long_branch"):
        made[at(made, name)].source = class_.solution(name)
    return made


def name_of(one):
    return one.metadata.get("nbgrader", {}).get("grade_id")


def at(cells, name):
    found, = (k for k, one in enumerate(cells) if name_of(one) == name)
    return found


def again(cells, given):
    """The names of what comes back, None for a learner's own; each cell is as nbgrader wants it."""
    out = restored(cells, copy.deepcopy(given))
    for one in out:
        MetadataValidator().validate_cell(one)
        if name_of(one):
            wanted = given[name_of(one)]
            assert one.metadata.nbgrader == wanted.metadata.nbgrader and one.cell_type == wanted.cell_type
            assert one.source == wanted.source or not wanted.metadata.nbgrader.locked
    names = [name_of(one) for one in out]
    assert len(set(names) - {None}) == len([name for name in names if name])
    return out, names


def test_the_gradebook_keeps_the_order_of_the_notebook(given, cells):
    assert list(given) == [name_of(one) for one in cells if name_of(one)]


def test_what_is_whole_stays_and_hidden_tests_come_back(given, cells):
    before = [name_of(one) for one in cells]
    out, names = again(cells, given)
    assert names == before and re.search(r"seed=\d+", out[at(out, "diamond-hidden")].source)


def test_a_copied_cell_becomes_the_learners_own(given, cells):
    k = at(cells, "given-00")
    cells.insert(k + 1, copy.deepcopy(cells[k]))
    _, names = again(cells, given)
    assert names[k:k + 2] == ["given-00", None]


def test_a_split_answer_is_the_half_with_the_function(given, cells):
    k = at(cells, "long_branch")
    half = copy.deepcopy(cells[k])
    half.source = "import numpy as np"
    cells.insert(k, half)
    out, names = again(cells, given)
    assert names[k:k + 2] == [None, "long_branch"] and "def long_branch" in out[k + 1].source


def test_an_untouched_copy_of_the_stub_is_not_the_answer(given, cells):
    k = at(cells, "diamond")
    cells.insert(k, copy.deepcopy(given["diamond"]))
    _, names = again(cells, given)
    assert names[k:k + 2] == [None, "diamond"]


def test_of_a_copied_test_the_last_counts(given, cells):
    cells.append(copy.deepcopy(cells[at(cells, "diamond-visible")]))
    _, names = again(cells, given)
    assert names[-1] == "diamond-visible"


def test_what_was_deleted_comes_back_and_a_deleted_answer_does_not(given, cells):
    kept = [one for one in cells if name_of(one) in ("given-00", "long_branch", None)]
    out, names = again(kept, given)
    assert set(names) - {None} == set(given) - {"diamond"}
    before = [name for name in names[:names.index("long_branch")] if name]
    assert before == [name for name in given if name.startswith("given") and name < "given-08"]
    assert names[-4:] == ["diamond-visible", "diamond-hidden", "long_branch-visible", "long_branch-hidden"]


@pytest.mark.parametrize("mark", [{}, "x", [], {"grade_id": 3}, {"grade_id": "mine", "locked": True}, {"grade_id": ["given-00"]}, {"schema_version": 1, "grade_id": ""}])
def test_marks_that_are_none_of_ours_are_dropped(given, cells, mark):
    cells.append(nbformat.v4.new_code_cell("import os", metadata={"nbgrader": mark}))
    _, names = again(cells, given)
    assert names[-1] is None


@pytest.mark.parametrize("change", [
    lambda one: one.metadata.nbgrader.update(points=100),
    lambda one: one.metadata.nbgrader.update(solution=True, locked=False),
    lambda one: one.metadata.nbgrader.update(grade=False, schema_version=1),
    lambda one: one.update(source="print('right')"),
    lambda one: one.update(cell_type="markdown"),
    lambda one: one.update(cell_type="raw"),
    lambda one: one.metadata.nbgrader.update(grade_id="else")])
def test_changed_marks_and_texts_are_as_before(given, cells, change):
    for one in cells:
        if name_of(one) and one.metadata.nbgrader.grade:
            change(one)
    out, names = again(cells, given)
    assert set(names) - {None} == set(given)


@pytest.mark.parametrize("older_course", [False, True])
def test_nbgrader_takes_a_notebook_with_copied_split_and_deleted_cells(make_course, tmp_path, no_tests_run, monkeypatch, older_course):
    """Also where the settings of an older course name Restore after nbgrader's own steps."""
    course = make_course(tmp_path / "course")
    config = course.root / "nbgrader_config.py"
    if older_course:
        text = config.read_text().replace('    "labkit.classroom.grading.Restore",\n', "")
        config.write_text(text.replace('    "nbgrader.preprocessors.OverwriteCells",\n', '    "nbgrader.preprocessors.OverwriteCells",\n    "labkit.classroom.grading.Restore",\n'))

    def spoil(made):
        names = [one["metadata"].get("nbgrader", {}).get("grade_id") for one in made["cells"]]
        for name in ("diamond", "given-00", "long_branch-visible"):
            made["cells"].insert(names.index(name), copy.deepcopy(made["cells"][names.index(name)]))
            names.insert(names.index(name), name)
        del made["cells"][names.index("diamond-visible")]
        made["nbformat_minor"] = 4
        for one in made["cells"]:
            one.pop("id", None)

    course.submit("ann", change=spoil)
    as_nbgrader(course.root)
    assert len(no_tests_run) == 4
    nbformat.validate(nbformat.read(course.root / "autograded" / "ann" / NAME / f"{NAME}.ipynb", as_version=4))
