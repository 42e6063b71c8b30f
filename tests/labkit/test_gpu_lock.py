"""gpu_to_yourself(): one program at a time measures on a GPU. No GPU is needed: the lock is told that there is one."""
import importlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import filelock
import pytest

from labkit import gpu_lock, in_child, lock_file, lock_wait
from labkit.backend import Backend
from labkit.errors import LabError
from tests.kit.helpers import ROOT

GPU = lock_file._gpu
ON_A_GPU = Backend("gpu", "made up for the test")
POSIX = pytest.mark.skipif(os.name == "nt", reason="signals, modes and links of POSIX")
AS_ROOT = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to become two other users")

# What every process of these tests begins with. hold(seconds) notes when it had the lock.
BEGIN = """
import json, os, sys, time
import filelock
from labkit import gpu_lock, lock_file
from labkit.backend import Backend
gpu_lock.backend, lock_file._gpu = Backend("gpu", "made up for the test"), lambda: "gpu"
def hold(seconds, what="a cost", out=None):
    with gpu_lock.gpu_to_yourself(what):
        began = time.monotonic()
        print("held", flush=True)
        time.sleep(seconds)
        ended = time.monotonic()
    if out:
        with open(out, "a") as file:
            file.write(json.dumps([began, ended]) + "\\n")
"""


@pytest.fixture(autouse=True)
def lock(monkeypatch, tmp_path):
    """The path of the lock, in a folder of the test's own; the lock believes that there is a GPU."""
    monkeypatch.setattr(gpu_lock, "backend", ON_A_GPU)
    monkeypatch.setattr(lock_file, "_gpu", lambda: "gpu")
    monkeypatch.setenv("LABKIT_LOCK", str(tmp_path / "lock"))
    monkeypatch.delenv("LABKIT_RECORD", raising=False)
    monkeypatch.delenv(gpu_lock.HELD, raising=False)
    until = lock_wait.Wait.until

    def not_for_ever(self, attempt):
        until(self, lambda: attempt() or time.monotonic() - self.began > 30 and pytest.fail("it waits for ever"))
    monkeypatch.setattr(lock_wait.Wait, "until", not_for_ever)
    return lock_file.place()


