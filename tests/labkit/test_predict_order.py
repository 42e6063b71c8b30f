"""An order guessed before the run: how it is asked for, and what it says against what was measured."""
import pytest

pytest.importorskip("PIL")     # seeing.py looks at pictures, too

from labkit.errors import LabError  # noqa: E402
from labkit.predict import OrderPrediction, predict_order  # noqa: E402
from tests.labkit.seeing import BATCH, MISSING, measured, missing  # noqa: E402

WAYS = [name for name in BATCH if name != "fixed replay"]
SMALL = {"a": (0, 1, 10.0), "b": (0, 1, 20.0), "c": (0, 1, 40.0), "d": (0, 1, 80.0)}


def test_without_an_order_it_says_how_to_answer(capsys):
    order = predict_order("Which is fastest?", None, of=["a", "b", "c"])
    said = capsys.readouterr().out
    assert isinstance(order, OrderPrediction) and order.order is None and "none yet" in repr(order)
    assert "Which is fastest?" in said and "['a', 'b', 'c']" in said and "None" in said


def test_an_order_is_kept_and_repeated(capsys):
    order = predict_order("Which?", ["b", "a"], of={"a": 1, "b": 2})
    assert order.order == ("b", "a") and order.of == ("a", "b") and repr(order) == "your order: b, a" and "b, a" in capsys.readouterr().out


@pytest.mark.parametrize("given, words", [
    ("a", "got 'a'"), (7, "got 7"), ([], r"got \[\]"), (["a", "b"], "at least the first 3"), (["a", "b", "x"], "got 'x'"), (["a", "b", 3], "got 3"),
    (["a", "b", "a"], "'a' twice"), ({"a": 1, "b": 2, "c": 3}, "got {"), (["a", "b", ["c"]], "got \\['c'\\]")])
def test_a_wrong_order_is_refused_with_the_right_names(given, words):
    with pytest.raises(LabError, match=words) as error:
        predict_order("Which?", given, of=["a", "b", "c", "d"])
    assert "'a', 'b', 'c', 'd'" in str(error.value)


@pytest.mark.parametrize("of", [(), ["a"], ["a", "a"], "abc", [1, 2], None, 7])
def test_names_to_choose_from_are_two_or_more_texts(of):
    with pytest.raises(LabError, match="names to put in order"):
        predict_order("Which?", None, of=of)


@pytest.mark.parametrize("order, places, pairs, first", [("abcd", 4, 6, "first"), ("dcba", 0, 0, "fourth"), ("bacd", 2, 5, "second"), ("bcda", 0, 3, "fourth")])
def test_it_counts_places_and_pairs(capsys, order, places, pairs, first):
    words = predict_order("Which?", list(order), of="a b c d".split()).against(measured(SMALL))
    assert words == f"You put {places} of 4 in their place, and {pairs} of 6 pairs in the right order; the fastest is a, you had it {first}."
    assert capsys.readouterr().out.endswith(words + "\n")


def test_eight_ways_make_twenty_eight_pairs():
    words = predict_order("Which?", WAYS, of=WAYS).against(measured())
    assert words == "You put 8 of 8 in their place, and 28 of 28 pairs in the right order; the fastest is one executable per size, you had it first."


def test_figures_within_five_percent_are_right_in_either_order():
    swapped = ["pad to the largest", "one executable per size", *WAYS[2:]]
    assert "8 of 8 in their place, and 28 of 28 pairs" in predict_order("Which?", swapped, of=WAYS).against(measured())
    farther = {**SMALL, "b": (0, 1, 10.6)}
    assert "2 of 4 in their place, and 5 of 6" in predict_order("Which?", list("bacd"), of=list("abcd")).against(measured(farther))


def test_the_first_few_are_compared_by_themselves():
    order = predict_order("Which?", ["b", "c", "d"], of=list("abcd"))
    assert order.against(measured(SMALL)) == "You put 0 of 3 in their place, and 3 of 3 pairs in the right order; the fastest is a, you did not name it."
    assert order.places(measured(SMALL)) == {"b": (1, False), "c": (2, False), "d": (3, False)}


def test_variants_that_were_not_asked_about_do_not_count():
    order = predict_order("Which?", ["node updates", "plain stream"], of=["node updates", "plain stream"])
    assert "2 of 2" in order.against(measured()) and "the fastest is node updates" in order.against(measured())


def test_without_a_guess_the_order_is_told():
    words = predict_order("Which?", None, of=list("abcd")).against(measured(SMALL))
    assert words.startswith("Fastest first: a, b, c, d.") and "None" in words


def test_a_list_of_names_can_be_the_answer():
    assert "4 of 4" in predict_order("Which?", list("abcd"), of=list("abcd")).against(["a", "b", "c", "d"])
    assert "2 of 4" in predict_order("Which?", list("abcd"), of=list("abcd")).against(("b", "a", "c", "d"))


@pytest.mark.parametrize("found", [7, None, [], ["x", "y"], "abcd", measured(), {"a": 1, "b": 2}])
def test_what_has_none_of_the_names_is_refused(found):
    with pytest.raises(LabError, match="An order is compared"):
        predict_order("Which?", list("abc"), of=list("abc")).against(found)


def test_without_a_recording_there_is_nothing_to_compare_with():
    with pytest.raises(LabError, match="no order to compare") as error:
        predict_order("Which?", None, of=list("abc")).against(missing())
    assert MISSING in str(error.value)
