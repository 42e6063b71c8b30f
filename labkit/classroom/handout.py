"""One exercise as an nbgrader notebook: what is given is locked, a part is a solution cell, two tests follow it.

The visible test is grade(f), the hidden one grade(f, seed=...): other sizes and other numbers. Each has half of the
part's points. Both name what they need themselves, so that nothing a learner defines stands in between.
"""
import ast
import hashlib

from labkit.asking import only_asks
from labkit.errors import LabError

BEGIN = "### BEGIN SOLUTION"
METADATA = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"file_extension": ".py", "name": "python", "pygments_lexer": "ipython3"}}


def part_seed(secret, lab, name):
    """The seed of a part's hidden test, from the course's secret: nobody learns one from another."""
    return int.from_bytes(hashlib.sha256(f"{secret}/{lab.slug}/{name}".encode()).digest()[:4], "big")


def half(points):
    """Half of some points: 4 -> 2, 3 -> 1.5"""
    return points // 2 if points % 2 == 0 else points / 2


def _mark(grade_id, cell_type, points=None, solution=False):
    """nbgrader's metadata of a cell (its schema 3): locked unless it is a solution, graded where it has points."""
    mark = {"schema_version": 3, "grade_id": grade_id, "grade": points is not None, "solution": solution, "locked": not solution,
            "task": False, "cell_type": cell_type}
    return {"nbgrader": mark if points is None else {**mark, "points": points}}


def _tests(lab, name, secret):
    """[(kind, source, points)] of a part's two tests."""
    points = half(lab.parts[name].points)
    call = f"from labkit.exercise import grade\ngrade({name}"
    worth = f"{points} point{'' if points == 1 else 's'}"
    yield "visible", f"# {worth}: the same as check({name})\n{call})", points
    yield "hidden", (f"# {worth}: the same with other sizes and numbers, when this is graded\n### BEGIN HIDDEN TESTS\n"
                     f"{call}, seed={part_seed(secret, lab, name)})\n### END HIDDEN TESTS"), points


def _function(source):
    """The name of the one function in a part's cell."""
    return next(line.name for line in ast.parse(source).body if isinstance(line, ast.FunctionDef))


def notebook(lab, source, secret):
    """The notebook (nbformat) of a Lab, from its py:percent source. Raises LabError where the source and the judges differ."""
    import jupytext
    import nbformat
    parsed = jupytext.reads(source, fmt={"extension": ".py", "format_name": "percent", "comment_magics": False})
    made, waiting, found = nbformat.v4.new_notebook(metadata=METADATA), [], []

    def add(kind, text, name, metadata):
        made.cells.append(getattr(nbformat.v4, f"new_{kind}_cell")(source=text, metadata=metadata, id=f"{lab.slug}-{name}".replace("_", "-")[:64]))

    def add_tests():
        while waiting:
            name = waiting.pop()
            for which, text, points in _tests(lab, name, secret):
                add("code", text, f"{name}-{which}", _mark(f"{name}-{which}", "code", points))

    for index, cell in enumerate(parsed.cells):
        text, kind = cell.source.strip("\n"), cell.cell_type
        asks = kind == "code" and only_asks(text)
        if not asks or "progress" in text:
            add_tests()                                  # after the learner's own check and hint
        if asks:
            add(kind, text, f"{index:02d}", {})
        elif kind == "code" and BEGIN in text:
            name = _function(text)
            if name not in lab.parts:
                raise LabError(f"Exercise {lab.number} has a function {name}, and no judge of that name.", f"Its judges are {', '.join(lab.parts)}.",
                               "Give both one name: authoring/labs and labkit/labs belong together.")
            found.append(name)
            waiting.append(name)
            add(kind, text, f"{index:02d}", _mark(name, kind, solution=True))
        else:
            add(kind, text, f"{index:02d}", _mark(f"given-{index:02d}", kind))
    add_tests()
    if found != list(lab.parts):
        raise LabError(f"Exercise {lab.number} asks for {', '.join(found) or 'nothing'}.", f"Its judges are {', '.join(lab.parts)}.", "authoring/labs and labkit/labs belong together.")
    nbformat.validate(made)
    return made
