"""Host memory as bytes at an address, without crashing where there is none.

On Linux the kernel copies (/proc/self/mem) and reports an address that no longer exists; elsewhere
`ctypes` copies, and such an address ends the process, as it would with CUDA.
"""
import ctypes
import os

from labkit.errors import Undefined

_open = {}      # process id -> file descriptor; a forked child must open its own


def _memory():
    pid = os.getpid()
    if pid not in _open:
        try:
            _open[pid] = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            _open[pid] = None
    return _open[pid]


def _gone(address):
    return Undefined(f"Queued work uses host memory at {address:#x}.",
                     "That memory no longer exists: a graph keeps the address of a host buffer, not the buffer.",
                     "Keep the array alive as long as the graph that copies from or to it.")


def read(address, count):
    """`count` bytes of host memory at `address`. Raises Undefined where there is no memory."""
    file = _memory()
    if file is None:
        return ctypes.string_at(address, count)
    try:
        found = os.pread(file, count, address)
        while len(found) < count:
            more = os.pread(file, count - len(found), address + len(found))
            if not more:
                raise _gone(address)
            found += more
    except (OSError, OverflowError):
        raise _gone(address) from None
    return found


def write(address, data):
    """Copy `data` (a buffer of bytes) to host memory at `address`. Raises Undefined."""
    file, data = _memory(), memoryview(data).cast("B")
    if file is None:
        ctypes.memmove(address, bytes(data), len(data))
        return
    done = 0
    try:
        while done < len(data):
            done += os.pwrite(file, data[done:], address + done)
    except (OSError, OverflowError):
        raise _gone(address) from None
