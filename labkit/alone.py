"""Whether a function could run alone, in another Python: its text, or a LabError that says what it lacks. in_child() asks."""
import ast
import builtins
import inspect
import symtable
import textwrap

from labkit.errors import LabError


def standalone(program, args):
    """`program` (a text, or a function to be called with `args`) as the text of a whole program. Raises LabError where it could not run alone."""
    if isinstance(program, str):
        if args:
            raise LabError("in_child() got a text and values for it.", "Only a function takes values.", "Write them into the text, or pass a function.")
        return textwrap.dedent(program)
    if not inspect.isfunction(program) or inspect.iscoroutinefunction(program) or inspect.isgeneratorfunction(program) or inspect.isasyncgenfunction(program):
        raise LabError(f"in_child() got {type(program).__name__} {program!r:.50}.", "It runs source text, or an ordinary function whose source can be read.",
                       "Define the program with def, or write it as a text.")
    name = program.__name__
    try:
        text = textwrap.dedent(inspect.getsource(program.__code__))
        tree = ast.parse(text).body
    except (OSError, TypeError, SyntaxError):
        tree = []
    if len(tree) != 1 or not isinstance(tree[0], ast.FunctionDef) or tree[0].name != name:
        raise LabError(f"The source of {name} can't be read.", "The child gets the text of the function, and this one has none that stands alone.",
                       "Define it with def in a cell or a .py file, or pass the program as a text.")
    if tree[0].decorator_list:
        raise LabError(f"{name}() has a decorator.", "The child gets the text of the function alone, and the decorator is not in it.", "Leave the decorator out.")
    missing = sorted(_missing(text))
    if missing:
        raise LabError(f"{name}() uses {', '.join(missing)} from outside.", "The child is a new Python and gets the text of the function alone.",
                       "Put imports and values inside it, or hand numbers and strings over: in_child(program, limit, *args).")
    try:
        inspect.signature(program).bind(*args)
    except TypeError as no:
        raise LabError(f"{name}() can't be called with these {len(args)} values: {no}.", "in_child(program, limit, *args) calls program(*args).",
                       "Pass as many values as the function takes.") from None
    return f"{text}\n\n{name}({', '.join(_written(value) for value in args)})\n"


def _missing(text):
    """The names that `text` reads and neither binds nor finds among Python's own."""
    reads, binds = set(), set(dir(builtins)) | {"__name__", "__file__", "__builtins__"}

    def look(table):
        top = table.get_type() == "module"
        for one in table.get_symbols():
            if top or one.is_global():
                if one.is_assigned():                    # by def and import too
                    binds.add(one.get_name())
                if one.is_referenced():
                    reads.add(one.get_name())
        for inner in table.get_children():
            look(inner)
    look(symtable.symtable(text, "program.py", "exec"))
    return reads - binds


def _written(value):
    """A value as Python text that gives the value back."""
    try:
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    raise LabError(f"in_child() can't hand over {type(value).__name__} {value!r:.50}.", "What crosses to the child crosses as text.",
                   "Pass numbers, strings, None, or tuples, lists and dicts of these: int(x) or float(x) where x is NumPy's.")
