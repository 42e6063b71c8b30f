"""Queued work: nothing runs when it is queued; waiting runs it and what it depends on, no more.

An `Op` is one piece of work with the ops that must finish before it. Numbers grow in the order of
queueing and an op depends on smaller numbers only, so "sorted by number" is an order in which the
work may run. It runs on worker threads, never on the waiting one: an interrupt stops the waiting
and leaves the work, as on a GPU, and a host function may wait for the thread that waits for it.
"""
import itertools
import os
import queue
import sys
import threading

from labkit.errors import Undefined
from .world import world

PENDING, RUNNING, DONE = range(3)
_changed = threading.Condition()
_numbers = itertools.count()
_working = threading.local()


class Op:
    """Work in a queue. run: a callable, or None for a mere point in the order. host: it, or
    unfinished work before it, is a host function. light: it takes a GPU no time. settled: see settled()."""
    __slots__ = ("run", "after", "state", "number", "host", "light", "settled")

    def __init__(self, run, after=(), host=False):
        self.run, self.state, self.number = run, PENDING, next(_numbers)
        self.after = tuple([op for op in after if op is not None and op.state != DONE])
        self.host, self.light, self.settled = host or any(op.host for op in self.after), run is None, False
        if run is None and not self.after:
            self.state = DONE


def unfinished(ops):
    """The ops and all they wait for, in an order in which they may run."""
    seen, stack = set(), [op for op in ops if op is not None]
    while stack:
        op = stack.pop()
        if op.state != DONE and op not in seen:
            seen.add(op)
            stack.extend(op.after)
    return sorted(seen, key=lambda op: op.number)


def is_done(op):
    return op.state == DONE


def settled(op):
    """Would a GPU be through with it by now? So it is where only points, allocations and frees are left, and graphs of nothing else."""
    seen, stack = set(), [op]
    while stack:
        one = stack.pop()
        if one.state != DONE and not one.settled and one not in seen:
            if not one.light:
                return False
            seen.add(one)
            stack.extend(one.after)
    op.settled = True
    return True


def leads_to(op, ops):
    """Is `op` among the ops or what they wait for? Only unfinished ones are looked at."""
    seen, stack = set(), list(ops)
    while stack:
        one = stack.pop()
        if one is op:
            return True
        if one is not None and one.state != DONE and one.number > op.number and one not in seen:
            seen.add(one)
            stack.extend(one.after)
    return False


def _drain(ops, faults):
    """Run ops in order; what they raise is heard at the next wait, as an asynchronous error is."""
    for op in unfinished(ops):
        with _changed:
            while op.state == RUNNING:          # another worker is at it
                _changed.wait()
            if op.state == DONE:
                continue
            op.state = RUNNING
        try:
            if op.run is not None and faults is world.faults and not world.broken:     # else its world is gone, or its context
                op.run()
        except BaseException as fault:
            faults.append(fault)
        finally:
            finish(op)


def finish(op):
    """Mark an op as done, and let go of what it held."""
    with _changed:
        op.state, op.run, op.after = DONE, None, ()
        _changed.notify_all()


class _Worker:
    """A daemon thread that drains one request after another."""
    idle, lock = [], threading.Lock()

    def __init__(self):
        self.inbox = queue.SimpleQueue()
        threading.Thread(target=self.loop, name="labkit device", daemon=True).start()

    def loop(self):
        _working.device = True
        while True:
            ops, faults, finished = self.inbox.get()
            try:
                _drain(ops, faults)
            finally:
                with _Worker.lock:
                    _Worker.idle.append(self)
                finished.set()
                del ops, faults, finished


def begin(ops):
    """Start running ops, and what they wait for, in the background: an event set at the end. When the program ends and finalizers
    still call CUDA there is no background any more: then they run here."""
    finished = threading.Event()
    if sys.is_finalizing():
        _drain_alone(ops)
        finished.set()
        return finished
    with _Worker.lock:
        worker = _Worker.idle.pop() if _Worker.idle else None
    try:
        (worker or _Worker()).inbox.put((list(ops), world.faults, finished))
    except RuntimeError:                        # the main thread is over: no new thread
        _drain(ops, world.faults)
        finished.set()
    return finished


def _drain_alone(ops):
    """Run ops in the last thread there is. The others stand still wherever they were, so nothing is waited for: no lock, no work
    that they began, and no host function, which may wait for them."""
    for op in unfinished(ops):
        run = op.run if op.state == PENDING and not op.host else None
        op.state, op.run, op.after = DONE, None, ()
        try:
            if run is not None:
                run()
        except BaseException as fault:
            world.faults.append(fault)


def wait(ops):
    """Run ops and what they wait for. Raises what queued work raised, once.

    Called without the world's lock. An interrupt leaves the work running.
    """
    pending = [op for op in ops if op is not None and op.state != DONE]
    if pending and on_device():
        raise Undefined("The NumPy twin of a kernel called CUDA and would wait for itself.", "A kernel runs on the GPU and cannot call the runtime.",
                        "Read the result after the launch, with to_host(buffer, stream).")
    if pending:
        finished = begin(pending)
        while not finished.wait(0.5):           # a wait without end cannot be interrupted everywhere
            pass
    hear()


def hear():
    """Raise the first fault of queued work that nobody has heard of."""
    if world.faults:
        fault, world.faults[:] = world.faults[0], []
        raise fault


if hasattr(os, "register_at_fork"):         # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=_Worker.idle.clear)


def in_callback():
    """True on a thread that is running a host function, or the destructor of a user object."""
    return getattr(_working, "callback", False)


def on_device():
    """True on a thread of the driver: one that runs queued work."""
    return getattr(_working, "device", False)


def call_back(function, argument):
    """Run a host function (a C function pointer) and forbid it to call CUDA."""
    _working.callback = True
    try:
        function(argument)
    finally:
        _working.callback = False
