"""What differs between two graphs: told in words, paired as an update pairs, and set off in one picture of both."""
import itertools

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from labkit import Kernel, cudart, draw, exec_update, graph, kernels, launch, ok, to_device  # noqa: E402
from labkit.changes import Read, summary  # noqa: E402
from labkit.errors import LabError  # noqa: E402
from labkit.layout import Layout  # noqa: E402
from labkit.pairing import pairs, together  # noqa: E402
from labkit.readback import names  # noqa: E402
from tests.labkit.seeing import look, readable  # noqa: E402

MODE = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


@pytest.fixture
def stream():
    made = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    yield made
    ok(cudart.cudaStreamDestroy(made))


@pytest.fixture
def x():
    return to_device(np.ones(4096, dtype=np.float32))


@pytest.fixture
def y():
    return to_device(np.ones(4096, dtype=np.float32))


def captured(stream, *steps):
    ok(cudart.cudaStreamBeginCapture(stream, MODE))
    for step in steps:
        ok(step(stream))
    return ok(cudart.cudaStreamEndCapture(stream))


def axpy(y, x, a=2.0, n=1024, grid=4, block=256, shared=0):
    return lambda stream: launch(stream, kernels.axpy, grid, block, y, x, a, n, shared=shared)


def scale(y, a=2.0, n=1024, grid=4):
    return lambda stream: launch(stream, kernels.scale, grid, 256, y, a, n)


def memset(y, value=0, count=4096):
    return lambda stream: cudart.cudaMemsetAsync(y.ptr, value, count, stream)


def told(old, new):
    return [repr(d) for d in draw.differences(old, new)]


# ---- in words ----------------------------------------------------------------------------------

def test_graphs_of_the_same_steps_do_not_differ(stream, x, y):
    old, new = (captured(stream, memset(y), axpy(y, x)) for _ in range(2))
    assert told(old, new) == [] and repr(draw.differences(old, new)) == "no difference that can be read back"
    assert look(draw.difference(old, new)).alt.endswith("No difference that can be read back. ".strip())


@pytest.mark.parametrize("changed, words", [
    (dict(grid=8), "grid 4 -> 8"), (dict(grid=(4, 2)), "grid 4 -> 4 x 2"), (dict(block=128), "block 256 -> 128"), (dict(shared=1024), "shared 0 -> 1,024"),
    (dict(a=0.1), "a 2 -> 0.1"), (dict(n=2048), "n 1024 -> 2048"), (dict(grid=8, n=2048), "grid 4 -> 8, n 1024 -> 2048")])
def test_a_changed_launch_is_told_by_the_names_of_the_parameters(stream, x, y, changed, words):
    assert told(captured(stream, memset(y), axpy(y, x)), captured(stream, memset(y), axpy(y, x, **changed))) == [f"node 1 (Kernel): {words}"]


def test_a_changed_pointer_is_told_without_its_address(stream, x, y):
    assert told(captured(stream, axpy(y, x)), captured(stream, axpy(x, x))) == ["node 0 (Kernel): y: another address"]
    assert told(captured(stream, memset(y)), captured(stream, memset(x))) == ["node 0 (Memset): dst: another address"]


def test_another_kernel_is_named_and_its_arguments_are_not_compared(stream, x, y):
    assert told(captured(stream, axpy(y, x)), captured(stream, scale(x, 3.0, grid=8))) == ["node 0 (Kernel): scale instead of axpy, grid 4 -> 8"]
    fill = captured(stream, lambda s: launch(s, kernels.fill, 4, 256, y, 3.0, 1024))      # it has the same arguments
    assert told(captured(stream, scale(y)), fill) == ["node 0 (Kernel): fill instead of scale, a 2 -> 3"]


def test_another_kernel_of_the_same_name_is_another_kernel(stream, y):
    one, other = (Kernel(f'extern "C" __global__ void twice(float* y) {{ y[0] {sign}= 2; }}', "twice", ["float*"]) for sign in "*+")
    assert told(*(captured(stream, lambda s, k=k: launch(s, k, 1, 1, y)) for k in (one, other))) == ["node 0 (Kernel): another twice"]


def test_a_changed_memset_is_told(stream, y):
    assert told(captured(stream, memset(y, 0)), captured(stream, memset(y, 1, 2048))) == ["node 0 (Memset): value 0 -> 1, width 4096 -> 2048"]


