"""The C++ twins as Python sees them: built by nvcc, loaded with ctypes."""
import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from labkit import LabError

HERE = Path(__file__).resolve().parent
SOURCES = sorted([*HERE.glob("*.cu"), *HERE.glob("*.cuh")])
ROW, THREADS, LARGEST = 1024, 256, 8               # as in baseline.cuh: floats of a sample, threads of a block, samples at most


class Times(ctypes.Structure):
    """One round in microseconds: until ready to launch (-1 where nothing is prepared), the call, until the stream had finished."""
    _fields_ = [("prepare", ctypes.c_double), ("call", ctypes.c_double), ("end", ctypes.c_double)]


def find_nvcc():
    """(path of nvcc, its release), or LabError."""
    home = os.environ.get("CUDA_HOME")
    path = shutil.which("nvcc") or (shutil.which("nvcc", path=os.path.join(home, "bin")) if home else None)
    if not path:
        raise LabError("There is no nvcc to build the C++ twins with.", "It comes with the CUDA Toolkit, which the lessons do not need.",
                       "Install the toolkit and put its bin folder on PATH, or set CUDA_HOME.")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return path, re.search(r"V([\d.]+)|$", said)[1] or "unknown"


def build(folder, arch=None):
    """Compile the twins into `folder` for a GPU such as "sm_90" (None: what nvcc chooses) and load them: Twins. LabError where nvcc fails."""
    path = Path(folder) / "libbaseline.so"
    options = ["-O2", "-std=c++17", *([f"-arch={arch}"] if arch else []), "-shared", "-Xcompiler", "-fPIC,-Wall,-Wextra", "-o", str(path)]
    done = subprocess.run([find_nvcc()[0], *options, *(str(source) for source in SOURCES if source.suffix == ".cu")], capture_output=True, text=True)
    if done.returncode:
        raise LabError("nvcc did not build the C++ twins.", done.stderr.strip()[-800:], "Check that nvcc and the host compiler fit one another.")
    return Twins(path)


def digest(*others):
    """16 hex digits that name the text of the twins, and of these files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in [*SOURCES, *map(Path, others)])).hexdigest()[:16]


def pointer(handle):
    """A handle or a buffer as C gets it; a bare int would arrive cut to 32 bits."""
    return ctypes.c_void_p(int(handle))


class Twins:
    """The functions of the .cu files. One that fails is a LabError with the text from C++."""

    def __init__(self, path):
        self._lib = ctypes.CDLL(str(path))
        self._lib.baseline_error.restype = ctypes.c_char_p
        for prefix in ("changes", "batches"):
            getattr(self._lib, f"{prefix}_name").restype = ctypes.c_char_p
        for prefix in ("changes", "batches", "updates"):
            getattr(self._lib, f"{prefix}_free").restype = None

    def call(self, name, *args):
        """Call a function that returns 0, or 1 where it failed."""
        if getattr(self._lib, name)(*args):
            raise LabError(f"{name} failed.", self._lib.baseline_error().decode(),
                           "The toolkit must not be newer than the driver; `labkit doctor` shows the driver.")

    def timed(self, name, *args, batched=True):
        """A Python function that runs one round for a batch, and returns its Times."""
        def one_round(batch):
            times = Times()
            self.call(name, *args, *[batch] * batched, ctypes.byref(times))
            return times
        return one_round

    def names(self, prefix):
        """The names of the ways of a file, "changes" or "batches"."""
        return [getattr(self._lib, f"{prefix}_name")(way).decode() for way in range(getattr(self._lib, f"{prefix}_count")())]

    @contextlib.contextmanager
    def made(self, prefix, *args):
        """What a file works on, as C gets it, destroyed in the end."""
        made = ctypes.c_void_p()
        self.call(f"{prefix}_make", *args, ctypes.byref(made))
        try:
            yield made
        finally:
            getattr(self._lib, f"{prefix}_free")(made)

    def written(self, made, way, batch):
        """How many floats one round of a strategy writes; LabError where a value is wrong."""
        count = ctypes.c_int()
        self.call("batches_check", made, way, batch, ctypes.byref(count))
        return count.value
