"""The memset, copy and host setters of an executable, and the generic one."""
from labkit import kernels
from tests.conformance.building import BOTH, chain, child, copy, fill, host, host_params, memset, node_params, plus, record, run, wait
from tests.conformance.copies import KINDS, _places
from tests.conformance.harness import scenario

ONE, TWO = 0x3F800000, 0x40000000  # 1.0 and 2.0 as the bits of a float

MEMSETS = {"nothing": {}, "value": dict(value=TWO), "narrower": dict(width=2), "wider": dict(width=8), "elements of 2": dict(value=0x4040, element=2),
           "elements of 1": dict(value=64, element=1), "elements of 1, as many bytes": dict(value=64, element=1, width=16),
           "other buffer": dict(to="y"),
           "other buffer and wider": dict(to="y", width=8), "all at once": dict(value=64, element=1, width=3, to="y"),
           "value too large": dict(value=0x1FF, element=1), "width 0": dict(width=0), "elements of 3": dict(element=3),
           "elements of 8": dict(element=8),
           "null": dict(to="null"), "pinned memory": dict(to="pinned"), "two rows": dict(width=2, height=2, pitch=16),
           "height 0": dict(height=0), "two rows, no pitch": dict(width=2, height=2, pitch=0)}


def _memset_params(t, places, to="x", value=ONE, width=4, element=4, height=1, pitch=0):
    params = t.memset_params(places["x"] if to == "null" else places[to], value, width, element)
    params.height, params.pitch = height, pitch
    if to == "null":
        params.dst = 0
    return params


def _bits(t, buffer, stream):
    """Values as text: a NaN is no JSON."""
    t.note("values", [repr(value) for value in t.peek(buffer, stream) or []])


@scenario("The memset setter changes value, width, element size and place.", control="nothing",
          variants={name: dict(change=change) for name, change in MEMSETS.items()}, open=True, isolated=("null", "pinned memory"))
def a_memset_setter(t, change):
    stream, places = t.stream(), {"x": t.device([9] * 8), "y": t.device([9] * 8), "pinned": t.pinned([9] * 8)}
    graph, nodes = chain(t, [memset(t, places["x"], ONE, 4), plus(t, places["y"], 1)])
    executable = t.instantiate(graph)
    run(t, executable, stream, places["x"])
    t.write(places["x"], [9] * 8)
    t.cudaGraphExecMemsetNodeSetParams(executable, nodes[0], _memset_params(t, places, **change))
    t.cudaGraphLaunch(executable, stream)
    for name in places:
        _bits(t, places[name], stream)
    t.recovered(stream)


@scenario("A captured memset is set like one made by hand.", control="nothing",
          variants={"nothing": dict(width=8), "narrower": dict(width=4), "wider": dict(width=16),
                    "elements of 4": dict(width=2, element=4, value=TWO)},
          each=BOTH, open=True)
def a_captured_memset_is_set(t, width, made, element=1, value=0):
    stream, x = t.stream(), t.device([9] * 4)
    graph, nodes = chain(t, [memset(t, x, 0, 8, 1), plus(t, x, 1)], made)
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    t.cudaGraphExecMemsetNodeSetParams(executable, nodes[0], t.memset_params(x, value, width, element))
    t.cudaGraphLaunch(executable, stream)
    _bits(t, x, stream)
    t.recovered(stream)


@scenario("A memset of two rows keeps its shape; value and place may change.", control="nothing",
          variants={"nothing": {}, "value": dict(value=TWO), "wider rows": dict(width=3), "other pitch": dict(pitch=8), "three rows": dict(height=3),
                    "one row": dict(height=1), "one row, no pitch": dict(height=1, pitch=0), "other buffer": dict(to="y"),
                    "pitch too small": dict(pitch=4)}, open=True)
def a_memset_of_two_rows_is_set(t, **change):
    stream, places = t.stream(), {"x": t.device([9] * 12), "y": t.device([9] * 12)}
    graph, nodes = chain(t, [memset(t, places["x"], ONE, 2, 4, 2, 16), plus(t, places["y"], 1)])
    executable = t.instantiate(graph)
    run(t, executable, stream, places["x"])
    given = {"width": 2, "height": 2, "pitch": 16, **change}
    t.cudaGraphExecMemsetNodeSetParams(executable, nodes[0], _memset_params(t, places, **given))
    t.cudaGraphLaunch(executable, stream)
    for name in places:
        _bits(t, places[name], stream)
    t.recovered(stream)


