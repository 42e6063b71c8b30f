"""All planted failures and sound captures as a table: python -m tests.watch.report [own] [threads] [cupy] [torch]

Those in CuPy and PyTorch run in processes of their own (--one NAME). The exit status is 1 where one is wrong.
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.watch import libraries, planted, sound  # noqa: F401  (they fill the two tables)
from tests.watch.bench import PLANTED, SOUND, run, wrong

LIMIT, JOBS = 170, 11  # seconds a child may take (importing PyTorch is most of it), and how many run at once
BY = ("own", "threads", "cupy", "torch")
CASES = {**PLANTED, **SOUND}


def alone(name):
    """What is wrong with a case of CuPy or PyTorch, found in a child process."""
    command = [sys.executable, "-m", "tests.watch.report", "--one", name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment)
    except subprocess.TimeoutExpired:
        return "took too long"
    if child.returncode == 0 and "RIGHT" in child.stdout:
        return ""
    return (child.stdout + child.stderr).strip() or f"exit {child.returncode}"


def judge(name, says=False):
    case = CASES[name]
    if case.missing:
        return f"not here: {case.missing}"
    if case.by in ("cupy", "torch") and not says:
        return alone(name)
    try:
        w, said = run(case)
    except BaseException as problem:  # one row of the table, whatever it is
        import traceback
        return f"raised {type(problem).__name__}: {problem}\n{traceback.format_exc()}"
    found = wrong(case, w)
    return f"{found}\n{said}" if found or says else ""


def main():
    if "--one" in sys.argv:
        text = judge(sys.argv[-1], says=True)
        right = not text.split("\n")[0]
        print(text.strip(), "\nRIGHT" if right else "\nWRONG")
        return not right
    wanted = [by for by in BY if by in sys.argv] or BY
    chosen = {name: case for name, case in CASES.items() if case.by in wanted}
    results = {}

    def tell(name, text):
        results[name] = text
        state = "ok" if not text else "-" if text.startswith("not here") else "WRONG"
        case = chosen[name]
        print(f"{case.word or 'sound':9}{case.by:8}{name:56}{state} {text}", flush=True)
    for name, case in chosen.items():
        if case.by in ("own", "threads"):
            tell(name, judge(name))
    with ThreadPoolExecutor(JOBS) as pool:      # only now: the threads of a pool would be followed too
        children = {pool.submit(judge, name): name for name in chosen if name not in results}
        for child in as_completed(children):
            tell(children[child], child.result())
    failed = [name for name, text in results.items() if text and not text.startswith("not here")]
    print(f"{len(results)} cases, {sum(not t for t in results.values())} right, {len(failed)} wrong: {' '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
