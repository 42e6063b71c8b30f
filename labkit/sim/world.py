"""The simulated machine: everything that exists on it, and how a rule says no.

There is one machine in a process and one lock around its books. Rules run while that lock is
held; work (kernels, copies, host functions) runs without it, on the threads of engine.py.
"""
import itertools
import threading

from labkit.errors import Undefined


class Refused(Exception):
    """A rule says no. `Refused("InvalidValue")` leaves a runtime name as cudaErrorInvalidValue."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


KINDS = ("stream", "event", "graph", "node", "executable", "kernel", "user object", "pool")


class World:
    """Streams, events, memory, graphs and captures of the one device.

    `reset()` forgets all of it, the modes and last errors of threads too; registered kernels stay,
    as compiled code stays in a program.
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.kernels = {}
        self._numbers, self._given = itertools.count(1), {}
        self.reset()

    def reset(self):
        with self.lock:
            self._reset()

    def _reset(self):
        self.local = threading.local()      # what belongs to one thread: see thread()
        self.streams = {}                   # handle -> Stream, made by the program
        self.per_thread = []                # the per-thread default streams, one a thread
        self.legacy = None                  # the default stream; stream.py makes it when asked for
        self.orphans = []                   # last work of destroyed streams
        self.events = {}
        self.graphs = {}
        self.nodes = {}
        self.execs = {}
        self.objects = {}                   # user objects
        self.captures = []                  # captures between begin and end
        self.memory = None                  # memory.py makes it when asked for
        self.pools, self.leaving = {}, []   # memory pools; those destroyed whose memory is still in use
        self.default_pool = self.current_pool = None
        self.pool_ranges = 0                # ranges of addresses given to pools
        self.graph_ranges = self.graph_pages = None     # graph_addresses.py and graph_memory.py make them
        self.broken = None                  # the code of a context in which a kernel touched what is nobody's: see guards.py
        self.faults = []                    # what queued work raised and nobody has heard of yet; a new list is a new world

    def handle(self, kind):
        """A new handle of a kind. Never given twice, so that a stale one is noticed."""
        first, step = 0x5A00_0000_0000 + (KINDS.index(kind) << 40), 0x40
        self._given[kind] = handle = self._given.get(kind, first) + step
        return handle

    def was_given(self, kind, handle):
        """Was there ever such an object?"""
        return 0x5A00_0000_0000 + (KINDS.index(kind) << 40) < handle <= self._given.get(kind, 0) and handle % 0x40 == 0

    def number(self):
        """A small number, unique in the process: capture ids, graph names."""
        return next(self._numbers)


class Thread:
    """What the runtime keeps for one thread of the program."""

    def __init__(self):
        self.mode = 0                       # cudaStreamCaptureModeGlobal, the default
        self.last_error = 0
        self.stream = None                  # its per-thread default stream


world = World()


def thread():
    """The calling thread's own state."""
    try:
        return world.local.state
    except AttributeError:
        world.local.state = Thread()
        return world.local.state


def find(table, handle, otherwise):
    """The object behind a handle, or Refused(otherwise)."""
    try:
        return table[handle]
    except KeyError:
        raise Refused(otherwise) from None


def find_alive(table, handle, otherwise, kind):
    """The same for a kind whose destroyed objects CUDA does not recognise: using one is undefined."""
    if handle not in table and world.was_given(kind, handle):
        raise Undefined(f"The program uses {'an' if kind[0] == 'e' else 'a'} {kind} that was destroyed.",
                        "CUDA does not check for this: a GPU answers one thing today, another tomorrow, or the process crashes.",
                        f"Forget the handle when you destroy the {kind}.")
    return find(table, handle, otherwise)