@scenario("The copy setter changes size and places within one kind of copy.", control="nothing",
          variants={"nothing": {}, "smaller": dict(nbytes=4), "larger": dict(nbytes=16), "other source": dict(frm=1), "other target": dict(to=1),
                    "all": dict(nbytes=12, frm=1, to=1), "direction Default": dict(default=True, nbytes=16), "nothing to copy": dict(nbytes=0),
                    "null source": dict(null="source"), "null target": dict(null="target"), "direction 5": dict(way=5)},
          each={"kind": tuple(KINDS), **BOTH}, open=True, isolated=("null source", "null target"))
def a_copy_setter(t, kind, made, nbytes=8, frm=0, to=0, default=False, null=None, way=None):
    stream, (said, where) = t.stream(), KINDS[kind]
    pairs = [_places(t, said, where), _places(t, said, where)]
    t.write(pairs[1][1], [50, 60, 70, 80])
    graph, nodes = chain(t, [copy(t, *pairs[0], 8, said), plus(t, t.device([0] * 4), 1)], made)
    executable = t.instantiate(graph)
    run(t, executable, stream, pairs[0][0])
    t.write(pairs[0][0], [0] * 4)
    target, source = pairs[to][0].ptr, pairs[frm][1].ptr
    t.attempt("cudaGraphExecMemcpyNodeSetParams1D", executable, nodes[0], 0 if null == "target" else target, 0 if null == "source" else source,
              nbytes,
              way or t.copies("Default" if default else said))
    run(t, executable, stream, pairs[0][0], pairs[1][0])
    t.recovered(stream)


TURNED = {"same": None, **{f"to {name}": name for name in KINDS}}


@scenario("The copy setter keeps to the direction of the copy; pinned and pageable memory may take each other's place.", control="same",
          variants={name: dict(new=new) for name, new in TURNED.items()}, each={"old": tuple(KINDS), **BOTH}, open=True)
def a_copy_setter_and_the_direction(t, new, old, made):
    stream = t.stream()
    before, after = KINDS[old], KINDS[new or old]
    first, second = _places(t, *before), _places(t, *after)
    t.write(second[1], [50, 60, 70, 80])
    graph, nodes = chain(t, [copy(t, *first, 16, before[0]), plus(t, t.device([0] * 4), 1)], made)
    executable = t.instantiate(graph)
    run(t, executable, stream, first[0])
    t.write(first[0], [0] * 4)
    t.cudaGraphExecMemcpyNodeSetParams1D(executable, nodes[0], second[0].ptr, second[1].ptr, 16, t.copies(after[0]))
    run(t, executable, stream, first[0], second[0])
    t.recovered(stream)


@scenario("The host setter changes the function and its data.", control="nothing",
          variants={"nothing": dict(function="one", data=1), "other data": dict(function="one", data=2),
                    "other function": dict(function="two", data=1),
                    "both": dict(function="two", data=2), "data null": dict(function="one", data=0), "function null": dict(function=None, data=1),
                    "parameters None": dict(function="None", data=1)}, open=True, isolated=("function null", "parameters None"))
def a_host_setter(t, function, data):
    stream, x, seen = t.stream(), t.device([0] * 4), []
    functions = {"one": lambda data: seen.append(["one", data]), "two": lambda data: seen.append(["two", data]), None: None}
    graph, nodes = chain(t, [host(t, functions["one"], 1), plus(t, x, 1)])
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    t.cudaGraphExecHostNodeSetParams(executable, nodes[0], None if function == "None" else host_params(t, functions[function], data))
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.note("seen", seen)
    t.recovered(stream)


