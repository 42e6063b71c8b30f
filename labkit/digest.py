"""The digest of a program's text: what a recording is found by.

    digest({"stream": one_by_one, "graph": replay})       # "061f47b6ee8b8201"

A function's own text counts, and what it refers to by name. What cannot be named, such as an object of
some other package, gets a digest of its own each time: no recording is better than another program's.
"""
import ast
import hashlib
import inspect
import os
import symtable
import sys
import sysconfig
import types
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np

from labkit.errors import LabError

_NOT_YOURS = [str(Path(__file__).parent)] + [sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")]
_ADDRESS = 2 ** 32   # an int this large is taken for a pointer, which differs from run to run


def digest(functions, note=""):
    """16 hex digits that name the text of `functions` ({role: function}), of what they use, and `note`.

    What counts: their source and defaults and, by the names they read, your own functions and classes,
    numbers, strings, containers of these, kernels (name and CUDA C), also as attributes of a module,
    prepared kernel parameters, and the size and type of buffers. What does not: the text of labkit,
    Python or an installed package, the contents of arrays, numbers from 2**32 up (addresses), and handles:
    what a stream, a graph or an executable made elsewhere is. The same on every Python version for functions and
    what they use; a class of your own may differ. Raises LabError where a source can't be read.
    """
    seen = []
    try:
        text = "\n".join(f"{role}: {_function(functions[role], seen, must=True)}" for role in sorted(functions))
    except RecursionError:
        raise LabError("What the timed code uses holds itself.", "A recording is found by all that the code uses, and this has no end.",
                       "Pass what is needed in setup(), without a list or an object that contains itself.") from None
    return hashlib.sha256(f"{text}\n{note}".encode()).hexdigest()[:16]


def _function(function, seen, must=False):
    if function in seen:
        alike = [other for other in seen if other.__name__ == function.__name__]          # another one may have this name
        return f"<{function.__name__}, above{f', number {alike.index(function)}' if alike.index(function) else ''}>"
    seen.append(function)
    try:
        source = inspect.getsource(function.__code__)          # a wrapper's own text; what it wraps is in its closure
        free = function.__code__.co_freevars
        names, attributes = _names(source, free)
    except (OSError, TypeError, SyntaxError):                  # a lambda among others on a line does not stand alone
        if must:
            raise LabError(f"The source of {function.__name__}() can't be read.",
                           "A recording is found by the text of the code, and this code has none on file.",
                           "Define the function in a notebook cell or in a .py file.") from None
        return _nameless(function)
    indent = source[:len(source) - len(source.lstrip())]
    source = "\n".join(line.removeprefix(indent).rstrip() for line in source.rstrip().splitlines())
    values = dict(function.__globals__)
    for name, cell in zip(free, function.__closure__ or ()):
        try:
            values[name] = cell.cell_contents
        except ValueError:          # not bound yet
            values.pop(name, None)
    used = [(name, _value(values[name], seen)) for name in sorted(names) if name in values]
    for name, attribute in sorted(attributes):
        if name in names and isinstance(values.get(name), (types.ModuleType, types.SimpleNamespace)) and not _is_cuda(values[name]):
            used.append((f"{name}.{attribute}", _value(getattr(values[name], attribute, None), seen)))
    used += [("defaults", _value(part, seen)) for part in (function.__defaults__, function.__kwdefaults__) if part]
    return source + "".join(f"\n{name} = {value}" for name, value in used)


def _names(source, free):
    """(names a function's source reads and does not bind itself, (name, attribute) pairs it reads); `free` are an enclosing function's."""
    found = set(free)
    indent = source[:len(source) - len(source.lstrip())]
    if indent:    # a nested function gets a home that binds them, or `nonlocal` would not parse
        source = f"def _():\n{indent}{' = '.join([*sorted(free), '_'])} = 0\n{source}"

    def visit(table):
        for symbol in table.get_symbols():
            bound_here = table.get_type() == "module" and symbol.is_assigned()
            if symbol.is_global() and not bound_here:
                found.add(symbol.get_name())
        for child in table.get_children():
            visit(child)

    visit(symtable.symtable(source, "cell", "exec"))
    return found, {(node.value.id, node.attr) for node in ast.walk(ast.parse(source))
                   if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}


def _nameless(value):
    return f"<{type(value).__name__} {os.urandom(8).hex()}>"


def _value(value, seen):
    """The text of a value that a timed function refers to."""
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if isinstance(value, Enum) and not kind.__module__.startswith(("labkit.sim", "cuda.bindings")):
        return f"{kind.__qualname__}.{value.name} = {_value(value.value, seen)}"
    if kind.__module__.startswith(("labkit.sim", "cuda.bindings")):
        return getattr(value, "name", "handle")                # a code, a mode, a stream, an executable
    if kind in (bool, float, complex, str, bytes, type(None), range, slice):
        return repr(value)
    if kind is int:
        return repr(value) if abs(value) < _ADDRESS else "address"
    if kind in (tuple, list, set, frozenset):
        parts = [_value(part, seen) for part in value]
        return f"{kind.__name__}({', '.join(sorted(parts) if kind in (set, frozenset) else parts)})"
    if kind is dict:
        return f"dict({', '.join(f'{_value(k, seen)}: {_value(v, seen)}' for k, v in value.items())})"
    if kind.__name__ == "Kernel" and kind.__module__.startswith("labkit"):
        return f"kernel {value.name}: {value.source}"
    if kind.__name__ == "KernelParams" and kind.__module__.startswith("labkit"):
        return _prepared(value, seen)
    if kind.__name__ == "DeviceArray" or isinstance(value, np.ndarray):
        return f"{value.size} x {value.dtype}"
    if isinstance(value, types.FunctionType):
        if _yours(value):
            return _function(value, seen)
        inside = getattr(value, "__wrapped__", None)           # a package's wrapper around a function of yours
        return value.__name__ if inside is None else f"{value.__name__} of {_value(inside, seen)}"
    if isinstance(value, types.SimpleNamespace):
        return f"namespace({_value(vars(value), seen)})"
    if isinstance(value, types.ModuleType):
        return kind.__name__                                   # the attributes that are read count
    if isinstance(value, types.MethodType):
        return f"{_value(value.__self__, seen)}.{_value(value.__func__, seen)}"
    if kind is partial:
        return f"partial({_value(value.func, seen)}, {_value(value.args, seen)}, {_value(value.keywords, seen)})"
    if isinstance(value, type):
        return _class(value, seen)
    if hasattr(value, "__wrapped__"):
        return f"{kind.__name__} of {_value(value.__wrapped__, seen)}"
    name = getattr(value, "__name__", None)                    # a function of Python or of a package
    return name if isinstance(name, str) and not _is_yours(kind) else _nameless(value)


def _prepared(p, seen):
    """Prepared kernel parameters: sizes, arguments and the kernel, but no address, which differs from run to run."""
    args = [f"{param.ctype} {'address' if param.pointer and isinstance(arg, (int, np.integer)) else _value(arg, seen)}"
            for param, arg in zip(p.kernel.params, p.args)]
    return f"<<<{p.grid}, {p.block}, {p.shared}>>>({', '.join(args)}) of {_value(p.kernel, seen)}"


def _is_cuda(module):
    """The CUDA bindings, or the simulator in their place: their names say all."""
    return getattr(module, "__name__", "").startswith(("cuda.", "labkit.sim"))


def _is_yours(cls):
    return any(_yours(part) for part in vars(cls).values() if isinstance(part, types.FunctionType))


def _class(cls, seen):
    if cls in seen or not _your_class(cls):
        return cls.__qualname__
    seen.append(cls)
    parts = [f"{name}: {_value(getattr(part, '__func__', part), seen)}" for name, part in sorted(vars(cls).items())
             if not name.startswith("__") or isinstance(part, types.FunctionType)]
    return f"class {cls.__name__}({', '.join(_class(base, seen) for base in cls.__bases__)}) {'; '.join(parts)}"


def _your_class(cls):
    """What an installed package's class has besides its name differs between versions of the package (NumPy's types do)."""
    package = cls.__module__.partition(".")[0]
    if package in ("builtins", "labkit", "numpy") or package in sys.stdlib_module_names:
        return False
    file = None if package == "__main__" else getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file is None or _your_file(file)


def _yours(function):
    file = function.__code__.co_filename
    return not file.startswith(("<frozen", "<string>")) and _your_file(file)


def _your_file(file):
    return not any(file.startswith(root + os.sep) for root in _NOT_YOURS)
