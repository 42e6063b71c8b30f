"""What runs in the sandbox: one test cell of a submission, after the other code cells above it.

The parent writes one JSON object to standard input: root (the folder that holds labkit), cells [[name, source], ...],
test (source), limits, uid, tokens {"passed", "other"}. What is printed goes to standard output. The verdict is one JSON line on the
file descriptor given as argument: {"token": ..., "status": "passed" | "failed" | "tampered", "ename", "evalue", "shown"}.
Before it comes {"ready": true}: without that line the fault is this machine's, not the submission's.
Not here: a kernel. Nothing of Jupyter runs, and the submission's other files are not there.

The submission shares this Python. So what is needed after it ran is taken before: the line of a passed test is made by then, and no module
that a submission can reach leads to this one (its __main__ is a module of its own), to tampering.py, or to the builtins that both use.
"""
import ast
import builtins
import contextlib
import importlib
import io
import json
import linecache
import os
import sys
import types
from os import _exit, write

__builtins__ = dict(vars(builtins))
MOST = 4000          # characters of an error that are kept


def give_up_rights(uid):
    """Become the user `uid`, where one is given: root's processes cannot be counted, and root may read too much."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def limit(limits):
    """Hard limits of this process and of all that it starts. limits: {"RLIMIT_CPU": seconds, "RLIMIT_DATA": bytes, ...}."""
    import resource
    for name, value in limits.items():
        kind, (_, most) = getattr(resource, name), resource.getrlimit(getattr(resource, name))
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (value, value))


def plain(source):
    """Jupyter's %magic and !command lines left out; the rest as it is."""
    return "\n".join("pass" if line.startswith(("%", "!")) else line for line in source.split("\n"))


def test_of(source):
    """True for a cell that only grades or asks: grade(...), check(...), hint(...), progress()."""
    from labkit.asking import only_asks
    try:
        body = [line for line in ast.parse(source).body if not isinstance(line, ast.ImportFrom)]
    except (SyntaxError, ValueError):
        return False
    return only_asks(source) or bool(body) and all(
        isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and getattr(line.value.func, "id", "") == "grade" for line in body)


def run(source, name, names):
    """Execute a cell; its lines are there for error messages."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), names)


def define(cells, names):
    """Run the cells that stand above the test. One that raises is told, and the next one runs, as in a notebook."""
    for name, source in cells:
        source = plain(source)
        try:
            if not test_of(source):
                run(source, name, names)
        except BaseException as error:
            print(f"{name} raised {type(error).__name__}: {error}"[:MOST])


def judged(test, names):
    """The verdict of the test cell as a dictionary, without the token."""
    try:
        run(test, "<test>", names)
    except BaseException as error:
        if isinstance(error, NameError) and error.name not in names:        # inside the answer grade() would have caught it
            return {"status": "failed", "ename": "Missing", "evalue": f"there is no function {error.name}",
                    "shown": f"expected: a function {error.name}\n  found:  no cell above this one defines it"}
        return {"status": "failed", "ename": type(error).__name__, "evalue": getattr(error, "did", None) or str(error)[:MOST],
                "shown": "\n".join(getattr(error, "_render_traceback_", lambda: [f"{type(error).__name__}: {error}"])())[:MOST]}
    return {"status": "passed"}


def main(channel):
    work = json.loads(sys.stdin.buffer.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)     # nothing of the task can be read a second time
    give_up_rights(work["uid"])
    limit(work["limits"])
    sys.path.insert(0, work["root"])
    with contextlib.redirect_stdout(io.StringIO()):  # which backend runs is no news here
        tampering = apart("labkit.classroom.tampering")
        before, tokens = tampering.fingerprint(), work.pop("tokens")
    passed = json.dumps({"status": "passed", "token": tokens.pop("passed")}).encode() + b"\n"
    write(channel, b'{"ready": true}\n')
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    names = vars(module)
    names["__builtins__"] = builtins
    define(work["cells"], names)
    verdict = judged(work["test"], names)
    try:
        changed = tampering.changed(before)
    except MemoryError:
        changed = [] if verdict["status"] == "failed" else ["labkit, or there was no memory left to tell"]
    if changed:
        verdict = {"status": "tampered", "ename": "Tampered", "evalue": "the submission changed " + ", ".join(changed[:5]), "shown": ""}
    sys.stdout.flush()
    write(channel, passed if verdict == {"status": "passed"} else json.dumps({**verdict, "token": tokens["other"]}).encode() + b"\n")
    _exit(0)                                         # threads that the submission left behind are not waited for


def apart(name):
    """A module of its own, which no import finds afterwards."""
    package, _, last = name.rpartition(".")
    module = importlib.import_module(name)
    del sys.modules[name]
    delattr(sys.modules[package], last)
    return module


if __name__ == "__main__":
    main(int(sys.argv[1]))
