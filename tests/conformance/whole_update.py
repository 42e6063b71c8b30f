"""Updating an executable from another graph of the same shape: what it takes over."""
from labkit import kernels
from tests.conformance.building import BOTH, chain, child, copy, finishes, host, is_recorded, kernel, memset, ones, plus, record, run, wait
from tests.conformance.harness import scenario
from tests.conformance.node_kinds import KINDS, ONE, TURNED, TWO, _bits, _places

AXPY = {"nothing": {}, "scalar": dict(a=7), "pointer": dict(to="y"), "elements": dict(n=3), "grid up": dict(grid=4), "grid down": dict(grid=1),
        "grid far up": dict(grid=5000), "block": dict(block=4), "block of 1024": dict(block=1024), "shared memory": dict(shared=4096),
        "all": dict(a=7, to="y", grid=3, block=1, shared=256)}


@scenario("A whole update takes arguments, grid, block and shared memory of kernels from the new graph.", control="nothing",
          variants={name: dict(change=change) for name, change in AXPY.items()}, each=BOTH)
def a_whole_update_changes_kernels(t, change, made):
    stream, x, y = t.stream(), t.device([0] * 8), t.device([100] * 8)

    def make(a=2, to="x", n=8, grid=2, block=2, shared=0):
        target = {"x": x, "y": y}[to]
        return chain(t, [kernel(t, kernels.axpy, grid, block, target.ptr, ones(t, 8).ptr, float(a), n, shared=shared), plus(t, x, 10)], made)[0]
    executable = t.instantiate(make())
    run(t, executable, stream, x, y)
    t.exec_update(executable, make(**change))
    run(t, executable, stream, x, y)
    run(t, executable, stream, x, y)
    t.recovered(stream)


@scenario("A whole update may put another function in place.", control="the same",
          variants={"the same": dict(name="fill"), "same signature": dict(name="scale"), "another signature": dict(name="add")}, each=BOTH, open=True)
def a_whole_update_changes_the_function(t, name, made):
    stream, x = t.stream(), t.device([1] * 4)

    def make(name):
        given = {"fill": (x.ptr, 3.0, 4), "scale": (x.ptr, 3.0, 4), "add": (x.ptr, x.ptr, t.ones.ptr, 4)}[name]
        return chain(t, [kernel(t, getattr(kernels, name), 1, 32, *given), plus(t, x, 10)], made)[0]
    executable = t.instantiate(make("fill"))
    run(t, executable, stream, x)
    t.exec_update(executable, make(name))
    run(t, executable, stream, x)
    t.exec_update(executable, make("fill"))
    run(t, executable, stream, x)
    t.recovered(stream)


MEMSETS = {"nothing": {}, "value": dict(value=TWO), "narrower": dict(width=2), "wider": dict(width=8), "other buffer": dict(to="y"),
           "elements of 2": dict(value=0x4040, element=2), "elements of 1": dict(value=64, element=1, width=16),
           "all": dict(value=64, element=1, width=3, to="y"),
           "two rows": dict(width=2, height=2, pitch=16)}


@scenario("A whole update takes value, size and place of memsets.", control="nothing",
          variants={name: dict(change=change) for name, change in MEMSETS.items()}, open=True)
def a_whole_update_changes_memsets(t, change):
    stream, x, y = t.stream(), t.device([9] * 8), t.device([9] * 8)

    def make(value=ONE, width=4, element=4, to="x", height=1, pitch=0):
        return chain(t, [plus(t, t.spare, 1), memset(t, {"x": x, "y": y}[to], value, width, element, height, pitch)])[0]
    executable = t.instantiate(make())
    run(t, executable, stream, x)
    t.write(x, [9] * 8)
    t.exec_update(executable, make(**change))
    t.cudaGraphLaunch(executable, stream)
    _bits(t, x, stream), _bits(t, y, stream)
    t.recovered(stream)


@scenario("A whole update keeps the shape of a memset of two rows.", control="nothing",
          variants={"nothing": {}, "value": dict(value=TWO), "three rows": dict(height=3), "wider rows": dict(width=3), "other pitch": dict(pitch=8),
                    "one row": dict(height=1, pitch=0), "other buffer": dict(to="y")}, open=True)
def a_whole_update_of_a_memset_of_two_rows(t, **change):
    stream, x, y = t.stream(), t.device([9] * 12), t.device([9] * 12)

    def make(value=ONE, width=2, height=2, pitch=16, to="x"):
        return chain(t, [memset(t, {"x": x, "y": y}[to], value, width, 4, height, pitch)])[0]
    executable = t.instantiate(make())
    t.exec_update(executable, make(**change))
    t.cudaGraphLaunch(executable, stream)
    _bits(t, x, stream), _bits(t, y, stream)
    t.recovered(stream)


@scenario("A whole update takes size and places of a copy of the same kind.", control="nothing",
          variants={"nothing": {}, "smaller": dict(nbytes=4), "larger": dict(nbytes=16), "other source": dict(frm=1), "other target": dict(to=1),
                    "all": dict(nbytes=12, frm=1, to=1)}, each={"kind": tuple(KINDS), **BOTH})
def a_whole_update_changes_copies(t, kind, made, **change):
    stream, (way, where) = t.stream(), KINDS[kind]
    pairs = [_places(t, way, where), _places(t, way, where)]
    t.write(pairs[1][1], [50, 60, 70, 80])

    def make(nbytes=8, frm=0, to=0):
        step = copy(t, pairs[to][0], pairs[frm][1], nbytes, way)
        return chain(t, [step, plus(t, t.spare, 1)], made)[0]
    executable = t.instantiate(make())
    run(t, executable, stream, pairs[0][0])
    t.write(pairs[0][0], [0] * 4)
    t.exec_update(executable, make(**change))
    run(t, executable, stream, pairs[0][0], pairs[1][0])
    t.recovered(stream)


