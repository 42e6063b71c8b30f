"""What every name of the simulator answers inside a capture.

For each probe: begin on a fresh stream, launch, make the one call from this thread or another, read the
status, launch again, end. Twelve rows a probe: three modes, two threads, two kinds of capture stream.
A row is [the call's code, the status after it, the end's code, the kinds of the nodes].
"""
import itertools
import os
import tempfile

from labkit import graph as graphs
from labkit import kernels
from tests.conformance import children
from tests.conformance.harness import MODES, Hung, Tape, canonical

ROWS = ["/".join(row) for row in itertools.product(MODES, ("same", "other"), ("nonblocking", "blocking"))]
PROBES = {}


def probe(name, *cases):
    """Register argument makers: `name` alone, or `name: case` for each. A maker takes (tape, capture stream)
    and returns the arguments, made before the capture; one that is callable is worked out at the call."""
    def register(*makers):
        for case, maker in zip(cases or ("",), makers, strict=True):
            PROBES[f"{name}: {case}" if case else name] = (name, maker)
    return register


def nothing(*names):
    for name in names:
        probe(name)(lambda t, s: ())


# -- the arguments ------------------------------------------------------------------------------------------


def _graph(t):
    return t._put("cudaGraphCreate", 0)


def _empty(t, graph):
    return t._put("cudaGraphAddEmptyNode", graph, [], 0)


def _kernel_graph(t):
    """(graph, kernel node)"""
    graph = _graph(t)
    return graph, t._put("cudaGraphAddKernelNode", graph, [], 0, t.fill_params(t.spare, 1))


def _executable(t, graph):
    return t._put("cudaGraphInstantiate", graph, 0)


def _host_params(t):
    params = t.raw.cudaHostNodeParams()
    params.fn = t.raw.cudaHostFn_t(t.callback(lambda: None))
    t.keep.append(params)
    return params


def _node(t, kind):
    """(graph, node) of one node of a kind."""
    graph = _graph(t)
    if kind == "kernel":
        made = t._put("cudaGraphAddKernelNode", graph, [], 0, t.fill_params(t.spare, 1))
    elif kind == "memset":
        made = t._put("cudaGraphAddMemsetNode", graph, [], 0, t.memset_params(t.spare, 0))
    elif kind == "memcpy":
        made = t._put("cudaGraphAddMemcpyNode1D", graph, [], 0, t.spare.ptr, t.ones.ptr, 16, t.copies("DeviceToDevice"))
    elif kind == "host":
        made = t._put("cudaGraphAddHostNode", graph, [], 0, _host_params(t))
    elif kind in ("alloc", "free"):
        stream = t.stream()
        t._put("cudaStreamBeginCapture", stream, t.mode("Relaxed"))
        t._put("cudaFreeAsync", t._put("cudaMallocAsync", 16, stream), stream)
        graph = t._put("cudaStreamEndCapture", stream)
        made = next(node for node, one in zip(graphs.nodes(graph, cudart=t.raw), graphs.kinds(graph, cudart=t.raw))
                    if one == {"alloc": "MemAlloc", "free": "MemFree"}[kind])
    elif kind == "record":
        made = t._put("cudaGraphAddEventRecordNode", graph, [], 0, t.event())
    elif kind == "wait":
        made = t._put("cudaGraphAddEventWaitNode", graph, [], 0, t.event())
    else:
        made = t._put("cudaGraphAddChildGraphNode", graph, [], 0, _kernel_graph(t)[0])
    return graph, made


def _on(kind, *more):
    """Arguments (executable, node, ...) for a setter of an executable."""
    def arguments(t, s):
        graph, node = _node(t, kind)
        return (_executable(t, graph), node, *(one(t) for one in more))
    return arguments


def _recorded(t, stream=None):
    """An event recorded outside the capture, and done."""
    stream, event = stream or t.stream(), t.event()
    t._put("cudaEventRecord", event, stream)
    t._put("cudaStreamSynchronize", stream)
    return event


def _captured(t, s):
    """An event that the capture records just before the call (by the thread that makes it)."""
    event = t.event()

    def record():
        t.raw.cudaEventRecord(event, s)
        return event
    return record


def _pool(t):
    props = t.raw.cudaMemPoolProps()
    props.allocType = t.raw.cudaMemAllocationType.cudaMemAllocationTypePinned
    props.location.type = t.raw.cudaMemLocationType.cudaMemLocationTypeDevice
    props.location.id = 0
    return props


