"""What is said, beside what was measured: draw.claims()."""
import re
from dataclasses import dataclass

from labkit.errors import LabError
from labkit.figure import GROUND, INK, PALETTE, QUIET, Canvas, notice
from labkit.layout import machine
from labkit.measurement import Measurement
from labkit.plotting import GROUNDS, places, plain_ticks, record, stat_of
from labkit.predict import number

TEXT, WORDS = 2.35, 1.32                       # inches of the claim on the left, and of the finding on the right
_FIGURE = re.compile(r"\d\s*(ns|us|µs|ms|s|times|x|×|%)(?!\w)")       # a duration or a ratio among words
LINE, GAP = 0.22, 0.16                         # inches of a line, and between rows


@dataclass(frozen=True)
class Claim:
    """One row: a claim in words, the range it gives in microseconds, and what was measured for it.

    low, high: the range; one of them None where it is open. measurement, variant, what: the figure to put
    beside it, what = "cpu", "e2e" or a stage. measured: a list of (label, measurement, variant, what) in their place.
    verdict: for a claim without a figure, what was found: True, False or a few words. note: a small line below.
    """
    text: str
    low: float | None = None
    high: float | None = None
    measurement: Measurement | None = None
    variant: str = ""
    what: str = "e2e"
    note: str = ""
    measured: tuple = ()
    verdict: object = None

    @property
    def figures(self):
        """[(label, measurement, variant, what)]"""
        return [("", self.measurement, self.variant, self.what)] if self.measurement is not None else list(self.measured)

    @property
    def range(self):
        """The claimed range in words, or ""."""
        if self.low is None and self.high is None:
            return ""
        if self.low is None or self.high is None:
            return f"under {number(self.high)} µs" if self.low is None else f"{number(self.low)} µs or more"
        return f"{number(self.low)} µs" if self.low == self.high else f"{number(self.low)} to {number(self.high)} µs"

    def against(self, stat):
        """(whether the quartiles reach into the range, the same in words)."""
        low, high = self.low or 0, self.high or float("inf")
        if stat.high >= low and stat.low <= high:
            return True, "as claimed"
        far = max(stat.median / high, low / stat.median)
        times = number(float(f"{far:.2g}"))            # two digits say enough: 4, 2.5, 120, 12,000
        if stat.median > high:
            return False, f"{times} times the claim" if far >= 1.1 else f"{100 * far:.0f} % of the claim"
        return False, f"1/{times} of the claim" if far > 2 else f"{100 / far:.0f} % of the claim"


def _checked(rows):
    rows = [rows] if isinstance(rows, Claim) else list(rows) if isinstance(rows, (list, tuple)) else [rows]
    for row in rows:
        if not isinstance(row, Claim):
            raise LabError(f"draw.claims() got {row!r:.40} as a row.", "A row is a draw.Claim.",
                           'Write draw.Claim("what is said", 2, 3, m, "node updates").')
        for figure in row.figures:
            if not isinstance(figure, tuple) or len(figure) != 4 or not isinstance(figure[1], Measurement):
                raise LabError(f"The claim {row.text!r:.40} got {figure!r:.60} as a figure.", *GROUNDS, "Pass (label, measurement, variant, what).")
        bad = [v for v in (row.low, row.high) if v is not None and (isinstance(v, bool) or not isinstance(v, (int, float)) or not v > 0)]
        if bad or (row.low is not None and row.high is not None and row.low > row.high):
            raise LabError(f"The claim {row.text!r:.40} got the range {row.low!r} to {row.high!r}.",
                           "A range is in microseconds, above 0, the smaller number first.", "Write for example low=2, high=3, or one of them None.")
        if bool(row.figures) == (row.verdict is not None):
            raise LabError(f"The claim {row.text!r:.40} has {'a figure and a verdict' if row.figures else 'neither a figure nor a verdict'}.",
                           "A claim stands beside what was measured for it, or beside what was found.", "Pass measurement= and variant=, or verdict=.")
        if not isinstance(row.verdict, (bool, str, type(None))) or isinstance(row.verdict, str) and _FIGURE.search(row.verdict):
            raise LabError(f"The claim {row.text!r:.40} got the verdict {row.verdict!r:.40}.", *GROUNDS,
                           "A verdict is True, False or a few words; a figure comes as measurement= and variant=.")
        if row.figures and not row.range:
            raise LabError(f"The claim {row.text!r:.40} has a figure and no range.", "There is nothing to compare the figure with.",
                           "Pass low= and high=.")
    if not rows:
        raise LabError("draw.claims() got an empty list.", "There is nothing to plot.", "Pass a list of draw.Claim.")
    return rows


