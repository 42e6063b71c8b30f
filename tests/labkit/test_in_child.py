"""in_child(): whatever a program does there, this process gets a result in time and goes on."""
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import inprocess
import pytest

from labkit import LabError, explain, in_child
from labkit.backend import backend
from labkit.in_child import KEPT, Child, _ended, _Reader
from tests.kit.helpers import ROOT

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and process groups are of Unix")


def add(a, b=1):
    """A function that stands alone."""
    import math
    print("sum", math.fsum([a, b]))


def crash():
    import ctypes
    print("before")
    ctypes.string_at(0)
    print("after")


def spins():
    print("spinning")
    while True:
        pass


def fails():
    print("about to fail")
    return [][1]


# ---- how it ends ------------------------------------------------------------------------------------------

def test_what_it_printed_comes_back_and_nothing_else():
    done = in_child(add, 20, 2, 0.5)
    assert (done.printed, done.ended, done.last_error) == ("sum 2.5\n", "finished", "")
    assert repr(done) == "sum 2.5\n(child: finished)"


@POSIX
def test_a_crash_is_a_result_with_what_was_printed_before(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    done = in_child(crash)
    assert repr(done) == "before\n(child: SIGSEGV)" and explain(done).causes
    assert in_child("import os; os.abort()").ended == "SIGABRT"


def test_at_the_time_limit_it_is_killed():
    start = time.monotonic()
    done = in_child(spins, 1)
    assert repr(done) == "spinning\n(child: time limit of 1 s)" and 1 <= time.monotonic() - start < 10


def test_an_uncaught_exception_is_one_line_and_no_traceback_is_printed():
    done = in_child(fails)
    assert repr(done) == "about to fail\n(child: exit 1, IndexError: list index out of range)"
    assert "Traceback" in done.errors and "Traceback" not in done.printed


def test_a_lab_error_says_its_code():
    def refused():
        from labkit import cudart, ok
        ok(cudart.cudaStreamEndCapture(ok(cudart.cudaStreamCreate())))
    done = in_child(refused)
    assert (done.printed, done.last_error) == ("", "LabError: cudaErrorIllegalState (401)") and explain(done).code == 401


@pytest.mark.parametrize("text, ended, error", [
    ("import sys; sys.exit(3)", "exit 3", ""), ("raise SystemExit", "finished", ""), ("def f(:", "exit 1", "SyntaxError: "), ("input()", "exit 1", "EOFError: "),
    ("raise ValueError('first\\nsecond')", "exit 1", "ValueError: first"), ("raise ValueError", "exit 1", "ValueError"), ("", "finished", "")])
def test_each_way_to_end_is_told_apart(text, ended, error):
    done = in_child(text)
    assert done.ended == ended and (done.last_error.startswith(error) if error.endswith(" ") else done.last_error == error)


def test_exit_codes_of_windows_and_signals_are_named():
    assert [_ended(code) for code in (0, 7, -9, -11, 0xC0000005)] == ["finished", "exit 7", "SIGKILL", "SIGSEGV", "crash 0xc0000005"]


# ---- where it runs ---------------------------------------------------------------------------------------

def test_the_child_runs_on_the_same_backend_and_does_not_announce_it(monkeypatch):
    monkeypatch.setenv("LABKIT_BACKEND", "auto")
    text = "import os\nfrom labkit import backend, cudart\nprint(os.environ['LABKIT_BACKEND'], backend.name)"
    assert in_child(text).printed == f"{backend.name} {backend.name}\n"
    again = in_child(f"{text}\nprint(backend)").printed.splitlines()
    assert again[0] == f"{backend.name} {backend.name}" and again[1].startswith("labkit runs on ") and len(again) == 2


@pytest.mark.skipif(backend.name == "gpu", reason="the bindings decide")
@pytest.mark.parametrize("line", ["12", "13"])
def test_the_child_speaks_the_same_line_of_the_bindings(monkeypatch, line):
    monkeypatch.setenv("LABKIT_SIM_CUDA", line)
    assert in_child("from labkit import cudart; print(cudart.cudaRuntimeGetVersion()[1] // 1000)").printed == f"{line}\n"


def test_the_child_has_no_input_no_display_and_writes_no_recording(monkeypatch):
    for name in ("DISPLAY", "LABKIT_RECORD"):
        monkeypatch.setenv(name, "somewhere")
    text = "import os; print(os.environ.get('DISPLAY'), os.environ.get('LABKIT_RECORD'), os.environ['MPLBACKEND'])"
    assert in_child(text).printed == "None None Agg\n"
    parent = "from labkit import in_child; print(in_child('import sys; print(repr(sys.stdin.read()))'))"
    done = subprocess.run([sys.executable, "-c", parent], input="not for the child", cwd=ROOT, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "''\n(child: finished)" in done.stdout, done.stdout + done.stderr


def test_labkit_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "mine"]))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/helper.py").write_text("value = 5")
    assert in_child("import labkit, helper; print(helper.value, labkit.__name__)").printed == "5 labkit\n"


