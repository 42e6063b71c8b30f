"""The numbers a picture plots against the numbers that were recorded."""

import json

import pytest

import pictures

STAT = {"median": 4.0, "low": 3.0, "high": 6.0, "count": 30}
FAST = {"median": 2.0, "low": 1.0, "high": 3.0, "count": 30}


@pytest.fixture
def data(tmp_path):
    entry = {"params": {"n": 10}, "cpu": {}, "e2e": {"stream": STAT, "graph": FAST}}
    line = {"params": {}, "starts": {"stream": [0, 5]}, "ends": {"stream": [2, 7]}}
    for kind, found in (("measurements", entry), ("timelines", line)):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "cost.json").write_text(json.dumps({"experiment": "cost", "entries": [found]}))
    return tmp_path


def chart(name, y, low, high, figure="cost"):
    return {"figure": figure, "experiment": "cost", "x": "n", "series": [
        {"name": name, "what": "e2e", "x": [10], "y": [y], "low": [low], "high": [high]}]}


def test_recorded_medians_and_quartiles_are_backed(data):
    assert list(pictures.unbacked(chart("stream", 4.0, 3.0, 6.0), data)) == []


@pytest.mark.parametrize("numbers", [(4.1, 3.0, 6.0), (4.0, 2.0, 6.0), (4.0, 3.0, 7.0)])
def test_a_number_moved_by_hand_is_found(data, numbers):
    assert len(list(pictures.unbacked(chart("stream", *numbers), data))) == 1


def test_a_speedup_is_the_ratio_of_two_recorded_medians(data):
    good = chart("stream/graph", 2.0, 1.0, 6.0, "speedup")
    assert list(pictures.unbacked(good, data)) == []
    bad = chart("stream/graph", 3.0, 1.0, 6.0, "speedup")
    assert len(list(pictures.unbacked(bad, data))) == 1


def test_a_size_or_a_variant_that_was_not_recorded_is_found(data):
    other = chart("stream", 4.0, 3.0, 6.0)
    other["series"][0]["x"] = [11]
    assert len(list(pictures.unbacked(other, data))) == 1
    assert len(list(pictures.unbacked(chart("rocket", 4.0, 3.0, 6.0), data))) == 1


def test_a_timeline_is_held_to_every_stamp(data):
    source = {"figure": "timeline", "experiment": "cost", "series": [{"name": "stream", "starts": [0, 5], "ends": [2, 7]}]}
    assert list(pictures.unbacked(source, data)) == []
    source["series"][0]["ends"] = [2, 8]
    assert len(list(pictures.unbacked(source, data))) == 1


def test_a_chart_without_a_series_is_found(data):
    assert len(list(pictures.unbacked({"figure": "cost", "experiment": "cost", "series": []}, data))) == 1


# ---- figures that name their own measurement -------------------------------------------------------

@pytest.fixture
def kept(tmp_path):
    """A measurement with stages, and a footprint."""
    stages = [{"stage": "prepare", **FAST}, {"stage": "launch", **STAT}]
    entry = {"params": {"n": 10}, "cpu": {"node": FAST}, "e2e": {"node": STAT}, "stages": {"node": stages}}
    for kind, found in (("measurements", entry), ("footprints", {"params": {"n": 10}, "device": {"node": 512.0}, "host": {"node": None}})):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "batch.json").write_text(json.dumps({"experiment": "batch", "entries": [found]}))
    return tmp_path


def single(what="prepare", y=2.0, low=1.0, high=3.0, name="node", n=10, experiment="batch"):
    figure = {"name": name, "what": what, "experiment": experiment, "params": {"n": n}, "y": y, "low": low, "high": high}
    return {"figure": "strategies", "series": [figure]}


@pytest.mark.parametrize("changed", [dict(y=2.1), dict(low=0.5), dict(high=4.0), dict(name="rocket"), dict(n=11), dict(experiment="other"),
                                     dict(what="launch"), dict(what="sleep"), dict(what="e2e")])
def test_a_figure_that_names_its_measurement_is_held_to_it(kept, changed):
    for good in (single(), single("cpu"), single("e2e", 4.0, 3.0, 6.0), single("launch", 4.0, 3.0, 6.0)):
        assert list(pictures.unbacked(good, kept)) == []
    assert len(list(pictures.unbacked(single(**changed), kept))) == 1


def test_a_stage_against_a_parameter_is_held_to_the_recording(kept):
    line = {"figure": "stages", "experiment": "batch", "x": "n", "series": [
        {"name": "node", "what": "prepare", "x": [10], "y": [2.0], "low": [1.0], "high": [3.0]}]}
    assert list(pictures.unbacked(line, kept)) == []
    line["series"][0]["y"] = [2.5]
    assert len(list(pictures.unbacked(line, kept))) == 1


def test_memory_is_held_to_the_footprint(kept):
    source = {**single(), "memory": [{"name": "node", "bytes": 512.0, "experiment": "batch", "params": {"n": 10}}]}
    assert list(pictures.unbacked(source, kept)) == []
    for changed in ({"bytes": 513.0}, {"name": "rocket"}, {"params": {"n": 11}}, {"experiment": "other"}):
        wrong = {**source, "memory": [{**source["memory"][0], **changed}]}
        assert len(list(pictures.unbacked(wrong, kept))) == 1


@pytest.mark.parametrize("provenance, found", [
    (["X · recorded"], 1), (["X · recorded", "read from labkit's capture simulator"], 1), (["X · recorded", "X · measured"], 0), (["X · measured"], 0)])
def test_what_was_measured_in_this_run_is_not_looked_up(provenance, found):
    source = {**single(experiment="never recorded"), "provenance": provenance}
    assert len(list(pictures.origin(source, True))) == found
