"""Event Management."""
from labkit.errors import NotSimulated
from .. import device_pools as pools, stream as streams
from ..values import cudaEvent_t
from ._names import Event, Stream, c_uint, name


@name(gives=1)
def cudaEventCreate():
    return cudaEvent_t(streams.create_event().handle)


@name(gives=1)
def cudaEventCreateWithFlags(flags: c_uint):
    return cudaEvent_t(streams.create_event(flags).handle)


@name()
def cudaEventRecord(event: Event, stream: Stream):
    streams.record(event, stream)


@name()
def cudaEventRecordWithFlags(event: Event, stream: Stream, flags: c_uint):
    streams.record(event, stream, flags)


@name(then="query")
def cudaEventQuery(event: Event):
    return streams.held_by(event)


@name(then="wait")
def cudaEventSynchronize(event: Event):
    return pools.waited(streams.held_by(event))


def _elapsed(start, end):
    streams.check_elapsed(start, end)
    raise NotSimulated("The program asks for the time between two events.",
                       "The simulator has no clock: its times would say nothing about any GPU, so it makes none up.",
                       "Run this on a GPU; measure() shows times recorded on one.")


@name(gives=1)
def cudaEventElapsedTime(start: Event, end: Event):
    _elapsed(start, end)


@name(gives=1, lines=(12,))
def cudaEventElapsedTime_v2(start: Event, end: Event):
    _elapsed(start, end)


@name()
def cudaEventDestroy(event: Event):
    streams.destroy_event(event)
