"""Device buffers to and from NumPy.

    y = to_device(np.arange(4, dtype=np.float32))
    to_host(y, stream)                                  # waits for `stream`, then copies back

A buffer lives until `free()` or the end of the process. It is never freed behind your back: a
graph keeps addresses, not owners, and a free in the middle of a capture would break it.
"""
import numpy as np

from labkit.backend import cudart
from labkit.errors import LabError, ok
from labkit.keep_alive import drain


class DeviceArray:
    """One-dimensional memory on the GPU: .ptr (address, int), .size (elements), .dtype, .nbytes.

    CuPy and PyTorch see it without a copy: cupy.asarray(buf), torch.as_tensor(buf, device="cuda").
    """

    frees = 0                                              # how many buffers were freed so far, in all

    def __init__(self, ptr, size, dtype):
        self._ptr, self.size, self.dtype = ptr, size, np.dtype(dtype)
        self.nbytes = size * self.dtype.itemsize

    @property
    def ptr(self):
        """The device address. Raises LabError once the buffer is freed."""
        if self._ptr is None:
            raise LabError(f"A freed buffer of {self.size} {self.dtype} was used.", "Its memory may belong to someone else by now.",
                           "Allocate again with empty() or to_device(), and capture again: a graph keeps the old address.")
        return self._ptr

    def __int__(self):
        return self.ptr

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.size,), "typestr": self.dtype.str, "data": (self.ptr, False), "version": 3}

    def free(self):
        """Give the memory back. Raises LabError when it was freed before, or when a capture forbids it."""
        ok(cudart.cudaFree(self.ptr))
        self._ptr = None
        DeviceArray.frees += 1

    def __repr__(self):
        return f"DeviceArray({self.size} x {self.dtype}, {'freed' if self._ptr is None else hex(self._ptr)})"


def empty(size, dtype=np.float32):
    """A buffer of `size` elements whose contents are not set. Stands for: cudaMalloc."""
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size <= 0:
        raise LabError(f"empty() got the size {size!r:.40}.", "A buffer has a whole number of elements, at least one.",
                       "Pass the count of elements, not of bytes.")
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "biufc" or not dtype.isnative or size * dtype.itemsize >= 2 ** 63:
        raise LabError(f"empty() got {size} elements of {dtype}.", "The GPU holds numbers, in its own byte order, and fewer than 2**63 bytes.",
                       "Use a number type, such as np.float32, and a smaller size.")
    nbytes = int(size) * dtype.itemsize
    answer = cudart.cudaMalloc(nbytes)
    if int(answer[0]) in (0, 2):                           # done, or out of memory: either way no capture forbids frees here
        dropped = drain()
        if dropped and int(answer[0]):
            answer = cudart.cudaMalloc(nbytes)
    return DeviceArray(ok(answer), int(size), dtype)


def to_device(array):
    """A new buffer with the contents of a NumPy array (flattened). Stands for: cudaMalloc, cudaMemcpy."""
    try:
        array = np.ascontiguousarray(array).reshape(-1)
    except ValueError as no:
        raise LabError("to_device() got rows of unequal length.", f"NumPy says: {no}.", "Pass an array of one shape.") from None
    if array.dtype.kind not in "biufc":
        raise LabError(f"to_device() got an array of {array.dtype}.", "The GPU holds numbers.", "Pass an array of numbers.")
    buffer = empty(array.size, array.dtype)
    copy_in(buffer, array)
    return buffer


def copy_in(buffer, array):
    """Overwrite a buffer with a NumPy array of the same dtype and size. Stands for: cudaMemcpy."""
    if not isinstance(buffer, DeviceArray):
        raise LabError(f"copy_in() got {type(buffer).__name__} to copy into.", "It fills a buffer that empty() or to_device() made.", "Pass the buffer first, then the array.")
    array = np.ascontiguousarray(array).reshape(-1)
    if array.dtype != buffer.dtype or array.size != buffer.size:
        raise LabError(f"{array.size} x {array.dtype} was to be copied into {buffer!r}.", "dtype and size must be the same.",
                       f"Pass {buffer.size} elements of {buffer.dtype}.")
    ok(cudart.cudaMemcpy(buffer.ptr, array.ctypes.data, array.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice))


def to_host(buffer, stream=None):
    """The contents as a NumPy array. With `stream`, waits for its work first.

    Without `stream` the copy does not wait for non-blocking streams: you may read too early.
    Raises LabError while `stream` is capturing, since nothing has run yet. Stands for: cudaMemcpy.
    """
    if not isinstance(buffer, DeviceArray):
        address = isinstance(buffer, int) and not isinstance(buffer, bool)
        raise LabError(f"to_host() got {type(buffer).__name__}.", "It reads a buffer that empty() or to_device() made.",
                       "An address, such as cudaMallocAsync returns, has no size and type: wrap it, DeviceArray(address, count, dtype)." if address else "Pass that buffer.")
    if stream is not None:
        status = ok(cudart.cudaStreamIsCapturing(stream))
        if int(status):
            raise LabError("to_host() was asked to wait for a stream that is capturing.", "A capture records; nothing has run, so there is nothing to read.",
                           "End the capture, launch the graph, then read. The capture is still as it was; recover() ends one left open.")
        ok(cudart.cudaStreamSynchronize(stream))
    out = np.empty(buffer.size, buffer.dtype)
    ok(cudart.cudaMemcpy(out.ctypes.data, buffer.ptr, buffer.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost))
    return out