def test_a_changed_allocation_and_a_changed_event_are_told(stream):
    def alloc(size):
        def steps(stream):
            address = ok(cudart.cudaMallocAsync(size, stream))
            return cudart.cudaFreeAsync(address, stream)
        return captured(stream, steps)
    assert told(alloc(4096), alloc(8192)) == ["node 0 (MemAlloc): bytes 4096 -> 8192"]
    graphs = []
    for _ in range(2):
        made = ok(cudart.cudaGraphCreate(0))
        ok(cudart.cudaGraphAddEventRecordNode(made, None, 0, ok(cudart.cudaEventCreate())))
        graphs.append(made)
    assert told(*graphs) == ["node 0 (EventRecord): another event"] and told(graphs[0], graphs[0]) == []


def test_a_node_more_and_a_node_less_are_told_with_their_edges(stream, x, y):
    short, long = captured(stream, axpy(y, x), scale(y)), captured(stream, axpy(y, x), memset(y), scale(y))
    assert told(short, long) == ["node 1 (Memset): added", "edge 0 -> 1: removed", "edge 0 -> 1: added", "edge 1 -> 2: added"]
    assert told(long, short) == ["node 1 (Memset): removed", "edge 0 -> 1: removed", "edge 1 -> 2: removed", "edge 0 -> 1: added"]
    assert summary(draw.differences(short, long)) == "1 node added, 2 edges added, 1 edge removed"


def test_where_one_of_many_like_kernels_went_the_others_are_still_paired(stream, x, y):
    all_, without = [axpy(y, x, a) for a in (1.0, 2.0, 3.0, 4.0)], [axpy(y, x, a) for a in (1.0, 3.0, 4.5)]
    assert told(captured(stream, *all_), captured(stream, *without))[:2] == ["node 1 (Kernel): removed", "node 3, now 2 (Kernel): a 4 -> 4.5"]


def test_another_kind_is_told_at_both_nodes(stream, x, y):
    old, new = captured(stream, memset(y), axpy(y, x)), captured(stream, axpy(y, x), memset(y))
    assert told(old, new) == ["node 0: Kernel instead of Memset", "node 1: Memset instead of Kernel"]


def test_what_differs_in_a_child_graph_is_told_with_its_place(stream, x, y):
    def parent(child):
        made = ok(cudart.cudaGraphCreate(0))
        first = ok(cudart.cudaGraphAddEmptyNode(made, None, 0))
        ok(cudart.cudaGraphAddChildGraphNode(made, [first], 1, child))
        return made
    old, new = (parent(captured(stream, *steps)) for steps in ([axpy(y, x)], [axpy(y, x, n=512), scale(y)]))
    assert told(old, new) == [f"node 1 (Graph), its {words}" for words in ("node 0 (Kernel): n 1024 -> 512", "node 1 (Kernel): added", "edge 0 -> 1: added")]
    assert "1 child graph that differs inside" in look(draw.difference(old, new)).alt


@pytest.mark.parametrize("what", [None, "text", b"text", [], {}, 1.5])
def test_what_is_no_graph_is_refused(stream, x, y, what):
    real = captured(stream, axpy(y, x))
    for call in (draw.difference, draw.differences):
        with pytest.raises(LabError, match="the old graph"):
            call(what, real)
        with pytest.raises(LabError, match="the new graph"):
            call(real, what)
    for at in (0, "NodeTypeChanged", (1, 2)):
        with pytest.raises(LabError, match="exec_update"):
            draw.difference(real, real, at=at)


def test_parameters_are_named_as_in_the_source_or_else_counted():
    assert names(kernels.axpy) == ["y", "x", "a", "n"]
    assert names(Kernel("// two of them\n#define F two\n", "two", ["float*", "int"])) == ["argument 0", "argument 1"]


# ---- pairing -----------------------------------------------------------------------------------

class Form:
    """A graph as pairing sees it."""

    def __init__(self, kinds, edges=()):
        self.kinds, self.parameters = list(kinds), [{} for _ in kinds]
        self.before = [[a for a, b in edges if b == k] for k in range(len(kinds))]


def test_nodes_of_one_form_are_paired_from_their_ends_backwards():
    chain = [(0, 1), (1, 2)]
    assert pairs(Form("abc", chain), Form("abc", chain)) == [(0, 0), (1, 1), (2, 2)]
    # made in another order, the same chain: the last node of one is the first of the other
    assert pairs(Form("abc", chain), Form("cba", [(2, 1), (1, 0)])) == [(2, 0), (1, 1), (0, 2)]


