"""Executables: a graph made ready to launch, and what a launch does.

An executable has its own copy of the nodes' work, which update.py changes. A launch takes a snapshot
of it, so later updates and the end of the executable do not reach launches that are already queued.
"""
from labkit.errors import Undefined
from . import engine, graph as graphs, graph_memory, stream as streams, user_object
from .work import Free
from .world import Refused, find, find_alive, world

AUTO_FREE, UPLOAD, DEVICE_LAUNCH, NODE_PRIORITY = 1, 2, 4, 8
LIGHT = ("MemAlloc", "MemFree", "Empty")       # kinds of work that take a GPU no time
OK, ERROR, INVALID_STRUCTURE, NODE_NOT_SUPPORTED = range(4)


class Level:
    """A graph as an executable holds it: the whole, or the graph of a child node.

    jobs: node -> its work here (a Level for a child node), in an order that respects the edges.
    before: node -> the nodes it waited for when the executable was made, in the order of making.
    Both keep the nodes of that graph, whatever becomes of the graph.
    objects: user objects that it holds, those of its graph without the graphs in child nodes: see user_object.py.
    """
    kind = "Graph"

    def __init__(self, graph):
        self.graph, self.objects = graph, {}
        self.jobs = {node: Level(node.work.graph) if node.work.kind == "Graph" else node.work for node in graphs.order(graph)}
        self.before = {node: node.before for node in graph.nodes}

    def levels(self):
        """This and all levels in it."""
        found = [self]
        for level in found:
            found += [job for job in level.jobs.values() if job.kind == "Graph"]
        return found


class Executable:
    """level: its copy of the graph. graph: the one that it counts for. last: the newest launch or upload."""

    def __init__(self, graph, level, flags):
        self.handle, self.graph, self.level, self.flags = world.handle("executable"), graph, level, flags
        self.last = None
        self.memory = graph_memory.Needs(graph)
        self.disabled = set()               # nodes that run nothing
        self.plan = None                    # the steps of a launch, until something changes

    @property
    def allocates(self):
        return self.memory.allocates

    def steps(self):
        """Every job that runs, in order, those of child graphs in place of the child node."""
        if self.plan is None:
            self.plan = tuple(_lay_open(self.level, self.disabled))
        return self.plan


def _lay_open(level, disabled=()):
    stack = [iter(level.jobs.items())]
    while stack:
        for node, job in stack[-1]:
            if job.kind == "Graph":
                stack.append(iter(job.jobs.items()))
                break
            if not disabled or node not in disabled:
                yield job
        else:
            stack.pop()


def exec_of(handle):
    """The executable behind a handle; to use one that was destroyed is undefined."""
    return find_alive(world.execs, handle, "InvalidValue", "executable")


def exec_to_set(handle):
    """The same for the calls that change or ask for one node: they recognise an executable that was destroyed."""
    return find(world.execs, handle, "InvalidValue")


def instantiate(graph, flags, upload=None):
    """A graph without a cycle becomes an executable. Of a graph that allocates or frees memory
    there is one at a time. upload: the stream, for the call that can upload at once."""
    known = AUTO_FREE | DEVICE_LAUNCH | NODE_PRIORITY | (UPLOAD if upload is not None else 0)
    if flags & ~known or flags & AUTO_FREE and flags & DEVICE_LAUNCH:
        raise Refused("InvalidValue")
    level = Level(graph)
    if graph.memory and graph.execs:
        raise Refused("NotSupported")
    _check_memory(graph, level)
    if flags & DEVICE_LAUNCH:
        kinds = {job.kind for job in _lay_open(level)}
        if not kinds or kinds - {"Kernel", "Memcpy", "Memset"}:     # nothing else can be launched from the device
            raise Refused("NotSupported" if kinds else "InvalidValue")
    made = Executable(graph, level, flags & ~(NODE_PRIORITY | UPLOAD))
    if flags & UPLOAD:
        upload_to(made, upload)
    graph.execs += 1
    user_object.take((one, one.graph) for one in level.levels())
    world.execs[made.handle] = made
    return made


def _check_memory(graph, level):
    """What an earlier executable left allocated must be freed by now, and copies and memsets need the memory that they were made for."""
    if any(block.owned for block in graph.allocates):
        raise Undefined("A graph is made an executable again while memory is held that an earlier one of it left.",
                        "CUDA does not check for this: with driver 580.159.04 some processes went on, others lost the memory or crashed.",
                        "Free the memory first, or keep the first executable.")
    for job in _lay_open(level):
        if job.kind in ("Memcpy", "Memset"):
            job.check(graph)


def why_not(graph):
    """The reason of a refused instantiation that has a name of its own: a cycle."""
    try:
        Level(graph)
    except Refused:
        return INVALID_STRUCTURE
    return ERROR


def destroy(made):
    """Launches that are queued or running still finish."""
    del world.execs[made.handle]
    made.graph.execs -= 1
    user_object.let_go_after(made.last, user_object.merged(one.objects for one in made.level.levels()))


def upload_to(made, stream):
    """Preparation for a launch, in stream order; it runs nothing. Uploads and launches of one
    executable follow each other, whatever streams they are in. The pages for its memory come with it."""
    made.memory.take(stream)
    made.last = streams.push(stream, also=[made.last])
    made.memory.worked(made.last, stream)


def launch(made, stream):
    """Queue one run of the graph; runs of one executable follow each other."""
    steps = made.steps()
    if any(job.kind == "Memcpy" for job in steps):
        host_writes = any(job.host or job.kind == "Memcpy" and job.direction[1] == "host" for job in steps)
        steps = tuple([job.at_launch(host_writes) if job.kind == "Memcpy" else job for job in steps])
    needs, before, freed = made.memory, (), ()
    if needs:
        freed = [block.freed for block in needs.allocates if not block.freed_async]      # by cudaFree: the call did not wait
        before = tuple([Free(block) for block in needs.check(made.flags)])
        needs.take(stream)
    records = [job for job in steps if job.kind == "EventRecord"]
    waits = [job.event.op for job in steps if job.kind == "WaitEvent"]
    marks = {}
    op = streams.push(stream, lambda: _run(before + steps, marks), any(job.host for job in steps), [made.last, *waits, *freed])
    op.light = all(job.kind in LIGHT for job in steps)
    made.last = op
    if needs:
        needs.book(op, stream)
    for job in records:                     # the event stands for this launch from now on
        job.event.op, job.event.captured, job.event.recorded = engine.Op(None, [op]), None, True
        marks[job] = job.event.op
    return op


def _run(steps, marks):
    with world.lock:                        # a host function starts at once: let the launch finish its books
        pass
    for job in steps:
        job.execute()
        if marks and job in marks:
            engine.finish(marks[job])
