"""draw.memory and draw.addresses: readable, described, of known origin, and showing what CUDA said."""
import importlib

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.patches import FancyArrowPatch, Polygon, StepPatch  # noqa: E402

from labkit import allocations, cudart, draw, graph, memory_log, ok  # noqa: E402
from labkit.errors import LabError  # noqa: E402
from tests.labkit.seeing import look, readable, texts  # noqa: E402

ml, chart = importlib.import_module("labkit.memory_log"), importlib.import_module("labkit.memory_chart")
MIB = 2 ** 20


# ---- memory --------------------------------------------------------------------------------------

@pytest.fixture
def logged(monkeypatch):
    """A log with these made-up rows: (label, {name: (used, reserved[, threshold])}) in MiB; "graph" may be left out."""
    def make(*rows):
        now, high = {}, {}

        def put(row):
            for name, (used, reserved, *threshold) in {"graph": (0, 0), **row}.items():
                marks = high[name] = [max(a, b) for a, b in zip(high.get(name, (0, 0)), (used, reserved))]
                now[name] = ml.Counters(*(int(each * MIB) for each in (used, marks[0], reserved, marks[1])), *(int(each * MIB) for each in threshold))
        monkeypatch.setattr(ml, "_graph_memory", lambda device: now["graph"])
        monkeypatch.setattr(ml, "_pool", lambda name, pool: now[name])
        pool = ok(cudart.cudaDeviceGetDefaultMemPool(0))
        put(rows[0][1])
        log = memory_log(**{name: pool for name in rows[0][1] if name != "graph"})
        for label, row in rows:
            put(row)
            log(label)
        return log
    return make


LIFE = [(label, {"graph": (level, level)}) for label, level in
        [("start", 0), ("captured", 0), ("instantiated", 0), ("launched", 32), ("freed", 32), ("executable\ndestroyed", 32), ("graph destroyed", 32), ("trimmed", 0)]]
POOLS = [("new", {"returns": (0, 0, 0), "keeps": (0, 0, 2 ** 43)}), ("lent", {"returns": (40, 64, 0), "keeps": (40, 64, 2 ** 43)}),
         ("freed, waited", {"returns": (0, 0, 0), "keeps": (0, 64, 2 ** 43)}), ("lent again", {"returns": (0.004, 32, 48), "keeps": (28.6, 64, 2 ** 43)})]


def steps(ax):
    """The (levels) of all step lines and areas on the axes."""
    return [tuple(patch.get_data().values) for patch in ax.patches if isinstance(patch, StepPatch)]


def test_memory_plots_the_very_counters_and_keeps_them(logged, drawn):
    log = logged(*POOLS)
    figure = look(draw.memory(log))
    assert [s["name"] for s in figure.source["series"]] == ["graph", "returns", "keeps"] and len(drawn[0].axes) == 3
    for series, ax in zip(figure.source["series"], drawn[0].axes):
        for what in ("used", "reserved", "reserved_high"):
            assert series[what] == [getattr(sample[series["name"]], what) for sample in log.samples]
        assert tuple(np.array(series["used"]) / MIB) in steps(ax) and steps(ax).count(tuple(np.array(series["reserved"]) / MIB)) >= 2
    assert figure.source["provenance"] == [log.provenance] and figure.source["unit"] == "bytes"
    assert len({ax.get_ylim() for ax in drawn[0].axes}) == 1
    readable(drawn[0])


def test_the_title_says_when_it_rose_and_when_it_came_back(logged, drawn):
    figure = draw.memory(logged(*LIFE))
    assert figure.alt.startswith("Graph memory: 32 MiB from “launched” to “graph destroyed”, 0 only at “trimmed”. ")
    assert "executable destroyed 32 MiB" in figure.alt
    assert [text for text, _ in texts(drawn[0])].count("no change") == 3, "freed, executable destroyed, graph destroyed"
    readable(drawn[0])


@pytest.mark.parametrize("rows, key", [
    ([(0, 0), (32, 32)], ["used"]), ([(32, 32), (0, 0)], ["used", "most reserved so far (high-water mark)"]),
    ([(20, 32)], ["used", "reserved"]), ([(20, 32), (0, 0)], ["used", "reserved", "most reserved so far (high-water mark)"])])