def test_graphs_of_one_size_and_another_form_are_paired_by_position():
    assert pairs(Form("aaa", [(0, 1), (1, 2)]), Form("aaa", [(0, 1), (0, 2)])) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("old, new, expected", [("abc", "abxc", [(0, 0), (1, 1), (2, 3)]), ("abc", "ac", [(0, 0), (2, 1)]), ("", "ab", []),
                                                ("aab", "b", [(2, 0)]), ("ab", "ccc", [])])
def test_graphs_of_other_sizes_are_paired_by_kind_in_their_order(old, new, expected):
    assert pairs(Form(old), Form(new)) == expected


def test_pairing_is_as_the_update_pairs(stream, x, y):
    """Where the update says which node has another kind, that is a node that this pairing calls changed."""
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))

    def fork(left, right):
        begin, end = ok(cudart.cudaEventCreate()), ok(cudart.cudaEventCreate())
        ok(cudart.cudaStreamBeginCapture(stream, MODE))
        ok(axpy(y, x)(stream))
        ok(cudart.cudaEventRecord(begin, stream))
        ok(cudart.cudaStreamWaitEvent(other, begin, 0))
        ok(left(stream))
        ok(right(other))
        ok(cudart.cudaEventRecord(end, other))
        ok(cudart.cudaStreamWaitEvent(stream, end, 0))
        ok(scale(y)(stream))
        return ok(cudart.cudaStreamEndCapture(stream))
    old, new = fork(memset(y), scale(x)), fork(memset(y), memset(x))
    executable = ok(cudart.cudaGraphInstantiate(old, 0))
    err, why = exec_update(executable, new)
    assert why.result == "NodeTypeChanged"
    assert [d.new for d in draw.differences(old, new) if d.what == "kind"] == [why.position]
    ok(cudart.cudaGraphExecDestroy(executable))


def test_all_nodes_of_both_graphs_come_in_one_order():
    assert together([(0, 0), (2, 2)], 4, 3) == [(0, 0), (1, None), (None, 1), (2, 2), (3, None)]
    assert together([], 2, 1) == [(0, None), (1, None), (None, 0)]


# ---- as a picture ------------------------------------------------------------------------------

def test_the_source_of_the_picture_holds_every_difference(stream, x, y):
    old, new = captured(stream, memset(y), axpy(y, x)), captured(stream, memset(y, 1), axpy(y, x, n=512), scale(y))
    figure = look(draw.difference(old, new))
    source = figure.source
    assert source["figure"] == "difference" and source["pairs"] == [[0, 0], [1, 1]] and source["at"] is None
    assert source["old"] == {"kinds": ["Memset", "Kernel"], "edges": [[0, 1]]} and source["new"]["kinds"] == ["Memset", "Kernel", "Kernel"]
    assert [d["text"] for d in source["differences"]] == told(old, new) and len(source["differences"]) == 4
    assert all(line in figure.alt for line in told(old, new))


def nodes(sheet, side):
    """{label: (line style, line width)} of the nodes in one of the two panels."""
    from matplotlib.patches import FancyBboxPatch
    ax = sheet.axes[side]
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch) and patch.get_facecolor()[3]]
    out = {}
    for text in ax.texts:
        inside = [box for box in boxes if box.get_window_extent().contains(*ax.transData.transform(text.get_position()))]
        if text.get_weight() == "bold" and inside:
            out[text.get_text()] = (inside[0].get_linestyle(), round(inside[0].get_linewidth(), 2))
    return out


def test_added_and_removed_nodes_are_set_off_by_more_than_colour(stream, x, y, drawn):
    short, long = captured(stream, memset(y), axpy(y, x)), captured(stream, memset(y), axpy(y, x), scale(y))
    draw.difference(short, long)
    draw.difference(long, short)
    added, removed = drawn
    assert "+ added" in [t.get_text() for t in added.axes[1].texts] and "– removed" in [t.get_text() for t in removed.axes[0].texts]
    plain, thick = nodes(added, 1)["1 axpy"], nodes(added, 1)["2 scale"]
    assert thick[1] > plain[1] and nodes(removed, 0)["2 scale"][0] != nodes(removed, 0)["1 axpy"][0]
    assert set(nodes(added, 0)) == {"0", "1 axpy"} == set(nodes(removed, 1))
    arrows = [[p.get_linestyle() for p in sheet.axes[side].patches if type(p).__name__ == "FancyArrowPatch"] for sheet, side in ((removed, 0), (removed, 1))]
    assert len(set(map(str, arrows[0]))) == 2 and len(arrows[1]) == 1


