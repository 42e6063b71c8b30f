"""Where a pool's allocations lie: a freed place is used again where the order of the work allows it."""
from tests.conformance.counting import FLAGS, MIB, SIZES, PoolMemory, blocks, from_pool, make_pool, write_offsets
from tests.conformance.harness import Buffer, scenario

KEEP_ALL = 1 << 40
CHAINS = {"one": "a20 -a", "the same again": "a20 -a b20", "larger": "a20 -a b30", "smaller": "a30 -a b20", "in the middle": "a4 b4 c4 -b d4",
          "split": "a20 -a b4 c4", "split, and the rest is too small": "a20 -a b12 c12", "two joined": "a20 b20 c4 -a -b d40",
          "two joined, freed in reverse": "a20 b20 c4 -b -a d40",
          "not joined": "a20 b20 c20 d4 -a -c e40", "the smaller gap fits": "a20 b4 c10 d4 -a -c e10", "the first gap fits": "a10 b4 c20 d4 -a -c e10",
          "two gaps of a size": "a10 b4 c10 d4 -a -c e10", "two gaps of a size, freed in reverse": "a10 b4 c10 d4 -c -a e10 f10",
          "four, the middle freed": "a20 b20 c20 d20 -b -c e30",
          "the last, and larger": "a20 b20 -b c30", "all, and larger": "a20 b20 -a -b c60", "growing": "a4 -a b8 -b c16", "shrinking": "a16 -a b8 -b c4"}


@scenario("In one stream a freed place is used again at once, also by something smaller.", control="one",
          variants={name: dict(text=text) for name, text in CHAINS.items()}, each={"unit": tuple(SIZES), "waiting": ("not at all", "after each free")},
          open=True)
def a_pool_uses_places_again(t, text, unit, waiting):
    stream, pool = t.stream(), make_pool(t, KEEP_ALL)
    count, places = PoolMemory(t, pool), {}
    for step in text.split():
        blocks(t, stream, step, SIZES[unit], pool, places)
        if waiting != "not at all" and step[0] == "-":
            t.cudaStreamSynchronize(stream)
    write_offsets(t, places, SIZES[unit])
    count("allocated")


ORDERED = {"same stream": dict(other=False), "same stream, held up": dict(other=False, held_up=True), "other stream": dict(),
           "other stream, held up": dict(held_up=True),
           "ordered by an event": dict(held_up=True, order=True), "ordered by two events": dict(held_up=True, order="through a third"),
           "an event before the free": dict(held_up=True, order="before")}


@scenario("In another stream it is used again when the free is done, or comes before in the order of events.", control="same stream",
          variants=ORDERED, each={"size": ("4 KiB", "20 MiB"), "off": ("none", *FLAGS)}, open=True)
def a_pool_and_other_streams(t, size, off, other=True, held_up=False, order=False):
    a, b, c = t.stream(), t.stream(), t.stream()
    pool, (number, unit) = make_pool(t, KEEP_ALL, **({} if off == "none" else {off: 0})), size.split()
    size, count = int(number) * SIZES[unit], PoolMemory(t, pool)
    first = from_pool(t, size, pool, a)
    t.cudaStreamSynchronize(a)
    let_go = t.gate(a) if held_up else None
    if order == "before":
        t.follow(b, a)
    t.cudaFreeAsync(first, a)
    if order == "through a third":
        t.follow(c, a)
        t.follow(b, c)
    elif order is True:
        t.follow(b, a)
    if not held_up and other:
        t.cudaStreamSynchronize(a)
    second = from_pool(t, size, pool, b if other else a)
    t.note("same place", first == second)
    count("second")
    if let_go:
        let_go()
    t.cudaDeviceSynchronize()
    third = from_pool(t, size, pool, b)
    t.note("the first place", third == first)
    count("third")


@scenario("An allocation may be used in any stream that is ordered after it, and freed in another.", control="same stream",
          variants={"same stream": dict(other=False), "other stream": dict(other=True)}, each={"free": ("where it was made", "where it was used")})
def using_a_pools_memory_in_another_stream(t, other, free):
    a, pool, x = t.stream(), make_pool(t), t.device([0] * 4)
    b = t.stream() if other else a
    buffer = Buffer(from_pool(t, 16, pool, a), 4)
    t.fill(a, buffer, 3)
    if other:
        t.follow(b, a)
    t.axpy(b, x, buffer, 2)
    if other and free == "where it was made":
        t.follow(a, b)
    t.cudaFreeAsync(buffer.ptr, a if free == "where it was made" else b)
    t.values(x, b)


@scenario("A pool's memory is taken from its own pages, whatever is free in another pool.", control="one pool",
          variants={"one pool": dict(pools=1), "two pools": dict(pools=2)}, each={"free": ("waited", "not waited")})
def two_pools_share_nothing(t, pools, free):
    stream, made = t.stream(), [make_pool(t, KEEP_ALL) for _ in range(pools)]
    counts = [PoolMemory(t, pool) for pool in made]
    first = from_pool(t, 20 * MIB, made[0], stream)
    t.cudaFreeAsync(first, stream)
    if free == "waited":
        t.cudaStreamSynchronize(stream)
    second = from_pool(t, 20 * MIB, made[-1], stream)
    t.note("same place", first == second)
    for number, count in enumerate(counts):
        count(f"pool {number}")


@scenario("A free that waits in one stream does not hold up an allocation in another.", control="done",
          variants={"done": dict(held_up=False), "held up": dict(held_up=True)})
def values_of_a_place_that_is_used_again(t, held_up):
    a, b, x, y = t.stream(), t.stream(), t.device([0] * 4), t.device([0] * 4)
    t.fill(a, x, 0)
    pool = make_pool(t, KEEP_ALL)
    first = Buffer(from_pool(t, 16, pool, a), 4)
    t.cudaStreamSynchronize(a)
    let_go = t.gate(a) if held_up else None
    t.fill(a, first, 3)
    t.axpy(a, x, first, 1)
    t.cudaFreeAsync(first.ptr, a)
    second = Buffer(from_pool(t, 16, pool, b), 4)
    t.fill(b, second, 7)
    t.axpy(b, y, second, 1)
    t.values(y, b)
    if let_go:
        let_go()
    t.values(x, a)
