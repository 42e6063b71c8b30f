"""One test of one submission: a fresh process in the sandbox, its verdict, and what nbgrader should keep of it."""
import json
import os
import secrets
import tempfile
from typing import NamedTuple

from labkit.classroom import limits as watched, sandbox
from labkit.errors import LabError

LARGEST_FILE = 16 << 20


class Outcome(NamedTuple):
    """passed. output: what was printed. error: (name, value, shown) or None. note: for the teacher, or ""."""
    passed: bool
    output: str
    error: tuple | None
    note: str


def _own_limits(limits, uid):
    """What the process is told to set itself; see setrlimit(2). RLIMIT_AS is generous: libraries reserve what they never use."""
    others = 0 if uid is not None else _threads_of_this_user()
    return {"RLIMIT_CORE": 0, "RLIMIT_CPU": int(limits.seconds) * 2 + 5, "RLIMIT_DATA": limits.memory, "RLIMIT_AS": limits.memory + (4 << 30),
            "RLIMIT_FSIZE": LARGEST_FILE, "RLIMIT_NOFILE": 256, "RLIMIT_NPROC": limits.processes + others}


def _threads_of_this_user():
    """How many threads the caller has by now on the machine: the kernel's limit counts them too."""
    total = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                total += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            pass
    return total


def judge(cells, test, limits=watched.Limits(), sandboxed=True):
    """The Outcome of the test's source after the cells [(name, source), ...]. Raises LabError where this machine is at fault."""
    uid, tokens = sandbox.user() if sandboxed else None, {"passed": secrets.token_hex(16), "other": secrets.token_hex(16)}
    own = _own_limits(limits, uid)
    with tempfile.TemporaryDirectory(prefix="labkit-") as empty:
        root = sandbox.INSIDE if sandboxed else str(sandbox.package().parent)
        task = json.dumps({"root": root, "cells": cells, "test": test, "limits": own, "uid": uid, "tokens": tokens}).encode()
        if sandboxed:
            sandbox.require()
            ended = watched.run(sandbox.command(), task, limits)
        else:
            home = {"HOME": empty, "TMPDIR": empty, "MPLCONFIGDIR": empty}
            ended = watched.run(sandbox.bare_command(), task, limits, cwd=empty, env={**sandbox.ENVIRONMENT, **home})
    if '{"ready": true}' not in ended.said[:1]:
        raise LabError("A test could not be started.", ended.why or ended.output.strip()[-500:] or "Its process ended at once.",
                       "This is not the submission's fault, and it got no points or zero for it. Mend it, and autograde again.")
    return _outcome(ended, tokens)


def _outcome(ended, tokens):
    verdict = _verdict(ended.said[1:], tokens)
    if ended.why:
        return Outcome(False, ended.output, ("Stopped", f"stopped: {ended.why}", f"Stopped: the test took {ended.why}."), f"stopped: {ended.why}")
    if verdict is None:
        return Outcome(False, ended.output, ("Ended", "the process ended before the verdict", "Ended: your code ended the process, or was killed at a limit."),
                       "ended its own process")
    if verdict["status"] == "passed":
        return Outcome(True, ended.output, None, "")
    error = (verdict["ename"], verdict["evalue"], verdict["shown"] or f"{verdict['ename']}: {verdict['evalue']}")
    return Outcome(False, ended.output, error, verdict["evalue"] if verdict["status"] == "tampered" else "")


def _verdict(lines, tokens):
    """The last line that is a verdict and carries the token of its kind; None where there is none."""
    for line in reversed(lines):
        try:
            found = json.loads(line)
            if found["status"] in ("passed", "failed", "tampered") and found.get("token") == tokens["passed" if found["status"] == "passed" else "other"]:
                return {"ename": "", "evalue": "", "shown": "", **{name: str(value) for name, value in found.items()}}
        except (ValueError, AttributeError, KeyError, RecursionError):
            continue
    return None
