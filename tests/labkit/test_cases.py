"""The detective cases: each broken program fails as reported, each repair passes, each cheat is refused."""
import re
from collections import Counter

import pytest

from labkit import cases, cudart, recover
from labkit.cases import answers, bench, judge, parts, programs_loud, programs_silent, trials_loud, trials_silent
from labkit.cases.reports import KINDS, REPORTS
from labkit.errors import LabError
from tests.labkit import case_fixes_loud, case_fixes_silent
from tests.notebooks import inprocess

NUMBERS = list(REPORTS)
LESSONS = {"18_detective_loud": NUMBERS[:8], "19_detective_silent": NUMBERS[8:]}
# What a learner sees of each broken program, first: a code, or None where the value is wrong.
SHOWN = {"01": 901, "02": 901, "03": 1, "04": 904, "05": 1, "06": 1, "07": 901, "08": 900}
FOUND = {name: value for module in (case_fixes_loud, case_fixes_silent) for name, value in vars(module).items()}


def programs(*words):
    """[(number, name)] of the programs of these words in the files of fixes."""
    return [(name.split("_")[1], name) for name in sorted(FOUND) if re.fullmatch(rf"({'|'.join(words)})_\d\d\w*", name)]


FIXES, CHEATS = programs("fix", "other", "third"), programs("cheat")


@pytest.fixture(autouse=True)
def nothing_solved():
    judge._solved.clear(), judge._hinted.clear()
    yield
    judge._solved.clear(), judge._hinted.clear()


class Spy:
    """A cudart that notes each code that is not success, whoever calls."""

    def __init__(self):
        self.codes = []

    def __getattr__(self, name):
        found = getattr(cudart, name)
        return self.watched(found) if name.startswith("cuda") and callable(found) and not isinstance(found, type) else found

    def watched(self, call):
        def spied(*args, **options):
            result = call(*args, **options)
            if isinstance(result, tuple) and result and hasattr(result[0], "name") and int(result[0]) not in (0, 600):
                self.codes.append(int(result[0]))
            return result
        return spied


@pytest.fixture
def spy(monkeypatch):
    made = Spy()
    for module in (programs_loud, programs_silent, trials_loud, trials_silent, parts, bench):
        monkeypatch.setattr(module, "cudart", made)
        if hasattr(module, "launch"):
            monkeypatch.setattr(module, "launch", made.watched(module.launch))
    return made


# ---- what there is ----

def test_there_are_sixteen_cases_in_two_lessons_and_every_class_once():
    assert len(NUMBERS) >= 16 and [len(part) for part in LESSONS.values()] == [8, 8]
    classes = Counter(report.kind for report in REPORTS.values())
    assert set(classes) <= set(KINDS) and len(classes) >= 10 and max(classes.values()) <= 3
    wanted = "SYNC LEGACY THREAD UPDATE DEVPTR HOSTMEM MEMNODE ERRCHK JOIN FROZEN RNG ALIAS HOSTCB EVENT COMPOSE".split()
    assert set(wanted) <= set(classes) and set(classes) & {"WARM", "TEARDOWN"}


