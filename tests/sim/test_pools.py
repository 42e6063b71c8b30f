"""Memory pools: what is used, what is reserved, where blocks lie, and what a pool's end does."""
import random
import threading

import pytest

from labkit import kernels, sim
from labkit.errors import NotSimulated, Undefined, ok
from labkit.sim import memory, runtime as cu, values
from labkit.sim.world import world

MIB = 1 << 20
A = cu.cudaMemPoolAttr
SIZES = [A.cudaMemPoolAttrReservedMemCurrent, A.cudaMemPoolAttrReservedMemHigh, A.cudaMemPoolAttrUsedMemCurrent, A.cudaMemPoolAttrUsedMemHigh]
FLAGS = [A.cudaMemPoolReuseFollowEventDependencies, A.cudaMemPoolReuseAllowOpportunistic, A.cudaMemPoolReuseAllowInternalDependencies]
THRESHOLD = A.cudaMemPoolAttrReleaseThreshold


def props(most=0):
    made = cu.cudaMemPoolProps()
    made.allocType = cu.cudaMemAllocationType.cudaMemAllocationTypePinned
    made.location.type = cu.cudaMemLocationType.cudaMemLocationTypeDevice
    made.maxSize = most
    return made


def pool(threshold=0, most=0):
    made = ok(cu.cudaMemPoolCreate(props(most)))
    ok(cu.cudaMemPoolSetAttribute(made, THRESHOLD, values.cuuint64_t(threshold)))
    return made


def sizes(of):
    """[reserved, its high mark, used, its high mark], in MiB."""
    return [int(ok(cu.cudaMemPoolGetAttribute(of, what))) / MIB for what in SIZES]


def take(size, of, stream):
    return ok(cu.cudaMallocFromPoolAsync(int(size * MIB), of, stream))


def give(stream, *places, wait=True):
    for place in places:
        ok(cu.cudaFreeAsync(place, stream))
    if wait:
        ok(cu.cudaStreamSynchronize(stream))


def held_up(lab, stream, gate):
    """The stream waits until the gate opens."""
    function, keep = lab.host_function(gate.wait)
    ok(cu.cudaLaunchHostFunc(stream, function, 0))
    return keep


def test_the_device_begins_with_one_pool(lab):
    default = ok(cu.cudaDeviceGetDefaultMemPool(0))
    assert ok(cu.cudaDeviceGetMemPool(0)) == default and cu.cudaMemPoolDestroy(default)[0] == 1
    assert int(ok(cu.cudaMemPoolGetAttribute(default, THRESHOLD))) == 0 and sizes(default) == [0, 0, 0, 0]
    assert [ok(cu.cudaMemPoolGetAttribute(default, flag)) for flag in FLAGS] == [1, 1, 1]
    lab_stream = lab.stream()
    place = ok(cu.cudaMallocAsync(100, lab_stream))
    assert sizes(default) == [32, 32, 100 / MIB, 100 / MIB]
    give(lab_stream, place)
    assert sizes(default) == [0, 32, 0, 100 / MIB]


@pytest.mark.parametrize("asked, reserved", [((1 / MIB,), 32), ((32,), 32), ((33,), 64), ((40, 20, 30, 40), 160), ((10, 100), 128)])
def test_used_is_what_was_asked_and_reserved_goes_in_pages(lab, asked, reserved):
    stream, mine = lab.stream(), pool()
    places = [take(size, mine, stream) for size in asked]
    assert sizes(mine) == [reserved, reserved, sum(asked), sum(asked)]
    give(stream, *places, wait=False)
    assert sizes(mine) == [reserved, reserved, 0, sum(asked)]
    ok(cu.cudaStreamSynchronize(stream))
    assert sizes(mine) == [0, reserved, 0, sum(asked)]


