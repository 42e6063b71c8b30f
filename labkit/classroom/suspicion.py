"""Lines in a submission that a teacher should look at: they reach for what no exercise needs. They decide nothing."""
import ast
import re

from labkit.classroom.inside import plain

PLAIN = {"labkit", "numpy", "math", "itertools", "functools", "collections", "contextlib", "threading", "time", "random", "dataclasses", "typing"}
INNER = ("exercise", "labs", "classroom", "cases", "sim", "errors", "solved", "asking")
CALLS = {"exec", "eval", "compile", "open", "__import__", "globals", "locals", "vars", "setattr", "delattr", "get_ipython", "breakpoint", "input", "exit", "quit"}
DOORS = {"sys", "os", "io", "gc", "ctypeslib", "inspect", "types", "builtins", "modules", "subprocess", "importlib",        # a module of a module
         "f_back", "f_locals", "f_globals", "f_builtins", "f_code", "tb_frame", "gi_frame", "gi_code", "cr_frame", "ag_frame"}
PUBLIC = {"__name__", "__doc__", "__len__", "__getitem__", "__setitem__", "__init__"}
OWN = {"__init__", "__call__", "__enter__", "__exit__", "__repr__", "__post_init__", "__del__"}
MODULES = {"labkit", "numpy", "np", "cudart", "graph", "kernels"}
MOST = 10


def look(source):
    """["line 3: import os", ...] for the code of a cell, its %magic and !command lines left out as they are in grading; at most ten."""
    try:
        tree = ast.parse(plain(source))
    except SyntaxError:
        return []                                        # nothing of it runs
    except (ValueError, RecursionError, MemoryError):
        return ["line 1: this cell can't be read"]
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} | {node.arg for node in nodes if isinstance(node, ast.arg)}
    modules = MODULES | {one.asname or one.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for one in node.names}
    found = sorted({(getattr(node, "lineno", 1), why) for node in nodes for why in _why(node, bound, modules)})
    return [f"line {line}: {why}" for line, why in found[:MOST]]


def _why(node, bound, modules):
    if isinstance(node, ast.Import):
        yield from (f"import {one.name}" for one in node.names if not _usual(one.name))
    elif isinstance(node, ast.ImportFrom):
        full = [f"{node.module or '.'}.{one.name}" for one in node.names]
        yield from (f"import {name}" for name in full if not _usual(name))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from _call(node)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(node, modules)
    elif isinstance(node, ast.Name) and (node.id.startswith("__") or node.id in CALLS and node.id not in bound):
        yield node.id
    elif isinstance(node, ast.FunctionDef) and re.fullmatch("__.*__", node.name) and node.name not in OWN:
        yield f"def {node.name}"                         # an object that is equal to all, of any length, ...
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"(^|[.\[])__\w+__", node.value):
        yield repr(node.value)[:60]


def _call(node):
    name = node.func.id
    if name in CALLS:
        yield f"{name}()"
    elif name in ("getattr", "hasattr") and len(node.args) > 1:
        what = node.args[1]
        if not isinstance(what, ast.Constant):
            yield f"{name}() with a name that is made up while it runs"
        elif str(what.value).startswith("_") or what.value in DOORS:
            yield f"{name}(..., {what.value!r})"


def _attribute(node, modules):
    whole = ast.unparse(node)[:60]
    if node.attr.startswith("_") and node.attr not in PUBLIC:
        yield f".{node.attr}"
    elif node.attr in DOORS or isinstance(node.value, ast.Name) and node.value.id == "labkit" and node.attr in INNER:
        yield whole
    if not isinstance(node.ctx, ast.Load) and _root(node.value) in modules:
        yield f"{whole} is replaced"


def _usual(name):
    first, _, rest = name.partition(".")
    if first not in PLAIN or set(name.split(".")) & DOORS or any(word.startswith("_") for word in name.split(".")):
        return False
    return not (first == "labkit" and rest.partition(".")[0] in INNER)


def _root(value):
    """The name that a chain of attributes begins with, or ""."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""
