"""The tables of lessons 11 and 12 say what the recorded GPU answered, row by row."""

import itertools

import pytest

import build_notebooks
import inprocess
from labkit import cells
from tests.conformance import store

LESSONS = inprocess.ROOT / "authoring/lessons"
MODES = ("Global", "ThreadLocal", "Relaxed")
KEYS = list(itertools.product(MODES, ("same", "other"), ("nonblocking", "blocking")))
THREAD = {"my thread": "same", "another thread": "other"}
WHO_MAY = {  # lesson 12: the row, and the probe that asked the GPU the same
    "cudaMalloc": "cudaMalloc", "cudaFree": "cudaFree: own", "cudaMallocHost": "cudaMallocHost",
    "cudaEventQuery (unrecorded)": "cudaEventQuery: never recorded", "cudaStreamSynchronize (other)": "cudaStreamSynchronize: other stream",
    "cudaGraphInstantiate": "cudaGraphInstantiate", "cudaDeviceSynchronize": "cudaDeviceSynchronize",
    "launch into the capture": "launch: capture stream"}
WAITS = {  # lesson 11
    "wait for the capturing stream": "cudaStreamSynchronize: capture stream", "wait for another stream": "cudaStreamSynchronize: other stream",
    "wait for the device": "cudaDeviceSynchronize", "wait for a captured event": "cudaEventSynchronize: captured",
    "wait for an event from before": "cudaEventSynchronize: outside", "query the capturing stream": "cudaStreamQuery: capture stream",
    "query another stream": "cudaStreamQuery: other stream", "query a captured event": "cudaEventQuery: captured",
    "query an event from before": "cudaEventQuery: outside", "the stream's flags": "cudaStreamGetFlags: capture stream",
    "time between two events": "cudaEventElapsedTime: captured", "the stream's priority": "cudaStreamGetPriority: capture stream",
    "is it capturing?": "cudaStreamIsCapturing: capture stream"}


def variables(lesson, until):
    """A lesson's variables, run up to the cell that makes `until`."""
    notebook = build_notebooks.from_source(next(LESSONS.glob(lesson)).read_text(encoding="utf-8"), "lesson")
    session = inprocess.Session()
    for cell in cells.code_cells(notebook):
        _, error = session.run(cells.text(cell["source"]))
        assert error is None, error
        if until in session.names:
            return session.names
    raise AssertionError(f"no cell of {lesson} makes {until}")


@pytest.fixture(scope="module", params=(12, 13))
def recorded(request):
    """{probe: {(mode, thread, kind of stream): row}} of one recording."""
    _, found = store.read(store.TRACES / f"in_capture_{request.param}.json")
    return {probe: dict(zip(KEYS, (rows[k] for k in which), strict=True)) for probe, (rows, which) in found.items()}


def test_who_may_call_what_agrees_with_the_recording(recorded):
    table = variables("12_*.py", "table")["table"]
    assert list(table) == list(WHO_MAY)
    for row, probe in WHO_MAY.items():
        for (who, mode), code in table[row].items():
            if who in THREAD:
                assert code.name == recorded[probe][mode, THREAD[who], "nonblocking"][0], (row, who, mode)
    assert sum(who in THREAD for row in table.values() for who, _ in row) == 6 * len(WHO_MAY)


def test_own_mode_and_the_captures_agree_with_the_recording():
    meet, seen = variables("12_*.py", "meet")["meet"], 0
    for line in (12, 13):
        _, traces = store.read_traces(store.TRACES / f"traces_{line}.json")
        for own, row in meet.items():
            for (who, mode), code in row.items():
                thread = THREAD[who.split(",")[0]]
                trace = traces[f"own_mode_and_the_mode_of_the_capture/{own.split()[-1]}/{mode}/{thread}"]
                assert code.name == next(step[1] for step in trace if step[0] == "cudaMalloc"), (own, who, mode)
                seen += 1
    assert seen == 2 * 18


def test_waits_and_questions_agree_with_the_recording(recorded):
    found = variables("11_*.py", "found")["found"]
    assert list(found) == list(WAITS)
    for name, probe in WAITS.items():
        code, status, _, end, _ = found[name]
        assert [code.name, status, end.name] == recorded[probe]["Global", "same", "nonblocking"][:3], name
