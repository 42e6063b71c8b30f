"""Is it the right class, code, line? Each function gives (right: True, False or None, what to say)."""
import inspect
import re

from labkit.backend import cudart
from labkit.cases.reports import KINDS
from labkit.errors import CATALOGUE, LabError

_NOTHING = ("", "none", "no", "no error", "success", "cudasuccess", "0")


def source_lines(program):
    """The lines of a program, the first is `def`."""
    return inspect.getsource(program).rstrip("\n").split("\n")


def kind(report, answer):
    """answer: a class word such as "SYNC", or None."""
    if answer is None:
        return None, "kind: which class is it? cases.kinds() lists the words."
    word = str(answer).strip().upper().rstrip("*")
    if word not in KINDS:
        return False, f"kind: {str(answer)!r} is none of the words; cases.kinds() lists them."
    if word != report.kind:
        return False, f"kind: {word} would be {KINDS[word]}. Would the program work without that?"
    return True, f"kind: {word}, yes."


def _code(answer):
    """A code as int from a number, an enum member, what a call returned, a LabError, or a name. None: there is no such code."""
    if isinstance(answer, tuple) and answer:
        answer = answer[0]
    if isinstance(answer, LabError):
        answer = answer.code or 0
    if isinstance(answer, str):
        word = answer.strip().lower()
        if word in _NOTHING:
            return 0
        number = re.fullmatch(r"(\d{1,4})(\W+\w+\W*)?", word)
        if number:
            return int(number[1])
        return next((int(one) for one in cudart.cudaError_t if one.name.lower() in (word, "cudaerror" + word)), None)
    try:
        return int(answer)
    except (TypeError, ValueError, OverflowError):
        return None


def code(report, answer):
    """answer: a number, a name, an enum member; 0 or "none" for no error."""
    if answer is None:
        return None, "code: which was the first that is not cudaSuccess, whoever got it? 0 if there was none."
    found = _code(answer)
    if found is None or found not in {int(one) for one in cudart.cudaError_t}:
        return False, f"code: {answer!r:.60} is no code of CUDA; write its number or its name."
    if found == report.code:
        return True, f"code: {found} {cudart.cudaError_t(found).name}, yes."
    if found == 0:
        return False, "code: some call did not succeed. Does the program look at every code that it gets?"
    name = cudart.cudaError_t(found).name
    if report.code == 0:
        return False, f"code: which call would have returned {found} {name}? Put every call in ok( ) and look."
    if found == 901:
        return False, "code: 901 says that the capture was broken before. What did the call get that broke it?"
    means = CATALOGUE.get(found, ("something else.",))[0]
    return False, f"code: {found} {name} means: {means} Did any call get that, before all others?"


def guilty(report, lines):
    """The numbers of the guilty lines, from 1."""
    return {number for number, text in enumerate(lines, 1) if any(piece in text for piece in report.lines)}


def line(report, lines, answer):
    """answer: the number of a line of the reported program (its `def` is 1), or a piece of its text."""
    if answer is None:
        return None, "line: which line does it? Its number (`def` is 1), or a piece of its text."
    if isinstance(answer, str) and answer.strip().isdecimal():
        answer = int(answer)
    if isinstance(answer, str):
        wanted = _plain(answer)
        found = {number for number, text in enumerate(lines, 1) if wanted and wanted in _plain(text)}
        found = found or {number for number, text in enumerate(lines, 1) if len(_plain(text)) > 12 and _plain(text) in wanted}
        if not found:
            return False, f"line: no line of the reported program has {answer.strip()[:60]!r} in it."
        if len(found) > 1 and not found <= guilty(report, lines):
            return False, f"line: {answer.strip()[:60]!r} is in the lines {', '.join(map(str, sorted(found)))}; write more of it, or a number."
    elif isinstance(answer, int) and not isinstance(answer, bool) and 1 <= answer <= len(lines):
        found = {answer}
    else:
        return False, f"line: a number from 1 (`def`) to {len(lines)}, or a piece of the line's text."
    number = min(found)
    if found <= guilty(report, lines):
        return True, f"line: {number}, yes."
    return False, f"line: {number} is {lines[number - 1].split('  #')[0].strip()[:70]!r}. Would changing it mend the program?"


def _plain(text):
    """Text without spaces and without a comment, so that a copied line is found however it was copied."""
    return re.sub(r"\s+", "", text.split("  #")[0])
