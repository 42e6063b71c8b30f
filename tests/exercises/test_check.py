"""check(), hint() and grade() as a learner meets them, with right, wrong and odd answers."""
import asyncio
import functools
import sys
import types

import numpy as np
import pytest

import labkit
from labkit import cudart, exercise, ok, recover, solved
from labkit.errors import LabError
from labkit.labs import judging, pictures
from tests.exercises import sources

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


@pytest.fixture
def diamond():
    return sources.namespace("05", solved=True)["diamond"]


@pytest.fixture(autouse=True)
def nothing_asked():
    exercise._latest.clear()


def named(name, body):
    """body as a function of a part's name."""
    body.__name__ = name
    return body


def test_check_says_right_and_with_what_it_was_tried(diamond, capsys):
    assert exercise.check(diamond)
    assert capsys.readouterr().out.startswith("05 diamond: right. Tried with sizes 4, 1000, 2048.")


def test_check_without_anything_finds_the_parts_of_the_cell(capsys):
    names = sources.namespace("05", solved=True)
    exec("from labkit import check\nfound = check()", names)
    assert [repr(one) for one in names["found"]] == ["05 diamond: right", "05 long_branch: right"]


def test_check_takes_the_number_of_an_exercise(capsys):
    names = sources.namespace("05", solved=False)
    exec("from labkit import check\nfound = check('05')", names)
    assert [bool(one) for one in names["found"]] == [False, False]


def test_check_by_number_names_a_function_that_is_not_there(capsys):
    names = {}
    exec("from labkit import check\nfound = check(5)", names)
    assert not any(names["found"])
    assert "there is no function of that name. Run the cell that defines it." in capsys.readouterr().out


@pytest.mark.parametrize("given, says", [
    (3.5, "float"), ([], "list"), (True, "bool"), ("99", "There is no exercise"), ("nonsense", "There is no exercise"), (lambda: 0, "<lambda>"), (len, "'len'"),
])
def test_check_of_something_else_says_what_to_write(given, says):
    with pytest.raises(LabError, match=says):
        exercise.check(given)


def test_check_where_nothing_is_defined_says_so():
    names = {}
    with pytest.raises(LabError, match="Run the cells that define them"):
        exec("from labkit import check\ncheck()", names)


def test_a_part_that_is_no_function_any_more_is_told(capsys):
    names = {"diamond": 5}
    exec("from labkit import check\ncheck('05')", names)
    assert "diamond is of type int now" in capsys.readouterr().out


