"""Back to a usable notebook after a failed or interrupted capture."""
import sys

from labkit.backend import cudart
from labkit.errors import LabError, Undefined, ok
from labkit.keep_alive import drain


def _streams_in(names):
    """Streams among a namespace's values, also inside its lists, tuples and dicts."""
    for value in list(names.values()):
        group = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
        yield from (item for item in group if isinstance(item, cudart.cudaStream_t) and int(item))


def recover(*streams):
    """End every capture left open on `streams`, and restore this thread's capture mode to Global.

    Without arguments: on all streams that the calling cell or function has in its variables.
    Says how many captures it ended. Never raises for a stream that is fine. A variable
    that still holds a destroyed stream should be deleted first: CUDA may crash when asked about it.
    Stands for: cudaStreamEndCapture, cudaThreadExchangeStreamCaptureMode.
    """
    streams = [item for stream in streams for item in (stream if isinstance(stream, (list, tuple)) else [stream])]
    if not all(isinstance(stream, (int, cudart.cudaStream_t)) for stream in streams):
        raise LabError("recover() got something that is no stream.", "It ends captures on streams.", "Pass stream handles, or nothing for all in your variables.")
    if not streams:
        frame = sys._getframe(1)
        found = [*_streams_in(frame.f_globals), *_streams_in(frame.f_locals)]
        streams = list({int(s): s for s in found}.values())
    listening = sys.modules.get("labkit.labs.listening")
    if listening:                                         # an interrupted check() may have left its ears on cudart
        listening.mend()
    ended = 0
    for stream in streams:
        try:
            code, status = cudart.cudaStreamIsCapturing(stream)
        except Undefined:                                 # the simulator's word for a destroyed stream
            continue
        if int(code) or not int(status):
            continue
        code, graph = cudart.cudaStreamEndCapture(stream)
        if not int(code):
            ok(cudart.cudaGraphDestroy(graph))
        ended += 1
    mode = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
    ok(cudart.cudaThreadExchangeStreamCaptureMode(mode))
    cudart.cudaGetLastError()
    drain()
    print(f"recover: {ended} capture{'s' * (ended != 1)} ended." if ended else "recover: nothing was open.")
