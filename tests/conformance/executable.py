"""Executables: instantiate, flags, upload, launch, and the order in which things are destroyed."""
from labkit import kernels
from tests.conformance.building import allocating, finishes, in_order
from tests.conformance.harness import scenario

KINDS = ("nonblocking", "blocking", "legacy", "null", "None", "perthread")


def _adding(t, stream, x, a=1):
    """A captured graph: x += a, twice."""
    t.begin(stream)
    t.axpy(stream, x, t.ones, a)
    t.axpy(stream, x, t.ones, a)
    return t.end(stream)


@scenario("A graph is launched as often as one likes, each time in stream order.", control="once",
          variants={"once": dict(times=1), "five times": dict(times=5)}, each={"kind": KINDS})
def launching_again_and_again(t, times, kind):
    stream, x = t.stream(kind), t.device([0] * 4)
    graph = _adding(t, t.stream(), x)
    executable = t.instantiate(graph)
    for _ in range(times):
        t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)


@scenario("Launches, kernels and copies of one stream keep their order.", control="launch alone",
          variants={"launch alone": dict(row="g"), "kernel first": dict(row="kg"), "kernel last": dict(row="gk"),
                    "between": dict(row="kgkgm"), "memset first": dict(row="mg")})
def a_graph_launch_keeps_the_order(t, row):
    stream, x = t.stream(), t.device([1] * 4)
    executable = t.instantiate(_adding(t, stream, x, 3))
    for step in row:
        if step == "g":
            t.cudaGraphLaunch(executable, stream)
        elif step == "k":
            t.axpy(stream, x, x, 1)
        else:
            t.cudaMemsetAsync(x.ptr, 0, 8, stream)
    t.values(x, stream)


FLAGS = {"none": 0, "AutoFreeOnLaunch": 1, "Upload": 2, "DeviceLaunch": 4, "UseNodePriority": 8, "16": 16, "both 1 and 8": 9}


@scenario("Which flags instantiating takes.", control="none",
          variants={name: dict(flags=flags) for name, flags in FLAGS.items()},
          each={"call": ("cudaGraphInstantiate", "cudaGraphInstantiateWithFlags")})
def instantiate_flags(t, flags, call):
    stream, x = t.stream(), t.device([0] * 4)
    graph = _adding(t, stream, x)
    _, executable = getattr(t, call)(graph, flags)
    if executable is not None:
        t.note("flags", t.cudaGraphExecGetFlags(executable)[1])
        t.cudaGraphLaunch(executable, stream)
        t.values(x, stream)
    t.recovered(stream)


@scenario("Instantiating with parameters takes flags, an upload stream, and tells the result.", control="none",
          variants={name: dict(flags=flags) for name, flags in FLAGS.items()}, open=True)
def instantiate_with_params(t, flags):
    stream, x = t.stream(), t.device([0] * 4)
    graph = _adding(t, stream, x)
    params = t.raw.cudaGraphInstantiateParams()
    params.flags = flags
    if flags == 2:
        params.uploadStream = stream
    _, executable = t.cudaGraphInstantiateWithParams(graph, params)
    t.note("result", params.result_out.name.removeprefix("cudaGraphInstantiate"))
    if executable is not None:
        t.note("flags", t.cudaGraphExecGetFlags(executable)[1])
        t.cudaGraphLaunch(executable, stream)
        t.values(x, stream)
    t.recovered(stream)


@scenario("A cycle is told by the result of instantiating with parameters.", control="no cycle",
          variants={"no cycle": dict(cycle=False), "cycle": dict(cycle=True)}, open=True)
def instantiate_with_params_tells_why(t, cycle):
    _, graph = t.cudaGraphCreate(0)
    _, one = t.cudaGraphAddEmptyNode(graph, [], 0)
    _, two = t.cudaGraphAddEmptyNode(graph, [one], 1)
    if cycle:
        t.add_edges(graph, [two], [one])
    params = t.raw.cudaGraphInstantiateParams()
    t.cudaGraphInstantiateWithParams(graph, params)
    t.note("result", params.result_out.name.removeprefix("cudaGraphInstantiate"))
    t.recovered()


