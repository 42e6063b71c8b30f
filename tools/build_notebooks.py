#!/usr/bin/env python3
"""Build notebooks/ from authoring/lessons/, keeping the outputs that were recorded, and exercises/ and solutions/ from authoring/labs/.

    build_notebooks.py              write the notebooks and authoring/unrecorded.txt
    build_notebooks.py --check      write nothing; exit 1 and say what differs
    build_notebooks.py --from DIR   also take outputs and figures that `labkit record` left in DIR

A recorded output stays while its cell's digest stays (labkit.cells.digests); otherwise it goes,
and the cell is listed in unrecorded.txt. Text cells may change freely. The same source and the
same recordings always give the same bytes.
"""

import argparse
import base64
import difflib
import json
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from labkit import cells  # noqa: E402
import labs_source  # noqa: E402
import lint_lessons  # noqa: E402

FIGURES = ("measurements", "timelines", "footprints", "lessons", "libraries")  # folders of a recording, and of labkit/data
FOLDERS = ("notebooks", "exercises", "solutions")
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "name": "python", "pygments_lexer": "ipython3"},
}


def from_source(source, name, recordable=True):
    """A notebook without outputs from py:percent text. Cell ids are `name-NN`, by position. recordable: code cells carry their digest."""
    parsed = lint_lessons.parse(source)
    notebook = nbformat.v4.new_notebook(metadata=METADATA)
    for index, cell in enumerate(parsed.cells):
        make = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
        metadata = {"tags": sorted(cells.tags(cell))} if cells.tags(cell) else {}
        notebook.cells.append(
            make(source=cell.source.strip("\n"), metadata=metadata, id=f"{name}-{index:02d}"))
    for cell, digest in zip(cells.code_cells(notebook), cells.digests(notebook) if recordable else ()):
        cell.metadata["labkit"] = {"digest": digest}
    return notebook


def exercises(root):
    """{path relative to `root`: text} of what authoring/labs/ gives: each exercise with stubs, and solved."""
    files = {}
    for lab in sorted((root / "authoring/labs").glob("*.py")):
        text = lab.read_text(encoding="utf-8")
        for folder, source in (("exercises", labs_source.stub(text)), ("solutions", labs_source.solution(text))):
            notebook = from_source(source, lab.stem.replace("_", "-"), recordable=False)
            nbformat.validate(notebook)
            files[f"{folder}/{lab.stem}.ipynb"] = nbformat.writes(notebook, version=4).rstrip("\n") + "\n"
    return files


def take_outputs(notebook, *sources):
    """Give each code cell the outputs of the first of `sources` that ran the same digest."""
    for cell in cells.code_cells(notebook):
        digest = cell.metadata["labkit"]["digest"]
        for source in filter(None, sources):
            found = next((c for c in cells.code_cells(source)
                          if c["metadata"].get("labkit", {}).get("digest") == digest), None)
            if found is not None and cells.recorded(found):
                cell.outputs = [nbformat.from_dict(o) for o in cells.settle(found["outputs"])]
                cell.execution_count = found["execution_count"]
                cell.metadata["labkit"].update(recorded=cells.recorded(found), outputs=found["metadata"]["labkit"]["outputs"])
                break


def read(path):
    """The notebook in `path`, or None where there is no such file."""
    return nbformat.read(str(path), as_version=4) if path.is_file() else None


def build(root, recording=None):
    """{path relative to `root`: text} of every built file, from what `root` holds now."""
    files, unrecorded = {}, []
    for lesson in sorted((root / "authoring/lessons").glob("*.py")):
        name = f"{lesson.stem}.ipynb"
        notebook = from_source(lesson.read_text(encoding="utf-8"), lesson.stem.replace("_", "-"))
        take_outputs(notebook, recording and read(Path(recording) / "notebooks" / name),
                     read(root / "notebooks" / name))
        nbformat.validate(notebook)
        files[f"notebooks/{name}"] = nbformat.writes(notebook, version=4).rstrip("\n") + "\n"
        for index, cell in enumerate(cells.code_cells(notebook)):
            if not cells.recorded(cell):
                unrecorded.append(f"{name}: {index:02d} {cell.source.splitlines()[0]}\n")
    files["authoring/unrecorded.txt"] = "".join(sorted(unrecorded))
    return {**files, **exercises(root)}


def stale(root, files):
    """Notebooks in `root` that no source builds."""
    built = (f"{folder}/{path.name}" for folder in FOLDERS for path in sorted((root / folder).glob("*.ipynb")))
    return [path for path in built if path not in files]


def differences(root, files):
    """One line a file that is not what `files` says, with the first lines that differ."""
    out = [f"{path}: no source builds it" for path in stale(root, files)]
    for path, wanted in files.items():
        here = root / path
        found = here.read_bytes().decode("utf-8") if here.is_file() else None
        if found is None:
            out.append(f"{path}: not built yet")
        elif found != wanted:
            diff = [line[:100] for line in difflib.unified_diff(
                found.splitlines(), wanted.splitlines(), "found", "built", n=0, lineterm="")]
            more = [f"    ... {len(diff) - 14} more lines"] if len(diff) > 14 else []
            out.append("\n".join([f"{path}: differs", *("    " + d for d in diff[2:14]), *more]))
    return out


def take_data(root, recording):
    """Copy the measurements and timelines of a recording into labkit/data; return their names."""
    taken = []
    for path in sorted(p for kind in FIGURES for p in Path(recording).glob(f"{kind}/*.json")):
        text = path.read_text(encoding="utf-8")
        json.loads(text)  # a half-written file must not get in
        to = root / "labkit/data" / path.parent.name / path.name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, encoding="utf-8", newline="\n")
        taken.append(path.stem)
    return taken


def readme_picture(files):
    """The first picture of lesson 01 as recorded (PNG, bytes), which README shows; b"" where there is none."""
    notebook = json.loads(files.get("notebooks/01_launch_cost.ipynb", '{"cells": []}'))
    pictures = [output["data"]["image/png"] for cell in notebook["cells"] for output in cell.get("outputs", ())
                if "image/png" in output.get("data", {})]
    return base64.b64decode(cells.text(pictures[0])) if pictures else b""


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument("--from", dest="recording", metavar="DIR", help="a recording to take in")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    errors, warnings = lint_lessons.lint(args.root / "authoring/lessons")
    errors += lint_lessons.lint_labs(args.root / "authoring/labs")
    for line in warnings:
        print("warning:", line, file=sys.stderr)
    for line in errors:
        print("error:", line, file=sys.stderr)
    files = build(args.root, args.recording)
    waiting = len(files["authoring/unrecorded.txt"].splitlines())
    if args.check:
        wrong = differences(args.root, files)
        print("\n".join(wrong) or f"{len(files) - 1} notebooks match authoring/, {waiting} cells unrecorded")
        return 1 if wrong or errors else 0
    if args.recording:
        print("figures taken:", ", ".join(take_data(args.root, args.recording)) or "none")
    for path in stale(args.root, files):
        (args.root / path).unlink()
    for path, text in files.items():
        (args.root / path).parent.mkdir(exist_ok=True)
        (args.root / path).write_text(text, encoding="utf-8", newline="\n")
    if picture := readme_picture(files):
        (args.root / "docs").mkdir(exist_ok=True)
        (args.root / "docs/launch_cost.png").write_bytes(picture)
    print(f"{len(files) - 1} notebooks built, {waiting} cells unrecorded")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