ODD = {
    "too few arguments": lambda stream: None,
    "raises": lambda *given: 1 / 0,
    "ends Python": lambda *given: sys.exit(3),
    "quits": lambda *given: quit(),
    "a string": lambda *given: "right",
    "a number": lambda *given: 7,
    "a null graph": lambda *given: cudart.cudaGraph_t(),
    "a stream": lambda *given: given[0],
    "itself": lambda *given: ODD,
    "a generator": lambda *given: (yield),
    "leaves a capture open": lambda stream, *given: ok(cudart.cudaStreamBeginCapture(stream, GLOBAL)),
    "an empty graph": lambda *given: ok(cudart.cudaGraphCreate(0)),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_answer_gets_words_and_the_next_check_works(what, diamond, capsys):
    verdict = exercise.check(named("diamond", ODD[what]))
    said = capsys.readouterr().out
    assert not verdict and "05 diamond: not yet" in said and "hint(diamond)" in said
    assert exercise.check(diamond)


@pytest.mark.parametrize("body, says", [
    (lambda stream, *given: ok(cudart.cudaGraphInstantiate(cudart.cudaGraphCreate(0), 0)), "A call of cudart returns a tuple, (code, value); ok(...) hands back the value."),
    (lambda stream, *given: ok(cudart.cudaStreamBeginCapture(GLOBAL, stream)), "Are the arguments in the order of the docstring?"),
    (lambda stream, *given: ok(cudart.cudaStreamBeginCapture(stream, GLOBAL)) or ok(cudart.cudaStreamSynchronize(stream)), "900 cudaErrorStreamCaptureUnsupported"),
    (lambda stream, *given: ok(cudart.cudaStreamBeginCapture(stream, GLOBAL)) or ok(cudart.cudaStreamSynchronize(stream)), "while a stream is capturing"),
    (lambda stream, *given: ok(cudart.cudaStreamBeginCapture(stream, GLOBAL)) or ok(cudart.cudaStreamSynchronize(stream)), "More: labkit explain 900"),
])
def test_what_a_common_error_means_is_said_below_it(body, says, capsys):
    assert not exercise.check(named("diamond", body))
    assert says in capsys.readouterr().out


def test_what_nobody_asked_for_is_drawn_as_what_is_missing():
    wrong = sources.wrong("06").tree__a_chain
    trouble, _ = judging.judge(sources.PARTS["tree"], wrong)
    assert "1 edge not asked for; dashed orange: missing / not asked for" in pictures.picture(trouble.drawn).alt


def test_printing_the_expected_verdict_is_no_answer(capsys):
    def prints(*given):
        print("05 diamond: right. Tried with sizes 4, 1000, 2048.")
    assert not exercise.check(named("diamond", prints))


def test_an_interrupt_ends_the_check_and_leaves_nothing_open(diamond):
    kept = []

    def stops(stream, *given):
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        kept.append(stream)
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        exercise.check(named("diamond", stops))
    recover()
    assert exercise.check(diamond)


def test_a_partial_under_no_name_of_a_part_is_told_in_words(diamond, capsys):
    wrapped = functools.partial(diamond)
    with pytest.raises(LabError, match="function of a part"):
        exercise.check(wrapped)


class Called:
    """An object that can be called."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *given):
        return self.function(*given)


def decorated(function):
    def inner(*given):
        return function(*given)
    return inner


WRAPPED = {"partial": functools.partial, "object": Called, "bound method": lambda f: Called(f).__call__, "lambda": lambda f: lambda *given: f(*given), "decorated": decorated}


@pytest.mark.parametrize("how", WRAPPED)
def test_whatever_can_be_called_is_an_answer_for_check_and_grade(how, diamond, capsys):
    names = sources.namespace("05", solved=True)
    names["diamond"] = WRAPPED[how](diamond)
    exec("from labkit import check\nfrom labkit.exercise import grade\nfound = [check(diamond), check('diamond'), *check(), *check('05')]\ngrade(diamond)\ngrade(diamond, seed=3)", names)
    assert [repr(one) for one in names["found"]] == ["05 diamond: right"] * 2 + ["05 diamond: right", "05 long_branch: right"] * 2


def test_a_class_is_no_answer_and_is_told(capsys):
    from itertools import chain
    names = {"chain": chain}
    exec("from labkit import check\nfound = check(chain)", names)
    assert not names["found"] and "chain is a class now" in capsys.readouterr().out
    with pytest.raises(LabError, match="no function of an exercise"):
        exec("check()", names)


def test_one_function_under_two_names_is_judged_as_both(diamond, capsys):
    names = {"diamond": diamond, "long_branch": diamond}
    exec("from labkit import check\nfound = check(long_branch)", names)
    assert [repr(one) for one in names["found"]] == ["05 diamond: right", "05 long_branch: not yet"]
    with pytest.raises(LabError, match="long_branch is not right"):
        exec("from labkit.exercise import grade\ngrade(long_branch)", names)


@pytest.mark.parametrize("given", [None, "diamond", 5])
def test_grade_of_no_function_passes_nothing(given, diamond):
    names = {"diamond": diamond, "long_branch": given}
    with pytest.raises(LabError, match="grade\\(\\) got"):
        exec("from labkit.exercise import grade\ngrade(long_branch)", names)


class Hostile(tuple):
    """What a function gives back, and what raises as soon as it is looked at."""

    def fails(self, *given):
        raise asyncio.CancelledError("not to be looked at")
    __len__ = __iter__ = __repr__ = __str__ = __eq__ = __getitem__ = __bool__ = fails


class Speechless(Exception):
    def __str__(self):
        raise ValueError("no words")


def raising(error):
    def raises(*given):
        raise error
    return raises


@pytest.mark.parametrize("what, says", [(lambda *given: Hostile((1, 2)), "CancelledError: not to be looked at  at  raise"),
                                        (raising(asyncio.CancelledError()), "CancelledError  at  raise error"), (raising(Speechless()), "ValueError: no words")])
def test_what_a_judge_did_not_expect_is_told_in_words(what, says, diamond, capsys):
    assert not exercise.check(named("diamond", what))
    said = capsys.readouterr().out
    assert f"The check could not go on with this answer: {says}" in said and "hint(diamond)" in said
    assert exercise.check(diamond)


def test_a_function_that_wraps_itself_is_judged(capsys):
    loop = named("diamond", lambda *given: None)
    loop.__wrapped__ = loop
    assert not exercise.check(loop)


def test_a_picture_that_fails_costs_no_verdict(diamond, capsys, monkeypatch):
    monkeypatch.setattr(exercise, "_in_notebook", lambda: True)
    monkeypatch.setattr(pictures, "picture", lambda drawn: 1 / 0)
    wrong = sources.wrong("05").diamond__nothing_forks
    assert not exercise.check(named("diamond", types.FunctionType(wrong.__code__, wrong.__globals__)))
    assert "The picture could not be drawn: ZeroDivisionError" in capsys.readouterr().out
    assert solved.of(sources.PARTS["diamond"])["tries"] == 1


def test_a_wrong_graph_is_drawn_beside_the_expected_one(capsys):
    wrong = sources.wrong("05").diamond__nothing_forks
    verdict = exercise.check(named("diamond", types.FunctionType(wrong.__code__, wrong.__globals__)))
    picture = verdict.picture
    assert picture.source["figure"] == "difference" and picture.source["pairs"]
    assert "Expected: 4 nodes" not in picture.alt and "fill -> scale" in picture.alt


def test_wrong_values_are_drawn_beside_the_expected_ones():
    part = sources.PARTS["set_factor"]
    trouble, _ = judging.judge(part, lambda *given: None)
    picture = pictures.picture(trouble.drawn)
    assert picture.source["expected"] != picture.source["found"] and "values are right" in picture.alt


def test_a_right_answer_draws_nothing(diamond):
    assert exercise.check(diamond).picture is None


def test_hints_come_one_by_one_and_then_all_again(diamond, capsys):
    for k in (1, 2, 3):
        exercise.hint(diamond)
        assert f"diamond, hint {k} of 3: " in capsys.readouterr().out
    exercise.hint("diamond")
    assert capsys.readouterr().out.count("\n") == 4
    assert solved.of(sources.PARTS["diamond"])["hints"] == 3


def test_hint_without_anything_is_for_the_part_checked_last(capsys):
    exercise.check(named("long_branch", lambda *given: None))
    exercise.hint()
    assert "long_branch, hint 1 of 3" in capsys.readouterr().out


def test_hint_of_an_exercise_is_for_its_first_open_part(diamond, capsys):
    exercise.check(diamond)
    exercise._latest.clear()
    exercise.hint("05")
    assert "long_branch, hint 1 of 3" in capsys.readouterr().out


def test_hint_where_nothing_is_known_says_what_to_write():
    with pytest.raises(LabError, match="hint\\(\"05\"\\)"):
        exec("from labkit import hint\nhint()", {})


def test_grade_raises_for_what_is_wrong_and_keeps_no_progress(diamond, capsys):
    exercise.grade(diamond)
    exercise.grade(diamond, seed=11)
    with pytest.raises(LabError, match="diamond is not right yet"):
        exercise.grade(named("diamond", lambda *given: None))
    assert solved.of(sources.PARTS["diamond"])["tries"] == 0


def test_grade_with_a_seed_refuses_what_knows_the_open_sizes(diamond):
    def knows(stream, helper, fork, join, x, y, z):
        return diamond(stream, helper, fork, join, x, y, z) if x.size in (4, 1000, 2048) else None
    assert exercise.check(named("diamond", knows))
    with pytest.raises(LabError):
        exercise.grade(knows, seed=3)


def test_the_public_names_are_there():
    assert labkit.check is exercise.check and labkit.hint is exercise.hint and labkit.progress is solved.progress


@pytest.mark.parametrize("expected, found", [([2.0], [4.0]), ([1.0, 2.0], [1.0, np.nan]), ([], []), ([1.0, 2.0, 3.0], [1.0]), (range(200), [*range(100), *range(200, 300)])],
                         ids=["one value", "no number", "nothing", "too few", "many"])
def test_values_are_drawn_beside_what_was_expected(expected, found):
    when = "after a launch that waited for its turn, while the stream was still busy with other work, and the numbers in host memory had changed"
    made = pictures.values("the items after them, which are left alone", when, np.asarray(expected, float), np.asarray(found, float))
    assert made.png[:4] == b"\x89PNG" and when in made.alt and "values are right" in made.alt
