"""What graphs and pools hold, from sample to sample: draw.memory()."""
from labkit.errors import LabError
from labkit.figure import GROUND, INK, PALETTE, QUIET, WIDTH, Canvas
from labkit.memory_log import MIB, MemoryLog, mib, title, words
from labkit.memory_words import amount, runs, says, value
from labkit.plotting import GROUNDS

LEFT, RIGHT = 0.72, 0.2                  # inches beside the axes
STEP = 32                                # MiB: what CUDA maps at once
LEGEND = 5                               # lines of numbered labels, at most
_PALE = "#F0DCE8"                        # reserved and not used


def memory(log, of=None):
    """Used and reserved memory at each sample of a MemoryLog: a Figure.

    A panel for the graph memory and one for each pool, one below the other on the same axis, in MiB. Filled: used. Outlined:
    reserved. Dotted: the high-water mark of reserved. A step that changed nothing says so. The figure stays as it is when the log grows. of: names of the panels
    to draw, "graph" among them; all without it. Raises LabError for what memory_log() did not make, and without a sample.
    """
    if not isinstance(log, MemoryLog):
        raise LabError(f"draw.memory() got {log!r:.40} to plot.", *GROUNDS, "Pass a log that memory_log() made.")
    samples, names = log.samples, _chosen(log, of)
    if not samples:
        raise LabError("draw.memory() got a log without a sample.", "There is nothing to plot.", 'Take some first: log("before"), log("after").')
    labels, series = [words(s.label) for s in samples], []
    for name in names:
        each = [s[name] for s in samples]
        series.append({"name": name, "x": labels, **{what: [getattr(c, what) for c in each] for what in ("used", "reserved", "reserved_high")},
                       **({"threshold": [c.threshold for c in each]} if name != "graph" else {})})
    point = says(series, labels)
    alt = f"{point}. " + " ".join(f"{title(s['name'])}, used of reserved: " + ", ".join(
        f"{label} {value(u, r)}" for label, u, r in zip(labels, s["used"], s["reserved"])) + "." for s in series)
    tall = {1: 1.75, 2: 1.25}.get(len(names), 1.0)
    with Canvas(1) as ruler:                                # only to measure text: the height depends on it
        slot = (WIDTH - LEFT - RIGHT) / len(samples)
        under, points, legend = _under(ruler, [s.label for s in samples], slot)
    foot = 0.34 + (0.14 * max(text.count("\n") + 1 for text in under) + 0.1) + 0.17 * len(legend)
    height = 0.62 + (tall + 0.3) * len(names) + foot
    with Canvas(height) as canvas:
        canvas.title(point)
        top = max(STEP, max(max(s["reserved"] + s["used"]) for s in series) / MIB)
        limit = top * tall / (tall - 0.36)                  # room for a value above the highest line
        _key(canvas, height, {what for s in series for what in _shown(s, limit)})
        for place, one in enumerate(series):
            bottom = foot + (len(names) - 1 - place) * (tall + 0.3)
            ax = canvas.axes(LEFT, bottom, RIGHT, height - bottom - tall)
            _panel(canvas, ax, one, top, limit, tall, slot)
        _labels(ax, under, points)
        for k, line in enumerate(legend):
            canvas.fig.text(0.15 / WIDTH, (0.28 + 0.17 * (len(legend) - k - 0.5)) / height, line, size=8.5, va="center")
        return canvas.done(alt, {"figure": "memory", "unit": "bytes", "series": series}, [log.provenance])


def _chosen(log, of):
    names = list(log.names) if of is None else [of] if isinstance(of, str) else list(of) if isinstance(of, (list, tuple)) else []
    unknown = [name for name in names if name not in log.names]
    if unknown or not names:
        raise LabError(f"draw.memory() got of={of!r:.40}.", f"It names panels; this log has: {', '.join(log.names)}.", f"Write for example of=[{log.names[-1]!r}].")
    return list(dict.fromkeys(names))


# ---- painting -----------------------------------------------------------------------------------

def _shown(one, limit):
    """Which of its levels are to be seen in a panel: one that another covers is not."""
    return {"used", *(["reserved"] if any(u != r for u, r in zip(one["used"], one["reserved"])) else []),
            *(["high"] if any(r < h <= limit * MIB for r, h in zip(one["reserved"], one["reserved_high"])) else [])}


