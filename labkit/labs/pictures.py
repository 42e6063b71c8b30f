"""What was expected beside what was found: two graphs, or two rows of values."""
import textwrap

import numpy as np

from labkit.changes import compare
from labkit.difference import GONE, Both, panels
from labkit.figure import INK, PALETTE, WIDTH, Canvas
from labkit.layout import machine

MOST = 48        # values in one picture


def picture(drawn):
    """The Figure for a Trouble's .drawn, or None where there is nothing to draw."""
    if drawn is None:
        return None
    kind, *what = drawn
    return shapes(*what) if kind == "shapes" else values(*what)


def shapes(wanted, found):
    """Two shapes (labkit.labs.shapes) as a Figure: the one expected, and the learner's, with what differs set off."""
    differences, paired = compare(wanted, found)
    both = Both(wanted, found, paired, None)
    both.tell(differences)
    for more in both.more:
        more.update({k: [_AS_ASKED.get(word, word) for word in words] for k, words in more.items()})
    both.looks[1].update(dict.fromkeys(both.looks[1], GONE))        # what nobody asked for is no gain here
    title, words = _told(differences)
    alt = f"Two graphs. Expected: {wanted.listed()}. Yours: {found.listed()}. {title}. {words}"
    source = {"figure": "difference", "old": {"kinds": wanted.kinds, "edges": [list(e) for e in wanted.edges]},
              "new": {"kinds": found.kinds, "edges": [list(e) for e in found.edges]}, "pairs": [list(p) for p in paired]}
    return panels(title, words, both, both.shown(), alt, source, ("expected", "yours"))


_AS_ASKED = {"– removed": "missing", "+ added": "not asked for"}


def _told(differences):
    """(title, line below): what the learner's graph lacks, and what of it nobody asked for."""
    def many(what):
        found = {one: sum(d.what == f"{one} {what}" for d in differences) for one in ("node", "edge")}
        return " and ".join(f"{n} {one}{'s' * (n != 1)}" for one, n in found.items() if n)
    other = sum(d.what in ("kind", "parameter") for d in differences)
    title = f"Your graph lacks {many('removed')}" if many("removed") else "Your graph has the nodes and edges that were asked for, and more" if many("added") else "Your graph has other nodes"
    below = [f"{many('added')} not asked for"] * bool(many("added")) + [f"{other} other node{'s' * (other != 1)} in place of what was asked for"] * bool(other)
    legend = [word for word, there in (("missing", many("removed")), ("not asked for", many("added")), ("other", other)) if there]
    return title, "; ".join([*below, f"dashed orange: {' / '.join(legend)}"] if legend else below)


def values(name, when, expected, found):
    """Two rows of values as a Figure: around the first that differ."""
    from matplotlib.ticker import MaxNLocator
    count = min(expected.size, found.size)
    wrong = ~np.isclose(found[:count], expected[:count], rtol=1e-4, atol=1e-4)
    first = max(0, int(np.argmax(wrong)) - 8) if wrong.any() else 0
    part = slice(first, min(first + MOST, count))
    at, off = np.arange(count)[part], wrong[part]
    title = f"{name}: {count - int(wrong.sum()):,} of {count:,} values are right"
    shown = f"; shown are {part.start:,} to {part.stop - 1:,}" if part.stop - part.start < count else ""
    below = textwrap.fill(f"{when}{shown}", 110)
    with Canvas(2.9, WIDTH) as canvas:
        ax = canvas.axes(0.75, 0.62, 1.15, 0.8)
        ax.hlines(expected[part], at - 0.4, at + 0.4, color=PALETTE["graph"], linewidth=2)
        ax.plot(at[~off], found[part][~off], "o", color=PALETTE["update"], markersize=4)
        ax.plot(at[off], found[part][off], "x", color=PALETTE["stream"], markersize=7, markeredgewidth=2)
        ax.set_xlabel("element")
        ax.set_ylabel("value")
        aside = max(0.6, 2 - at.size / 2)
        ax.set_xlim(part.start - aside, part.stop - 1 + aside)
        ax.set_xticks(at) if at.size < 10 else ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.margins(y=0.15)
        canvas.title(title, below)
        for y, (mark, text, ink) in enumerate((("—", "expected", PALETTE["graph"]), ("×", "yours, wrong", PALETTE["stream"]), ("●", "yours, right", PALETTE["update"]))):
            canvas.fig.text(1 - 1.08 / WIDTH, 0.74 - 0.09 * y, f"{mark} {text}", size=9, color=ink if text else INK, va="top")
        alt = f"{title}: {below}. Expected {_some(expected[part])}; found {_some(found[part])}."
        source = {"figure": "values", "name": name, "expected": expected[part].tolist(), "found": [float(v) if np.isfinite(v) else str(v) for v in found[part]], "first": first}
        return canvas.done(alt, source, [machine()])


def _some(row):
    return " ".join(f"{value:.4g}" for value in row[:6]) + (" ..." if row.size > 6 else "")