def test_each_case_has_two_repairs_and_a_cheat():
    assert len(FIXES) >= 33 and len(CHEATS) >= 17
    assert {number for number, _ in CHEATS} == set(NUMBERS)
    assert all(sum(number == one for one, _ in FIXES) >= 2 for number in NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_reported_program_is_short_and_its_lesson_shows_it(number):
    lines = answers.source_lines(cases.original(number))
    assert 6 <= len(lines) <= 14
    lesson, = (name for name, part in LESSONS.items() if number in part)
    parts = re.split(r"^# %%(.*)\n", (inprocess.ROOT / f"authoring/lessons/{lesson}.py").read_text(encoding="utf-8"), flags=re.M)[1:]
    shown = [body.strip().split("\n") for _, body in zip(parts[::2], parts[1::2]) if body.startswith(f"def case_{number}(")]
    assert shown == [lines]
    told = " ".join(" ".join(body.replace("\n#", "\n").split()) for head, body in zip(parts[::2], parts[1::2]) if "markdown" in head)
    assert cases.symptom(number) in told


@pytest.mark.parametrize("number", NUMBERS)
def test_the_reported_program_fails_as_reported(number, spy, capsys):
    verdict = cases.check(number, cases.original(number))
    assert not verdict.works and (verdict.kind, verdict.code, verdict.line) == (None, None, None)
    assert (None if verdict.shown is None else int(verdict.shown)) == SHOWN.get(number)
    assert next(iter(spy.codes), 0) == REPORTS[number].code, spy.codes
    printed = capsys.readouterr().out
    assert "Still to name: kind, code, line. Still to do: a program that works." in printed
    assert "floats" in printed and "Error:" not in printed
    assert str(SHOWN.get(number, "expected")) in printed


@pytest.mark.parametrize("number", NUMBERS)
def test_the_reported_program_fails_the_same_way_again(number, capsys):
    cases.check(number, cases.original(number))
    first = capsys.readouterr().out
    cases.check(number, cases.original(number))
    assert capsys.readouterr().out == first


@pytest.mark.parametrize("number", NUMBERS)
def test_after_the_reported_program_streams_and_modes_are_as_before(number, capsys):
    cases.attempt(number, cases.original(number))
    mode = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
    assert cudart.cudaThreadExchangeStreamCaptureMode(mode)[1] == mode
    assert cases.attempt("01", case_fixes_loud.fix_01) is None
    recover()


# ---- repairs and cheats ----

@pytest.mark.parametrize("number, name", FIXES, ids=[name for _, name in FIXES])
def test_a_repaired_program_works(number, name):
    trouble = cases.attempt(number, FOUND[name])
    assert trouble is None, trouble.text


@pytest.mark.parametrize("number, name", CHEATS, ids=[name for _, name in CHEATS])
def test_a_cheat_is_refused_with_expected_and_found(number, name):
    trouble = cases.attempt(number, FOUND[name])
    assert trouble is not None
    assert "expected" in trouble.text.lower() and "found" in trouble.text, trouble.text


def test_what_else_may_go_wrong_in_a_program_is_said():
    def unfinished(stream, y, x):
        return undefined_name       # noqa: F821

    def left_open(stream, y, x):
        cudart.cudaStreamBeginCapture(stream, programs_loud.GLOBAL)

    assert "NameError: name 'undefined_name' is not defined  at  return undefined_name" in cases.attempt("01", unfinished).text
    assert "left a capture open" in cases.attempt("01", left_open).text
    assert "expected back: graph; found: None" in cases.attempt("01", case_fixes_loud.cheat_01_no_graph).text
    assert "TypeError" in cases.attempt("01", lambda: None).text
    assert cases.attempt("01", case_fixes_loud.fix_01) is None


def test_check_wants_a_case_that_is_there_and_its_own_program():
    for number, program in (("17", cases.original("01")), ("01", None), ("01", cases.original("02")), (True, cases.original("01"))):
        with pytest.raises(LabError):
            cases.check(number, program)


def test_watch_names_the_line_of_a_learners_program(capsys, tmp_path):
    text = "\n".join(answers.source_lines(cases.original("01")))
    file = tmp_path / "mine.py"                                # the kit's own lines are none of the learner's
    file.write_text(text, encoding="utf-8")
    names = dict(vars(programs_loud))
    exec(compile(text, str(file), "exec"), names)
    capsys.readouterr()
    cases.watch("01", names["case_01"])
    printed = capsys.readouterr().out
    assert "mine.py:5" in printed and "cudaStreamQuery" in printed and "900" in printed and printed.count("watch:") == 1
    cases.watch("01", case_fixes_loud.fix_01)
    assert capsys.readouterr().out.count("nothing to report") == 3


def test_an_open_capture_elsewhere_is_no_fault_of_the_program():
    stream = cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)[1]
    cudart.cudaStreamBeginCapture(stream, programs_loud.GLOBAL)
    with pytest.raises(LabError, match="recover"):
        cases.check("01", case_fixes_loud.fix_01)
    recover(stream)
    assert cases.attempt("01", case_fixes_loud.fix_01) is None


def test_a_program_that_frees_what_it_was_given_is_told_so():
    def tidy(stream, y, x):
        graph = case_fixes_loud.fix_01(stream, y, x)
        y.free()
        return graph
    trouble = cases.attempt("01", tidy)
    assert "A freed buffer" in trouble.text and cases.attempt("01", case_fixes_loud.fix_01) is None
