"""tools/setup_env.py takes what fits the machine, says why, and starts again where it was interrupted."""
import os
import shutil
import re
import subprocess
import sys

import pytest
from tests.kit.helpers import ROOT, script

from labkit import driver
from labkit.driver import Driver

setup_env = script("tools/setup_env.py")
LINUX, ARM, WINDOWS, MAC = ("linux", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64"), ("darwin", "arm64")


def gpu(cuda, capability=(9, 0), name="NVIDIA H200", release=""):
    return Driver(0, cuda, 1, name, capability, release)


@pytest.mark.parametrize("found, wish, system, extra, why", [
    (Driver(), "auto", LINUX, None, "there is no NVIDIA driver"),
    (Driver(100, 12080), "auto", LINUX, None, "offers no GPU"),
    (Driver(0, 12080, 0), "auto", LINUX, None, "offers no GPU"),
    (Driver(999, 12080), "auto", LINUX, None, "cuInit answered 999"),
    (Driver(803, 0), "auto", LINUX, None, "cuInit answered 803"),
    (gpu(11080, release="520.61"), "auto", LINUX, None, "520.61 speaks CUDA 11.8, and CUDA 12.0 needs release 525"),
    (Driver(803, 11040), "auto", LINUX, None, "CUDA 11.4"),
    (gpu(12000, release="525.60"), "auto", LINUX, "cuda12", "CUDA 12.0 (525.60)"),
    (gpu(12080), "auto", LINUX, "cuda12", "NVIDIA H200 with a driver for CUDA 12.8"),
    (gpu(13000), "auto", LINUX, "cuda12", "CUDA 13.0"),
    (gpu(12080), "auto", ARM, "cuda12", ""),
    (gpu(12080), "auto", WINDOWS, "cuda12", ""),
    (gpu(12080), "auto", ("linux", "ppc64le"), None, "no packages for linux ppc64le"),
    (Driver(), "auto", MAC, None, "no packages for darwin arm64"),
    (gpu(12080, (3, 5), "Tesla K40"), "auto", LINUX, None, "Tesla K40 has compute capability 3.5, and CUDA 12 needs 5.0"),
    (gpu(12080), "12", LINUX, "cuda12", ""),
    (gpu(13000), "12", LINUX, "cuda12", ""),
    (gpu(13000), "13", LINUX, "cuda13", "the CUDA 13 packages"),
    (gpu(13010, (7, 5), "Tesla T4"), "13", LINUX, "cuda13", "Tesla T4"),
    (gpu(13000), "none", LINUX, None, "as CUDA=none asks"),
    (Driver(999), "none", LINUX, None, "as CUDA=none asks"),
])
def test_it_takes_what_fits_and_says_why(found, wish, system, extra, why):
    choice = setup_env.choose(found, wish, system)
    assert choice.extra == extra
    assert why in choice.why and "\n" not in choice.why
    assert ("simulator" in choice.why) == (extra is None)


@pytest.mark.parametrize("found, wish, says", [
    (gpu(12080, release="570.86"), "13", "570.86 speaks CUDA 12.8, and CUDA 13.0 needs release 580.*Without CUDA=13 the CUDA 12 packages fit"),
    (gpu(13000, (7, 0), "Tesla V100"), "13", "Tesla V100 has compute capability 7.0.*the CUDA 12 packages fit"),
    (gpu(11080), "13", "needs release 580.*on the simulator"),
    (gpu(11080), "12", "needs release 525.*on the simulator"),
    (Driver(), "12", "there is no NVIDIA driver.*on the simulator"),
    (Driver(), "13", "there is no NVIDIA driver.*on the simulator"),
    (Driver(999, 13000), "13", "cuInit answered 999"),
    (gpu(13000), "11", "it is auto, 12, 13 or none"),
])
def test_what_was_asked_for_by_name_and_does_not_fit_is_refused(found, wish, says):
    with pytest.raises(setup_env.CannotSetUp, match=says):
        setup_env.choose(found, wish, LINUX)


class Library:
    """A libcuda that answers as told; byref objects carry their target in _obj."""

    def __init__(self, init=0, version=12080, count=1):
        self.init, self.version, self.count = init, version, count

    def cuInit(self, flags):
        return self.init

    def cuDriverGetVersion(self, to):
        to._obj.value = self.version
        return 0

    def cuDeviceGetCount(self, to):
        to._obj.value = self.count
        return 0

    def cuDeviceGetName(self, to, size, device):
        to.value = b"NVIDIA H200"
        return 0

    def cuDeviceGetAttribute(self, to, attribute, device):
        to._obj.value = {75: 9, 76: 0}[attribute]
        return 0


@pytest.mark.parametrize("library, code, usable, broken", [
    (None, None, False, False), (Library(), 0, True, False), (Library(init=100), 100, False, False),
    (Library(count=0), 0, False, False), (Library(init=999), 999, False, True), (Library(init=34), 34, False, True)])
def test_the_driver_is_asked_without_a_package(monkeypatch, library, code, usable, broken):
    monkeypatch.setattr(driver, "_library", lambda: library)
    found = driver.ask()
    assert (found.code, found.usable, found.broken) == (code, usable, broken)
    if usable:
        assert (found.name, found.capability, found.speaks) == ("NVIDIA H200", (9, 0), "12.8")


@pytest.mark.parametrize("inside, asked, extras, afresh", [
    ([], ["lab"], ["lab"], False),
    (["lab"], ["lab", "dev", "nvrtc"], ["dev", "lab", "nvrtc"], False),
    (["dev", "lab", "nvrtc"], ["lab"], ["dev", "lab", "nvrtc"], False),
    (["dev", "lab", "nvrtc"], ["lab", "cuda12"], ["cuda12", "dev", "lab", "nvrtc"], False),
    (["dev", "lab", "nvrtc"], ["lab", "cuda13"], ["cuda13", "dev", "lab"], True),
    (["lab", "cuda12"], ["lab", "cuda13"], ["cuda13", "lab"], True),
    (["lab", "cuda13"], ["lab"], ["lab"], True),
    (["cuda13", "dev", "lab"], ["lab", "cuda12"], ["cuda12", "dev", "lab"], True),
])
def test_extras_add_up_and_the_cuda_lines_never_mix(inside, asked, extras, afresh):
    assert setup_env.wanted(inside, asked) == (extras, afresh)


class Steps:
    """Stands for the child processes: `venv` makes a folder with a Python, `pip` can be interrupted."""

    def __init__(self, monkeypatch, folder):
        self.did, self.interrupt, self.folder = [], None, folder
        monkeypatch.setattr(setup_env, "_run", self.run)
        monkeypatch.setattr(setup_env.Environment, "works", lambda env: os.path.exists(env.python))
        monkeypatch.setattr(driver, "ask", Driver)

    def run(self, command, what):
        step = command[2]
        if step == "venv":
            python = setup_env.Environment(self.folder).python
            os.makedirs(os.path.dirname(python))
            open(python, "w").close()
        if step == self.interrupt:
            raise KeyboardInterrupt
        self.did.append(step)

    def __call__(self, *extras, nvrtc=False, wish="none"):
        self.did = []
        setup_env.set_up(self.folder, extras or ["lab"], nvrtc, wish, say=lambda line: None)
        return self.did


@pytest.fixture
def steps(monkeypatch, tmp_path):
    return Steps(monkeypatch, str(tmp_path / "env"))


def test_what_is_up_to_date_is_left_alone(steps):
    assert steps() == ["venv", "pip"]
    assert steps() == []


def test_another_extra_is_added_to_what_is_there(steps):
    steps("lab")
    assert steps("lab", "dev") == ["pip"]
    assert steps("lab") == []


def test_a_changed_pin_installs_again(steps, monkeypatch):
    steps()
    monkeypatch.setattr(setup_env, "digest", lambda extras: "other pins")
    assert steps() == ["pip"]


@pytest.mark.parametrize("step", ["venv", "pip"])
def test_an_interrupted_set_up_starts_again_from_nothing(steps, step):
    steps.interrupt = step
    with pytest.raises(KeyboardInterrupt):
        steps()
    steps.interrupt = None
    assert steps() == ["venv", "pip"]
    assert steps() == []


def test_an_interrupted_addition_starts_again_from_nothing(steps):
    steps("lab")
    steps.interrupt = "pip"
    with pytest.raises(KeyboardInterrupt):
        steps("lab", "dev")
    steps.interrupt = None
    assert steps("lab", "dev") == ["venv", "pip"]


def test_an_environment_whose_python_is_gone_is_made_again(steps):
    steps()
    os.remove(setup_env.Environment(steps.folder).python)
    assert steps() == ["venv", "pip"]


def test_a_folder_it_did_not_make_is_not_touched(steps):
    os.makedirs(steps.folder)
    with open(os.path.join(steps.folder, "mine"), "w") as f:
        f.write("precious")
    with pytest.raises(setup_env.CannotSetUp, match="did not make it"):
        steps()
    assert os.listdir(steps.folder) == ["mine"]


@pytest.mark.parametrize("version, missing, on_path, says", [
    ((3, 9, 2), [], [], "Python 3.9.*sudo apt install python3 python3-venv"),
    ((3, 10, 12), [], ["python3.12"], "PYTHON=python3.12"),
    ((3, 11, 2), ["ensurepip"], [], r"sudo apt install python3-venv"),
    ((3, 12, 3), ["venv"], [], r"python3\.12-venv"),
])
def test_a_python_that_cannot_is_told_apart(version, missing, on_path, says):
    with pytest.raises(setup_env.CannotSetUp, match=f"(?s){says}"):
        setup_env.check_python(version, which=lambda name: name in on_path, has=lambda name: name not in missing)


def test_a_python_that_can_passes():
    setup_env.check_python((3, 11, 0), which=lambda name: None, has=lambda name: True)


needs_make = pytest.mark.skipif(not shutil.which("make") or os.name == "nt", reason="there is no make here")


def make(*arguments, **env):
    """A make that nothing of an outer one reaches."""
    clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PY", "CUDA", "PYTHON")}
    return subprocess.run(["make", *arguments], cwd=ROOT, env={**clean, **env}, capture_output=True, text=True, timeout=60)


@needs_make
def test_make_names_the_package_where_venv_is_missing(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['ensurepip'] = None\n")
    said = make("venv", f"PYTHON={sys.executable}", PYTHONPATH=str(tmp_path))
    assert said.returncode and "sudo apt install python3-venv" in said.stderr
    assert "Traceback" not in said.stderr


@needs_make
def test_make_names_the_package_where_python_is_missing():
    said = make("lab", "PYTHON=no-such-python")
    assert said.returncode and "sudo apt install python3 python3-venv" in said.stderr


@needs_make
@pytest.mark.parametrize("arguments, does, does_not", [
    (["venv"], ["tools/setup_env.py", "--extras lab"], ["labkit lab", "pytest"]),
    (["venv", "CUDA=13"], ['--cuda "13"'], []),
    (["lab", "LAB_ARGS=--no-browser"], ["tools/setup_env.py", "-m labkit lab --no-browser"], ["pytest"]),
    (["test"], ["tools/setup_env.py", "--extras lab,dev --nvrtc", ".venv/bin/python -m pytest --nbval-lax --nbval-current-env "
                "-n2 --dist loadfile --ignore=tests/classroom tests notebooks"], []),
    (["test-classroom"], ["--extras lab,dev,classroom --nvrtc", "-m pytest -n2 --dist loadfile tests/classroom"], ["tests notebooks"]),
    (["test", "PY=python9"], ["python9 -m pytest --nbval-lax", "tests notebooks"], ["setup_env.py", ".venv/bin"]),
])
def test_make_says_what_it_would_do(arguments, does, does_not):
    said = make("-n", *arguments)
    assert said.returncode == 0, said.stderr
    assert all(part in said.stdout for part in does), said.stdout
    assert not any(part in said.stdout for part in does_not), said.stdout


def test_ci_runs_the_readmes_commands():
    """make test last, so that its summary ends the log; before it nothing but the sandbox that the classroom's tests need."""
    lines = [line for line in (ROOT / ".ci/run").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "set -eu" and lines[-2:] == ["make test-classroom", "make test"]
    assert {word for line in lines[1:-2] for word in re.findall(r"\w*install \S.*|update", line)} == {"update", "install -y -qq bubblewrap"}
