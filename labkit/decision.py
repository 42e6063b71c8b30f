"""Which way when: a tree of questions that ends in what was measured: draw.decision()."""
from dataclasses import dataclass, field

from labkit.errors import LabError
from labkit.figure import INK, PALETTE, QUIET, Canvas, colour, notice
from labkit.plotting import one, places, record, setting

LEAF, GAP, ROOM, LINE = 2.3, 0.45, 0.14, 0.155     # inches: width of a leaf, between columns, between rows, of a line of text
LARGEST = 4                                        # columns of questions that stay readable


@dataclass
class _Box:
    """A question with its two answers, or a leaf; where it stands, in columns and rows."""
    text: str
    yes: object = None
    no: object = None
    column: int = 0
    row: int = 0
    lines: list = field(default_factory=list)

    def all(self):
        return [self] + (self.yes.all() + self.no.all() if self.yes else [])


def _read(tree, m, column=0, row=0):
    """The tree as boxes: "yes" goes one column to the right, "no" stays in its column, below all that. LabError for another form."""
    if isinstance(tree, str):
        m.missing or m.e2e[tree]                   # a LabError that names the variants, where it is none of them
        return _Box(tree, column=column, row=row)
    if not isinstance(tree, tuple) or len(tree) != 3 or not isinstance(tree[0], str):
        raise LabError(f"draw.decision() got {tree!r:.60} in its tree.", "A tree is (question, yes, no), and yes and no are trees or names of variants.",
                       'Write for example ("Does the batch change?", "node updates", "fixed replay").')
    box = _Box(tree[0], column=column, row=row)
    box.yes = _read(tree[1], m, column + 1, row)
    box.no = _read(tree[2], m, column, 1 + max(leaf.row for leaf in box.yes.all()))
    return box


def decision(tree, m, reference=None):
    """A tree of questions, left to right, that ends in variants with their median end to end: a Figure.

    tree: ("question?", yes, no); yes and no are such tuples again, or names of variants of the measurement m.
    reference: the variant that each is compared with. Raises LabError for a bare number, another form of tree, and a name m does not have.
    """
    m = one(m, "decision")
    root = _read(tree, m)
    if m.missing:
        return notice(m.missing, "decision")
    if reference is not None:
        m.e2e[reference]
    boxes = root.all()
    questions, leaves = [box for box in boxes if box.yes], [box for box in boxes if not box.yes]
    columns = 1 + max((box.column for box in questions), default=0)
    if not questions or columns > LARGEST:
        raise LabError("draw.decision() got a tree of one leaf." if not questions else f"draw.decision() got a tree with {columns} times yes in a row.",
                       f"It draws at least one question, and at most {LARGEST} columns of them.", "Ask the other way round, so that more answers are no.")
    order = sorted({box.text for box in leaves}, key=lambda name: m.e2e[name].median)
    title = f"{order[0]}: {m.e2e[order[0]]}" + (f", to {order[-1]}: {m.e2e[order[-1]]}" if len(order) > 1 else "")
    told = "; ".join(f"{box.text} Yes: {_named(box.yes, m)}. No: {_named(box.no, m)}" for box in questions)
    source = {"figure": "decision", "experiment": m.experiment, "params": dict(m.params), "tree": tree, "reference": reference,
              "series": [record(m, name, "e2e") for name in [*order, *[reference] * (reference not in (None, *order))]], "missing": ""}
    wide = (7.3 - LEAF - columns * GAP) / columns
    with Canvas(0.1) as ruler:                     # only to measure text: the height depends on it
        for box in boxes:
            box.lines = ruler.wrap(box.text, wide - 0.16, 9, 5) if box.yes else ruler.wrap(box.text, LEAF - 0.24, 9, 3, "bold")
            if box.yes and len(box.lines) > box.text.count("\n") + 1:      # its own line breaks don't fit here
                box.lines = ruler.wrap(box.text.replace("\n", " "), wide - 0.16, 9, 5)
    rows = [0.0] * len(leaves)
    for box in boxes:
        rows[box.row] = max(rows[box.row], LINE * (len(box.lines) + (0 if box.yes else 1)) + 0.16)
    where = places([m])
    with Canvas(0.72 + sum(rows) + ROOM * len(rows) + 0.3) as canvas:
        canvas.title(title, canvas.fit(f"{setting(m)}; end to end" + (f", beside {reference}" if reference else ""), 7.3, 9, 9)[0])
        _paint(canvas, boxes, rows, wide, m, reference, order[0])
        return canvas.done(f"A decision tree. {told}. {title}.", source, where)


