"""Run a program under limits that hold from outside: time, memory, processes, how much it may say.

What a program does to itself (setrlimit) is in inside.py. Here its whole family is watched: a program that starts
others cannot have more by being many. Nothing that it says can fill the memory of this process.
"""
import os
import selectors
import signal
import subprocess
import time
from typing import NamedTuple

TICK = 0.1             # seconds between two looks
START = 60             # seconds to get ready, before anything of the submission runs
SPARE = 256 << 20      # bytes that the machine must have left
SAID = 1 << 18         # bytes kept of what comes over the channel


class Limits(NamedTuple):
    """seconds: from ready to the end. memory: bytes of all processes together. processes: threads count too. output: bytes kept."""
    seconds: float = 60
    memory: int = 1 << 30
    processes: int = 100
    output: int = 20_000


class Ended(NamedTuple):
    """output: text. said: what came over the channel, lines. why: "" for an end of its own, else what was exceeded."""
    output: str
    said: list
    why: str


def family(root):
    """{pid: (threads, resident bytes)} of a process and all its descendants; {} where there is no /proc."""
    parents, found = {}, {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    fields = f.read().rpartition(b")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append((int(name), int(fields[17]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE"), fields[0]))
            if int(name) == root:
                found[root] = (int(fields[17]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
    todo = [root]
    while todo:
        for pid, threads, resident, state in parents.get(todo.pop(), ()):
            if state != b"Z":
                found[pid] = (threads, resident)
            todo.append(pid)
    return found


def available():
    """Bytes that the machine could still give, or None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None


def _exceeded(root, limits):
    """What the family has too much of, in words, or ""."""
    members = family(root).values()
    if sum(resident for _, resident in members) > limits.memory:
        return f"more than {limits.memory >> 20} MiB of memory"
    if sum(threads for threads, _ in members) > limits.processes:
        return f"more than {limits.processes} processes and threads"
    left = available()
    return "the machine ran out of memory" if left is not None and left < SPARE else ""


def end(process):
    """Kill a process and all its descendants, and wait until they are gone."""
    for _ in range(100):
        alive = family(process.pid)
        for pid in {process.pid, *alive} if process.poll() is None else alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        if process.poll() is not None and not alive:
            return
        time.sleep(0.02)


def run(command, task, limits, cwd=None, env=None):
    """Start `command` with a channel's file descriptor as its last argument, give it `task` (bytes) to read: Ended."""
    reading, channel = os.pipe()
    process = subprocess.Popen([*command, str(channel)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               pass_fds=(channel,), cwd=cwd, env=env, start_new_session=True)
    os.close(channel)
    heard = {reading: bytearray(), process.stdout.fileno(): bytearray()}
    ears, why, deadline, ready = selectors.DefaultSelector(), "", time.monotonic() + START, False
    for one in (*heard, process.stdin.fileno()):
        os.set_blocking(one, False)
        ears.register(one, selectors.EVENT_WRITE if one == process.stdin.fileno() else selectors.EVENT_READ)
    try:
        look = 0.0
        while not why and any(one in ears.get_map() for one in heard):
            for key, _ in ears.select(TICK):
                if key.fd in heard:
                    _hear(key.fd, heard[key.fd], SAID if key.fd == reading else limits.output, ears)
                else:
                    task = _tell(process.stdin, task, ears)
            now = time.monotonic()
            if not ready and b"\n" in heard[reading]:
                ready, deadline = True, now + limits.seconds
            if now > deadline:
                why = f"more than {limits.seconds:g} seconds" if ready else f"no start within {START} seconds"
            elif now > look:
                look, why = now + TICK, _exceeded(process.pid, limits)
            if process.poll() is not None and not ears.select(0):
                break                      # gone, and nothing left to hear: a descendant may hold the pipes open
    finally:
        end(process)
        ears.close()
        process.stdout.close()
        os.close(reading)
        if not process.stdin.closed:
            process.stdin.close()
    said, output = (bytes(heard[one]).decode("utf-8", "replace") for one in heard)
    return Ended(output, said.splitlines(), why)


def _hear(one, kept, most, ears):
    """Read what there is; keep the first `most` bytes, drop the rest."""
    data = os.read(one, 1 << 16)
    if not data:
        ears.unregister(one)
    kept += data[:max(0, most - len(kept))]


def _tell(pipe, task, ears):
    """Write as much of the task as goes; what is left of it."""
    try:
        task = task[os.write(pipe.fileno(), task[:1 << 16]):]
    except BlockingIOError:
        return task
    except BrokenPipeError:
        task = b""
    if not task:
        ears.unregister(pipe.fileno())
        pipe.close()
    return task
