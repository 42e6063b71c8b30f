"""What the charts share: what they take, what they refuse, and how they word it.

A bare number is refused: a figure without a place and a date is not shown.
"""
from labkit.errors import LabError
from labkit.figure import INK
from labkit.measurement import VARIES, Measurement
from labkit.predict import Prediction, number, shown
from labkit.timeline import Timeline

WAY = {"cpu": "CPU time", "e2e": "end to end"}
IN_US = {"ns": 0.001, "us": 1, "µs": 1, "ms": 1000, "s": 1e6}
GROUNDS = ("A number without a place and a date is not shown.",)


def only(kind, things, who, x=None):
    """`things` as a list sorted by parameter x, or LabError for anything that has no provenance."""
    things = [things] if isinstance(things, (Measurement, Timeline)) else list(things) if isinstance(things, (list, tuple)) else [things]
    for thing in things:
        if not isinstance(thing, kind):
            raise LabError(f"draw.{who}() got {thing!r:.40} to plot.", *GROUNDS,
                           f"Pass what {kind.__name__.lower().replace('measurement', 'measure')}() returned, or a list of these.")
        if not thing.missing and thing.provenance is None:
            raise LabError(f"draw.{who}() got figures of {thing.experiment!r} that nobody measured.", *GROUNDS, "Pass what measure() or timeline() returned.")
        if x is not None and x not in thing.params:
            raise LabError(f"draw.{who}() has no {x!r} to plot against.", f"The parameters measured are: {', '.join(thing.params) or 'none'}.",
                           f"Pass x= one of them, or measure with {x}=...")
    if not things:
        raise LabError(f"draw.{who}() got an empty list.", "There is nothing to plot.", "Measure first, then pass the results.")
    return sorted(things, key=lambda m: m.params[x]) if x is not None else things


def one(measurement, who):
    """The measurement itself, or LabError for anything but one of them."""
    found = only(Measurement, measurement, who)
    if len(found) > 1:
        raise LabError(f"draw.{who}() got {len(found)} measurements.", "It shows the variants of one, timed in turns; separate runs don't compare.",
                       "Pass one of them.")
    return found[0]


def stat_of(measurement, variant, what, who="stages"):
    """The Stat of a variant: what = "cpu", "e2e" or the name of a stage. LabError for one that is not there."""
    if what in WAY:
        return getattr(measurement, what)[variant]
    measurement.e2e[variant]                   # a LabError that names the variants, where it is none of them
    stages = stages_of(measurement, variant)
    if what not in stages:
        raise LabError(f"draw.{who}() found no {what!r} of {variant!r}.",
                       f"It has: {', '.join([*stages, *WAY])}.", "A generator function marks a stage with yield \"its name\".")
    return stages[what]


def stages_of(measurement, variant):
    """{stage: Stat} of a variant; {} where it marks none."""
    return measurement.stages.get(variant, {})


def record(measurement, variant, what, who="stages"):
    """One plotted figure as plain data, for figure.source: enough to find it in the recordings."""
    stat = stat_of(measurement, variant, what, who)
    return {"name": variant, "what": what, "experiment": measurement.experiment, "params": dict(measurement.params),
            "y": stat.median, "low": stat.low, "high": stat.high}


def setting(measurement):
    """The experiment and its parameters in a line: "dynamic batch, kernels = 10, batch varies"."""
    words = [f"{name} varies" if str(value).startswith(VARIES) else f"{name} = {value:,}" if isinstance(value, int) else f"{name} = {value}"
             for name, value in measurement.params.items()]
    return ", ".join([measurement.experiment, *words])


def lack(things, x):
    """A line on the picture for measurements without a recording; "" where there are none."""
    lost = [f"{m.params[x]:,}" for m in things if m.missing]
    return f"no recording for this code at {x} = {', '.join(lost)}" if lost else ""


def places(measurements):
    """Where and when they were measured, each place once."""
    return list(dict.fromkeys(str(m.provenance) for m in measurements))


def guessed(ax, guess, who, horizontal=True, units=None):
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


def apart(values, least, low, high):
    """`values` moved as little as needed so that neighbours are `least` apart, and all lie from `low` to `high` where there is room."""
    order = sorted(range(len(values)), key=values.__getitem__)
    out = list(values)
    for _ in range(200):
        for a, b in zip(order, order[1:]):
            push = least - (out[b] - out[a])
            if push > 1e-9:
                out[a] -= push / 2
                out[b] += push / 2
    for k, place in enumerate(order):
        out[place] = max(low + k * least, min(out[place], high - (len(order) - 1 - k) * least))
    return out


def plain_ticks(axis):
    """Numbers on a logarithmic axis as people write them."""
    from matplotlib.ticker import FuncFormatter, NullFormatter
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 1 else f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())
