"""The file behind gpu_to_yourself(): where it is, how every user of the machine can open it, and what stands in it.

LABKIT_LOCK names it; without that it is labkit.lock in /tmp, or in the temporary folder where there is no /tmp. The GPU's uuid is
added, so that two GPUs have two locks. Nothing planted there is followed or overwritten. Byte 0 is what Windows locks and
then lets nobody read; after it comes, as JSON, who holds the lock. Not here: locking (the library filelock does) and waiting (lock_wait.py).
"""
import contextlib
import functools
import json
import os
import stat
import tempfile
import time

from labkit.backend import cudart
from labkit.errors import LabError

SIZE = 1000                               # bytes that the text fills
OURS = b'{"labkit": '                     # what it begins with; nothing is written into any other file
_SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def place():
    """The path for the GPU that is current."""
    # Not TMPDIR: it may differ from user to user, and then nobody would wait for anybody.
    path = os.environ.get("LABKIT_LOCK") or os.path.join("/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir(), "labkit.lock")
    return f"{os.path.abspath(os.path.expanduser(path))}.{_gpu()}"


def _gpu():
    """"gpu-<uuid>", or "gpu" where the GPU does not tell. Stands for: CUDA Runtime API, cudaGetDeviceProperties."""
    code, device = cudart.cudaGetDevice()
    return _name(int(device)) if not int(code) else "gpu"


@functools.lru_cache
def _name(device):
    code, found = cudart.cudaGetDeviceProperties(device)
    found = getattr(found, "uuid", None) if not int(code) else None
    return f"gpu-{found.bytes.hex()}" if found else "gpu"


def opened(path):
    """A descriptor of the file, which is made where it is missing, for everybody whatever the umask. LabError where that can't be."""
    reason = "others make and delete it all the time"
    for _ in range(20):
        try:
            # Never O_CREAT for a file that is there: in a sticky folder Linux may refuse it where the file is another user's, even to root.
            fd = os.open(path, os.O_RDWR | _SAFE)
        except FileNotFoundError:
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o666)
            except FileExistsError:       # somebody was quicker
                continue
            except OSError as error:
                raise _no_use(path, f"it can't be made there ({error.strerror})") from None
            with contextlib.suppress(AttributeError, OSError):      # Windows has no modes
                os.fchmod(fd, 0o666)
        except PermissionError as error:  # perhaps made just now, and open to all in a moment
            reason = error.strerror
            time.sleep(0.025)
            continue
        except OSError as error:
            raise _no_use(path, "it is a link" if os.path.islink(path) else error.strerror) from None
        if why := _foreign(fd, path):
            os.close(fd)
            raise _no_use(path, why)
        return fd
    raise _no_use(path, "it is a link" if os.path.islink(path) else reason)


def _foreign(fd, path):
    """Why this is no file of ours, or ""."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or os.path.islink(path):
        return "it is a link, or no plain file"
    return "it holds something that is not labkit's" if found.st_size and not _text(fd).startswith(OURS) else ""


def _no_use(path, why):
    return LabError(f"The lock for the GPU, {path}, can't be used: {why}.",
                    "Who measures locks this file, so that neighbours on one GPU do not disturb each other's figures.",
                    "Set LABKIT_LOCK to a file in a folder where all who share the GPU may write, the same file for all.")


def is_at(path, fd):
    """Whether the path still leads to this open file."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


# ---- who holds it ------------------------------------------------------------------------------

def _text(fd):
    os.lseek(fd, 1, os.SEEK_SET)
    return os.read(fd, SIZE)


def write(fd, holder):
    """Write who holds the lock, a dict of plain values; {} for nobody."""
    text = b"\n" + OURS + json.dumps(holder).encode() + b"}"
    with contextlib.suppress(OSError):    # a full disk: then it stays unsaid
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, text.ljust(SIZE))


def holder(path):
    """What the holder wrote, a dict, or {} where that can't be read. It comes from another user, so it may be anything."""
    try:
        fd = os.open(path, os.O_RDONLY | _SAFE)
        try:
            found = json.loads(_text(fd))["labkit"]
        finally:
            os.close(fd)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
