"""The two notebooks that one source of an exercise gives, and the rules that such a source keeps."""
import ast
import re

from labkit.asking import only_asks  # noqa: F401

BEGIN, END, STUB = "### BEGIN SOLUTION", "### END SOLUTION", "# YOUR CODE HERE"
_REGION = re.compile(rf"^([ \t]+){BEGIN}\n(.*?)^[ \t]+{END}\n?", re.M | re.S)
SOLUTION_LINES = 14


def stub(text):
    """The text with each solution replaced by one comment."""
    return _REGION.sub(lambda found: f"{found[1]}{STUB}\n", text)


def solution(text):
    """The text with each solution, its markers left out."""
    return _REGION.sub(lambda found: found[2], text)


def without_stubs(text):
    """An exercise's text less its stub comments: what the learner adds lines to."""
    return "".join(line for line in text.splitlines(keepends=True) if line.strip() != STUB)


def lint_cell(source):
    """What is wrong with the part in one code cell, as sentences; nothing for a cell without one."""
    if BEGIN not in source and END not in source:
        return
    regions = _REGION.findall(source + "\n")
    if len(regions) != 1 or source.count(BEGIN) != 1 or source.count(END) != 1:
        yield "a part has one solution, between the two markers, indented in its function"
        return
    if len([line for line in regions[0][1].splitlines() if line.strip()]) > SOLUTION_LINES:
        yield f"a solution of more than {SOLUTION_LINES} lines"
    body = ast.parse(stub(source + "\n")).body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or not ast.get_docstring(body[0]) or len(body[0].body) != 1:
        yield "a part is one function with a docstring, all of whose body is the solution"


def parts(notebook):
    """The names of the functions that are to be written, in order."""
    return [re.search(r"^def (\w+)", cell["source"], re.M)[1] for cell in notebook["cells"]
            if cell["cell_type"] == "code" and (BEGIN in cell["source"] or STUB in cell["source"])]