def _generic(t, kind, x, y, seen):
    """(a step, the cudaGraphNodeParams that change it) for the generic setter."""
    if kind == "kernel":
        params, one = node_params(t, "Kernel"), t.kernel_params(kernels.fill, 1, 32, x.ptr, 7.0, 4)
        params.kernel.func, params.kernel.sharedMemBytes = t.function(kernels.fill), 0
        for mine, dim in ((params.kernel.gridDim, one.gridDim), (params.kernel.blockDim, one.blockDim)):
            mine.x, mine.y, mine.z = dim.x, dim.y, dim.z
        params.kernel.kernelParams = one.kernelParams
        return fill(t, x, 2), params
    if kind == "memset":
        params = node_params(t, "Memset")
        params.memset.dst, params.memset.value, params.memset.elementSize = x.ptr, TWO, 4
        params.memset.width, params.memset.height, params.memset.pitch = 3, 1, 0
        return memset(t, x, ONE, 4), params
    if kind == "memcpy":
        params = node_params(t, "Memcpy")
        params.memcpy.copyParams = copy_params(t, x, y, 8)
        return copy(t, x, y, 16, "DeviceToDevice"), params
    if kind == "host":
        params = node_params(t, "Host")
        params.host.fn, params.host.userData = host_params(t, lambda data: seen.append(["two", data])).fn, 2
        return host(t, lambda data: seen.append(["one", data]), 1), params
    if kind == "child":
        params = node_params(t, "Graph")
        params.graph.graph = chain(t, [fill(t, x, 7)])[0]
        return child(t, chain(t, [fill(t, x, 2)])[0]), params
    params = node_params(t, {"record": "EventRecord", "wait": "WaitEvent"}[kind])
    getattr(params, {"record": "eventRecord", "wait": "eventWait"}[kind]).event = t.event()
    return (record if kind == "record" else wait)(t, t.event()), params


def copy_params(t, to, frm, nbytes):
    """A cudaMemcpy3DParms that copies so many bytes in a row, from device to device."""
    params = t.raw.cudaMemcpy3DParms()
    for place, buffer in ((params.srcPtr, frm), (params.dstPtr, to)):
        place.ptr, place.pitch, place.xsize, place.ysize = buffer.ptr, nbytes, nbytes, 1
    params.extent.width, params.extent.height, params.extent.depth = nbytes, 1, 1
    params.kind = t.copies("DeviceToDevice")
    t.keep.append(params)
    return params


GENERIC = ("kernel", "memset", "memcpy", "host", "record", "wait", "child")


@scenario("The generic setter does what the typed one does, if the type fits the node.", control="right type",
          variants={"right type": dict(type=None), "type Kernel": dict(type="Kernel"), "type Memset": dict(type="Memset"),
                    "type Empty": dict(type="Empty"),
                    "type Host": dict(type="Host"), "None": dict(type="None")}, each={"kind": GENERIC}, open=True,
          undefined=[f"type Kernel/{kind}" for kind in ("memset", "host", "record", "wait", "child")])
def the_generic_setter(t, type, kind):
    stream, x, y, seen = t.stream(), t.device([9] * 4), t.device([1, 2, 3, 4]), []
    step, params = _generic(t, kind, x, y, seen)
    graph, nodes = chain(t, [step, plus(t, x, 10)])
    executable = t.instantiate(graph)
    run(t, executable, stream, x)
    t.write(x, [9] * 4)
    if type not in (None, "None"):
        params.type = getattr(t.raw.cudaGraphNodeType, f"cudaGraphNodeType{type}")
    t.cudaGraphExecNodeSetParams(executable, nodes[0], None if type == "None" else params)
    run(t, executable, stream, x)
    t.note("seen", seen)
    t.recovered(stream)


@scenario("The generic setters take parameters of the node's own kind only.", control="own",
          variants={"own": dict(of=None), **{kind: dict(of=kind) for kind in GENERIC}}, each={"kind": GENERIC, "call": ("executable", "graph")},
          open=True)
def parameters_of_another_kind(t, of, kind, call):
    stream, x, y, seen = t.stream(), t.device([9] * 4), t.device([1, 2, 3, 4]), []
    step, params = _generic(t, kind, x, y, seen)
    if of:
        params = _generic(t, of, x, y, seen)[1]
    graph, nodes = chain(t, [step, plus(t, x, 10)])
    executable = t.instantiate(graph)
    if call == "graph":
        t.cudaGraphNodeSetParams(nodes[0], params)
        executable = t.instantiate(graph)
    else:
        t.cudaGraphExecNodeSetParams(executable, nodes[0], params)
    run(t, executable, stream, x)
    t.note("seen", seen)
    t.recovered(stream)
