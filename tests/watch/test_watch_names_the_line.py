"""watch names the planted line in every failure, and accuses nobody in a sound capture.

Own code and threads run on every machine, once more with a stand-in that looks to the tracer as the compiled bindings do. CuPy and
PyTorch need a GPU. `python -m tests.watch.report` shows all of them as a table.
"""
import functools
import sys
import types
from collections import Counter

import pytest

from labkit import backend, cudart
from tests.watch import bench, libraries, planted, report, sound  # noqa: F401
from tests.watch.bench import PLANTED, SOUND, run, wrong

HERE = ("own", "threads")


def names(table, *by):
    return [name for name, case in table.items() if case.by in by]


@pytest.fixture
def like_the_bindings(monkeypatch):
    """cudart as compiled functions: the tracer sees that one is called, and neither its arguments nor its answer."""
    module = types.ModuleType("stand_in")
    for name, value in vars(cudart).items():
        if name.startswith("cuda") and isinstance(value, types.FunctionType):
            made = functools.partial(value)
            made.__name__, made.__module__ = name, "cuda.bindings.runtime"
            value = made
        setattr(module, name, value)
    for where in (planted, sound):
        monkeypatch.setattr(where, "cudart", module)
    init = bench.Bench.__init__

    def with_stand_in(self, blocking=False):
        init(self, blocking)
        self.cudart = module
    monkeypatch.setattr(bench.Bench, "__init__", with_stand_in)
    if sys.version_info < (3, 12):
        _hide_what_is_compiled(monkeypatch)


def _hide_what_is_compiled(monkeypatch):
    """Python 3.11 tells of the simulator's functions, which are Python's own: leave them out, as it leaves out compiled ones."""
    import labkit.watching  # noqa: F401
    from labkit import everywhere
    seen, wrapper = everywhere._new_frame, cudart.cudaMalloc.__code__

    def new_frame(frame, event, arg):
        return None if frame.f_code is wrapper else seen(frame, event, arg)
    new_frame.labkit = True
    monkeypatch.setattr(everywhere, "_new_frame", new_frame)
    monkeypatch.setattr(sys.modules["labkit.watching"], "backend", types.SimpleNamespace(name="gpu"))


def judged(case):
    if case.missing:
        pytest.skip(case.missing)
    w, said = run(case)
    assert not wrong(case, w), said
    return said


@pytest.mark.parametrize("name", names(PLANTED, *HERE))
def test_the_planted_line_is_named(name):
    assert f"planted.py:{PLANTED[name].line}:" in judged(PLANTED[name])


@pytest.mark.parametrize("name", names(SOUND, *HERE))
def test_nobody_is_accused_in_a_sound_capture(name):
    assert judged(SOUND[name]).strip().endswith("nothing to report.")


@pytest.mark.skipif(backend.name == "gpu", reason="there the bindings are compiled themselves")
@pytest.mark.parametrize("name", names(PLANTED, *HERE))
def test_the_planted_line_is_named_where_calls_are_compiled(name, like_the_bindings):
    if sys.version_info < (3, 12) and name in NOT_SEEN:
        pytest.skip(NOT_SEEN[name])
    judged(PLANTED[name])


@pytest.mark.skipif(backend.name == "gpu", reason="there the bindings are compiled themselves")
@pytest.mark.parametrize("name", names(SOUND, *HERE))
def test_nobody_is_accused_where_calls_are_compiled(name, like_the_bindings):
    judged(SOUND[name])


NOT_SEEN = {}  # on Python 3.11: name: why


@pytest.mark.parametrize("name", names({**PLANTED, **SOUND}, "cupy", "torch"))
def test_cupy_and_torch(name):
    case = report.CASES[name]
    if case.missing:
        pytest.skip(case.missing)
    assert not report.alone(name)


def test_how_many_there_are():
    words = Counter(case.word for case in PLANTED.values())
    assert len(PLANTED) >= 50 and len(names(PLANTED, *HERE)) >= 34 and len(names(SOUND, *HERE)) >= 33 and len(SOUND) >= 39
    assert len(names(PLANTED, "cupy")) >= 8 and len(names(PLANTED, "torch")) >= 8 and len(names(PLANTED, "threads")) >= 5
    assert max(words.values()) <= 4 and len(words) >= 18
    assert Counter(case.found for case in PLANTED.values()).keys() == {"guilty", "left_out", "unjoined", "refused"}


def test_a_wrong_line_would_be_noticed():
    case = PLANTED["synchronize_the_stream"]
    w, _ = run(case)
    w.guilty.line += 1
    assert "names" in wrong(case, w)
    assert "expected" in wrong(PLANTED["a_generator_reset_without_a_stream"], w) and "accuses" in wrong(SOUND["a_chain"], w)
