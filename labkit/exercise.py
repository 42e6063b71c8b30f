"""Exercises that check themselves: check(), hint(), and grade() for a class.

    check(diamond)        # runs your function with several sizes and numbers, looks at its graph, draws the difference
    check()               # all parts that are defined here
    hint(diamond)         # the next of three hints
    progress()             # the course, and what of it is done (solved.py)

A part is known by the name of its function. Anything that can be called is an answer, a partial or an object too; a class is
none. labkit.labs has how each is judged.
"""
import contextlib
import sys

from labkit import labs, raised, solved as kept
from labkit.errors import LabError
from labkit.verdict import Verdicts, answers, is_untouched, judged

_latest = []           # the Part that was asked about last in this process


def _given(asked, names, who):
    """[(Part, function or None)] for what check() or hint() was given."""
    if asked is None or isinstance(asked, (str, int)) and not isinstance(asked, bool):
        if isinstance(asked, str) and asked in labs.parts():
            return [(labs.parts()[asked], names.get(asked))]
        wanted = labs.parts().values() if asked is None else labs.find(asked).parts.values()
        found = [(part, names.get(part.name)) for part in wanted]
        here = [(part, made) for part, made in found if answers(made)]
        return here if asked is None else found
    under = [part for name, part in labs.parts().items() if names.get(name) is asked]      # a lambda or a partial has no name of its own
    if under:
        return [(part, asked) for part in under]
    if not callable(asked) or not hasattr(asked, "__name__"):
        raise LabError(f"{who}() got {type(asked).__name__}.", "It takes the function of a part, without brackets.",
                       f"Write {who}(the_function), {who}(\"05\") for a whole exercise, or {who}() for all that is defined here.")
    return [(labs.part_named(asked.__name__), asked)]


def check(answer=None):
    """Judge a part: run it with several sizes and numbers, look at its graph, print what was expected and found, draw the difference.

    answer: your function; "05" for every part of an exercise; nothing for every part that the calling cell can see.
    Returns a Verdict (true where right), or a list of them. A wrong answer raises nothing. Raises LabError where there is nothing to check.
    """
    names = sys._getframe(1).f_globals
    found = _given(answer, names, "check")
    if not found:
        raise LabError("check() found no function of an exercise here.", "It looks for the functions that the notebook asks for.", "Run the cells that define them, then check() again.")
    verdicts = [check_part(part, function) for part, function in found]
    return verdicts[0] if len(verdicts) == 1 else Verdicts(verdicts)


def check_part(part, function, terminal=False, aside=contextlib.nullcontext(), missing="Run the cell that defines it."):
    """Judge what stands under a part's name, print and keep the verdict, and return it. None: no function of that name is there. aside: what surrounds the judging alone. missing: said of no function."""
    _latest[:] = [part]
    with aside:
        verdict = judged(part, function, terminal=terminal, missing=missing)
    untouched = is_untouched(function)
    print(verdict.text(untouched, terminal))
    kept.note(part, verdict.solved)
    if verdict._drawn and not untouched and _in_notebook():
        try:
            verdict.picture.show()
        except Exception as error:
            print(f"(The picture could not be drawn: {raised.words(error)}.)")
    return verdict


def hint(asked=None):
    """Print the next of three hints for a part; all of them again when all were given. They ask, and show no code.

    asked: your function, its name, an exercise's number; nothing: the part that was checked last, else the first unsolved one here.
    """
    names = sys._getframe(1).f_globals
    part = _latest[0] if asked is None and _latest else _open_part(_given(asked, names, "hint"))
    _latest[:] = [part]
    print(next_hint(part))


def _open_part(found):
    if not found:
        raise LabError("hint() does not know of which part.", "Nothing was checked yet, and no function of an exercise is defined here.", "Write hint(the_function) or hint(\"05\").")
    return next((part for part, _ in found if not kept.of(part)["solved"]), found[0][0])


def next_hint(part):
    """The text of the next hint, and note that it was given."""
    given = kept.note_hint(part)
    if given > len(part.hints):
        return "\n".join([f"{part.name}: all {len(part.hints)} hints again."] + [f"  {k}. {text}" for k, text in enumerate(part.hints, 1)])
    return f"{part.name}, hint {given} of {len(part.hints)}: {part.hints[given - 1]}"


def grade(function, seed=None):
    """check() for a grader: prints the verdict, keeps no progress, and raises LabError where the part is not right.

    seed: an int; the part is then tried with sizes and numbers that come from it. A function that stands under the names of
    several parts has to be right for each of them.
    """
    if not callable(function):                   # neither a name nor None: what stands under one part's name is not to be judged as another
        raise LabError(f"grade() got {type(function).__name__}.", "It takes the function of a part, without brackets.", "Run the cell that defines the function, then this one again.")
    for part, answer in _given(function, sys._getframe(1).f_globals, "grade"):
        verdict = judged(part, answer, seed)
        print(verdict.text())
        if not verdict.solved:
            raise LabError(f"{part.name} is not right yet.", verdict.trouble, "See above what was expected.")


def _in_notebook():
    """Whether pictures can be shown here."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return bool(shell) and hasattr(shell, "kernel")
