"""Stream Management without capture, and host functions."""
from .. import capture as captures, device_pools as pools, stream as streams, work
from ..values import cudaStream_t
from ._names import EventHandle, HostFunction, Pointer, Stream, c_int, c_uint, name


def _new(*args):
    return cudaStream_t(streams.create(*args).handle)


@name(gives=1)
def cudaStreamCreate():
    return _new()


@name(gives=1)
def cudaStreamCreateWithFlags(flags: c_uint):
    return _new(flags)


@name(gives=1)
def cudaStreamCreateWithPriority(flags: c_uint, priority: c_int):
    return _new(flags, priority)


@name(gives=1)
def cudaStreamGetFlags(hStream: Stream):
    return hStream.flags


@name(gives=1)
def cudaStreamGetPriority(hStream: Stream):
    captures.graph_of(hStream)              # a lost capture refuses even this
    return hStream.priority


@name()
def cudaStreamDestroy(stream: Stream):
    streams.destroy(stream)


@name(then="wait")
def cudaStreamSynchronize(stream: Stream):
    return pools.waited(streams.held(stream))


@name(then="query")
def cudaStreamQuery(stream: Stream):
    return streams.held(stream)


@name()
def cudaStreamWaitEvent(stream: Stream, event: EventHandle, flags: c_uint):
    streams.wait_event(stream, event, flags)


@name()
def cudaLaunchHostFunc(stream: Stream, fn: HostFunction, userData: Pointer):
    streams.submit(stream, work.Host(fn, userData, once=stream.capture is not None))