@scenario("An upload runs nothing.", control="launched",
          variants={"launched": dict(upload=0), "uploaded": dict(upload=1), "uploaded twice": dict(upload=2)})
def uploading_runs_nothing(t, upload):
    stream, x = t.stream(), t.device([0] * 4)
    executable = t.instantiate(_adding(t, stream, x))
    for _ in range(upload):
        t.cudaGraphUpload(executable, stream)
        t.values(x, stream)
    t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)


@scenario("An upload goes into any stream; a launch elsewhere waits for it.", control="no upload",
          variants={"no upload": dict(upload=None), "same stream": dict(upload="same"), "other stream": dict(upload="other"),
                    "other stream, held up": dict(upload="held")}, each={"kind": ("nonblocking", "blocking", "perthread")}, open=True)
def uploading_into_another_stream(t, upload, kind):
    stream, other, x = t.stream(kind), t.stream(), t.device([0] * 4)
    executable = t.instantiate(_adding(t, t.stream(), x))
    t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)
    release = t.gate(other) if upload == "held" else None
    if upload:
        t.cudaGraphUpload(executable, stream if upload == "same" else other)
    t.cudaGraphLaunch(executable, stream)
    finishes(t, stream)
    if release:
        release()
    t.values(x, stream)
    t.recovered(stream)


@scenario("An executable that allocates is uploaded like any other.", control="launched",
          variants={"launched": dict(row="l"), "uploaded": dict(row="ul"), "between": dict(row="lul"), "twice": dict(row="uul"),
                    "after": dict(row="lu")},
          each={"free": ("in the graph", "AutoFreeOnLaunch", "not at all")}, open=True)
def uploading_what_allocates(t, row, free):
    stream, x = t.stream(), t.device([0] * 4)
    graph = allocating(t, x, 3, free=free == "in the graph")
    executable = t.instantiate(graph, 1 if free == "AutoFreeOnLaunch" else 0)
    for step in row:
        t.cudaGraphUpload(executable, stream) if step == "u" else t.cudaGraphLaunch(executable, stream)
        t.values(x, stream)
    if free != "in the graph":
        t.cudaFreeAsync(int(t.cudaGraphMemAllocNodeGetParams(in_order(t, graph)[0])[1].dptr), stream)
    t.recovered(stream)


@scenario("An executable is uploaded while it is queued, from another thread, and after its graph is gone.", control="at rest",
          variants={"at rest": {}, "queued": dict(gate=True), "other thread": dict(thread="other"), "graph destroyed": dict(destroy=True)}, open=True)
def when_to_upload(t, gate=False, thread="same", destroy=False):
    stream, x = t.stream(), t.device([0] * 4)
    graph = _adding(t, t.stream(), x)
    executable = t.instantiate(graph)
    if destroy:
        t.cudaGraphDestroy(graph)
    t.cudaGraphLaunch(executable, stream)
    t.cudaStreamSynchronize(stream)
    release = t.gate(stream) if gate else None
    t.cudaGraphLaunch(executable, stream)
    t.here_or_there(thread, lambda: t.cudaGraphUpload(executable, stream))
    t.cudaGraphLaunch(executable, stream)
    if release:
        release()
    t.values(x, stream)
    t.recovered(stream)


@scenario("What a graph or executable that is null answers.", control="good",
          variants={"good": dict(what="good"), "None": dict(what=None), "0": dict(what=0)},
          each={"call": ("instantiate", "launch", "upload", "destroy graph", "destroy executable", "clone", "nodes")}, open=True)
def a_graph_that_is_null(t, what, call):
    stream, x = t.stream(), t.device([0] * 4)
    graph = _adding(t, stream, x)
    executable = t.instantiate(graph)
    if what != "good":
        graph = executable = what
    if call == "instantiate":
        t.cudaGraphInstantiate(graph, 0)
    elif call == "launch":
        t.cudaGraphLaunch(executable, stream)
    elif call == "upload":
        t.cudaGraphUpload(executable, stream)
    elif call == "destroy graph":
        t.cudaGraphDestroy(graph)
    elif call == "destroy executable":
        t.cudaGraphExecDestroy(executable)
    elif call == "clone":
        t.cudaGraphClone(graph)
    else:
        t.cudaGraphGetNodes(graph)
    t.cudaStreamSynchronize(stream)
    t.recovered(stream)