@scenario("A whole update keeps the direction of a copy; pinned and pageable memory may take each other's place.", control="same",
          variants={name: dict(new=new) for name, new in TURNED.items()}, each={"old": tuple(KINDS), **BOTH}, open=True)
def a_whole_update_and_the_direction(t, new, old, made):
    stream, before, after = t.stream(), KINDS[old], KINDS[new or old]
    first, second = _places(t, *before), _places(t, *after)
    t.write(second[1], [50, 60, 70, 80])
    executable = t.instantiate(chain(t, [copy(t, *first, 16, before[0]), plus(t, t.spare, 1)], made)[0])
    run(t, executable, stream, first[0])
    t.write(first[0], [0] * 4)
    t.exec_update(executable, chain(t, [copy(t, *second, 16, after[0]), plus(t, t.spare, 1)], made)[0])
    run(t, executable, stream, first[0], second[0])
    t.recovered(stream)


@scenario("A whole update changes host functions and their data.", control="nothing",
          variants={"nothing": dict(name="one", data=1), "data": dict(name="one", data=2), "function": dict(name="two", data=1)})
def a_whole_update_changes_host_functions(t, name, data):
    stream, x, seen = t.stream(), t.device([0] * 4), []

    def make(name, data):
        return chain(t, [host(t, lambda given: seen.append([name, given]), data), plus(t, x, 1)])[0]
    executable = t.instantiate(make("one", 1))
    run(t, executable, stream, x)
    t.exec_update(executable, make(name, data))
    run(t, executable, stream, x)
    run(t, executable, stream, x)
    t.note("seen", seen)
    t.recovered(stream)


@scenario("A whole update changes the events that are recorded.", control="the same event",
          variants={"the same event": dict(other=False), "another": dict(other=True)}, each=BOTH)
def a_whole_update_changes_recorded_events(t, other, made):
    stream, x, start, one, two = t.stream(), t.device([0] * 4), t.event(), t.event(), t.event()
    t.cudaEventRecord(start, stream)
    t.cudaStreamSynchronize(stream)
    executable = t.instantiate(chain(t, [record(t, one), plus(t, x, 1)], made)[0])
    t.exec_update(executable, chain(t, [record(t, two if other else one), plus(t, x, 1)], made)[0])
    run(t, executable, stream, x)
    is_recorded(t, start, one), is_recorded(t, start, two)
    t.recovered(stream)


@scenario("A whole update changes the events that are waited for.", control="the same event",
          variants={"the same event": dict(other=False), "another": dict(other=True)}, each=BOTH)
def a_whole_update_changes_awaited_events(t, other, made):
    stream, side, x, held, done = t.stream(), t.stream(), t.device([0] * 4), t.event(), t.event()
    executable = t.instantiate(chain(t, [wait(t, held), plus(t, x, 1)], made)[0])
    run(t, executable, stream, x)
    t.cudaEventRecord(done, stream)
    t.exec_update(executable, chain(t, [wait(t, done if other else held), plus(t, x, 1)], made)[0])
    release = t.gate(side)
    t.cudaEventRecord(held, side)
    t.cudaGraphLaunch(executable, stream)
    finishes(t, stream)
    release()
    t.values(x, stream)
    t.recovered(stream)


@scenario("A whole update looks into child graphs.", control="nothing",
          variants={"nothing": {}, "scalar": dict(a=5), "grid": dict(grid=1), "function": dict(function="fill"), "one node more": dict(more=1),
                    "one node less": dict(less=1), "another kind": dict(kind="memset"), "deep scalar": dict(a=5, deep=True),
                    "deep node more": dict(more=1, deep=True), "unpacked": dict(unpack=True)}, open=True)
def a_whole_update_looks_into_children(t, deep=False, unpack=False, **change):
    stream, x = t.stream(), t.device([0] * 4)

    def inside(a=1, grid=2, function="axpy", more=0, less=0, kind="kernel"):
        arguments = (x.ptr, t.ones.ptr, float(a), 4) if function == "axpy" else (x.ptr, float(a), 4)
        first = kernel(t, getattr(kernels, function), grid, 2, *arguments) if kind == "kernel" else memset(t, x, 0, 2)
        return [first, *[plus(t, x, 100)] * (1 - less), *[plus(t, x, 1000)] * more]

    def make(unpack=False, **change):
        steps = inside(**change)
        if deep:
            steps = [child(t, chain(t, steps)[0]), plus(t, x, 20)]
        return chain(t, [*(steps if unpack else [child(t, chain(t, steps)[0])]), plus(t, x, 10)])[0]
    executable = t.instantiate(make())
    run(t, executable, stream, x)
    t.exec_update(executable, make(unpack, **change))
    run(t, executable, stream, x)
    t.recovered(stream)


@scenario("A captured graph updates one made by hand, and the other way round.", control="both captured",
          variants={"both captured": dict(old="captured", new="captured"), "both by hand": dict(old="by hand", new="by hand"),
                    "from one by hand": dict(old="captured", new="by hand"), "from a captured one": dict(old="by hand", new="captured")}, open=True)
def a_whole_update_between_hand_and_capture(t, old, new):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([9] * 4)

    def make(a, made):
        steps = [plus(t, x, a), memset(t, y, 0, 4 * a, 1), copy(t, y, t.ones, 8, "DeviceToDevice"), plus(t, x, 10 * a)]
        return chain(t, steps, made)[0]
    executable = t.instantiate(make(1, old))
    t.exec_update(executable, make(2, new))
    run(t, executable, stream, x, y)
    t.recovered(stream)