@pytest.mark.parametrize("size", [5, 100])
def test_a_pool_gives_back_at_a_wait_that_finds_the_frees_done(lab, size):
    stream, other, mine, event = lab.stream(), lab.stream(), pool(48 * MIB), lab.event()
    places = [take(40, mine, stream) for _ in range(4)]
    give(stream, *places, wait=False)
    ok(cu.cudaEventRecord(event, stream))
    ok(cu.cudaStreamSynchronize(other)), ok(cu.cudaMemPoolTrimTo(mine, 0))
    assert sizes(mine)[0] == 160
    ok(cu.cudaEventSynchronize(event))
    assert sizes(mine)[0] == 32
    place = take(size, mine, stream)
    assert sizes(mine)[0] == (32 if size == 5 else 128)
    ok(cu.cudaDeviceSynchronize())
    assert sizes(mine)[0] == (32 if size == 5 else 128)
    give(stream, place, wait=False)
    ok(cu.cudaMemcpy(lab.buffer(), lab.buffer(), 256, lab.D2D)), ok(cu.cudaFree(lab.buffer()))
    assert sizes(mine)[0] == (32 if size == 5 else 128)         # what cudaMalloc gave is no pool's affair
    ok(cu.cudaFree(take(1, mine, stream)))
    assert sizes(mine)[0] == 32


def test_a_trim_keeps_what_it_is_told_to_keep(lab):
    stream, mine = lab.stream(), pool(1 << 40)
    give(stream, *[take(30, mine, stream) for _ in range(3)])
    for least, left in ((100, 96), (65, 96), (64, 64), (33, 64), (1, 32), (1 / MIB, 32), (0, 0)):
        ok(cu.cudaMemPoolTrimTo(mine, int(least * MIB)))
        assert sizes(mine)[0] == left
    places = [take(20, mine, stream) for _ in range(4)]
    give(stream, places[1], places[2])
    ok(cu.cudaMemPoolTrimTo(mine, 0))
    assert sizes(mine)[0] == 96                                 # a page goes when nothing is left on it
    give(stream, places[3])
    ok(cu.cudaMemPoolTrimTo(mine, 0))
    assert sizes(mine)[0] == 32


def test_cuda_free_leaves_the_used_size_as_it_was(lab):
    stream, mine = lab.stream(), pool()
    place = take(10, mine, stream)
    ok(cu.cudaFree(place))
    assert cu.cudaFree(place)[0] == 1 and sizes(mine) == [0, 32, 10, 10]


def test_attributes_take_what_the_bindings_take():
    mine = pool()
    for what in SIZES:
        high = what.name.endswith("High")
        assert cu.cudaMemPoolSetAttribute(mine, what, values.cuuint64_t(0))[0] == (0 if high else 1)
        assert cu.cudaMemPoolSetAttribute(mine, what, values.cuuint64_t(5))[0] == 1
    for flag in FLAGS:
        assert [(ok(cu.cudaMemPoolSetAttribute(mine, flag, n)), ok(cu.cudaMemPoolGetAttribute(mine, flag)))[1] for n in (0, 1, 7)] == [0, 1, 1]
    for call in (lambda: cu.cudaMemPoolSetAttribute(mine, THRESHOLD, 5), lambda: cu.cudaMemPoolGetAttribute(mine, 4)):
        with pytest.raises(AttributeError, match="'int' object has no attribute"):
            call()
    sim.set_line(13)
    with pytest.raises(NotSimulated, match="cudaMemPoolAttrMaxPoolSize"):
        cu.cudaMemPoolGetAttribute(mine, cu.cudaMemPoolAttr.cudaMemPoolAttrMaxPoolSize)


def test_a_wrong_value_is_noticed_before_the_capture_is_asked(lab):
    stream = lab.stream()
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    with pytest.raises(AttributeError):
        cu.cudaMemPoolSetAttribute(0, THRESHOLD, 5)
    assert lab.status(stream) == "Active" and cu.cudaMemPoolSetAttribute(0, THRESHOLD, values.cuuint64_t(5))[0] == 900


def test_high_marks_are_set_to_the_current_size(lab):
    stream, mine = lab.stream(), pool(1 << 40)
    a, b = take(40, mine, stream), take(10, mine, stream)
    give(stream, a)
    for what in SIZES[1::2]:
        ok(cu.cudaMemPoolSetAttribute(mine, what, values.cuuint64_t(0)))
    assert sizes(mine) == [64, 64, 10, 10]
    give(stream, b)


