"""Kernels known to the simulated program: handles, and arguments read from memory as CUDA does."""
import struct

import numpy as np

from labkit.errors import Undefined
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
    """The kernel behind a handle. Null is no function, and refused; any other number is believed."""
    if handle and handle not in world.kernels:
        raise Undefined(f"The program gives {handle:#x} as the function of a kernel.",
                        "It is no kernel's handle, and CUDA follows it wherever it points: on a GPU the process crashes here.",
                        "Set func to int(kernel.func), or let kernel_params(kernel, ...) do it.")
    return find(world.kernels, handle, "InvalidDeviceFunction")


def arguments(kernel, address):
    """The packed values of a kernel's parameters, from an array of pointers to them."""
    if not kernel.params:
        return ()
    if not address:
        raise Refused("InvalidValue")
    slots = struct.unpack(f"{len(kernel.params)}Q", host.read(address, 8 * len(kernel.params)))
    return tuple([int.from_bytes(host.read(slot, 8), "little") if param.pointer
                  else np.frombuffer(host.read(slot, param.dtype.itemsize), param.dtype)[0]
                  for slot, param in zip(slots, kernel.params)])
