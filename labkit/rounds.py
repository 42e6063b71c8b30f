"""One round of measure(): which values it passes, and where the clock stops.

A variant is called, and that is all; or it is a generator, and each yield ends a stage. The number of
stages is known before the clock starts, since after the last one the GPU is waited for, and only then
does the generator go on to its end.
"""
import contextlib
import json
import time
import types

import numpy as np

from labkit import recordings
from labkit.errors import LabError, ok
from labkit.measurement import VARIES

RESERVED = ("cpu", "e2e")                 # what a measurement calls the whole; no name for a part


# ---- the values that vary ------------------------------------------------------------------------

def varied(vary, params):
    """`vary` as {name: [plain values]}. Raises LabError for what is no such thing, and for a name that is a parameter already."""
    if vary is None:
        return {}
    if not isinstance(vary, dict):
        raise LabError(f"measure() got vary={vary!r:.60}.", "It names the parameters that change from call to call.",
                       'Write vary={"batch": [3, 8, 1, 5]}.')
    out = {}
    for name, values in vary.items():
        values = values.tolist() if isinstance(values, np.ndarray) else values
        if not isinstance(name, str) or not isinstance(values, (list, tuple, range)) or not len(values):
            raise LabError(f"measure() got vary={{{name!r}: {values!r:.60}}}.",
                           "A name comes with the list of its values; each call gets the next one.", 'Write vary={"batch": [3, 8, 1, 5]}.')
        if name in params:
            raise LabError(f"{name} is a parameter and varies too.", "Each call would get it twice.", f"Leave {name}={params[name]!r:.40} out.")
        out[name] = [recordings.plain({name: value})[name] for value in values]
    return out


def in_words(vary):
    """{name: "varies: 3 8 1 5"}, as a varied parameter stands among the others and in a recording."""
    return {name: VARIES + " ".join(map(_text, values)) for name, values in vary.items()}


def rounds_of(vary, repeat):
    """The varied values of each of `repeat` rounds, [{name: value}]; a list that ends starts again. LabError where nothing varies."""
    for name, values in vary.items():
        if len({_text(value) for value in values[:repeat]}) == 1:
            raise LabError(f"{name} is to vary, and every call would get {values[0]!r}.",
                           "Nothing varies, and an update that changes nothing is cheaper than one that does.",
                           "List different values, and use repeat=2 or more." if repeat == 1 else
                           f"List different values, or pass {name}={values[0]!r}.")
    return [{name: values[k % len(values)] for name, values in vary.items()} for k in range(repeat)]


def different(rounds):
    """Each set of values once, in the order in which they come."""
    return list({json.dumps(values): values for values in rounds}.values())


def _text(value):
    return json.dumps(value, ensure_ascii=False)          # "8" is not 8, and True is not 1


# ---- the clock -----------------------------------------------------------------------------------

def time_call(call, sync, stages):
    """One call in nanoseconds: (of each stage ..., until the call or its last stage was over, until the GPU had finished)."""
    if stages:
        return _time_stages(call, sync, stages)
    clock = time.perf_counter_ns
    begin = clock()
    result = call()
    returned = clock()
    done = sync()
    finished = clock()
    ok(done)
    if isinstance(result, types.GeneratorType):
        raise LabError("It returned a generator, and its stages are not known.", "They are counted in the warm-up, and warmup=0 leaves it out.",
                       "Use warmup=1 or more.")
    return returned - begin, finished - begin


def _time_stages(call, sync, stages):
    clock, names, stamps = time.perf_counter_ns, [], []
    run = call()
    if not isinstance(run, types.GeneratorType):
        raise _other(stages, ())
    with contextlib.closing(run):                          # whatever happens, its `finally` runs
        step = run.__next__
        stamps.append(clock())
        for _ in stages:
            try:
                names.append(step())
            except StopIteration:
                raise _other(stages, names) from None
            stamps.append(clock())
        done = sync()
        finished = clock()
        ok(done)
        names += run                                       # to its end
    if tuple(names) != stages:
        raise _other(stages, names)
    return *(after - before for before, after in zip(stamps, stamps[1:])), stamps[-1] - stamps[0], finished - stamps[0]


def run_through(run, settle):
    """Run a generator to its end, settle() after each stage: (what it returned, the names of its stages). LabError for a bad name or none."""
    names = []
    with contextlib.closing(run):
        while True:
            try:
                name = next(run)
            except StopIteration as end:
                if not names:
                    raise LabError("It is a generator function, and yielded nothing.", "Each yield ends a stage; without one nothing is timed.",
                                   'Write yield "launch" after the last call that counts, or take the yield out.') from None
                return end.value, tuple(names)
            if not isinstance(name, str) or not name or name in RESERVED:
                raise LabError(f"It yielded {name!r:.60}.", f"A yield ends a stage and gives its name, a text other than {' and '.join(RESERVED)}.",
                               'Write for example yield "prepare".')
            if name in names:
                raise LabError(f"It yielded {name!r} twice.", "A stage is one part of a call, and its name tells it from the others.",
                               "Give each stage a name of its own.")
            names.append(name)
            settle()


def same_stages(before, now):
    """Raises LabError where a variant has other stages than before."""
    if before != now:
        raise _other(before, now)


def _other(before, now):
    said, says = (", ".join(map(str, names)) or "none" for names in (before, now))
    return LabError(f"Its stages were: {said}. In a later call they were: {says}.", "A stage has a figure where every call has it.",
                    "Yield the same names in the same order, whatever the values.")