def _pooled(t):
    stream = t.stream()
    ptr = t._put("cudaMallocAsync", 64, stream)
    t._put("cudaStreamSynchronize", stream)
    return int(ptr)


def _of_a_graph(t):
    """The address of an allocation that a launch of another graph left."""
    stream = t.stream()
    t._put("cudaStreamBeginCapture", stream, t.mode("Relaxed"))
    ptr = t._put("cudaMallocAsync", 16, stream)
    t._put("cudaGraphLaunch", _executable(t, t._put("cudaStreamEndCapture", stream)), stream)
    t._put("cudaStreamSynchronize", stream)
    return int(ptr)


def _own_pool(t):
    return t._put("cudaMemPoolCreate", _pool(t))


def _node_params(t, kind):
    params = t.raw.cudaGraphNodeParams()
    params.type = getattr(t.raw.cudaGraphNodeType, f"cudaGraphNodeType{kind}")
    if kind == "Memset":
        one = t.memset_params(t.spare, 1)
        params.memset.dst, params.memset.value, params.memset.elementSize = one.dst, one.value, one.elementSize
        params.memset.width, params.memset.height = one.width, one.height
    return params


def _conditional(t, s):
    graph = _graph(t)
    params = _node_params(t, "Conditional")
    params.conditional.handle = t._put("cudaGraphConditionalHandleCreate", graph, 0, 0)
    params.conditional.type = t.raw.cudaGraphConditionalNodeType.cudaGraphCondTypeIf
    params.conditional.size = 1
    return (graph, [], *t._edge_data(), 0, params)


def _user_object(t):
    return t._put("cudaUserObjectCreate", 0, t.raw.cudaHostFn_t(t.callback(lambda: None)), 3, 1)


def _retained(t):
    graph, made = _graph(t), _user_object(t)
    t._put("cudaGraphRetainUserObject", graph, made, 1, 0)
    return graph, made


def _edge(t, there):
    graph = _graph(t)
    one, two = _empty(t, graph), _empty(t, graph)
    if there:
        t._put("cudaGraphAddDependencies", graph, [one], [two], *t._edge_data(), 1)
    return graph, [one], [two], *t._edge_data(), 1


def _clone(t, s):
    graph, node = _kernel_graph(t)
    return node, t._put("cudaGraphClone", graph)


def _copy(way, host):
    """Arguments of a copy of 16 bytes."""
    def arguments(t, s):
        make = {"pinned": t.pinned, "pageable": t.pageable, None: t.device}[host]
        one, other = make([0] * 4), t.device([0] * 4)
        to, frm = (other, one) if way == "HostToDevice" else (one, other)
        return to.ptr, frm.ptr, 16, t.copies(way)
    return arguments


def _with(arguments, stream):
    return lambda t, s: (*arguments(t, s), stream(t, s))


def _limit(t):
    return t.raw.cudaLimit.cudaLimitStackSize


def _own(t, s):
    return s


def _other(t, s):
    return t.stream()


def _legacy(t, s):
    return t.stream("legacy")


def _dot(t, s):
    folder = tempfile.mkdtemp()
    t.keep.append(folder)
    return _kernel_graph(t)[0], os.path.join(folder, "graph.dot").encode(), 0


def _instantiate_params(t, s):
    params = t.raw.cudaGraphInstantiateParams()
    t.keep.append(params)
    return _kernel_graph(t)[0], params


# -- Device ---------------------------------------------------------------------------------------------------
nothing("cudaGetDeviceCount", "cudaGetDevice", "cudaDeviceSynchronize", "cudaDeviceReset", "cudaDriverGetVersion",
        "cudaRuntimeGetVersion", "cudaMemGetInfo", "cudaGetLastError", "cudaPeekAtLastError")
probe("cudaSetDevice")(lambda t, s: (0,))
probe("cudaGetDeviceProperties")(lambda t, s: (0,))
probe("cudaDeviceGetAttribute")(lambda t, s: (t.raw.cudaDeviceAttr.cudaDevAttrMaxThreadsPerBlock, 0))
probe("cudaDeviceSetLimit")(lambda t, s: (_limit(t), t._put("cudaDeviceGetLimit", _limit(t))))
probe("cudaDeviceGetLimit")(lambda t, s: (_limit(t),))
probe("cudaGetErrorName")(lambda t, s: (t.raw.cudaError_t(900),))
probe("cudaGetErrorString")(lambda t, s: (t.raw.cudaError_t(900),))

