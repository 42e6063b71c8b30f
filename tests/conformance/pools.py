"""Memory pools counted: attributes, used and reserved memory, what gives memory back."""
import time
from dataclasses import dataclass

from tests.conformance.building import finishes
from tests.conformance.counting import FLAGS, MIB, PoolMemory, from_pool, make_pool, mib, pool_attribute
from tests.conformance.harness import scenario

KEEP_ALL = 1 << 40          # a release threshold that is never passed
ATTRIBUTES = ("ReleaseThreshold", "ReservedMemCurrent", "ReservedMemHigh", "UsedMemCurrent", "UsedMemHigh", *FLAGS)
FOUR = (40, 20, 30, 40)     # MiB; together 160 reserved


def _fill_up(t, pool, stream, sizes, unit=MIB):
    return [from_pool(t, size * unit, pool, stream) for size in sizes]


def _offsets(t, places, unit=1):
    t.note("at", [(place - places[0]) // unit for place in places])


@scenario("A pool starts empty, with threshold 0 and all three ways of reuse on; the default pool too.", control="new",
          variants={"new": dict(which="new"), "of at most 64 MiB": dict(which="new", maxSize=64 * MIB), "default": dict(which="cudaDeviceGetDefaultMemPool"),
                    "current": dict(which="cudaDeviceGetMemPool")})
def attributes_of_a_pool(t, which, maxSize=0):
    pool = make_pool(t, maxSize=maxSize) if which == "new" else getattr(t, which)(0)[1]
    for name in ATTRIBUTES:
        _, value = t.cudaMemPoolGetAttribute(pool, pool_attribute(t, name))
        if which == "new" or "Mem" not in name:
            t.note(name, [type(value).__name__, int(value)])


@scenario("Used memory counts what was asked for, at the call; reserved memory grows in steps and is given back by the wait.", control="1 B",
          variants={f"{size} {unit}": dict(size=size * {"B": 1, "KiB": 1 << 10, "MiB": MIB}[unit]) for size, unit in (
              (1, "B"), (512, "B"), (513, "B"), (4, "KiB"), (1, "MiB"), (2, "MiB"), (3, "MiB"), (31, "MiB"), (32, "MiB"), (33, "MiB"), (64, "MiB"),
               (100, "MiB"))},
          each={"pool": ("own", "default"), "work": ("ready", "held up")})
def one_allocation_of_a_pool(t, size, pool, work):
    stream = t.stream()
    pool = make_pool(t) if pool == "own" else t.cudaDeviceGetDefaultMemPool(0)[1]
    count = PoolMemory(t, pool)
    let_go = t.gate(stream) if work == "held up" else None
    ptr = from_pool(t, size, pool, stream)
    count("allocated")
    t.cudaFreeAsync(ptr, stream)
    count("freed")
    if let_go:
        let_go()
    t.cudaStreamSynchronize(stream)
    count("waited")


SEVERAL = {"small and large": ((100, 100, MIB, 2 * MIB, 40 * MIB, 3 * MIB, 30 * MIB), 1), "steps of 512": ((1, 512, 513, 1024, 4096, 100), 1),
           **{", ".join(map(str, sizes)): (sizes, MIB) for sizes in (FOUR, (10, 100), (20, 20, 20, 20), (8, 40), (40, 8), (31, 33), (1, 32), (33, 1),
           (40, 40),
                                                                  (30, 40, 40), (8, 90), (16, 16), (32, 32), (16, 17))}}


@scenario("A pool's allocations lie one after the other, in steps of 512 bytes, on pages of 32 MiB.", control="16, 16",
          variants={name: dict(sizes=sizes, unit=unit) for name, (sizes, unit) in SEVERAL.items()}, each={"threshold": ("0", "large")})
def several_allocations_of_a_pool(t, sizes, unit, threshold):
    stream, pool = t.stream(), make_pool(t, KEEP_ALL if threshold == "large" else 0)
    count = PoolMemory(t, pool)
    places = _fill_up(t, pool, stream, sizes, unit)
    _offsets(t, places, unit)
    count("allocated")
    for place in places:
        t.cudaFreeAsync(place, stream)
    count("freed")
    t.cudaStreamSynchronize(stream)
    count("waited")
    places = _fill_up(t, pool, stream, sizes[::-1], unit)
    _offsets(t, places, unit)
    count("again")


@scenario("A wait gives back free pages while more is reserved than the threshold.", control="0 MiB",
          variants={f"{mibs} MiB": dict(threshold=mibs * MIB) for mibs in (0, 1, 31, 32, 33, 48, 64, 96, 128, 159, 160, 161, 1 << 20)},
          each={"held": ("nothing", "the first", "the second", "the last")}, open=True)
def the_release_threshold(t, threshold, held):
    stream, pool = t.stream(), make_pool(t, threshold)
    count = PoolMemory(t, pool)
    places = _fill_up(t, pool, stream, FOUR)
    keep = {"nothing": None, "the first": 0, "the second": 1, "the last": 3}[held]
    for number, place in enumerate(places):
        if number != keep:
            t.cudaFreeAsync(place, stream)
    count("freed")
    t.cudaStreamSynchronize(stream)
    count("waited")
    if keep is not None:
        t.cudaFreeAsync(places[keep], stream)
        t.cudaStreamSynchronize(stream)
        count("all freed")


@dataclass
class _Beside:
    """What a scenario made before it counts: nothing of this is made, or waited for, by the way."""
    pool: object
    stream: object
    event: object
    ptr: int


def _event(t, s, beside, wait):
    t.cudaEventRecord(beside.event, s)
    if wait:
        t.cudaEventSynchronize(beside.event)
    else:
        while t.raw.cudaEventQuery(beside.event)[0] != 0:
            time.sleep(0.005)


WAITS = {"waiting for the stream": lambda t, s, o: t.cudaStreamSynchronize(s), "waiting for the device": lambda t, s, o: t.cudaDeviceSynchronize(),
         "waiting for an event": lambda t, s, o: _event(t, s, o, wait=True), "waiting for another stream": lambda t, s, o: t.cudaStreamSynchronize(o.stream),
         "asking the stream": lambda t, s, o: finishes(t, s), "asking for an event": lambda t, s, o: _event(t, s, o, wait=False),
         "cudaFree of other memory": lambda t, s, o: t.cudaFree(o.ptr), "cudaMemcpy": lambda t, s, o: t.peek(t.spare),
         "cudaMalloc": lambda t, s, o: t.cudaMalloc(64), "a trim": lambda t, s, o: t.cudaMemPoolTrimTo(o.pool, 0), "time": lambda t, s, o: None,
         "the next allocation": lambda t, s, o: from_pool(t, MIB, o.pool, s), "an allocation of another pool": lambda t, s, o: t.cudaMallocAsync(MIB, s),
         "a kernel": lambda t, s, o: t.fill(s, t.spare, 1), "another thread's wait": lambda t, s, o: t.thread(lambda: t.cudaStreamSynchronize(s))}


@scenario("Memory is given back by a wait for the stream of the free, not by asking, by time, or by a wait for other work.", control="waiting for the stream",
          variants={name: dict(wait=wait) for name, wait in WAITS.items()}, each={"threshold": ("0", "48 MiB")}, open=True)
def what_gives_a_pools_memory_back(t, wait, threshold):
    asked = wait in (WAITS["asking the stream"], WAITS["asking for an event"])      # when the work is over is no rule

    stream, pool = t.stream(), make_pool(t, int(threshold.split()[0]) * MIB)
    beside = _Beside(pool, t.stream(), t.event(), t._put("cudaMalloc", 64))
    t.fill(stream, t.spare, 1)
    count = PoolMemory(t, pool)
    for place in _fill_up(t, pool, stream, FOUR):
        t.cudaFreeAsync(place, stream)
    count("freed")
    time.sleep(0.05)
    wait(t, stream, beside)
    count("then")
    t.cudaStreamSynchronize(stream)
    count("waited")
    (t.raw if asked else t).cudaGetLastError()
    t.recovered(stream)


@scenario("A trim to n bytes gives back free pages while n stay reserved.", control="0 MiB",
          variants={**{f"{mibs} MiB": dict(keep=mibs * MIB) for mibs in (0, 1, 31, 32, 33, 63, 64, 65, 96, 100, 159, 160, 200)}, "1 B": dict(keep=1)},
          each={"held": ("nothing", "the first", "the last")}, open=True)
def trimming_a_pool(t, keep, held):
    stream, pool = t.stream(), make_pool(t, KEEP_ALL)
    count = PoolMemory(t, pool)
    places = _fill_up(t, pool, stream, FOUR)
    kept = {"nothing": None, "the first": 0, "the last": 3}[held]
    for number, place in enumerate(places):
        if number != kept:
            t.cudaFreeAsync(place, stream)
    t.cudaStreamSynchronize(stream)
    count("waited")
    t.cudaMemPoolTrimTo(pool, keep)
    count("trimmed")
    places = _fill_up(t, pool, stream, (20, 20))
    count("allocated again")


@scenario("A trim takes back nothing while the free is not known to be done.", control="waited",
          variants={"waited": dict(when="waited"), "not waited": dict(when="slept"), "held up": dict(when="held up"), "still used": dict(when="used")},
          open=True)
def trimming_a_pool_before_the_free_is_done(t, when):
    stream, pool = t.stream(), make_pool(t, KEEP_ALL)
    count = PoolMemory(t, pool)
    ptr = from_pool(t, 40 * MIB, pool, stream)
    let_go = t.gate(stream) if when == "held up" else None
    if when != "used":
        t.cudaFreeAsync(ptr, stream)
    if when in ("waited", "used"):
        t.cudaStreamSynchronize(stream)
    else:
        time.sleep(0.05)
    t.cudaMemPoolTrimTo(pool, 0)
    count("trimmed")
    if let_go:
        let_go()
    t.cudaStreamSynchronize(stream)
    t.cudaMemPoolTrimTo(pool, 0)
    count("trimmed again")


@scenario("A pool of limited size reserves whole pages up to its limit; what does not fit is refused.", control="no limit",
          variants={"no limit": dict(limit=0), **{f"{mib(limit)}": dict(limit=limit) for limit in (1, MIB, 32 * MIB, 33 * MIB, 64 * MIB, 100 * MIB)}})
def a_pool_of_limited_size(t, limit):
    stream, pool = t.stream(), make_pool(t, maxSize=limit)
    count = PoolMemory(t, pool)
    for size in (1, 32, 40, 100):
        ptr = from_pool(t, size * MIB, pool, stream)
        count(f"asked for {size}")
        if size == 40 and ptr:
            t.cudaFreeAsync(ptr, stream)
    t.recovered(stream)


VALUES = {"0": 0, "5": 5, "48 MiB": 48 * MIB, "all ones": (1 << 64) - 1}


@scenario("The threshold takes any size; high marks take 0, current values nothing.", control="ReleaseThreshold to 0",
          variants={f"{name} to {text}": dict(name=name, value=value) for name in ATTRIBUTES[:5] for text, value in VALUES.items()})
def setting_an_attribute_of_a_pool(t, name, value):
    stream, pool = t.stream(), make_pool(t, KEEP_ALL)
    count = PoolMemory(t, pool)
    held, _ = _fill_up(t, pool, stream, (10, 40))
    t.cudaFreeAsync(held, stream)
    t.cudaStreamSynchronize(stream)
    count("before")
    t.cudaMemPoolSetAttribute(pool, pool_attribute(t, name), t.u64(value))
    count("after")
    t.note("threshold", str(int(t.cudaMemPoolGetAttribute(pool, pool_attribute(t, "ReleaseThreshold"))[1])))
    t.recovered(stream)


@scenario("A reuse flag takes any int and is 0 or 1.", control="1",
          variants={text: dict(value=value) for text, value in {"1": 1, "0": 0, "7": 7, "-1": -1, "1 << 31": 1 << 31, "True": True, "1.0": 1.0,
                    "None": None, "u64": "u64"}.items()},
          each={"flag": FLAGS}, open=True)
def setting_a_reuse_flag(t, value, flag):
    pool = make_pool(t)
    t.attempt("cudaMemPoolSetAttribute", pool, pool_attribute(t, flag), t.u64(1) if value == "u64" else value)
    t.note("flags", [int(t.cudaMemPoolGetAttribute(pool, pool_attribute(t, name))[1]) for name in FLAGS])
    t.recovered()


@scenario("Sizes among a pool's attributes are 64-bit values of their own type; a number is not taken.", control="u64",
          variants={"u64": dict(make="u64"), "int": dict(make=int), "None": dict(make=None), "float": dict(make=float)},
          each={"name": ("ReleaseThreshold", "UsedMemHigh")}, open=True)
def the_type_of_a_pool_attribute(t, make, name):
    pool = make_pool(t)
    t.attempt("cudaMemPoolSetAttribute", pool, pool_attribute(t, name), t.u64(0) if make == "u64" else make and make(0))
    t.recovered()


@scenario("cudaFree of a pool's memory gives it back at once, and leaves it counted as used.", control="cudaFreeAsync",
          variants={"cudaFreeAsync": dict(calls=("async",)), "cudaFree": dict(calls=("sync",)), "cudaFree twice": dict(calls=("sync", "sync")),
                    "cudaFreeAsync, then cudaFree": dict(calls=("async", "sync")), "cudaFree, then cudaFreeAsync": dict(calls=("sync", "async"))},
          each={"size": ("1 MiB", "40 MiB")})
def cuda_free_of_a_pools_memory(t, calls, size):
    stream, pool = t.stream(), make_pool(t)
    count = PoolMemory(t, pool)
    size = int(size.split()[0]) * MIB
    ptr = from_pool(t, size, pool, stream)
    for call in calls:
        t.cudaFree(ptr) if call == "sync" else t.cudaFreeAsync(ptr, stream)
        count(call)
    t.cudaStreamSynchronize(stream)
    count("waited")
    ptr = from_pool(t, size, pool, stream)
    count("again")
    t.cudaFreeAsync(ptr, stream)
    t.cudaStreamSynchronize(stream)
    count("freed again")
    t.recovered(stream)
