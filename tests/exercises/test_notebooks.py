"""Restart and run all: an untouched exercise and a solved one, every cell, in this process."""
import pytest

from tests.exercises import sources
from tests.notebooks import inprocess
from labkit import cells


@pytest.mark.parametrize("number", sources.LABS)
@pytest.mark.parametrize("folder", ["exercises", "solutions"])
def test_every_cell_runs(folder, number):
    lab, said = sources.LABS[number], ""
    for cell, text, error in inprocess.run_all(sources.ROOT / folder / f"{lab.slug}.ipynb"):
        assert error is None, (cells.text(cell["source"]), error)
        said += text + "\n"
    right = [f"{number} {name}: right" in said for name in lab.parts]
    assert right == [folder == "solutions"] * len(right), said
