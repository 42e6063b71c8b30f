"""One GPU, many learners: who measures has it to itself. gpu_to_yourself().

    with gpu_to_yourself("launch cost"):
        ...                               # measure(), timeline() and footprint() do their timing in here

A file is locked, one for each GPU (lock_file.py says where). The system takes a lock from a process that ends, however it
ends. Who comes next waits in line, at the lock of a second file, so that nobody is passed over for long. It keeps apart
those who ask: a program that measures nothing uses the GPU meanwhile. The simulator times nothing and never waits.
"""
import contextlib
import os
import threading
import time
import uuid
from functools import partial

from labkit import lock_file
from labkit.backend import backend
from labkit.lock_wait import Wait, say_once, user

HELD = "LABKIT_LOCK_HELD"                 # tells a child that the process it comes from is measuring


class _State:
    """What this process has. open: descriptors; held: the locked one; depth: how many blocks it is in; parent: what HELD was at its start."""

    def __init__(self):
        self.thread, self.depth, self.open, self.held, self.parent = threading.RLock(), 0, [], None, os.environ.get(HELD)

    def let_go(self, fd):
        """Close a descriptor. Its lock is dropped first: a forked child may have the descriptor too."""
        from filelock import unlock_descriptor
        if fd == self.held:
            self.held = None
            lock_file.write(fd, {})
        with contextlib.suppress(OSError):
            unlock_descriptor(fd)
        self.open.remove(fd)
        os.close(fd)


@contextlib.contextmanager
def gpu_to_yourself(what="something"):
    """No other process, user or thread is in such a block for the same GPU meanwhile. `what`: what those who wait read.

    A thread in one may enter another, and so may a process that was started from one. Where it waits, it says so; Ctrl+C ends
    that. Raises LabError where the file can't be used. A file system without locks is named once, and is no error.
    """
    if backend.name != "gpu" or _state.parent and lock_file.holder(lock_file.place()).get("token") == _state.parent:
        yield                             # nothing is timed here; or who started this process is in the block, and may wait for it
        return
    state, me, path = _state, os.getpid(), lock_file.place()
    wait = Wait(path, what)
    wait.until(partial(state.thread.acquire, blocking=False))
    state.depth += 1
    try:
        if state.depth == 1:
            _lock(state, path, wait)
        wait.over()
        yield
    finally:
        if state.depth == 1 and os.getpid() == me:          # a fork that leaves the block has no lock to give back
            os.environ.pop(HELD, None)
            for fd in list(state.open):
                state.let_go(fd)
        state.depth -= 1
        state.thread.release()


def _lock(state, path, wait):
    """Wait in line, lock the file, and write into it who holds it."""
    from filelock import lock_descriptor  # takes a while to import, and is needed on a GPU only
    def take(path):
        fd = lock_file.opened(path)
        state.open.append(fd)
        wait.until(partial(lock_descriptor, fd, blocking=False))
        return fd
    try:
        line, file = take(f"{path}.next"), take(path)
        while not lock_file.is_at(path, file):              # deleted, to tidy up: who comes now would lock another one
            state.let_go(file)
            file = take(path)
    except (OSError, NotImplementedError) as error:         # NFS without a lock service, for one
        return say_once(f"measuring without a lock: {path} can't have one ({error}). Neighbours on this GPU may disturb; LABKIT_LOCK can name another file.")
    state.let_go(line)
    state.held, os.environ[HELD] = file, uuid.uuid4().hex
    lock_file.write(file, {"user": user(), "pid": os.getpid(), "what": wait.what[:60], "since": time.strftime("%H:%M:%S"), "token": os.environ[HELD]})


def _forked():
    """A forked child has none of its parent's locks."""
    global _state
    for fd in _state.open:
        os.close(fd)
    _state = _State()


_state = _State()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
