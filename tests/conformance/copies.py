"""Copies and memsets: captured, replayed, and outside of captures."""
import itertools

from tests.conformance.harness import MODES, scenario

ALL = {"mode": MODES}


def _places(t, way, host):
    """(target, source) for one kind of copy; the source holds 5 6 7 8."""
    make = {"pinned": t.pinned, "pageable": t.pageable}.get(host, t.device)
    source = (make if way == "HostToDevice" else t.device)([5, 6, 7, 8])
    target = (make if way == "DeviceToHost" else t.device)([0] * 4)
    return target, source


KINDS = {"device to device": ("DeviceToDevice", None), "pinned to device": ("HostToDevice", "pinned"),
         "pageable to device": ("HostToDevice", "pageable"), "device to pinned": ("DeviceToHost", "pinned"),
         "device to pageable": ("DeviceToHost", "pageable")}


@scenario("A captured copy is a Memcpy node that reads and writes at replay, host memory too.", control="device to device",
          variants={name: dict(way=way, host=host) for name, (way, host) in KINDS.items()}, each=ALL)
def a_captured_copy_reads_at_replay(t, way, host, mode):
    stream = t.stream()
    target, source = _places(t, way, host)
    t.begin(stream, mode)
    t.cudaMemcpyAsync(target.ptr, source.ptr, 16, t.copies(way), stream)
    graph = t.end(stream)
    t.graph(graph)
    t.values(target)
    t.write(source, [50, 60, 70, 80])
    executable = t.replay(graph, stream)
    t.values(target, stream)
    t.write(source, [1, 2, 3, 4])
    t.cudaGraphLaunch(executable, stream)
    t.values(target, stream)


@scenario("The direction Default works out the kind of a captured copy.", control="said",
          variants={"said": dict(default=False), "default": dict(default=True)}, each={"kind": tuple(KINDS)})
