"""Hear what an answer asks of CUDA: for as long as it runs, functions of cudart are exchanged for ones that tell.

Heard is what is written as cudart.name(...), and what the function's own module calls by another name, say
`go = cudart.cudaGraphLaunch` in an earlier cell. All is put back in the end, also what an interrupt has left.
"""
import contextlib
import functools
import inspect
import sys
import threading

from labkit.backend import cudart
from labkit.errors import LabError

PATIENCE = 300          # seconds that a check waits for one in another thread
_turn = threading.RLock()
_exchanged = []         # (namespace, name, what stood there): what is still to be put back, oldest first


@functools.cache
def _signature(name):
    from labkit.sim import runtime           # it names the arguments as CUDA does; the compiled bindings don't tell
    return inspect.signature(getattr(runtime, name))


def in_order(name, args, named):
    """The arguments of a call in CUDA's order, whichever of them were named; as they stand where they do not fit."""
    if not named:
        return args
    try:
        return _signature(name).bind(*args, **named).args
    except TypeError:
        return (*args, *named.values())


def _spaces(function):
    """The namespaces in which a function's names are looked up."""
    while isinstance(function, functools.partial):
        function = function.func
    try:
        found = inspect.unwrap(function) if callable(function) else function
        found = found if hasattr(found, "__globals__") else getattr(found, "__func__", None) or getattr(type(found), "__call__", None)
        spaces = getattr(found, "__globals__", None)
    except Exception:                   # it may be an object of any kind
        spaces = None
    return [vars(cudart)] + ([spaces] if isinstance(spaces, dict) and spaces is not vars(cudart) else [])


def put_back(count=0):
    """Undo exchanges until only so many are left."""
    while len(_exchanged) > count:
        space, name, stood = _exchanged[-1]
        space[name] = stood
        _exchanged.pop()


def _nested():
    """Whether this thread is in the middle of a check: an answer may call check() or recover() itself."""
    frame, seen = sys._getframe(2), 0
    while frame is not None:
        seen += frame.f_code is _alone.__code__
        frame = frame.f_back
    return seen > 0


def _alone(function, args):
    return function(*args)


def mend():
    """Put back what an interrupted check has left; nothing while one is under way."""
    if _turn.acquire(blocking=False):
        try:
            if not _nested():
                put_back()
        finally:
            _turn.release()


def one_at_a_time(function):
    """A decorator: calls from several threads wait for each other, and each begins with nothing exchanged."""
    @functools.wraps(function)
    def turn(*args):
        if not _turn.acquire(timeout=PATIENCE):
            raise LabError("Another check is still running in this process.", f"A check waits for it {PATIENCE} seconds.", "Let it end, or restart the kernel.")
        try:
            mend()
            return _alone(function, args)
        finally:
            _turn.release()
    return turn


def _cudas(call):
    """CUDA's own function under one that tells."""
    return getattr(call, "cudas", call)


@contextlib.contextmanager
def listening(names, heard, function=None):
    """While it lasts, heard(name, call, arguments in CUDA's order) is asked to answer each call of these names; call() makes it.

    function: whose module's own names for these functions are exchanged too.
    """
    before, lasts = {name: getattr(cudart, name) for name in names}, [True]

    def exchanged(name, call):
        @functools.wraps(call, updated=())
        def told(*args, **named):
            if not lasts:                     # kept under another name, and called after that: whoever listens now is told
                now = getattr(cudart, name)
                return (call if now is told else now)(*args, **named)
            return heard(name, functools.partial(call, *args, **named), in_order(name, args, named))
        told.cudas = _cudas(call)
        return told
    known, count = {id(one): name for name, call in before.items() for one in (call, _cudas(call))}, len(_exchanged)
    told = {name: exchanged(name, call) for name, call in before.items()}
    try:
        for space in _spaces(function):
            for alias, value in list(space.items()):
                name = known.get(id(value))
                if name is not None:
                    _exchanged.append((space, alias, value))
                    space[alias] = told[name]
        yield
    finally:
        lasts.clear()
        put_back(count)


@contextlib.contextmanager
def exchange(space, name, value):
    """Put something else under a name of a namespace, and put back what stood there; the next check does, where an interrupt prevents it."""
    count = len(_exchanged)
    _exchanged.append((space, name, space[name]))
    try:
        space[name] = value
        yield
    finally:
        put_back(count)


@contextlib.contextmanager
def unchanged():
    """What the block puts in the place of cudart's functions, and leaves there, is taken away again."""
    before = dict(vars(cudart))
    try:
        yield
    finally:
        vars(cudart).update({name: value for name, value in before.items() if vars(cudart).get(name) is not value})