def test_a_limited_pool_reserves_no_more(lab):
    stream, mine, small = lab.stream(), pool(most=64 * MIB), pool(most=1)
    take(1, mine, stream), take(32, mine, stream)
    assert cu.cudaMallocFromPoolAsync(40 * MIB, mine, stream) == (2, None) and sizes(mine) == [64, 64, 33, 33]
    take(1, small, stream)
    assert cu.cudaMallocFromPoolAsync(32 * MIB, small, stream) == (2, None)
    wide = pool(most=100 * MIB)
    places = [take(size, wide, stream) for size in (1, 32, 40)]
    ok(cu.cudaFreeAsync(places[2], stream))
    assert cu.cudaMallocFromPoolAsync(100 * MIB, wide, stream) == (2, None)
    assert sizes(wide) == [64, 128, 33, 73]                     # it took all it may, then let go of what is free
    assert cu.cudaMallocFromPoolAsync(1 << 50, pool(), stream) == (2, None)


def test_blocks_lie_one_after_the_other_and_in_freed_places(lab):
    stream, mine = lab.stream(), pool(1 << 40)
    places = [ok(cu.cudaMallocFromPoolAsync(size, mine, stream)) for size in (1, 512, 513, 1024, 4096, 100)]
    assert [place - places[0] for place in places] == [0, 512, 1024, 2048, 3072, 7168]
    give(stream, *places)
    a = take(2, mine, stream)
    give(stream, a, wait=False)
    assert [take(1, mine, stream), take(1, mine, stream)] == [a, a + MIB]
    larger, b = take(3, mine, stream), take(1, mine, stream)
    give(stream, larger, wait=False)
    assert take(4, mine, stream) == b + MIB                     # larger than the place that was freed


@pytest.mark.parametrize("text, at", [
    ("a20 -a b30", [0, 0]), ("a20 b20 -b c30", [0, 20, 20]), ("a20 b20 -a -b c60", [0, 20, 0]), ("a4 -a b8 -b c16", [0, 0, 0]),
    ("a20 -a b12 c12", [0, 0, 12]), ("a20 b20 c20 d4 -a -c e40", [0, 20, 40, 60, 64]), ("a20 b20 c20 d20 -b -c e30", [0, 20, 40, 60, 20]),
    ("a20 b4 c10 d4 -a -c e10 f10", [0, 20, 24, 34, 24, 0]), ("a10 b4 c10 d4 -a -c e10", [0, 10, 14, 24, 0]),
    ("a10 b4 c10 d4 -c -a e10 f10", [0, 10, 14, 24, 14, 0]), ("a20 b4 -a c10 d10 e2", [0, 20, 0, 10, 24])])
