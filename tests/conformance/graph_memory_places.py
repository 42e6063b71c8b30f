"""Where a graph's allocations lie: one after the other, in the place of what was freed before, in a range of the graph's own."""
from tests.conformance.counting import MIB, PAGE, SIZES, GraphMemory, blocks, captured, use, write_offsets
from tests.conformance.harness import scenario

SEVERAL = ("20, 20", "20, 10, 20", "31, 2", "40, 8", "8, 40", "8, 40, 8", "1, 33", "10, 70", "33, 1", "1, 31", "1, 32", "20, 20, 20, 20", "8, 60",
           "8, 90", "40, 40", "30, 40, 40", "31, 33", "1", "32", "33", "64", "100", "32, 32", "16, 16", "16, 17", "64, 1", "1, 64", "8, 40, 40",
           "1, 1, 1, 1, 40, 40", "5, 90, 5", "33, 33, 33", "8, 40, 16, 1", "24, 9, 31")
BYTES = ("1, 1", "512, 512", "513, 1", "1, 512, 513, 1024, 4096, 100", "4096, 4096", "1048577, 1", "2097152, 1", "100, 33554432", "33554431, 1",
         "33554433, 1")


@scenario("A graph's allocations lie one after the other, in steps of 512 bytes; pages are reserved for those that do not fit.", control="1 MiB",
          variants={**{f"{sizes} MiB": dict(sizes=sizes, unit=MIB) for sizes in SEVERAL}, **{f"{sizes} B": dict(sizes=sizes, unit=1) for sizes in BYTES}},
          each={"memory": ("freed", "kept")})
def sizes_in_one_graph(t, sizes, unit, memory):
    stream, count = t.stream(), GraphMemory(t)
    names = dict(zip("abcdefgh", sizes.split(", ")))
    text = " ".join([name + size for name, size in names.items()] + [f"-{name}" for name in names if memory == "freed"])
    graph, places = captured(t, stream, text, unit)
    write_offsets(t, places, unit)
    executable = t.instantiate(graph)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    count("launched")
    for place in places.values() if memory == "kept" else ():
        t.cudaFreeAsync(place, stream)
    t.cudaStreamSynchronize(stream)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    count("launched again")


CHAINS = {"one": "a20 -a", "the same again": "a20 -a b20 -b", "larger": "a20 -a b30 -b", "smaller": "a30 -a b20 -b", "two at once": "a20 b20 -a -b",
          "in the middle": "a4 b4 -b c4 -a -c", "the first of two": "a4 b4 -a c4 -b -c", "split": "a20 -a b4 c4 -b -c",
          "split, and the rest is too small": "a20 -a b12 c12 -b -c",
          "split in three": "a30 -a b10 c10 d10 -b -c -d", "three joined": "a20 b20 c20 -a -b -c d60 -d", "two joined": "a20 b20 -a -b c40 -c",
          "two joined, freed in reverse": "a20 b20 -b -a c40 -c", "the outer two are not joined": "a20 b20 c20 -a -c d40 -b -d",
          "the last two joined": "a20 b20 c20 -b -c d40 -a -d", "joined and split again": "a20 b20 -a -b c30 d10 -c -d", "kept behind": "a20 -a b20",
          "three times in turn": "a20 -a b20 -b c20 -c", "growing": "a4 -a b8 -b c16 -c", "shrinking": "a16 -a b8 -b c4 -c",
          "the smaller gap fits": "a20 b4 c10 d4 -a -c e10 -b -d -e", "the first gap fits": "a10 b4 c20 d4 -a -c e10 -b -d -e",
          "only the second gap fits": "a4 b4 c20 d4 -a -c e10 -b -d -e", "freed and held": "a20 b20 -a c10 d10 -b -c -d",
          "behind a gap": "a20 b20 -a c30 -b -c", "a gap of the last": "a20 b20 -b c30 -a -c", "both": "a20 -a b20 c20 -b -c"}


@scenario("Memory freed earlier in the graph's order is used again by a later allocation.", control="one",
          variants={name: dict(text=text) for name, text in CHAINS.items()}, each={"unit": tuple(SIZES)}, open=True)
def memory_is_used_again_in_a_graph(t, text, unit):
    stream, count = t.stream(), GraphMemory(t)
    graph, places = captured(t, stream, text, SIZES[unit])
    write_offsets(t, places, SIZES[unit])
    executable = t.instantiate(graph)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    count("launched")


