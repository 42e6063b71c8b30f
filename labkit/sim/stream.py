"""Streams and events: queues of work, and points in them.

Work in one stream runs in order. The legacy default stream waits for all blocking streams, and
they for it; non-blocking streams and the legacy stream do not wait for each other.
"""
from . import capture, engine, work
from .world import Refused, find, find_alive, thread, world

LEGACY, PER_THREAD = 1, 2
NON_BLOCKING = 1
LOWEST, HIGHEST = 0, -5                 # priorities of an H200: greater is less urgent
DISABLE_TIMING, INTERPROCESS = 2, 4
EXTERNAL = 1                            # the flag of a record or a wait


class Stream:
    """A queue. last: its newest op. next_after: while capturing, what the next node waits for."""

    def __init__(self, handle, flags=0, priority=0):
        self.handle, self.flags, self.priority = handle, flags, priority
        self.legacy, self.blocking = handle == LEGACY, handle != LEGACY and not flags & NON_BLOCKING
        self.last, self.capture, self.next_after = None, None, []


class Event:
    """A point in a queue (op), or, recorded in a capture, in a graph: captured = (capture, nodes)."""

    def __init__(self, handle, flags):
        self.handle, self.flags = handle, flags
        self.op = self.captured = None
        self.recorded = False


def legacy():
    if world.legacy is None:
        world.legacy = Stream(LEGACY)
    return world.legacy


def stream_of(handle):
    """The stream behind a handle: 0 and 1 are the legacy stream, 2 the thread's own default stream."""
    if handle in (0, LEGACY):
        return legacy()
    if handle == PER_THREAD:
        mine = thread()
        if mine.stream is None:
            mine.stream = Stream(PER_THREAD)
            world.per_thread.append(mine.stream)
        return mine.stream
    return find_alive(world.streams, handle, "InvalidResourceHandle", "stream")


def create(flags=0, priority=0):
    """Flags are 0 or non-blocking; a priority outside the device's range is brought into it."""
    if flags not in (0, NON_BLOCKING):
        raise Refused("InvalidValue")
    stream = Stream(world.handle("stream"), flags, min(max(priority, HIGHEST), LOWEST))
    world.streams[stream.handle] = stream
    return stream


def destroy(stream):
    """The handle goes at once, queued work still runs. Default streams cannot be destroyed."""
    if stream.handle not in world.streams:
        raise Refused("InvalidResourceHandle")
    capture.leave(stream)
    orphan(stream.last)
    del world.streams[stream.handle]


def orphan(op):
    """Work that no stream leads to any more still belongs to the device."""
    world.orphans = pending([*world.orphans, op])


def everything():
    """The newest op of every stream: waiting for these waits for the device."""
    streams = [legacy(), *world.per_thread, *world.streams.values()]
    return [s.last for s in streams if s.last is not None] + world.orphans


def ahead(stream):
    """What the next work of a stream waits for: what the stream holds, and what lies across the legacy stream."""
    after = [stream.last]
    if stream.legacy:
        after += [s.last for s in (*world.per_thread, *world.streams.values()) if s.blocking] + world.orphans
    elif stream.blocking:
        after.append(legacy().last)
    return after


def push(stream, run=None, host=False, also=()):
    """Queue work, after all that is ahead of it."""
    stream.last = op = engine.Op(run, [*ahead(stream), *also], host)
    if host:
        engine.begin([op])              # a host function may be waited for by other means than CUDA's
    return op


def submit(stream, job):
    """Work goes into the graph of a capturing stream, and into the queue of any other: the op, or None."""
    if stream.capture is not None:
        capture.add(stream, job)
        return None
    return push(stream, job.execute, job.host)


def launch(stream, job):
    """`job()` makes the work. A launch that is impossible is an error of the capture it was meant for."""
    try:
        made = job()
    except Refused as no:
        if stream.capture is not None:
            capture.invalidate(stream, no.code)
        raise
    return submit(stream, made)


def held(stream):
    """The ops to wait for so that all work in the stream is done."""
    if stream.legacy:
        return [push(stream)]               # it stands behind the blocking streams, too
    return [stream.last]


def pending(ops):
    """The ops that are not done."""
    return [op for op in ops if op is not None and op.state != engine.DONE]


