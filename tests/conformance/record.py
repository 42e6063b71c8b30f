"""Record what the GPU of this machine answers, and compare the simulator with it.

    python -m tests.conformance.record --out DIR              traces_13.json (or _12), in_capture_13.json
    python -m tests.conformance.record --out DIR --compare    the same, then the simulator's differences
    python -m tests.conformance.record --against DIR          the simulator against recordings made before, no GPU needed
    python -m tests.conformance.record --out DIR --random 2000   random programs on both, differences shrunk

--only TEXT keeps the scenarios (and calls) whose name holds the text; --what traces|in_capture takes one
of the two. --module sim runs everything on the simulator (a rehearsal: nothing recorded is ever its answer).
"""
import argparse
import sys
import time
from pathlib import Path

from tests.conformance import children, harness, in_capture, store


def job(cudart, key, on_entry):
    """One trace, in a child."""
    harness.run(cudart, key, on_entry)


UNDEFINED = [["undefined"]]


def is_apart(one, key):
    """True for a case that gets a process of its own: the risky variants of an isolated scenario."""
    variant = key.split("/")[1]
    return variant in one.isolated if isinstance(one.isolated, tuple) else one.isolated and variant != one.control


def traces(module, line, only="", report=print, jobs=4):
    """{key: trace} of all cases, on the GPU or the simulator."""
    cases = {key: one for key, (one, _) in harness.cases().items() if only in key}
    undefined = {}
    if module == "gpu":
        undefined = {key: UNDEFINED for key in cases if harness.is_undefined(key)}
        cases = {key: one for key, one in cases.items() if key not in undefined}
    together = [key for key, one in cases.items() if not is_apart(one, key)]
    apart = [key for key, one in cases.items() if is_apart(one, key) and not one.alone]
    alone = [key for key, one in cases.items() if is_apart(one, key) and one.alone]
    place = "tests.conformance.record:job"
    return {**undefined, **children.run_spread(place, module, line, together, jobs, report),
            **children.run_apart(place, module, line, apart, 2 * jobs, report),
            **children.run_apart(place, module, line, alone, 1, report)}


def same(recorded, found):
    """Whether the simulator's trace is the recorded one; where the hardware crashed, Undefined is right."""
    if recorded == found:
        return True
    if recorded == UNDEFINED:
        return found[-1] == ["raised", "Undefined"]
    if recorded and recorded[-1][0] == "died":
        before = recorded[:-1]
        return found[:len(before)] == before and found[len(before):len(before) + 1] == [["raised", "Undefined"]]
    return False


def difference(recorded, found):
    """The first entry in which two traces differ, as text."""
    for step in range(max(len(recorded), len(found))):
        gpu = recorded[step] if step < len(recorded) else "(end)"
        sim = found[step] if step < len(found) else "(end)"
        if gpu != sim:
            return f"entry {step}: recorded {gpu}, simulator {sim}"
    return "no difference"


KINDS = {"traces": (traces, same, difference, store.write_traces, store.read_traces),
         "in_capture": (in_capture.table, in_capture.same, in_capture.difference, store.write, store.read)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder to write recordings to")
    parser.add_argument("--against", type=Path, help="a folder of recordings to compare the simulator with")
    parser.add_argument("--compare", action="store_true", help="compare the simulator with what was just recorded")
    parser.add_argument("--only", default="", help="keep the scenarios and calls whose name holds this text")
    parser.add_argument("--what", choices=("traces", "in_capture", "all", "none"), default="all")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="also run N random programs")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--keep", type=int, default=300, metavar="N", help="random programs whose traces are kept")
    parser.add_argument("--module", choices=("gpu", "sim"), default="gpu")
    parser.add_argument("--line", type=int, choices=(12, 13), help="the line of --module sim")
    parser.add_argument("--jobs", type=int, default=4)
    args = parser.parse_args()
    kinds = [name for name in KINDS if args.what in (name, "all")]
    differences = 0
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        cudart = children.module_named(args.module, args.line or 12)
        line = cudart.cudaRuntimeGetVersion()[1] // 1000
        where = store.provenance(cudart) if args.module == "gpu" else {"simulator": True}
        print(f"line {line}: {where}", flush=True)
        for name in kinds:
            start = time.monotonic()
            recorded = KINDS[name][0](args.module, line, args.only, jobs=args.jobs)
            KINDS[name][3](args.out / f"{name}_{line}.json", where, recorded)
            print(f"{name}: {len(recorded)} recorded in {time.monotonic() - start:.0f} s", flush=True)
            if args.compare:
                differences += compare(name, recorded, line, args)
        if args.random:
            from tests.conformance import random_programs
            differences += random_programs.record(args, line, where)
    if args.against:
        for path in sorted(args.against.glob("*_1[23].json")):
            name, line = path.stem.rsplit("_", 1)
            if name in kinds:
                differences += compare(name, KINDS[name][4](path)[1], int(line), args)
    sys.exit(1 if differences else 0)


def compare(name, recorded, line, args):
    """Print where the simulator differs from a recording; returns in how many places."""
    take, same, difference, *_ = KINDS[name]
    recorded = {key: value for key, value in recorded.items() if args.only in key}
    found = take("sim", line, args.only, jobs=args.jobs, report=lambda text: None)
    different = {key: difference(recorded.get(key, []), found.get(key, [])) for key in {**recorded, **found}
                 if not (key in recorded and key in found and same(recorded[key], found[key]))}
    for key, text in sorted(different.items()):
        print(f"DIFFERENT {key}: {text}")
    print(f"{name}, line {line}: {len(different)} of {len(recorded)} differ", flush=True)
    return len(different)


if __name__ == "__main__":
    main()
