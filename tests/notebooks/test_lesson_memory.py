"""What the lessons take of a GPU's memory and what they leave: as recorded, and as they run here."""

import json

import pytest

import inprocess
from labkit import cells, cudart, ok

DATA = inprocess.ROOT / "labkit/data/lessons"
NOTEBOOKS = sorted((inprocess.ROOT / "notebooks").glob("*.ipynb"))
RECORDED = 20  # lessons at least
SMALL_GPU = 16 * 1024  # MiB: the GPU on which every lesson must fit
lesson = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def graph_memory():
    """Bytes of graph memory in use."""
    used = cudart.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent
    return int(ok(cudart.cudaDeviceGetGraphMemAttribute(0, used)))


def recording(path):
    """What was recorded of a lesson, or None where that is not the lesson as it stands now."""
    last, file = cells.code_cells(inprocess.load(path))[-1], DATA / f"{path.stem}.json"
    if not cells.recorded(last) or not file.is_file():
        return None
    found = json.loads(file.read_text(encoding="utf-8"))
    return found if found["digest"] == last["metadata"]["labkit"]["digest"] else None


def waits(path):
    """Are there cells of the lesson that have to be recorded anew?"""
    listed = (inprocess.ROOT / "authoring/unrecorded.txt").read_text(encoding="utf-8")
    return f"{path.name}: " in listed


@lesson
def test_after_a_lesson_the_graph_memory_is_back(path):
    inprocess.Session()                         # nothing of an earlier lesson is left
    before = graph_memory()
    assert [error for *_, error in inprocess.run_all(path) if error] == []
    assert graph_memory() == before


@lesson
def test_on_the_recorded_gpu_it_was_back_as_well_and_the_lesson_fits_a_small_gpu(path):
    found = recording(path)
    assert found or waits(path), "not recorded as it stands: run labkit record on a GPU"
    if found is None:
        pytest.skip("authoring/unrecorded.txt lists its cells")
    assert found["graph_bytes_left"] == 0
    assert 100 < found["peak_mib"] < SMALL_GPU
    assert found["recorded"].startswith("NVIDIA ")


def test_lessons_that_use_graph_memory_are_among_them():
    took = [path.stem for path in NOTEBOOKS if any("cudaDeviceGraphMemTrim" in cells.text(c["source"]) for c in cells.code_cells(inprocess.load(path)))]
    assert len(took) >= 3


def test_no_recording_is_left_of_a_lesson_that_is_gone():
    assert {path.stem for path in DATA.glob("*.json")} <= {path.stem for path in NOTEBOOKS}


def test_readme_states_the_largest_peak():
    peaks = [found["peak_mib"] for found in map(recording, NOTEBOOKS) if found]
    assert len(peaks) >= RECORDED
    assert f"{max(peaks):,} MiB" in (inprocess.ROOT / "README.md").read_text(encoding="utf-8")
