"""Each part: untouched it fails with words that help, solved it passes, and each wrong answer is refused."""
import pytest

from labkit import backend, cudart, exercise, recover
from labkit.labs import judging
from tests.exercises import sources

WRONG = [(number, name) for number in sources.LABS if sources.wrong(number) for name in sources.wrong(number).EXPECT]
OTHERS = [(number, name) for number in sources.LABS if sources.wrong(number) for name in getattr(sources.wrong(number), "RIGHT", ())]


@pytest.fixture(scope="module")
def written():
    """{(number, solved): names}, made when first asked for."""
    made = {}

    def names(number, solved):
        if (number, solved) not in made:
            made[number, solved] = sources.namespace(number, solved)
        return made[number, solved]
    return names


@pytest.mark.parametrize("part", sources.PARTS.values(), ids=repr)
def test_an_untouched_part_fails_with_words_that_help(part, written, capsys):
    answer = written(part.lab.number, False)[part.name]
    assert judging.untouched(answer)
    verdict = exercise.check(answer)
    said = capsys.readouterr().out
    assert not verdict
    assert "as it was handed out" in said and part.wanted in said and f"hint({part.name})" in said
    assert "expected" in said and "found" in said
    assert "Error" not in said.replace("LabError", "Error") and "Traceback" not in said


@pytest.mark.parametrize("part", sources.PARTS.values(), ids=repr)
def test_a_solved_part_passes(part, written, capsys):
    verdict = exercise.check(written(part.lab.number, True)[part.name])
    assert verdict, capsys.readouterr().out


@pytest.mark.parametrize("part", sources.PARTS.values(), ids=repr)
def test_a_solved_part_passes_with_numbers_nobody_knows(part, written):
    for seed in (7, 2026):
        exercise.grade(written(part.lab.number, True)[part.name], seed=seed)


def _named(number, name):
    if name in getattr(sources.wrong(number), "SIM_ONLY", ()) and backend.name == "gpu":
        pytest.skip("undefined on a GPU: it may end the process")
    part = sources.PARTS[name.partition("__")[0]]
    answer = getattr(sources.wrong(number), name)
    return part, answer


@pytest.mark.parametrize("number, name", WRONG)
def test_a_wrong_answer_is_refused(number, name):
    part, answer = _named(number, name)
    trouble, _ = judging.judge(part, answer)
    assert trouble is not None, "it passed"
    says = sources.wrong(number).EXPECT[name]            # or several, where a GPU may say it otherwise
    assert any(text in trouble.text for text in ([says] if isinstance(says, str) else says)), trouble.text


@pytest.mark.parametrize("number, name", OTHERS)
def test_another_right_answer_passes(number, name):
    part, answer = _named(number, name)
    trouble, _ = judging.judge(part, answer)
    assert trouble is None, trouble.text


def test_no_check_leaves_a_capture_open():
    code, status = cudart.cudaStreamIsCapturing(0)
    assert not int(code) and not int(status)
    recover()
