"""Bad input to the calls on memory, and requests that are too large."""
from tests.conformance.building import chain, fill
from tests.conformance.counting import HUGE, MIB, GraphMemory, PoolMemory, blocks, captured, from_pool, graph_attribute, make_pool, pool_attribute, pool_props
from tests.conformance.harness import Buffer, scenario

SIZES = {"5": 5, "-1": -1, "2 ** 64": 1 << 64, "text": "5", "None": None, "5.0": 5.0, "True": True, "5.9": 5.9, "list": [5]}
SIZED = {"cudaMalloc": lambda t, size, pool, s: (size,), "cudaMallocAsync": lambda t, size, pool, s: (size, s),
         "cudaMallocFromPoolAsync": lambda t, size, pool, s: (size, pool, s), "cudaMemPoolTrimTo": lambda t, size, pool, s: (pool, size)}


@scenario("A size is a number from 0 to 2 ** 64 - 1; anything else is refused in Python.", control="5",
          variants={name: dict(size=size) for name, size in SIZES.items()}, each={"call": tuple(SIZED)}, open=True)
def a_size_that_is_none(t, size, call):
    stream, pool = t.stream(), make_pool(t)
    t.attempt(call, *SIZED[call](t, size, pool, stream))
    t.recovered(stream)


@scenario("A size that Python refuses leaves the capture as it was.", control="5",
          variants={name: dict(size=size) for name, size in SIZES.items()}, each={"call": ("cudaMallocAsync", "cudaMallocFromPoolAsync")}, open=True)
