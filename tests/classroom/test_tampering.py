"""What a submission changes is found, what it can't reach is not changed, and the lines to look at are named. No sandbox is needed here."""
import pytest
from labkit.classroom import grading, judge, suspicion
from nbformat import v4
from tests.classroom.hostile import SWAPS

TEST = "from labkit.exercise import grade\ngrade(diamond)"
USES = '''
from labkit import *
from labkit import cudart, graph, kernels, watch, film, memory_log, predict, draw
stream = ok(cudart.cudaStreamCreate())
x = empty(1000)
def work(stream):
    ok(launch(stream, kernels.fill, 4, 256, x, 1.0, x.size))
    return stream
with watch(stream):
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    work(stream)
    made = ok(cudart.cudaStreamEndCapture(stream))
graph.kinds(made)
def never():
    hint("05")
    return check("diamond")
never()
explain(900)
'''


def judged(cell, test=TEST):
    return judge.judge([("<cell 1>", cell)], test, sandboxed=False)


@pytest.mark.parametrize("name", SWAPS)
def test_a_swapped_judge_gives_nothing(name):
    cell, word = SWAPS[name]
    outcome = judged(cell + "\ndef diamond(*a): pass")
    assert not outcome.passed and (word in outcome.note if word else "changed" not in outcome.note), outcome


def test_what_the_lessons_teach_is_no_tampering():
    outcome = judged(USES, "pass")
    assert outcome.passed and "raised" not in outcome.output, outcome


def test_a_passed_test_needs_the_token_for_it():
    line = '{"status": "%s", "token": "%s"}'
    tokens = {"passed": "a", "other": "b"}
    assert judge._verdict([line % ("passed", "a")], tokens)["status"] == "passed" and judge._verdict([line % ("failed", "b")], tokens)["status"] == "failed"
    assert judge._verdict([line % ("passed", "b")], tokens) is None is judge._verdict([line % ("failed", "a")], tokens)


@pytest.mark.parametrize("line", [
    "labkit.labs.parts()", "import labkit.labs", "from labkit import exercise", "from threading import _sys as s", "import contextlib; contextlib.sys.modules",
    "getattr(s, '_getf' + 'rame')()", "getattr(s, '_getframe')()", "f.f_back", "f.f_locals['token']", "for np.isclose in [print]: pass", "np.isclose: object = print",
    "import numpy as q; q.isclose = print", "np.isclose, y = 1, 2", "with x as labkit.draw: pass", "e = eval", "locals()", "'{0.__class__}'.format(1)",
    "class Y:\n    def __eq__(self, other): return True", "%matplotlib inline\nimport os", "%%time\nimport os", "!ls\neval('1')"])
def test_a_line_that_reaches_too_far_is_named(line):
    assert suspicion.look(line)


@pytest.mark.parametrize("line", [
    "import numpy as np\nfrom labkit import *\nfrom labkit import cudart, graph", "host.ctypes.data", "params.extent.width = 4", "print(type(x).__name__)",
    "class Cache:\n    def __init__(self): self.kept = {}", "def f(input, vars): return input + vars", "getattr(x, 'size')", "cache.__getitem__", "%timeit x", "x = ("])
def test_a_usual_line_is_not(line):
    assert not suspicion.look(line)


def test_a_copied_test_is_not_looked_at(no_tests_run, tmp_path, monkeypatch):
    """Nor one that lost its marks: it does not run."""
    monkeypatch.chdir(tmp_path)
    made, resources = v4.new_notebook(cells=[v4.new_code_cell(TEST), v4.new_code_cell("import os")]), {"nbgrader": {"assignment": "a", "student": "s"}}
    grading.Judge().preprocess(made, resources)
    assert resources["labkit_notes"] == ["cell 2, line 1: import os"]
