"""The bytes that running work reads and writes, on the device and the host.

A call that is wrong about an address is refused (memory.py); work that is wrong is undefined, and raises Undefined.
"""
import numpy as np

from labkit.errors import Undefined
from . import host, memory
from .world import Refused, world

NULL = 4096         # bytes from address 0 on that are nobody's, ever


def touch(address, count, what):
    """The bytes [address, address+count) of a live block, for running work (a uint8 view).

    Raises Undefined: no live range there, or past its end. A null pointer breaks the context, as on a GPU.
    """
    if address < NULL:
        world.broken = "IllegalAddress"
        raise Refused(world.broken)
    block = memory.memory().live_at(address)
    if block is None or not block.live:
        in_a_graph = memory.GRAPHS <= address < memory.LAST
        raise Undefined(f"{what} touches device memory at {address:#x}.",
                        "No live allocation is there: " + ("graph memory is there only between its launch and its free." if in_a_graph
                                                           else "it was freed, or never allocated. On a GPU the value would be luck."),
                        "Keep the buffer alive as long as work or graphs use it; a graph keeps addresses, not owners.")
    at = address - block.start
    if at + count > block.size:
        raise Undefined(f"{what} touches {count} bytes at {address:#x}.",
                        f"The allocation there ends after {max(block.size - at, 0)} bytes; past the end CUDA promises nothing.",
                        "Check the number of elements and the bound in the kernel (if (i < n)).")
    return block.data[at:at + count]


def read(address, count, what="A copy"):
    """Bytes at an address, on the device or the host, for running work."""
    block = memory.memory().live_at(address)
    if block is not None or memory.FIRST <= address < memory.LAST:
        return touch(address, count, what)
    return np.frombuffer(host.read(address, count), np.uint8)


def write(address, data, what="A copy"):
    """Put bytes at an address, on the device or the host, for running work."""
    block = memory.memory().live_at(address)
    if block is not None or memory.FIRST <= address < memory.LAST:
        touch(address, len(data), what)[:] = data
    else:
        host.write(address, np.ascontiguousarray(data))