def claims(rows):
    """Claims against what was measured, one row each, on one logarithmic axis in microseconds: a Figure.

    rows: a list of draw.Claim. The grey band is what is claimed, the dot the median with its quartiles:
    full where it was measured on this machine, hollow where it was recorded. A figure is "as claimed" when
    its quartiles reach into the range. Raises LabError for a bare number.
    """
    rows = _checked(rows)
    found = [(row, label, m, variant, what) for row in rows for label, m, variant, what in row.figures]
    lost = [entry for entry in found if entry[2].missing]
    if found and len(lost) == len(found) and len([row for row in rows if row.figures]) == len(rows):
        return notice(lost[0][2].missing, "claims")
    where = places([m for _, _, m, _, _ in found if not m.missing]) + ([machine()] if any(not row.figures for row in rows) else [])
    where = list(dict.fromkeys(where))
    missing = f"no recording for this code: {', '.join(dict.fromkeys(m.experiment for _, _, m, _, _ in lost))}" if lost else ""
    told = [(row, [row.against(stat_of(m, v, w, "claims")) for _, m, v, w in row.figures if not m.missing]) for row in rows]
    judged = [all(good for good, _ in figures) for row, figures in told if figures] + [row.verdict for row in rows if isinstance(row.verdict, bool)]
    title = f"{sum(judged)} of {len(judged)} claims hold{'s' * (sum(judged) == 1)}" if judged else "What is claimed, and what was found"
    series = [{**record(m, variant, what, "claims"), "claim": row.text, "label": label} for row, label, m, variant, what in found if not m.missing]
    source = {"figure": "claims", "series": series, "missing": missing,
              "claims": [{"text": row.text, "low": row.low, "high": row.high, "verdict": row.verdict} for row in rows]}
    words = []
    for row in rows:
        measured = "; ".join(f"{label or variant} {stat_of(m, variant, what)}, {row.against(stat_of(m, variant, what))[1]}"
                             for label, m, variant, what in row.figures if not m.missing)
        words.append(f"{row.text} ({row.range}): {measured or 'no recording'}" if row.figures else f"{row.text}: {_verdict(row)}")
    with Canvas(0.1) as ruler:                 # only to measure text: the height depends on it
        texts = [[ruler.wrap(row.text, TEXT, 9, 3), ruler.wrap(row.note, TEXT, 7.5, 2) if row.note else []] for row in rows]
    tall = [max(0.18 * len(text) + 0.15 * len(note), LINE * (1 + len(row.figures))) for row, (text, note) in zip(rows, texts)]
    foot, head = (0.68 if series else 0.3) + 0.14 * (len(where) - 1), (0.62 if missing else 0.42) + (0.25 if series else 0)
    with Canvas(head + sum(tall) + GAP * len(rows) + foot) as canvas:
        canvas.title(title, canvas.fit(missing, canvas.inches[0] - 0.3, 9, 9)[0])
        _paint(canvas, rows, texts, tall, foot, any(m.provenance.how == "recorded" for _, _, m, _, _ in found if not m.missing))
        return canvas.done(f"{title}. {'. '.join(words)}. {missing}".strip(), source, where)


def _verdict(row):
    return {True: "so it is", False: "not so"}[row.verdict] if isinstance(row.verdict, bool) else str(row.verdict)


def _paint(canvas, rows, texts, tall, foot, hollow):
    (width, height), used = canvas.inches, sum(tall) + GAP * len(rows)
    left, right = 0.15 + TEXT + 0.2, 0.15 + WORDS + 0.1
    ax = canvas.axes(left, foot, right, height - foot - used)
    stats = [stat_of(m, v, w) for row in rows for _, m, v, w in row.figures if not m.missing]
    ends = [v for stat in stats for v in (stat.low, stat.high)] + [v for row in rows for v in (row.low, row.high) if v]
    low, high = (min(ends) / 1.8, max(ends) * 1.8) if ends else (1, 10)
    ax.set(xscale="log", xlim=(low, high), ylim=(used, 0), yticks=[], xlabel="microseconds" if ends else "")
    if not ends:
        ax.set_axis_off()
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    plain_ticks(ax.xaxis)
    room, y = width - left - right, 0.0

    def inch(value):
        """How far right of the left end of the axis, in inches."""
        import math
        return room * math.log(value / low) / math.log(high / low)

    for k, (row, (text, note), own) in enumerate(zip(rows, texts, tall)):
        middle, top = y + (own + GAP) / 2, y + GAP / 2
        if k:
            canvas.fig.add_artist(_rule(canvas, foot + used - y))
        lines = 0.18 * len(text) + 0.15 * len(note)
        for n, words in enumerate(text):
            _write(canvas, 0.15, foot + used - (middle - lines / 2 + 0.18 * (n + 0.5)), words, 9)
        for n, words in enumerate(note):
            _write(canvas, 0.15, foot + used - (middle - lines / 2 + 0.18 * len(text) + 0.15 * (n + 0.5)), words, 7.5, QUIET)
        if not row.figures:
            words, size = canvas.fit(_verdict(row), width - left - 0.15, 9.5, 8, "bold")
            _write(canvas, left, foot + used - middle, words, size, PALETTE["stream"] if row.verdict is False else INK, "bold")
        else:
            first = middle - LINE * (1 + len(row.figures)) / 2
            _band(canvas, ax, row, top, own, first, inch, room, (low, high))
            for n, figure in enumerate(row.figures, 1):
                _dot(canvas, ax, row, figure, first + LINE * (n + 0.5), inch, room, (width - right + 0.1, foot + used))
        y += own + GAP
    if hollow and stats:
        words = "● measured on this machine   ○ recorded"
        canvas.fig.text((left + room) / width, (foot + used + 0.05) / height, words, size=8, color=QUIET, ha="right", va="bottom")
    if stats:
        canvas.fig.text(left / width, (foot + used + 0.05) / height, "grey: the claim", size=8, color=QUIET, va="bottom")