@scenario("Branches beside each other get memory of their own; a branch that waits for the other's free gets the same.", control="beside",
          variants={"beside": dict(fork="first"), "after the free": dict(fork="free"), "after the allocation": dict(fork="alloc"),
                    "after the free, and larger": dict(fork="free", second=2), "joined, and twice as large": dict(fork="first", third=2),
                    "three branches": dict(fork="first", more=True)},
          each={"size": ("4 KiB", "20 MiB")}, open=True)
def memory_of_branches(t, fork, size, second=1, third=0, more=False):
    number, unit = size.split()
    unit, (a, b, c), count = int(number) * SIZES[unit], [t.stream() for _ in range(3)], GraphMemory(t)
    t.begin(a)
    use(t, a, t.spare.ptr)
    if fork == "first":
        t.follow(b, a)
        if more:
            t.follow(c, a)
    places = blocks(t, a, "a1", unit)
    if fork == "alloc":
        t.follow(b, a)
    blocks(t, a, "-a", places=places)
    if fork == "free":
        t.follow(b, a)
    blocks(t, b, f"b{second} -b", unit, places=places)
    if more:
        blocks(t, c, "c1 -c", unit, places=places)
        t.follow(a, c)
    t.follow(a, b)
    if third:
        blocks(t, a, f"d{third} -d", unit, places=places)
    graph = t.end(a)
    t.graph(graph)
    write_offsets(t, places, unit)
    executable = t.instantiate(graph)
    t.cudaGraphLaunch(executable, a)
    t.cudaStreamSynchronize(a)
    count("launched")


@scenario("Memory that one branch frees is used by what comes after the join of the two.", control="beside",
          variants={"beside": dict(after=False), "after the join": dict(after=True)}, each={"size": ("4 KiB", "20 MiB")}, open=True)
def memory_freed_in_one_branch(t, after, size):
    number, unit = size.split()
    unit, a, b, count = int(number) * SIZES[unit], t.stream(), t.stream(), GraphMemory(t)
    t.begin(a)
    places = blocks(t, a, "a1", unit)
    t.follow(b, a)
    blocks(t, b, "-a", places=places)
    use(t, a, t.spare.ptr)
    if after:
        t.follow(a, b)
    blocks(t, a, "b1 -b", unit, places=places)
    t.follow(a, b)
    graph = t.end(a)
    write_offsets(t, places, unit)
    t.replay(graph, a)
    count("launched")


@scenario("Each graph has addresses of its own, from a whole 32 MiB on.", control="two graphs",
          variants={"two graphs": dict(texts=("a4 -a", "a4 -a")), "large ones": dict(texts=("a20480 b20480 -a -b", "a40960 -a", "a4 -a")),
                    "kept": dict(texts=("a4", "a4", "a4"))}, each={"launched": ("yes", "no")})
def each_graph_has_addresses_of_its_own(t, texts, launched):
    stream, ranges = t.stream(), []
    for text in texts:
        graph, places = captured(t, stream, text, 1 << 10)
        if launched == "yes":
            t.replay(graph, stream)
        ends = [place + int(step[1:]) * 1024 for step in text.split() if step[0] != "-" for place in [places[step[0]]]]
        ranges.append((min(places.values()), max(ends)))
    t.note("whole pages", [start % PAGE == 0 for start, _ in ranges])
    ranges.sort()
    t.note("apart", all(end <= start for (_, end), (start, _) in zip(ranges, ranges[1:])))


@scenario("The addresses of a destroyed graph are given to a later one, unless its memory is held.", control="alive", isolated=True,
          variants={"alive": dict(destroy=False), "destroyed": dict(destroy=True), "destroyed after a launch": dict(destroy=True, launch=True),
                    "memory held": dict(destroy=True, launch=True, text="a4"), "memory freed": dict(destroy=True, launch=True, text="a4", free=True)},
          open=True)
def addresses_of_a_destroyed_graph(t, destroy, launch=False, text="a4 -a", free=False):
    stream, seen = t.stream(), []
    for _ in range(3):
        graph, places = captured(t, stream, text, 1 << 10)
        seen.append(places["a"])
        executable = t.instantiate(graph)
        if launch:
            t.cudaGraphLaunch(executable, stream)
            t.cudaStreamSynchronize(stream)
        if free:
            t.cudaFreeAsync(places["a"], stream)
            t.cudaStreamSynchronize(stream)
        if destroy:
            t.cudaGraphExecDestroy(executable)
            t.cudaGraphDestroy(graph)
    t.note("seen before", [place in seen[:number] for number, place in enumerate(seen)])
