"""Memory Management."""
from .. import stream as streams, transfer
from ..world import Refused
from ._names import Enum, Pointer, Stream, c_int, c_uint, name, size_t

Kind = Enum("cudaMemcpyKind")


@name(gives=1)
def cudaMalloc(size: size_t):
    return transfer.allocate(size, "device")


@name(then="wait")
def cudaFree(devPtr: Pointer):
    return transfer.free(devPtr)


@name(gives=1)
def cudaMallocHost(size: size_t):
    return transfer.allocate(size, "pinned")


@name(gives=1)
def cudaHostAlloc(size: size_t, flags: c_uint):
    if flags & ~7:
        raise Refused("InvalidValue")
    return transfer.allocate(size, "pinned")


@name(then="wait")
def cudaFreeHost(ptr: Pointer):
    return transfer.free(ptr, kinds=("pinned",))


@name(then="wait")
def cudaMemcpy(dst: Pointer, src: Pointer, count: size_t, kind: Kind):
    return transfer.copy(dst, src, count, kind)


@name(then="wait")
def cudaMemcpyAsync(dst: Pointer, src: Pointer, count: size_t, kind: Kind, stream: Stream):
    return transfer.copy_async(dst, src, count, kind, stream)


@name()
def cudaMemset(devPtr: Pointer, value: c_int, count: size_t):
    transfer.fill(devPtr, value, count, streams.legacy())


@name()
def cudaMemsetAsync(devPtr: Pointer, value: c_int, count: size_t, stream: Stream):
    transfer.fill(devPtr, value, count, stream)
