"""A course folder for nbgrader, made from the exercises: source/, nbgrader_config.py, and a seed that only source/ knows.

    export("course")                 # every exercise
    export("course", only=["05"])    # one, in a course that may be there already

What the teacher changed is kept. The same seed gives the same bytes.
"""
import hashlib
import json
import os
import secrets
import sys
from pathlib import Path

from labkit import labs, workcopy
from labkit.classroom import handout
from labkit.errors import LabError

MARKER = "source/.labkit-course.json"      # {"seed": ..., "written": {path: digest}}: the secret stands where the solutions are
CONFIG = "nbgrader_config.py"
INSTALL = "pip install -e .[lab,classroom] -c constraints.txt in the clone"
SETTINGS = '''"""nbgrader's settings for this course, from `labkit classroom export`. They are yours: export keeps a file you changed."""
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "cuda_graphs"
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE"}

# How long one test may take, and all of a notebook's together (seconds); what its processes may have (MiB, number).
c.Judge.seconds = 60
c.Judge.notebook_seconds = 600
c.Judge.memory = 1024
c.Judge.processes = 100

# nbgrader would run submissions in a kernel with your rights. Judge runs them in a sandbox instead; keep its name in this list.
c.Autograde.sanitize_preprocessors = [
    "labkit.classroom.grading.Restore",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "labkit.classroom.grading.Judge",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "labkit.classroom.grading.Review",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.post_convert_hook = "labkit.classroom.record.finished"

# Feedback shows a hidden test without its seed.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# zip_collect finds the student in the names that learning platforms give.
c.ZipCollectApp.collector_plugin = "labkit.classroom.collecting.Names"
'''
IGNORED = """# What is the students', or made of it. source/ holds the solutions and the secret seed: never into a public repository.
gradebook.db*
.nbgrader.log
submitted/
downloaded/
autograded/
feedback/
notes/
"""


def needs_nbgrader():
    """Raises LabError where nbgrader or Jupytext is not installed."""
    import importlib.util
    missing = [name for name in ("nbgrader", "jupytext") if not importlib.util.find_spec(name)]
    if missing:
        raise LabError("labkit classroom works with nbgrader.", f"Not installed for this Python: {', '.join(missing)}.", f"Run {INSTALL}.")


def with_tools():
    """The environment in which nbgrader finds this labkit, and Alembic, which it calls by name to make its gradebook."""
    def first(folder, name, otherwise=""):
        return os.pathsep.join(filter(None, [str(folder), os.environ.get(name, otherwise)]))

    return {**os.environ, "PATH": first(Path(sys.executable).parent, "PATH", os.defpath), "PYTHONPATH": first(Path(__file__).resolve().parents[2], "PYTHONPATH")}


def read(root):
    """What the marker of a course says; None where `root` is no course of labkit's."""
    try:
        found = json.loads((Path(root) / MARKER).read_text(encoding="utf-8"))
        return found if isinstance(found["seed"], int) and isinstance(found["written"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _begin(root, seed):
    """The marker's content for this export. Raises LabError where the folder holds something else, or a course with another seed."""
    old = read(root)
    if old is None:
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise LabError(f"{root} holds something that labkit did not make.", "A course needs a folder of its own; nothing was written.", "Name a new folder, or an empty one.")
        return {"seed": secrets.randbits(62) if seed is None else seed, "written": {}}
    if seed not in (None, old["seed"]):
        raise LabError(f"{root} is a course with another seed.", "With a new seed, work that is graded already would have met other tests.", "Leave --seed out, or export into a new folder.")
    return old


def export(target, only=(), seed=None):
    """Make or renew a course: [(path in it, "new" | "renewed" | "same" | "kept")]. only: numbers of exercises. Raises LabError."""
    needs_nbgrader()
    import nbformat
    root, sources = Path(target), workcopy.clone() / "authoring/labs"
    chosen = [labs.find(one) for one in only] or labs.all_labs()
    marker = _begin(root, seed)
    files = {CONFIG: SETTINGS, ".gitignore": IGNORED}
    for lab in chosen:
        try:
            text = (sources / f"{lab.slug}.py").read_text(encoding="utf-8")
        except OSError as no:
            raise LabError(f"The source of exercise {lab.number} is not there.", f"{no}.", "Export from a whole clone of the kit.") from None
        made = handout.notebook(lab, text, marker["seed"])
        files[f"source/{lab.slug}/{lab.slug}.ipynb"] = nbformat.writes(made, version=4).rstrip("\n") + "\n"
    try:
        if not root.exists():
            root.mkdir(parents=True, mode=0o700)             # solutions and the seed are the teacher's
        return _write(root, files, marker)
    except OSError as no:
        raise LabError(f"labkit could not write the course into {root}.", f"{no}.", "Make the folder writable, or name another.") from None


def _write(root, files, marker):
    """Write each file that the teacher has not changed; the marker first, so that an interrupted export is known as ours."""
    save = lambda: workcopy.write(root / MARKER, (json.dumps(marker, indent=1, sort_keys=True) + "\n").encode())  # noqa: E731
    save()
    out = []
    for name, text in files.items():
        path, data = root / name, text.encode()
        old = path.read_bytes() if path.is_file() else None
        if old is not None and old != data and hashlib.sha256(old).hexdigest() != marker["written"].get(name):
            out.append((name, "kept"))
            continue
        if old != data:
            workcopy.write(path, data)
        marker["written"][name] = hashlib.sha256(data).hexdigest()
        out.append((name, "new" if old is None else "same" if old == data else "renewed"))
    save()
    return out