def _rule(canvas, y):
    from matplotlib.lines import Line2D
    return Line2D([0.15 / canvas.inches[0], 1 - 0.15 / canvas.inches[0]], [y / canvas.inches[1]] * 2, color="#E4E1D8", linewidth=0.8)


def _write(canvas, x, y, words, size, ink=INK, weight="normal"):
    canvas.fig.text(x / canvas.inches[0], y / canvas.inches[1], words, size=size, color=ink, weight=weight, va="center",
                    bbox={"facecolor": GROUND, "edgecolor": "none", "pad": 0.5})


def _band(canvas, ax, row, top, own, first, inch, room, limits):
    """The claimed range, and its text beside it or on it."""
    from matplotlib.patches import Rectangle
    a, b = row.low or limits[0], row.high or limits[1]
    a, b = (a / 1.03, b * 1.03) if a == b else (a, b)
    ax.add_patch(Rectangle((a, top), b - a, own, facecolor="#DDD9CC", edgecolor="none", zorder=1))
    wide = canvas.wide(row.range, 8)
    if wide + 0.06 <= inch(b) - inch(a):
        start = (inch(a) + inch(b) - wide) / 2
    else:
        start = inch(b) + 0.05 if inch(b) + 0.05 + wide <= room else inch(a) - 0.05 - wide
    ax.text(start / room, first + LINE / 2, row.range, transform=ax.get_yaxis_transform(), size=8, color=INK, va="center", zorder=4)


def _dot(canvas, ax, row, figure, y, inch, room, corner):
    """The median and quartiles, the value beside it, and in the column on the right what that makes of the claim."""
    label, m, variant, what = figure
    if m.missing:
        words = canvas.fit(f"{label}: no recording".removeprefix(": "), room, 8, 7)[0]
        ax.text(0, y, words, transform=ax.get_yaxis_transform(), size=8, color=QUIET, va="center", zorder=4, bbox={"facecolor": GROUND, "edgecolor": "none", "pad": 0.5})
        return
    stat = stat_of(m, variant, what)
    good, words = row.against(stat)
    ink = PALETTE["graph"] if good else PALETTE["stream"]
    ax.plot([stat.low, stat.high], [y, y], color=ink, linewidth=1.4, zorder=3)
    inside = GROUND if m.provenance.how == "recorded" else ink
    ax.plot([stat.median], [y], "o", color=ink, markerfacecolor=inside, markeredgewidth=1.5, markersize=6.5, zorder=4)
    ends = min(inch(stat.low), inch(stat.median) - 0.06) - 0.05, max(inch(stat.high), inch(stat.median) + 0.06) + 0.05
    value = f"{label} {stat}".strip()
    wide = canvas.wide(value, 8.5, "bold")
    left = stat.median < (row.low or 0) and wide <= ends[0] or wide > room - ends[1] and ends[0] > room - ends[1]      # away from the band
    value, size = canvas.fit(value, ends[0] if left else room - ends[1], 8.5, 7, "bold")
    start = ends[0] - canvas.wide(value, size, "bold") if left else ends[1]
    ax.text(start / room, y, value, transform=ax.get_yaxis_transform(), size=size, weight="bold", color=ink, va="center", zorder=5)
    words, size = canvas.fit(words, WORDS, 8.5, 7)
    _write(canvas, corner[0], corner[1] - y, words, size, ink)
