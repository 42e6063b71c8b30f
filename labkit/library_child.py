"""What a child process of library_calls() runs: one program inside a capture of CuPy or PyTorch.

Not imported: labkit.libraries puts `program = {...}` in front of this text. It prints what happened as JSON, after "labkit: ".
"""
import json
import re
import threading

from cuda.bindings import runtime

PROGRAM = program  # noqa: F821  (a line above this text)
said = {"stage": "", "error": "", "code": None, "state": "", "again": ""}


def note(stage, error):
    """Keep the first error: when it came, its first line and, where it carries one, its CUDA code."""
    if said["error"]:
        return
    text = (str(error).strip().splitlines() or [""])[0]
    kind = type(error).__name__                     # CuPy's CUBLASError has a status too, in numbers of its own
    code = {"CUDARuntimeError": "status", "CUDADriverError": "status", "AcceleratorError": "error_code"}.get(kind)
    code = None if code is None else getattr(error, code, None)
    for each in () if code is not None else runtime.cudaError_t:
        if int(each) and (re.search(rf"\b{each.name}\b", text) or runtime.cudaGetErrorString(each)[1].decode() in text):
            code = int(each)
    said.update(stage=stage, error=f"{kind}: {text}", code=code)


def attempt(stage, source):
    try:
        exec(source, names)
    except Exception as error:
        note(stage, error)


def other(work):
    """work() in another thread; what it raises counts as this line's error."""
    def guarded():
        try:
            work()
        except Exception as error:
            note("inside", error)
    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(20)


def look(handle):
    said["state"] = runtime.cudaStreamIsCapturing(handle)[1].name.removeprefix("cudaStreamCaptureStatus")


if PROGRAM["library"] == "cupy":
    import cupy as cp
    stream = cp.cuda.Stream(non_blocking=True)
    mode = getattr(cp.cuda.runtime, "streamCaptureMode" + PROGRAM["mode"])

    def capture(source, stage):
        """Capture the source; what comes back replays the graph and waits."""
        graph = None
        try:
            stream.begin_capture(mode)
            attempt(stage, source)
            if stage == "inside":
                look(stream.ptr)
            graph = stream.end_capture()
        except Exception as error:
            note("end", error)
        return lambda: (graph.launch(stream), stream.synchronize())

    stream.use()
    names = {"cp": cp, "stream": stream, "other": other, "x": cp.arange(4, dtype="f"), "out": cp.zeros(4, "f")}
    again, version = "out += 1", cp.__version__
else:
    import torch

    def capture(source, stage):
        """Capture the source; what comes back replays the graph and waits."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, capture_error_mode=PROGRAM["mode"]):
                attempt(stage, source)
                if stage == "inside":
                    look(torch.cuda.current_stream().cuda_stream)
        except Exception as error:
            note("end", error)
        return lambda: (graph.replay(), torch.cuda.synchronize())

    names = {"torch": torch, "other": other, "x": torch.arange(4., device="cuda"), "out": torch.zeros(4, device="cuda")}
    again, version = "out.add_(1)", torch.__version__

said["version"] = version
attempt("before", PROGRAM["before"])
if not said["error"]:
    runtime.cudaDeviceSynchronize()
    names["launch"] = capture(PROGRAM["inside"], "inside")
    if not said["error"] and PROGRAM["after"]:
        attempt("after", PROGRAM["after"])
        said.update({k: names[k] for k in ("got", "want") if k in names})
    print("labkit: " + json.dumps(said))            # before the last try: it may end the process
    kept = dict(said)
    said.update(error="")
    replay = capture(again, "again")
    if not said["error"]:
        try:
            replay()
        except Exception as error:
            note("again", error)
    said = {**kept, "again": said["error"] or "captures again"}
print("labkit: " + json.dumps(said))