# -- Memory ---------------------------------------------------------------------------------------------------
probe("cudaMalloc")(lambda t, s: (64,))
probe("cudaFree", "own", "null")(lambda t, s: (t.device([0] * 4).ptr,), lambda t, s: (0,))
probe("cudaMallocHost")(lambda t, s: (64,))
probe("cudaHostAlloc")(lambda t, s: (64, 0))
probe("cudaFreeHost")(lambda t, s: (t.pinned([0] * 4).ptr,))
probe("cudaMallocManaged")(lambda t, s: (64, 1))
COPIES = (_copy("DeviceToDevice", None), _copy("HostToDevice", "pinned"), _copy("HostToDevice", "pageable"),
          _copy("DeviceToHost", "pinned"), _copy("DeviceToHost", "pageable"))
WAYS = ("device to device", "pinned to device", "pageable to device", "device to pinned", "device to pageable")
probe("cudaMemcpy", *WAYS)(*COPIES)
for _stream, _name in ((_own, "capture stream"), (_other, "other stream"), (_legacy, "legacy stream")):
    probe("cudaMemcpyAsync", *(f"{way}, {_name}" for way in WAYS))(*(_with(copy, _stream) for copy in COPIES))
    probe("cudaMemsetAsync", _name)(_with(lambda t, s: (t.spare.ptr, 0, 16), _stream))
    probe("cudaMallocAsync", _name)(_with(lambda t, s: (64,), _stream))
    probe("cudaFreeAsync", f"outside memory, {_name}")(_with(lambda t, s: (_pooled(t),), _stream))
    probe("cudaStreamGetFlags", _name)(_with(lambda t, s: (), _stream))
    probe("cudaStreamGetPriority", _name)(_with(lambda t, s: (), _stream))
    probe("cudaStreamSynchronize", _name)(_with(lambda t, s: (), _stream))
    probe("cudaStreamQuery", _name)(_with(lambda t, s: (), _stream))
    probe("cudaStreamIsCapturing", _name)(_with(lambda t, s: (), _stream))
    probe("cudaStreamGetCaptureInfo", _name)(_with(lambda t, s: (), _stream))
    probe("cudaEventRecord", _name)(_with(lambda t, s: (t.event(),), _stream))
    for _flag, _kind in ((0, "plain"), (1, "external")):
        probe("cudaEventRecordWithFlags", f"{_kind}, {_name}")(
            lambda t, s, where=_stream, flag=_flag: (t.event(), where(t, s), flag))
        probe("cudaStreamWaitEvent", f"{_kind}, outside event, {_name}")(
            lambda t, s, where=_stream, flag=_flag: (where(t, s), _recorded(t), flag))
        probe("cudaStreamWaitEvent", f"{_kind}, captured event, {_name}")(
            lambda t, s, where=_stream, flag=_flag: (where(t, s), _captured(t, s), flag))
    probe("cudaLaunchHostFunc", _name)(
        lambda t, s, where=_stream: (where(t, s), t.raw.cudaHostFn_t(t.callback(lambda: None)), 0))
    probe("cudaStreamBeginCapture", _name)(lambda t, s, where=_stream: (where(t, s), t.mode("Relaxed")))
    probe("cudaStreamBeginCaptureToGraph", _name)(
        lambda t, s, where=_stream: (where(t, s), _graph(t), [], None, 0, t.mode("Relaxed")))
    probe("cudaStreamEndCapture", _name)(_with(lambda t, s: (), _stream))
    probe("cudaStreamUpdateCaptureDependencies", _name)(
        lambda t, s, where=_stream: (where(t, s), [], *t._edge_data(), 0, 0))
    probe("cudaGraphUpload", _name)(_with(lambda t, s: (_executable(t, _kernel_graph(t)[0]),), _stream))
    probe("cudaGraphLaunch", _name)(_with(lambda t, s: (_executable(t, _kernel_graph(t)[0]),), _stream))
    probe("launch", _name)(_with(lambda t, s: (), _stream))
    probe("cudaMallocFromPoolAsync", _name)(
        _with(lambda t, s: (64, t._put("cudaDeviceGetDefaultMemPool", 0)), _stream))