def test_the_legend_names_what_is_to_be_seen(logged, drawn, rows, key):
    draw.memory(logged(*[(str(k), {"graph": row}) for k, row in enumerate(rows)]))
    known = ["used", "reserved", "most reserved so far (high-water mark)"]
    assert [text for text, _ in texts(drawn[0]) if text in known] == key
    assert any(text.startswith("high-water mark") for text, _ in texts(drawn[0])) == (known[2] in key)


def test_more_used_than_reserved_is_said_and_stays_in_the_axes(logged, drawn):
    figure = draw.memory(logged(*[(label, {"odd": (used, 0, 0)}) for label, used in zip("abc", (10, 20, 30))]))
    assert figure.alt.startswith("More used than reserved in “odd”: 30 MiB and 0 at “c”. ")
    assert "30 MiB, reserved 0" in [text for text, _ in texts(drawn[0])] and drawn[0].axes[1].get_ylim()[1] > 30
    readable(drawn[0])


def test_one_unit_stands_in_values_corner_and_axis(logged, drawn):
    draw.memory(logged(("a", {"pool": (1400, 1408, 0)}), ("b", {"pool": (0, 0, 0)})), of="pool")
    written = [text for text, _ in texts(drawn[0])]
    assert "1,400 of 1,408 MiB" in written and any("high-water mark 1,408 MiB" in text for text in written) and not any("GiB" in text for text in written)
    assert "1,024" in [label.get_text() for label in drawn[0].axes[0].get_yticklabels()]


@pytest.mark.parametrize("levels, words", [
    ([0, 0], "Graph memory stays at 0. "), ([64, 64], "Graph memory stays at 64 MiB. "), ([0, 32, 64], "nothing before “b”, then up to 64 MiB. "),
    ([32, 96, 64], "Graph memory: 32 MiB at “a”, 96 MiB at “b”, 64 MiB at “c”"), ([96, 32], "Graph memory: 96 MiB at “a”, 32 MiB at “b”"),
    ([0, 32, 0, 64, 96, 0], "Graph memory 0 → 32 → 0 → 64 → 96 → 0 MiB"), ([0, 32] * 4, "Graph memory up to 32 MiB"),
    ([0, 32, 0], "Graph memory: nothing before “b”, then 32 MiB, 0 again at “c”"), ([64, 64, 32], "Graph memory: 64 MiB from “a” to “b”, 32 MiB only at “c”")])
def test_each_course_has_its_words(logged, levels, words):
    assert words in draw.memory(logged(*[(label, {"graph": (level, level)}) for label, level in zip("abcdefgh", levels)])).alt


def test_several_panels_are_told_by_their_levels(logged, drawn):
    alt = draw.memory(logged(*POOLS)).alt
    assert alt.startswith("Reserved: graph memory stays at 0; returns 0 → 64 → 0 → 32 MiB; keeps 0 → 64 MiB. ")
    written = texts(drawn[0])
    assert any("release threshold 0, then 48 MiB" in text for text, _ in written) and any("release threshold no limit" in text for text, _ in written)


def test_a_value_stands_at_each_change(logged, drawn):
    draw.memory(logged(*POOLS), of=["returns"])
    written = [text for text, _ in texts(drawn[0])]
    assert written.count("0") == 2 and "40 of 64 MiB" in written and "4.1 KiB of 32 MiB" in written


def test_little_that_is_used_is_a_line_that_can_be_seen(logged, drawn):
    draw.memory(logged(("a", {"pool": (0.004, 32, 0)})), of="pool")
    assert any(patch.get_linewidth() >= 2 and not patch.get_fill() and patch.get_data().values[0] > 0 for patch in drawn[0].axes[0].patches)


def test_panels_are_chosen_by_name(logged):
    log = logged(*POOLS)
    assert [s["name"] for s in draw.memory(log, of=["keeps", "graph"]).source["series"]] == ["keeps", "graph"]
    for of in (["keep"], "pool", [], 5, {}):
        with pytest.raises(LabError, match="this log has: graph, returns, keeps"):
            draw.memory(log, of=of)


