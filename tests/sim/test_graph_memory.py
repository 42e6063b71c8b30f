"""Graph memory: where a graph's allocations lie, which pages stand behind them, and when pages come and go."""
import random
import threading

import pytest

from labkit import kernels, sim
from labkit.errors import NotSimulated, Undefined, ok
from labkit.sim import runtime as cu, values
from tests.sim.test_pools import held_up, pool, props

MIB = 1 << 20
COUNTERS = list(cu.cudaGraphMemAttributeType)


def counters():
    """[used, its high mark, reserved, its high mark], in MiB."""
    return [int(ok(cu.cudaDeviceGetGraphMemAttribute(0, what))) // MIB for what in COUNTERS]


def now():
    return counters()[::2]


def trim():
    ok(cu.cudaDeviceGraphMemTrim(0))
    return now()


def blocks(text, stream, places=None, unit=MIB):
    """ "a20 b20 -a" allocates a and b of 20 units each, then frees a: {name: address}."""
    places = {} if places is None else places
    for step in text.split():
        if step[0] == "-":
            ok(cu.cudaFreeAsync(places[step[1:]], stream))
        else:
            places[step[0]] = ok(cu.cudaMallocAsync(int(float(step[1:]) * unit), stream))
    return places


def captured(lab, text, stream=None, unit=MIB):
    """(graph, {name: address}) of a captured chain."""
    stream = stream or lab.stream()
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    places = blocks(text, stream, unit=unit)
    return ok(cu.cudaStreamEndCapture(stream)), places


def offsets(places, unit=MIB):
    first = min(places.values())
    return [(place - first) / unit for place in places.values()]


class Run:
    """An executable of a captured chain, launched in one stream and waited for."""

    def __init__(self, lab, stream, text, flags=0):
        self.graph, self.places = captured(lab, text, stream)
        self.made, self.stream = ok(cu.cudaGraphInstantiate(self.graph, flags)), stream

    def __call__(self):
        ok(cu.cudaGraphLaunch(self.made, self.stream)), ok(cu.cudaStreamSynchronize(self.stream))
        return now()

    def free(self):
        ok(cu.cudaFreeAsync(self.places["a"], self.stream)), ok(cu.cudaStreamSynchronize(self.stream))
        return now()

    def end(self):
        ok(cu.cudaGraphExecDestroy(self.made)), ok(cu.cudaGraphDestroy(self.graph))
        return now()


# ---- places ----

@pytest.mark.parametrize("text, at, used, reserved", [
    ("a8 b40", [0, 8], 64, 96), ("a40 b8", [0, 40], 64, 64), ("a1 b32", [0, 1], 64, 64), ("a1 b33", [0, 1], 64, 96), ("a10 b70", [0, 10], 96, 128),
    ("a8 b90", [0, 8], 128, 128), ("a40 b40", [0, 40], 96, 128), ("a30 b40 c40", [0, 30, 70], 128, 160), ("a31 b33", [0, 31], 64, 96),
    ("a20 b20 c20 d20", [0, 20, 40, 60], 96, 96), ("a20 b10 c20", [0, 20, 30], 64, 64), ("a33", [0], 64, 64),
    ("a20 -a b20 -b", [0, 0], 32, 32), ("a20 -a b30 -b", [0, 20], 64, 64), ("a30 -a b20 -b", [0, 0], 32, 32),
    ("a20 b20 c20 -a -b -c d60 -d", [0, 20, 40, 0], 64, 64), ("a4 b4 -b c4 -a -c", [0, 4, 4], 32, 32), ("a30 -a b10 c10 -b -c", [0, 0, 10], 32, 32),
    ("a20 b20 -b -a c40", [0, 20, 0], 64, 64), ("a20 b20 c20 -a -c d40", [0, 20, 40, 60], 128, 128),
    ("a20 b4 c10 d4 -a -c e10 -b -d -e", [0, 20, 24, 34, 24], 64, 64), ("a20 -a b4 c4 -b -c", [0, 0, 4], 32, 32),
    ("a20 -a b12 c12 -b -c", [0, 0, 20], 32, 32)])
def test_a_chain_of_allocations(lab, text, at, used, reserved):
    stream = lab.stream()
    run = Run(lab, stream, text)
    assert offsets(run.places) == at and run() == [used, reserved]


def test_places_are_multiples_of_512(lab):
    _, places = captured(lab, "a1 b512 c513 d4096 e1", unit=1)
    assert offsets(places, 512) == [0, 1, 2, 4, 12]


@pytest.mark.parametrize("fork, at", [("first", [0, 1]), ("free", [0, 0]), ("alloc", [0, 1])])
def test_branches_share_a_place_where_one_waits_for_the_others_free(lab, fork, at):
    a, b, event, x = lab.stream(), lab.stream(), lab.event(), lab.buffer()

    def follow(later, earlier):
        ok(cu.cudaEventRecord(event, earlier)), ok(cu.cudaStreamWaitEvent(later, event, 0))
    ok(cu.cudaStreamBeginCapture(a, lab.GLOBAL))
    lab.step(a, x)
    if fork == "first":
        follow(b, a)
    places = blocks("a4", a)
    if fork == "alloc":
        follow(b, a)
    blocks("-a", a, places)
    if fork == "free":
        follow(b, a)
    blocks("b4 -b", b, places)
    follow(a, b)
    later = blocks("c4 -c d8 -d", a)
    graph = ok(cu.cudaStreamEndCapture(a))
    assert offsets(places, 4 * MIB) == at
    first = min(places.values())
    assert later["c"] == first and (later["d"] != first if fork == "first" else True)   # what two branches freed does not join
    lab.run(graph, a, times=2)


def test_each_graph_has_a_range_of_its_own_while_it_lives(lab):
    stream = lab.stream()
    made = [captured(lab, "a4 -a", stream) for _ in range(3)]
    places = [where["a"] for _, where in made]
    assert len(set(places)) == 3 and all(place % (32 * MIB) == 0 for place in places)
    ok(cu.cudaGraphDestroy(made[1][0]))
    assert captured(lab, "a4 -a", stream)[1]["a"] == places[1]
    kept = Run(lab, stream, "a4")
    kept(), kept.end()
    assert captured(lab, "a4", stream)[1]["a"] != kept.places["a"]
    ok(cu.cudaFree(kept.places["a"]))
    assert captured(lab, "a4", stream)[1]["a"] == kept.places["a"]


def test_two_graphs_that_grow_in_turn_lie_in_pieces(lab):
    a, b = lab.stream(), lab.stream()
    for stream in (a, b):
        ok(cu.cudaStreamBeginCapture(stream, lab.RELAXED))
    places = [blocks("a20", a), blocks("a20", b), blocks("b20", a), blocks("b20", b), blocks("c20", a)]
    starts = sorted(place for where in places for place in where.values())
    assert all(y - x >= 20 * MIB for x, y in zip(starts, starts[1:]))
    for stream in (a, b):
        lab.run(ok(cu.cudaStreamEndCapture(stream)), stream)
    assert ok(cu.cudaMemset(places[4]["c"], 1, 20 * MIB)) is None


def test_a_place_used_twice_holds_the_values_of_the_one_that_is_alive(lab):
    stream, first, second = lab.stream(), lab.buffer(value=0), lab.buffer(value=0)
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    places = blocks("a2", stream)
    lab.launch(stream, kernels.fill, places["a"], 3.0, 64), ok(cu.cudaMemcpyAsync(first, places["a"], 256, lab.D2D, stream))
    blocks("-a b1", stream, places)
    assert places["a"] == places["b"] and cu.cudaMemcpyAsync(places["b"], first, 2 * MIB, lab.D2D, stream)[0] == 1
    lab.launch(stream, kernels.fill, places["b"], 5.0, 64), ok(cu.cudaMemcpyAsync(second, places["b"], 256, lab.D2D, stream))
    made = lab.run(ok(cu.cudaStreamEndCapture(stream)), stream)
    assert lab.read(first)[0] == 3 and lab.read(second)[0] == 5 and lab.read(places["b"])[0] == 5
    assert cu.cudaGraphLaunch(made, stream)[0] == 1 and cu.cudaFreeAsync(places["b"], stream)[0] == 0


# ---- pages ----

def test_pages_come_with_the_first_launch_and_go_with_a_trim(lab):
    stream = lab.stream()
    free = cu.cudaMemGetInfo()[1]
    run = Run(lab, stream, "a20")
    assert now() == [0, 0]
    ok(cu.cudaGraphLaunch(run.made, stream))
    assert now() == [32, 32] and cu.cudaMemGetInfo()[1] == free - 32 * MIB and trim() == [32, 32]
    ok(cu.cudaStreamSynchronize(stream))
    assert trim() == [32, 32] and run.free() == run.end() == [32, 32]
    assert trim() == [0, 0] and counters() == [0, 32, 0, 32] and cu.cudaMemGetInfo()[1] == free


def test_an_upload_brings_them_too_and_a_trimmed_executable_takes_them_again(lab):
    stream = lab.stream()
    run = Run(lab, stream, "a20 -a")
    ok(cu.cudaGraphUpload(run.made, stream))
    assert now() == [32, 32] and cu.cudaMemset(run.places["a"], 0, 4)[0] == 1
    ok(cu.cudaStreamSynchronize(stream))
    assert trim() == [0, 0] and run() == [32, 32] and trim() == [0, 0] and run() == [32, 32]


def test_a_trim_leaves_unfinished_launches_alone(lab):
    stream, gate = lab.stream(), threading.Event()
    run, keep = Run(lab, stream, "a20 -a"), held_up(lab, stream, gate)
    ok(cu.cudaGraphLaunch(run.made, stream))
    assert keep and trim() == [32, 32]
    gate.set()
    ok(cu.cudaStreamSynchronize(stream))
    assert trim() == [0, 0]


def test_graphs_in_turn_share_pages_as_long_as_nothing_is_held(lab):
    stream = lab.stream()
    inside, kept = [Run(lab, stream, "a20 -a") for _ in range(3)], [Run(lab, stream, "a20") for _ in range(3)]
    assert [run() for run in inside] == [[32, 32]] * 3
    assert [run() for run in kept] == [[32, 32], [64, 64], [96, 96]]        # the first takes the page of the others
    assert inside[0]() == inside[1]() == [128, 128]
    assert kept[1].free() == [128, 128] and kept[1]() == [128, 128]


@pytest.mark.parametrize("texts, used", [(("a40 -a", "a20 -a"), [64, 64, 64]), (("a20 -a", "a40 -a", "a70 -a"), [32, 64, 96, 96]),
                                         (("a4", "a4 -a"), [32, 64]), (("a4 -a", "a4"), [32, 32, 64])])
def test_pages_of_graphs_of_different_sizes(lab, texts, used):
    stream = lab.stream()
    runs = [Run(lab, stream, text) for text in texts]
    launched = [run()[1] for run in (runs + runs[:1])[:len(used)]]
    assert launched == used


def test_a_page_whose_owner_was_freed_goes_to_the_next(lab):
    stream = lab.stream()
    a, b = Run(lab, stream, "a4"), Run(lab, stream, "a4")
    assert [a(), a.free(), b(), a()] == [[32, 32], [32, 32], [32, 32], [64, 64]]


@pytest.mark.parametrize("freed, launched, reserved", [("a", "a", 32), ("a", "b", 64), ("b", "a", 32)])
def test_a_free_in_another_stream_leaves_the_page_to_the_stream_of_the_launch(lab, freed, launched, reserved):
    streams, gate = {"a": lab.stream(), "b": lab.stream()}, threading.Event()
    kept, inside = Run(lab, streams["a"], "a20"), Run(lab, streams["a"], "a20 -a")
    kept()
    keep = held_up(lab, streams[freed], gate)
    ok(cu.cudaFreeAsync(kept.places["a"], streams[freed]))
    ok(cu.cudaGraphLaunch(inside.made, streams[launched]))
    assert now() == [reserved, reserved] and trim() == now() and keep
    gate.set()
    ok(cu.cudaDeviceSynchronize())
    assert trim() == [0, 0]


def test_a_free_that_nothing_holds_up_needs_no_wait_before_a_trim(lab):
    stream = lab.stream()
    run = Run(lab, stream, "a4")
    run(), ok(cu.cudaFreeAsync(run.places["a"], stream))
    assert trim() == [0, 0] and run() == [32, 32]


@pytest.mark.parametrize("wait, order, reserved", [(False, False, 64), (False, True, 64), (True, False, 32)])
def test_streams_beside_each_other_have_pages_of_their_own(lab, wait, order, reserved):
    a, b, gate, event = lab.stream(), lab.stream(), threading.Event(), lab.event()
    one, two, keep = Run(lab, a, "a20 -a"), Run(lab, b, "a20 -a"), []
    if not wait:
        keep = held_up(lab, a, gate)
    ok(cu.cudaGraphLaunch(one.made, a))
    if wait:
        ok(cu.cudaStreamSynchronize(a))
    if order:
        ok(cu.cudaEventRecord(event, a)), ok(cu.cudaStreamWaitEvent(b, event, 0))
    ok(cu.cudaGraphLaunch(two.made, b))
    assert now() == [reserved, reserved] and keep is not None
    gate.set()
    ok(cu.cudaDeviceSynchronize())


def test_auto_free_keeps_its_pages_and_leaves_the_last_allocation(lab):
    stream = lab.stream()
    run = Run(lab, stream, "a4", flags=1)
    assert [run() for _ in range(3)] == [[32, 32]] * 3
    run.end()
    assert trim() == [32, 32] and ok(cu.cudaMemset(run.places["a"], 0, 4)) is None
    assert run.free() == [32, 32] and cu.cudaFree(run.places["a"])[0] == 1 and trim() == [0, 0]


def test_high_marks_are_set_to_the_current_size(lab):
    stream = lab.stream()
    used, used_high, reserved, reserved_high = COUNTERS
    big, small = Run(lab, stream, "a40 -a"), Run(lab, stream, "a4 -a")
    big(), trim(), small()
    assert counters() == [32, 64, 32, 64]
    for what in (used, reserved):
        assert cu.cudaDeviceSetGraphMemAttribute(0, what, values.cuuint64_t(0))[0] == 1
    for what in (used_high, reserved_high):
        assert [cu.cudaDeviceSetGraphMemAttribute(0, what, values.cuuint64_t(n))[0] for n in (7, 0)] == [1, 0]
    assert counters() == [32, 32, 32, 32]
    with pytest.raises(AttributeError, match="getPtr"):
        cu.cudaDeviceSetGraphMemAttribute(0, used_high, 0)
    assert cu.cudaDeviceGetGraphMemAttribute(5, used) == (101, None) and cu.cudaDeviceGraphMemTrim(5)[0] == 101


def test_an_updated_executable_uses_the_new_graphs_memory(lab):
    stream = lab.stream()
    first, newer = Run(lab, stream, "a20 -a"), captured(lab, "a70 -a", stream)[0]
    first()
    ok(cu.cudaGraphExecUpdate(first.made, newer))
    assert now() == [32, 32] and first() == [96, 96]


# ---- too much ----

def test_too_much_in_a_capture_is_refused_and_the_capture_goes_on(lab):
    stream = lab.stream()
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    assert cu.cudaMallocAsync(1 << 50, stream) == (2, None) and lab.status(stream) == "Active"
    assert [cu.cudaMallocAsync(100 << 30, stream)[0] for _ in range(3)] == [0, 0, 2]
    assert lab.kinds(ok(cu.cudaStreamEndCapture(stream))) == ["MemAlloc"] * 2


@pytest.mark.parametrize("call", ["cudaGraphLaunch", "cudaGraphUpload"])
def test_a_graph_that_asks_for_more_than_there_is_takes_it_all_for_good(lab, call):
    stream = lab.stream()
    small, run = Run(lab, stream, "a4 -a"), Run(lab, stream, f"a{200 << 10}")
    assert getattr(cu, call)(run.made, stream)[0] == 2
    run.end()
    assert trim()[0] == 0 and now()[1] > 130 << 10 and cu.cudaMemGetInfo()[1] < 32 * MIB
    assert cu.cudaGraphLaunch(small.made, stream)[0] == 2 and cu.cudaMallocAsync(64, stream) == (2, None)


# ---- by hand ----

def node_params(size):
    made = cu.cudaMemAllocNodeParams()
    made.poolProps, made.bytesize = props(), size
    return made


def test_allocation_and_free_by_hand(lab):
    graph, params, x = ok(cu.cudaGraphCreate(0)), node_params(4096), lab.buffer()
    node = ok(cu.cudaGraphAddMemAllocNode(graph, None, 0, params))
    place = params.dptr
    free = ok(cu.cudaGraphAddMemFreeNode(graph, [node], 1, place))
    assert lab.kinds(graph) == ["MemAlloc", "MemFree"] and lab.edges(graph) == [(0, 1)]
    for bad in (place, x, 0, None, place + 512):
        assert cu.cudaGraphAddMemFreeNode(graph, [node], 1, bad) == (1, None)
    assert cu.cudaGraphDestroyNode(free)[0] == 801 and cu.cudaGraphClone(graph) == (801, None)
    again = node_params(4096)
    ok(cu.cudaGraphAddMemAllocNode(graph, [free], 1, again))
    beside = node_params(4096)
    ok(cu.cudaGraphAddMemAllocNode(graph, None, 0, beside))
    assert [again.dptr - place, beside.dptr - place] == [0, 4096]
    back = ok(cu.cudaGraphMemAllocNodeGetParams(node))
    assert (back.bytesize, back.dptr, back.poolProps.maxSize, back.accessDescs, back.accessDescCount) == (4096, place, 0, [], 0)
    stream = lab.stream()
    lab.run(graph, stream)
    ok(cu.cudaFreeAsync(again.dptr, stream)), ok(cu.cudaFreeAsync(beside.dptr, stream))


def test_a_free_without_an_edge_is_taken(lab):
    graph, params = ok(cu.cudaGraphCreate(0)), node_params(4096)
    ok(cu.cudaGraphAddMemAllocNode(graph, None, 0, params))
    ok(cu.cudaGraphAddMemFreeNode(graph, None, 0, params.dptr))
    lab.run(graph, lab.stream(), times=2)


def test_a_free_of_another_graphs_memory_by_hand(lab):
    stream = lab.stream()
    run, graph = Run(lab, stream, "a4"), ok(cu.cudaGraphCreate(0))
    ok(cu.cudaGraphAddMemFreeNode(graph, None, 0, run.places["a"]))
    made = ok(cu.cudaGraphInstantiate(graph, 0))
    assert cu.cudaGraphLaunch(made, stream)[0] == 1
    for _ in range(2):
        run(), ok(cu.cudaGraphLaunch(made, stream))
    assert cu.cudaGraphLaunch(made, stream)[0] == 1
    inside = Run(lab, stream, "a4 -a")
    assert cu.cudaGraphAddMemFreeNode(graph, None, 0, inside.places["a"]) == (1, None)      # its own graph frees it
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    assert cu.cudaFreeAsync(inside.places["a"], stream)[0] == 1
    ok(cu.cudaStreamEndCapture(stream))


def test_nodes_on_memory_of_another_graph(lab):
    x, other, params = lab.buffer(), ok(cu.cudaGraphCreate(0)), cu.cudaMemsetParams()
    graph, places = captured(lab, "a16", unit=1)
    add = lambda count: cu.cudaGraphAddMemcpyNode1D(other, None, 0, x, places["a"], count, lab.D2D)[0]
    params.dst, params.elementSize, params.width, params.height = places["a"], 4, 4, 1
    assert [add(16), cu.cudaGraphAddMemsetNode(other, None, 0, params)[0], add(32)] == [0, 0, 1]
    ok(cu.cudaGraphDestroy(graph))
    assert add(16) == 1


def test_an_allocation_that_is_refused_for_its_size_marks_the_graph():
    graph = ok(cu.cudaGraphCreate(0))
    node = ok(cu.cudaGraphAddEmptyNode(graph, None, 0))
    for size, code in ((0, 1), (1 << 50, 2)):
        assert ok(cu.cudaGraphExecDestroy(ok(cu.cudaGraphInstantiate(graph, 0)))) is None and cu.cudaGraphClone(graph)[0] == 0
        assert cu.cudaGraphAddMemAllocNode(graph, None, 0, node_params(size)) == (code, None)
    assert cu.cudaGraphClone(graph) == cu.cudaGraphAddChildGraphNode(ok(cu.cudaGraphCreate(0)), None, 0, graph) == (801, None)
    assert cu.cudaGraphDestroyNode(node)[0] == 801


@pytest.mark.parametrize("flags", [0, 1])
def test_making_an_executable_while_memory_is_held_is_undefined(lab, flags):
    stream = lab.stream()
    run = Run(lab, stream, "a4")
    run(), ok(cu.cudaGraphExecDestroy(run.made))
    with pytest.raises(Undefined, match="an earlier one of it left"):
        cu.cudaGraphInstantiate(run.graph, flags)
    run.free()
    run.made = ok(cu.cudaGraphInstantiate(run.graph, flags))
    assert run() == [32, 32]
    assert cu.cudaGraphInstantiate(run.graph, flags) == (801, None)     # there is one, so nobody asks what it holds


def test_what_an_allocation_node_refuses():
    graph, params = ok(cu.cudaGraphCreate(0)), node_params(0)
    other = ok(cu.cudaGraphAddEmptyNode(ok(cu.cudaGraphCreate(0)), None, 0))
    assert cu.cudaGraphAddMemAllocNode(graph, None, 0, params) == (1, None) and params.dptr == 0
    assert cu.cudaGraphAddMemAllocNode(graph, None, 0, node_params(1 << 50)) == (2, None)
    assert cu.cudaGraphAddMemAllocNode(graph, None, 0, None) == cu.cudaGraphAddMemAllocNode(graph, None, 0, cu.cudaMemAllocNodeParams()) == (1, None)
    assert cu.cudaGraphAddMemAllocNode(graph, [other], 1, node_params(64)) == (1, None)
    bad = node_params(64)
    bad.poolProps.location.id = 9
    assert cu.cudaGraphAddMemAllocNode(graph, None, 0, bad) == (1, None)
    bad.poolProps.location.id, bad.accessDescCount = 0, 1
    with pytest.raises(NotSimulated, match="other devices"):
        cu.cudaGraphAddMemAllocNode(graph, None, 0, bad)
    assert cu.cudaGraphGetNodes(graph)[-1] == 0


@pytest.mark.parametrize("line", [12, 13])
def test_every_name_answers_on_both_lines(lab, line):
    sim.set_line(line)
    stream, mine = lab.stream(), pool()
    assert Run(lab, stream, "a4 -a")() == [32, 32] and ok(cu.cudaMallocFromPoolAsync(64, mine, stream))
    assert ok(cu.cudaGraphAddMemAllocNode(ok(cu.cudaGraphCreate(0)), None, 0, node_params(64)))


# ---- at random ----

@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_keep_the_values_of_their_blocks(lab, seed):
    """A captured chain with allocations of all sizes, each filled, read and freed at random, launched twice."""
    rng, stream, results = random.Random(seed), lab.stream(), []
    ok(cu.cudaStreamBeginCapture(stream, lab.RELAXED))
    out, live = lab.buffer(1000), []
    for number in range(200):
        if rng.random() < .5 or not live:
            n = rng.choice((1, 100, 128, 129, 1000, 5000))
            place = ok(cu.cudaMallocAsync(4 * n, stream))
            lab.launch(stream, kernels.fill, place, float(number + 1), n, grid=-(-n // 64))
            live.append((place, n, float(number + 1)))
        else:
            place, n, value = live.pop(rng.randrange(len(live)))
            ok(cu.cudaMemcpyAsync(out + 4 * len(results), place + 4 * (n - 1), 4, lab.D2D, stream)), ok(cu.cudaFreeAsync(place, stream))
            results.append(value)
        spans = sorted((place, 4 * n) for place, n, _ in live)
        assert all(a + size <= b for (a, size), (b, _) in zip(spans, spans[1:]))
    for place, *_ in live:
        ok(cu.cudaFreeAsync(place, stream))
    made = lab.run(ok(cu.cudaStreamEndCapture(stream)), stream, times=2)
    assert list(lab.read(out, 1000)[:len(results)]) == results and len(results) > 50
    ok(cu.cudaGraphExecDestroy(made))
