"""The charts: launch cost, speedup, timeline. They plot what measure() and timeline() returned, nothing else.

A bare number is refused: a figure without a place and a date is not shown.
"""
import math
from dataclasses import dataclass

import numpy as np

from labkit.errors import LabError
from labkit.figure import INK, QUIET, Canvas, colour, notice
from labkit.measure import Measurement
from labkit.predict import Prediction, number, shown
from labkit.timeline import Timeline

_WAY = {"cpu": "CPU time", "e2e": "end to end"}
_IN_US = {"ns": 0.001, "us": 1, "µs": 1, "ms": 1000, "s": 1e6}


@dataclass(frozen=True)
class Fit:
    """A straight line through launch costs: fixed_us once, and per_node_us for each kernel (microseconds)."""
    fixed_us: float
    per_node_us: float

    def __call__(self, n):
        return self.fixed_us + self.per_node_us * n

    def __str__(self):
        return f"{number(self.fixed_us)} µs + {number(self.per_node_us)} µs each"


def fit(n, us):
    """Least squares of the *relative* error, so that 1 kernel counts as much as 1000; no negative costs."""
    n, us = np.asarray(n, float), np.asarray(us, float)
    fixed, each = np.linalg.lstsq(np.column_stack([1 / us, n / us]), np.ones(len(n)), rcond=None)[0]
    if fixed < 0:
        fixed, each = 0.0, float((n / us).sum() / (n / us).dot(n / us))
    elif each < 0:
        fixed, each = float((1 / us).sum() / (1 / us).dot(1 / us)), 0.0
    return Fit(float(fixed), float(each))


def _only(kind, things, who, x=None):
    """`things` as a list sorted by parameter x, or LabError for anything that has no provenance."""
    things = [things] if isinstance(things, (Measurement, Timeline)) else list(things) if isinstance(things, (list, tuple)) else [things]
    for thing in things:
        if not isinstance(thing, kind):
            raise LabError(f"draw.{who}() got {thing!r:.40} to plot.", "A number without a place and a date is not shown.",
                           f"Pass what {kind.__name__.lower().replace('measurement', 'measure')}() returned, or a list of these.")
        if x is not None and x not in thing.params:
            raise LabError(f"draw.{who}() has no {x!r} to plot against.", f"The parameters measured are: {', '.join(thing.params) or 'none'}.",
                           f"Pass x= one of them, or measure with {x}=...")
    if not things:
        raise LabError(f"draw.{who}() got an empty list.", "There is nothing to plot.", "Measure first, then pass the results.")
    return sorted(things, key=lambda m: m.params[x]) if x is not None else things


def _lack(things, x):
    """A line on the picture for measurements without a recording; "" where there are none."""
    lost = [f"{m.params[x]:,}" for m in things if m.missing]
    return f"no recording for this code at {x} = {', '.join(lost)}" if lost else ""


def _series(measurements, x, name, what):
    """One plotted series as plain data: what the axes get and what the notebook keeps."""
    points = [(m.params[x], getattr(m, what)[name]) for m in measurements if name in getattr(m, what)]
    return {"name": name, "what": what, "x": [n for n, _ in points], "y": [s.median for _, s in points],
            "low": [s.low for _, s in points], "high": [s.high for _, s in points]}


def _guess(ax, guess, who, horizontal=True, units=None):
    """The learner's own guess as a dashed line."""
    if guess is None or isinstance(guess, Prediction) and guess.guess is None:
        return
    if not isinstance(guess, Prediction):
        raise LabError(f"draw.{who}() got {guess!r:.40} as a guess.", "It draws what predict() returned.", "Write guess=predict(question, 50).")
    if units and guess.unit not in units:
        raise LabError(f"The guess is in {guess.unit!r}.", f"This axis knows {', '.join(units)}.", "Write predict(question, guess, unit='us').")
    value = guess.guess * (units[guess.unit] if units else 1)
    text = f"your guess: {number(guess.guess)} {'times' if guess.unit == 'x' else shown(guess.unit)}"
    style = {"color": INK, "linestyle": (0, (5, 4)), "linewidth": 1.2, "zorder": 1.5}
    if horizontal:
        ax.axhline(value, **style)
        ax.annotate(text, (0, value), xycoords=("axes fraction", "data"), xytext=(6, 4), textcoords="offset points", size=9)
    else:
        ax.axvline(value, **style)
        ax.annotate(text, (value, 0), xycoords=("data", "axes fraction"), xytext=(5, 6), textcoords="offset points", size=9)