def test_a_log_may_grow_after_it_was_drawn(logged):
    log = logged(*LIFE[:4])
    figure = draw.memory(log)
    before = figure.source["series"][0]["used"][:]
    log("more")
    assert figure.source["series"][0]["used"] == before and len(draw.memory(log).source["series"][0]["used"]) == len(before) + 1


@pytest.mark.parametrize("count", [1, 2, 9, 14, 40, 150])
def test_any_number_of_samples_can_be_read(logged, drawn, count):
    rows = [(f"launch {k} of the three graphs", {"graph": (32 * (k % 5), 32 * (k % 5 + k % 3)), "a pool with a name that goes on and on, and further still": (0.004 * k, 32, 0)})
            for k in range(count)]
    figure = look(draw.memory(logged(*rows)))
    readable(drawn[0])
    assert len(figure.source["series"][0]["x"]) == count
    if count == 14:
        assert any("14: launch 13 of the three graphs" in text for text, _ in texts(drawn[0]))


def test_a_high_water_mark_of_earlier_work_does_not_flatten_the_picture(monkeypatch, drawn):
    monkeypatch.setattr(ml, "_graph_memory", lambda device: ml.Counters(32 * MIB, 2 ** 36, 32 * MIB, 2 ** 36))
    log = memory_log()
    log("one")
    draw.memory(log)
    assert drawn[0].axes[0].get_ylim()[1] < 64 and any("high-water mark 65,536 MiB" in text for text, _ in texts(drawn[0]))


@pytest.mark.parametrize("thing", [None, 5, [32, 64], {"used": 5}, "text"])
def test_what_no_memory_log_counted_is_refused(thing):
    with pytest.raises(LabError, match="not shown"):
        draw.memory(thing)


def test_a_log_without_a_sample_is_refused():
    with pytest.raises(LabError, match="without a sample"):
        draw.memory(memory_log())


# ---- the allocations of a graph ------------------------------------------------------------------

def chain(*steps):
    """A Plan of a chain: ("alloc", name, address, bytes), ("free", name) or ("work",)."""
    at = {step[1]: step[2] for step in steps if step[0] == "alloc"}
    taken = {i: step[2:] for i, step in enumerate(steps) if step[0] == "alloc"}
    frees = {i: at.get(step[1], 7) for i, step in enumerate(steps) if step[0] == "free"}
    return allocations.plan(len(steps), [(i, i + 1) for i in range(len(steps) - 1)], taken, frees)


def test_a_free_belongs_to_the_last_allocation_of_its_address_before_it():
    found = chain(("alloc", "a", 512, 64), ("free", "a"), ("alloc", "b", 512, 64), ("work",), ("free", "b"), ("alloc", "c", 1024, 4096))
    assert [(b.offset, b.begin, b.end) for b in found.blocks] == [(0, 0, 1), (0, 2, 4), (512, 5, None)]
    assert (found.addresses, found.kept, found.foreign, found.again) == (2, 1, 0, True)
    assert found.blocks[1].after == (found.blocks[0],) and found.blocks[0].after == ()


def test_a_free_in_a_branch_of_its_own_is_found_and_one_of_another_graph_counted():
    beside = allocations.plan(3, [], {0: (512, 64)}, {1: 512, 2: 9999})
    assert [(b.begin, b.end) for b in beside.blocks] == [(0, 0)] and beside.foreign == 1


def test_the_place_of_a_node_is_the_longest_way_to_it_whatever_the_order_of_the_handles():
    found = allocations.plan(4, [(2, 0), (3, 2), (3, 0), (0, 1)], {0: (0, 64)}, {1: 0})
    assert [(b.begin, b.end) for b in found.blocks] == [(2, 3)] and found.places == 4


# ---- addresses -----------------------------------------------------------------------------------

