"""The current pool of the device: what is taken from it, and what is not."""
from tests.conformance.counting import MIB, GraphMemory, PoolMemory, captured, from_pool, make_pool
from tests.conformance.harness import MODES, scenario


def _pools(t, current=True):
    """(own pool, default pool, their counters); the own one is made current."""
    pool, (_, default) = make_pool(t), t.cudaDeviceGetDefaultMemPool(0)
    if current:
        t.cudaDeviceSetMemPool(0, pool)
    return pool, default, PoolMemory(t, pool), PoolMemory(t, default)


def _both(own, plain, label):
    own(f"own pool, {label}"), plain(f"default pool, {label}")


@scenario("The current pool is the default one until another is set; it is the device's, for all threads.", control="default",
          variants={"default": dict(sets=()), "own": dict(sets=("own",)), "own and back": dict(sets=("own", "default")), "twice": dict(sets=("own", "own"))},
          each={"thread": ("same", "other")})
def setting_the_current_pool(t, sets, thread):
    pool, (_, default) = make_pool(t), t.cudaDeviceGetDefaultMemPool(0)
    known = {"own": int(pool), "default": int(default)}
    for which in ("start", *sets):
        if which != "start":
            t.here_or_there(thread, lambda: t.cudaDeviceSetMemPool(0, pool if which == "own" else default))
        _, current = t.cudaDeviceGetMemPool(0)
        t.note(which, [name for name, handle in known.items() if handle == int(current)])
    t.note("default", int(t.cudaDeviceGetDefaultMemPool(0)[1]) == int(default))


@scenario("cudaMallocAsync takes from the current pool, cudaMallocFromPoolAsync from the one it names, cudaMalloc from none.", control="cudaMallocAsync",
          variants={"cudaMallocAsync": dict(call="plain"), "cudaMallocFromPoolAsync, own": dict(call="own"),
                    "cudaMallocFromPoolAsync, default": dict(call="default"),
                    "cudaMalloc": dict(call="malloc")}, each={"current": ("own", "default"), "thread": ("same", "other")})
def which_pool_is_taken_from(t, call, current, thread):
    stream = t.stream()
    pool, default, own, plain = _pools(t, current == "own")

    def allocate():
        if call == "malloc":
            return t.cudaMalloc(5 * MIB)[1]
        return t.cudaMallocAsync(5 * MIB, stream)[1] if call == "plain" else from_pool(t, 5 * MIB, pool if call == "own" else default, stream)
    ptr = t.here_or_there(thread, allocate)
    _both(own, plain, "allocated")
    if call != "malloc":
        t.cudaFreeAsync(int(ptr), stream)
    t.cudaStreamSynchronize(stream)
    _both(own, plain, "freed")


@scenario("Memory goes back to the pool it came from, whichever is current by then.", control="as it was",
          variants={"as it was": dict(change=None), "default pool again": dict(change="default"), "another": dict(change="another")})
def freeing_after_the_current_pool_changed(t, change):
    stream = t.stream()
    pool, default, own, plain = _pools(t)
    ptr = int(t.cudaMallocAsync(5 * MIB, stream)[1])
    if change:
        t.cudaDeviceSetMemPool(0, default if change == "default" else make_pool(t))
    t.cudaFreeAsync(ptr, stream)
    t.cudaStreamSynchronize(stream)
    _both(own, plain, "freed")
    t.cudaMallocAsync(5 * MIB, stream)
    _both(own, plain, "allocated again")


@scenario("A captured allocation takes from graph memory, whichever pool is current or named.", control="outside",
          variants={"outside": dict(capture=False), "captured": dict(capture=True)},
          each={"call": ("cudaMallocAsync", "cudaMallocFromPoolAsync"), "mode": MODES})
def a_captured_allocation_and_the_pools(t, capture, call, mode):
    stream, graph_memory = t.stream(), GraphMemory(t)
    pool, default, own, plain = _pools(t)

    def look(label):
        _both(own, plain, label)
        graph_memory(f"graph memory, {label}")

    def allocate():
        return int(t.cudaMallocAsync(MIB, stream)[1]) if call == "cudaMallocAsync" else from_pool(t, MIB, pool, stream)
    if capture:
        t.begin(stream, mode)
        ptr = allocate()
        graph = t.end(stream)
        t.graph(graph)
        look("captured")
        executable = t.instantiate(graph)
        t.cudaGraphLaunch(executable, stream)
        look("launched")
    else:
        ptr = allocate()
        look("allocated")
    t.cudaFreeAsync(ptr, stream)
    t.cudaStreamSynchronize(stream)
    look("freed")
    if capture:
        t.cudaDeviceGraphMemTrim(0)
        look("trimmed")
    t.recovered(stream)


@scenario("A trim of a pool leaves graph memory alone, and a trim of graph memory the pools.", control="neither",
          variants={"neither": dict(trims=()), "pool": dict(trims=("pool",)), "graph memory": dict(trims=("graph",)), "both": dict(trims=("pool", "graph"))})
def each_trim_has_its_own_memory(t, trims):
    stream, graph_memory = t.stream(), GraphMemory(t)
    pool = make_pool(t, 1 << 40)
    own = PoolMemory(t, pool)
    t.cudaFreeAsync(from_pool(t, 20 * MIB, pool, stream), stream)
    t.replay(captured(t, stream, "a20 -a")[0], stream)
    for which in ("start", *trims):
        if which == "pool":
            t.cudaMemPoolTrimTo(pool, 0)
        elif which == "graph":
            t.cudaDeviceGraphMemTrim(0)
        own(f"pool, {which}"), graph_memory(f"graph memory, {which}")
