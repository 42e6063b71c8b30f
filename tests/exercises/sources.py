"""Exercises as the tests use them: the source of one, with its solution or untouched, run cell by cell in this process."""
import importlib
import linecache
from pathlib import Path

import lint_lessons
import labs_source
from labkit import labs

ROOT = Path(__file__).resolve().parents[2]
LABS = {lab.number: lab for lab in labs.all_labs()}
PARTS = {name: part for lab in LABS.values() for name, part in lab.parts.items()}


def source(number):
    """The py:percent text of an exercise."""
    return (ROOT / "authoring/labs" / f"{LABS[number].slug}.py").read_text(encoding="utf-8")


def namespace(number, solved):
    """The names that the notebook's code cells leave, cells that check or hint left out."""
    names = {"__name__": "__main__"}
    text = labs_source.solution(source(number)) if solved else labs_source.stub(source(number))
    for index, cell in enumerate(lint_lessons.parse(text).cells):
        if cell.cell_type == "code" and not labs_source.only_asks(cell.source):
            file = f"<{number} cell {index}, {'solved' if solved else 'untouched'}>"
            linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(True), file)
            exec(compile(cell.source, file, "exec"), names)
    return names


def wrong(number):
    """The module of wrong answers, or None where there is none yet."""
    if not (ROOT / f"tests/exercises/wrong_{number}.py").exists():
        return None
    return importlib.import_module(f"tests.exercises.wrong_{number}")
