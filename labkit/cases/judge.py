"""check() and what goes with it: run a program, judge the answers, say what is still to do."""
import labkit
from labkit.cases import answers, programs_loud, programs_silent, trials_loud, trials_silent
from labkit.cases.bench import Bench, Trouble
from labkit.cases.reports import KINDS, REPORTS
from labkit.errors import LabError

_solved, _hinted = {}, {}           # number: what was right so far; hints given


class Verdict:
    """What check() found. .kind, .code, .line: right (True), wrong (False) or not answered (None). .works: does the program?

    .trouble: what the program does wrong, as text, or "". .solved: all four.
    """

    def __init__(self, number, kind, code, line, trouble):
        self.number, self.kind, self.code, self.line = number, kind, code, line
        self.works, self.trouble = trouble is None, "" if trouble is None else trouble.text
        self.shown = None if trouble is None else trouble.code      # the code that the learner saw, if any

    @property
    def solved(self):
        return bool(self.kind and self.code and self.line and self.works)

    def __repr__(self):
        words = {True: "right", False: "not yet", None: "open"}
        return (f"case {self.number}: class {words[self.kind]}, code {words[self.code]}, line {words[self.line]}, "
                f"program {'works' if self.works else 'does not work yet'}")


def numbers():
    """The numbers of all cases."""
    return list(REPORTS)


def _report(number):
    word = f"{number:02d}" if isinstance(number, int) and not isinstance(number, bool) else str(number).strip().removeprefix("case_").zfill(2)
    if word not in REPORTS:
        raise LabError(f"There is no case {number!r:.30}.", f"There are the cases {min(REPORTS)} to {max(REPORTS)}.", 'Write for example cases.check("01", case_01).')
    return word, REPORTS[word]


def original(number):
    """The program of a case as it was reported, whatever became of yours."""
    word, _ = _report(number)
    return getattr(programs_loud, f"case_{word}", None) or getattr(programs_silent, f"case_{word}")


def symptom(number):
    """What was reported, in words."""
    return _report(number)[1].symptom


def attempt(number, program, follow=None):
    """Run a program as check() does: None when it keeps its contract, else a Trouble. follow: labkit.watch, or None."""
    word, _ = _report(number)
    trial = getattr(trials_loud, f"case_{word}", None) or getattr(trials_silent, f"case_{word}")
    for seed, size in enumerate(trials_loud.SIZES.get(word, (4, 1000, 2000))):
        try:
            bench = Bench(size, seed, follow)
            with bench:
                trial(bench, program)
        except Trouble as trouble:
            return trouble
        except LabError as error:
            if not bench.ran:                           # nothing to do with the program
                raise LabError(f"check() could not prepare case {word}.", error.means, "If a capture is open somewhere, recover() ends it; then check again.", error.code) from None
            return Trouble(f"With {size} floats, after the program had run, the check could not go on:\n  {error.did}\n  {error.means}", error.code)
    return None


def check(number, program, kind=None, code=None, line=None):
    """Run a program, judge the answers, print both: a Verdict. Raises LabError for a case that is not there.

    number: "01". program: your function. kind: a class word. code: number or name, 0 for none. line: number
    (`def` is 1) or a piece of its text, in the program as it was reported.
    """
    word, report = _report(number)
    name = getattr(program, "__name__", "")
    if not callable(program):
        raise LabError(f"check() got {type(program).__name__} as the program of case {word}.", "It runs a function.", f'Pass the function itself: cases.check("{word}", case_{word}).')
    if name.startswith("case_") and name != f"case_{word}":
        raise LabError(f"check() got {name} for case {word}.", "Each case has its own program.", f"Pass case_{word}.")
    trouble = attempt(word, program)
    judged = [answers.kind(report, kind), answers.code(report, code), answers.line(report, answers.source_lines(original(word)), line)]
    verdict = Verdict(word, *[right for right, _ in judged], trouble)
    print(trouble.text if trouble else "program: it works, with every size that was tried.")
    open_ = [name for name, (right, _) in zip(("kind", "code", "line"), judged) if right is None]
    for right, words in judged:
        if right is not None:
            print(words)
    if open_:
        print(f"Still to name: {', '.join(open_)}." + (" Still to do: a program that works." if trouble else ""))
    elif trouble:
        print("Still to do: a program that works.")
    if verdict.solved:
        print(f"Case {word} is solved.")
    before = _solved.get(word)
    if before is None or not before.solved:
        _solved[word] = verdict
    return verdict


def watch(number, program):
    """Run a program as check() does, under labkit.watch, which prints at which line a capture broke, and what was left out of it.

    Returns the watch of the last run (its .frozen lists the numbers that launches keep), None where nothing ran.
    """
    seen = []

    def follow(stream):
        seen.append(labkit.watch(stream))
        return seen[-1]
    trouble = attempt(number, program, follow)
    print(trouble.text if trouble else "program: it works, with every size that was tried.")
    return seen[-1] if seen else None


def hint(number):
    """Print the next of three hints; the last one again when all were given. They ask, and show no code."""
    word, report = _report(number)
    given = min(_hinted.get(word, 0) + 1, len(report.hints))
    _hinted[word] = given
    print(f"Hint {given} of {len(report.hints)}: {report.hints[given - 1]}")


def kinds():
    """Print the class words, and what would be there to be seen."""
    for word, means in KINDS.items():
        print(f"{word:9} {means}")


def progress():
    """Print one line for each case that was looked at in this kernel: what you have found so far."""
    for word in sorted(_solved):
        print(_solved[word])
    print(f"{sum(verdict.solved for verdict in _solved.values())} of {len(REPORTS)} solved")
