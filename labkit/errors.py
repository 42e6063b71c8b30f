"""Errors that say what to do next: `ok()`, `LabError` and the catalogue of CUDA codes.

The CUDA bindings raise nothing. Every call returns a tuple whose first entry is a code, and a
program that does not look at it goes on with a null graph in its hands. `ok` looks:

    stream = ok(cudart.cudaStreamCreate())      # (err, stream) -> stream
    ok(cudart.cudaStreamSynchronize(stream))    # (err,)        -> None
"""
import linecache
import os
import sys

_HERE = os.path.dirname(__file__)


class LabError(Exception):
    """What you did, what it means, what to try, and the CUDA name last.

    did, means, try_: one sentence each. code: the CUDA enum member, where CUDA gave one.
    """

    def __init__(self, did, means, try_, code=None):
        self.did, self.means, self.try_, self.code = did, means, try_, code
        lines = [did, f"  What it means: {means}", f"  What to try:   {try_}"]
        if code is not None:
            lines.append(f"  CUDA says:     {code.name} ({int(code)})")
        super().__init__("\n".join(lines))

    def _render_traceback_(self):
        """Jupyter shows these lines in place of a traceback through labkit's own files."""
        return [f"{type(self).__name__}: {self}"]


class NotSimulated(LabError, AttributeError):
    """The real function or behaviour exists; this simulator does not have it."""


class Undefined(LabError):
    """The program does something whose outcome CUDA leaves open, so no answer would be true."""


