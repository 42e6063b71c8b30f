"""Times against a parameter, with the straight line through them: draw.cost() and draw.stages()."""
from dataclasses import dataclass

import numpy as np

from labkit.errors import LabError
from labkit.figure import GROUND, QUIET, Canvas, colour, notice
from labkit.measurement import Measurement
from labkit.plotting import IN_US, WAY, apart, guessed, lack, only, places, plain_ticks, setting, stages_of, stat_of
from labkit.predict import number


SIDE, PITCH = 2.05, (0.42, 0.56)     # inches: room for the labels beside the lines, and from label to label of two or three lines


@dataclass(frozen=True)
class Fit:
    """A straight line through launch costs: fixed_us once, and per_node_us for each kernel (microseconds)."""
    fixed_us: float
    per_node_us: float

    def __call__(self, n):
        return self.fixed_us + self.per_node_us * n

    def __str__(self):
        parts = [f"{number(self.fixed_us)} µs"] * (self.fixed_us >= 1e-6) + [f"{number(self.per_node_us)} µs each"] * (self.per_node_us >= 1e-6)
        return " + ".join(parts) or "0 µs"


def fit(n, us):
    """Least squares of the *relative* error, so that 1 kernel counts as much as 1000; no negative costs."""
    n, us = np.asarray(n, float), np.asarray(us, float)
    fixed, each = np.linalg.lstsq(np.column_stack([1 / us, n / us]), np.ones(len(n)), rcond=None)[0]
    if fixed < 0:
        fixed, each = 0.0, float((n / us).sum() / (n / us).dot(n / us))
    elif each < 0:
        fixed, each = float((1 / us).sum() / (1 / us).dot(1 / us)), 0.0
    return Fit(float(fixed), float(each))


def _series(measurements, x, name, what):
    """One plotted series as plain data: what the axes get and what the notebook keeps."""
    points = [(m.params[x], stat_of(m, name, what)) for m in measurements if name in m.e2e]
    return {"name": name, "what": what, "x": [n for n, _ in points], "y": [s.median for _, s in points],
            "low": [s.low for _, s in points], "high": [s.high for _, s in points]}


# how a line looks: (marker, filled, line, width). Lines of one colour differ in this, and each has its name beside it.
_ENDS = {"e2e": ("o", True, "-", 2), "cpu": ("s", False, (0, (2, 1.5)), 1.4)}
_STYLES = [("o", True, "-", 2), ("s", False, (0, (2, 1.5)), 1.4), ("^", True, (0, (6, 1.5)), 2), ("D", False, (0, (6, 1.5, 1, 1.5)), 1.4),
           ("v", True, (0, (1, 1)), 2), ("P", False, "-", 1)]


def _inks(names):
    """{variant: colour}: its fixed one by its name, else the spare ones in turn."""
    spare = [name for name in names if colour(name, 0) != colour(name, 1)]
    return {name: colour(name, spare.index(name) if name in spare else 0) for name in names}


def _lines(ax, series, inks):
    """The points, quartiles and fitted lines of `series`; returns the fits, {(variant, what): Fit}."""
    fits = {(s["name"], s["what"]): fit(s["x"], s["y"]) for s in series if len(set(s["x"])) > 1 and min(s["y"]) > 0}
    drawn, only_ends = [], {s["what"] for s in series} <= set(_ENDS) and len(set(inks.values())) == len(inks)
    for s in series:
        ink = inks[s["name"]]
        marker, full, dash, width = _ENDS[s["what"]] if only_ends else _STYLES[drawn.count(ink) % len(_STYLES)]
        drawn.append(ink)
        spread = [np.subtract(s["y"], s["low"]), np.subtract(s["high"], s["y"])]
        ax.errorbar(s["x"], s["y"], spread, fmt=marker, color=ink, markerfacecolor=ink if full else GROUND,
                    markersize=6 if full else 5, linewidth=0, elinewidth=1.2, zorder=3)
        if (s["name"], s["what"]) in fits:
            fine = np.geomspace(min(s["x"]), max(s["x"]), 100)
            ax.plot(fine, fits[s["name"], s["what"]](fine), color=ink, linestyle=dash, linewidth=width)
    return fits