# ---- events ----

def event_of(handle):
    """The event behind a handle; a destroyed one is recognised, as if its context were gone."""
    return find(world.events, handle, "ContextIsDestroyed" if world.was_given("event", handle) else "InvalidResourceHandle")


def event_of_node(handle):
    """The same for a node's event: null is an invalid value, and a destroyed one is not recognised."""
    return find_alive(world.events, handle, "InvalidValue", "event")


def create_event(flags=0):
    """An event for other processes cannot take times."""
    if flags & ~7 or flags & INTERPROCESS and not flags & DISABLE_TIMING:
        raise Refused("InvalidValue")
    event = Event(world.handle("event"), flags)
    world.events[event.handle] = event
    return event


def record(event, stream, flags=0):
    """The event stands for all the stream holds now. In a capture it stands for the stream's
    dependencies and adds no node; recorded as external it becomes a node."""
    if flags not in (0, EXTERNAL):
        raise Refused("InvalidValue")
    if stream.capture is not None:
        if flags == EXTERNAL:
            capture.add(stream, work.EventRecord(event))
            return
        event.captured = (capture.active(stream), list(stream.next_after))
        event.op, event.recorded = None, False
        return
    if flags == EXTERNAL:
        raise Refused("IllegalState")
    event.op, event.captured, event.recorded = push(stream), None, True


def wait_event(stream, handle, flags=0):
    """The stream's later work waits for the event. A captured event makes the stream part of its
    capture: this is how a capture forks and joins. A capture does not survive the wait for an event
    that stands for nothing; one that was never recorded is nothing to wait for."""
    try:
        event = event_of(handle)
    except Refused as bad:
        if stream.capture is not None:
            capture.invalidate(stream, bad.code)
        raise
    if flags not in (0, EXTERNAL):
        raise Refused("InvalidValue")
    mine = stream.capture
    if mine is None and event.captured is not None and capture.gone(event.captured[0]):
        raise Refused("InvalidValue")               # found before the flags are looked at
    if flags == EXTERNAL:
        if mine is not None and event.captured is not None and capture.gone(event.captured[0]):
            capture.active(stream)
            capture.invalidate(stream, "InvalidValue")
        if mine is None:
            raise Refused("IllegalState")
        capture.add(stream, work.EventWait(event))
        return
    if mine is not None:
        capture.active(stream)
    if event.captured is not None:
        theirs, nodes = event.captured
        if capture.gone(theirs):                    # a point in a graph that is no longer being captured
            if mine is not None:
                capture.invalidate(stream, "InvalidValue")
            raise Refused("InvalidValue")
        if mine is None and stream.legacy:
            capture.forbid([theirs], "StreamCaptureImplicit")
        elif mine is None:
            capture.join(theirs, stream, nodes)
        elif mine is theirs:
            stream.next_after = capture.merged(stream.next_after, nodes)
        else:                                       # it would merge two captures
            capture.forbid([mine, theirs], "StreamCaptureMerge")
    elif not event.recorded:
        pass
    elif mine is not None:                          # it would wait for work outside the capture
        capture.invalidate(stream, "StreamCaptureIsolation")
    else:
        push(stream, also=[event.op])


def held_by(event):
    """The ops to wait for so that an event is done. It is potentially unsafe to ask in a capture."""
    refuse_captured(event)
    capture.forbid_unsafe()
    return [event.op]


def refuse_captured(event, harmless=False):
    """An event of a capture is a point in a graph, not in time: it can't be queried or waited for,
    and once the capture is over it stands for nothing until it is recorded again."""
    if event.captured is not None:
        theirs, code = event.captured[0], "CapturedEvent"
        if capture.gone(theirs):
            raise Refused("InvalidValue")
        capture.forbid([] if harmless else [theirs], code)
        raise Refused(code)


def destroy_event(event):
    del world.events[event.handle]


def check_elapsed(start, end):
    """Times need two events that take times, were recorded, and are done."""
    for event in (start, end):
        refuse_captured(event, harmless=True)
    if (start.flags | end.flags) & DISABLE_TIMING or not (start.recorded and end.recorded):
        raise Refused("InvalidResourceHandle")
    if pending([start.op, end.op]):
        raise Refused("NotReady")