def _named(box, m):
    return f"ask on: {box.text}" if box.yes else f"{box.text}, {m.e2e[box.text]}"


def _paint(canvas, boxes, rows, wide, m, reference, fastest):
    """Boxes and their edges, in inches from the lower left corner."""
    from matplotlib.patches import FancyBboxPatch
    (width, height), step = canvas.inches, wide + GAP
    ax = canvas.fig.add_axes([0, 0, 1, 1])
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.axis("off")
    middle = [height - 0.72 - sum(rows[:k]) - ROOM * k - rows[k] / 2 for k in range(len(rows))]

    def left(box):
        return 0.15 + box.column * step if box.yes else width - 0.15 - LEAF

    for box in boxes:
        x, y, w = left(box), middle[box.row], wide if box.yes else LEAF
        tall = LINE * (len(box.lines) + (0 if box.yes else 1)) + 0.16
        ax.add_patch(FancyBboxPatch((x, y - tall / 2), w, tall, boxstyle=f"round,pad=0,rounding_size={0.12 if box.yes else 0.04}",
                                    facecolor="#FFE08A" if not box.yes and box.text == fastest else "#FFFFFF",
                                    edgecolor=QUIET if box.yes else colour(box.text), linewidth=1.2 if box.yes else 1.8, zorder=3))
        for k, words in enumerate(box.lines):
            at = y + tall / 2 - 0.08 - LINE * (k + 0.5)
            ax.text(x + (w / 2 if box.yes else 0.12), at, words, ha="center" if box.yes else "left", va="center", size=9,
                    color=INK, weight="normal" if box.yes else "bold", zorder=4)
        if not box.yes:
            stat = m.e2e[box.text]
            words = f"{stat}" + (f" · {stat.median / m.e2e[reference].median:.2f} times" if reference not in (None, box.text) else "")
            words += " · the fastest here" if box.text == fastest and reference is None else ""
            ax.text(x + 0.12, y - tall / 2 + 0.08 + LINE / 2, words, va="center", size=9, color=INK, zorder=4)
            continue
        _edge(ax, [(x + w, y), (left(box.yes), middle[box.yes.row])], "yes", (x + w + 0.06, y + 0.02), "bottom")
        down = x + min(0.3, w / 2)
        turn = middle[box.no.row]
        end = (down, turn + _half(box.no)) if box.no.yes else (left(box.no), turn)
        corner = [] if box.no.yes else [(down, turn)]
        _edge(ax, [(down, y - tall / 2), *corner, end], "no", (down + 0.06, y - tall / 2 - 0.02), "top")


def _half(box):
    return (LINE * len(box.lines) + 0.16) / 2


def _edge(ax, points, word, at, side):
    """A line through `points` with an arrow at its end and the answer at its start."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path
    ax.add_patch(FancyArrowPatch(path=Path(points), arrowstyle="-|>", mutation_scale=10, shrinkA=0, shrinkB=0, color=INK, linewidth=1.1,
                                 joinstyle="round", fill=False, zorder=2))
    ax.text(*at, word, ha="left", va=side, size=8.5, color=PALETTE["update"] if word == "yes" else PALETTE["stream"], weight="bold", zorder=5)
