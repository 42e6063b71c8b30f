"""What the judges of memory ask: the counter of graph memory, where a node's block lies, whether it is taken, what is copied. And pinned memory."""
import contextlib
import ctypes

import numpy as np

from labkit.backend import cudart
from labkit.errors import ok
from labkit.labs.calls import captures, number
from labkit.labs.listening import listening
from labkit.update import launched

MIB = 2 ** 20
_COPIES = {"cudaMemcpyAsync": 0, "cudaGraphAddMemcpyNode1D": 3}         # where target, source and bytes begin


def used():
    """Bytes of graph memory in use on this device once all work is done and free pages are given back."""
    ok(cudart.cudaDeviceSynchronize())
    ok(cudart.cudaDeviceGraphMemTrim(0))
    return now()


def now():
    """The same counter, as it stands."""
    return int(ok(cudart.cudaDeviceGetGraphMemAttribute(0, cudart.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent)))


def taken(node):
    """(bytes, address) of a MemAlloc node."""
    params = ok(cudart.cudaGraphMemAllocNodeGetParams(node))
    return int(params.bytesize), int(params.dptr)


def given_back(node):
    """The address that a MemFree node frees."""
    return int(ok(cudart.cudaGraphMemFreeNodeGetParams(node)))


def captured(t, work):
    """(graph, what work() returned): the judge's own capture on t.stream. The Try destroys the graph."""
    ok(cudart.cudaStreamBeginCapture(t.stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    answer = work()
    return t.own(ok(cudart.cudaStreamEndCapture(t.stream))), answer


def argument(t, node, position, name, address, which):
    """Trouble unless the kernel got this address as an argument."""
    found = launched(node)
    t.want(int(found.args[position]) == address, f"{name} of {found.kernel.name} is {which}", "another address")


def not_taken(t, *addresses):
    """Trouble where a graph's block is allocated already. It is freed then: to instantiate its graph would not be defined."""
    held = [address for address in addresses if not int(cudart.cudaFreeAsync(address, t.stream)[0])]
    ok(cudart.cudaStreamSynchronize(t.stream))
    t.want(not held, "a graph that was captured and not launched: its block is not allocated yet", "the block is allocated; your function has launched the graph")


@contextlib.contextmanager
def copies(answer):
    """[(to, from, bytes)] of the copies that the answer puts into a graph meanwhile. Of a Memcpy node nothing can be read back."""
    made = []

    def heard(name, call, given):
        answered, first = call(), _COPIES[name]
        if not int(answered[0]) and (first or captures(given[-1])):
            made.append([number(one) for one in given[first:first + 3]])
        return answered
    with listening(_COPIES, heard, answer):
        yield made


class HostMemory:
    """A piece of pinned memory: .ptr, and free(), as the Try wants it to take it down."""

    def __init__(self, size):
        self.size, self.ptr = size, int(ok(cudart.cudaMallocHost(4 * size)))

    def view(self):
        return np.frombuffer((ctypes.c_float * self.size).from_address(self.ptr), np.float32)

    def free(self):
        ok(cudart.cudaFreeHost(self.ptr))
