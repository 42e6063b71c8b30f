"""Host functions: in streams, captured, and as nodes."""
from tests.conformance.harness import MODES, scenario


def _host_params(t, function):
    params = t.raw.cudaHostNodeParams()
    params.fn = t.raw.cudaHostFn_t(t.callback(function))
    params.userData = 0
    t.keep.append(params)
    return params


def _launch_host(t, stream, function):
    return t.cudaLaunchHostFunc(stream, t.raw.cudaHostFn_t(t.callback(function)), 0)


@scenario("A host function runs in stream order; a captured one at the launch only.", control="eager",
          variants={"eager": dict(capture=False), "captured": dict(capture=True)}, each={"mode": MODES})
def a_host_function_runs_in_order(t, capture, mode):
    stream, x, host, seen = t.stream(), t.device([0] * 4), t.pinned([0] * 4), []
    if capture:
        t.begin(stream, mode)
    t.fill(stream, x, 5)
    t.cudaMemcpyAsync(host.ptr, x.ptr, 16, t.copies("DeviceToHost"), stream)
    _launch_host(t, stream, lambda: seen.append(float(host.host[0])))
    if capture:
        graph = t.end(stream)
        t.graph(graph)
        t.note("seen", list(seen))
        t.replay(graph, stream)   # once: the bindings' callback data lives for one call
    t.cudaStreamSynchronize(stream)
    t.note("seen", seen)


@scenario("A host node runs at every launch.", control="once",
          variants={"once": dict(times=1), "three times": dict(times=3)})
def a_host_node_runs_at_every_launch(t, times):
    stream, x, seen = t.stream(), t.device([0] * 4), []
    _, graph = t.cudaGraphCreate(0)
    _, first = t.cudaGraphAddKernelNode(graph, [], 0, t.axpy_params(x, t.ones, 1))
    _, host = t.cudaGraphAddHostNode(graph, [first], 1, _host_params(t, lambda: seen.append(len(seen))))
    t.cudaGraphAddKernelNode(graph, [host], 1, t.axpy_params(x, t.ones, 10))
    t.graph(graph)
    t.replay(graph, stream, times)
    t.note("seen", seen)
    t.values(x, stream)


CALLS = {"nothing": lambda t, x: None,
         "malloc": lambda t, x: t.raw.cudaMalloc(64)[0],
         "stream query": lambda t, x: t.raw.cudaStreamQuery(0)[0],
         "device synchronize": lambda t, x: t.raw.cudaDeviceSynchronize()[0],
         "stream create": lambda t, x: t.raw.cudaStreamCreateWithFlags(1)[0],
         "copy": lambda t, x: t.raw.cudaMemcpy(x.ptr, t.ones.ptr, 16, t.copies("DeviceToDevice"))[0],
         "event create": lambda t, x: t.raw.cudaEventCreate()[0],
         "memset": lambda t, x: t.raw.cudaMemset(x.ptr, 0, 16)[0]}


@scenario("A host function may not call CUDA.", control="nothing",
          variants={name: dict(call=name) for name in CALLS}, each={"where": ("stream", "node")})
def a_host_function_may_not_call_cuda(t, call, where):
    stream, x, seen = t.stream(), t.device([3] * 4), []

    def function():
        code = CALLS[call](t, x)
        seen.append("nothing" if code is None else code.name)
    if where == "stream":
        _launch_host(t, stream, function)
    else:
        _, graph = t.cudaGraphCreate(0)
        t.cudaGraphAddHostNode(graph, [], 0, _host_params(t, function))
        t.replay(graph, stream)
    t.cudaStreamSynchronize(stream)
    t.note("seen", seen)
    t.values(x, stream)
    t.recovered(stream)


@scenario("Work after a host function waits for it.", control="kernel",
          variants={"kernel": dict(host=False), "host function": dict(host=True)}, each={"where": ("stream", "captured")})
def work_after_a_host_function_waits(t, host, where):
    stream, x, y = t.stream(), t.device([0] * 4), t.pinned([1, 2, 3, 4])

    def change():
        y.host[:] = [10, 20, 30, 40]
    if where == "captured":
        t.begin(stream)
    if host:
        _launch_host(t, stream, change)
    else:
        t.fill(stream, t.spare, 1)
    t.cudaMemcpyAsync(x.ptr, y.ptr, 16, t.copies("HostToDevice"), stream)
    if where == "captured":
        t.replay(t.end(stream), stream)
    t.values(x, stream)


@scenario("A host function on the legacy stream, and an event recorded after one.", control="nonblocking",
          variants={kind: dict(kind=kind) for kind in ("nonblocking", "blocking", "legacy", "perthread")})
def an_event_after_a_host_function(t, kind):
    stream, event, seen = t.stream(kind), t.event(), []
    _launch_host(t, stream, lambda: seen.append(1))
    t.cudaEventRecord(event, stream)
    t.cudaEventSynchronize(event)
    t.note("seen", seen)
    t.cudaEventQuery(event)


@scenario("A host function that is null is taken by a capture and refused by a node.", control="good",
          variants={"good": dict(null=False), "null": dict(null=True)}, each={"where": ("captured", "node")},
          open=True)
def a_host_function_that_is_null(t, null, where):
    stream, x = t.stream(), t.device([0] * 4)
    function = t.raw.cudaHostFn_t(0 if null else t.callback(lambda: None))
    if where == "captured":
        t.begin(stream)
        t.fill(stream, x, 1)
    if where == "node":
        _, graph = t.cudaGraphCreate(0)
        params = t.raw.cudaHostNodeParams()
        params.fn = function
        t.cudaGraphAddHostNode(graph, [], 0, params)
    else:
        t.cudaLaunchHostFunc(stream, function, 0)
        t.status(stream)
        t.end(stream)
    t.recovered(stream)