def a_size_that_is_none_in_a_capture(t, size, call):
    stream, pool, x = t.stream(), make_pool(t), t.device([0] * 4)
    t.begin(stream)
    t.fill(stream, x, 1)
    t.attempt(call, *SIZED[call](t, size, pool, stream))
    t.status(stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
    t.recovered(stream)


@scenario("An allocation of nothing is a null pointer; of too much, a refusal. A capture goes on.", control="some",
          variants={"some": dict(size=64), "nothing": dict(size=0), "too much": dict(size=HUGE)},
          each={"pool": ("default", "own"), "where": ("outside", "in a capture")})
def nothing_and_too_much_of_a_pool(t, size, pool, where):
    stream, x = t.stream(), t.device([0] * 4)
    pool = t._put("cudaDeviceGetDefaultMemPool", 0) if pool == "default" else make_pool(t)
    count = PoolMemory(t, pool)
    if where == "in a capture":
        t.begin(stream)
        t.fill(stream, x, 1)
    ptr = from_pool(t, size, pool, stream)
    t.note("address", ptr != 0)
    if where == "in a capture":
        t.status(stream)
        small = from_pool(t, 64, pool, stream)
        t.cudaFreeAsync(small, stream)
        graph = t.end(stream)
        t.graph(graph)
        t.replay(graph, stream)
        t.values(x, stream)
    else:
        count("asked")
    t.cudaGetLastError()
    t.recovered(stream)


@scenario("One graph may ask for about twice the memory of the device and no more; nothing is taken yet.", control="half",
          variants={"half": dict(parts=(0.5,)), "all": dict(parts=(1,)), "nearly twice": dict(parts=(1.9,)), "more than twice": dict(parts=(2.2,)),
                    "often": dict(parts=(8,)),
                    "in parts": dict(parts=(0.7, 0.7)), "in too many parts": dict(parts=(0.7, 0.7, 0.7, 0.7))}, open=True)
def more_than_the_device_in_a_graph(t, parts):
    stream, count, x = t.stream(), GraphMemory(t), t.device([0] * 4)
    total = t.raw.cudaMemGetInfo()[2]
    t.begin(stream)
    t.fill(stream, x, 1)
    for part in parts:
        t.cudaMallocAsync(int(part * total) // MIB * MIB, stream)
        t.status(stream)
    graph = t.end(stream)
    t.graph(graph)
    t.cudaGraphDestroy(graph)
    count("captured and destroyed")
    t.replay(captured(t, stream, "a4 -a")[0], stream)
    t.recovered(stream)


@scenario("A graph that asks for more than the device has is refused at the launch, and takes the rest of the memory with it for good.", control="small",
          isolated=("launched", "uploaded"), alone=True,
          variants={"small": dict(part=0), "launched": dict(part=1.4, call="Launch"), "uploaded": dict(part=1.4, call="Upload")}, open=True)
def a_graph_larger_than_the_device(t, part, call="Launch"):
    stream, count = t.stream(), GraphMemory(t)
    t.recovered(stream)
    size = int(part * t.raw.cudaMemGetInfo()[2]) // MIB or 1
    graph, places = captured(t, stream, f"a{size}")
    small = t.instantiate(captured(t, stream, "a1 -a")[0])
    executable = t.instantiate(graph)

    def look(label):
        t.note(label, [one > 0 for one in count.now()[::2]])
    getattr(t, f"cudaGraph{call}")(executable, stream)
    t.cudaStreamSynchronize(stream)
    look(call)
    t.cudaFreeAsync(places["a"], stream) if not part else None
    t.cudaDeviceGraphMemTrim(0)
    look("trimmed")
    t.cudaGraphExecDestroy(executable)
    t.cudaGraphDestroy(graph)
    t.cudaDeviceSynchronize()
    t.cudaDeviceGraphMemTrim(0)
    look("destroyed and trimmed")
    t.cudaMallocAsync(64, stream)
    t.cudaGraphLaunch(small, stream)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


WHAT = ("a pool's", "twice", "inside it", "cudaMalloc's", "cudaMalloc's, twice", "null", "None", "pageable", "pinned", "nobody's",
        "a graph's, launched", "a graph's, not launched",
        "text", "-1")


@scenario("cudaFreeAsync takes the start of any allocation of the device, once.", control="a pool's",
          variants={what: dict(what=what) for what in WHAT}, each={"wait": ("waited", "at once")}, open=True)
def what_cuda_free_async_takes(t, what, wait):
    stream = t.stream()
    ptr = {"null": 0, "None": None, "nobody's": 64, "text": "5", "-1": -1}.get(what, 0)
    if what in ("a pool's", "twice", "inside it"):
        ptr = int(t.cudaMallocAsync(64, stream)[1])
    elif what.startswith("cudaMalloc"):
        ptr = t._put("cudaMalloc", 64)
    elif what.startswith("a graph's"):
        graph, places = captured(t, stream, "a4")
        ptr, executable = places["a"], t.instantiate(graph)
        if what == "a graph's, launched":
            t.cudaGraphLaunch(executable, stream)
    elif what in ("pageable", "pinned"):
        ptr = (t.pageable if what == "pageable" else t.pinned)([0] * 4).ptr
    if wait == "waited":
        t.cudaStreamSynchronize(stream)
    t.attempt("cudaFreeAsync", ptr + 4 if what == "inside it" else ptr, stream)
    if "twice" in what:
        t.cudaFreeAsync(ptr, stream)
    t.cudaStreamSynchronize(stream)
    t.cudaGetLastError()
    t.recovered(stream)


@scenario("A pool needs a kind of memory and a place that is there.", control="right",
          variants={what: dict(what=what) for what in ("right", "None", "zero struct", "no location", "device 5", "device -1", "allocation type",
                    "a number", "usage 1", "security attributes")},
          open=True)
def what_a_pool_is_made_of(t, what):
    if what in ("None", "a number"):
        props = None if what == "None" else 1
    else:
        props = t.raw.cudaMemPoolProps() if what in ("zero struct", "no location") else pool_props(t)
    if what == "no location":
        props.allocType = t.raw.cudaMemAllocationType.cudaMemAllocationTypePinned
    elif what.startswith("device"):
        props.location.id = int(what.split()[1])
    elif what == "allocation type":
        props.allocType = t.raw.cudaMemAllocationType.cudaMemAllocationTypeInvalid
    elif what == "usage 1":
        props.usage = 1
    elif what == "security attributes":
        props.win32SecurityAttributes = 0
    t.attempt("cudaMemPoolCreate", props)
    t.recovered()


POOLED = {"cudaMemPoolDestroy": lambda t, p, s: (p,), "cudaMemPoolTrimTo": lambda t, p, s: (p, 0),
          "cudaMemPoolGetAttribute": lambda t, p, s: (p, pool_attribute(t, "UsedMemHigh")),
          "cudaMemPoolSetAttribute": lambda t, p, s: (p, pool_attribute(t, "ReleaseThreshold"), t.u64(0)), "cudaDeviceSetMemPool": lambda t, p, s: (0, p),
          "cudaMallocFromPoolAsync": lambda t, p, s: (64, p, s)}


@scenario("No pool is no pool: every call refuses it.", control="a pool",
          variants={"a pool": dict(pool="made"), "0": dict(pool=0), "None": dict(pool=None), "text": dict(pool="x")},
          each={"call": (*POOLED, "captured")}, open=True)
def a_pool_that_is_none(t, pool, call):
    stream, x = t.stream(), t.device([0] * 4)
    pool = make_pool(t) if pool == "made" else pool
    if call == "captured":
        t.begin(stream)
        t.fill(stream, x, 1)
        t.attempt("cudaMallocFromPoolAsync", 64, pool, stream)
        t.status(stream)
        t.end(stream)
    else:
        t.attempt(call, *POOLED[call](t, pool, stream))
    t.recovered(stream)


DEVICE = {"cudaDeviceGetMemPool": lambda t, d: (d,), "cudaDeviceGetDefaultMemPool": lambda t, d: (d,), "cudaDeviceGraphMemTrim": lambda t, d: (d,),
          "cudaDeviceSetMemPool": lambda t, d: (d, t._put("cudaDeviceGetDefaultMemPool", 0)),
          "cudaDeviceGetGraphMemAttribute": lambda t, d: (d, graph_attribute(t, "UsedMemCurrent")),
          "cudaDeviceSetGraphMemAttribute": lambda t, d: (d, graph_attribute(t, "UsedMemHigh"), t.u64(0))}


@scenario("A device that is not there has no pools and no graph memory.", control="0",
          variants={text: dict(device=device) for text, device in {"0": 0, "99": 99, "-1": -1, "None": None, "2 ** 31": 1 << 31, "0.0": 0.0}.items()},
          each={"call": tuple(DEVICE)}, open=True)
def a_device_that_is_not_there(t, device, call):
    t.attempt(call, *DEVICE[call](t, device))
    t.recovered()


@scenario("An attribute is a member of its enumeration; a number is not taken, or stands for one.", control="member",
          variants={"member": dict(name="member"), "its number": dict(name="number"), "99": dict(name=99), "-1": dict(name=-1), "None": dict(name=None),
                    "text": dict(name="x")},
          each={"call": ("cudaMemPoolGetAttribute", "cudaDeviceGetGraphMemAttribute")}, open=True)
def an_attribute_that_is_none(t, name, call):
    member = (pool_attribute if "Pool" in call else graph_attribute)(t, "UsedMemHigh")
    first = make_pool(t) if "Pool" in call else 0
    t.attempt(call, first, {"member": member, "number": int(member)}.get(name, name))
    t.recovered()


@scenario("After a refused allocation the capture is whole: what it holds launches.", control="none",
          variants={"none": dict(size=None), "too much": dict(size=HUGE), "nothing": dict(size=0)}, each={"when": ("first", "between", "last")})
def a_refused_allocation_in_a_capture(t, size, when):
    stream, x = t.stream(), t.device([0] * 4)
    t.begin(stream)

    def ask(now):
        if size is not None and now == when:
            t.cudaMallocAsync(size, stream)
            t.info(stream)
    ask("first")
    buffer = Buffer(blocks(t, stream, "a16", 1)["a"], 4)
    t.fill(stream, buffer, 2)
    ask("between")
    t.axpy(stream, x, buffer, 1)
    t.cudaFreeAsync(buffer.ptr, stream)
    ask("last")
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream, 2)
    t.values(x, stream)
    t.cudaGetLastError()
    t.recovered(stream)


@scenario("A refused call on memory is the last error of the thread, once.", control="right",
          variants={"right": dict(bad=False), "refused": dict(bad=True)},
          each={"call": ("cudaMallocAsync", "cudaMemPoolTrimTo", "cudaDeviceGraphMemTrim", "cudaGraphAddMemAllocNode")})
def the_last_error_after_a_call_on_memory(t, bad, call):
    stream, x = t.stream(), t.device([0] * 4)
    if call == "cudaGraphAddMemAllocNode":
        graph, _ = chain(t, [fill(t, x, 1)])
        t.cudaGraphAddMemAllocNode(graph, [], 0, t.alloc_params(0 if bad else 64))
    elif call == "cudaMallocAsync":
        t.cudaMallocAsync(HUGE if bad else 64, stream)
    elif call == "cudaMemPoolTrimTo":
        t.cudaMemPoolTrimTo(0 if bad else make_pool(t), 0)
    else:
        t.cudaDeviceGraphMemTrim(99 if bad else 0)
    for _ in range(2):
        t.cudaPeekAtLastError()
        t.cudaGetLastError()
    t.recovered(stream)
