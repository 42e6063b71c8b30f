"""What the lessons say about the recorded figures holds for them: ratios within one run, never absolute times."""
import json
from pathlib import Path
from statistics import median

DATA = Path(__file__).resolve().parents[2] / "labkit" / "data"


def entries(kind, name):
    return json.loads((DATA / kind / f"{name}.json").read_text(encoding="utf-8"))["entries"]


def ratios(name, parameter, what="e2e"):
    """{parameter: stream / graph} of an experiment."""
    return {entry["params"][parameter]: entry[what]["stream"]["median"] / entry[what]["graph"]["median"]
            for entry in entries("measurements", name)}


def gap(starts):
    return median(b - a for a, b in zip(sorted(starts), sorted(starts)[1:]))


def test_a_thousand_launches_cost_more_than_one_graph():
    whole, asking = ratios("launch-cost", "n"), ratios("launch-cost", "n", "cpu")
    assert sorted(whole) == [1, 3, 10, 30, 100, 300, 1000]
    assert all(ratio > 1 for ratio in whole.values()) and whole[1000] > 2 and asking[1000] > 20


def test_the_graph_closes_the_gaps_and_makes_no_kernel_faster():
    entry, = entries("timelines", "gaps")
    length = {name: median(b - a for a, b in zip(entry["starts"][name], entry["ends"][name])) for name in ("stream", "graph")}
    assert gap(entry["starts"]["stream"]) > 3 * gap(entry["starts"]["graph"])
    assert 0.5 < length["stream"] / length["graph"] < 2


def test_short_kernels_gain_and_long_ones_do_not():
    by_size = ratios("kernel-size", "size")
    assert len(by_size) == 8 and by_size[4 ** 5] > 2 and 0.9 < by_size[4 ** 12] < 1.1


def test_each_figure_says_where_and_when():
    found = [entry for kind in ("measurements", "timelines") for path in (DATA / kind).glob("*.json") for entry in entries(kind, path.stem)]
    assert len(found) >= 16
    for entry in found:
        assert all(entry["provenance"][part] for part in ("gpu", "driver", "cuda", "date")) and entry["provenance"]["how"] in ("recorded", "measured")
