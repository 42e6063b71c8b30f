"""The rules a lesson and an exercise keep (CONTRIBUTING says why). `build_notebooks.py` runs this; so do the tests."""

import ast
import io
import re
import tokenize

import jupytext

import labs_source
from labkit import cells

WORDS, LINES, CELLS = 70, 12, 30
# The calls whose shape differs between the 12.9 and 13.x bindings; labkit.graph speaks for them.
LINE_DEPENDENT = re.compile(
    r"(cudaGraphGetEdges|cudaGraphNodeGetDependencies|cudaGraphNodeGetDependentNodes"
    r"|cudaGraphAddDependencies|cudaGraphRemoveDependencies|cudaGraphAddNode"
    r"|cudaStreamGetCaptureInfo|cudaStreamUpdateCaptureDependencies)(_v\d+)?")
DURATION = re.compile(r"\d\s?(us|µs|μs|ms|ns|microseconds?|milliseconds?)\b")
PLACE_AND_DATE = re.compile(r"(?s)(?=.*(GPU|H200|A100|L4|RTX))(?=.*\d{4}-\d\d-\d\d)")


def parse(text):
    """A lesson's py:percent text as a notebook object.

    Without `comment_magics` Jupytext would take a heading that ends in `?` for a help request.
    """
    return jupytext.reads(text, fmt={
        "extension": ".py", "format_name": "percent", "comment_magics": False})


def words(text):
    """How many words a reader reads: fenced code, tables, link targets and formulas left out."""
    text = re.sub(r"(?s)```.*?```|\$\$.*?\$\$|<!--.*?-->", " ", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("|")]
    return len(re.findall(r"\w[\w'’.-]*", " ".join(lines)))


def names(source):
    """Every name used in Python text, strings and comments left out."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def lint_code(source, first):
    """What is wrong with one code cell; `first` says that it is the first of its lesson."""
    lines = [line for line in labs_source.stub(source + "\n").splitlines() if line.strip()]
    if len(lines) > LINES:
        yield f"{len(lines)} lines of code, at most {LINES}"
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        yield f"not plain Python ({error.msg}); magics do not run outside Jupyter"
        return
    if not body and "hint(" not in source:
        yield "no code in it"
    elif first and not (len(lines) == 1 and len(body) == 1 and isinstance(body[0], ast.ImportFrom)
                        and body[0].module.split(".")[0] == "labkit"):
        yield "the first code cell is one line, `from labkit import ...`"
    for name in sorted(names(source)):
        if LINE_DEPENDENT.fullmatch(name):
            yield f"calls {name}, which differs between bindings: use labkit.graph"
    if re.search(r"#\s*(NBVAL_|PYTEST_VALIDATE)", source):
        yield "nbval's markers belong in the tags, not in a comment"


def lint_notebook(notebook):
    """(errors, warnings) of one parsed lesson, each a sentence that starts with the cell."""
    errors, warnings, used = [], [], set()
    if len(notebook["cells"]) > CELLS:
        errors.append(f"{len(notebook['cells'])} cells, at most {CELLS}")
    if not cells.text(notebook["cells"][0]["source"]).startswith("# "):
        errors.append("cell 0: a lesson starts with its title, `# ...`")
    code = cells.code_cells(notebook)
    for index, cell in enumerate(notebook["cells"]):
        source, tags = cells.text(cell["source"]), cells.tags(cell)
        used.update(tags)
        found = []
        if cell["cell_type"] == "code":
            found += lint_code(source, cell is code[0])
        else:
            if words(source) > WORDS:
                found.append(f"{words(source)} words, aim at 40, at most {WORDS}")
            if DURATION.search(source) and not PLACE_AND_DATE.search(source):
                warnings.append(f"cell {index}: a duration without a place and a date")
        found += [f"unknown tag {tag!r}; only {', '.join(cells.TAGS)}"
                  for tag in tags if tag not in cells.TAGS]
        errors += [f"cell {index}: {text}" for text in found]
    errors += [f"no cell carries the tag {tag}" for tag in cells.TAGS if tag not in used]
    return errors, warnings


def lint(folder):
    """(errors, warnings) over every lesson in `folder`, each `NN_slug.py: ...`."""
    errors, warnings = [], []
    for path in sorted(folder.glob("*.py")):
        if not re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem):
            errors.append(f"{path.name}: a lesson is named NN_slug.py")
        found = lint_notebook(parse(path.read_text(encoding="utf-8")))
        errors += [f"{path.name}: {line}" for line in found[0]]
        warnings += [f"{path.name}: {line}" for line in found[1]]
    return errors, warnings


def lint_labs(folder):
    """Errors over every exercise in `folder`, each `NN_slug.py: ...`: the rules of a lesson, less its tags, and those of a part."""
    errors = []
    for path in sorted(folder.glob("*.py")):
        if not re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem):
            errors.append(f"{path.name}: an exercise is named NN_slug.py")
        notebook = parse(path.read_text(encoding="utf-8"))
        found = [line for line in lint_notebook(notebook)[0] if not line.startswith("no cell carries")]
        for index, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                found += [f"cell {index}: {line}" for line in labs_source.lint_cell(cell["source"])]
        named = labs_source.parts(notebook)
        found += [] if named else ["no part: no ### BEGIN SOLUTION"]
        asked = "\n".join(cells.text(cell["source"]) for cell in notebook["cells"])
        found += [f"no cell with {call}({name})" for name in named for call in ("check", "hint") if f"{call}({name})" not in asked]
        errors += [f"{path.name}: {line}" for line in found]
    return errors
