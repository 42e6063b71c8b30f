"""Two charts: when a graph stops paying, and the gaps between kernels. They plot what measure() and timeline() returned, nothing else."""
import math

from labkit.figure import QUIET, Canvas, colour, notice
from labkit.measurement import Measurement
from labkit.plotting import WAY, guessed, lack, only, places
from labkit.predict import Prediction, number
from labkit.timeline import Timeline


def speedup(measurements, x="size", slow="stream", fast="graph", what="e2e", pays=1.1, guess=None):
    """How many times faster `fast` is, against the size of each kernel: a Figure with .crossover.

    The band is the range of the quartiles. crossover: the size from which the ratio stays below `pays`
    (1.1: hardly worth it), read off the line between two measured sizes; None if there is none.
    """
    measurements = only(Measurement, measurements, "speedup", x)
    found = [m for m in measurements if not m.missing]
    if not found:
        return notice(measurements[0].missing, "speedup")
    at = [m.params[x] for m in found]
    ratio = [m.speedup(slow, fast, what) for m in found]
    pairs = [(getattr(m, what)[slow], getattr(m, what)[fast]) for m in found]
    low, high = [a.low / b.high for a, b in pairs], [a.high / b.low for a, b in pairs]
    cross = _crossover(at, ratio, pays)
    far = [guess.guess] if isinstance(guess, Prediction) and guess.guess and not _in_times(guess) else []     # keep it on the axis
    where, missing = places(found), lack(measurements, x)
    with Canvas(3.8 + 0.14 * len(where)) as canvas:
        ax = canvas.axes(0.72, 0.54 + 0.14 * len(where), 0.27, 0.58)
        ink = colour(fast)
        ax.fill_between(at, low, high, color=ink, alpha=0.16, linewidth=0)
        ax.plot(at, ratio, "o-", color=ink)
        ax.set(xscale="log", xlabel=f"{x} of each kernel (elements)" if x == "size" else x, ylabel=f"times faster as a {fast}, {WAY[what]}",
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
        guessed(ax, guess, "speedup", horizontal=_in_times(guess))
        from matplotlib.ticker import FuncFormatter, LogLocator
        ax.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _count(v)))
        ax.xaxis.set_minor_locator(LogLocator(base=2, numticks=2))
        canvas.title(title, missing)
        alt = f"{title}. " + (f"From about {_count(cross)} on, less than {pays:g} times faster. " if cross else f"{side.capitalize()}. ") + missing
        series = [{"name": f"{slow}/{fast}", "what": what, "x": at, "y": ratio, "low": low, "high": high}]
        figure = canvas.done(alt.strip(), {"figure": "speedup", "experiment": found[0].experiment, "x": x, "series": series, "crossover": cross,
                                           "missing": missing}, where)
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
    tl, = only(Timeline, tl, "timeline")
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
