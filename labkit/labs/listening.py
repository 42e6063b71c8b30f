"""Hear what an answer asks of CUDA: for as long as it runs, functions of cudart are exchanged for ones that tell.

Heard is what is written as cudart.name(...), and what the function's own module calls by another name, say
`go = cudart.cudaGraphLaunch` in an earlier cell. All is put back in the end, also what an interrupt has left.
"""
import contextlib
import functools
import inspect

from labkit.backend import cudart

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
    found = inspect.unwrap(function) if callable(function) else function
    found = found if hasattr(found, "__globals__") else getattr(found, "__func__", None) or getattr(type(found), "__call__", None)
    spaces = getattr(found, "__globals__", None)
    return [vars(cudart)] + ([spaces] if isinstance(spaces, dict) and spaces is not vars(cudart) else [])


def put_back(count=0):
    """Undo exchanges until only so many are left: all of them, before anything new is heard."""
    while len(_exchanged) > count:
        space, name, stood = _exchanged[-1]
        space[name] = stood
        _exchanged.pop()


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
                return getattr(cudart, name)(*args, **named)
            return heard(name, functools.partial(call, *args, **named), in_order(name, args, named))
        return told
    known, count = {id(inspect.unwrap(call)): name for name, call in before.items()}, len(_exchanged)
    told = {name: exchanged(name, call) for name, call in before.items()}
    try:
        for space in _spaces(function):
            for alias, value in list(space.items()):
                name = known.get(id(inspect.unwrap(value))) if callable(value) else None
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
