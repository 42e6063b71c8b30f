"""How the programs of cases 09 to 16 are tried. See trials_loud.py."""
import numpy as np

from labkit import arrays
from labkit.backend import cudart
from labkit.cases.bench import Trouble
from labkit.cases.trials_loud import doubled_and_added
from labkit.errors import ok
from labkit.kernels import add, axpy, launch


def case_09(bench, program):
    y, bias = bench.buffer(), bench.buffer()
    graph = bench.parts_of(bench.run(program, bench.stream, y, bias), "graph")
    ok(cudart.cudaDeviceSynchronize())
    doubled_and_added(bench, bench.executable(graph), y, bias)


def case_10(bench, program):
    y = bench.buffer()
    graph, feed = bench.parts_of(bench.run(program, bench.stream, y, bench.numbers()), "graph", "function")
    executable = bench.executable(graph)
    for k in (1, 2, 3):
        batch = bench.numbers() + 10 * k
        bench.run(feed, batch, again=True)
        ok(cudart.cudaDeviceSynchronize())
        bench.put(y, np.zeros(y.size))                  # only the launch may fill it
        bench.launch(executable, k)
        bench.expect(f"after feed number {k}", "y", y, 2 * batch)


def case_11(bench, program):
    y, table = bench.buffer(), bench.numbers()
    wanted = 2 * table
    graph = bench.parts_of(bench.run(program, bench.stream, y, table), "graph")
    executable = bench.executable(graph)
    for k in (1, 2, 3):
        if k > 1:
            table[:] = -k                               # the caller uses his array again
        others = [np.full(y.size, -7, np.float32) for _ in range(16)]     # and whoever gets memory that nobody holds
        bench.put(y, np.zeros(y.size))
        bench.launch(executable, k)
        bench.expect(f"launch {k}", "y", y, wanted)
        del others


def case_12(bench, program):
    w, grad = bench.buffer(), bench.buffer()
    _, executable, set_rate = bench.parts_of(bench.run(program, bench.stream, w, grad), "graph", "executable", "function")
    for rate in (1.0, 0.5, 4.0):
        bench.run(set_rate, rate, again=True)
        for _ in range(2):
            before, step = bench.fresh(w, grad)
            bench.launch(executable)
            bench.expect(f"after set_rate({rate})", "w", w, before + rate * step)


def case_13(bench, program):
    y, seen = bench.buffer(), []
    graph = bench.parts_of(bench.run(program, bench.stream, y), "graph")
    executable = bench.executable(graph)
    for k in (1, 2, 3):
        bench.put(y, np.full(y.size, -1))
        bench.launch(executable, k)
        found = arrays.to_host(y)
        if found.min() < 0 or found.max() > 1 or len(np.unique(found)) < max(2, found.size // 2):
            raise Trouble(f"{bench.what}, launch {k}: expected noise from 0 to 1 in y; found {' '.join(f'{v:.3f}' for v in found[:4])} ...")
        again = next((n for n, other in enumerate(seen, 1) if np.isin(found, other).mean() > 0.5), None)
        if again:
            raise Trouble(f"{bench.what}: expected other numbers at each launch; launch {k} gives those of launch {again}.")
        seen.append(found)


def case_14(bench, program):
    x, y, one, count = bench.buffer(), bench.buffer(), bench.buffer([1]), bench.buffer([0])
    ok(cudart.cudaStreamBeginCapture(bench.stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    ok(launch(bench.stream, add, 8, 256, y, x, x, y.size))
    ok(launch(bench.stream, axpy, 1, 1, count, one, 1.0, 1))            # counts the launches, on the GPU
    graph = bench.parts_of(ok(cudart.cudaStreamEndCapture(bench.stream)), "graph")
    batches = [bench.numbers() + 10 * k for k in range(4)]
    results = bench.run(program, bench.stream, bench.executable(graph), x, y, batches)
    if not isinstance(results, (list, tuple)) or len(results) != len(batches):
        raise Trouble(f"{bench.what}: expected a list of {len(batches)} results; found {type(results).__name__}"
                      f"{f' of {len(results)}' if isinstance(results, (list, tuple)) else ''}.")
    ok(cudart.cudaDeviceSynchronize())
    for k, (batch, result) in enumerate(zip(batches, results), 1):
        bench.expect(f"batch {k} of {len(batches)}", "its result", result, 2 * batch)
    launches = int(arrays.to_host(count)[0])
    if launches != len(batches):
        raise Trouble(f"{bench.what}: expected {len(batches)} launches of the executable, one a batch; found {launches}.")


def case_15(bench, program):
    y, log, wanted = bench.buffer(), [], []
    graph = bench.parts_of(bench.run(program, bench.stream, y, log), "graph")
    executable = bench.executable(graph)
    if log:
        raise Trouble(f"{bench.what}: expected an empty log before the first launch; found {some_of(log)}.")
    for k in (1, 2, 3):
        before, = bench.fresh(y)
        bench.launch(executable, k)
        bench.expect(f"launch {k}", "y", y, 2 * before)
        wanted.append(2 * before[0])
        if not np.allclose(log if len(log) == k else [np.nan], wanted):
            raise Trouble(f"{bench.what}, launch {k}:\n  expected log = {some_of(wanted)}\n  found    log = {some_of(log)}")


def some_of(log):
    return "[" + ", ".join(f"{float(v):g}" for v in log) + "]"


def case_16(bench, program):
    y = bench.buffer()
    _, executable, set_count = bench.parts_of(bench.run(program, bench.stream, y), "graph", "executable", "function")
    for count in (y.size, y.size // 2, 1, y.size - 1):
        bench.run(set_count, count, again=True)
        for _ in range(2):
            before, = bench.fresh(y)
            bench.launch(executable)
            bench.expect(f"after set_count({count})", "y", y, np.concatenate([2 * before[:count], before[count:]]))
