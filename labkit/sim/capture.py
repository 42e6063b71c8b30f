"""Capture: work sent to a stream becomes nodes of a graph instead of running.

The rules follow CUDA C++ Programming Guide, CUDA Graphs, "Creating a Graph Using Stream Capture"
and the pages of the Runtime API on it; where these are silent, an H200 was asked.
"""
from . import graph as graphs
from .world import Refused, thread, world

GLOBAL, THREAD_LOCAL, RELAXED = range(3)
NONE, ACTIVE, INVALIDATED = range(3)
SET_DEPENDENCIES = 1


class Capture:
    """A capture sequence from begin to end.

    streams: those that are part of it, the origin first; a destroyed one stays. own: for each, the
    last node captured through it.
    """

    def __init__(self, origin, mode, graph):
        self.id, self.origin, self.mode, self.graph = world.number(), origin, mode, graph
        self.thread, self.status, self.over = thread(), ACTIVE, False
        self.streams, self.own = {}, {}


def begin(stream, mode, graph=None, before=()):
    """Any stream but the legacy default stream can begin a capture, and none twice."""
    if mode not in (GLOBAL, THREAD_LOCAL, RELAXED):
        raise Refused("InvalidValue")
    if stream.legacy:
        raise Refused("StreamCaptureUnsupported")
    if stream.capture is not None:
        raise Refused("IllegalState")
    if any(node.graph is not graph for node in before):
        raise Refused("InvalidValue")
    capture = Capture(stream, mode, graph or graphs.Graph())
    world.captures.append(capture)
    join(capture, stream, before)


def join(capture, stream, nodes):
    """A stream becomes part of a capture; its next node will wait for `nodes`."""
    stream.capture, stream.next_after = capture, list(nodes)
    capture.streams[stream] = None


def end(stream):
    """A capture ends on the stream on which it began, and, unless it is relaxed, in that thread;
    all other streams must have been joined to it. Returns the graph."""
    capture = stream.capture
    if capture is None:
        raise Refused("IllegalState")
    if stream is not capture.origin:
        capture.status = INVALIDATED
        raise Refused("StreamCaptureUnmatched")
    if capture.status == INVALIDATED:
        refusal = "StreamCaptureInvalidated"
    elif unjoined(capture):
        refusal = "StreamCaptureUnjoined"
    elif capture.mode != RELAXED and capture.thread is not thread():
        refusal = "StreamCaptureWrongThread"
    else:
        refusal = None
    close(capture)
    if refusal:                                 # the graph is lost, one that the program gave too
        graphs.destroy(capture.graph)
        raise Refused(refusal)
    return capture.graph


def unjoined(capture):
    """Work of a forked stream that the origin does not wait for. Work taken out of a stream's
    dependencies by an explicit update does not count, nor does a fork without work."""
    loose = {last for stream, last in capture.own.items()
             if stream is not capture.origin and last in stream.next_after and last in capture.graph.nodes}
    return graphs.unreached(loose, capture.origin.next_after)


def close(capture):
    """The capture is over, and its streams are ordinary streams again."""
    capture.over = True
    world.captures.remove(capture)
    for stream in capture.streams:
        if stream.capture is capture:
            stream.capture, stream.next_after = None, []


def gone(capture):
    """Is it over, or lost? Then an event recorded in it stands for nothing any more."""
    return capture.over or capture.status == INVALIDATED


def add(stream, job):
    """Work for a capturing stream becomes a node after the stream's dependencies."""
    capture = active(stream)
    node = graphs.add(capture.graph, job, stream.next_after)
    stream.next_after, capture.own[stream] = [node], node
    return node


def active(stream):
    """The stream's capture; an invalidated one takes no more work."""
    if stream.capture.status == INVALIDATED:
        raise Refused("StreamCaptureInvalidated")
    return stream.capture


def graph_of(stream):
    """The graph that a capturing stream's work goes into, or None."""
    return None if stream.capture is None else active(stream).graph


