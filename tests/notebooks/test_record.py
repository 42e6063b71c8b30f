"""Recording: what `labkit record` leaves behind. Run on the simulator, as only these tests may."""

import json
import os

import nbformat
import pytest

from labkit import LabError, cells, record
from labkit.backend import backend


@pytest.fixture
def lessons(tmp_path, monkeypatch):
    """Two small notebooks in place of the lessons: one that runs, one that fails."""
    for name, sources in {"00_good": ["a = 1", "import os\nprint(a, 'LABKIT_RECORD' in os.environ)"], "01_bad": ["1 / 0"]}.items():
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
        nbformat.write(book, str(tmp_path / f"{name}.ipynb"))
    monkeypatch.setattr(record, "NOTEBOOKS", tmp_path)
    return tmp_path


@pytest.mark.skipif(backend.name == "gpu", reason="a GPU may be recorded")
def test_recording_the_simulator_is_refused(tmp_path):
    with pytest.raises(LabError, match="simulator"):
        record.main(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_ran_is_written_and_what_failed_is_named(lessons, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(LabError, match="01_bad.*ZeroDivisionError"):
        record.main(out, allow_sim=True)
    assert [path.name for path in sorted((out / "notebooks").iterdir())] == ["00_good.ipynb"]
    book = json.loads((out / "notebooks/00_good.ipynb").read_text())
    ran = cells.code_cells(book)
    assert [cell["execution_count"] for cell in ran] == [1, 2]
    assert cells.printed(ran[1]["outputs"]) == "1 True"
    assert [cell["metadata"]["labkit"]["digest"] for cell in ran] == cells.digests(book)
    assert all("execution" not in cell["metadata"] for cell in ran)
    assert "LABKIT_RECORD" not in os.environ


def test_a_recording_on_the_simulator_is_marked_as_one(lessons, tmp_path):
    if backend.name != "gpu":
        assert record.here().startswith("the simulator")
    else:
        assert record.here().startswith("NVIDIA")


def test_a_name_that_no_notebook_has_is_a_lab_error(lessons, tmp_path):
    with pytest.raises(LabError, match="nothing to record"):
        record.main(tmp_path / "out", only="no such", allow_sim=True)