@pytest.fixture
def start():
    """start(program): a Python process that runs it, and has the lock's module; it is gone when the test is over."""
    started = []

    def start(program, **more):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "LABKIT_BACKEND": "sim", "PYTHONUNBUFFERED": "1", **more}
        started.append(subprocess.Popen([sys.executable, "-c", BEGIN + program], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def line_of(process, word):
    """The first line it prints with this word, or an error with all that it printed."""
    seen = []
    for line in process.stdout:
        seen.append(line)
        if word in line:
            return line.strip()
    raise AssertionError(f"no {word!r} in {seen}")


def is_free(path):
    """Whether nobody holds the lock at this path, asked with a descriptor of its own."""
    fd = os.open(path, os.O_RDWR)
    try:
        return filelock.lock_descriptor(fd, blocking=False)
    finally:
        os.close(fd)


# ---- processes ---------------------------------------------------------------------------------

def test_neighbours_have_the_gpu_one_after_the_other(start, tmp_path):
    out = tmp_path / "times"
    some = [start(f"for _ in range(3): hold(0.05, out={str(out)!r})") for _ in range(3)]
    assert [process.wait(20) for process in some] == [0, 0, 0], [process.stdout.read() for process in some]
    times = sorted(json.loads(line) for line in out.read_text().splitlines())
    assert len(times) == 9
    assert all(a_end <= b_begin for (_, a_end), (b_begin, _) in zip(times, times[1:]))


def test_two_files_are_two_locks(start, tmp_path):
    """The control of the test before: without a common lock nobody waits."""
    first = start("hold(60)", LABKIT_LOCK=str(tmp_path / "a"))
    line_of(first, "held")
    second = start("hold(0)", LABKIT_LOCK=str(tmp_path / "b"))
    assert line_of(second, "held") and second.wait(20) == 0 and first.poll() is None


def test_who_waits_reads_who_measures_and_when_it_goes_on(start, monkeypatch, lock):
    process = start('with gpu_lock.gpu_to_yourself("launch cost"): print("held", flush=True); sys.stdin.read()')
    line_of(process, "held")
    said, began = [], time.monotonic()

    def say(line):
        said.append((line, time.monotonic() - began))
        if len(said) == 1:
            process.stdin.close()         # and with this the holder ends
    monkeypatch.setattr(lock_wait, "say", say)
    with gpu_lock.gpu_to_yourself("my cost"):
        assert lock_file.holder(lock)["pid"] == os.getpid()
    (waiting, after), (on, _) = said
    assert after > 0.5 and re.fullmatch(r'waiting for the GPU: (.*), process (\d+), measures "launch cost" since \d\d:\d\d:\d\d', waiting).groups() \
        == (lock_wait.user(), str(process.pid))
    assert re.fullmatch(r'the GPU is free after \d+ s: on with "my cost"', on)
    assert lock_file.holder(lock) == {}


def test_a_short_wait_is_not_told_nor_any_wait_while_recording(start, capfd, monkeypatch):
    for patience, recording in ((30, ""), (0, "somewhere")):
        monkeypatch.setattr(lock_wait, "PATIENCE", patience)
        monkeypatch.setenv("LABKIT_RECORD", recording)
        line_of(start("hold(0.2)"), "held")
        with gpu_lock.gpu_to_yourself():
            pass
    assert capfd.readouterr().out == ""


def test_a_holder_that_is_killed_frees_it_at_once(start, lock):
    process = start("hold(60)")
    line_of(process, "held")
    assert not is_free(lock)
    process.kill()
    process.wait()
    began = time.monotonic()
    with gpu_lock.gpu_to_yourself():
        assert time.monotonic() - began < 5


def test_who_measures_again_and_again_lets_others_in(start):
    """Between two blocks is hardly a moment, so that asking now and then would hardly ever find it free."""
    process = start('while True: hold(0.1)')
    line_of(process, "held")
    began = time.monotonic()
    for _ in range(3):
        with gpu_lock.gpu_to_yourself():
            pass
    assert time.monotonic() - began < 6 and process.poll() is None


@POSIX
def test_ctrl_c_ends_the_wait_and_leaves_no_lock(start, lock):
    waiting = start("""
try:
    hold(0)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    time.sleep(60)
""")
    with gpu_lock.gpu_to_yourself():
        line_of(waiting, "waiting for the GPU")
        waiting.send_signal(signal.SIGINT)
        line_of(waiting, "interrupted")
    assert is_free(lock) and is_free(f"{lock}.next")
    with gpu_lock.gpu_to_yourself():
        pass


def test_a_child_of_who_measures_is_not_kept_waiting(lock):
    """Who measures may wait for it, and both would wait for ever."""
    with gpu_lock.gpu_to_yourself():
        child = in_child(BEGIN + "hold(0)", 20)
        assert (child.printed, child.ended) == ("held\n", "finished") and not is_free(lock)


def test_a_child_that_lives_longer_waits_like_anybody(start):
    with gpu_lock.gpu_to_yourself():
        child = start("print('begun'); sys.stdin.readline(); hold(0)")
        line_of(child, "begun")
    with gpu_lock.gpu_to_yourself():
        child.stdin.write("\n")
        child.stdin.flush()
        assert line_of(child, "waiting")
    assert child.wait(20) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_neither_holds_nor_frees_its_parents_lock(lock):
    ready, go = os.pipe()
    block = gpu_lock.gpu_to_yourself()
    block.__enter__()
    for lives_on in (False, True):
        child = os.fork()
        if not child:                     # it leaves the block that it is in
            try:
                with gpu_lock.gpu_to_yourself():
                    held = gpu_lock._state.open
                block.__exit__(None, None, None)
                if lives_on:
                    os.close(go)
                    os.read(ready, 1)
                os._exit(1 if held or is_free(lock) else 0)
            finally:
                os._exit(2)
        if not lives_on:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not is_free(lock)
    block.__exit__(None, None, None)
    try:
        assert is_free(lock)
    finally:
        os.close(go)
        os.close(ready)
        os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_that_outlives_a_killed_holder_does_not_hold(start, lock):
    process = start("""
with gpu_lock.gpu_to_yourself():
    there, ready = os.pipe()
    child = os.fork()
    if child:
        os.read(there, 1)
        print("held", child, flush=True)
    else:
        os.write(ready, b"1")
    sys.stdin.read()
""")
    child = int(line_of(process, "held").split()[1])
    try:
        process.kill()
        process.wait()
        assert is_free(lock)
    finally:
        os.kill(child, signal.SIGKILL)


# ---- one process -------------------------------------------------------------------------------

def test_a_thread_enters_twice_and_another_thread_waits(lock):
    seen, inside = [], threading.Event()

    def other():
        inside.wait()
        with gpu_lock.gpu_to_yourself("other"):
            seen.append("other")
    thread = threading.Thread(target=other)
    thread.start()
    with gpu_lock.gpu_to_yourself("first"):
        with gpu_lock.gpu_to_yourself("nested"):
            inside.set()
            time.sleep(0.15)
        assert not is_free(lock) and lock_file.holder(lock)["what"] == "first"
        time.sleep(0.1)
        seen.append("first")
    thread.join(10)
    assert seen == ["first", "other"] and is_free(lock) and gpu_lock.HELD not in os.environ


def test_an_error_inside_frees_it(lock):
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), gpu_lock.gpu_to_yourself():
            raise error
        assert is_free(lock) and gpu_lock._state.depth == 0 and not gpu_lock._state.open


def test_another_gpu_is_another_lock(monkeypatch):
    class Cuda:
        current = 0

        def cudaGetDevice(self):
            return 0, self.current

        def cudaGetDeviceProperties(self, device):
            return 0, type("Properties", (), {"uuid": type("Uuid", (), {"bytes": bytes([device] * 16)})})
    monkeypatch.setattr(lock_file, "cudart", cuda := Cuda())
    monkeypatch.setattr(lock_file, "_gpu", GPU)
    lock_file._name.cache_clear()
    paths = []
    for cuda.current in (0, 1):
        paths.append(lock_file.place())
    lock_file._name.cache_clear()
    assert [path.split(".")[-1] for path in paths] == ["gpu-" + "00" * 16, "gpu-" + "01" * 16]
    monkeypatch.setattr(cuda, "cudaGetDevice", lambda: (999, 0))
    assert lock_file.place().endswith("lock.gpu")


def test_a_lock_file_that_somebody_deletes_is_made_anew(lock, monkeypatch):
    taken = []

    def deleted_first(path, fd):
        taken.append(fd)
        if len(taken) == 1:
            os.unlink(path)
        return real(path, fd)
    real = lock_file.is_at
    monkeypatch.setattr(lock_file, "is_at", deleted_first)
    if os.name == "nt":
        pytest.skip("an open file can't be deleted")
    with gpu_lock.gpu_to_yourself():
        assert len(taken) == 2 and os.path.exists(lock) and not is_free(lock)


# ---- users and files -----------------------------------------------------------------------------

def as_user(uid, umask):
    """The program's lines that make it another user, after all is imported."""
    return f"os.setgroups([]); os.setgid({uid}); os.setuid({uid}); os.umask({umask})\nos.environ['LOGNAME'] = 'user-{uid}'\n"


@AS_ROOT
@pytest.mark.parametrize("mode", [0o1777, 0o777], ids=["sticky", "open"])
def test_two_users_wait_for_one_another_whatever_the_umask_of_the_first(start, mode):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, mode)
        place = {"LABKIT_LOCK": f"{folder}/lock"}
        first = start(as_user(65534, 0o077) + "hold(60)", **place)
        line_of(first, "held")
        second = start(as_user(1, 0o077) + "hold(0)", **place)
        assert 'user-65534, process' in line_of(second, "waiting for the GPU")
        first.kill()
        assert line_of(second, "held") and second.wait(20) == 0
        files = [os.stat(Path(folder, name)) for name in os.listdir(folder)]
        assert len(files) == 2 and all(stat.S_IMODE(found.st_mode) == 0o666 and found.st_uid == 65534 for found in files)


