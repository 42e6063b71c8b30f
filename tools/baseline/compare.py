"""Python against C++: the same launches and updates, timed in turns in one process and one run.

    python tools/baseline/compare.py                  # builds the twins, prints the tables, exits 1 where a limit is missed
    python tools/baseline/compare.py --out DIR        # and leaves the figures in DIR/measurements, as measure() does

Needs a GPU, nvcc and Linux. All sides use one stream; for a launch, one executable as well. Each round turns
their order round. The Python side is what a lesson can write: calls of cudart, with all that can be prepared before.

Ten updates are ten calls of the setter in C++. Python does them in two ways: "python" is one cudaGraphExecUpdate
with a copy of the graph that prepare_update made before, and this is held to a limit; "python, node by node" is the
ten calls of C++, each with Python's own price on top, and shown only. So the limit holds the same result, not the same calls.
"""
import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from labkit import LabError, cudart, ok, recordings, to_device, to_host  # noqa: E402
from labkit.arrays import copy_in  # noqa: E402
from labkit.backend import backend  # noqa: E402
from labkit.measurement import as_entry  # noqa: E402
from python_side import captured, empty, in_one_call, launches, node_by_node  # noqa: E402
from table import CPP, NODE_BY_NODE, PYTHON, price_of_a_call, rows  # noqa: E402
from turns import at_random, in_turns, measured, us  # noqa: E402
from twins import LARGEST, ROW, build, digest, find_nvcc, pointer  # noqa: E402

TEN = 10                                           # kernels to update


# ---- what is compared --------------------------------------------------------------------------

