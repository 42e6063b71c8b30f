"""Guess before you run: predict() a figure, predict_order() which is fastest.

    guess = predict("How long do 1000 launches take?", None)      # prints how to answer
    guess.against(m.e2e["stream"])                                # how far off it was, in words

    order = predict_order("Which is fastest?", None, of=["stream", "graph", "pad"])
    order.against(m)                                              # how many stand in their place
"""
import math
import numbers
from dataclasses import dataclass
from decimal import Decimal

from labkit.errors import LabError


def number(value):
    """Three digits that matter, and no more: 0.97, 18.7, 4,188, 0.000025. Never with an exponent."""
    text = f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{Decimal(text):f}" if "e-" in text else text


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


# ---- an order ----------------------------------------------------------------------------------

TIE = 0.05       # figures this near to one another have no order
_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True, repr=False)
class OrderPrediction:
    """An order guessed before the run, fastest first; `order` is None until there is one. It may name the first few only."""
    question: str
    order: tuple | None
    of: tuple

    def __repr__(self):
        return f"your order: {'none yet' if self.order is None else ', '.join(self.order)}"

    def against(self, found):
        """Print and return, in words, how the guess compares with a Measurement (end to end), or with a list of names, fastest first.

        Figures within 5 % of one another count as right in either order. Raises LabError where there is nothing to compare with.
        """
        time = self._times(found)
        real = sorted(time, key=time.get)
        if self.order is None:
            words = f"Fastest first: {', '.join(real)}. You put them in no order: write one in place of None next time, it is what makes it stick."
        else:
            mine = [name for name in self.order if name in time]
            hits = sum(right for _, right in self.places(found).values())
            pairs = [(a, b) for k, a in enumerate(mine) for b in mine[k + 1:]]
            right = sum(time[a] <= time[b] or _tie(time[a], time[b]) for a, b in pairs)
            first = f"you had it {[*_PLACES, *['later'] * len(mine)][mine.index(real[0])]}" if real[0] in mine else "you did not name it"
            words = (f"You put {hits} of {len(mine)} in their place, and {right} of {len(pairs)} pairs in the right order; "
                     f"the fastest is {real[0]}, {first}.")
        print(words)
        return words

    def places(self, found):
        """{name: (its place in the guess from 1, whether that is right)} for the names that were put in order."""
        time = self._times(found)
        mine = [name for name in self.order or () if name in time]
        return {name: (k, _tie(time[name], time[at])) for k, (name, at) in enumerate(zip(mine, sorted(time, key=time.get)), 1)}

    def _times(self, found):
        """{name: something to sort by} for the names asked about."""
        if getattr(found, "missing", ""):
            raise LabError(f"There is no order to compare with: {found.experiment!r} has no figures.", found.missing,
                           "Run it on a GPU, or undo the change.")
        if hasattr(found, "e2e"):
            time = {name: stat.median for name, stat in found.e2e.items() if name in self.of}
        elif isinstance(found, (list, tuple)):
            time = {name: 2.0 ** k for k, name in enumerate(found) if name in self.of}
        else:
            time = {}
        if len(time) < 2:
            raise LabError(f"against() got {found!r:.60}.", f"An order is compared with figures for {_listed(self.of)}.",
                           "Pass the measurement, m, or a list of these names, fastest first.")
        return time


def _tie(a, b):
    return abs(a - b) <= TIE * max(a, b)


def _listed(names):
    return ", ".join(repr(name) for name in names)


def predict_order(question, order=None, of=()):
    """Remember an order before the run, fastest first: OrderPrediction. Never waits for input.

    of: the names to choose from, or a dict with them. order: all of these, or at least the first three. With None it
    prints the question and the names to copy. Raises LabError for a name that is not among them, one given twice, or too few.
    """
    of = tuple(of) if isinstance(of, (list, tuple, dict)) else ()
    if len(of) < 2 or not all(isinstance(name, str) for name in of) or len(set(of)) < len(of):
        raise LabError(f"predict_order() got of={of!r:.60}.", "It needs the names to put in order, two or more, each once.",
                       'Write for example of=["stream", "graph", "pad"], or of=variants.')
    if order is None:
        print(f"{question}\nYour order: copy this list in place of None, put the fastest first, and run the cell again.\n[{_listed(of)}]")
        return OrderPrediction(question, None, of)
    least, given = min(3, len(of)), tuple(order) if isinstance(order, (list, tuple)) else ()
    wrong = [name for name in given if name not in of]
    twice = [name for name in given if given.count(name) > 1]
    if wrong or twice or len(given) < least:
        did = (f"predict_order() got {wrong[0]!r:.40}." if wrong else f"predict_order() got {twice[0]!r} twice." if twice
               else f"predict_order() got {order!r:.40}.")
        raise LabError(did, f"An order is a list of these names, each once: {_listed(of)}.",
                       f"Put the fastest first; name all {len(of)}" + (f", or at least the first {least}." if least < len(of) else "."))
    print(f"{question}\nYour order: {', '.join(given)}. Run on to see.")
    return OrderPrediction(question, given, of)