@POSIX
def test_a_file_that_is_there_is_never_opened_to_be_made(lock, monkeypatch):
    """With fs.protected_regular Linux refuses O_CREAT for another user's file in a sticky folder."""
    with gpu_lock.gpu_to_yourself():
        pass
    real, flags = os.open, []
    monkeypatch.setattr(os, "open", lambda path, flag, *mode, **more: (flags.append(flag), real(path, flag, *mode, **more))[1])
    with gpu_lock.gpu_to_yourself():
        pass
    assert len(flags) >= 2 and not any(flag & os.O_CREAT for flag in flags)


def test_the_default_is_one_place_for_all_users(monkeypatch, tmp_path):
    monkeypatch.delenv("LABKIT_LOCK")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    folder = Path(lock_file.place()).parent
    assert folder == (Path("/tmp") if os.path.isdir("/tmp") else Path(tempfile.gettempdir()))
    monkeypatch.setenv("LABKIT_LOCK", "")
    assert Path(lock_file.place()).parent == folder


def refused(word):
    """The block is refused with words that name the way out, and nothing is held afterwards."""
    with pytest.raises(LabError, match=word) as caught, gpu_lock.gpu_to_yourself():
        raise AssertionError("it went on")
    assert "LABKIT_LOCK" in caught.value.try_ and not gpu_lock._state.open and gpu_lock._state.depth == 0


