"""Handles: integers and objects, null, destroyed, and of the wrong type."""
from labkit import kernels
from tests.conformance.harness import scenario


@scenario("A handle may be given as the object or as its number, a mode as the enum or its number.", control="object",
          variants={"object": dict(number=False), "number": dict(number=True)})
def a_handle_may_be_a_number(t, number):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    as_given = (lambda handle: int(handle)) if number else (lambda handle: handle)
    t.cudaStreamBeginCapture(as_given(stream), 0 if number else t.mode("Global"))
    t.fill(as_given(stream), x, 2)
    t.cudaEventRecord(as_given(event), as_given(stream))
    t.cudaStreamWaitEvent(as_given(stream), as_given(event), 0)
    t.cudaMemcpyAsync(x.ptr, t.ones.ptr, 8, 3 if number else t.copies("DeviceToDevice"), as_given(stream))
    graph = t.end(as_given(stream))
    _, executable = t.cudaGraphInstantiate(as_given(graph), 0)
    t.cudaGraphLaunch(as_given(executable), as_given(stream))
    t.cudaStreamSynchronize(as_given(stream))
    t.values(x)
    t.cudaEventDestroy(as_given(event))
    t.cudaGraphExecDestroy(as_given(executable))
    t.cudaGraphDestroy(as_given(graph))
    t.cudaStreamDestroy(as_given(stream))


@scenario("A handle of a wrong type is refused by the bindings, in Python.", control="right",
          variants={"right": dict(what="right"), "text": dict(what="x"), "float": dict(what=1.5), "list": dict(what=[])},
          each={"call": ("cudaStreamBeginCapture", "cudaStreamIsCapturing", "cudaStreamSynchronize", "cudaEventRecord", "cudaGraphLaunch")},
          open=True)
def a_handle_of_the_wrong_type(t, what, call):
    stream, event = t.stream(), t.event()
    t.begin(stream)
    executable = t.instantiate(t.end(stream))
    handle = stream if what == "right" else what
    if call == "cudaStreamBeginCapture":
        t.attempt(call, handle, t.mode("Global"))
        t.status(stream)
        t.raw.cudaStreamEndCapture(stream)
    elif call == "cudaEventRecord":
        t.attempt(call, event, handle)
    elif call == "cudaGraphLaunch":
        t.attempt(call, executable, handle)
    else:
        t.attempt(call, handle)
    t.recovered(stream)


@scenario("An argument that is missing or of a wrong type is a Python exception, not a code.", control="right",
          variants={"right": dict(arguments="right"), "none": dict(arguments=()), "too many": dict(arguments="more"),
                    "mode as text": dict(arguments="text"), "mode None": dict(arguments=None)}, open=True)
def arguments_of_a_call(t, arguments):
    stream = t.stream()
    mode = t.mode("Global")
    given = {"right": (stream, mode), "more": (stream, mode, 0), "text": (stream, "Global"), None: (stream, None), (): ()}[arguments]
    t.attempt("cudaStreamBeginCapture", *given)
    t.status(stream)
    t.end(stream)
    t.recovered(stream)


@scenario("What a size or count of the wrong type does.", control="16",
          variants={"16": dict(size=16), "True": dict(size=True), "16.0": dict(size=16.0), "-1": dict(size=-1), "text": dict(size="16"),
                    "None": dict(size=None)}, open=True)
def a_size_of_the_wrong_type(t, size):
    t.attempt("cudaMalloc", size)
    t.cudaGetLastError()
    t.recovered()


NULLS = {"stream destroy": "cudaStreamDestroy", "event destroy": "cudaEventDestroy", "event record": "cudaEventRecord",
         "event query": "cudaEventQuery", "event synchronize": "cudaEventSynchronize", "wait": "cudaStreamWaitEvent",
         "elapsed": "cudaEventElapsedTime", "node type": "cudaGraphNodeGetType", "destroy node": "cudaGraphDestroyNode",
         "root nodes": "cudaGraphGetRootNodes", "executable flags": "cudaGraphExecGetFlags"}


@scenario("Null is no event, no graph, no node and no stream to destroy.", control="good",
          variants={"good": dict(handle="good"), "0": dict(handle=0), "None": dict(handle=None)},
          each={"call": tuple(NULLS)}, isolated=True)