def _apart(values, least):
    """`values` moved as little as needed so that neighbours are `least` apart."""
    order = sorted(range(len(values)), key=values.__getitem__)
    out = list(values)
    for _ in range(200):
        for a, b in zip(order, order[1:]):
            push = least - (out[b] - out[a])
            if push > 1e-9:
                out[a] -= push / 2
                out[b] += push / 2
    return out


def _plain_ticks(axis):
    from matplotlib.ticker import FuncFormatter, NullFormatter
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 1 else f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())


def cost(measurements, x="n", what=("cpu", "e2e"), guess=None):
    """Launch cost against the number of kernels, both axes logarithmic: a Figure with .fits.

    Points are medians with quartiles; lines are fits, fixed + per-node cost, printed beside them.
    figure.fits["stream", "e2e"] is a Fit. guess: a Prediction in time units.
    """
    measurements = _only(Measurement, measurements, "cost", x)
    found = [m for m in measurements if not m.missing]
    if not found:
        return notice(measurements[0].missing, "cost")
    names = list(dict.fromkeys(name for m in found for name in m.e2e))
    series = [_series(found, x, name, way) for name in names for way in what]
    fits = {(s["name"], s["what"]): fit(s["x"], s["y"]) for s in series if len(set(s["x"])) > 1}
    last = found[-1]
    places, lack = list(dict.fromkeys(str(m.provenance) for m in found)), _lack(measurements, x)
    with Canvas(4.3 + 0.14 * len(places)) as canvas:
        ax = canvas.axes(0.85, 0.58 + 0.14 * len(places), 2.5, 0.62)
        ax.set(xscale="log", yscale="log", xlabel="kernels launched", ylabel="time, microseconds")
        for s in series:
            ink, full = colour(s["name"], names.index(s["name"])), s["what"] == "e2e"
            spread = [np.subtract(s["y"], s["low"]), np.subtract(s["high"], s["y"])]
            ax.errorbar(s["x"], s["y"], spread, fmt="o" if full else "s", color=ink, markerfacecolor=ink if full else "#FBFAF6",
                        markersize=6 if full else 5, linewidth=0, elinewidth=1.2, zorder=3)
            if (s["name"], s["what"]) in fits:
                fine = np.geomspace(min(s["x"]), max(s["x"]), 100)
                ax.plot(fine, fits[s["name"], s["what"]](fine), color=ink, linestyle="-" if full else (0, (2, 1.5)), linewidth=2 if full else 1.4)
        _guess(ax, guess, "cost", units=_IN_US)
        _plain_ticks(ax.xaxis)
        _plain_ticks(ax.yaxis)
        ax.autoscale_view()                       # the limits are settled before anything is placed by them
        ends = ax.transData.transform([(s["x"][-1], s["y"][-1]) for s in series])[:, 1]
        where = _apart(ax.transAxes.inverted().transform([(0, y) for y in ends])[:, 1], 0.135)
        where = [y - max(0, max(where) - 0.97) for y in where]
        for s, y in zip(series, where):
            law = fits.get((s["name"], s["what"]), "")
            ax.annotate(f"{s['name']}, {_WAY[s['what']]}\n{law}", (s["x"][-1], s["y"][-1]), xytext=(1.06, y), textcoords="axes fraction",
                        size=9, va="center", color=colour(s["name"], names.index(s["name"])), weight="bold" if s["what"] == "e2e" else "normal",
                        arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.6, "shrinkA": 2, "shrinkB": 5}, annotation_clip=False)
        ends = ", ".join(f"{name} {number(last.e2e[name].median)} µs" for name in names if name in last.e2e)
        times = f" ({last.speedup('stream', 'graph'):.1f} times faster)" if {"stream", "graph"} == set(last.e2e) else ""
        canvas.title(f"{last.params[x]:,} kernels, end to end: {ends}{times}", lack)
        alt = (f"Launch cost in microseconds against 1 to {last.params[x]:,} kernels. At {last.params[x]:,}, end to end: {ends}. "
               + "".join(f"{n}, {_WAY[w]}: {law}. " for (n, w), law in fits.items()) + lack)
        laws = [{"name": n, "what": w, "fixed_us": law.fixed_us, "per_node_us": law.per_node_us} for (n, w), law in fits.items()]
        figure = canvas.done(alt.strip(), {"figure": "cost", "experiment": last.experiment, "x": x, "series": series, "fits": laws, "missing": lack}, places)
    figure.fits = fits
    return figure