@POSIX
@pytest.mark.parametrize("which", ["", ".next"])
@pytest.mark.parametrize("target", ["precious", "nothing"])
def test_a_planted_link_is_not_followed(lock, tmp_path, which, target):
    (tmp_path / "precious").write_text("precious")
    os.symlink(tmp_path / target, lock + which)
    refused("it is a link")
    assert (tmp_path / "precious").read_text() == "precious" and not (tmp_path / "nothing").exists()


@POSIX
def test_what_is_no_file_of_labkits_is_left_as_it_is(lock, tmp_path):
    (tmp_path / "precious").write_text("precious")
    os.link(tmp_path / "precious", lock)
    refused("link")
    os.unlink(lock)
    Path(lock).write_text("my notes")
    refused("not labkit's")
    assert Path(lock).read_text() == "my notes" and (tmp_path / "precious").read_text() == "precious"
    os.unlink(lock)
    os.mkfifo(lock)
    refused("no plain file")
    assert lock_file.holder(lock) == {}
    os.unlink(lock)
    os.mkdir(lock)
    refused("directory")


def test_a_folder_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LABKIT_LOCK", str(tmp_path / "gone" / "lock"))
    refused("can't be made there")


@AS_ROOT
@pytest.mark.parametrize("folder_mode, file_mode", [(0o755, None), (0o1777, 0o600)], ids=["read-only folder", "file for its owner alone"])
def test_what_another_user_closed_is_an_error_with_words(start, folder_mode, file_mode):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, folder_mode)
        if file_mode is not None:
            for name in ("lock.gpu", "lock.gpu.next"):
                Path(folder, name).touch()
                Path(folder, name).chmod(file_mode)
        process = start(as_user(65534, 0o022) + """
from labkit.errors import LabError
try:
    hold(0)
except LabError as error:
    print("LabError", "LABKIT_LOCK" in error.try_, error.did)
""", LABKIT_LOCK=f"{folder}/lock")
        assert line_of(process, "LabError").startswith("LabError True The lock for the GPU") and process.wait(20) == 0


@pytest.mark.parametrize("error", [OSError(95, "Operation not supported"), NotImplementedError("no locks")])
def test_a_file_system_without_locks_is_named_once_and_measured_on(monkeypatch, capfd, error):
    def fails(*args, **more):
        raise error
    monkeypatch.setattr(filelock, "lock_descriptor", fails)
    monkeypatch.setattr(lock_wait, "_said", set())
    for _ in range(2):
        with gpu_lock.gpu_to_yourself():
            pass
    said = capfd.readouterr().out.splitlines()
    assert len(said) == 1 and "without a lock" in said[0] and str(error) in said[0] and not gpu_lock._state.open


