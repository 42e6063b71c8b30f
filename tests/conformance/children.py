"""Run jobs in child processes that may crash or hang, one after another, losing only the job that did.

The parent sends keys, the child answers with lines of JSON: what it starts, each entry, when it is done.
"""
import concurrent.futures
import faulthandler
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30  # seconds a job may take
SICK = 3       # the child's exit status when a job left the process unusable


def module_named(name, line=None):
    """The cudart module called "gpu" or "sim"; the simulator speaks the given line."""
    if name == "gpu":
        return importlib.import_module("cuda.bindings.runtime")
    from labkit import sim
    if line:
        sim.set_line(line)
    return importlib.import_module("labkit.sim.runtime")


def main(arguments):
    """In the child: `python -m tests.conformance.children PLACE MODULE LINE`, keys on standard input.

    PLACE is "package.module:function"; function(cudart, key, on_entry) does one job.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the job prints goes to standard error

    def say(**what):
        answers.write(json.dumps(what) + "\n")
        answers.flush()
    keys = [line.rstrip("\n") for line in sys.stdin]
    place, module, line = arguments
    where, function = place.split(":")
    job = getattr(importlib.import_module(where), function)
    faulthandler.enable()
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
    cudart = module_named(module, int(line))
    speaks = cudart.cudaRuntimeGetVersion()[1] // 1000
    if speaks != int(line):
        raise SystemExit(f"this child speaks line {speaks}, not {line}: other bindings than its parent's")
    for key in keys:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        say(start=key)
        try:
            job(cudart, key, lambda entry: say(entry=entry))
        except Exception as problem:  # before or after the job's own care: not even the tape could be made
            say(entry=["raised", type(problem).__name__, str(problem)])
        ill = None if module == "sim" else illness(cudart)
        say(done=key, ill=ill)
        if ill:
            os._exit(SICK)
    faulthandler.cancel_dump_traceback_later()
    answers.flush()
    os._exit(0)  # handles that Python still holds are nobody's business any more


def illness(cudart):
    """What is wrong with the process after a job, or None."""
    code, = cudart.cudaDeviceSynchronize()
    if code == 0:
        code, ptr = cudart.cudaMalloc(64)
        if code == 0:
            code, = cudart.cudaFree(ptr)
    return None if code == 0 else code.name


def run(place, module, line, keys, report=print):
    """{key: list of entries} of all jobs. A job that kills its child ends with ["died", how]."""
    results, waiting = {}, list(keys)
    while waiting:
        child = subprocess.Popen([sys.executable, "-m", "tests.conformance.children", place, module, str(line)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
                                 env={**os.environ, "PYTHONPATH": os.pathsep.join(
                                     part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)})
        child.stdin.write("".join(key + "\n" for key in waiting))
        child.stdin.close()
        current, entries = None, []
        for text in child.stdout:
            said = json.loads(text)
            if "start" in said:
                current, entries = said["start"], []
            elif "entry" in said:
                entries.append(said["entry"])
            else:
                results[said["done"]] = entries
                current = None
                if said["ill"]:
                    report(f"ill after {said['done']}: {said['ill']}")
        status = child.wait()
        if current is not None:
            how = "hung" if status == 1 else signal.Signals(-status).name if status < 0 else f"exit {status}"
            results[current] = entries + [["died", how]]
            report(f"died in {current}: {how}")
        elif status not in (0, SICK) and not any(key in results for key in waiting):
            raise RuntimeError(f"the child did not start (exit status {status})")
        waiting = [key for key in waiting if key not in results]
    return results


def run_apart(place, module, line, keys, jobs=8, report=print):
    """The same with a child for each key."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = pool.map(lambda key: run(place, module, line, [key], report), keys)
        return {key: entries for part in parts for key, entries in part.items()}


def run_spread(place, module, line, keys, jobs=4, report=print):
    """The same with the keys dealt to a few children that work side by side."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = pool.map(lambda part: run(place, module, line, part, report), [keys[start::jobs] for start in range(jobs)])
        return {key: entries for part in parts for key, entries in part.items()}


if __name__ == "__main__":
    main(sys.argv[1:])
