"""Kernels known to the simulated program: handles, and arguments read from memory as CUDA does."""
import numpy as np

from . import host
from .world import Refused, find, world


def register(kernel):
    """The handle of a labkit Kernel; the same for the same kernel."""
    for handle, known in world.kernels.items():
        if known is kernel:
            return handle
    handle = world.handle("kernel")
    world.kernels[handle] = kernel
    return handle


def kernel_of(handle):
    return find(world.kernels, handle, "InvalidDeviceFunction")


def arguments(kernel, address):
    """The packed values of a kernel's parameters, from an array of pointers to them."""
    if not kernel.params:
        return ()
    if not address:
        raise Refused("InvalidValue")
    slots = np.frombuffer(host.read(address, 8 * len(kernel.params)), np.uint64)
    return tuple([int.from_bytes(host.read(int(slot), 8), "little") if param.pointer
                  else np.frombuffer(host.read(int(slot), param.dtype.itemsize), param.dtype)[0]
                  for slot, param in zip(slots, kernel.params)])
