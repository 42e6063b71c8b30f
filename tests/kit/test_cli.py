"""labkit lab serves the learner's copy to this machine alone; labkit doctor says what is there and what to do."""
import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from tests.kit.helpers import ROOT, project
from typer.testing import CliRunner

from labkit import cli, doctor, driver, workcopy
from labkit.driver import Driver
from labkit.errors import LabError

RUN = CliRunner()


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with one lesson. `labkit lab` starts no JupyterLab; `started` has the command lines it would have run."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/00_start.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    started = []
    monkeypatch.setattr(workcopy, "clone", lambda: tmp_path)
    monkeypatch.setattr(cli, "become", started.append)
    return SimpleNamespace(root=tmp_path, started=started)


def test_lab_fills_work_and_opens_the_first_lesson(clone):
    pytest.importorskip("jupyterlab", reason="JupyterLab comes with the lab extra")
    said = RUN.invoke(cli.app, ["lab", "--no-browser", "--port=9999"])
    assert said.exit_code == 0, said.output
    [command] = clone.started
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert command[-2:] == ["--no-browser", "--port=9999"]
    assert f"--ServerApp.root_dir={clone.root / 'work'}" in command
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start.ipynb" in command
    assert (clone.root / "work/notebooks/00_start.ipynb").is_file()
    assert "1 files are in work/" in said.output


def test_lab_the_second_time_opens_what_was_open(clone):
    pytest.importorskip("jupyterlab", reason="JupyterLab comes with the lab extra")
    RUN.invoke(cli.app, ["lab"])
    RUN.invoke(cli.app, ["lab"])
    assert "--LabApp.default_url=/lab" in clone.started[1]


def test_lab_keeps_the_token_and_stays_on_this_machine(clone):
    pytest.importorskip("jupyterlab", reason="JupyterLab comes with the lab extra")
    RUN.invoke(cli.app, ["lab"])
    [command] = clone.started
    assert "--ServerApp.ip=localhost" in command
    options = [word.split("=")[0] for word in command if word.startswith("--")]
    assert len(options) >= 3 and not any("token" in word.lower() or "password" in word.lower() for word in options)


def test_lab_says_what_it_did_with_changed_work(clone):
    RUN.invoke(cli.app, ["lab"])
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    for folder, source in (("work/notebooks", "mine"), ("notebooks", "newer")):
        (clone.root / folder / "00_start.ipynb").write_text(json.dumps({"cells": [{**cell, "source": source}]}))
    said = RUN.invoke(cli.app, ["lab"])
    assert "you changed it; the newer version is beside it, as 00_start.new.ipynb" in said.output


def test_lab_without_jupyterlab_says_what_to_install(clone, monkeypatch):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    said = RUN.invoke(cli.app, ["lab"])
    assert said.exit_code == 1 and "pip install -e .[lab]" in said.output and not clone.started


def test_lab_away_from_a_clone_says_so(monkeypatch):
    def nowhere():
        raise LabError("labkit looked for the notebooks.", "There are none.", "Clone it.")
    monkeypatch.setattr(workcopy, "clone", nowhere)
    said = RUN.invoke(cli.app, ["lab"])
    assert said.exit_code == 1 and "Clone it." in said.output and "Traceback" not in said.output


