"""Time what you wrote, and say where the figure comes from: measure().

    m = measure("launch cost", {"stream": one_by_one, "graph": replay}, setup=setup, stream=stream, n=1000)
    m.speedup("stream", "graph")      # 4.1: end to end, the graph takes a quarter of the time

A variant with more than one part marks them: written as a generator function, it yields the name of
each stage where that stage ends. What follows the last one is not timed: it tidies up.

    def update_and_launch(executable, batch):
        ok(cudart.cudaGraphExecKernelNodeSetParams(executable, node, prepared[batch]))
        yield "prepare"
        ok(cudart.cudaGraphLaunch(executable, stream))
        yield "launch"

    m = measure("update", {"node": update_and_launch}, setup=setup, stream=stream, vary={"batch": [3, 8, 1, 5]})
    m.stages["node"]["prepare"]       # 12 µs

The simulator has no clock. There each variant runs once, so that a mistake in it shows, and the
figures are those recorded on a GPU for exactly this code. Code you changed has no recording.
"""
import contextlib
import gc
import inspect
import traceback
import types
from functools import partial

from labkit import recordings
from labkit.backend import backend, cudart
from labkit.errors import LabError, ok
from labkit.gpu_lock import gpu_to_yourself
from labkit.measurement import Figures, Measurement, Stages, Stat, as_entry, from_entry, stat  # noqa: F401
from labkit.rounds import different, in_words, rounds_of, run_through, same_stages, time_call, varied

NO_RECORDING = ("No recording for this code: it is not, to the letter, the code that was timed (comments count),\nor these parameters were not.\n"
                "The simulator has no clock, so there is no figure to show. To measure it, run it on a GPU;\n"
                "to see the recorded figure again, undo the change; if you changed nothing, no recording exists yet.")


def measure(experiment, variants, *, setup=None, stream=None, repeat=30, warmup=3, vary=None, **params):
    """Time the variants ({name: function}) in turns, after a warm-up: Measurement, in microseconds.

    Each is called fn(**params), or fn(made, **params) with made = setup(**params), made once. The
    clock stops first when the call returns (cpu), then when `stream`, or without one the device,
    has finished (e2e). For a generator function it stops at each yield too (stages; a stage holds about
    0.1 µs of Python's own), and the last yield counts as the return: then comes the wait for the GPU, and
    only then the rest of the function. vary={"batch": [3, 8, 1, 5]} passes the next of these values in
    each of the `repeat` rounds, the same to all variants, and the warm-up goes through them once.
    Garbage collection waits meanwhile, and so does whoever else measures on this GPU (gpu_to_yourself).
    Raises LabError for a variant that is no `def`, one that raises or returns an error code, one that leaves
    a capture open, one whose stages differ from call to call, and values that do not vary.
    Stands for: CUDA C++ Best Practices Guide, Timing.
    """
    params, roles = recordings.plain(params), roles_of(experiment, variants, setup)
    if not isinstance(repeat, int) or repeat < 1:
        raise LabError(f"measure() got repeat = {repeat!r}.", "It is how often each variant is timed.", "Use a whole number, such as 30.")
    vary = varied(vary, params)
    vary = {name: values[:repeat] for name, values in vary.items()}        # what is never passed is no part of the experiment
    rounds, named = rounds_of(vary, repeat), {**params, **in_words(vary)}
    key = recordings.digest_if_needed(roles, f"waits for {'the device' if stream is None else 'a stream'}")
    with blame("setup", experiment):
        made = [setup(**params)] if setup else []
    calls = {name: partial(fn, *made, **params) for name, fn in variants.items()}
    sync = partial(cudart.cudaStreamSynchronize, stream) if stream is not None else cudart.cudaDeviceSynchronize
    stages, times = {}, {name: [] for name in calls}
    with gpu_to_yourself(experiment):
        for values in _warm_up(rounds, warmup, variants) if backend.name == "gpu" else different(rounds)[:3]:
            for name, call in calls.items():
                with blame(name, experiment):
                    found = try_out(partial(call, **values), stream, sync)
                    same_stages(stages.setdefault(name, found), found)
        with no_collection():
            for values in rounds if backend.name == "gpu" else []:
                for name, call in calls.items():
                    with blame(name, experiment):
                        times[name].append(time_call(partial(call, **values), sync, stages.get(name, ())))
    if backend.name != "gpu":
        entry = recordings.find("measurements", experiment, named, key)
        if entry is None:
            return Measurement(experiment, named, missing=NO_RECORDING, vary=vary)
        return from_entry(experiment, named, entry, variants, vary)
    stats = {name: [stat(ns) for ns in zip(*spent)] for name, spent in times.items()}       # of each stage, cpu, e2e
    cpu, e2e = (Figures({name: found[k] for name, found in stats.items()}) for k in (-2, -1))
    parts = Figures({name: Stages(zip(stages.get(name, ()), found)) for name, found in stats.items()})
    provenance = recordings.here()
    recordings.save_if_asked("measurements", experiment, named, key, provenance, **as_entry(cpu, e2e, parts))
    return Measurement(experiment, named, cpu, e2e, provenance, "", parts, vary)