@scenario("Graph, stream of the capture and executable may be destroyed in any order.", control="after",
          variants={"after": dict(order="l"), "graph first": dict(order="gl"), "stream first": dict(order="sl"),
                    "graph and stream first": dict(order="gsl"), "executable while it runs": dict(order="le"),
                    "all": dict(order="gsle")})
def destroying_in_any_order(t, order):
    origin, stream, x = t.stream(), t.stream(), t.device([0] * 4)
    graph = _adding(t, origin, x)
    executable = t.instantiate(graph)
    for step in order:
        if step == "g":
            t.cudaGraphDestroy(graph)
        elif step == "s":
            t.cudaStreamDestroy(origin)
        elif step == "e":
            t.cudaGraphExecDestroy(executable)
        else:
            for _ in range(3):
                t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)


@scenario("One graph may have several executables.", control="one",
          variants={"one": dict(count=1), "three": dict(count=3)})
def several_executables_of_one_graph(t, count):
    stream, x = t.stream(), t.device([0] * 4)
    graph = _adding(t, stream, x)
    executables = [t.instantiate(graph) for _ in range(count)]
    for executable in executables:
        t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)


@scenario("One executable launched in two streams runs twice, one after the other.", control="one stream",
          variants={"one stream": dict(streams=1), "two streams": dict(streams=2)})
def one_executable_in_two_streams(t, streams):
    row = [t.stream() for _ in range(streams)]
    x = t.device([0] * 4)
    executable = t.instantiate(_adding(t, row[0], x))
    for stream in row * (3 - streams):
        t.cudaGraphLaunch(executable, stream)
    for stream in row:
        t.cudaStreamSynchronize(stream)
    t.values(x)


@scenario("A stream destroyed after a launch lets the work finish.", control="kept",
          variants={"kept": dict(destroy=False), "destroyed": dict(destroy=True)})
def destroying_the_launch_stream(t, destroy):
    stream, x = t.stream(), t.device([0] * 4)
    executable = t.instantiate(_adding(t, stream, x))
    t.cudaGraphLaunch(executable, stream)
    if destroy:
        t.cudaStreamDestroy(stream)
    t.cudaDeviceSynchronize()
    t.values(x)


@scenario("Values are frozen at the capture, memory is read at the launch.", control="memory",
          variants={"memory": dict(change="memory"), "scalar": dict(change="scalar")})
def scalars_are_frozen_memory_is_not(t, change):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([1] * 4)
    factor = 2
    t.begin(stream)
    t.axpy(stream, x, y, factor)
    graph = t.end(stream)
    if change == "scalar":
        factor = 100
    else:
        t.write(y, [10] * 4)
    t.replay(graph, stream)
    t.values(x, stream)
    t.note("factor", factor)


@scenario("Branches of a diamond both run before the join.", control="chain",
          variants={"chain": dict(fork=False), "diamond": dict(fork=True)}, each={"times": ("1", "3")})
def branches_run_before_the_join(t, fork, times):
    a, b = t.stream(), t.stream()
    x, y = t.device([0] * 4), t.device([0] * 4)
    t.begin(a)
    t.axpy(a, x, t.ones, 1)
    if fork:
        t.follow(b, a)
    t.axpy(b if fork else a, y, x, 1)
    t.axpy(a, t.spare, x, 1)
    if fork:
        t.follow(a, b)
    t.launch(a, kernels.add, 1, 32, x.ptr, x.ptr, y.ptr, 4)
    graph = t.end(a)
    t.graph(graph)
    t.replay(graph, a, int(times))
    t.values(x, a), t.values(y, a)


@scenario("A launch from another thread, and into a stream that another thread uses.", control="same",
          variants={"same": dict(thread="same"), "other": dict(thread="other")})
def launching_from_another_thread(t, thread):
    stream, x = t.stream(), t.device([0] * 4)
    graph = _adding(t, stream, x)
    executable = t.here_or_there(thread, lambda: t.instantiate(graph))
    t.here_or_there(thread, lambda: t.cudaGraphLaunch(executable, stream))
    t.cudaGraphLaunch(executable, stream)
    t.values(x, stream)
