"""Lines in a submission that a teacher should look at: they reach for what no exercise needs. They decide nothing."""
import ast

PLAIN = {"labkit", "numpy", "math", "itertools", "functools", "collections", "contextlib", "threading", "time", "random", "dataclasses", "typing"}
INNER = ("exercise", "labs", "classroom", "cases", "sim", "errors", "solved")
CALLS = {"exec", "eval", "compile", "open", "__import__", "globals", "vars", "setattr", "delattr", "get_ipython", "breakpoint", "input", "exit", "quit"}
MOST = 10


def look(source):
    """["line 3: import os", ...] for the code of a cell; at most ten."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = sorted({(node.lineno, why) for node in ast.walk(tree) for why in _why(node)})
    return [f"line {line}: {why}" for line, why in found[:MOST]]


def _why(node):
    if isinstance(node, ast.Import):
        yield from (f"import {one.name}" for one in node.names if not _usual(one.name))
    elif isinstance(node, ast.ImportFrom):
        full = [f"{node.module or '.'}.{one.name}" for one in node.names]
        yield from (f"import {name}" for name in full if not _usual(name))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield f"{node.func.id}()"
    elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
        yield f".{node.attr}"
    elif isinstance(node, ast.Name) and node.id.startswith("__"):
        yield node.id
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        yield from (f"{ast.unparse(one)[:60]} is replaced" for one in targets
                    if isinstance(one, ast.Attribute) and isinstance(one.value, (ast.Name, ast.Attribute)) and _module(one.value))


def _usual(name):
    first, _, rest = name.partition(".")
    return first in PLAIN and not (first == "labkit" and rest.partition(".")[0] in INNER)


def _module(value):
    """True for what reads like a module of the kit or of NumPy."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name) and value.id in {"labkit", "numpy", "np", "cudart", "graph", "kernels"}