@contextlib.contextmanager
def served(work, home):
    """A JupyterLab as `labkit lab` starts it; yields (address, token)."""
    env = {**os.environ, "HOME": str(home), "JUPYTER_RUNTIME_DIR": str(home / "runtime"), "JUPYTER_CONFIG_DIR": str(home / "config")}
    command = cli.jupyter(work, ["--no-browser", "--port=0"])
    with open(home / "log", "w+", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            yield _address(server, home / "log")
        finally:
            server.terminate()
            server.wait(30)


def _address(server, log, seconds=90):
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        if found := re.search(r"(http://(?:localhost|127\.0\.0\.1):\d+)/lab\S*\?token=(\w+)", log.read_text()):
            return found.groups()
        time.sleep(0.2)
    pytest.fail("JupyterLab did not start:\n" + log.read_text())


def get(address, token=None):
    request = urllib.request.Request(address, headers={"Authorization": f"token {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_jupyterlab_serves_the_lessons_and_asks_for_the_token(clone, tmp_path, monkeypatch):
    pytest.importorskip("jupyterlab", reason="JupyterLab comes with the lab extra")
    monkeypatch.undo()                                  # a real server, on the copy made here
    workcopy.refresh(clone.root)
    home = tmp_path / "home"
    home.mkdir()
    with served(clone.root / "work", home) as (address, token):
        assert get(f"{address}/api/contents/notebooks/00_start.ipynb", token)["type"] == "notebook"
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(f"{address}/api/contents")
        assert refused.value.code == 403


def test_doctor_runs_in_a_terminal():
    done = subprocess.run([sys.executable, "-m", "labkit", "doctor"], cwd=ROOT, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    assert "labkit runs on" not in done.stdout, "the backend's own announcement is not repeated"
    for word in ("Python", "driver", "backend", "jupyterlab", *(f"lesson {p.name[:2]}" for p in (ROOT / "notebooks").glob("*.ipynb"))):
        assert word in done.stdout


def test_doctor_reports_in_a_notebook():
    lines = doctor.report().splitlines()
    assert len(lines) >= len(doctor.PACKAGES) and any("driver" in line for line in lines)


def missing(name):
    raise importlib.metadata.PackageNotFoundError(name)


@pytest.mark.parametrize("found, says", [
    (Driver(), "there is no NVIDIA driver"),
    (Driver(100, 12080), "offers none to this process"),
    (Driver(999, 12080, release="570.86"), "cuInit answers 999"),
    (Driver(0, 11080, 1, "Tesla T4", (7, 5), "520.61"), "520.61, speaks CUDA 11.8"),
    (Driver(0, 13000, 2, "NVIDIA H200", (9, 0)), "NVIDIA H200, compute capability 9.0, and 1 more"),
])
def test_doctor_says_what_to_do_about_each_lack_with_nothing_installed(monkeypatch, found, says):
    monkeypatch.setattr(driver, "ask", lambda: found)
    monkeypatch.setattr(importlib.metadata, "version", missing)
    rows = doctor.checks()
    assert says in doctor.report()
    lacks = [row for row in rows if row.state == doctor.LACK]
    assert len(lacks) >= len(doctor.PACKAGES) and all(row.todo for row in lacks)
    assert bool([row for row in rows if "cuda-bindings" in row.found]) == (found.usable and found.cuda >= 12000)


def test_doctor_repeats_what_the_backend_says_when_it_does_not_start(monkeypatch):
    def broken(name):
        raise LabError("The driver is broken.", "It does not start.", "Restart the machine.")
    monkeypatch.setattr(doctor.importlib, "import_module", broken)
    rows = {row.what: row for row in doctor.checks()}
    assert rows["backend"].state == doctor.LACK and rows["backend"].todo == "Restart the machine."


@pytest.mark.parametrize("backend, nvrtc, cupy, uses_cupy, state, says", [
    ("gpu", "12.9", "14.2", True, "ok", "for real"),
    ("gpu", "12.9", "", False, "ok", "for real"),
    ("gpu", "12.9", "", True, "lack", "CuPy"),
    ("gpu", "", "14.2", False, "lack", "NVRTC"),
    ("sim", "", "", False, "note", "on the simulator"),
    ("", "", "", False, "lack", "not at all"),
])
def test_doctor_says_which_lessons_run_for_real(tmp_path, monkeypatch, backend, nvrtc, cupy, uses_cupy, state, says):
    (tmp_path / "notebooks").mkdir()
    source = "import cupy" if uses_cupy else "pass"
    (tmp_path / "notebooks/02_capture.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": [source]}]}))
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "labkit/doctor.py"))
    [row] = doctor._lessons(backend, nvrtc, cupy)
    assert (row.what, row.state) == ("lesson 02", state) and says in row.found


def test_doctor_knows_every_package_by_a_name_that_is_installed():
    """A misspelt name would be reported as missing for ever."""
    everything = " ".join(line for extra in project()["optional-dependencies"].values() for line in extra)
    for names, *_ in doctor.PACKAGES + doctor.CUDA_PACKAGES:
        assert all(name in everything for name in names), names


@pytest.mark.parametrize("words, first", [
    (["904"], "cudaErrorStreamCaptureUnjoined (904)"), (["StreamCaptureUnjoined"], "cudaErrorStreamCaptureUnjoined (904)"),
    (["capturing", "stream", "has", "unjoined", "work"], "cudaErrorStreamCaptureUnjoined (904)"), (["no", "error"], "no error"),
    (["SIGSEGV"], "SIGSEGV")])
def test_explain_shows_the_page_of_a_code(words, first):
    said = RUN.invoke(cli.app, ["explain", *words])
    assert said.exit_code == 0, said.output
    lines = said.output.splitlines()
    assert lines[0] == first and lines[1].startswith("What it means: ") and lines[-1].startswith("Lessons: ")


@pytest.mark.parametrize("words, says", [(["StreamCaptureUnjoind"], "cudaErrorStreamCaptureUnjoined"), (["12345"], "no code of this number")])
def test_explain_of_something_else_says_what_is_near(words, says):
    said = RUN.invoke(cli.app, ["explain", *words])
    assert said.exit_code == 1 and says in said.output and "Traceback" not in said.output


def test_explain_in_a_terminal_does_not_start_the_gpu():
    done = subprocess.run([sys.executable, "-m", "labkit", "explain", "900"], cwd=ROOT, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "LABKIT_BACKEND": "gpu"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cudaErrorStreamCaptureUnsupported (900)\n"), "the page is all it prints"


def test_record_without_a_gpu_is_refused_with_the_reason(tmp_path):
    done = subprocess.run([sys.executable, "-m", "labkit", "record", str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, env={**os.environ, "LABKIT_BACKEND": "sim", "PYTHONPATH": str(ROOT)})
    assert done.returncode == 1 and "What to try" in done.stderr and "Traceback" not in done.stderr
