"""Exercises that check themselves: check(), hint(), and grade() for a class.

    check(diamond)        # runs your function with several sizes and numbers, looks at its graph, draws the difference
    check()               # all parts that are defined here
    hint(diamond)         # the next of three hints
    progress()             # the course, and what of it is done (solved.py)

A part is known by the name of its function. labkit.labs has how each is judged.
"""
import sys
import types

from labkit import labs, solved as kept
from labkit.errors import LabError
from labkit.labs import judging, pictures

_latest = []           # the Part that was asked about last in this process


class Verdict:
    """What check() found of one part: .part, .solved, .trouble (text, "" where right), .notes, .picture (a Figure or None)."""

    def __init__(self, part, trouble, notes, tried):
        self.part, self.solved, self.notes, self.tried = part, trouble is None, notes, tried
        self.trouble, self._drawn = ("", None) if trouble is None else (trouble.text, getattr(trouble, "drawn", None))

    @property
    def picture(self):
        return pictures.picture(self._drawn)

    def __bool__(self):
        return self.solved

    def __repr__(self):
        return f"{self.part.lab.number} {self.part.name}: {'right' if self.solved else 'not yet'}"

    def text(self, untouched=False, terminal=False):
        """The lines that check() prints. terminal: how to ask for a hint there."""
        if self.solved:
            return "\n".join([f"{self!r}. Tried with sizes {', '.join(map(str, self.tried))}.", *("  " + note for note in self.notes)])
        start = [f"{self!r}. The function is as it was handed out."] if untouched else [f"{self!r}."]
        return "\n".join([*start, f"It should give: {self.part.wanted}", self.trouble, f"A hint: labkit hint {self.part.lab.number} {self.part.name}" if terminal else f"A hint: hint({self.part.name})"])

    def _ipython_display_(self):
        """Nothing: check() has printed it."""


def _given(asked, names, who):
    """[(Part, function or None)] for what check() or hint() was given."""
    if asked is None or isinstance(asked, (str, int)) and not isinstance(asked, bool):
        if isinstance(asked, str) and asked in labs.parts():
            return [(labs.parts()[asked], names.get(asked))]
        wanted = labs.parts().values() if asked is None else labs.find(asked).parts.values()
        found = [(part, names.get(part.name)) for part in wanted]
        here = [(part, made) for part, made in found if isinstance(made, types.FunctionType)]
        return here if asked is None else found
    if not callable(asked) or not hasattr(asked, "__name__"):
        raise LabError(f"{who}() got {type(asked).__name__}.", "It takes the function of a part, without brackets.",
                       f"Write {who}(the_function), {who}(\"05\") for a whole exercise, or {who}() for all that is defined here.")
    return [(labs.part_named(asked.__name__), asked)]


def _judged(part, answer, seed=None):
    """A Verdict for what stands under the part's name."""
    if not isinstance(answer, types.FunctionType):
        got = "there is no function of that name" if answer is None else f"{part.name} is of type {type(answer).__name__} now"
        trouble, notes = judging.Trouble(f"expected: a function {part.name}\n  found: {got}. Run the cell that defines it."), []
    else:
        trouble, notes = judging.judge(part, answer, seed)
    return Verdict(part, trouble, notes, [size for size, _ in part.tries(seed)])


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


class Verdicts(list):
    """Those of several parts."""

    def _ipython_display_(self):
        """Nothing: check() has printed them."""


def check_part(part, function, terminal=False):
    """Judge what stands under a part's name, print and keep the verdict, and return it. None: no function of that name is there."""
    verdict = _judged(part, function)
    _latest[:] = [part]
    untouched = isinstance(function, types.FunctionType) and judging.untouched(function)
    print(verdict.text(untouched, terminal))
    if verdict._drawn and not untouched and _in_notebook():
        verdict.picture.show()
    kept.note(part, verdict.solved)
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

    seed: an int; the part is then tried with sizes and numbers that come from it.
    """
    (part, answer), = _given(function, {}, "grade")
    verdict = _judged(part, answer, seed)
    print(verdict.text())
    if not verdict.solved:
        raise LabError(f"{part.name} is not right yet.", verdict.trouble, "See above what was expected.")


def _in_notebook():
    """Whether pictures can be shown here."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return bool(shell) and hasattr(shell, "kernel")
