"""Give a submission back what was handed out: each given cell once, at its place, with its own text and marks.

JupyterLab copies nbgrader's marks with a cell, and splitting one gives both halves the same; nbgrader then refuses the notebook.
"""
from pathlib import Path

from nbformat import v4
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from labkit.classroom import fit, record
from labkit.errors import LabError


class Restore(NbGraderPreprocessor):
    """First of the sanitizers: refuses what is unfit, notes that grading has begun, and restores the given cells."""

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]
        folder = Path("submitted", names["student"], names["assignment"])       # nbgrader works in the course's folder
        why = fit.unfit(folder)
        if why:
            raise LabError(f"not given to nbgrader: {why}", "It was not graded.", "Mend it or ask for it again.")
        record.begin(".", names["student"], names["assignment"], record.digest(folder, names["db_url"]))
        with Gradebook(names["db_url"]) as book:
            given = given_cells(book.find_notebook(names["notebook"], names["assignment"]))
        nb.cells = restored(nb.cells, given)
        if (nb.nbformat, nb.nbformat_minor) < (4, 5):
            for cell in nb.cells:
                cell.pop("id", None)
        return nb, resources


def given_cells(notebook):
    """{name: cell} in order, of a notebook in the gradebook: as handed out, hidden tests included."""
    points = {one.name: one.max_score for one in [*notebook.grade_cells, *notebook.task_cells]}
    graded, tasks, answers = ({one.name for one in kind} for kind in (notebook.grade_cells, notebook.task_cells, notebook.solution_cells))
    made = {}
    for one in notebook.source_cells:
        mark = {"schema_version": 3, "grade_id": one.name, "grade": one.name in graded, "solution": one.name in answers, "locked": one.locked,
                "task": one.name in tasks, "cell_type": one.cell_type, "checksum": one.checksum}
        mark |= {"points": points[one.name]} if one.name in points else {}
        made[one.name] = getattr(v4, f"new_{one.cell_type}_cell")(source=one.source, metadata={"nbgrader": mark})
    return made


def restored(cells, given):
    """The cells of a submission, with each given one as it was handed out. What a learner added stays, as a cell of no mark.

    Of several with one name the first is kept; of answers the first that defines its function, of tests the last. A deleted test comes back
    at the end, any other given cell after the one that it followed. A deleted answer does not: its place may have been taken.
    """
    chosen = {}
    for cell in cells:
        mark = cell.metadata.pop("nbgrader", None)
        name = mark.get("grade_id") if isinstance(mark, dict) else None
        if isinstance(name, str) and name in given and (name not in chosen or _better(cell, chosen[name], given[name])):
            chosen[name] = cell
    name_of = {id(cell): name for name, cell in chosen.items()}
    out = [_as_given(cell, given[name_of[id(cell)]]) if id(cell) in name_of else cell for cell in cells]
    place = 0
    for name, cell in given.items():
        mark = cell.metadata.nbgrader
        at = next((k for k, one in enumerate(out) if one.metadata.get("nbgrader", {}).get("grade_id") == name), None)
        if at is not None:
            place = place if mark.grade else at + 1
        elif mark.grade and mark.locked:
            out.append(cell)
        elif mark.locked:
            out.insert(place, cell)
            place += 1
    return out


def _better(cell, other, given):
    """Whether a later cell of the same name takes the place of an earlier one."""
    mark = given.metadata.nbgrader
    if mark.locked:
        return mark.grade
    answered = [f"def {mark.grade_id}(" in one.source and one.source != given.source for one in (cell, other)]
    return answered[0] and not answered[1]


def _as_given(cell, given):
    """The given cell; one that is to be written in keeps what was written."""
    if given.metadata.nbgrader.locked:
        return given
    if cell.cell_type != given.cell_type:
        cell = getattr(v4, f"new_{given.cell_type}_cell")(source=cell.source, metadata=cell.metadata)
    cell.metadata.nbgrader = given.metadata.nbgrader
    return cell