def _label(canvas, ax, series, inks, fits):
    """The name and the law of each line, right of the axes, and a hair line to its last point."""
    plain_ticks(ax.xaxis)
    plain_ticks(ax.yaxis)
    ax.autoscale_view()                       # the limits are settled before anything is placed by them
    tall = ax.get_position().height * canvas.inches[1]
    texts = [[*canvas.wrap(f"{s['name']}, {WAY.get(s['what'], s['what'])}", SIDE, 9, 2, "bold"),
              canvas.fit(str(fits.get((s["name"], s["what"]), "")) or f"{number(s['y'][-1])} µs", SIDE, 9, 9, "bold")[0]] for s in series]
    ends = ax.transData.transform([(s["x"][-1], s["y"][-1]) for s in series])[:, 1]
    where = apart(ax.transAxes.inverted().transform([(0, y) for y in ends])[:, 1], PITCH[max(map(len, texts)) > 2] / tall, 0, 1)
    for s, y, text in zip(series, where, texts):
        ax.annotate("\n".join(text), (s["x"][-1], s["y"][-1]), xytext=(1.06, y), textcoords="axes fraction",
                    size=9, va="center", color=inks[s["name"]], weight="normal" if s["what"] == "cpu" else "bold",
                    arrowprops={"arrowstyle": "-", "relpos": (0, 0.5), "color": QUIET, "linewidth": 0.6, "shrinkA": 2, "shrinkB": 5},
                    annotation_clip=False)


def cost(measurements, x="n", what=("cpu", "e2e"), guess=None):
    """Launch cost against the number of kernels, both axes logarithmic: a Figure with .fits.

    Points are medians with quartiles; lines are fits, fixed + per-node cost, printed beside them.
    figure.fits["stream", "e2e"] is a Fit. guess: a Prediction in time units.
    """
    def title(last, names):
        ends = ", ".join(f"{name} {number(last.e2e[name].median)} µs" for name in names if name in last.e2e)
        times = f" ({last.speedup('stream', 'graph'):.1f} times faster)" if {"stream", "graph"} == set(last.e2e) else ""
        return f"{last.params[x]:,} kernels, end to end: {ends}{times}"

    def chosen(found):
        return [(name, way) for name in dict.fromkeys(name for m in found for name in m.e2e) for way in what]
    return _against("cost", measurements, x, chosen, title, "kernels launched", guess)


def stages(measurements, x="n", of=None, guess=None, label=None):
    """The stages of one or more variants against a parameter, both axes logarithmic: a Figure with .fits.

    of: pairs (variant, stage), where a stage may also be "cpu" or "e2e"; without it every stage of
    every variant, and the CPU time of those that mark none. label: words for the x axis.
    figure.fits["instantiate", "prepare"].per_node_us is what one more costs.
    """
    def chosen(found):
        if of is None:
            last = found[-1]
            return [(name, stage) for name in last.e2e for stage in stages_of(last, name) or ["cpu"]]
        pairs = [of] if isinstance(of, tuple) and all(isinstance(part, str) for part in of) else list(of) if isinstance(of, (list, tuple)) else []
        if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise LabError(f"draw.stages() got of={of!r:.60}.", "It names lines to draw, each a pair of a variant and a stage.",
                           f'Write for example of=[({next(iter(found[-1].e2e))!r}, "cpu")].')
        for pair in pairs:
            stat_of(found[-1], *pair)
        return pairs

    def title(last, names):
        ends = sorted((stat_of(last, name, stage).median, f"{name}, {WAY.get(stage, stage)}") for name, stage in chosen([last]))
        ends = ends if len(ends) < 3 else [ends[0], ends[-1]]
        return f"{x} = {last.params[x]:,}: " + "; ".join(f"{words} {number(us)} µs" for us, words in ends[::-1])
    return _against("stages", measurements, x, chosen, title, label or x, guess)


def _against(figure, measurements, x, chosen, title, xlabel, guess):
    """Lines against the parameter x: what cost() and stages() share."""
    measurements = only(Measurement, measurements, figure, x)
    found = [m for m in measurements if not m.missing]
    if not found:
        return notice(measurements[0].missing, figure)
    pairs = chosen(found)
    names = list(dict.fromkeys(name for name, _ in pairs))
    series = [_series(found, x, name, what) for name, what in pairs]
    last, where, missing = found[-1], places(found), lack(measurements, x)
    with Canvas(max(4.3, 1.4 + PITCH[1] * len(series) if len(series) > 5 else 0) + 0.14 * len(where)) as canvas:
        ax = canvas.axes(0.85, 0.58 + 0.14 * len(where), 2.5, 0.62)
        ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel="time, microseconds")
        inks = _inks(names)
        fits = _lines(ax, series, inks)
        guessed(ax, guess, figure, units=IN_US)
        _label(canvas, ax, series, inks, fits)
        says = title(last, names)
        canvas.title(says, missing)
        kind = "Launch cost" if figure == "cost" else setting(last).partition(",")[0]
        alt = (f"{kind} in microseconds against {x}, {found[0].params[x]:,} to {last.params[x]:,}. {says}. "
               + "".join(f"{n}, {WAY.get(w, w)}: {law}. " for (n, w), law in fits.items()) + missing)
        laws = [{"name": n, "what": w, "fixed_us": law.fixed_us, "per_node_us": law.per_node_us} for (n, w), law in fits.items()]
        source = {"figure": figure, "experiment": last.experiment, "x": x, "series": series, "fits": laws, "missing": missing}
        drawn = canvas.done(alt.strip(), source, where)
    drawn.fits = fits
    return drawn
