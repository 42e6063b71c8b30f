"""Figures with a place and a date: where a number was measured, and where recorded ones are kept.

A recording belongs to one experiment, its parameters and the *text* of the code that was timed.
Change a line of that code and there is no recording for it any more; labkit says so instead of
showing another program's figure. One JSON file an experiment, in labkit/data/measurements and
labkit/data/timelines. Written by measure() and timeline() on a GPU, with LABKIT_RECORD=<folder>.
"""
import ast
import datetime
import hashlib
import inspect
import json
import os
import platform
import re
import symtable
import sys
import sysconfig
import types
from dataclasses import asdict, dataclass
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from labkit import driver
from labkit.backend import backend, cudart
from labkit.errors import LabError, ok

DATA = Path(__file__).parent / "data"
_NOT_YOURS = [str(Path(__file__).parent)] + [sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")]
_ADDRESS = 2 ** 32   # an int this large is taken for a pointer, which differs from run to run


@dataclass(frozen=True)
class Provenance:
    """Where, with what and when; `how` is "measured" or "recorded"."""
    gpu: str
    driver: str
    cuda: str
    bindings: str
    python: str
    date: str
    how: str = "measured"

    def __str__(self):
        return f"{self.gpu} · driver {self.driver} · runtime {self.cuda} · {self.date} · {self.how}"


def here(how="measured"):
    """Provenance of this machine and moment. Needs a GPU. Stands for: cudaGetDeviceProperties, cudaRuntimeGetVersion."""
    return Provenance(*_machine(), datetime.date.today().isoformat(), how)


@lru_cache
def _machine():
    """(GPU, driver, CUDA, bindings, Python), asked once: nvidia-smi takes a while, and a capture may be open later."""
    properties = ok(cudart.cudaGetDeviceProperties(ok(cudart.cudaGetDevice())))
    gpu = properties.name.decode() if isinstance(properties.name, bytes) else str(properties.name)
    from importlib import metadata      # slow to import, and needed on a GPU only
    try:
        bindings = metadata.version("cuda-bindings")
    except metadata.PackageNotFoundError:
        bindings = "unknown"
    return gpu.strip("\0 "), _driver(), driver.dotted(ok(cudart.cudaRuntimeGetVersion())), bindings, platform.python_version()


def _driver():
    """The driver's release ("580.159.04"), or the newest CUDA it speaks where no release can be read."""
    asked = driver.ask()
    return asked.release or f"for CUDA {asked.speaks}"


# ---- the digest of a program's text -----------------------------------------------------------

def digest(functions, note=""):
    """16 hex digits that name the text of `functions` ({role: function}), of what they use, and `note`.

    What counts: their source and defaults and, by the names they read, your own functions and classes,
    numbers, strings, containers of these, kernels (name and CUDA C), also as attributes of a module, and
    the size and type of buffers. What does not: the text of labkit, Python or an installed package, the
    contents of arrays, and handles. What can't be named so gets a digest of its own each time: no
    recording is better than another program's. The same on every Python version. Raises LabError where
    a source can't be read.
    """
    seen = []
    text = "\n".join(f"{role}: {_function(functions[role], seen, must=True)}" for role in sorted(functions))
    return hashlib.sha256(f"{text}\n{note}".encode()).hexdigest()[:16]


def digest_if_needed(roles, note=""):
    """The digest where a recording is looked up or written; None on a GPU that only measures."""
    return digest(roles, note) if backend.name != "gpu" or os.environ.get("LABKIT_RECORD") else None


def _function(function, seen, must=False):
    if function in seen:
        return f"<{function.__name__}, above>"
    seen.append(function)
    try:
        source = inspect.getsource(function.__code__)          # a wrapper's own text; what it wraps is in its closure
    except (OSError, TypeError):
        if must:
            raise LabError(f"The source of {function.__name__}() can't be read.",
                           "A recording is found by the text of the code, and this code has none on file.",
                           "Define the function in a notebook cell or in a .py file.") from None
        return _nameless(function)
    free = function.__code__.co_freevars
    indent = source[:len(source) - len(source.lstrip())]
    names, attributes = _names(source, free)
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
    if isinstance(value, Enum) or kind.__module__.startswith(("labkit.sim", "cuda.bindings")):
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
    if kind.__name__ == "DeviceArray" or isinstance(value, np.ndarray):
        return f"{value.size} x {value.dtype}"
    if isinstance(value, types.FunctionType):
        return _function(value, seen) if _yours(value) else value.__name__
    if isinstance(value, (types.ModuleType, types.SimpleNamespace)):
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


def _is_cuda(module):
    """The CUDA bindings, or the simulator in their place: their names say all."""
    return getattr(module, "__name__", "").startswith(("cuda.", "labkit.sim"))


def _is_yours(cls):
    return any(_yours(part) for part in vars(cls).values() if isinstance(part, types.FunctionType))


def _class(cls, seen):
    if cls in seen or cls.__module__ == "builtins" or cls.__module__.partition(".")[0] in sys.stdlib_module_names or cls.__module__.startswith("labkit."):
        return cls.__qualname__
    seen.append(cls)
    parts = [f"{name}: {_value(getattr(part, '__func__', part), seen)}" for name, part in sorted(vars(cls).items())
             if not name.startswith("__") or isinstance(part, types.FunctionType)]
    return f"class {cls.__name__}({', '.join(_class(base, seen) for base in cls.__bases__)}) {'; '.join(parts)}"


def _yours(function):
    file = function.__code__.co_filename
    return not file.startswith(("<frozen", "<string>")) and not any(file.startswith(root + os.sep) for root in _NOT_YOURS)


# ---- the files --------------------------------------------------------------------------------

def plain(params):
    """`params` as JSON holds them. Raises LabError for anything but numbers, strings, booleans and None."""
    out = {}
    for name, value in params.items():
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) not in (int, float, str, bool, type(None)):
            raise LabError(f"The parameter {name} is a {type(value).__name__}.",
                           "Parameters name a recording, so they are numbers, strings, booleans or None.",
                           f"Build the {type(value).__name__} in setup(**params), from plain parameters.")
        out[name] = value
    return out