def speedup(measurements, x="size", slow="stream", fast="graph", what="e2e", pays=1.1, guess=None):
    """How many times faster `fast` is, against the size of each kernel: a Figure with .crossover.

    The band is the range of the quartiles. crossover: the size from which the ratio stays below `pays`
    (1.1: hardly worth it), read off the line between two measured sizes; None if there is none.
    """
    measurements = _only(Measurement, measurements, "speedup", x)
    found = [m for m in measurements if not m.missing]
    if not found:
        return notice(measurements[0].missing, "speedup")
    at = [m.params[x] for m in found]
    ratio = [m.speedup(slow, fast, what) for m in found]
    pairs = [(getattr(m, what)[slow], getattr(m, what)[fast]) for m in found]
    low, high = [a.low / b.high for a, b in pairs], [a.high / b.low for a, b in pairs]
    cross = _crossover(at, ratio, pays)
    far = [guess.guess] if isinstance(guess, Prediction) and guess.guess and not _in_times(guess) else []     # keep it on the axis
    places, lack = list(dict.fromkeys(str(m.provenance) for m in found)), _lack(measurements, x)
    with Canvas(3.8 + 0.14 * len(places)) as canvas:
        ax = canvas.axes(0.72, 0.54 + 0.14 * len(places), 0.27, 0.58)
        ink = colour(fast)
        ax.fill_between(at, low, high, color=ink, alpha=0.16, linewidth=0)
        ax.plot(at, ratio, "o-", color=ink)
        ax.set(xscale="log", xlabel=f"{x} of each kernel (elements)" if x == "size" else x, ylabel=f"times faster as a {fast}, {_WAY[what]}",
               ylim=(0, max(high + [guess.guess if _in_times(guess) else 1]) * 1.12), xlim=(min(at + far) * 0.7, max(at + far) * 1.4))
        ax.axhline(1, color=colour(slow), linewidth=1.6)
        ax.annotate(f"1: no faster than a {slow}", (0, 1), xycoords=("axes fraction", "data"), xytext=(6, -12), textcoords="offset points",
                    size=9, color=colour(slow))
        title = f"{ratio[0]:.1f} times faster as a {fast} at {x} {_count(at[0])}, {ratio[-1]:.1f} times at {_count(at[-1])}"
        if cross:
            ax.axvline(cross, color=QUIET, linewidth=1.2, linestyle=":")
            ax.annotate(f"from about {_count(cross)} on,\nless than {pays:g} times faster", (cross, 0.97), xycoords=("data", "axes fraction"),
                        xytext=(-7, 0), textcoords="offset points", ha="right", va="top", size=9.5, weight="bold")
        else:
            side = "still faster at the largest size measured" if ratio[-1] >= pays else f"less than {pays:g} times faster at every size measured"
            ax.text(0.98, 0.95, side, transform=ax.transAxes, ha="right", va="top", size=9.5, weight="bold")
        _guess(ax, guess, "speedup", horizontal=_in_times(guess))
        from matplotlib.ticker import FuncFormatter, LogLocator
        ax.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _count(v)))
        ax.xaxis.set_minor_locator(LogLocator(base=2, numticks=2))
        canvas.title(title, lack)
        alt = f"{title}. " + (f"From about {_count(cross)} on, less than {pays:g} times faster. " if cross else f"{side.capitalize()}. ") + lack
        series = [{"name": f"{slow}/{fast}", "what": what, "x": at, "y": ratio, "low": low, "high": high}]
        figure = canvas.done(alt.strip(), {"figure": "speedup", "experiment": found[0].experiment, "x": x, "series": series, "crossover": cross,
                                           "missing": lack}, places)
    figure.crossover = cross
    return figure


