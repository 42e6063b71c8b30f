"""A ratio of two times, both taken in this run, in turns. The simulator has no clock and judges none."""
import statistics
import time

from labkit import recordings
from labkit.backend import backend, cudart
from labkit.errors import ok
from labkit.gpu_lock import gpu_to_yourself
from labkit.measure import no_collection

ROUNDS, WARM_UP, ATTEMPTS = 21, 3, 3


def ratio(stream, name, fast, other, slow, factor):
    """(a line with the ratio and where it was measured, whether slow takes at least `factor` times as long as fast)."""
    if backend.name != "gpu":
        for call in (fast, slow):                    # a mistake shows here too
            call()
            ok(cudart.cudaStreamSynchronize(stream))
        return "speed: not judged here; the simulator has no clock. Run the check on a GPU for that.", True
    with gpu_to_yourself(f"an exercise: {name}"):
        found = max(_once(stream, fast, slow, factor))
    said = f"{found:.2f} times as fast as {other}, at least {factor:g} asked" if factor >= 1 else f"takes {1 / found:.2f} times as long as {other}, at most {1 / factor:g} asked"
    line = f"{name}: {said} ({recordings.here()}, in turns in this run)"
    return line, found >= factor


def _once(stream, fast, slow, factor):
    """The ratio of the medians; measured again where it fell short, as a neighbour may have disturbed it."""
    for _ in range(ATTEMPTS):
        spent = {fast: [], slow: []}
        with no_collection():
            for k in range(WARM_UP + ROUNDS):
                for call, times in spent.items():
                    started = time.perf_counter_ns()
                    call()
                    ok(cudart.cudaStreamSynchronize(stream))
                    if k >= WARM_UP:
                        times.append(time.perf_counter_ns() - started)
        found = statistics.median(spent[slow]) / statistics.median(spent[fast])
        yield found
        if found >= factor:
            return