# code: (what it means, what to try)
CATALOGUE = {
    1: ("An argument is outside what this call accepts, or an object is in a state that forbids it.",
        "Check sizes, grid and block (1 to 1024 threads), whether the handle still exists, and, for a launch, whether memory that the last one left is freed."),
    2: ("The GPU has no free block of memory of this size.",
        "Free what you no longer need, restart other notebooks on this GPU, or use a smaller size. If a graph asked for more than the GPU has, restart this kernel: nothing else gives it back."),
    3: ("The CUDA runtime could not start, or the process is shutting down.",
        "Restart the kernel; `labkit doctor` shows whether the driver answers."),
    21: ("The direction of the copy is not one that CUDA knows.", "Use a member of cudaMemcpyKind, such as cudaMemcpyHostToDevice."),
    35: ("The installed NVIDIA driver is older than this CUDA version needs, or there is none.",
         "Update the driver, install the matching extra (cuda12 for drivers from 525), or set LABKIT_BACKEND=sim."),
    98: ("The function handle does not name a kernel that the runtime itself loaded.",
         "Kernels launched from Python come from the driver; keep the parameters you launched with."),
    100: ("The driver is there, but it offers no GPU to this process.",
          "Look at nvidia-smi and CUDA_VISIBLE_DEVICES, or set LABKIT_BACKEND=sim."),
    101: ("There is no GPU with this number.", "Device numbers start at 0; `cudaGetDeviceCount` says how many there are."),
    200: ("The compiled kernel does not fit this GPU.", "Restart the kernel so that labkit compiles it again for this GPU."),
    201: ("This thread has no CUDA context yet.", "Call cudaSetDevice(0) once in each new thread before driver calls."),
    209: ("No compiled code for this GPU is inside the kernel image.", "Restart the kernel so that labkit compiles it again."),
    218: ("The compiled kernel text (PTX) could not be read by this driver.", "Update the driver, or use the cuda12 extra."),
    304: ("A call of the operating system failed, for example a file that cannot be written.",
          "Check that the folder exists and that you may write there."),
    400: ("The handle is not, or no longer, a live CUDA object of this kind.",
          "Check that nothing destroyed it, and that a stream is not passed where an event is expected."),
    401: ("The object is in a state that does not allow this call: an End without a Begin, say, or a second Begin.",
          "Ask cudaStreamIsCapturing first; recover() ends captures that were left open."),
    500: ("No symbol of this name exists.", "Check the kernel's name against its source; it needs extern \"C\"."),
    600: ("The work has been queued and has not finished yet. This is an answer, not a failure.",
          "Query again later, or synchronize."),
    700: ("A kernel touched memory that is not its own. The context is broken for the rest of the process.",
          "Restart the kernel; run the program in a child process or with compute-sanitizer to find the access."),
    701: ("A kernel asks for more registers or shared memory than one multiprocessor has.", "Use a smaller block."),
    702: ("The kernel ran longer than the display driver allows.", "Use a smaller size; restart the kernel."),
    709: ("The object belongs to a context that is gone, or was destroyed itself.", "Make a new one; a destroyed event or stream can't be used again."),
    719: ("A kernel stopped with an error. The context is broken for the rest of the process.",
          "Restart the kernel and look at the launch before this call."),
    800: ("CUDA forbids this call here, for example any CUDA call from inside a host function.",
          "Let the host function set a flag, and make the CUDA call in ordinary code."),
    801: ("This kind of call or combination is not supported, for example cloning a graph that allocates memory.",
          "See the lesson on graph memory for what can be combined."),
    900: ("This call must not be made while a stream is capturing: it would have to wait for, or change, something outside the graph.",
          "Move it before the capture or after it; for memory use cudaMallocAsync on the capturing stream. The capture is lost: end it, then begin again."),
    901: ("The capture was already broken by an earlier call; this one only reports it.",
          "Look at the first call that did not return cudaSuccess: its code is the reason. End the capture, then begin again."),
    902: ("Waiting on this event would merge two captures that began separately.",
          "Begin one capture only, and let the second stream join by waiting on an event of the first."),
    903: ("This stream did not begin the capture: it was drawn in by an event.",
          "Call cudaStreamEndCapture on the stream on which you called cudaStreamBeginCapture."),
    904: ("A stream that the capture forked into was not joined back.",
          "Record an event on the forked stream after its last work, and let the origin stream wait on it before EndCapture."),
    905: ("The capture would depend on work outside it: the event was recorded outside this capture.",
          "Record the event on a capturing stream, or synchronize before the capture begins."),
    906: ("The call uses the legacy default stream, which would have to wait for your capturing (blocking) stream.",
          "Use an Async call on the capturing stream, or create that stream with cudaStreamNonBlocking; then the call runs at once and is NOT in the graph."),
    907: ("The event was recorded during a capture, so it stands for a point in a graph, not in time.",
          "Do not query or synchronize it; record it again outside a capture first."),
    908: ("A capture in this mode must be ended by the thread that began it.",
          "End it in that thread, or begin it with cudaStreamCaptureModeRelaxed."),
    910: ("The new graph differs from the executable in a way that an update cannot follow.",
          "Ask exec_update(executable, graph): it names the reason and the node. Keep the same nodes in the same order, or instantiate again."),
    999: ("The driver gives no better reason.", "Restart the kernel; `labkit doctor` shows whether the driver answers."),
}
# code 1, where the learner's line names one of these calls: what to try
_WORK = "Check sizes and the direction. Memory of a graph is there only from its launch to its free; before and after, its address is no memory."
ARGUMENT = {
    "cudaGraphLaunch": "If the graph allocates memory: free what its last launch left before the next, or instantiate with cudaGraphInstantiateFlagAutoFreeOnLaunch. Else check that the executable exists.",
    "cudaFree": "Check whether it was freed already, whether the graph that allocates it has been launched, and that it is the address that an allocation returned.",
    "cudaMemset": _WORK, "cudaMemcpy": _WORK,
}
UNKNOWN = ("The kit has no page for this code.", "Look the name up in the CUDA Runtime API, section Data types, cudaError_t.")


def _caller_line():
    """The source line, stripped, of the first caller outside this package: the learner's own line."""
    frame = sys._getframe(1)
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()


def ok(result):
    """Check the code of a CUDA call and hand back its values.

    (err,) -> None, (err, v) -> v, (err, v, w) -> (v, w). Raises LabError when err is not success
    (its `.code` is err), or when `result` is not what a CUDA call returns.
    Stands for: CUDA Runtime API, Error Handling.
    """
    if not (isinstance(result, tuple) and result and hasattr(result[0], "name") and hasattr(result[0], "value")):
        raise LabError(f"ok() got {type(result).__name__} {result!r:.60}.",
                       "ok() reads the tuple that a call of cudart returns; its first entry is the code.",
                       "Write ok(cudart.someCall(...)), and do not unpack the tuple first.")
    code = result[0]
    if int(code):
        line = _caller_line()
        means, try_ = getattr(result[-1], "explained", None) or CATALOGUE.get(int(code), UNKNOWN)     # exec_update knows more than the code says
        if int(code) == 1 and (means, try_) == CATALOGUE[1]:
            try_ = next((hint for call, hint in ARGUMENT.items() if call in line), try_)
        raise LabError(f"This call was refused: {line}" if line else "A CUDA call was refused.", means, try_, code=code)
    if len(result) < 3:
        return result[1] if len(result) == 2 else None
    return result[1:]