def _panel(canvas, ax, one, top, limit, tall, slot):
    """One panel: what is used filled, what is reserved outlined, a value at each change."""
    import numpy as np
    ink, n = PALETTE["memory"], len(one["x"])
    edges = np.arange(n + 1)
    used, reserved, high = (np.array(one[what]) / MIB for what in ("used", "reserved", "reserved_high"))
    ax.set(xlim=(0, n), ylim=(0, limit), ylabel="MiB")
    step = next(STEP * 2 ** k for k in range(40) if STEP * 2 ** k * 4 >= top)
    ticks = range(0, int(top) + 1, step)
    ax.set_yticks(ticks, [f"{y:,}" for y in ticks])
    ax.set_xticks(range(1, n), [""] * (n - 1))
    ax.tick_params(axis="x", length=0)
    ax.stairs(reserved, edges, fill=True, color=_PALE, zorder=1.5)
    ax.stairs(used, edges, fill=True, color=ink, zorder=2)
    ax.stairs(np.where(used > 0, used, np.nan), edges, baseline=None, color=ink, linewidth=2, zorder=2.5)     # 4 KiB stay in sight
    ax.stairs(reserved, edges, color=ink, linewidth=1.8, zorder=3)
    ax.stairs(np.where(high <= limit, high, np.nan), edges, baseline=None, color=QUIET, linewidth=1, linestyle=(0, (1, 1.5)), zorder=2.8)
    for begin, end in runs(list(zip(one["used"], one["reserved"]))):
        above = max(used[begin], reserved[begin])
        if above < high[begin:end].max() < above + 0.15 * limit / tall:      # not across the dotted line
            above = high[begin:end].max()
        _write(canvas, ax, (begin + end) / 2, above, (end - begin) * slot, value(one["used"][begin], one["reserved"][begin]))
        for k in range(begin + 1, end if used[begin] == reserved[begin] >= top / 2 and canvas.wide("no change", 8) < slot - 0.06 else 0):
            ax.text(k + 0.5, used[begin] / 2, "no change", ha="center", va="center", size=8, color=GROUND, zorder=4)
    more = f"high-water mark {amount(one['reserved_high'][-1])}" if any(high > reserved) else ""
    if "threshold" in one:
        kept = [mib(each) + " MiB" * (0 < each < 2 ** 60) for each in dict.fromkeys(one["threshold"])]
        more = f"release threshold {', then '.join(kept)}" + f" · {more}" * bool(more)
    name, points = canvas.fit(title(one["name"]), 3.2, 9.5, 8, "bold")
    ax.text(0, tall + 0.06, name, transform=_inches(canvas, ax), size=points, weight="bold", color=ink, va="bottom")
    room = WIDTH - LEFT - RIGHT - canvas.wide(name, points, "bold") - 0.2
    more, small = canvas.fit(more, room, 8.5, 7)
    ax.text(WIDTH - LEFT - RIGHT, tall + 0.06, more, transform=_inches(canvas, ax), size=small, color=QUIET, va="bottom", ha="right")


def _inches(canvas, ax):
    """Inches from the lower left corner of the axes."""
    from matplotlib.transforms import Affine2D
    box = ax.get_position()
    return canvas.fig.dpi_scale_trans + Affine2D().translate(box.x0 * canvas.fig.bbox.width, box.y0 * canvas.fig.bbox.height)


def _write(canvas, ax, x, y, room, text):
    """A value above its line, on one line or two, if it has room there."""
    from matplotlib.patheffects import withStroke
    short = text.replace(" MiB", "")                        # the axis says it too
    for shape in (text, text.replace(" of ", "\nof ").replace(", ", ",\n"), short, short.replace(" of ", "\nof ").replace(", ", ",\n")):
        for points in (9, 8, 7):
            if max(canvas.wide(line, points, "bold") for line in shape.split("\n")) <= room - 0.04:
                ax.annotate(shape, (x, y), xytext=(0, 3), textcoords="offset points", ha="center", va="bottom", size=points, weight="bold", color=INK,
                            linespacing=1.05, zorder=5, path_effects=[withStroke(linewidth=2.5, foreground=GROUND)])
                return


def _under(ruler, labels, slot):
    """(what stands under each sample, its points, lines of a legend): its label, or where labels are too long its number."""
    for points in (8.5, 7.5) if slot > 0.4 or max(map(len, labels)) < 4 else ():
        under = ["\n".join(ruler.wrap(label, slot - 0.06, points, 3)) for label in labels]
        if not any("…" in text for text in under):
            return under, points, []
    every = next(k for k in (1, 2, 5, 10, 20, 50, 100, 1000) if slot * k > 0.24)
    lines = [""]
    for k, label in enumerate(labels, 1):
        item = f"{k}: {words(label)}"
        longer = f"{lines[-1]}    {item}" if lines[-1] else item
        if len(lines) > LEGEND:
            break
        lines = [*lines[:-1], longer] if ruler.wide(longer, 8.5) <= WIDTH - 0.3 or not lines[-1] else [*lines, item]
    if len(lines) > LEGEND:
        lines = [*lines[:LEGEND - 1], f"{lines[LEGEND - 1]} …"]
    return [str(k) if k % every == 0 or every == 1 else "" for k in range(1, len(labels) + 1)], 8.5, [ruler.fit(line, WIDTH - 0.3, 8.5, 8.5)[0] for line in lines]


def _labels(ax, under, points):
    """The texts under the samples, their lines at the same heights."""
    for k, text in enumerate(under):
        for line, part in enumerate(text.split("\n")):
            ax.annotate(part, (k + 0.5, 0), xytext=(0, -13 - 10 * line), textcoords="offset points", ha="center", va="baseline", size=points, annotation_clip=False)


def _key(canvas, height, shown):
    """What is drawn: used, and reserved and its high-water mark where they are to be seen."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle
    ink, x, y = PALETTE["memory"], 0.15, 1 - 0.5 / height
    for what, text in (("used", "used"), ("reserved", "reserved"), ("high", "most reserved so far (high-water mark)")):
        if what not in shown:
            continue
        if what == "high":
            canvas.fig.add_artist(Line2D([x / WIDTH, (x + 0.24) / WIDTH], [y + 0.065 / height] * 2, color=QUIET, linewidth=1.2, linestyle=(0, (1, 1.5))))
        else:
            canvas.fig.add_artist(Rectangle((x / WIDTH, y), 0.24 / WIDTH, 0.13 / height, transform=canvas.fig.transFigure,
                                            facecolor=ink if what == "used" else _PALE, edgecolor=ink, linewidth=1.4))
        canvas.fig.text((x + 0.3) / WIDTH, y + 0.065 / height, text, size=9, va="center")
        x += 0.3 + canvas.wide(text, 9) + 0.25