@pytest.mark.parametrize("wait", [False, True])
def test_the_smallest_place_that_fits_is_taken_and_the_last_one_grows(lab, text, at, wait):
    stream, mine, places = lab.stream(), pool(1 << 40), {}
    for step in text.split():
        if step[0] == "-":
            give(stream, places[step[1:]], wait=wait)
        else:
            places[step[0]] = take(int(step[1:]), mine, stream)
    assert [(place - places["a"]) // MIB for place in places.values()] == at


def test_a_place_whose_free_is_held_up_does_not_grow(lab):
    stream, mine, gate = lab.stream(), pool(1 << 40), threading.Event()
    first, keep = take(1, mine, stream), held_up(lab, stream, gate)
    ok(cu.cudaFreeAsync(first, stream))
    larger = take(2, mine, stream)
    assert larger == first + MIB and take(1, mine, stream) == first and keep
    ok(cu.cudaFreeAsync(larger, stream)), ok(cu.cudaFreeAsync(first, stream))
    assert take(3, mine, stream) == first                       # freed in one stream, the two are one place
    gate.set()
    ok(cu.cudaStreamSynchronize(stream))


def test_a_page_stays_as_long_as_nobody_knows_that_its_free_is_over(lab):
    stream, other, mine = lab.stream(), lab.stream(), pool(1 << 40)
    a, b = take(32, mine, stream), take(32, mine, other)
    ok(cu.cudaFreeAsync(a, stream)), ok(cu.cudaFreeAsync(b, other))
    ok(cu.cudaStreamSynchronize(other))
    ok(cu.cudaFreeAsync(take(70, mine, other), other))          # over both, and behind them
    ok(cu.cudaMemPoolTrimTo(mine, 0))
    assert sizes(mine)[0] == 96
    ok(cu.cudaStreamSynchronize(other)), ok(cu.cudaMemPoolTrimTo(mine, 0))
    assert sizes(mine)[0] == 0


class TestOtherStreams:
    """A place that was freed in one stream, for an allocation in another."""

    def places(self, lab, order=None, flags=()):
        a, b, mine, event, gate = lab.stream(), lab.stream(), pool(1 << 40), lab.event(), threading.Event()
        for flag in flags:
            ok(cu.cudaMemPoolSetAttribute(mine, flag, 0))
        first = take(1, mine, a)
        keep = held_up(lab, a, gate) if order in ("held up", "event") else None
        ok(cu.cudaFreeAsync(first, a))
        if order == "event":
            ok(cu.cudaEventRecord(event, a)), ok(cu.cudaStreamWaitEvent(b, event, 0))
        if order == "waited":
            ok(cu.cudaStreamSynchronize(a))
        second = take(1, mine, b)
        gate.set()
        ok(cu.cudaDeviceSynchronize())
        assert keep is None or keep
        return second == first

    def test_it_is_used_again_where_the_free_is_over(self, lab):
        assert self.places(lab) and self.places(lab, "waited") and not self.places(lab, "held up")

    def test_it_is_used_again_where_an_event_orders_the_two(self, lab):
        assert self.places(lab, "event") and not self.places(lab, "event", FLAGS[:1])

    def test_without_opportunism_only_a_wait_makes_a_free_known(self, lab):
        assert not self.places(lab, flags=FLAGS[1:2]) and self.places(lab, "waited", FLAGS[1:2])


def test_the_current_pool_is_the_devices_and_graphs_do_not_take_from_it(lab):
    stream, mine, default = lab.stream(), pool(), ok(cu.cudaDeviceGetDefaultMemPool(0))
    ok(cu.cudaDeviceSetMemPool(0, mine))
    assert ok(cu.cudaDeviceGetMemPool(0)) == mine
    place = ok(cu.cudaMallocAsync(MIB, stream))
    assert sizes(mine)[2] == 1 and sizes(default)[2] == 0
    ok(cu.cudaStreamBeginCapture(stream, lab.RELAXED))
    for source in (None, mine):
        inside = ok(cu.cudaMallocAsync(MIB, stream) if source is None else cu.cudaMallocFromPoolAsync(MIB, source, stream))
        ok(cu.cudaFreeAsync(inside, stream))
    graph = ok(cu.cudaStreamEndCapture(stream))
    made = lab.run(graph, stream)
    assert lab.kinds(graph) == ["MemAlloc", "MemFree"] * 2 and sizes(mine)[2] == 1
    give(stream, place)
    ok(cu.cudaMemPoolDestroy(mine))
    assert ok(cu.cudaDeviceGetMemPool(0)) == default and not world.leaving
    ok(cu.cudaGraphLaunch(made, stream)), ok(cu.cudaGraphExecDestroy(made)), ok(cu.cudaGraphInstantiate(graph, 0))


@pytest.mark.parametrize("call", [lambda place, stream: cu.cudaFree(place), cu.cudaFreeAsync])
def test_freeing_memory_of_a_destroyed_pool_is_undefined(lab, call):
    stream, mine = lab.stream(), pool()
    place = take(10, mine, stream)
    ok(cu.cudaMemPoolDestroy(mine))
    assert ok(cu.cudaMemsetAsync(place, 1, 64, stream)) is None
    with pytest.raises(Undefined, match="whose pool was destroyed"):
        call(place, stream)
    ok(cu.cudaStreamSynchronize(stream)), ok(cu.cudaFree(ok(cu.cudaMallocAsync(64, stream))))


@pytest.mark.parametrize("wait", [False, True])
def test_a_destroyed_pool_gives_back_what_was_freed_before(lab, wait):
    free, stream, mine, gate = cu.cudaMemGetInfo()[1], lab.stream(), pool(1 << 40), threading.Event()
    place, keep = take(10, mine, stream), held_up(lab, stream, gate)
    give(stream, place, wait=False)
    if wait:
        gate.set()
        ok(cu.cudaStreamSynchronize(stream))
    ok(cu.cudaMemPoolDestroy(mine))
    assert keep and cu.cudaMemGetInfo()[1] == (free if wait else free - 32 * MIB)
    gate.set()
    ok(cu.cudaStreamSynchronize(stream))
    assert cu.cudaMemsetAsync(place, 1, 64, stream)[0] == 1 and cu.cudaMemGetInfo()[1] == free and not world.leaving
    assert cu.cudaMemPoolGetAttribute(mine, THRESHOLD) == (1, None) and cu.cudaMemPoolTrimTo(mine, 0)[0] == 1
    assert cu.cudaMallocFromPoolAsync(64, mine, stream) == (1, None) and cu.cudaMemPoolDestroy(mine)[0] == 1
    with pytest.raises(Undefined, match="pool that was destroyed"):
        cu.cudaDeviceSetMemPool(0, mine)


def test_what_is_no_pool_and_no_device():
    for call in (lambda: cu.cudaMemPoolDestroy(0), lambda: cu.cudaMemPoolTrimTo(None, 0), lambda: cu.cudaMemPoolGetAttribute(0, THRESHOLD),
                 lambda: cu.cudaDeviceSetMemPool(0, 0), lambda: cu.cudaMallocFromPoolAsync(64, None, 0), lambda: cu.cudaDeviceGetMemPool(5),
                 lambda: cu.cudaDeviceSetMemPool(5, pool()), lambda: cu.cudaMemPoolCreate(None), lambda: cu.cudaMemPoolCreate(cu.cudaMemPoolProps())):
        assert call()[0] == 1
    assert cu.cudaDeviceGetDefaultMemPool(7) == (101, None)
    for change, answer in ((("allocType", 0), 1), (("location.id", 5), 1), (("location.id", -1), 1), (("location.type", 0), 1),
                           (("location.type", 2), None), (("handleTypes", 1), None)):
        bad, (name, value) = props(), change
        *inner, name = name.split(".")
        where = getattr(bad, inner[0]) if inner else bad
        if isinstance(value, int) and name in ("allocType", "type", "handleTypes"):
            kind = {"allocType": cu.cudaMemAllocationType, "type": cu.cudaMemLocationType, "handleTypes": cu.cudaMemAllocationHandleType}[name]
            value = kind(value)
        setattr(where, name, value)
        if answer is None:
            with pytest.raises(NotSimulated):
                cu.cudaMemPoolCreate(bad)
        else:
            assert cu.cudaMemPoolCreate(bad) == (answer, None)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_never_share_a_place_too_early(lab, seed):
    """Three streams, two pools, events between: every block keeps its values from its kernel to its free."""
    rng = random.Random(seed)
    streams, pools, event = [lab.stream(rng.random() < .5) for _ in range(3)], [pool(), pool(1 << 40)], lab.event()
    outs = {stream: lab.buffer(value=0) for stream in streams}
    live, count = [], 0
    for _ in range(400):
        step, stream = rng.random(), rng.choice(streams)
        if step < .4:
            n = rng.choice((1, 64, 1000))
            place = take(4 * n / MIB, rng.choice(pools), stream)
            lab.launch(stream, kernels.fill, place, float(len(live)), n, grid=-(-n // 64))
            live.append((place, n, float(len(live)), stream))
        elif step < .8 and live:
            place, n, value, owner = live.pop(rng.randrange(len(live)))
            lab.launch(owner, kernels.fill, outs[owner], 0.0, 64), lab.launch(owner, kernels.axpy, outs[owner], place, 1.0, 1)
            ok(cu.cudaFreeAsync(place, owner))
            if rng.random() < .3:
                ok(cu.cudaStreamSynchronize(owner))
                count += 1
                assert lab.read(outs[owner])[0] == value
        elif step < .9:
            ok(cu.cudaEventRecord(event, stream)), ok(cu.cudaStreamWaitEvent(rng.choice(streams), event, 0))
        else:
            ok(rng.choice((lambda: cu.cudaStreamSynchronize(stream), cu.cudaDeviceSynchronize, lambda: cu.cudaMemPoolTrimTo(pools[1], 0)))())
        blocks = [block for region in memory.memory().spans.things if hasattr(region, "owned") for block in getattr(region.owned, "things", ())]
        assert len(blocks) == len(live) and all(a.start + a.room <= b.start for a, b in zip(blocks, blocks[1:]))
    give(streams[0], *[place for place, *_ in live], wait=False)
    ok(cu.cudaDeviceSynchronize()), ok(cu.cudaMemPoolTrimTo(pools[1], 0))
    assert [sizes(one)[::2] for one in pools] == [[0, 0]] * 2 and count > 10
