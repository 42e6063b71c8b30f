"""What is being called, for watch: the name behind a callable, what such a call is to a capture, and its code.

Looking must not run anything of the program: attributes are read of plain functions and classes only.
"""
import ast
import functools
import re
import types
from typing import NamedTuple

from labkit.backend import cudart
from labkit.place import UNKNOWN, read, statement, variables

_ROOTS = {"cuda", "cupy", "cupyx", "cupy_backends", "torch", "labkit", "numba", "warp", "jax", "jaxlib", "pycuda", "rmm", "triton", "nvmath"}
_PLAIN = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
          types.ClassMethodDescriptorType, functools.partial, type)
_COMPILED = {"cython_function_or_method", "fused_cython_function", "_FuncPtr"}

# name: (position of the stream or None for the legacy default stream, position of the size or None)
WORK = {"cudaMemcpy": (None, 2), "cudaMemcpyAsync": (4, 2), "cudaMemset": (None, 2), "cudaMemsetAsync": (3, 2),
        "cudaMemcpy2D": (None, 4), "cudaMemcpy2DAsync": (7, 4), "cudaMemset2D": (None, 3), "cudaMemset2DAsync": (5, 3),
        "cudaMemcpyPeer": (None, 4), "cudaMemcpyPeerAsync": (5, 4), "cudaLaunchHostFunc": (0, None), "cudaLaunchHostFunc_v2": (0, None),
        "cudaMallocAsync": (1, 0), "cudaMallocFromPoolAsync": (2, 0), "cudaFreeAsync": (1, None), "cudaGraphLaunch": (1, None),
        "cuLaunchKernel": (8, None), "cuLaunchHostFunc": (0, None), "cuGraphLaunch": (1, None), "cuMemcpyHtoDAsync": (3, 2),
        "cuMemcpyDtoHAsync": (3, 2), "cuMemcpyDtoDAsync": (3, 2), "cuMemcpyHtoD": (None, 2), "cuMemcpyDtoD": (None, 2),
        "cuMemsetD8Async": (3, 2), "cuMemsetD32Async": (3, 2)}
_WAIT = "cudaStreamWaitEvent cuStreamWaitEvent streamWaitEvent wait_event wait_stream wait"
_BEGIN = "cudaStreamBeginCapture cudaStreamBeginCaptureToGraph cuStreamBeginCapture streamBeginCapture begin_capture capture_begin beginCapture"
_END = "cudaStreamEndCapture cuStreamEndCapture streamEndCapture end_capture capture_end endCapture"
_DESTROY = "cudaStreamDestroy cuStreamDestroy streamDestroy"
ROLES = {**dict.fromkeys(WORK, "work"), **dict.fromkeys(_WAIT.split(), "wait"), **dict.fromkeys(_BEGIN.split(), "begin"),
         **dict.fromkeys(_END.split(), "end"), **dict.fromkeys(_DESTROY.split(), "destroy")}


class Called(NamedTuple):
    """name: the last word. module: where it lives."""
    name: str
    module: str

    @property
    def runtime(self):
        """Is it a call of this cudart, which then keeps its code as the thread's last error?"""
        return self.name.startswith("cuda") and self.module in (cudart.__name__, "cuda.bindings.runtime", "labkit.sim.runtime")

    @property
    def cuda(self):
        """Could it have to do with a GPU? What is the program's own can, too."""
        return self.module.split(".")[0] in _ROOTS or re.match(r"cu(da)?[A-Z]", self.name) is not None


def called(what):
    """The Called behind what a tracer says is called."""
    if isinstance(what, Called):
        return what
    if isinstance(what, types.CodeType):
        library = re.search(r"(?:site|dist)-packages[\\/](\w+)", what.co_filename)
        return Called(what.co_name, library[1] if library else "")
    if isinstance(what, types.MethodType):
        what = what.__func__
    kind = type(what)
    if not (isinstance(what, _PLAIN) or kind.__name__ in _COMPILED):
        return Called(kind.__name__, str(kind.__module__))
    owner = getattr(what, "__objclass__", None) or type(getattr(what, "__self__", None))
    module = getattr(what, "__module__", None) or getattr(owner, "__module__", None)
    return Called(str(getattr(what, "__name__", kind.__name__)), str(module or ""))


def handle_of(stream):
    """The number of a stream: a handle, or a Stream of CuPy, PyTorch or cuda.core. None for what is no stream."""
    if isinstance(stream, cudart.cudaStream_t) or type(stream).__name__ in ("cudaStream_t", "CUstream"):
        return int(stream)
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return int(stream)
    if type(stream).__module__.split(".")[0] in ("cupy", "torch", "cuda") and "Stream" in type(stream).__name__:  # an Event has a ptr too
        found = getattr(stream, "ptr", None) if not hasattr(stream, "cuda_stream") else stream.cuda_stream
        if found is None and hasattr(stream, "__cuda_stream__"):
            found = stream.__cuda_stream__()[1]
        return found if isinstance(found, int) else None
    return None


def argument(call, frame, at):
    """The argument at a position of an ast.Call, or UNKNOWN."""
    if call is None or at >= len(call.args) or any(isinstance(a, ast.Starred) for a in call.args[:at + 1]):
        return UNKNOWN
    return read(call.args[at], frame)


@functools.lru_cache(1)
def _texts():
    """{what CUDA says about a code: the code}, longest first, for exceptions that hold a text only."""
    texts = {cudart.cudaGetErrorString(code)[1].decode(): code for code in cudart.cudaError_t if int(code)}
    return dict(sorted(texts.items(), key=lambda pair: -len(pair[0])))


def code_in(answer):
    """The cudaError_t in what a call returned or raised; None where there is none."""
    if isinstance(answer, tuple) and answer:
        answer = answer[0]
    if type(answer).__name__ in ("cudaError_t", "CUresult"):
        return member(int(answer))
    if isinstance(answer, BaseException):
        root = type(answer).__module__.split(".")[0]
        number = getattr(answer, "code", None) if root == "labkit" else None
        if root in ("cupy", "cupy_backends"):
            number = getattr(answer, "status", None)
        if number is not None:
            return member(int(number))
        said = next((part for part in answer.args if isinstance(part, str)), "")
        if root == "torch" or "CUDA error" in said:
            return next((code for text, code in _texts().items() if text in said), None)
    return None


def member(number):
    try:
        return cudart.cudaError_t(number)
    except ValueError:
        return None


def peek():
    """This thread's last error, left where it is."""
    return cudart.cudaPeekAtLastError()[0]


def assigned_code(frame, code, line):
    """The error code among the variables that the statement at a line has just assigned, or None."""
    target = re.match(r"([\w, ]+?),?\s*=[^=]", statement(code, line)[1])
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    if target is None or frame is None:
        return None
    names = variables(frame)
    found = (code_in(names.get(name.strip())) for name in target[1].split(","))
    return next((code for code in found if code is not None), None)
