"""Executables: a graph made ready to launch, and what a launch does.

An executable has its own copy of the nodes' work. A launch takes a snapshot of it, so later
updates and the end of the executable do not reach launches that are already queued.
"""
from . import engine, graph as graphs, memory, stream as streams
from .work import Free
from .world import Refused, find, world

AUTO_FREE, UPLOAD, DEVICE_LAUNCH, NODE_PRIORITY = 1, 2, 4, 8
OK, ERROR, INVALID_STRUCTURE, NODE_NOT_SUPPORTED = range(4)


class Executable:
    """jobs: node -> its work here, in an order that respects the edges. last: the newest launch."""

    def __init__(self, graph, jobs, flags):
        self.handle, self.graph, self.jobs, self.flags = world.handle("exec"), graph, jobs, flags
        self.last = None
        self.allocates, self.frees = list(graph.allocates), list(graph.frees)
        self.plan = None                    # the jobs with child graphs laid open; made at a launch

    def steps(self):
        """Every job in order, those of child graphs in place of the child node."""
        if self.plan is None:
            self.plan = tuple(_lay_open(self.jobs.values()))
        return self.plan


def _lay_open(jobs):
    stack = [iter(jobs)]
    while stack:
        for job in stack[-1]:
            if job.kind == "Graph":
                stack.append(iter([node.work for node in graphs.order(job.graph)]))
                break
            yield job
        else:
            stack.pop()


def exec_of(handle):
    return find(world.execs, handle, "InvalidValue")


def instantiate(graph, flags, upload=None):
    """A graph without a cycle becomes an executable. Of a graph that allocates or frees memory
    there is one at a time. upload: the stream, for the call that can upload at once."""
    known = AUTO_FREE | DEVICE_LAUNCH | NODE_PRIORITY | (UPLOAD if upload is not None else 0)
    if flags & ~known or flags & AUTO_FREE and flags & DEVICE_LAUNCH:
        raise Refused("InvalidValue")
    order = graphs.order(graph)
    if graph.memory and graph.execs:
        raise Refused("NotSupported")
    if flags & DEVICE_LAUNCH:
        kinds = {job.kind for job in _lay_open([node.work for node in order])}
        if not kinds or kinds - {"Kernel", "Memcpy", "Memset"}:     # nothing else can be launched from the device
            raise Refused("NotSupported" if kinds else "InvalidValue")
    made = Executable(graph, {node: node.work for node in order}, flags & ~(NODE_PRIORITY | UPLOAD))
    graph.execs += 1
    world.execs[made.handle] = made
    if flags & UPLOAD:
        upload_to(made, upload)
    return made


def why_not(graph):
    """The reason of a refused instantiation that has a name of its own: a cycle."""
    try:
        graphs.order(graph)
    except Refused:
        return INVALID_STRUCTURE
    return ERROR


def destroy(made):
    """Launches that are queued or running still finish."""
    del world.execs[made.handle]
    made.graph.execs -= 1


def upload_to(made, stream):
    """Preparation for a launch, in stream order; it runs nothing."""
    streams.push(stream, also=[made.last])


def launch(made, stream):
    """Queue one run of the graph; runs of one executable follow each other."""
    steps = made.steps()
    before = _account(made, steps)
    records = [job for job in steps if job.kind == "EventRecord"]
    waits = [job.event.op for job in steps if job.kind == "WaitEvent"]
    marks = {}
    op = streams.push(stream, lambda: _run(before + steps, marks), any(job.host for job in steps), [made.last, *waits])
    made.last = op
    for job in records:                     # the event stands for this launch from now on
        job.event.op, job.event.captured, job.event.recorded = engine.Op(None, [op]), None, True
        marks[job] = job.event.op
    return op


def _account(made, steps):
    """Graph memory at the time of a launch: what the graph allocates must be free by now, or is
    freed before the launch where the executable was instantiated so; what it frees must be there.
    Returns the frees to run first."""
    if not made.allocates and not made.frees:
        return ()
    held = [block for block in made.allocates if block.owned]
    if held and not made.flags & AUTO_FREE:
        raise Refused("InvalidValue")
    if any(not block.owned for block in made.frees if block not in made.graph.allocates):
        raise Refused("InvalidValue")
    for block in held:
        memory.give_back(block)
    for block in made.allocates:
        memory.own(block)
    for block in made.frees:
        memory.give_back(block)
    return tuple(Free(block) for block in held)


def _run(steps, marks):
    with world.lock:                        # a host function starts at once: let the launch finish its books
        pass
    for job in steps:
        job.execute()
        if marks and job in marks:
            engine.finish(marks[job])