def slug(experiment):
    """The file name of an experiment: "Launch cost" -> "launch-cost"."""
    return re.sub(r"[^a-z0-9]+", "-", experiment.lower()).strip("-")


def find(kind, experiment, params, key):
    """The entry recorded for exactly this code and these parameters, or None. kind: "measurements" or "timelines"."""
    file = DATA / kind / f"{slug(experiment)}.json"
    if not file.exists():
        return None
    entries = json.loads(file.read_text(encoding="utf-8"))["entries"]
    wanted = json.dumps(params, sort_keys=True)                # True is not 1 here
    return next((e for e in entries if json.dumps(e["params"], sort_keys=True) == wanted and e["digest"] == key), None)


def save_if_asked(kind, experiment, params, key, provenance, **figures):
    """With LABKIT_RECORD=<folder>, write the figures there, in place of those for the same code and parameters."""
    if not os.environ.get("LABKIT_RECORD"):
        return
    folder = Path(os.environ["LABKIT_RECORD"]) / kind
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{slug(experiment)}.json"
    old = json.loads(file.read_text(encoding="utf-8"))["entries"] if file.exists() else []
    entry = {"params": params, "digest": key, "provenance": {**asdict(provenance), "how": "recorded"}, **figures}
    kept = [e for e in old if (e["params"], e["digest"]) != (params, key)]
    text = json.dumps({"experiment": experiment, "entries": sorted(kept + [entry], key=_order)},
                      indent=2, sort_keys=True, ensure_ascii=False)
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)   # numbers on one line
    half = file.with_suffix(".tmp")     # an interrupt leaves the old file or the new one, never half of one
    half.write_text(text + "\n", encoding="utf-8", newline="\n")
    half.replace(file)


def _order(entry):
    """Parameters by size, not by spelling: 2 before 10."""
    def rank(value):
        return (0, value, "") if isinstance(value, (int, float)) else (1, 0, str(value))
    return [(name, rank(value)) for name, value in sorted(entry["params"].items())], entry["digest"]