@pytest.fixture
def captured():
    """captured(work): the graph of work(stream, other, follow)."""
    made, streams = [], [ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)) for _ in range(2)]
    event = ok(cudart.cudaEventCreate())

    def follow(later, earlier):
        ok(cudart.cudaEventRecord(event, earlier))
        ok(cudart.cudaStreamWaitEvent(later, event, 0))

    def capture(work):
        ok(cudart.cudaStreamBeginCapture(streams[0], cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
        work(*streams, follow)
        made.append(ok(cudart.cudaStreamEndCapture(streams[0])))
        return made[-1]
    yield capture
    for each in made:
        ok(cudart.cudaGraphDestroy(each))
    for stream in streams:
        ok(cudart.cudaStreamDestroy(stream))
    ok(cudart.cudaEventDestroy(event))


def take(stream, size=20 * MIB):
    return ok(cudart.cudaMallocAsync(size, stream))


def free(block, stream):
    ok(cudart.cudaFreeAsync(block, stream))


def in_turn(stream, other, follow, times=3):
    for _ in range(times):
        free(take(stream), stream)


def branches(stream, other, follow, wait=False):
    follow(other, stream)
    free(take(stream), stream)
    if wait:
        follow(other, stream)
    free(take(other), other)
    follow(stream, other)


def two_in_turn(stream, other, follow):
    in_turn(stream, other, follow, 2)


def side_by_side(stream, other, follow):
    a = take(stream)
    follow(other, stream)
    b = take(other)
    free(b, other)
    free(a, stream)
    follow(stream, other)


def kept(stream, other, follow):
    take(stream)
    free(take(stream, 4096), stream)


def bars(ax):
    return [patch.get_path().vertices for patch in ax.patches if isinstance(patch, Polygon)]


def arrows(ax):
    return sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches)


def test_allocations_in_turn_have_one_address(captured, drawn):
    figure = look(draw.addresses(captured(in_turn)))
    assert figure.alt.startswith("3 allocations of 20 MiB, 1 address. ")
    assert [(s["offset"], s["bytes"], s["begin"], s["end"]) for s in figure.source["series"]] == [(0, 20 * MIB, 2 * k, 2 * k + 1) for k in range(3)]
    ax = drawn[0].axes[0]
    assert len(bars(ax)) == 3 and len({bar[:, 1].min() for bar in bars(ax)}) == 1 and arrows(ax) == 2
    readable(drawn[0])


def test_graphs_beside_each_other_share_their_axis(captured, drawn):
    figure = look(draw.addresses({"in turn": captured(two_in_turn), "side by side": captured(side_by_side)}))
    assert figure.alt.startswith("One address in 1 of 2 graphs: “in turn”. ")
    one, two = drawn[0].axes
    assert one.get_ylim() == two.get_ylim() and list(one.get_yticks()) == list(two.get_yticks())
    assert len({bar[:, 1].min() for bar in bars(one)}) == 1 and len({bar[:, 1].min() for bar in bars(two)}) == 2
    assert [s["offset"] for s in figure.source["series"] if s["name"] == "side by side"] == [0, 20 * MIB]
    readable(drawn[0])


def test_a_few_blocks_are_lettered_and_the_place_is_explained(captured, drawn):
    figure = draw.addresses(captured(two_in_turn))
    written = [text for text, _ in texts(drawn[0])]
    assert {"a: 20 MiB", "b: 20 MiB"} <= set(written) and "b: 20 MiB at +0" in figure.alt and any("longest chain of nodes up to it" in text for text in written)
    draw.addresses(captured(lambda *streams: in_turn(*streams, times=9)))
    assert not any(text.startswith("a") for text, _ in texts(drawn[1]))


def test_each_freed_block_points_to_the_one_that_takes_its_place(captured, drawn):
    def three_then_all(stream, other, follow):
        blocks = [take(stream) for _ in range(3)]
        for block in blocks:
            ok(cudart.cudaMemsetAsync(block, 0, 4096, stream))
        for block in blocks:
            free(block, stream)
        whole = take(stream, 60 * MIB)
        ok(cudart.cudaMemsetAsync(whole, 0, 4096, stream))
        free(whole, stream)
    draw.addresses({"one": captured(three_then_all), "two": captured(two_in_turn), "three": captured(two_in_turn)})
    assert [arrows(ax) for ax in drawn[0].axes] == [3, 1, 1] and any("60 MiB" in text for text, _ in texts(drawn[0]))
    readable(drawn[0])


def test_branches_share_no_address_unless_one_waits_for_the_free(captured):
    apart, waits = (allocations.read(captured(lambda *streams, wait=wait: branches(*streams, wait=wait))) for wait in (False, True))
    assert sorted(block.offset for block in apart.blocks) == [0, 20 * MIB] and not apart.again
    assert [block.offset for block in waits.blocks] == [0, 0] and waits.again


def test_what_is_not_freed_is_open_and_says_so(captured, drawn):
    figure = draw.addresses(captured(kept))
    assert "2 allocations, 20 MiB in all, 2 addresses, 1 not freed" in figure.alt and "20 MiB at +0, from place 1 on, not freed" in figure.alt
    assert any("not freed" in text and "20 MiB" in text for text, _ in texts(drawn[0])[2:])
    ends = sorted(bar[:, 0].max() for bar in bars(drawn[0].axes[0]))
    assert ends[1] == drawn[0].axes[0].get_xlim()[1] > ends[0]
    assert any("not to scale" in text for text, _ in texts(drawn[0])), "4 KiB beside 20 MiB are drawn larger than they are"
    readable(drawn[0])


def test_a_graph_that_allocates_nothing_and_one_that_frees_for_another_say_so(captured, drawn):
    left = []
    first = captured(lambda stream, *_: left.append(take(stream)))
    second = captured(lambda stream, *_: free(left[0], stream))
    third = captured(lambda stream, *_: None)
    figure = draw.addresses({"takes": first, "frees": second, "neither": third})
    assert figure.alt.startswith("1 allocation in 3 graphs, 1 not freed. ") and "frees: frees 1 of another graph" in figure.alt
    assert "No node allocates memory" in draw.addresses(third).alt
    for sheet in drawn:
        readable(sheet)


def test_a_picture_without_allocations_is_not_blank(captured):
    look(draw.addresses(captured(lambda *_: None)))


@pytest.mark.parametrize("count", [1, 7, 25, 40])
def test_many_allocations_of_many_sizes_can_be_read(monkeypatch, drawn, count):
    at = [sum(512 * (1 + j % 7) ** 5 for j in range(k)) for k in range(count)]
    steps = [("alloc", k, at[k], 512 * (1 + k % 7) ** 5) for k in range(count)] + [("free", k) for k in range(0, count, 2)] + [("alloc", "z", 0, 512)]
    monkeypatch.setattr(importlib.import_module("labkit.addresses"), "read", lambda graph: chain(*steps[:-1]) if graph == 1 else chain(("work",)))
    look(draw.addresses(1))
    draw.addresses({"a name that goes on and on, and further still": 1, "another": 2, "a third": 1, "the last of them": 1})
    for sheet in drawn:
        readable(sheet)


def test_more_than_can_be_told_apart_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.import_module("labkit.addresses"), "read", lambda graph: chain(*[("alloc", k, 512 * k, 64) for k in range(41)]))
    with pytest.raises(LabError, match="41 allocations"):
        draw.addresses(1)


@pytest.mark.parametrize("what", [None, [], "graph", b"graph", 1.5, True, cudart.cudaGraphExec_t(64), cudart.cudaStream_t(64), {"exec": cudart.cudaGraphExec_t(64)}])
def test_what_is_no_graph_is_refused(what):
    with pytest.raises(LabError, match="draw.addresses"):
        draw.addresses(what)


def test_a_list_of_graphs_is_told_of_the_dict(captured):
    with pytest.raises(LabError, match=r'a dict: draw.addresses\(\{"in turn": graph'):
        draw.addresses([captured(in_turn)])


@pytest.mark.parametrize("what", [{}, {5: 64}, {str(k): 64 for k in range(5)}])
def test_what_are_no_named_graphs_is_refused(what):
    with pytest.raises(LabError, match="a name for each"):
        draw.addresses(what)


def test_the_graph_of_an_open_capture_can_be_drawn(captured):
    seen = []

    def work(stream, other, follow):
        in_turn(stream, other, follow)
        seen.append(draw.addresses(graph.capture_state(stream).graph).alt)
    captured(work)
    assert seen[0].startswith("3 allocations of 20 MiB, 1 address")