@pytest.mark.parametrize("text", [b"", b"\n{}", b'\n{"labkit": []}', b'\n{"labkit": {"user": 3, "what": "\\u001b[31m\\n"}}', b'\n{"labkit": {', b"\xff" * 2000, b"\n" + b"[" * 900])
def test_whatever_stands_in_the_file_the_waiting_line_is_one_line(lock, text):
    Path(lock).write_bytes(text)
    words = lock_wait.in_words(lock_file.holder(lock))
    assert words and words.isprintable()


def test_a_long_name_in_any_script_is_cut_and_readable(lock):
    with gpu_lock.gpu_to_yourself("\N{GRINNING FACE}" * 500):
        assert lock_file.holder(lock)["what"] == "\N{GRINNING FACE}" * 60


# ---- who takes it --------------------------------------------------------------------------------

@pytest.fixture
def measuring(monkeypatch):
    """The modules that measure, on a made-up GPU."""
    modules = {name: importlib.import_module(f"labkit.{name}") for name in ("measure", "timeline", "footprint", "recordings")}

    class Cuda:
        """Answers with success, and with the free memory that footprint() reads."""
        cudaError_t = cudaGraphExec_t = int
        free = 10 ** 6

        def cudaMemGetInfo(self):
            self.free -= 1
            return Done(0), self.free, 10 ** 7

        def __getattr__(self, name):
            return lambda *args: (Done(0),)

    class Done(int):
        name, value = "cudaSuccess", 0
    for module in modules.values():
        monkeypatch.setattr(module, "backend", ON_A_GPU)
        monkeypatch.setattr(module, "cudart", Cuda(), raising=False)
    monkeypatch.setattr(modules["recordings"], "here", lambda how="measured": None)
    return modules


def test_measure_holds_it_while_it_warms_up_and_times_and_not_in_setup(measuring, lock):
    seen = []

    def setup():
        seen.append(lock_file.holder(lock).get("what"))

    def variant(made):
        seen.append(lock_file.holder(lock).get("what"))
    measuring["measure"].measure("my cost", {"a": variant}, setup=setup, repeat=3, warmup=2)
    assert seen == [None] + ["my cost"] * 5 and is_free(lock)


def test_measure_frees_it_where_a_variant_fails(measuring, lock):
    def variant():
        raise KeyError("gone")
    with pytest.raises(LabError, match="KeyError"):
        measuring["measure"].measure("my cost", {"a": variant})
    assert is_free(lock)


def test_timeline_and_footprint_hold_it_too(measuring, lock, monkeypatch):
    seen, timeline = [], measuring["timeline"]
    monkeypatch.setattr(timeline, "empty", lambda *args: type("Stamps", (), {"ptr": 0, "nbytes": 0, "free": lambda self: None})())
    monkeypatch.setattr(timeline, "to_host", lambda stamps: timeline.np.arange(1, 5))

    def run(stamps, kernels):
        seen.append(lock_file.holder(lock).get("what"))

    def make():
        seen.append(lock_file.holder(lock).get("what"))
        return len(seen) + 1
    timeline.timeline("my gaps", {"a": run}, kernels=2)
    measuring["footprint"].footprint("my bytes", {"a": make}, count=1)
    assert seen[:5] == ["my gaps"] * 5 and len(seen) > 6 and set(seen[5:]) == {"my bytes"} and is_free(lock)


def test_the_simulator_never_waits(start, lock, monkeypatch):
    line_of(start("hold(60)"), "held")
    monkeypatch.setattr(gpu_lock, "backend", Backend("sim", "made up"))
    held = Path(lock).read_bytes()
    began = time.monotonic()
    with gpu_lock.gpu_to_yourself():
        assert time.monotonic() - began < 0.4 and Path(lock).read_bytes() == held