probe("launch", "impossible", "impossible, other stream")(lambda t, s: (s, 4096), lambda t, s: (t.stream(), 4096))
probe("cudaFreeAsync", "captured memory", "cudaMalloc's memory")(
    lambda t, s: (lambda: t.raw.cudaMallocAsync(64, s)[1], s), lambda t, s: (t.device([0] * 4).ptr, s))
probe("cudaMemset", "device", "zero bytes")(lambda t, s: (t.spare.ptr, 0, 16), lambda t, s: (t.spare.ptr, 0, 0))
probe("cudaMemPoolCreate")(lambda t, s: (_pool(t),))
probe("cudaMemPoolDestroy")(lambda t, s: (t._put("cudaMemPoolCreate", _pool(t)),))
probe("cudaMemPoolSetAttribute")(lambda t, s: (
    t._put("cudaMemPoolCreate", _pool(t)), t.raw.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold, t.u64(0)))
probe("cudaMemPoolGetAttribute")(lambda t, s: (
    t._put("cudaMemPoolCreate", _pool(t)), t.raw.cudaMemPoolAttr.cudaMemPoolAttrUsedMemCurrent))
probe("cudaMemPoolTrimTo")(lambda t, s: (t._put("cudaMemPoolCreate", _pool(t)), 0))
probe("cudaDeviceGetDefaultMemPool")(lambda t, s: (0,))
probe("cudaDeviceGetMemPool")(lambda t, s: (0,))
probe("cudaDeviceSetMemPool")(lambda t, s: (0, t._put("cudaDeviceGetDefaultMemPool", 0)))
probe("cudaDeviceGetGraphMemAttribute")(lambda t, s: (0, t.raw.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent))
probe("cudaDeviceSetGraphMemAttribute")(lambda t, s: (
    0, t.raw.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemHigh, t.u64(0)))
probe("cudaDeviceGraphMemTrim")(lambda t, s: (0,))

HUGE, NO_DEVICE = 1 << 50, 99
probe("cudaFree", "a pool's", "a graph's")(lambda t, s: (_pooled(t),), lambda t, s: (_of_a_graph(t),))
for _stream, _name in ((_own, "capture stream"), (_other, "other stream"), (_legacy, "legacy stream")):
    probe("cudaFreeAsync", f"a graph's, {_name}", f"null, {_name}")(_with(lambda t, s: (_of_a_graph(t),), _stream), _with(lambda t, s: (0,), _stream))
    probe("cudaMallocAsync", f"nothing, {_name}", f"too much, {_name}")(_with(lambda t, s: (0,), _stream), _with(lambda t, s: (HUGE,), _stream))
    probe("cudaMallocFromPoolAsync", f"own pool, {_name}", f"no pool, {_name}", f"too much, {_name}")(
        _with(lambda t, s: (64, _own_pool(t)), _stream), _with(lambda t, s: (64, 0), _stream), _with(lambda t, s: (HUGE, _own_pool(t)), _stream))
probe("cudaMemPoolDestroy", "none", "default")(lambda t, s: (0,), lambda t, s: (t._put("cudaDeviceGetDefaultMemPool", 0),))
probe("cudaMemPoolTrimTo", "none")(lambda t, s: (0, 0))
probe("cudaMemPoolCreate", "of nothing")(lambda t, s: (t.raw.cudaMemPoolProps(),))
probe("cudaMemPoolGetAttribute", "none")(lambda t, s: (0, t.raw.cudaMemPoolAttr.cudaMemPoolAttrUsedMemCurrent))
probe("cudaMemPoolSetAttribute", "none", "read only")(
    lambda t, s: (0, t.raw.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold, t.u64(0)),
    lambda t, s: (_own_pool(t), t.raw.cudaMemPoolAttr.cudaMemPoolAttrUsedMemCurrent, t.u64(0)))
probe("cudaDeviceSetMemPool", "own", "none", "no device")(
    lambda t, s: (0, _own_pool(t)), lambda t, s: (0, 0), lambda t, s: (NO_DEVICE, _own_pool(t)))
for _name in ("cudaDeviceGetMemPool", "cudaDeviceGetDefaultMemPool", "cudaDeviceGraphMemTrim"):
    probe(_name, "no device")(lambda t, s: (NO_DEVICE,))
