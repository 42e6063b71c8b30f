"""When a change counts: launches that are queued or running keep what they had, later ones have the new."""
from tests.conformance.building import apart, chain, copy, host, host_params, memset, plus, run
from tests.conformance.harness import scenario

HOW = ("kernel", "memset", "copy", "host", "enabled", "update")
FLOATS = {1: 0x3F800000, 2: 0x40000000, 3: 0x40400000, 4: 0x40800000}


class _Changing:
    """An executable whose launches leave 1 in `seen`, and after each change one more (or, if it is switched, 0 and 1 by turns)."""

    def __init__(self, t, how):
        self.t, self.how, self.number = t, how, 1
        self.x, self.y = t.device([0] * 4), [t.device([value] * 4) for value in (1, 2, 3, 4)]
        self.seen, self.heard = t.device([0] * 8), []
        self.graph, self.nodes = chain(t, self.steps(1))
        self.executable = t.instantiate(self.graph)

    def steps(self, number):
        t = self.t
        clear = memset(t, self.x, 0)
        middle = {"memset": lambda: memset(t, self.x, FLOATS[number]), "copy": lambda: copy(t, self.x, self.y[number - 1], 16, "DeviceToDevice"),
                  "host": lambda: host(t, self.heard.append, number)}.get(self.how, lambda: plus(t, self.x, number))
        return [clear, middle()]

    def change(self):
        t, node = self.t, self.nodes[1]
        self.number += 1
        if self.how == "kernel":
            t.cudaGraphExecKernelNodeSetParams(self.executable, node, t.axpy_params(self.x, t.ones, self.number))
        elif self.how == "memset":
            t.cudaGraphExecMemsetNodeSetParams(self.executable, node, t.memset_params(self.x, FLOATS[self.number]))
        elif self.how == "copy":
            t.cudaGraphExecMemcpyNodeSetParams1D(self.executable, node, self.x.ptr, self.y[self.number - 1].ptr, 16, t.copies("DeviceToDevice"))
        elif self.how == "host":
            t.cudaGraphExecHostNodeSetParams(self.executable, node, host_params(t, self.heard.append, self.number))
        elif self.how == "enabled":
            t.cudaGraphNodeSetEnabled(self.executable, node, self.number % 2)
        else:
            t.exec_update(self.executable, chain(t, self.steps(self.number))[0])

    def launch(self, stream, place):
        self.t.cudaGraphLaunch(self.executable, stream)
        self.t.cudaMemcpyAsync(self.seen.ptr + 4 * place, self.x.ptr, 4, self.t.copies("DeviceToDevice"), stream)


@scenario("A change counts for the launches after it; those that are queued or running keep what they had.", control="launches only",
          variants={"launches only": dict(row="lll"), "before": dict(row="cll"), "between": dict(row="lcl"), "twice between": dict(row="lccl"),
                    "after each": dict(row="lclclc")}, each={"how": HOW, "gate": ("open", "shut")})
def a_change_counts_from_the_next_launch(t, row, how, gate):
    stream, changing = t.stream(), _Changing(t, how)
    changing.launch(stream, 0)
    t.cudaStreamSynchronize(stream)
    release = t.gate(stream) if gate == "shut" else None
    for place, step in enumerate(row, 1):
        changing.change() if step == "c" else changing.launch(stream, place)
    if release:
        release()
    t.values(changing.seen, stream)
    t.note("heard", changing.heard)
    t.recovered(stream)


@scenario("One executable in two streams, changed between the launches: each launch has its own values.", control="one stream",
          variants={"one stream": dict(streams=1), "two streams": dict(streams=2)}, each={"how": ("kernel", "update"), "gate": ("open", "shut")})
def a_change_between_two_streams(t, streams, how, gate):
    one, two, x = t.stream(), t.stream(), t.device([0] * 4)
    graph, nodes = chain(t, [plus(t, x, 1)])
    executable = t.instantiate(graph)
    run(t, executable, one, x)
    release = t.gate(one) if gate == "shut" else None
    t.cudaGraphLaunch(executable, one)
    if how == "kernel":
        t.cudaGraphExecKernelNodeSetParams(executable, nodes[0], t.axpy_params(x, t.ones, 10))
    else:
        t.exec_update(executable, chain(t, [plus(t, x, 10)])[0])
    t.cudaGraphLaunch(executable, one if streams == 1 else two)
    if release:
        release()
    t.cudaStreamSynchronize(one), t.cudaStreamSynchronize(two)
    t.values(x)
    t.recovered()


@scenario("A change after an upload counts; an upload after a change runs nothing.", control="no upload",
          variants={"no upload": dict(row="cl"), "uploaded before": dict(row="ucl"), "uploaded after": dict(row="cul"),
                    "uploaded both": dict(row="ucul"),
                    "uploaded into another stream": dict(row="cvl")}, each={"how": HOW})
def a_change_and_an_upload(t, row, how):
    stream, other, changing = t.stream(), t.stream(), _Changing(t, how)
    for place, step in enumerate(row):
        if step == "c":
            changing.change()
        elif step == "l":
            changing.launch(stream, place)
        else:
            t.cudaGraphUpload(changing.executable, stream if step == "u" else other)
    t.values(changing.seen, stream)
    t.note("heard", changing.heard)
    t.recovered(stream)


@scenario("The last executable of a changed graph may be destroyed while it is queued.", control="kept",
          variants={"kept": dict(destroy=False), "destroyed": dict(destroy=True)}, each={"how": HOW})
def destroying_a_changed_executable_that_is_queued(t, destroy, how):
    stream, changing = t.stream(), _Changing(t, how)
    changing.launch(stream, 0)
    t.cudaStreamSynchronize(stream)
    release = t.gate(stream)
    changing.change()
    changing.launch(stream, 1)
    if destroy:
        t.cudaGraphExecDestroy(changing.executable)
    release()
    t.values(changing.seen, stream)
    t.note("heard", changing.heard)
    t.recovered(stream)


@scenario("Nodes beside each other are changed one by one.", control="none",
          variants={"none": dict(which=()), "first": dict(which=(0,)), "last": dict(which=(9,)), "every second": dict(which=(0, 2, 4, 6, 8)),
                    "all, backwards": dict(which=tuple(range(9, -1, -1)))})
def changing_some_of_ten_nodes(t, which):
    stream, x = t.stream(), [t.device([0] * 2) for _ in range(10)]
    graph, nodes = apart(t, [plus(t, one, 1) for one in x])
    executable = t.instantiate(graph)
    run(t, executable, stream)
    for place in which:
        t.cudaGraphExecKernelNodeSetParams(executable, nodes[place], t.axpy_params(x[place], t.ones, 10 + place))
    run(t, executable, stream)
    t.cudaStreamSynchronize(stream)
    t.note("values", [t.peek(one)[0] for one in x])
    t.recovered(stream)