def test_its_folder_is_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = in_child("open('left behind', 'w').write('x')\nimport os; print(os.listdir('.'))")
    assert "left behind" in done.printed and list(tmp_path.iterdir()) == []
    in_child(spins, 0.5)
    assert list(tmp_path.iterdir()) == []


def test_a_flood_is_cut_and_does_not_hold_the_child_up():
    done = in_child(f"for _ in range(2000): print('é' * 999)\nprint('end', file=__import__('sys').stderr)")
    assert done.ended == "finished" and done.printed.endswith("\n... and more, left out\n") and "end" in done.errors
    assert KEPT <= len(done.printed) <= KEPT + 40 and len(in_child(f"print('x' * {KEPT - 1})").printed) == KEPT


def test_what_is_cut_is_not_kept_in_memory_either():
    end, begin = os.pipe()
    with open(begin, "wb") as writer:
        reader = _Reader(open(end, "rb"))
        for _ in range(50):
            writer.write(b"x" * KEPT)
    reader.join(10)
    assert not reader.is_alive() and len(reader.kept) <= 4 * KEPT and reader.text().endswith("left out\n")


def test_bytes_that_are_no_text_do_no_harm():
    assert in_child("import sys; sys.stdout.buffer.write(b'a\\xffb')").printed == "a�b"
    assert in_child("print('\\ud800')").printed == "\\ud800\n"


# ---- what is left of it ---------------------------------------------------------------------------------