probe("cudaDeviceGetGraphMemAttribute", "no device")(lambda t, s: (NO_DEVICE, t.raw.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent))
probe("cudaDeviceSetGraphMemAttribute", "read only", "to 7")(
    lambda t, s: (0, t.raw.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent, t.u64(0)),
    lambda t, s: (0, t.raw.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemHigh, t.u64(7)))

# -- Streams and events -----------------------------------------------------------------------------------------
nothing("cudaStreamCreate", "cudaEventCreate")
probe("cudaStreamCreateWithFlags")(lambda t, s: (1,))
probe("cudaStreamCreateWithPriority")(lambda t, s: (1, 0))
probe("cudaStreamDestroy")(lambda t, s: (t.stream(),))
probe("cudaEventCreateWithFlags")(lambda t, s: (2,))
EVENTS = ("outside", "never recorded", "captured")
for _name in ("cudaEventQuery", "cudaEventSynchronize", "cudaEventDestroy"):
    probe(_name, *EVENTS)(lambda t, s: (_recorded(t),), lambda t, s: (t.event(),), lambda t, s: (_captured(t, s),))
probe("cudaEventElapsedTime", "outside", "captured")(
    lambda t, s: (_recorded(t), _recorded(t)), lambda t, s: (_recorded(t), _captured(t, s)))
probe("cudaThreadExchangeStreamCaptureMode")(lambda t, s: (t.mode("Relaxed"),))

# -- Graphs -------------------------------------------------------------------------------------------------------
probe("cudaGraphCreate")(lambda t, s: (0,))
for _name in ("cudaGraphDestroy", "cudaGraphClone", "cudaGraphGetNodes", "cudaGraphGetRootNodes", "cudaGraphGetEdges"):
    probe(_name)(lambda t, s: (_kernel_graph(t)[0],))
for _name in ("cudaGraphNodeGetType", "cudaGraphNodeGetDependencies", "cudaGraphNodeGetDependentNodes", "cudaGraphDestroyNode",
              "cudaGraphKernelNodeGetParams"):
    probe(_name)(lambda t, s: (_kernel_graph(t)[1],))
probe("cudaGraphNodeFindInClone")(_clone)
probe("cudaGraphAddKernelNode")(lambda t, s: (_graph(t), [], 0, t.fill_params(t.spare, 1)))
probe("cudaGraphAddMemsetNode")(lambda t, s: (_graph(t), [], 0, t.memset_params(t.spare, 0)))
probe("cudaGraphAddMemcpyNode1D")(lambda t, s: (_graph(t), [], 0, t.spare.ptr, t.ones.ptr, 16, t.copies("DeviceToDevice")))
probe("cudaGraphAddHostNode")(lambda t, s: (_graph(t), [], 0, _host_params(t)))
probe("cudaGraphAddEmptyNode")(lambda t, s: (_graph(t), [], 0))
probe("cudaGraphAddChildGraphNode")(lambda t, s: (_graph(t), [], 0, _kernel_graph(t)[0]))
probe("cudaGraphAddEventRecordNode")(lambda t, s: (_graph(t), [], 0, t.event()))
probe("cudaGraphAddEventWaitNode")(lambda t, s: (_graph(t), [], 0, t.event()))
probe("cudaGraphAddMemAllocNode")(lambda t, s: (_graph(t), [], 0, t.alloc_params(16)))


def _free_node(t, s):
    graph, params = _graph(t), t.alloc_params(16)
    first = t._put("cudaGraphAddMemAllocNode", graph, [], 0, params)
    return graph, [first], 1, params.dptr


probe("cudaGraphAddMemFreeNode")(_free_node)
probe("cudaGraphAddMemAllocNode", "nothing", "too much")(
    lambda t, s: (_graph(t), [], 0, t.alloc_params(0)), lambda t, s: (_graph(t), [], 0, t.alloc_params(HUGE)))
probe("cudaGraphAddNode", "memset", "conditional")(
    lambda t, s: (_graph(t), [], *t._edge_data(), 0, _node_params(t, "Memset")), _conditional)
