"""Which cells of an exercise only ask: check(...), hint(...), progress()."""
import ast

ASKING = ("check", "hint", "progress")


def only_asks(source):
    """True for a cell with nothing in it but calls of check, hint and progress."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return False
    return all(isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and isinstance(line.value.func, ast.Name)
               and line.value.func.id in ASKING for line in body)
