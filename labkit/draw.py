"""Pictures: a graph as CUDA holds it, what changed in one, and the charts of what it costs.

    draw.graph(graph)                     nodes and edges, read back from CUDA
    draw.difference(old, new)             what differs between two graphs
    draw.cost(measurements)               launch cost against the number of kernels
    draw.stages(measurements)             the stages of each variant, against a parameter
    draw.speedup(measurements)            when a graph stops paying
    draw.strategies(measurement)          ways to do one thing, fastest first
    draw.claims(rows)                     what is said, beside what was measured
    draw.decision(tree, measurement)      which of them when
    draw.timeline(timeline)               the gaps between kernels
    draw.answers(table, title)            what each call answered
    draw.memory(log)                      what graphs and pools hold, from step to step
    draw.addresses(graph)                 where the allocations of a graph lie
"""
import textwrap
from collections import Counter

from labkit import graph as reading
from labkit.addresses import addresses  # noqa: F401  (the pictures live next door)
from labkit.answers import answers  # noqa: F401
from labkit.changes import differences  # noqa: F401
from labkit.charts import speedup, timeline  # noqa: F401
from labkit.claims import Claim, claims  # noqa: F401
from labkit.decision import decision  # noqa: F401
from labkit.difference import difference  # noqa: F401
from labkit.errors import LabError
from labkit.figure import GROUND, WIDTH, Canvas
from labkit.layout import HEIGHT, SCALE, Layout, machine, paint, texts_of  # noqa: F401
from labkit.lines import Fit, cost, stages  # noqa: F401
from labkit.memory_chart import memory  # noqa: F401
from labkit.strategies import strategies  # noqa: F401

MOST = 60        # nodes in one picture
SHOWN = 40       # of a larger graph
TALLEST = 10     # inches on paper; what is taller is drawn smaller


def graph(graph, labels=None, mark=()):
    """The graph as CUDA hands it back: a Figure. labels: texts by position in nodes(graph); mark: positions to set off.

    Above 60 nodes only the first 40 are drawn, and the picture says so. Raises LabError for what is no graph.
    """
    if graph is None or isinstance(graph, reading.NO_HANDLE):
        raise LabError(f"draw.graph() got {type(graph).__name__}.", "It draws a graph handle, as cudaStreamEndCapture returns it through ok().",
                       "Pass the graph itself; a capture that failed has none.")
    kinds, edges = reading.kinds(graph), reading.edges(graph)
    return picture(kinds, edges, labels, mark)


def picture(kinds, edges, labels=None, mark=()):
    """draw.graph for kinds and edges that were read earlier."""
    many = f"{len(kinds):,} node{'s' * (len(kinds) != 1)}, {len(edges):,} edge{'s' * (len(edges) != 1)}"
    what = ", ".join(f"{n:,} {kind}" for kind, n in Counter(kinds).items()) or "an empty graph"
    cut = f". Too many to read: these are the first {SHOWN}" if len(kinds) > MOST else ""
    source = {"figure": "graph", "kinds": list(kinds), "edges": [list(edge) for edge in edges]}
    if cut:
        kinds, edges = kinds[:SHOWN], [(a, b) for a, b in edges if a < SHOWN and b < SHOWN]
    texts, edges = texts_of(kinds, labels), [tuple(edge) for edge in edges]
    listed = "; ".join(f"{texts[a][0]} to {texts[b][0]}" for a, b in edges[:30]) + ("; and more" if len(edges) > 30 else "")
    alt = f"A graph of {many}: {what}{cut}." + (f" Nodes: {', '.join(' '.join(t) for t in texts)}." if texts else "") + (f" Edges: {listed}." if edges else "")
    layout = Layout(texts, edges, (WIDTH - 0.3) / SCALE - 0.2)
    scale = min(SCALE, (WIDTH - 0.3) / (layout.size[0] + 0.2), TALLEST / (layout.size[1] + 0.2))
    wide, tall = ((side + 0.2) * scale for side in layout.size)
    below = textwrap.wrap(what + cut, 100)
    height = tall + 0.65 + 0.17 * len(below)
    with Canvas(height) as canvas:
        canvas.title(many, "\n".join(below))
        if kinds:
            ax = canvas.fig.add_axes([0.15 / WIDTH, 0.25 / height, wide / WIDTH, tall / height], facecolor=GROUND)
            paint(ax, layout, texts, edges, set(mark), scale / SCALE)
        return canvas.done(alt, source, [machine()])