probe("cudaGraphAddDependencies")(lambda t, s: _edge(t, False))
probe("cudaGraphRemoveDependencies")(lambda t, s: _edge(t, True))
for _name, _kind in (("cudaGraphMemsetNodeGetParams", "memset"), ("cudaGraphHostNodeGetParams", "host"),
                     ("cudaGraphMemAllocNodeGetParams", "alloc"), ("cudaGraphMemFreeNodeGetParams", "free"),
                     ("cudaGraphEventRecordNodeGetEvent", "record"), ("cudaGraphEventWaitNodeGetEvent", "wait"),
                     ("cudaGraphChildGraphNodeGetGraph", "child")):
    probe(_name)(lambda t, s, kind=_kind: (_node(t, kind)[1],))
probe("cudaGraphKernelNodeSetParams")(lambda t, s: (_node(t, "kernel")[1], t.fill_params(t.spare, 2)))
probe("cudaGraphMemsetNodeSetParams")(lambda t, s: (_node(t, "memset")[1], t.memset_params(t.spare, 1)))
probe("cudaGraphMemcpyNodeSetParams1D")(
    lambda t, s: (_node(t, "memcpy")[1], t.ones.ptr, t.spare.ptr, 16, t.copies("DeviceToDevice")))
probe("cudaGraphHostNodeSetParams")(lambda t, s: (_node(t, "host")[1], _host_params(t)))
probe("cudaGraphEventRecordNodeSetEvent")(lambda t, s: (_node(t, "record")[1], t.event()))
probe("cudaGraphEventWaitNodeSetEvent")(lambda t, s: (_node(t, "wait")[1], t.event()))
probe("cudaGraphDebugDotPrint")(_dot)
probe("cudaUserObjectCreate")(lambda t, s: (0, t.raw.cudaHostFn_t(t.callback(lambda: None)), 1, 1))
probe("cudaUserObjectRetain")(lambda t, s: (_user_object(t), 1))
probe("cudaUserObjectRelease")(lambda t, s: (_user_object(t), 1))
probe("cudaGraphRetainUserObject")(lambda t, s: (_graph(t), _user_object(t), 1, 0))
probe("cudaGraphReleaseUserObject")(lambda t, s: (*_retained(t), 1))
probe("cudaGraphConditionalHandleCreate")(lambda t, s: (_graph(t), 0, 0))

# -- Executables ----------------------------------------------------------------------------------------------------
probe("cudaGraphInstantiate")(lambda t, s: (_kernel_graph(t)[0], 0))
probe("cudaGraphInstantiateWithFlags")(lambda t, s: (_kernel_graph(t)[0], 0))
probe("cudaGraphInstantiateWithParams")(_instantiate_params)
probe("cudaGraphExecDestroy")(lambda t, s: (_executable(t, _kernel_graph(t)[0]),))
probe("cudaGraphExecGetFlags")(lambda t, s: (_executable(t, _kernel_graph(t)[0]),))
probe("cudaGraphExecUpdate")(lambda t, s: (_executable(t, _kernel_graph(t)[0]), _kernel_graph(t)[0]))
probe("cudaGraphExecKernelNodeSetParams")(_on("kernel", lambda t: t.fill_params(t.spare, 2)))
probe("cudaGraphExecMemsetNodeSetParams")(_on("memset", lambda t: t.memset_params(t.spare, 1)))
probe("cudaGraphExecHostNodeSetParams")(_on("host", _host_params))
probe("cudaGraphExecChildGraphNodeSetParams")(_on("child", lambda t: _kernel_graph(t)[0]))
probe("cudaGraphExecMemcpyNodeSetParams1D")(
    _on("memcpy", lambda t: t.ones.ptr, lambda t: t.spare.ptr, lambda t: 16, lambda t: t.copies("DeviceToDevice")))
probe("cudaGraphExecNodeSetParams")(_on("memset", lambda t: _node_params(t, "Memset")))
probe("cudaGraphExecEventRecordNodeSetEvent")(_on("record", lambda t: t.event()))
probe("cudaGraphExecEventWaitNodeSetEvent")(_on("wait", lambda t: t.event()))
probe("cudaGraphNodeSetEnabled")(_on("kernel", lambda t: 0))
probe("cudaGraphNodeGetEnabled")(_on("kernel"))


# -- taking and keeping the table -------------------------------------------------------------------------------------


