"""The line tracer: which lines, in which order, and that nothing stays behind."""

import contextlib
import signal
import sys
import threading

import pytest

from labkit import trace
from labkit.errors import LabError
from labkit.trace import lines, statements


def followed(block):
    """The texts of the lines that `block(after)` reports."""
    seen = []
    block(lambda line: seen.append(line.text))
    return seen


def nothing_is_left():
    """True when no tracer of ours is on: every tool id is free and no trace function is set."""
    if hasattr(sys, "monitoring"):
        return all(sys.monitoring.get_tool(i) is None for i in trace.TOOL_IDS)
    return getattr(sys.gettrace(), "__module__", "") != "labkit.trace"


def test_every_line_of_the_block_is_reported_after_it_ran():
    x, seen = [], []
    with lines(lambda line: seen.append((line.text, list(x)))):
        x.append(1)
        x.append(2)
    x.append(3)
    assert seen == [("x.append(1)", [1]), ("x.append(2)", [1, 2])]


def test_a_loop_reports_its_body_each_time():
    def block(after):
        with lines(after):
            for i in range(2):
                str(i)
    head, body = "for i in range(2):", "str(i)"
    assert followed(block) == [head, body, head, body, head]


def test_a_loop_whose_body_is_one_long_call_reports_each_round():
    def block(after):
        left = iter([1, 1, 0])
        with lines(after):
            while next(left):
                str(
                    1)
    assert followed(block).count("str( 1)") == 2


def test_a_call_over_several_lines_is_one_line():
    def block(after):
        with lines(after):
            max(
                1,
                2,
            )
            a = 1  # noqa: F841
    assert followed(block) == ["max( 1, 2, )", "a = 1  # noqa: F841"]


def test_a_called_function_is_one_line():
    def helper():
        a = 1
        return a

    def block(after):
        with lines(after):
            helper()
    assert followed(block) == ["helper()"]


def test_the_same_code_in_another_thread_is_not_followed():
    def block(after):
        with lines(after) if after else contextlib.nullcontext():
            other = threading.Thread(target=block, args=(None,))
            if after: other.start()  # noqa: E701
            if after: other.join()  # noqa: E701
    assert len(followed(block)) == 3


def test_recursion_does_not_report_the_inner_call():
    def block(after, depth=0):
        if depth:
            return "inner"
        with lines(after):
            block(after, 1)
    assert followed(block) == ["block(after, 1)"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_reports_its_line_and_leaves_nothing(error):
    seen = []
    with pytest.raises(error):
        with lines(lambda line: seen.append(line.text)):
            a = 1  # noqa: F841
            raise error
    assert seen == ["a = 1  # noqa: F841", "raise error"]
    assert nothing_is_left()


def test_an_error_in_the_callback_ends_the_calls_and_comes_out_of_the_block():
    calls, ran = [], []

    def after(line):
        calls.append(line)
        raise LookupError("in the callback")

    with pytest.raises(LookupError):
        with lines(after):
            ran.append(1)
            ran.append(2)
    assert (ran, len(calls)) == ([1, 2], 1)
    assert nothing_is_left()


def test_an_interrupt_in_the_callback_leaves_nothing():
    with pytest.raises(KeyboardInterrupt):
        with lines(lambda line: signal.raise_signal(signal.SIGINT)):
            a = 1
            a = 2  # noqa: F841
    assert nothing_is_left()


def test_it_can_be_used_again_at_once():
    def block(after):
        with lines(after):
            a = 1  # noqa: F841
    assert followed(block) == followed(block)
    assert nothing_is_left()


def test_two_blocks_one_inside_the_other():
    outer, inner = [], []
    with lines(lambda line: outer.append(line.text)):
        a = 1
        with lines(lambda line: inner.append(line.text)):
            b = a + 1
    assert inner[:1] == ["b = a + 1"] and "a = 1" in outer
    assert nothing_is_left()


def test_code_without_source_is_followed_by_number():
    seen = []
    exec("with lines(after):\n    a = 1\n    b = 2\n", {"lines": lines, "after": seen.append})
    assert [line.number for line in seen] == [2, 3]


def test_a_tracer_that_was_there_comes_back():
    def tracer(frame, event, arg):
        return None
    before = sys.gettrace()
    try:
        sys.settrace(tracer)
        with lines(lambda line: None):
            pass
        found = sys.gettrace()
    finally:
        sys.settrace(before)
    assert found is tracer


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="Python 3.11 has no tool ids to run out of")
def test_taken_tool_ids_are_a_lab_error():
    for tool in trace.TOOL_IDS:
        sys.monitoring.use_tool_id(tool, "someone")
    try:
        with pytest.raises(LabError, match="someone"):
            with lines(lambda line: None):
                pass
    finally:
        for tool in trace.TOOL_IDS:
            sys.monitoring.free_tool_id(tool)
    assert nothing_is_left()


def test_statements_give_a_compound_statement_its_header_only():
    owner = statements("for i in (\n    1,\n):\n    a(\n        i)\n")
    assert owner == {1: (1, 3), 2: (1, 3), 3: (1, 3), 4: (4, 5), 5: (4, 5)}
