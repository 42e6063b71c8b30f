"""tools/baseline: the C++ twins build, have the lessons' strategies, and Python keeps up with them."""
import contextlib
import ctypes
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.backend import backend, cudart
from labkit.errors import LabError

ROOT = Path(__file__).resolve().parents[2]
BASELINE = ROOT / "tools" / "baseline"
DATA = ROOT / "labkit" / "data" / "measurements"
EIGHT = ["plain stream", "node updates", "cached ExecUpdate", "re-capture + ExecUpdate", "re-instantiate", "one executable per size",
         "pad to the largest", "size in device memory"]
NO_RECAPTURE = ["node updates", "cached ExecUpdate", "one executable per size", "pad to the largest", "size in device memory"]
SIDES = ["python", "python, node by node", "c++"]
STEPS = ["capture", "instantiate", "upload", "first launch", "second launch", "destroy", "cached ExecUpdate", "re-capture + ExecUpdate", "re-instantiate"]

has_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc on this machine")

sys.path.insert(0, str(BASELINE))
compare = importlib.import_module("compare")
python_side = importlib.import_module("python_side")
table = importlib.import_module("table")
turns = importlib.import_module("turns")
twins = importlib.import_module("twins")
recordings = importlib.import_module("labkit.recordings")
HERE = recordings.Provenance("Made Up 9000", "1.2.3", "13.3", "13.4.4", "3.11", "2026-01-02")


def lesson(number):
    """The source of a lesson, by its number."""
    path, = (ROOT / "authoring" / "lessons").glob(f"{number}_*.py")
    return path.read_text(encoding="utf-8")


# ---- the twins ---------------------------------------------------------------------------------

def test_each_lesson_about_cost_has_its_twin():
    found = {path.name: path.read_text(encoding="utf-8").splitlines()[0] for path in BASELINE.glob("*.cu")}
    assert set(found) == {"launch.cu", "updates.cu", "changes.cu", "dynamic_batch.cu"}
    for name, first in found.items():
        assert first.startswith("// The twin of lesson"), name
    assert {number for number in ("01", "04", "05", "06", "07") if any(number in first for first in found.values())} == {"01", "04", "05", "06", "07"}