def test_changed_parameters_are_written_in_the_node(stream, x, y, drawn):
    draw.difference(captured(stream, axpy(y, x)), captured(stream, axpy(y, x, n=512, grid=2)))
    written = [t.get_text() for t in drawn[0].axes[1].texts]
    assert "grid 4 → 2" in written and "n 1024 → 512" in written
    assert not any("→" in t.get_text() for t in drawn[0].axes[0].texts)


def test_the_node_that_an_update_refused_is_marked_and_the_reason_is_the_title(stream, x, y, drawn):
    old, new = captured(stream, memset(y), axpy(y, x)), captured(stream, memset(y), memset(x))
    executable = ok(cudart.cudaGraphInstantiate(old, 0))
    err, why = exec_update(executable, new)
    figure = look(draw.difference(old, new, at=why))
    assert int(err) and f"cudaGraphExecUpdate refuses: NodeTypeChanged at node {why.position}" in figure.alt
    assert figure.source["at"] == {"result": "NodeTypeChanged", "position": why.position}
    assert drawn[0].texts[0].get_text().startswith("cudaGraphExecUpdate refuses: NodeTypeChanged at node 1")
    assert "refused here" in [t.get_text() for t in drawn[0].axes[1].texts]
    err, why = exec_update(executable, old)
    assert not int(err) and "cudaGraphExecUpdate accepts this" in draw.difference(old, old, at=why).alt
    err, why = exec_update(executable, captured(stream, memset(y)))
    assert "refuses: TopologyChanged" in draw.difference(old, captured(stream, memset(y)), at=why).alt
    ok(cudart.cudaGraphExecDestroy(executable))


def test_nodes_of_both_graphs_stand_in_the_same_place_and_do_not_overlap(stream, x, y, drawn):
    many = [axpy(y, x) for _ in range(12)]
    other = captured(stream, *many[:6], memset(y), *[axpy(y, x, a=7.5, n=123456, grid=8)] * 6)
    draw.difference(captured(stream, *many), other, labels=["a label that is far too long"] * 12)
    readable(drawn[0])
    texts = [("1 name", "Kernel", "a line", "and another", "and a third that is long"), ("2", "Memset")] * 4
    tall, flat = Layout(texts, [(k, k + 1) for k in range(7)], 9), Layout([t[:2] for t in texts], [(k, k + 1) for k in range(7)], 9, texts)
    assert [round(px, 6) for px, _ in tall.at] == [round(px, 6) for px, _ in flat.at] and tall.height > flat.height
    for a, b in itertools.combinations(range(8), 2):
        assert abs(tall.at[a][0] - tall.at[b][0]) >= tall.width - 0.01 or abs(tall.at[a][1] - tall.at[b][1]) >= tall.height - 0.01


def test_of_large_graphs_the_nodes_that_differ_are_shown(stream, x, y, drawn):
    many = [axpy(y, x) for _ in range(200)]
    old, new = captured(stream, *many), captured(stream, *many[:150], axpy(y, x, n=5), *many[151:])
    figure = look(draw.difference(old, new))
    shown = nodes(drawn[0], 1)
    assert "150 axpy" in shown and "0 axpy" not in shown and 10 <= len(shown) <= 40
    assert "Of 200 nodes" in figure.alt and len(figure.source["new"]["kinds"]) == 200 and len(figure.source["pairs"]) == 200
    assert "the first 40" in draw.difference(old, old).alt


def test_an_empty_graph_can_be_compared(stream, x, y):
    empty = ok(cudart.cudaGraphCreate(0))
    assert told(empty, captured(stream, axpy(y, x))) == ["node 0 (Kernel): added"]
    assert len(look(draw.difference(empty, captured(stream, axpy(y, x)))).source["differences"]) == 1
    assert draw.difference(empty, empty).source["differences"] == []


def test_two_thousand_nodes_are_compared_in_seconds(stream, x, y):
    import time
    many = [axpy(y, x) for _ in range(2000)]
    old, new = captured(stream, *many), captured(stream, *many[:1990])
    begin = time.perf_counter()
    assert len(draw.differences(old, new)) == 20 and len(Read(old, "old").kinds) == len(graph.nodes(old))
    assert time.perf_counter() - begin < 10
