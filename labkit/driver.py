"""What the NVIDIA driver of this machine says about itself, asked without any package.

Standard library only: the set-up asks before anything is installed. Starts the driver (cuInit) but
makes no context. Not here: whether labkit runs on it (backend.py) and what to install (tools/setup_env.py).
"""
import ctypes
import pathlib
import subprocess
import sys
from typing import NamedTuple

OLDEST = 12000                 # cuDriverGetVersion of release 525, the first that runs the CUDA 12 line
NO_DEVICE = 100                # CUDA_ERROR_NO_DEVICE
LIBRARIES = {"win32": ["nvcuda.dll"], "darwin": []}
NAMES = ["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"]
_MAJOR, _MINOR = 75, 76        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class Driver(NamedTuple):
    """code: what cuInit answered, None where there is no driver at all. cuda: as CUDA counts (12080 is 12.8).

    devices: GPUs this process may use. name, capability: of the first. release: such as "570.86.15", "" if unknown.
    """
    code: int | None = None
    cuda: int = 0
    devices: int = 0
    name: str = ""
    capability: tuple = (0, 0)
    release: str = ""

    @property
    def speaks(self):
        """The newest CUDA this driver runs, "12.8"."""
        return dotted(self.cuda)

    @property
    def usable(self):
        """True where the driver starts and offers a GPU."""
        return self.code == 0 and self.devices > 0

    @property
    def broken(self):
        """True where a driver is installed and does not start, for another reason than having no GPU."""
        return self.code not in (None, 0, NO_DEVICE)


def dotted(version):
    """12080 -> "12.8"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _library():
    for name in LIBRARIES.get(sys.platform, NAMES):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _release():
    """The release number of the driver; empty where nobody tells."""
    kernel_module = pathlib.Path("/sys/module/nvidia/version")
    try:
        return kernel_module.read_text().strip()
    except OSError:
        pass
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.split("\n")[0].strip() if said.returncode == 0 else ""


def ask():
    """The Driver of this machine. Raises nothing.

    Stands for: CUDA Driver API, Initialization, Version Management, Device Management.
    """
    lib = _library()
    if lib is None:
        return Driver()
    version, count, value = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    lib.cuDriverGetVersion(ctypes.byref(version))
    code = lib.cuInit(0) or lib.cuDeviceGetCount(ctypes.byref(count))
    if code or not count.value:
        return Driver(code, version.value, release=_release())
    name = ctypes.create_string_buffer(256)
    lib.cuDeviceGetName(name, 256, 0)
    capability = []
    for attribute in (_MAJOR, _MINOR):
        lib.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0)
        capability.append(value.value)
    return Driver(0, version.value, count.value, name.value.decode(), tuple(capability), _release())