class Bench:
    """One stream, two buffers, the twins, and how often each round runs."""

    def __init__(self, twins, rounds, provenance, toolkit):
        self.twins, self.rounds = twins, rounds
        self.mixed = dataclasses.replace(provenance, cuda=f"{provenance.cuda}, C++ {toolkit}")
        self.alone = dataclasses.replace(provenance, cuda=toolkit)
        self.stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
        self.x = to_device(np.ones(LARGEST * ROW, np.float32))
        self.y = to_device(np.zeros(LARGEST * ROW, np.float32))

    def clocks(self):
        """How long each side's clock takes to be read, as a sentence."""
        spent = in_turns({PYTHON: empty, CPP: self.twins.timed("empty_round", batched=False)}, self.rounds, [1])
        python, cpp = (us([t.call for t in spent[side]]).median for side in (PYTHON, CPP))
        return f"Reading the clock takes {python:.2f} µs in Python and {cpp:.2f} µs in C++; it is part of each figure."

    def launch(self, nodes):
        """One executable, launched by both sides: a Measurement."""
        executable = ok(cudart.cudaGraphInstantiate(captured(self.stream, nodes, 1, self.y, self.x), 0))
        sides = {PYTHON: launches(executable, self.stream),
                 CPP: self.twins.timed("launch_round", pointer(executable), pointer(self.stream), batched=False)}
        return measured("c++ launch", {"nodes": nodes}, in_turns(sides, self.rounds, [1]), self.mixed, always=False)

    def ten_updates(self):
        """Ten nodes get other values, each side on an executable of its own: two Measurements, with changing values and with the same again."""
        with self.twins.made("updates", pointer(self.stream), TEN, pointer(self.y), pointer(self.x)) as made:
            # the two that a limit compares stand at the ends: they go first equally often
            sides = {PYTHON: in_one_call(self.stream, TEN, self.y, self.x), NODE_BY_NODE: node_by_node(self.stream, TEN, self.y, self.x),
                     CPP: self.twins.timed("updates_round", made, pointer(self.stream))}
            for name, one_round in sides.items():
                for batch in (1, 5, 8):
                    self.check(name, one_round, batch)
            return [measured("c++ ten updates", {"values": values}, in_turns(sides, self.rounds, batches), self.mixed)
                    for values, batches in (("changing", at_random(64)), ("same", [3]))]

    def check(self, name, one_round, batch):
        """LabError where a round does not add 1 ten times to the first batch * ROW floats, and to no other."""
        copy_in(self.y, np.zeros(LARGEST * ROW, np.float32))
        ok(cudart.cudaDeviceSynchronize())
        one_round(batch)
        if (to_host(self.y, self.stream) != np.where(np.arange(LARGEST * ROW) < batch * ROW, TEN, 0)).any():
            raise LabError(f"The {name} side of ten updates left wrong values for a batch of {batch}.", "Its figures would say nothing.",
                           "Compare updates.cu with python_side.py.")

    def changes(self, nodes):
        """The steps in the life of a graph, C++ only: a Measurement."""
        with self.twins.made("changes", pointer(self.stream), nodes) as made:
            fewer = max(20, self.rounds // 5)              # a thousand nodes take their time
            spent = in_turns(self.ways("changes", made), fewer, at_random(64))
        return measured("c++ changing a graph", {"nodes": nodes}, spent, self.alone, always=False)

    def batches(self, count):
        """The strategies for a batch that changes, C++ only: a Measurement."""
        with self.twins.made("batches", pointer(self.stream), count) as made:
            for way, name in enumerate(self.twins.names("batches")):
                for batch in (1, 5, 8):
                    used = LARGEST if name in ("fixed replay", "pad to the largest") else batch
                    if self.twins.written(made, way, batch) != used * ROW:
                        raise LabError(f"{name!r} did not do the work for a batch of {batch}.", "Its figures would say nothing.",
                                       "Look at dynamic_batch.cu.")
            spent = in_turns(self.ways("batches", made), self.rounds, at_random(64))
        return measured("c++ dynamic batch", {"kernels": count}, spent, self.alone)

    def ways(self, prefix, made):
        """The ways of a .cu file as in_turns() takes them."""
        return {name: self.twins.timed(f"{prefix}_round", made, way) for way, name in enumerate(self.twins.names(prefix))}


def run(bench):
    """All Measurements, in the order in which they are printed."""
    yield from map(bench.launch, (1, 10, 100, 1000))
    yield from bench.ten_updates()
    yield from map(bench.changes, (10, 100, 1000))
    yield from map(bench.batches, (10, 100))


def report(measurements):
    """Print all; the exit status: 1 where a limit was missed."""
    table = list(rows(measurements))
    print(f"{'microseconds, medians of one run':<50} {'Python':>9} {'C++':>9} {'ratio':>7}   limit")
    print(*table, sep="\n")
    for m in measurements:
        if CPP not in m.e2e:
            print(f"\n{m}")
    print(f"\n{price_of_a_call(measurements)}")
    missed = "; ".join(row.what for row in table if row.missed)
    print(f"{measurements[0].provenance}\n{len(table)} comparisons, {f'limits missed: {missed}' if missed else 'no limit missed'}")
    return 1 if missed or not table else 0


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="DIR", help="leave the figures in DIR/measurements")
    parser.add_argument("--rounds", type=int, default=500, help="how often each round is timed (500)")
    args = parser.parse_args(argv)
    try:
        if backend.name != "gpu":
            raise LabError("There is no GPU to compare on.", f"{backend.reason}.", "Run it on a machine with a GPU and nvcc.")
        toolkit = f"nvcc {find_nvcc()[1]}"
        known = cudart.cudaDeviceAttr
        major, minor = (ok(cudart.cudaDeviceGetAttribute(getattr(known, f"cudaDevAttrComputeCapability{part}"), 0)) for part in ("Major", "Minor"))
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(build(folder, f"sm_{major}{minor}"), args.rounds, recordings.here(), toolkit)
            found = list(run(bench))
            print(bench.clocks())
    except LabError as error:
        print(error, file=sys.stderr)
        return 2
    for m in found if args.out else ():
        key = digest(*sorted(HERE.glob("*.py")))
        recordings.save(args.out, "measurements", m.experiment, m.params, key, m.provenance, **as_entry(m.cpu, m.e2e, m.stages))
    return report(found)


if __name__ == "__main__":
    sys.exit(main())