def _in_times(guess):
    return isinstance(guess, Prediction) and guess.guess is not None and guess.unit in ("x", "times")


def _crossover(at, ratio, pays):
    """Where the ratio falls below `pays` for good, on the straight line between two measured sizes (log scale)."""
    above = [k for k, r in enumerate(ratio) if r >= pays]
    if not above or above[-1] == len(at) - 1:
        return None
    k = above[-1]
    part = (ratio[k] - pays) / (ratio[k] - ratio[k + 1])
    return float(math.exp(math.log(at[k]) + part * (math.log(at[k + 1]) - math.log(at[k]))))


def _count(v):
    """1,024 as 1 Ki, 1,048,576 as 1 Mi; two digits, since a crossover is no more exact than that."""
    for unit, size in (("Gi", 2 ** 30), ("Mi", 2 ** 20), ("Ki", 2 ** 10)):
        if v >= size:
            return f"{v / size:.2g} {unit}" if v / size < 100 else f"{v / size:.0f} {unit}"
    return f"{v:.0f}"


def timeline(tl):
    """Every kernel of every variant on one time axis, and below, the shortest one's span enlarged: a Figure."""
    tl, = _only(Timeline, tl, "timeline")
    if tl.missing:
        return notice(tl.missing, "timeline")
    names = sorted(tl.starts, key=tl.total, reverse=True)
    ends, short = {name: tl.total(name) for name in names}, tl.total(names[-1])
    zoom = len(names) > 1 and short < 0.7 * max(ends.values())
    with Canvas(4.3 if zoom else 2.6) as canvas:
        boxes = [[0.13, 0.60, 0.84, 0.25], [0.13, 0.17, 0.84, 0.25]] if zoom else [[0.13, 0.28, 0.84, 0.48]]
        limits = [max(ends.values()) * 1.02, short * 1.06]
        for box, limit in zip(boxes, limits):
            ax = canvas.fig.add_axes(box)
            for place, name in enumerate(names):
                bars = [(a / 1000, (b - a) / 1000) for a, b in zip(tl.starts[name], tl.ends[name])]
                ink = colour(name, place)
                # the edge keeps 0.3 µs of 165 in sight
                ax.broken_barh(bars, (len(names) - place - 1.34, 0.68), facecolor=ink, edgecolor=ink, linewidth=0.7)
                ax.text(-0.012, len(names) - place - 1, name, transform=ax.get_yaxis_transform(), ha="right", va="center", weight="bold", color=ink)
            ax.set(xlim=(-limit * 0.006, limit), ylim=(-0.6, len(names) - 0.4), yticks=[])
            ax.grid(axis="y", visible=False)
            ax.spines["left"].set_visible(False)
            if box is boxes[0]:
                for place, name in enumerate(names):
                    if ends[name] < 0.6 * limit:
                        ax.text(ends[name] + limit * 0.012, len(names) - place - 1, f"done after {number(ends[name])} µs", va="center",
                                size=9.5, color=colour(name, place))
                ax.set_xlabel("" if zoom else "microseconds since the first kernel started")
        if zoom:
            first, second = canvas.fig.axes
            second.set_xlabel("microseconds since the first kernel started")
            second.set_title(f"the first {number(short)} µs, enlarged", size=9.5, weight="normal", pad=5)
            first.axvspan(0, short, ymin=0, ymax=1, color="#F3ECD4", zorder=0, linewidth=0)
            second.set_facecolor("#F3ECD4")
        title = f"{len(tl.starts[names[0]])} kernels: one every " + ", ".join(f"{number(tl.gap(name))} µs ({name})" for name in names)
        canvas.title(title)
        alt = f"When each of {len(tl.starts[names[0]])} kernels ran, " + "; ".join(
            f"{name}: one every {number(tl.gap(name))} µs, {number(ends[name])} µs in all" for name in names) + "."
        series = [{"name": name, "starts": tl.starts[name], "ends": tl.ends[name]} for name in names]
        return canvas.done(alt, {"figure": "timeline", "experiment": tl.experiment, "series": series, "missing": ""}, [str(tl.provenance)])
