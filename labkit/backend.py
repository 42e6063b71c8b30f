"""GPU or simulator, chosen once and said aloud.

`cudart` is `cuda.bindings.runtime` itself on a machine with a GPU and the CUDA bindings, and
`labkit.sim.runtime` elsewhere. LABKIT_BACKEND decides: auto (the default), gpu, sim.
`cuuint64_t` is the number type that some of its calls want, from `cuda.bindings.driver` or from the simulator.
"""
import importlib.util
import os
from typing import NamedTuple

from labkit import driver
from labkit.errors import CATALOGUE, LabError

OLDEST_DRIVER = 12000          # cuDriverGetVersion of release 525, the first that runs the CUDA 12 line


class Backend(NamedTuple):
    """name: "gpu" or "sim". reason: why, as one clause."""
    name: str
    reason: str

    def __str__(self):
        what = "your GPU" if self.name == "gpu" else "the capture simulator"
        return f"labkit runs on {what}: {self.reason}."


class Unusable(Exception):
    """No GPU to use here, for an ordinary reason: the simulator is the right choice."""


def _usable_driver():
    """The Driver of this machine; Unusable where there is none, no GPU or an old one, LabError where it is broken."""
    asked = driver.ask()
    if asked.code is None:
        raise Unusable("there is no NVIDIA driver on this machine")
    if 0 < asked.cuda < OLDEST_DRIVER:
        raise Unusable(f"the NVIDIA driver speaks CUDA {asked.speaks}, and this kit needs 12.0 (release 525) or newer")
    if asked.broken:
        raise LabError(f"The NVIDIA driver is here but does not start: cuInit answered {asked.code}.",
                       CATALOGUE.get(asked.code, ("The driver gives no better reason.",))[0],
                       "Check nvidia-smi; to work without the GPU set LABKIT_BACKEND=sim and restart the kernel.")
    if not asked.usable:
        raise Unusable("the NVIDIA driver offers no GPU to this process")
    return asked


def _gpu():
    """The bindings and the driver's version, or Unusable, or LabError."""
    try:
        found = importlib.util.find_spec("cuda.bindings.runtime")
    except ModuleNotFoundError:
        found = None
    asked = _usable_driver()
    if not found:
        raise Unusable("the CUDA bindings are not installed (make venv installs them)")
    from cuda.bindings import runtime
    code = runtime.cudaGetDeviceCount()[0]
    if int(code):
        needs = runtime.cudaRuntimeGetVersion()[1]
        raise LabError(f"The CUDA {driver.dotted(needs)} runtime does not start on a driver for CUDA {asked.speaks}.", CATALOGUE.get(int(code), ("It gives no reason.", ""))[0],
                       "Run `make venv` without CUDA=13, update the driver, or set LABKIT_BACKEND=sim.", code)
    runtime.cudaSetDevice(0)   # makes the context now, so that no capture has to
    return runtime, asked


def choose(wish):
    """(cudart module, Backend) for a value of LABKIT_BACKEND. Raises LabError for an unknown one."""
    if wish not in ("auto", "gpu", "sim"):
        raise LabError(f"LABKIT_BACKEND is {wish!r}.", "labkit knows auto, gpu and sim.",
                       "Set LABKIT_BACKEND to one of these, or unset it, and restart the kernel.")
    reason = "LABKIT_BACKEND=sim asks for it"
    if wish != "sim":
        try:
            runtime, asked = _gpu()
            return runtime, Backend("gpu", f"{asked.name}, driver for CUDA {asked.speaks}")
        except Unusable as no:
            if wish == "gpu":
                raise LabError("LABKIT_BACKEND=gpu asks for a GPU, and there is none to use.", f"{no}.",
                               "Run `labkit doctor`, or set LABKIT_BACKEND=auto and restart the kernel.") from None
            reason = str(no)
    from labkit.sim import runtime
    return runtime, Backend("sim", reason)


cudart, backend = choose(os.environ.get("LABKIT_BACKEND", "auto") or "auto")
if backend.name == "gpu":
    from cuda.bindings.driver import cuuint64_t
else:
    from labkit.sim.values import cuuint64_t
print(backend)
