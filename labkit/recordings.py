"""Figures with a place and a date: where a number was measured, and where recorded ones are kept.

A recording belongs to one experiment, its parameters and the *text* of the code that was timed.
Change a line of that code and there is no recording for it any more; labkit says so instead of
showing another program's figure. One JSON file an experiment, in labkit/data/measurements, timelines
and footprints. Written by measure(), timeline() and footprint() on a GPU, with LABKIT_RECORD=<folder>.
"""
import datetime
import json
import os
import platform
import re
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from labkit import driver
from labkit.backend import backend, cudart
from labkit.digest import digest
from labkit.errors import LabError, ok

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Provenance:
    """Where, with what and when; `how` is "measured" or "recorded"."""
    gpu: str
    driver: str
    cuda: str
    bindings: str
    python: str
    date: str
    how: str = "measured"

    def __str__(self):
        return f"{self.gpu} · driver {self.driver} · runtime {self.cuda} · {self.date} · {self.how}"


def here(how="measured"):
    """Provenance of this machine and moment. Needs a GPU. Stands for: cudaGetDeviceProperties, cudaRuntimeGetVersion."""
    return Provenance(*_machine(), datetime.date.today().isoformat(), how)


@lru_cache
def _machine():
    """(GPU, driver, CUDA, bindings, Python), asked once: nvidia-smi takes a while, and a capture may be open later."""
    properties = ok(cudart.cudaGetDeviceProperties(ok(cudart.cudaGetDevice())))
    gpu = properties.name.decode() if isinstance(properties.name, bytes) else str(properties.name)
    from importlib import metadata      # slow to import, and needed on a GPU only
    try:
        bindings = metadata.version("cuda-bindings")
    except metadata.PackageNotFoundError:
        bindings = "unknown"
    return gpu.strip("\0 "), _driver(), driver.dotted(ok(cudart.cudaRuntimeGetVersion())), bindings, platform.python_version()


def _driver():
    """The driver's release ("580.159.04"), or the newest CUDA it speaks where no release can be read."""
    asked = driver.ask()
    return asked.release or f"for CUDA {asked.speaks}"


def digest_if_needed(roles, note=""):
    """The digest where a recording is looked up or written; None on a GPU that only measures."""
    return digest(roles, note) if backend.name != "gpu" or os.environ.get("LABKIT_RECORD") else None


# ---- the files --------------------------------------------------------------------------------

def plain(params):
    """`params` as JSON holds them. Raises LabError for anything but numbers, strings, booleans and None."""
    out = {}
    for name, value in params.items():
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) not in (int, float, str, bool, type(None)):
            raise LabError(f"The parameter {name} is a {type(value).__name__}.",
                           "Parameters name a recording, so they are numbers, strings, booleans or None.",
                           f"Build the {type(value).__name__} in setup(**params), from plain parameters.")
        out[name] = value
    return out


def slug(experiment):
    """The file name of an experiment: "Launch cost" -> "launch-cost"."""
    return re.sub(r"[^a-z0-9]+", "-", experiment.lower()).strip("-")


def same(params, others):
    """Whether these are the same parameters; True is not 1 here."""
    return json.dumps(params, sort_keys=True) == json.dumps(others, sort_keys=True)


def entries(kind, experiment):
    """All that is recorded of an experiment, a list. kind: "measurements", "timelines" or "footprints"."""
    file = DATA / kind / f"{slug(experiment)}.json"
    return json.loads(file.read_text(encoding="utf-8"))["entries"] if file.exists() else []


def experiments(kind):
    """The names of the recorded experiments, in order."""
    return sorted(json.loads(file.read_text(encoding="utf-8"))["experiment"] for file in (DATA / kind).glob("*.json"))


def find(kind, experiment, params, key):
    """The entry recorded for exactly this code and these parameters, or None."""
    return next((e for e in entries(kind, experiment) if same(e["params"], params) and e["digest"] == key), None)


def save_if_asked(kind, experiment, params, key, provenance, **figures):
    """With LABKIT_RECORD=<folder>, save() the figures there."""
    if os.environ.get("LABKIT_RECORD"):
        save(os.environ["LABKIT_RECORD"], kind, experiment, params, key, provenance, **figures)


def save(folder, kind, experiment, params, key, provenance, **figures):
    """Write the figures into `folder`, in place of those for the same code and parameters."""
    folder = Path(folder) / kind
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{slug(experiment)}.json"
    old = json.loads(file.read_text(encoding="utf-8"))["entries"] if file.exists() else []
    entry = {"params": params, "digest": key, "provenance": {**asdict(provenance), "how": "recorded"}, **figures}
    kept = [e for e in old if e["digest"] != key or not same(e["params"], params)]
    text = json.dumps({"experiment": experiment, "entries": sorted(kept + [entry], key=_order)},
                      indent=2, sort_keys=True, ensure_ascii=False)
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)   # numbers on one line
    half = file.with_suffix(".tmp")     # an interrupt leaves the old file or the new one, never half of one
    half.write_text(text + "\n", encoding="utf-8", newline="\n")
    half.replace(file)


def _order(entry):
    """Parameters by size, not by spelling: 2 before 10."""
    def rank(value):
        return (0, value, "") if isinstance(value, (int, float)) else (1, 0, str(value))
    return [(name, rank(value)) for name, value in sorted(entry["params"].items())], entry["digest"]