def answer(cudart, name, mode, thread, kind, say=None):
    """One row of one probe, on one module; also said to `say` before the clean-up, which may crash."""
    if kernels.is_simulator(cudart):
        from labkit import sim
        sim.reset()
    tape = Tape(cudart)
    call_name, maker = PROBES[name]
    lacks = None
    try:
        stream = tape.stream(kind)
        try:
            arguments = maker(tape, stream)
        except Exception as problem:
            if not kernels.is_simulator(cudart):
                raise
            arguments, lacks = (), problem  # the simulator lacks what the arguments need: it lacks the call too, or this case of it
        tape.begin(stream, mode)
        tape.fill(stream, tape.spare, 1)

        def call():
            made = [one() if callable(one) and not hasattr(one, "getPtr") else one for one in arguments]
            if call_name == "launch":
                block = made[1] if len(made) > 1 else 32
                return kernels.launch_on(cudart, made[0], kernels.fill, 1, block, tape.spare.ptr, 1.0, 4)
            back = getattr(cudart, call_name)(*made)
            tape._track(call_name, made, back)
            return back
        try:
            code = tape.here_or_there(thread, call)[0].name
        except Hung:
            raise
        except Exception as problem:
            code = f"raised {type(lacks or problem).__name__}"
        if call_name == "cudaDeviceReset" and code == "cudaSuccess":
            if say:
                say([code, "gone", "gone", ""])
            return [code, "gone", "gone", ""]
        status = cudart.cudaStreamIsCapturing(stream)[1]
        status = "unknown" if status is None else status.name.removeprefix("cudaStreamCaptureStatus")
        tape.fill(stream, tape.spare, 2)
        ended, graph = cudart.cudaStreamEndCapture(stream)
        kinds = []
        if graph is not None and int(graph):
            tape.made["cudaGraphDestroy", int(graph)] = graph
            kinds = canonical([int(node) for node in graphs.nodes(graph, cudart=cudart)],
                              graphs.kinds(graph, cudart=cudart), graphs.edges(graph, cudart=cudart))[0]
        row = [code, status, ended.name, " ".join(kinds)]
        if say:
            say(row)
        return row
    finally:
        tape.clean_up()


def job(cudart, key, on_entry):
    """One row, in a child; the key is "probe|mode/thread/kind"."""
    name, row = key.split("|")
    try:
        answer(cudart, name, *row.split("/"), on_entry)
    except Exception as problem:
        on_entry([f"not asked: {type(problem).__name__} {problem}"])


def table(module, line, only="", report=print, jobs=4):
    """{probe: [answers, rows]}: the different answers, and for each of ROWS the number of its answer."""
    names = [name for name in PROBES if only in name]
    keys = [f"{name}|{row}" for name in names for row in ROWS]
    safe = [key for key in keys if not key.startswith("cudaDeviceReset")]
    place = "tests.conformance.in_capture:job"
    found = children.run_spread(place, module, line, safe, jobs, report)
    found.update(children.run_apart(place, module, line, [key for key in keys if key not in found], 2 * jobs, report))
    result = {}
    for name in names:
        answers, rows = [], []
        for row in ROWS:
            entries = found[f"{name}|{row}"]
            one = entries[0] if entries else ["nothing"]
            if one not in answers:
                answers.append(one)
            rows.append(answers.index(one))
        result[name] = [answers, rows]
    return result


def rows(recorded):
    """{row: answer} of one probe's entry in the table."""
    answers, numbers = recorded
    return {row: answers[number] for row, number in zip(ROWS, numbers, strict=True)}


def is_refusal(one):
    return one[0] != "cudaSuccess"


def row_same(recorded, found):
    """Whether the simulator's answer will do: the recorded one, or NotSimulated where the GPU succeeded."""
    if recorded[0] in ("died", "nothing") or recorded[0].startswith("not asked"):
        return True
    if found[0] == "raised NotSimulated":
        return not is_refusal(recorded) and found[1] == recorded[1]
    return recorded == found


def same(recorded, found):
    return bool(found) and all(row_same(one, found_one) for one, found_one in zip(rows(recorded).values(), rows(found).values()))


def difference(recorded, found):
    if not found:
        return "the simulator gave no answer"
    wrong = [f"{row}: recorded {one}, simulator {other}" for (row, one), other in
             zip(rows(recorded).items(), rows(found).values()) if not row_same(one, other)]
    return f"{len(wrong)} rows, first {wrong[0]}" if wrong else "no difference"