def test_the_twins_can_be_read_at_one_sitting():
    for path in [*twins.SOURCES, *BASELINE.glob("*.py")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 200 and max(map(len, lines)) <= 150, path.name


def test_each_strategy_has_a_twin_of_the_same_name():
    text = (BASELINE / "dynamic_batch.cu").read_text(encoding="utf-8")
    assert [name for name in EIGHT if f'{{"{name}", ' in text] == EIGHT and '{"fixed replay", ' in text


def test_the_lesson_calls_its_strategies_by_these_names():
    text = lesson("07")
    assert [name for name in EIGHT if f'"{name}"' not in text] == []


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The library, built once."""
    return twins.build(tmp_path_factory.mktemp("twins"))


@has_nvcc
def test_the_twins_build_and_say_what_they_time(built):
    assert built.names("batches") == ["fixed replay", *EIGHT]
    assert built.names("changes") == STEPS


@has_nvcc
@pytest.mark.skipif(backend.name == "gpu", reason="there is a driver")
def test_an_error_in_a_twin_arrives_with_its_text(built):
    with pytest.raises(LabError, match="batches_make failed.\n.*cudaError.* from cudaMalloc"):
        with built.made("batches", ctypes.c_void_p(0), 10):
            pass


@has_nvcc
def test_the_clock_of_the_twins_runs(built):
    times = built.timed("empty_round", batched=False)(1)
    assert times.prepare == -1 and 0 <= times.call == times.end < 1000


def test_a_twin_that_does_not_build_says_why(monkeypatch, tmp_path):
    fake = tmp_path / "nvcc"
    fake.write_text("#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release 13.0, V13.0.88'; else echo 'launch.cu(3): error' >&2; exit 1; fi\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert twins.find_nvcc() == (str(fake), "13.0.88")
    with pytest.raises(LabError, match="launch.cu.3.: error"):
        twins.build(tmp_path)


def test_without_nvcc_the_reason_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with pytest.raises(LabError, match="no nvcc"):
        twins.find_nvcc()


@pytest.mark.skipif(backend.name == "gpu", reason="there is a GPU")
def test_without_a_gpu_the_reason_is_said(capsys):
    assert compare.main([]) == 2 and "no GPU to compare on" in capsys.readouterr().err


def test_the_digest_names_the_text_of_the_twins(tmp_path):
    extra = tmp_path / "extra"
    extra.write_text("a")
    one = twins.digest(extra)
    extra.write_text("b")
    assert one != twins.digest(extra) and len(one) == 16


# ---- comparing, with Python in the place of C++ --------------------------------------------------

class Stand_in:
    """Twins made of the Python side itself, so that both sides are the same."""

    def __init__(self):
        self.bench, self.checked, self.wrong = None, [], 0

    @contextlib.contextmanager
    def made(self, prefix, *args):
        assert all(isinstance(arg, (ctypes.c_void_p, int)) for arg in args)
        yield prefix

    def names(self, prefix):
        return ["fixed replay", *EIGHT] if prefix == "batches" else STEPS

    def written(self, made, way, batch):
        self.checked.append((way, batch))
        return self.wrong or (8 if way in (0, 7) else batch) * 1024

    def timed(self, name, *args, batched=True):
        bench = self.bench
        if name == "updates_round":
            return python_side.node_by_node(bench.stream, compare.TEN, bench.y, bench.x)
        if name == "launch_round":
            executable, stream = (arg.value for arg in args)
            return python_side.launches(executable, stream)
        if name == "empty_round":
            return python_side.empty
        prepares = args[-1] % 2
        return lambda batch: twins.Times(5 if prepares else -1, 2, 17)


@pytest.fixture
def bench():
    stand_in = Stand_in()
    stand_in.bench = compare.Bench(stand_in, 20, HERE, "nvcc 13.0.88")
    return stand_in.bench


def test_all_that_is_compared_is_measured_in_one_run(bench, tmp_path, capsys):
    found = list(compare.run(bench))
    assert [(m.experiment, *m.params.values()) for m in found] == [
        *(("c++ launch", nodes) for nodes in (1, 10, 100, 1000)), ("c++ ten updates", "changing"), ("c++ ten updates", "same"),
        *(("c++ changing a graph", nodes) for nodes in (10, 100, 1000)), ("c++ dynamic batch", 10), ("c++ dynamic batch", 100)]
    assert len(bench.twins.checked) == 2 * 9 * 3
    updates = found[4]
    assert list(updates.e2e) == list(updates.cpu) == list(updates.stages) == SIDES
    for side in SIDES:
        assert list(updates.stages[side]) == ["prepare", "launch"] and updates.cpu[side].count == updates.e2e[side].count == 20
    assert found[0].stages == {"python": {}, "c++": {}} and found[0].provenance.cuda == "13.3, C++ nvcc 13.0.88"
    assert found[-1].stages["plain stream"] and found[-1].provenance.cuda == "nvcc 13.0.88"
    lines = list(table.rows(found))
    assert len(lines) == 4 * 2 + 2 * 2 * 3 and {line.what: line.limit for line in lines if line.limit is not None} == {
        "graph launch, 1 node, end to end": 1.1, **{f"graph launch, {nodes} nodes, end to end": 1.1 for nodes in (10, 100, 1000)},
        "ten updates, changing, one call, prepare": 1.2, "ten updates, changing, one call, end to end": 1.2}
    assert compare.report(found) in (0, 1)
    out = capsys.readouterr().out
    assert "graph launch, 1000 nodes, CPU time" in out and "ten updates, same values, node by node, prepare" in out
    assert out.count("The call itself costs Python about half a microsecond more (here ") == 1


def test_each_line_of_the_table_shows_the_figures_of_its_own_way(bench):
    m = bench.ten_updates()[0]
    shown = {row.what.removeprefix("ten updates, changing, "): (row.python, row.cpp) for row in table.rows([m])}
    for way, side in (("one call", "python"), ("node by node", "python, node by node")):
        assert shown[f"{way}, end to end"] == (m.e2e[side].median, m.e2e["c++"].median)
        for stage, part in (("prepare", "prepare"), ("next launch", "launch")):
            assert shown[f"{way}, {stage}"] == (m.stages[side][part].median, m.stages["c++"][part].median)
    assert len(shown) == 6


def test_one_prepared_call_takes_the_place_of_ten(bench, monkeypatch):
    calls, update = [], cudart.cudaGraphExecUpdate
    monkeypatch.setattr(python_side.cudart, "cudaGraphExecUpdate", lambda *given: calls.append(given) or update(*given))
    monkeypatch.setattr(python_side.cudart, "cudaGraphExecKernelNodeSetParams", lambda *given: pytest.fail("a node was set by itself"))
    one_round = python_side.in_one_call(bench.stream, compare.TEN, bench.y, bench.x)
    for batch in (3, 8, 1):
        bench.check("python", one_round, batch)
    assert len(calls) == 3 and len({int(executable) for executable, _ in calls}) == 1 and len({int(copy) for _, copy in calls}) == 3


def test_the_figures_are_recorded_as_measure_does(bench, tmp_path, monkeypatch):
    from labkit.measurement import as_entry, recorded
    m = bench.batches(10)
    recordings.save(tmp_path, "measurements", m.experiment, m.params, "0" * 16, m.provenance, **as_entry(m.cpu, m.e2e, m.stages))
    monkeypatch.setattr(recordings, "DATA", tmp_path)
    again = recorded("c++ dynamic batch", kernels=10)
    assert again.e2e == m.e2e and again.stages == m.stages and (tmp_path / "measurements" / "c-dynamic-batch.json").exists()


def test_the_clocks_own_time_is_told(bench):
    assert "it is part of each figure" in bench.clocks()


@pytest.mark.parametrize("way", [python_side.in_one_call, python_side.node_by_node])
def test_a_round_that_does_another_work_is_refused(bench, way):
    with pytest.raises(LabError, match="wrong values for a batch of 5"):
        bench.check("python", way(bench.stream, 9, bench.y, bench.x), 5)


def test_a_strategy_that_does_not_do_the_work_is_refused(bench):
    bench.twins.wrong = 7
    with pytest.raises(LabError, match="'fixed replay' did not do the work for a batch of 1"):
        bench.batches(10)


def test_batches_change_every_time_and_take_all_sizes():
    batches = turns.at_random(64)
    assert set(batches) == set(range(1, 9)) and all(a != b for a, b in zip(batches, [*batches[1:], batches[0]]))


def test_both_sides_get_the_same_batches_and_take_turns_in_going_first():
    seen = []
    sides = {name: lambda batch, name=name: seen.append((name, batch)) or twins.Times(-1, 1, 2) for name in ("a", "b")}
    spent = turns.in_turns(sides, 4, [1, 2, 3, 4])
    assert seen[-8:] == [("b", 1), ("a", 1), ("a", 2), ("b", 2), ("b", 3), ("a", 3), ("a", 4), ("b", 4)]
    assert len(spent["a"]) == len(spent["b"]) == 4


@pytest.mark.parametrize("python, limit, status", [(1.1, 1.1, 0), (1.2, 1.1, 1), (9.0, None, 0), (float("nan"), 1.1, 1)])
def test_a_limit_that_is_missed_fails(monkeypatch, capsys, python, limit, status):
    row = table.Row("a launch", python, 1.0, limit)
    monkeypatch.setattr(compare, "rows", lambda found: [row])
    both = turns.measured("c++ launch", {"nodes": 1}, {"python": [twins.Times(-1, 1, 2)], "c++": [twins.Times(-1, 1, 2)]}, HERE)
    assert compare.report([both]) == status
    assert ("MISSED" in capsys.readouterr().out) == bool(status)


# ---- on a GPU ----------------------------------------------------------------------------------

@pytest.mark.skipif(backend.name != "gpu", reason="there is no GPU on this machine")
@has_nvcc
def test_python_keeps_up_with_cpp_on_this_gpu():
    done = subprocess.run([sys.executable, str(BASELINE / "compare.py")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert done.stdout.count("kept") == 6


# ---- what was recorded -------------------------------------------------------------------------

def entries(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["entries"]


def by(name, parameter):
    return {entry["params"][parameter]: entry for entry in entries(name)}


def test_a_recorded_launch_from_python_costs_at_most_a_tenth_more_until_the_gpu_is_done():
    found = by("c-launch", "nodes")
    assert sorted(found) == [1, 10, 100, 1000]
    for nodes, entry in found.items():
        assert sorted(entry["cpu"]) == sorted(entry["e2e"]) == ["c++", "python"]
        assert entry["e2e"]["python"]["median"] <= table.LAUNCH * entry["e2e"]["c++"]["median"], nodes


def test_ten_updates_are_recorded_with_all_their_ways_and_parts():
    found = by("c-ten-updates", "values")
    assert sorted(found) == ["changing", "same"]
    for entry in found.values():
        assert sorted(entry["cpu"]) == sorted(entry["e2e"]) == sorted(entry["stages"]) == sorted(SIDES)
        assert all([stage["stage"] for stage in stages] == ["prepare", "launch"] for stages in entry["stages"].values())


def test_ten_recorded_updates_from_python_in_one_call_cost_at_most_a_fifth_more():
    found = by("c-ten-updates", "values")
    prepare = {side: next(stage["median"] for stage in stages if stage["stage"] == "prepare") for side, stages in found["changing"]["stages"].items()}
    assert prepare["python"] <= table.UPDATE * prepare["c++"]
    assert found["changing"]["e2e"]["python"]["median"] <= table.UPDATE * found["changing"]["e2e"]["c++"]["median"]


def test_values_that_change_cost_more_than_the_same_again():
    found = by("c-ten-updates", "values")
    for side in ("python, node by node", "c++"):
        assert found["changing"]["e2e"][side]["median"] > 1.1 * found["same"]["e2e"][side]["median"]


def test_the_best_recorded_strategy_is_within_a_tenth_of_a_fixed_replay():
    found = by("c-dynamic-batch", "kernels")
    assert sorted(found) == [10, 100]
    for entry in found.values():
        time = {name: stat["median"] for name, stat in entry["e2e"].items()}
        assert sorted(time) == sorted(["fixed replay", *EIGHT])
        assert min(time[name] for name in EIGHT) <= 1.1 * time["fixed replay"]


def test_node_updates_are_the_slowest_strategy_that_needs_no_new_capture():
    for entry in entries("c-dynamic-batch"):
        time = {name: entry["e2e"][name]["median"] for name in NO_RECAPTURE}
        assert max(time, key=time.get) == "node updates"


def test_re_instantiating_takes_milliseconds_only_with_a_thousand_nodes():
    found = by("c-changing-a-graph", "nodes")
    assert sorted(found) == [10, 100, 1000] and all(sorted(entry["e2e"]) == sorted(STEPS) for entry in found.values())
    assert found[10]["e2e"]["instantiate"]["median"] < 500 < found[1000]["e2e"]["re-instantiate"]["median"]
