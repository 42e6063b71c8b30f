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