def a_captured_copy_of_direction_default(t, default, kind):
    stream, (way, host) = t.stream(), KINDS[kind]
    target, source = _places(t, way, host)
    t.begin(stream)
    t.cudaMemcpyAsync(target.ptr, source.ptr, 16, t.copies("Default" if default else way), stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(target, stream)


@scenario("A direction that does not fit the pointers is refused, or not.", control="right",
          variants={"right": dict(way="DeviceToDevice", host=None), "device memory called host": dict(way="HostToDevice", host=None),
                    "device target called host": dict(way="DeviceToHost", host=None), "both called host": dict(way="HostToHost", host=None),
                    "pinned called device": dict(way="DeviceToDevice", host="pinned"),
                    "pageable called device": dict(way="DeviceToDevice", host="pageable")},
          each={"call": ("sync", "async", "captured")}, open=True,
          undefined=["device memory called host", "device target called host", "both called host"])
def a_direction_that_does_not_fit(t, way, host, call):
    stream = t.stream()
    target, source = _places(t, "HostToDevice" if host else "DeviceToDevice", host)
    if call == "captured":
        t.begin(stream)
    if call == "sync":
        t.cudaMemcpy(target.ptr, source.ptr, 16, t.copies(way))
    else:
        t.cudaMemcpyAsync(target.ptr, source.ptr, 16, t.copies(way), stream)
    if call == "captured":
        t.status(stream)
        graph = t.end(stream)
        if graph is not None:
            t.graph(graph)
            executable = t.instantiate(graph)
            if executable is not None:
                t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    t.values(target, stream)
    t.recovered(stream)


@scenario("A direction that does not exist is refused.", control="4",
          variants={"4": dict(number=4), "5": dict(number=5), "-1": dict(number=-1)}, each={"call": ("sync", "async", "captured")}, open=True)
def a_direction_that_does_not_exist(t, number, call):
    stream, (target, source) = t.stream(), _places(t, "DeviceToDevice", None)
    if call == "captured":
        t.begin(stream)
    arguments = (target.ptr, source.ptr, 16, number)
    t.attempt("cudaMemcpy", *arguments) if call == "sync" else t.attempt("cudaMemcpyAsync", *arguments, stream)
    if call == "captured":
        t.status(stream)
        t.end(stream)
    t.recovered(stream)


@scenario("A null or unknown address in a copy or memset is refused.", control="good",
          variants={"good": dict(where="good"), "null target": dict(where="target"), "null source": dict(where="source"),
                    "nobody's target": dict(where="nobody")},
          each={"call": ("cudaMemcpy", "cudaMemcpyAsync", "cudaMemset", "cudaMemsetAsync"), "capturing": ("no", "yes")}, open=True)
def a_null_address(t, where, call, capturing):
    stream, (target, source) = t.stream(), _places(t, "DeviceToDevice", None)
    to = {"target": 0, "nobody": 64}.get(where, target.ptr)
    frm = 0 if where == "source" else source.ptr
    if capturing == "yes":
        t.begin(stream)
        t.fill(stream, t.spare, 1)
    if "Memcpy" in call:
        arguments = (to, frm, 16, t.copies("DeviceToDevice"))
    else:
        arguments = (to, 0, 16)
    getattr(t, call)(*arguments, *((stream,) if "Async" in call else ()))
    if capturing == "yes":
        t.status(stream)
        t.end(stream)
    t.cudaStreamSynchronize(stream)
    t.cudaGetLastError()
    t.recovered(stream)


@scenario("A memset writes bytes.", control="eager",
          variants={"eager": dict(capture=False), "captured": dict(capture=True)}, each={"value": ("0", "63", "319", "-1")})
def a_memset_writes_bytes(t, capture, value):
    stream, x = t.stream(), t.device([9] * 4)
    if capture:
        t.begin(stream)
    t.cudaMemsetAsync(x.ptr, int(value), 8, stream)
    if capture:
        graph = t.end(stream)
        t.graph(graph)
        t.values(x, stream)
        t.replay(graph, stream)
    t.cudaStreamSynchronize(stream)
    host = t.peek(x)
    t.note("values", [repr(one) for one in host])


@scenario("A captured memset replays every time.", control="once",
          variants={"once": dict(times=1), "three times": dict(times=3)}, each=ALL)
def a_captured_memset_replays(t, times, mode):
    stream, x = t.stream(), t.device([9] * 4)
    t.begin(stream, mode)
    t.axpy(stream, x, t.ones, 1)
    t.cudaMemsetAsync(x.ptr, 0, 8, stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream, times)
    t.values(x, stream)


@scenario("A synchronous copy from a blocking stream's results waits for them.", control="asynchronous, then waited for",
          variants={"asynchronous, then waited for": dict(sync=False), "synchronous": dict(sync=True)},
          each={"kind": ("blocking", "legacy", "null", "None")})
def a_synchronous_copy_waits_for_blocking_streams(t, sync, kind):
    stream, x, host = t.stream(kind), t.device([0] * 4), t.pinned([0] * 4)
    t.fill(stream, x, 4)
    t.axpy(stream, x, t.ones, 1)
    if sync:
        t.cudaMemcpy(host.ptr, x.ptr, 16, t.copies("DeviceToHost"))
    else:
        t.cudaMemcpyAsync(host.ptr, x.ptr, 16, t.copies("DeviceToHost"), stream)
        t.cudaStreamSynchronize(stream)
    t.values(host)


@scenario("A pageable host buffer may be changed as soon as an asynchronous copy from it returns; in a capture not.", control="captured",
          variants={"captured": dict(capture=True), "eager": dict(capture=False)})
def changing_a_pageable_buffer_after_the_copy(t, capture):
    stream, x, host = t.stream(), t.device([0] * 4), t.pageable([1, 2, 3, 4])
    if capture:
        t.begin(stream)
    t.cudaMemcpyAsync(x.ptr, host.ptr, 16, t.copies("HostToDevice"), stream)
    if capture:
        graph = t.end(stream)
        t.write(host, [5, 6, 7, 8])
        t.replay(graph, stream)
    else:
        t.write(host, [5, 6, 7, 8])
    t.values(x, stream)


@scenario("A copy between overlapping halves, and part of a buffer.", control="first half",
          variants={"first half": dict(to=0, frm=8), "second half": dict(to=8, frm=0)}, each={"capturing": ("no", "yes")})
def copying_a_part(t, to, frm, capturing):
    stream, x, y = t.stream(), t.device([1, 2, 3, 4]), t.device([0] * 4)
    if capturing == "yes":
        t.begin(stream)
    t.cudaMemcpyAsync(y.ptr + to, x.ptr + frm, 8, t.copies("DeviceToDevice"), stream)
    if capturing == "yes":
        t.replay(t.end(stream), stream)
    t.values(y, stream)


ORDERS = tuple("".join(order) for order in itertools.permutations("kms"))


@scenario("Kernels, memsets and copies of one stream keep their order in the graph.", control="kms",
          variants={order: dict(order=order) for order in ORDERS})
def order_in_one_stream_is_kept(t, order):
    stream, x, y = t.stream(), t.device([1] * 4), t.device([7] * 4)
    t.begin(stream)
    for step in order:
        if step == "k":
            t.axpy(stream, x, t.ones, 1)
        elif step == "m":
            t.cudaMemsetAsync(x.ptr, 0, 16, stream)
        else:
            t.cudaMemcpyAsync(x.ptr, y.ptr, 16, t.copies("DeviceToDevice"), stream)
    graph = t.end(stream)
    t.graph(graph)
    t.replay(graph, stream)
    t.values(x, stream)
