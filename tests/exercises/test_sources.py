"""What every exercise has: a pair of notebooks that differ by added lines only, three hints a part, words that a learner can use."""
import json
import re

import nbformat
import pytest

import build_notebooks
import labs_source
import lint_lessons
from labkit import course, labs
from labkit.labs import judging
from tests.exercises import sources

AT_LEAST = 20
PAIRS = sorted(path.name for path in (sources.ROOT / "exercises").glob("*.ipynb"))
parts = pytest.mark.parametrize("part", sources.PARTS.values(), ids=repr)


def test_there_are_at_least_twenty_exercises_and_none_without_its_other_half():
    written = sorted(path.stem for path in (sources.ROOT / "authoring/labs").glob("*.py"))
    assert len(PAIRS) >= AT_LEAST
    assert written == [lab.slug for lab in labs.all_labs()] == [name.removesuffix(".ipynb") for name in PAIRS]
    assert PAIRS == sorted(path.name for path in (sources.ROOT / "solutions").glob("*.ipynb"))


def test_the_notebooks_are_those_that_the_sources_build():
    for path, text in build_notebooks.exercises(sources.ROOT).items():
        assert (sources.ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run tools/build_notebooks.py"


def test_the_sources_keep_the_rules():
    assert lint_lessons.lint_labs(sources.ROOT / "authoring/labs") == []


def lines(folder, name):
    notebook = nbformat.read(sources.ROOT / folder / name, as_version=4)
    return [f"{cell.id} {cell.cell_type} {line}" for cell in notebook.cells for line in cell.source.splitlines()]


@pytest.mark.parametrize("name", PAIRS)
def test_an_exercise_less_its_stubs_and_with_added_lines_is_its_solution(name):
    exercise, solution = ([line for line in lines(folder, name) if labs_source.STUB not in line] for folder in ("exercises", "solutions"))
    stubs = [line for line in lines("exercises", name) if labs_source.STUB in line]
    at = iter(solution)
    assert all(line in at for line in exercise), "a line of the exercise is not in the solution, or stands elsewhere"
    assert len(stubs) >= 1 and len(solution) - len(exercise) >= len(stubs), "a stub without a line that solves it"
    assert not [line for line in solution if labs_source.BEGIN in line or labs_source.END in line or labs_source.STUB in line]


@pytest.mark.parametrize("number", sources.LABS)
def test_the_source_asks_for_the_parts_that_are_judged(number):
    asked = labs_source.parts(lint_lessons.parse(sources.source(number)))
    assert asked == list(sources.LABS[number].parts)


def test_no_two_parts_have_one_name():
    assert len(sources.PARTS) == sum(len(lab.parts) for lab in sources.LABS.values())


@parts
def test_three_hints_ask_and_show_no_code(part):
    assert len(part.hints) == 3 and len(set(part.hints)) == 3
    assert part.hints[0].rstrip().endswith("?"), "the first hint asks"
    solved = labs_source.solution(sources.source(part.lab.number))
    body = [line.strip() for line in solved.splitlines()]
    for text in part.hints:
        assert 25 <= len(text) <= 300
        assert not re.search(r"\w\(|[=;{}\[\]]|\breturn\b \w+$|`", text), f"looks like code: {text}"
        assert not [line for line in body if len(line) > 12 and line in text]


@parts
def test_a_part_has_points_sizes_and_a_sentence_of_what_is_expected(part):
    assert part.points >= 1 and part.sizes and part.wanted.endswith(".") and 20 <= len(part.wanted) <= 250
    given = part.tries(seed=5)
    assert given == part.tries(seed=5) != part.tries(seed=6)
    assert all(size > before for (size, _), before in zip(given, part.sizes))


@parts
def test_each_part_has_three_wrong_answers(part):
    wrong = sources.wrong(part.lab.number)
    assert wrong is not None and len([name for name in wrong.EXPECT if name.startswith(part.name + "__")]) >= 3


@pytest.mark.parametrize("number", sources.LABS)
def test_an_exercise_says_what_it_goes_with(number):
    lab = sources.LABS[number]
    assert lab.lesson in dict(course.LESSONS) and 2 <= lab.minutes <= 30
    text = sources.source(number)
    assert f"# # Exercise {number} · {lab.title}\n" in text
    assert re.search(rf"[Ll]esson {lab.lesson}\b", text) and re.search(rf"\b{lab.minutes} minutes", text)


def test_the_lessons_are_named_as_their_notebooks_are():
    for number, title in course.LESSONS:
        path, = (sources.ROOT / "notebooks").glob(f"{number}_*.ipynb")
        heading = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]).splitlines()[0]
        assert heading.replace("*", "").startswith(f"# {number} · {title}")


def test_every_lesson_but_the_cases_has_an_exercise():
    assert {lab.lesson for lab in labs.all_labs()} >= {number for number, _ in course.LESSONS} - {"18", "19"}


def test_a_function_that_is_no_more_than_its_docstring_is_untouched():
    def empty():
        """Nothing yet."""

    def written():
        """Something."""
        return 1
    assert judging.untouched(empty) and not judging.untouched(written)
    assert not judging.untouched(len)


def readme_row(lab):
    return f"| {lab.number} | [{lab.title}](exercises/{lab.slug}.ipynb) | {lab.lesson} | {lab.minutes} | {', '.join(f'`{name}`' for name in lab.parts)} |"


def test_the_readme_lists_the_exercises():
    rows = [line for line in (sources.ROOT / "README.md").read_text(encoding="utf-8").splitlines() if "](exercises/" in line]
    assert rows == [readme_row(lab) for lab in labs.all_labs()]
