"""The detective cases: right and wrong answers, hints, progress."""
import re

import pytest

from labkit import cases, cudart, explain
from labkit.cases import answers, judge
from labkit.cases.reports import KINDS, REPORTS
from labkit.errors import CATALOGUE
from tests.labkit import case_fixes_loud
from tests.labkit.test_cases import FOUND, NUMBERS, SHOWN


@pytest.fixture(autouse=True)
def nothing_solved():
    judge._solved.clear(), judge._hinted.clear()
    yield
    judge._solved.clear(), judge._hinted.clear()


@pytest.mark.parametrize("number", NUMBERS)
def test_right_answers_are_confirmed_one_by_one(number, capsys):
    report, fixed = REPORTS[number], FOUND[f"fix_{number}"]
    lines = answers.source_lines(cases.original(number))
    member = cudart.cudaError_t(report.code)
    for kind in (report.kind, report.kind.lower()):
        assert answers.kind(report, kind)[0] is True
    for code in (report.code, member, member.name, member.name.removeprefix("cudaError"), str(report.code), (member,), f"{report.code} {member.name}"):
        assert answers.code(report, code)[0] is True, code
    guilty = answers.guilty(report, lines)
    assert 1 <= len(guilty) <= 3
    for n in guilty:
        for line in (n, str(n), lines[n - 1], lines[n - 1].strip(), lines[n - 1].replace(" ", "  ")):
            assert answers.line(report, lines, line)[0] is True, line
    verdict = cases.check(number, fixed, kind=report.kind, code=report.code, line=min(guilty))
    assert verdict.solved and f"Case {number} is solved." in capsys.readouterr().out
    assert cases.check(number, cases.original(number), kind=report.kind, code=report.code, line=min(guilty)).solved is False


@pytest.mark.parametrize("number", NUMBERS)
def test_wrong_answers_are_refused_with_a_question_and_without_the_answer(number):
    report, lines = REPORTS[number], answers.source_lines(cases.original(number))
    guilty = answers.guilty(report, lines)
    said = [answers.kind(report, word) for word in KINDS if word != report.kind]
    said += [answers.code(report, code) for code in CATALOGUE if code != report.code] + [answers.code(report, 0)] * bool(report.code)
    said += [answers.line(report, lines, n) for n in range(1, len(lines) + 1) if n not in guilty]
    assert len(said) > 40
    for right, words in said:
        assert right is False and "?" in words and report.kind not in words.replace("case", "").split(), words
        assert f"{report.code} " not in words or not report.code or report.code < 100


@pytest.mark.parametrize("answer", ["", "no such text", 0, 99, -1, 2.5, True, "cudart.", ["line"]])
def test_a_line_that_says_nothing_is_refused_and_says_why(answer):
    right, words = answers.line(REPORTS["01"], answers.source_lines(cases.original("01")), answer)
    assert right is False and words.startswith("line: ")


@pytest.mark.parametrize("answer", ["nonsense", 12345, object(), 2.5])
def test_a_code_that_is_none_is_refused(answer):
    assert answers.code(REPORTS["01"], answer) [0] is False


def test_none_of_the_class_words_is_refused():
    assert answers.kind(REPORTS["01"], "BROKEN")[0] is False


# ---- hints and progress ----

@pytest.mark.parametrize("number", NUMBERS)
def test_three_hints_ask_and_hold_no_code(number, capsys):
    hints = REPORTS[number].hints
    assert len(set(hints)) == 3 and all(hint.endswith("?") for hint in hints)
    fix = "\n".join(answers.source_lines(FOUND[f"fix_{number}"])[1:])
    calls = set(re.findall(r"(?:cudart|kernels)\.\w+|\w+\(\w", fix))
    for hint in hints:
        assert not any(call in hint for call in calls) and " = " not in hint and REPORTS[number].kind not in hint.split()
    for k in (1, 2, 3, 3):
        cases.hint(number)
        assert capsys.readouterr().out.startswith(f"Hint {k} of 3: ")


def test_progress_counts_what_is_solved_and_kinds_lists_the_words(capsys):
    cases.progress()
    assert capsys.readouterr().out.endswith("0 of 16 solved\n")
    report = REPORTS["01"]
    cases.check("01", case_fixes_loud.fix_01, kind=report.kind, code=report.code, line="cudaStreamQuery")
    cases.check("01", cases.original("01"))                    # a look at the broken one takes nothing away
    cases.check("02", cases.original("02"), kind="SYNC")
    capsys.readouterr()
    cases.progress()
    printed = capsys.readouterr().out
    assert "case 01: class right, code right, line right, program works" in printed
    assert "case 02: class not yet, code open, line open, program does not work yet" in printed and printed.endswith("1 of 16 solved\n")
    cases.kinds()
    assert len(capsys.readouterr().out.splitlines()) == len(KINDS)


def test_every_code_of_a_case_is_explained():
    assert all(explain(code).lessons for code in {report.code for report in REPORTS.values()} | set(SHOWN.values()) if code)