def a_null_handle(t, handle, call):
    stream, event, name = t.stream(), t.event(), NULLS[call]
    t.cudaEventRecord(event, stream)
    t.cudaStreamSynchronize(stream)
    _, graph = t.cudaGraphCreate(0)
    _, node = t.cudaGraphAddEmptyNode(graph, [], 0)
    executable = t.instantiate(graph)
    good = {"cudaStreamDestroy": stream, "cudaGraphNodeGetType": node, "cudaGraphDestroyNode": node,
            "cudaGraphGetRootNodes": graph, "cudaGraphExecGetFlags": executable}.get(name, event)
    handle = good if handle == "good" else handle
    if name == "cudaEventRecord":
        t.cudaEventRecord(handle, stream)
    elif name == "cudaStreamWaitEvent":
        t.cudaStreamWaitEvent(stream, handle, 0)
    elif name == "cudaEventElapsedTime":
        if handle is event:
            t.note("a time, checked on the GPU only", True)
        else:
            t.cudaEventElapsedTime(event, handle)
    else:
        getattr(t, name)(handle)
    t.recovered(None if name == "cudaStreamDestroy" else stream)


@scenario("Null inside a capture.", control="good",
          variants={"good": dict(null=False), "null": dict(null=True)}, each={"call": ("event record", "wait", "launch", "update")}, open=True)
def a_null_handle_in_a_capture(t, null, call):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    t.begin(stream)
    t.fill(stream, x, 1)
    if call == "event record":
        t.cudaEventRecord(0 if null else event, stream)
    elif call == "wait":
        t.cudaEventRecord(event, stream)
        t.cudaStreamWaitEvent(stream, 0 if null else event, 0)
    elif call == "launch":
        if null:
            t.cudaGraphLaunch(0, stream)
    else:
        t.update_dependencies(stream, [t.raw.cudaGraphNode_t(0)] if null else [], 0)
    t.status(stream)
    t.end(stream)
    t.recovered(stream)


DEAD_STREAM = ("launch", "synchronize", "query", "begin", "end", "is capturing", "record", "wait", "memset", "allocate", "graph launch",
               "destroy", "flags")


@scenario("Nothing may be done with a destroyed stream: the next call may crash, or say anything.", control="alive",
          variants={"alive": dict(dead=False), "destroyed": dict(dead=True)}, each={"call": DEAD_STREAM}, undefined=["destroyed"])
def a_destroyed_stream(t, dead, call):
    stream, event, x, spare = t.stream(), t.event(), t.device([0] * 4), t.stream()
    t.begin(spare)
    executable = t.instantiate(t.end(spare))
    if dead:
        t.cudaStreamDestroy(stream)
    if call == "launch":
        t.fill(stream, x, 1)
    elif call == "synchronize":
        t.cudaStreamSynchronize(stream)
    elif call == "query":
        t.cudaStreamQuery(stream)
    elif call == "begin":
        t.begin(stream)
        if not dead:
            t.end(stream)
    elif call == "end":
        if not dead:
            t.begin(stream)
        t.end(stream)
    elif call == "is capturing":
        t.status(stream)
    elif call == "record":
        t.cudaEventRecord(event, stream)
    elif call == "wait":
        t.cudaStreamWaitEvent(stream, event, 0)
    elif call == "memset":
        t.cudaMemsetAsync(x.ptr, 0, 16, stream)
    elif call == "allocate":
        t.cudaMallocAsync(16, stream)
    elif call == "graph launch":
        t.cudaGraphLaunch(executable, stream)
    elif call == "destroy":
        t.cudaStreamDestroy(stream)
    else:
        t.cudaStreamGetFlags(stream)
    t.recovered()


@scenario("A destroyed event answers that its context is destroyed; a capture goes on, unless it was to wait.", control="alive",
          variants={"alive": dict(dead=False), "destroyed": dict(dead=True)},
          each={"call": ("record", "wait", "query", "synchronize", "destroy"), "capturing": ("no", "yes")}, open=True, isolated=True)
def a_destroyed_event(t, dead, call, capturing):
    stream, event, x = t.stream(), t.event(), t.device([0] * 4)
    if capturing == "yes":
        t.begin(stream, "Relaxed")
        t.fill(stream, x, 1)
        if call in ("wait", "destroy"):
            t.cudaEventRecord(event, stream)
    if dead:
        t.cudaEventDestroy(event)
    if call == "record":
        t.cudaEventRecord(event, stream)
    elif call == "wait":
        t.cudaStreamWaitEvent(stream, event, 0)
    elif call == "query":
        t.cudaEventQuery(event)
    elif call == "synchronize":
        t.cudaEventSynchronize(event)
    else:
        t.cudaEventDestroy(event)
    if capturing == "yes":
        t.status(stream)
        t.end(stream)
    t.recovered()