def alive(pid):
    """Whether the process still runs; one that waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return not status.strip().startswith("Z") and bool(status.strip())


def gone(pid, seconds=5):
    until = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pid)


SPAWN = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid)"


@POSIX
@pytest.mark.parametrize("then, limit, ended", [("", 20, "finished"), ("\nwhile True: pass", 1, "time limit of 1 s")])
def test_what_it_started_ends_with_it(then, limit, ended):
    start = time.monotonic()
    done = in_child(SPAWN + then, limit)
    assert done.ended == ended and gone(int(done.printed)) and time.monotonic() - start < 15


@POSIX
def test_a_process_that_left_its_session_does_not_hold_us_up():
    start = time.monotonic()
    done = in_child(SPAWN.replace("])", "], start_new_session=True)"))
    assert done.ended == "finished" and time.monotonic() - start < 15
    os.kill(int(done.printed), signal.SIGKILL)


@POSIX
def test_an_interrupt_kills_the_child(tmp_path):
    parent = textwrap.dedent(f"""
        from labkit import in_child
        in_child("import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)", 60)
    """)
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=ROOT, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True)
    until = time.monotonic() + 30
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    assert alive(child)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=20)[1] and gone(child)


@POSIX
def test_a_child_ends_by_itself_where_its_parent_is_gone():
    assert in_child("import signal; print(signal.alarm(0))", 3).printed == "8\n"


@pytest.mark.skipif(backend.name == "gpu", reason="the promise is for the simulator")
def test_a_child_on_the_simulator_takes_less_than_a_second_and_a_half():
    def quick():
        start = time.monotonic()
        assert in_child("from labkit import cudart, ok\nprint(ok(cudart.cudaGetDeviceCount()))").printed == "1\n"
        return time.monotonic() - start
    assert min(quick() for _ in range(3)) < 1.5


# ---- what can be run there -------------------------------------------------------------------------------

def outside():
    return time.time() + KEPT


def closed(value):
    def inner():
        print(value)
    return inner


def decorate(function):
    return function


@decorate
def decorated():
    pass


async def waits():
    pass


def yields():
    yield 1


class Thing:
    def method(self):
        pass


@pytest.mark.parametrize("call, says", [
    (lambda: in_child(outside), "outside\\(\\) uses KEPT, time from outside"), (lambda: in_child(closed(1)), "uses value from outside"),
    (lambda: in_child(decorated), "decorator"), (lambda: in_child(lambda: 1), "can't be read"), (lambda: in_child(waits), "ordinary function"),
    (lambda: in_child(yields), "ordinary function"), (lambda: in_child(Thing().method), "ordinary function"), (lambda: in_child(len), "ordinary function"),
    (lambda: in_child(5), "got int"), (lambda: in_child(eval("lambda: 1")), "can't be read"),
    (lambda: in_child(add), "can't be called with these 0"), (lambda: in_child(add, 20, 1, 2, 3), "can't be called with these 3"),
    (lambda: in_child(add, 20, object()), "can't hand over object"), (lambda: in_child(add, 20, float("nan")), "can't hand over float"),
    (lambda: in_child("print(1)", 20, 1), "Only a function"), (lambda: in_child(add, 0), "limit 0"), (lambda: in_child(add, "20"), "limit '20'"),
    (lambda: in_child(add, True), "limit True"), (lambda: in_child(add, float("inf")), "limit inf"), (lambda: in_child(add, 10 ** 9), "limit")])
def test_a_program_that_could_not_run_alone_is_refused_with_the_reason(call, says):
    with pytest.raises(LabError, match=says):
        call()


def test_what_a_function_binds_itself_is_not_missing():
    def busy(count, names=("a", "b")):
        global total
        import os.path as paths
        from math import sqrt
        total = [sqrt(n) for n in range(count) if n]

        class Box:
            size = len(names)
            double = size * 2

        def inner(x):
            return x + total[0] + Box.double
        try:
            inner("x")
        except TypeError as no:
            print(type(no).__name__, paths.sep and inner(1), busy.__name__)
    assert in_child(busy, 20, 3).printed == "TypeError 6.0 busy\n"


def test_a_function_of_a_notebook_cell_can_be_run():
    session = inprocess.Session()
    out, error = session.run("from labkit import in_child\ndef hello(name):\n    print('hello', name)\n")
    assert error is None
    assert session.run("in_child(hello, 20, 'you')") == ("hello you\n(child: finished)", None)
    assert isinstance(session.run("in_child(hello, 20)")[1], LabError)


def test_a_function_of_a_jupyter_cell_can_be_run():
    pytest.importorskip("IPython", reason="IPython comes with the lab extra")
    cells = ["from labkit import in_child\ndef hello(n):\n    import sys\n    print('hello', n)", "print(in_child(hello, 20, [1, {'a': None}]))"]
    text = f"from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell()\n[shell.run_cell(cell) for cell in {cells!r}]"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "hello [1, {'a': None}]\n(child: finished)" in done.stdout, done.stdout + done.stderr


def test_a_capture_that_is_open_here_does_not_mind_a_child():
    from labkit import cudart, ok
    stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    assert isinstance(in_child(add, 20, 1), Child)
    graph = ok(cudart.cudaStreamEndCapture(stream))
    ok(cudart.cudaGraphDestroy(graph))
    ok(cudart.cudaStreamDestroy(stream))
