"""Guess before you run: predict().

    guess = predict("How long do 1000 launches take?", None)      # prints how to answer
    guess.against(m.e2e["stream"])                                # how far off it was, in words
"""
import math
import numbers
from dataclasses import dataclass

from labkit.errors import LabError


def number(value):
    """Three digits that matter, and no more: 0.97, 18.7, 4,188."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


@dataclass(frozen=True, repr=False)
class Prediction:
    """A guess made before the run; `guess` is None until there is one."""
    question: str
    guess: float | None
    unit: str

    def __repr__(self):
        return f"your guess: {'none yet' if self.guess is None else f'{number(self.guess)} {shown(self.unit)}'}"

    def _verdict(self, value):
        if self.guess == value:
            return "exactly right"
        if not self.guess or not value:
            return f"too {'much' if self.guess > value else 'little'}"
        far = max(self.guess / value, value / self.guess)
        off = f"{far:.2g}" if far < 10 else f"{far:,.0f}"
        return "close" if far < 1.25 else f"{off} times too {'much' if self.guess > value else 'little'}"

    def against(self, value):
        """Print and return, in words, how far the guess is from a figure (a Stat, or a number in the same unit)."""
        value = getattr(value, "median", value)
        if not isinstance(value, numbers.Real) or not value >= 0:
            raise LabError(f"against() got {value!r:.40}.", "A guess is compared with one figure from 0 up.",
                           'Pass for example m.e2e["stream"], or m.speedup("stream", "graph").')
        found = f"It is {number(value)} {shown(self.unit)}".strip()
        if self.guess is None:
            words = f"{found}. You made no guess: write one in place of None next time, it is what makes a figure stick."
        else:
            words = f"{found}; your guess was {number(self.guess)}: {self._verdict(float(value))}."
        print(words)
        return words


def shown(unit):
    """A unit as people write it."""
    return "µs" if unit == "us" else unit


def predict(question, guess=None, *rest, unit="us"):
    """Remember a guess before the run: Prediction. Never waits for input.

    With None it prints the question and how to answer. Raises LabError for what is no number from 0 up.
    """
    if rest:
        raise LabError(f"predict() got {1 + len(rest)} guesses.", "A guess is one number; a comma makes two of it.", "Write 10.20 or 1020, without a comma.")
    named = f", in {shown(unit)}" if unit else ""
    if guess is None:
        print(f"{question}\nYour guess{named}: write it in this cell in place of None and run the cell again.")
        return Prediction(question, None, unit)
    number_like = isinstance(guess, numbers.Real) and not isinstance(guess, bool)
    if not number_like or not math.isfinite(guess) or guess < 0:
        raise LabError(f"predict() got {guess!r:.40} as a guess.", f"A guess is one number from 0 up{named}.",
                       "Write for example 50, without quotes and without the unit.")
    print(f"{question}\nYour guess: {number(float(guess))}{' ' * bool(unit)}{shown(unit)}. Run on to see.")
    return Prediction(question, float(guess), unit)
