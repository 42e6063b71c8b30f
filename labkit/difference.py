"""Two graphs and what differs between them, as a picture: draw.difference(old, new, at=why)."""
from dataclasses import asdict

from labkit.changes import Read, compare, summary
from labkit.errors import LabError
from labkit.figure import PALETTE, QUIET, WIDTH, Canvas
from labkit.layout import SCALE, Layout, ghosts, machine, paint, shorten, texts_of
from labkit.pairing import together

MOST, FEW, TALLEST = 40, 10, 10      # nodes in one picture; around a few that differ in a large graph; inches of both panels
_NEW = {"fill": "#DDEFE6", "ink": PALETTE["update"], "width": 2.4}
GONE = {"ink": PALETTE["stream"], "width": 2, "line": (0, (3, 2))}
_HERE = {"fill": "#FFE08A", "ink": "#B3261E", "width": 3}


def difference(old, new, labels=None, at=None):
    """What differs between two graphs: a Figure with both, paired nodes in the same place. differences() gives the same as text.

    labels: texts by position in nodes(old). at: what exec_update(executable, new) returned beside its code; the node
    that it stopped at is marked, and the reason is in the title. Raises LabError for what is no graph, and for another `at`.
    """
    if at is not None and not (hasattr(at, "result") and hasattr(at, "position")):
        raise LabError(f"draw.difference() got at={at!r:.40}.", "It takes the second thing that exec_update() returns, the reason.",
                       "Write err, why = exec_update(executable, new), then at=why.")
    old, new = Read(old, "old"), Read(new, "new")
    found, paired = compare(old, new)
    both = Both(old, new, paired, labels)
    both.tell(found)
    if at is not None and at.result != "Success":
        both.refuse(at)
    words = summary(found)
    title, below = _says(at, words[0].upper() + words[1:])
    shown = both.shown()
    if len(shown) < len(both.rows):
        below = f"{below}. " * bool(below) + f"Of {len(both.rows):,} nodes these are " + (
            "some that differ, and those around them" if both.touched else f"the first {MOST}")
    told = "; ".join(map(repr, found[:30])) + "; and more" * (len(found) > 30)
    alt = f"Two graphs. Old: {old}. New: {new}. {title}. " + f"{below}. " * bool(below) + told
    source = {"figure": "difference", "old": {"kinds": old.kinds, "edges": [list(edge) for edge in old.edges]},
              "new": {"kinds": new.kinds, "edges": [list(edge) for edge in new.edges]},
              "pairs": [list(pair) for pair in paired], "differences": [{**asdict(d), "text": repr(d)} for d in found],
              "at": None if at is None else {"result": at.result, "position": at.position}}
    return panels(title, below, both, shown, alt, source)


def _says(at, words):
    """(title, line below) from the differences and what an update said of them."""
    if at is None:
        return words, ""
    if at.result == "Success":
        return "cudaGraphExecUpdate accepts this", words
    return f"cudaGraphExecUpdate refuses: {at!r}", words