def _warm_up(rounds, warmup, variants):
    """The rounds that are not timed: `warmup` of them, once around where values vary, and one that counts stages."""
    count = max(warmup, len(rounds) if warmup and rounds[0] else 0, any(map(inspect.isgeneratorfunction, variants.values())))
    return [rounds[k % len(rounds)] for k in range(count)]


def try_out(call, stream, sync):
    """One call that is not timed, with the checks that timing would suffer from; the names of its stages."""
    def settle():                        # what tidies up may need the GPU to have finished; a capture has nothing to wait for
        if stream is not None and not int(ok(cudart.cudaStreamIsCapturing(stream))):
            ok(sync())
    result, stages = call(), ()
    if isinstance(result, types.GeneratorType):
        result, stages = run_through(result, settle)
    for answer in result if isinstance(result, list) else [result]:
        answer = answer if isinstance(answer, tuple) else (answer,)
        if answer and isinstance(answer[0], cudart.cudaError_t):
            ok(answer)
    result = sync() if stream is None or not int(ok(cudart.cudaStreamIsCapturing(stream))) else (900,)
    if int(result[0]) == 900:
        raise LabError("A capture was left open.", "measure() waits for the work to finish, and a capture runs nothing.",
                       "End the capture inside the function, or make the graph in setup. recover() closes what is open now.")
    ok(result)
    return stages


def roles_of(experiment, variants, setup):
    """{role: function} of what is timed, or LabError where something can't have a recording."""
    roles = dict(variants) if isinstance(variants, dict) else {}
    if not roles or not isinstance(experiment, str) or not recordings.slug(experiment):
        raise LabError("There is nothing to measure.", "It takes a name for the experiment and {name: function, ...}.",
                       'Write for example measure("launch cost", {"stream": one_by_one, "graph": replay}).')
    roles.update({"setup": setup} if setup else {})
    for role, fn in roles.items():
        if not isinstance(fn, types.FunctionType) or fn.__name__ == "<lambda>":
            kind = "a lambda" if isinstance(fn, types.FunctionType) else f"a {type(fn).__name__}"
            raise LabError(f"{role!r} is {kind}.", "A recording is found by the text of a function, and this has none of its own.",
                           "Write a small `def` in the cell and pass its name.")
        if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
            raise LabError(f"{role!r} is an `async def`.", "Nobody would await it, and calling it does nothing.", "Write it as a plain `def`.")
    return roles


@contextlib.contextmanager
def blame(name, experiment):
    """Errors of the learner's function come out as LabErrors that name it."""
    try:
        yield
    except LabError as error:
        raise LabError(f"In {name!r} of {experiment!r}: {error.did}", error.means, error.try_, error.code) from error
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1].line
        raise LabError(f"In {name!r} of {experiment!r}: {type(error).__name__}: {error}",
                       f"The function stopped at `{line}`; nothing was timed.",
                       "Call the function by itself in a cell until it works. If it stopped inside a capture, recover() ends that.") from error


@contextlib.contextmanager
def no_collection():
    """No garbage collection meanwhile: it would land on one variant. Restored whatever happens."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
