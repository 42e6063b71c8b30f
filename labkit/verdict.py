"""What check() finds of one part, whatever the answer is, gives back or raises."""
import types

from labkit import raised
from labkit.errors import LabError
from labkit.labs import judging, pictures


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


class Verdicts(list):
    """Those of several parts."""

    def _ipython_display_(self):
        """Nothing: check() has printed them."""


def answers(made):
    """Whether something can be an answer: it can be called, and is no class."""
    return callable(made) and not issubclass(type(made), type)


def judged(part, answer, seed=None, terminal=False, missing="Run the cell that defines it."):
    """A Verdict for what stands under the part's name."""
    if not answers(answer):
        got = "there is no function of that name" if answer is None else f"{part.name} is {'a class' if callable(answer) else f'of type {type(answer).__name__}'} now"
        trouble, notes = judging.Trouble(f"expected: a function {part.name}\n  found: {got}. {missing if answer is None else 'Run the cell that defines it.'}"), []
    else:
        trouble, notes = _tried(part, answer, seed, terminal)
    return Verdict(part, trouble, notes, [size for size, _ in part.tries(seed)])


def _tried(part, answer, seed, terminal):
    """(None or the Trouble, notes), whatever the answer gives back or raises. An interrupt ends the check in a notebook; in the terminal's process nobody but the answer interrupts."""
    try:
        return judging.judge(part, answer, seed)
    except LabError:
        raise                                    # the check could not be prepared
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not terminal:
            raise
        line = raised.line(error)
        where = f"  at  {line}\n  Raised by your function, or by what it gave back." if line else f" ({raised.place(error)})\n  What your function gave back is of a kind that the check can not look at."
        return judging.Trouble(f"The check could not go on with this answer: {raised.words(error)}{where}"), []


def is_untouched(function):
    """Whether a function is as it was handed out."""
    try:
        return isinstance(function, types.FunctionType) and judging.untouched(function)
    except Exception:                            # inspect follows __wrapped__, which can lead anywhere
        return False
