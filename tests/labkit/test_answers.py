"""draw.answers: a table of codes, with a few columns or with many in groups."""
import pytest

pytest.importorskip("matplotlib")

from labkit import cudart, draw  # noqa: E402
from labkit.errors import LabError  # noqa: E402
from tests.labkit.seeing import look, readable, texts  # noqa: E402

CODES = cudart.cudaError_t
GOOD, BAD, LOST = CODES.cudaSuccess, CODES.cudaErrorStreamCaptureUnsupported, CODES.cudaErrorStreamCaptureInvalidated
MODES = ("Global", "ThreadLocal", "Relaxed")
WHO = ("the capturing thread", "another thread", "another thread, Relaxed")
CALLS = ("cudaMalloc", "cudaEventQuery,\nnever recorded", "cudaStreamSynchronize, other", "cudaDeviceSynchronize")


def grouped(code=lambda who, mode: BAD if mode == "Global" else GOOD):
    return {call: {(who, mode): (code(who, mode),) for who in WHO for mode in MODES} for call in CALLS}


def written(sheet):
    return [words for words, _ in texts(sheet)]


def test_a_few_columns_say_the_whole_name(drawn):
    figure = look(draw.answers({"one": {"first": (BAD,), "second": LOST}, "two": {"first": (GOOD, 7), "second": GOOD}}, "A title"))
    found = written(drawn[0])
    assert {"900 Unsupported", "901 Invalidated", "first", "second", "A title"} <= set(found) and found.count("success") == 2
    assert figure.alt.startswith("A title. one: first cudaErrorStreamCaptureUnsupported, second cudaErrorStreamCaptureInvalidated. two: ")
    assert figure.source["series"][0] == {"row": "one", "column": "first", "code": "cudaErrorStreamCaptureUnsupported"}
    readable(drawn[0])


def test_many_columns_stand_in_their_groups_and_say_numbers(drawn):
    figure = look(draw.answers(grouped(), "What a call answers while a stream captures"))
    found = written(drawn[0])
    assert found.count("900") == 3 * len(CALLS) and found.count("ok") == 6 * len(CALLS)
    assert all(found.count(who) == 1 for who in WHO) and found.count("Thread\nLocal") == 3
    assert "900 StreamCaptureUnsupported" in found                # the name stands once
    assert len(figure.source["series"]) == 9 * len(CALLS) and figure.source["series"][0]["column"] == "the capturing thread, Global"
    assert "cudaMalloc: the capturing thread: Global 900, ThreadLocal ok, Relaxed ok; another thread: Global 900" in figure.alt
    readable(drawn[0])


def test_columns_of_a_group_stand_together_in_whatever_order_they_come(drawn):
    mixed = {"call": {(who, mode): GOOD for mode in MODES for who in WHO}}
    draw.answers(mixed, "A title")
    places = {words: box.x0 for words, box in texts(drawn[0]) if words in WHO}
    heads = sorted((box.x0, words) for words, box in texts(drawn[0]) if words in ("Global", "Thread\nLocal", "Relaxed"))
    assert list(places) == sorted(places, key=places.get)
    assert [words for _, words in heads] == ["Global", "Thread\nLocal", "Relaxed"] * 3


def test_each_code_is_named_once_below_many_columns(drawn):
    draw.answers(grouped(lambda who, mode: {"Global": BAD, "ThreadLocal": LOST}.get(mode, GOOD)), "A title")
    assert any("900 StreamCaptureUnsupported   901 StreamCaptureInvalidated" == words for words in written(drawn[0]))


def test_where_all_is_well_no_code_is_named(drawn):
    figure = draw.answers(grouped(lambda who, mode: GOOD), "A title")
    assert not any("StreamCapture" in words for words in written(drawn[0])) and "900" not in figure.alt


def test_a_cell_that_is_missing_is_refused():
    with pytest.raises(LabError, match="draw.answers"):
        draw.answers({"one": {("a", "x"): GOOD, ("a", "y"): GOOD}, "two": {("a", "x"): GOOD}}, "A title")
