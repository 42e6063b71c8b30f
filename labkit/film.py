"""The film of a capture: the growing graph after each line of your code.

    with film(stream) as reel:
        ok(cudart.cudaStreamBeginCapture(stream, mode))
        ok(launch(stream, axpy, 4, 256, y, x, 2.0, n))
        graph = ok(cudart.cudaStreamEndCapture(stream))
    reel.show()          # a strip of pictures, and a slider where widgets run
    print(reel)          # the same in words

CUDA hands out the graph while it is being captured; the film reads it and changes nothing. A stream
that joined the capture adds to the same graph, so one stream is enough to film a fork.
"""

import re
import sys
import textwrap
from typing import NamedTuple

from labkit import graph
from labkit.errors import LabError
from labkit.trace import lines

MOST_NODES = 60  # beyond, a picture is no picture and each line would read a long list
NO_GRAPH = "capture over: no graph"


class Frame(NamedTuple):
    """After one line. Nodes are numbered as they appeared; reel.kinds[number] is a node's kind.

    nodes, new, edges: the numbers that are there, those this line added, pairs of them. status: "None", "Active" or "Invalidated". note: what the line did to the capture as a whole.
    changed: whether the line changed the graph or the status; pictures show these frames only.
    """
    line: int
    code: str
    status: str
    nodes: tuple
    edges: tuple
    new: tuple
    note: str
    changed: bool


class Reel:
    """The frames of one film: .frames (every line), .shots (the lines that changed something)."""

    def __init__(self):
        self.frames, self.kinds, self.edges = [], [], set()  # kinds and edges: all that ever were
        self.cut = False  # more nodes than MOST_NODES: the film stopped there

    @property
    def shots(self):
        return [frame for frame in self.frames if frame.changed]

    @property
    def told(self):
        """The frames worth telling: without `for ...:` and the like where they changed nothing."""
        return [f for f in self.frames if f.changed or not f.code.endswith(":")]

    def words(self, frame):
        """What the line did, in a few words; "" where it left the capture as it was."""
        parts = [frame.note] if frame.note else []
        for node in frame.new:
            before = [str(a) for a, b in frame.edges if b == node]
            parts.append(f"{self.kinds[node]} {node}" + (f" after {' and '.join(before)}" if before else ""))
        return ", ".join(parts) or ("other edges" if frame.changed else "")

    def __repr__(self):
        rows = [(shorten(f.code), self.words(f)) for f in self.told]
        wide = min(56, max((len(code) for code, _ in rows), default=0))
        return "\n".join(f"{textwrap.shorten(code, wide, placeholder='…'):<{wide}}  {words}".rstrip() for code, words in rows)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.figure()._repr_mimebundle_()

    def figure(self):
        """The strip as a Figure. Raises LabError where there is nothing to show."""
        from labkit.strip import strip
        if not self.shots:
            raise LabError("The film shows nothing.", "No line of the block began a capture on this stream, or added to one.",
                           "Put the lines from cudaStreamBeginCapture to cudaStreamEndCapture inside the block.")
        return strip(self)

    def show(self):
        """Show the strip, and a slider over its frames where Jupyter widgets run."""
        from IPython.display import display

        from labkit.strip import slider
        display(self.figure())
        widget = slider(self)
        if widget is not None:
            display(widget)


class film:
    """`with film(stream) as reel:` follows the block line by line (labkit.trace) and fills `reel`.

    Calls inside a function show as one line. Keep `stream` alive until the block ends. Raises
    LabError for what is no stream. Stands for: cudaStreamGetCaptureInfo, cudaGraphGetNodes.
    """

    def __init__(self, stream):
        self.stream = stream
        self.reel = Reel()
        self.place = {}  # (capture id, node handle): number
        self.status, self.capture = "None", None
        self.nodes, self.edges, self.kept = (), (), ((), ())  # now; and when the latest capture began

    def __enter__(self):
        try:
            self._read()
        except Exception as error:
            if isinstance(error, LabError) and error.code is not None:      # CUDA's own answer
                raise
            raise LabError(f"film() got a {type(self.stream).__name__}.", "It follows the capture on one stream.",
                           "Pass the stream that begins the capture.") from error
        self.tracer = lines(self._after, sys._getframe(1))
        self.tracer.__enter__()
        return self.reel

    def __exit__(self, kind, value, traceback):
        self.tracer.__exit__(kind, value, traceback)
        frames = self.reel.frames
        if value is not None and frames:
            last = frames[-1]
            note = f"{last.note + ', ' if last.note else ''}raised {kind.__name__}"
            frames[-1] = last._replace(note=note, changed=True)
        return False

    def _read(self):
        """Read the capture. Returns (numbers of the new nodes, what happened to the capture)."""
        state, was, reel = graph.capture_state(self.stream), self.status, self.reel
        self.status, note, known = state.status, "", len(reel.kinds)
        if state.status == "Active" and state.id != self.capture:
            note, self.capture, self.kept = "capture begins", state.id, (self.nodes, self.edges)
        elif state.status == "Invalidated" != was:
            note = "capture invalidated"
        elif state.status == "None" != was:
            note = "capture over" if was == "Active" else NO_GRAPH
            if was != "Active":
                self.nodes, self.edges = self.kept
        if state.graph is not None and not reel.cut:
            nodes = graph.nodes(state.graph)
            reel.cut = len(nodes) > MOST_NODES
            if not reel.cut:
                self._take(state, nodes)
        return tuple(range(known, len(reel.kinds))), note

    def _take(self, state, nodes):
        """Number the nodes that are new, and keep the edges under these numbers."""
        names = [(state.id, int(node)) for node in nodes]
        for name, node in zip(names, nodes):
            if name not in self.place:
                self.place[name] = len(self.reel.kinds)
                self.reel.kinds.append(graph.kind(node))
        number = [self.place[name] for name in names]
        self.nodes = (*self.kept[0], *sorted(number))
        self.edges = (*self.kept[1], *sorted((number[a], number[b]) for a, b in graph.edges(state.graph)))
        self.reel.edges.update(self.edges)

    def _after(self, line):
        before = self.edges
        new, note = self._read()
        changed = bool(new or note or self.edges != before)
        self.reel.frames.append(Frame(line.number, line.text, self.status, self.nodes, self.edges, new, note, changed))


def shorten(code):
    """A line of code as the film writes it: without `ok( )` around it, and long enum names once."""
    code = re.sub(r"\b(\w+)\.(?=\1)", "", code.replace("cudart.", ""))  # Mode.ModeGlobal -> ModeGlobal
    inner = re.fullmatch(r"(\w[\w, ]* = )?ok\((.*)\)", code)
    return (inner[1] or "") + inner[2] if inner else code