def invalidate(stream, code):
    """Refuse with `code` and invalidate the stream's capture; later work only says "invalidated"."""
    active(stream).status = INVALIDATED
    raise Refused(code)


def leave(stream):
    """A stream is destroyed: what it captured stays captured, and can no longer be joined.
    When the origin goes, the capture can never end: it is over."""
    capture = stream.capture
    if capture is not None and stream is capture.origin:
        close(capture)


def update_dependencies(stream, nodes, flags):
    """Add nodes of the captured graph to those that the stream's next node waits for, or replace them."""
    if stream.capture is None:
        raise Refused("IllegalState")
    capture = active(stream)
    if flags not in (0, SET_DEPENDENCIES) or any(node.graph is not capture.graph for node in nodes):
        raise Refused("InvalidValue")
    stream.next_after = merged([] if flags == SET_DEPENDENCIES else stream.next_after, nodes)


def merged(nodes, more):
    return list(dict.fromkeys([*nodes, *more]))


def exchange_mode(mode):
    """Set the calling thread's own mode; returns the old one."""
    if mode not in (GLOBAL, THREAD_LOCAL, RELAXED):
        raise Refused("InvalidValue")
    mine = thread()
    mine.mode, old = mode, mine.mode
    return old


# ---- what a capture forbids to others ----

def prohibits(capture):
    """Does this capture prohibit potentially unsafe calls in the calling thread?

    A relaxed thread may make them. Else a thread may not while it has a capture of its own that was
    not begun relaxed, nor, in global mode, while another thread has one that was begun global.
    """
    mine = thread()
    if mine.mode == RELAXED:
        return False
    if capture.thread is mine:
        return capture.mode != RELAXED
    return mine.mode == GLOBAL and capture.mode == GLOBAL


def forbid(captures, code):
    """If there are captures that this call conflicts with: invalidate them and refuse."""
    captures = list(captures)
    for capture in captures:
        capture.status = INVALIDATED
    if captures:
        raise Refused(code)


def forbid_unsafe():
    """A potentially unsafe call, that is one which would not be part of the graph."""
    forbid(filter(prohibits, world.captures), "StreamCaptureUnsupported")


def forbid_always():
    """Waiting for the whole device includes the capturing streams, which run nothing."""
    forbid(world.captures, "StreamCaptureUnsupported")


def blocking_captures():
    return [c for c in world.captures if any(s.blocking for s in c.streams)]


def forbid_legacy():
    """The legacy stream waits for every blocking stream, a capturing one too: an implicit
    dependency that a graph cannot hold. Captures on non-blocking streams do not mind."""
    forbid(blocking_captures(), "StreamCaptureImplicit")


def forbid_wait(stream):
    """Waiting for a capturing stream is never possible, waiting for the legacy stream would wait for
    blocking captures, and waiting for any other stream is potentially unsafe."""
    if stream.capture is not None:
        forbid([stream.capture], "StreamCaptureUnsupported")
    if stream.legacy:
        forbid_legacy()
    forbid_unsafe()


def guard(kind, stream=None):
    """What kind of call is it, as far as captures are concerned? See guards.py for the kinds."""
    if kind == "unsafe":
        forbid_unsafe()
    elif kind == "always":
        forbid_always()
    elif kind == "waits":
        forbid_wait(stream)
    elif kind == "pool" and stream.capture is None:
        if stream.legacy:
            forbid_legacy()
        forbid_unsafe()
    elif kind == "asks":
        ask(stream)
    elif kind == "refused" and stream.capture is not None:     # also where the capture is lost already
        stream.capture.status = INVALIDATED
        raise Refused("StreamCaptureUnsupported")
    elif kind == "legacy" or kind in ("work", "refused") and stream.legacy:
        forbid_legacy()


def ask(stream):
    """Asking about the legacy stream beside a blocking capture is refused and harms nothing."""
    if stream.legacy and blocking_captures():
        raise Refused("StreamCaptureImplicit")


def state(stream):
    """(status, capture or None) of a stream."""
    return (NONE, None) if stream.capture is None else (stream.capture.status, stream.capture)
