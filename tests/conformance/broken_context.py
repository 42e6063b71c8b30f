"""A kernel that touches what is nobody's: the context breaks, for the rest of the process."""
from labkit import kernels
from tests.conformance.harness import scenario


def _later_calls(t, stream, executable):
    """What each call answers from here on, and what the last error is."""
    t.cudaPeekAtLastError()
    t.cudaGetLastError()
    t.cudaGetLastError()
    t.cudaStreamSynchronize(stream)
    t.cudaDeviceSynchronize()
    t.cudaStreamQuery(stream)
    t.fill(stream, t.spare, 1)
    t.cudaMalloc(64)
    t.cudaMallocAsync(64, stream)
    t.cudaMemsetAsync(t.spare.ptr, 0, t.spare.nbytes, stream)
    t.peek(t.spare)
    t.status(stream)
    t.begin(stream)
    t.end(stream)
    t.cudaGraphLaunch(executable, stream)
    t.cudaGraphUpload(executable, stream)
    t.cudaEventCreate()
    t.cudaStreamCreate()
    t.cudaFree(t.ones.ptr)
    t.cudaMemGetInfo()
    t.cudaGetLastError()


def _harmless_calls(t, executable, graph):
    """Books that need no context: they go on."""
    other = t.cudaGraphCreate(0)[1]
    t.cudaGraphAddEmptyNode(other, [], 0)
    t.cudaGraphGetNodes(graph)
    t.cudaGraphExecUpdate(executable, graph)
    t.cudaGetDevice()
    t.cudaSetDevice(0)
    t.cudaThreadExchangeStreamCaptureMode(t.mode("Global"))
    t.cudaDeviceGraphMemTrim(0)
    t.cudaGraphExecDestroy(executable)
    t.cudaGraphDestroy(graph)


@scenario("A kernel that writes to address 0 breaks the context: the next wait says 700, and so does nearly every call after it.",
          control="its own memory", variants={"its own memory": dict(null=False), "address 0": dict(null=True)},
          each={"by": ("a launch", "a replay"), "asked": ("here", "in another thread")}, isolated=("address 0",))
def a_kernel_at_address_0(t, null, by, asked):
    stream, good = t.stream(), t.device([0] * 4)
    t.begin(stream)
    t.fill(stream, good, 2)
    graph = t.end(stream)
    executable = t.instantiate(graph)
    if by == "a replay":
        t.begin(stream)
    t.launch(stream, kernels.fill, 1, 32, 0 if null else good.ptr, 3.0, 4)
    if by == "a replay":
        t.cudaGraphLaunch(t.instantiate(t.end(stream)), stream)
    t.cudaStreamSynchronize(stream)
    if null:
        t.here_or_there("same" if asked == "here" else "other", lambda: _later_calls(t, stream, executable))
        _harmless_calls(t, executable, graph)
    t.recovered(None if null else stream)


# Calls that the scenario above leaves out, each on (tape, stream, event, graph, executable, node, host buffer).
MORE = {
    "MemcpyAsync": lambda t, s, e, g, x, n, h: t.cudaMemcpyAsync(h.ptr, t.spare.ptr, 16, t.copies("DeviceToHost"), s),
    "Memset": lambda t, s, e, g, x, n, h: (t.cudaMemset(t.spare.ptr, 0, 16), t.raw.cudaDeviceSynchronize()),
    "FreeAsync": lambda t, s, e, g, x, n, h: t.cudaFreeAsync(t.spare.ptr, s),
    "MallocHost": lambda t, s, e, g, x, n, h: t.cudaMallocHost(64),
    "LaunchHostFunc": lambda t, s, e, g, x, n, h: t.cudaLaunchHostFunc(s, t.raw.cudaHostFn_t(t.callback(lambda: None)), 0),
    "StreamWaitEvent": lambda t, s, e, g, x, n, h: t.cudaStreamWaitEvent(s, e, 0),
    "StreamGetCaptureInfo": lambda t, s, e, g, x, n, h: t.add("info", t.raw.cudaStreamGetCaptureInfo(s)[0].name),
    "StreamGetFlags": lambda t, s, e, g, x, n, h: t.cudaStreamGetFlags(s),
    "EventCreateWithFlags": lambda t, s, e, g, x, n, h: t.cudaEventCreateWithFlags(0),
    "EventSynchronize": lambda t, s, e, g, x, n, h: t.cudaEventSynchronize(e),
    "GraphAddKernelNode": lambda t, s, e, g, x, n, h: t.cudaGraphAddKernelNode(g, [], 0, t.fill_params(t.spare, 1)),
    "GraphAddMemsetNode": lambda t, s, e, g, x, n, h: t.cudaGraphAddMemsetNode(g, [], 0, t.memset_params(t.spare, 1)),
    "GraphClone": lambda t, s, e, g, x, n, h: t.cudaGraphClone(g),
    "GraphNodeGetType": lambda t, s, e, g, x, n, h: t.cudaGraphNodeGetType(n),
    "GraphExecKernelNodeSetParams": lambda t, s, e, g, x, n, h: t.cudaGraphExecKernelNodeSetParams(x, n, t.fill_params(t.spare, 1)),
    "GraphInstantiateWithFlags": lambda t, s, e, g, x, n, h: t.cudaGraphInstantiateWithFlags(g, 0),
    "GetDeviceProperties": lambda t, s, e, g, x, n, h: t.cudaGetDeviceProperties(0),
    "DriverGetVersion": lambda t, s, e, g, x, n, h: t.cudaDriverGetVersion(),
}


@scenario("In a broken context what needs the device answers with its code, nodes with work too; what only keeps books goes on.",
          control="its own memory", variants={"its own memory": dict(null=False), "address 0": dict(null=True)},
          each={"call": tuple(MORE)}, isolated=("address 0",), open=True)
def one_more_call_in_a_broken_context(t, null, call):
    stream, event, host = t.stream(), t.event(), t.pinned([0] * 4)
    t.cudaEventRecord(event, stream)
    _, graph = t.cudaGraphCreate(0)
    _, node = t.cudaGraphAddKernelNode(graph, [], 0, t.fill_params(t.spare, 1))
    executable = t.instantiate(graph)
    t.launch(stream, kernels.fill, 1, 32, 0 if null else t.spare.ptr, 3.0, 4)
    t.cudaStreamSynchronize(stream)
    MORE[call](t, stream, event, graph, executable, node, host)
    if call != "FreeAsync" or null:
        t.recovered(None if null else stream)
