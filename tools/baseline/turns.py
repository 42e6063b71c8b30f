"""Rounds in turns, and the figures that come of them."""
import random

from labkit.measure import no_collection
from labkit.measurement import Figures, Measurement, Stages, stat
from twins import LARGEST


def in_turns(sides, rounds, batches):
    """Time `rounds` rounds of the sides ({name: function of a batch that returns Times}), after a warm-up: {name: [Times]}."""
    spent = {name: [] for name in sides}
    order = list(sides.items())
    with no_collection():
        for k in range(-max(20, rounds // 10), rounds):
            for name, one_round in order if k % 2 else reversed(order):
                times = one_round(batches[k % len(batches)])
                if k >= 0:
                    spent[name].append(times)
    return spent


def at_random(count):
    """`count` batches from 1 to LARGEST, each another than the one before, the first another than the last."""
    draw, out = random.Random(7), [3]
    while len(out) < count or out[-1] == out[0]:
        out.append(draw.choice([batch for batch in range(1, LARGEST + 1) if batch != out[-1]]))
    return out


def measured(experiment, params, spent, provenance, always=True):
    """A Measurement of what in_turns() returned. Stages: prepare and launch; `always`: also where nothing is prepared."""
    cpu, e2e, stages = {}, {}, {}
    for name, times in spent.items():
        prepares = times[0].prepare >= 0
        parts = {"prepare": [t.prepare for t in times]} if prepares else {}
        parts |= {"launch": [t.call for t in times]} if prepares or always else {}
        stages[name] = Stages({stage: us(values) for stage, values in parts.items()})
        cpu[name] = us([max(t.prepare, 0) + t.call for t in times])
        e2e[name] = us([t.end for t in times])
    return Measurement(experiment, params, Figures(cpu), Figures(e2e), provenance, "", Figures(stages))


def us(values):
    """The Stat of durations in microseconds."""
    return stat([value * 1000 for value in values])
