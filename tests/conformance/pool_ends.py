"""The end of a memory pool: in use, while it is current, inside a capture."""
from tests.conformance.counting import MIB, PoolMemory, captured, from_pool, make_pool, mib, pool_attribute
from tests.conformance.harness import MODES, Buffer, scenario


@scenario("A pool may be destroyed while its memory is used; to free that later hangs or kills the process, one pool later.", control="empty",
          variants={"empty": dict(when="empty"), "freed": dict(when="freed"), "free held up": dict(when="held up"), "in use": dict(when="used")},
          each={"free": ("async", "sync")}, undefined=("in use",))
def destroying_a_pool(t, when, free):
    stream, pool, x = t.stream(), make_pool(t), t.device([0] * 4)
    buffer = Buffer(from_pool(t, 16, pool, stream), 4)
    t.fill(stream, buffer, 3)
    t.cudaStreamSynchronize(stream)
    let_go = t.gate(stream) if when == "held up" else None
    if when != "used":
        t.cudaFreeAsync(buffer.ptr, stream)
    if when == "empty":
        t.cudaStreamSynchronize(stream)
    t.cudaMemPoolDestroy(pool)
    if let_go:
        let_go()
    if when == "used":
        t.axpy(stream, x, buffer, 1)
        t.values(x, stream)
        t.cudaFreeAsync(buffer.ptr, stream) if free == "async" else t.cudaFree(buffer.ptr)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("Memory of a destroyed pool is gone with its free.", control="pool alive",
          variants={"pool alive": dict(destroy=False, free=False), "in use": dict(destroy=True, free=False), "freed": dict(destroy=True, free=True),
                    "freed, pool alive": dict(destroy=False, free=True)}, each={"call": ("memset", "free")}, open=True, undefined=("in use/free", "freed"))
def using_memory_of_a_destroyed_pool(t, destroy, free, call):
    stream, pool = t.stream(), make_pool(t)
    ptr = from_pool(t, 4096, pool, stream)
    if destroy:
        t.cudaMemPoolDestroy(pool)
    if free:
        t.cudaFreeAsync(ptr, stream)
        t.cudaStreamSynchronize(stream)
    if call == "memset":
        t.cudaMemsetAsync(ptr, 0, 16, stream)
    else:
        t.cudaFreeAsync(ptr, stream)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("Destroying the default pool is refused; a pool that is current leaves its place to the default one.", control="own",
          variants={"own": dict(which="own"), "default": dict(which="default"), "current": dict(which="current"),
                    "current, in use": dict(which="current", used=True)}, undefined=("current, in use",))
def destroying_the_default_or_current_pool(t, which, used=False):
    stream, (_, default) = t.stream(), t.cudaDeviceGetDefaultMemPool(0)
    pool = default if which == "default" else make_pool(t)
    if which == "current":
        t.cudaDeviceSetMemPool(0, pool)
    ptr = int(t.cudaMallocAsync(MIB, stream)[1]) if used else 0
    t.cudaMemPoolDestroy(pool)
    _, current = t.cudaDeviceGetMemPool(0)
    t.note("the default pool is current", int(current) == int(default))
    count = PoolMemory(t, default)
    t.cudaMallocAsync(MIB, stream)
    count("allocated")
    if used:
        t.cudaMemsetAsync(ptr, 0, 16, stream)
        t.cudaFreeAsync(ptr, stream)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


CALLS = {"cudaMemPoolGetAttribute": lambda t, p, s: (p, pool_attribute(t, "UsedMemCurrent")), "cudaMemPoolTrimTo": lambda t, p, s: (p, 0),
         "cudaMemPoolSetAttribute": lambda t, p, s: (p, pool_attribute(t, "ReleaseThreshold"), t.u64(0)), "cudaMallocFromPoolAsync": lambda t, p,
         s: (64, p, s),
         "cudaMemPoolDestroy": lambda t, p, s: (p,), "cudaDeviceSetMemPool": lambda t, p, s: (0, p)}


@scenario("A pool that was destroyed is refused; making it the current one is undefined.", control="alive", isolated=("destroyed",),
          undefined=("destroyed/cudaDeviceSetMemPool",),
          variants={"alive": dict(destroy=False), "destroyed": dict(destroy=True)}, each={"call": (*CALLS, "captured")})
def using_a_destroyed_pool(t, destroy, call):
    stream, pool = t.stream(), make_pool(t)
    if destroy:
        t.cudaMemPoolDestroy(pool)
    if call == "captured":
        t.begin(stream)
        t.cudaMallocFromPoolAsync(64, pool, stream)
        t.end(stream)
    else:
        getattr(t, call)(*CALLS[call](t, pool, stream))
    t.recovered()


@scenario("A graph needs the pool that it named in the capture no more: it launches and is instantiated after the pool's end.", control="never",
          variants={"never": dict(when="never"), "after the capture": dict(when="captured"), "after instantiating": dict(when="instantiated"),
                    "after a launch": dict(when="launched")}, each={"memory": ("freed", "kept")})
def a_graph_and_the_end_of_its_pool(t, when, memory):
    stream, pool = t.stream(), make_pool(t)
    count = PoolMemory(t, pool)
    graph, places = captured(t, stream, "a4 -a" if memory == "freed" else "a4", 1 << 10, pool)
    count("captured")
    for step in ("captured", "instantiated", "launched"):
        if step == "instantiated":
            executable = t.instantiate(graph)
        elif step == "launched":
            t.cudaGraphLaunch(executable, stream)
            t.cudaStreamSynchronize(stream)
        if step == when:
            t.cudaMemPoolDestroy(pool)
    if when == "never":
        count("launched")
    if memory == "kept":
        t.cudaFreeAsync(places["a"], stream)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    if memory == "kept":
        t.cudaFreeAsync(places["a"], stream)
    t.cudaGraphExecDestroy(executable)
    _, params = t.cudaGraphMemAllocNodeGetParams(t.cudaGraphGetRootNodes(graph, 1)[1][0])
    t.note("parameters", [mib(int(params.bytesize)), params.poolProps.allocType.name, params.poolProps.location.type.name])
    t.replay(graph, stream)
    t.recovered(stream)


@scenario("Destroying a pool inside a capture breaks it, where the mode forbids it.", control="after",
          variants={"after": dict(inside=False), "inside": dict(inside=True)}, each={"mode": MODES, "used": ("used in it", "not used")})
def destroying_a_pool_in_a_capture(t, inside, mode, used):
    stream, pool = t.stream(), make_pool(t)
    t.begin(stream, mode)
    t.fill(stream, t.spare, 1)
    ptr = from_pool(t, 4096, pool, stream) if used == "used in it" else 0
    if inside:
        t.cudaMemPoolDestroy(pool)
    t.status(stream)
    if ptr:
        t.cudaFreeAsync(ptr, stream)
    graph = t.end(stream)
    if not inside:
        t.cudaMemPoolDestroy(pool)
    if graph is not None:
        t.graph(graph)
        t.replay(graph, stream, 2)
    t.recovered(stream)