@scenario("A destroyed graph is an invalid value; a destroyed executable may not be launched or destroyed again.", control="alive",
          variants={"alive": dict(dead=False), "destroyed": dict(dead=True)},
          each={"call": ("instantiate", "nodes", "add", "clone", "destroy", "launch", "destroy executable")},
          open=True, isolated=True, undefined=["destroyed/launch", "destroyed/destroy executable"])
def a_destroyed_graph(t, dead, call):
    stream, x = t.stream(), t.device([0] * 4)
    _, graph = t.cudaGraphCreate(0)
    _, node = t.cudaGraphAddKernelNode(graph, [], 0, t.fill_params(x, 1))
    executable = t.instantiate(graph)
    if dead:
        if call in ("launch", "destroy executable"):
            t.cudaGraphExecDestroy(executable)
        else:
            t.cudaGraphDestroy(graph)
    if call == "instantiate":
        t.cudaGraphInstantiate(graph, 0)
    elif call == "nodes":
        t.cudaGraphGetNodes(graph)
    elif call == "add":
        t.cudaGraphAddEmptyNode(graph, [], 0)
    elif call == "clone":
        t.cudaGraphClone(graph)
    elif call == "destroy":
        t.cudaGraphDestroy(graph)
    elif call == "launch":
        t.cudaGraphLaunch(executable, stream)
        t.cudaStreamSynchronize(stream)
    else:
        t.cudaGraphExecDestroy(executable)
    t.recovered()


@scenario("Nothing may be done with a destroyed node.", control="alive",
          variants={"alive": dict(dead=False), "destroyed": dict(dead=True)},
          each={"call": ("type", "destroy", "add after", "dependencies")}, undefined=["destroyed"])
def a_destroyed_node(t, dead, call):
    _, graph = t.cudaGraphCreate(0)
    _, node = t.cudaGraphAddEmptyNode(graph, [], 0)
    if dead:
        t.cudaGraphDestroyNode(node)
    if call == "type":
        t.cudaGraphNodeGetType(node)
    elif call == "destroy":
        t.cudaGraphDestroyNode(node)
    elif call == "add after":
        t.cudaGraphAddEmptyNode(graph, [node], 1)
    else:
        t.raw.cudaGraphNodeGetDependencies(node)
    t.graph(graph)


@scenario("Names and texts of codes.", control="cudaSuccess",
          variants={"cudaSuccess": dict(code=0), **{str(code): dict(code=code) for code in
                    (1, 2, 35, 100, 400, 401, 600, 700, 800, 801, 900, 901, 902, 903, 904, 905, 906, 907, 908, 910, 999)}})
def names_and_texts_of_codes(t, code):
    error = t.raw.cudaError_t(code)
    t.note("name", t.cudaGetErrorName(error)[1].decode())
    t.note("has a text", len(t.cudaGetErrorString(error)[1]) > 5)


@scenario("What the device calls answer.", control="count",
          variants={"count": dict(call="count"), "device": dict(call="device"), "device 0": dict(call="set"), "device 99": dict(call="bad"),
                    "device -1": dict(call="negative"), "attributes of device 99": dict(call="attribute")})
def device_calls(t, call):
    if call == "count":
        t.cudaGetDeviceCount()
    elif call == "device":
        t.note("device", t.cudaGetDevice()[1])
    elif call == "set":
        t.cudaSetDevice(0)
    elif call == "bad":
        t.cudaSetDevice(99)
    elif call == "negative":
        t.cudaSetDevice(-1)
    else:
        t.cudaDeviceGetAttribute(t.raw.cudaDeviceAttr.cudaDevAttrMaxThreadsPerBlock, 99)
    t.recovered()


@scenario("Every kernel that the kit ships gives the value it should.", control="fill",
          variants={"fill": dict(kernel="fill"), "scale": dict(kernel="scale"), "add": dict(kernel="add")}, each={"where": ("stream", "captured")})
def every_shipped_kernel(t, kernel, where):
    stream, x, y, z = t.stream(), t.device([1, 2, 3, 4]), t.device([10, 20, 30, 40]), t.device([0] * 4)
    if where == "captured":
        t.begin(stream)
    if kernel == "fill":
        t.fill(stream, z, 6)
    elif kernel == "scale":
        t.launch(stream, kernels.scale, 1, 32, x.ptr, 3.0, 4)
    else:
        t.launch(stream, kernels.add, 1, 32, z.ptr, x.ptr, y.ptr, 4)
    if where == "captured":
        t.replay(t.end(stream), stream)
    t.values(x, stream), t.values(z, stream)