class Both:
    """Two graphs in one numbering, the rows: .rows[k] = (position in old or None, position in new or None).

    .edges, .looks, .more: for the old and the new graph, by row: edges, how nodes and edges look, lines to add. .touched: the rows that differ.
    """

    def __init__(self, old, new, paired, labels):
        self.graphs, self.rows = (old, new), together(paired, len(old.kinds), len(new.kinds))
        self.at = [{row[side]: k for k, row in enumerate(self.rows) if row[side] is not None} for side in (0, 1)]
        self.edges = [[(at[a], at[b]) for a, b in graph.edges] for at, graph in zip(self.at, self.graphs)]
        self.looks, self.more, self.touched = ({}, {}), ({}, {}), set()
        given = dict(enumerate(labels)) if isinstance(labels, (list, tuple)) else labels or {}
        self.labels = {self.at[0][i]: label for i, label in given.items() if i in self.at[0]}

    def tell(self, found):
        """Set off each difference where it is, and write it in its node."""
        for d in found:
            if d.inside:                                # in a child graph: told on the child's own node
                self._mark(1, self.at[0][int(d.inside.split()[1])], [d.own.replace(f" ({d.kind})", "")])
            elif d.what.startswith("edge"):
                side = 0 if d.new is None else 1
                edge = tuple(self.at[side][i] for i in d.new or d.old)
                self.looks[side][edge] = (GONE, _NEW)[side]
                self.touched.update(edge)
            elif d.new is None:
                self._mark(0, self.at[0][d.old], ["– removed"])
            else:
                self._mark(1, self.at[1][d.new], ["+ added"] if d.old is None else d.words)

    def _mark(self, side, k, words):
        self.looks[side][k] = (GONE, _NEW)[side]
        self.more[side].setdefault(k, []).extend(words)
        self.touched.add(k)

    def refuse(self, at):
        """Mark where an update stopped, and the edge that is too much where it named one."""
        here = self.at[1].get(at.position)
        if here is not None:
            self._mark(1, here, [])
            self.more[1][here].insert(0, "refused here")
            self.looks[1][here] = _HERE
            other = self.at[1].get(getattr(at, "other_position", None))
            if (other, here) in self.edges[1]:
                self.looks[1][other, here] = _HERE

    def shown(self):
        """Which rows are drawn: all, or those that differ and some around them."""
        if len(self.rows) <= MOST:
            return list(range(len(self.rows)))
        picked = set(sorted(self.touched)[:MOST]) or set(range(MOST))
        while len(picked) < FEW:
            near = {k for edge in self.edges[0] + self.edges[1] if picked & set(edge) for k in edge}
            if near <= picked:
                break
            picked |= near
        return sorted(picked)[:MOST]

    def text(self, side, k):
        """The lines in a node: its label, or its position and its kernel; its kind; what changed."""
        graph, position = self.graphs[side], self.rows[k][side]
        if position is None:
            return "", ""
        kernel = graph.parameters[position].get("kernel")
        own = f"{position} {kernel.text}" if kernel else position
        lines, = texts_of([graph.kinds[position]], {0: self.labels.get(k, own)})
        more = [words.replace(" -> ", " → ") for words in self.more[side].get(k, [])]
        more = more if len(more) <= 4 else [*more[:3], f"and {len(more) - 3} more"]
        return (*lines, *(shorten(words, 27) for words in more))


def panels(title, below, both, shown, alt, source, names=("old", "new")):
    """Two panels on one layout, side by side where both fit, else one above the other. names: what stands above each."""
    number = {k: n for n, k in enumerate(shown)}
    edges = [[(number[a], number[b]) for a, b in part if a in number and b in number] for part in both.edges]
    looks = [{number.get(k) if isinstance(k, int) else (number.get(k[0]), number.get(k[1])): look for k, look in part.items()} for part in both.looks]
    texts = [[both.text(side, k) for k in shown] for side in (0, 1)]
    union = sorted(set(edges[0]) | set(edges[1]))
    layouts = [Layout(part, union, (WIDTH - 0.3) / SCALE - 0.2, sum(texts, [])) for part in texts]
    scale = min(SCALE, (WIDTH - 0.3) / (layouts[0].size[0] + 0.2), TALLEST / sum(layout.size[1] + 0.2 for layout in layouts))
    sizes = [[(side + 0.2) * scale for side in layout.size] for layout in layouts]
    beside = 2 * sizes[0][0] + 0.35 <= WIDTH - 0.3
    top, head = 0.62 if below else 0.44, 0.26
    tall = max(size[1] for size in sizes) + head if beside else sum(size[1] + head for size in sizes) + 0.1
    height = top + tall + 0.32
    with Canvas(height) as canvas:
        canvas.title(title, canvas.fit(below, WIDTH - 0.3, 9, 9)[0])
        left, y = 0.15, height - top
        for side, (layout, (w, h)) in enumerate(zip(layouts, sizes)):
            canvas.fig.text(left / WIDTH, y / height, f"{names[side]}: {both.graphs[side]}", size=9, color=QUIET, va="top", weight="bold")
            ax = canvas.fig.add_axes([left / WIDTH, (y - head - h) / height, max(w, 0.1) / WIDTH, max(h, 0.1) / height])
            here = [both.rows[k][side] is not None for k in shown]
            ghosts(ax, layout, [n for n, there in enumerate(here) if not there])
            paint(ax, layout, [text if there else None for text, there in zip(texts[side], here)], edges[side], scale=scale / SCALE, looks=looks[side])
            left, y = (WIDTH / 2 + 0.1, y) if beside else (left, y - head - h - 0.1)
        return canvas.done(alt, source, [machine()])
