"""What a call answers inside a capture: every row that an H200 answered (capture_calls.csv)."""
import csv
from pathlib import Path

import numpy as np
import pytest

from labkit import kernels
from labkit.errors import ok

ROWS = list(csv.DictReader(Path(__file__).with_name("capture_calls.csv").open()))
assert len(ROWS) > 110


class Calls:
    """The calls of the table, by their name there. Everything they need is made before the capture."""

    def __init__(self, lab, blocking):
        self.lab, self.cu = lab, lab.cudart
        self.origin, self.other = lab.stream(blocking), lab.stream()
        self.a, self.b = lab.buffer(value=1), lab.buffer(value=2)
        self.pinned, self.host = ok(self.cu.cudaMallocHost(256)), np.zeros(64, np.float32)
        self.before, self.fresh = lab.event(), lab.event()
        ok(self.cu.cudaEventRecord(self.before, self.other))
        graph = ok(self.cu.cudaGraphCreate(0))
        self.graph, self.made = graph, ok(self.cu.cudaGraphInstantiate(graph, 0))
        self.function, self.keep = lab.host_function(lambda: None)
        self.async_memory = ok(self.cu.cudaMallocAsync(256, self.other))
        ok(self.cu.cudaStreamSynchronize(self.other))

    def captured_event(self):
        ok(self.cu.cudaEventRecord(self.fresh, self.origin))
        return self.fresh

    def call(self, name):
        cu, lab = self.cu, self.lab
        return {
            "cudaMalloc": lambda: cu.cudaMalloc(256), "cudaFree": lambda: cu.cudaFree(self.a),
            "cudaMallocHost": lambda: cu.cudaMallocHost(256),
            "cudaMemcpy_d2d": lambda: cu.cudaMemcpy(self.a, self.b, 256, lab.D2D),
            "cudaMemcpy_h2d": lambda: cu.cudaMemcpy(self.a, self.pinned, 256, lab.H2D),
            "cudaDeviceSynchronize": cu.cudaDeviceSynchronize,
            "cudaStreamSynchronize_capturing": lambda: cu.cudaStreamSynchronize(self.origin),
            "cudaStreamSynchronize_other": lambda: cu.cudaStreamSynchronize(self.other),
            "cudaStreamQuery_capturing": lambda: cu.cudaStreamQuery(self.origin),
            "cudaEventRecord_captured": lambda: cu.cudaEventRecord(self.fresh, self.origin),
            "cudaEventRecord_legacy": lambda: cu.cudaEventRecord(self.fresh, 0),
            "cudaEventQuery_uncaptured": lambda: cu.cudaEventQuery(self.before),
            "cudaEventSynchronize_captured": lambda: cu.cudaEventSynchronize(self.captured_event()),
            "launch_legacy_stream": lambda: (lab.step(0, self.b),),
            "launch_other_nonblocking": lambda: (lab.step(self.other, self.b),),
            "launch_other": lambda: (lab.step(self.other, self.b),),
            "launch_capturing_stream": lambda: (lab.step(self.origin, self.b),),
            "cudaMallocAsync": lambda: cu.cudaMallocAsync(256, self.origin),
            "cudaMemcpyAsync_d2d": lambda: cu.cudaMemcpyAsync(self.a, self.b, 256, lab.D2D, self.origin),
            "cudaMemcpyAsync_pinned": lambda: cu.cudaMemcpyAsync(self.a, self.pinned, 256, lab.H2D, self.origin),
            "cudaMemcpyAsync_pageable_h2d": lambda: cu.cudaMemcpyAsync(self.a, self.host, 256, lab.H2D, self.origin),
            "cudaMemsetAsync": lambda: cu.cudaMemsetAsync(self.a, 0, 256, self.origin),
            "cudaStreamCreate": cu.cudaStreamCreate, "cudaEventCreate": cu.cudaEventCreate,
            "cuModuleLoadData": lambda: (cu.cudaError_t(0), kernels.Kernel("", "k", []).func_on(cu)),
            "cudaStreamWaitEvent_recorded_before": lambda: cu.cudaStreamWaitEvent(self.origin, self.before, 0),
            "cudaGetDeviceProperties": lambda: cu.cudaGetDeviceProperties(0),
            "cudaGraphLaunch_in_capture": lambda: cu.cudaGraphLaunch(self.made, self.origin),
            "cudaGraphInstantiate": lambda: cu.cudaGraphInstantiate(self.graph, 0),
            "cudaLaunchHostFunc": lambda: cu.cudaLaunchHostFunc(self.origin, self.function, 0),
            "launch_invalid_config": lambda: (lab.launch(self.origin, kernels.fill, self.a, 1.0, 64, block=4096),),
            "cudaFreeAsync_outside_ptr": lambda: cu.cudaFreeAsync(self.async_memory, self.origin),
        }[name]()


@pytest.mark.parametrize("row", ROWS, ids=lambda r: "-".join([r["call"], r["capture_stream"], r["calling_thread"], r["mode"]]))
def test_a_call_inside_a_capture_answers_as_an_h200_does(lab, row):
    calls = Calls(lab, blocking=row["capture_stream"] == "blocking")
    mode = getattr(lab.cudart.cudaStreamCaptureMode, "cudaStreamCaptureMode" + row["mode"])
    ok(lab.cudart.cudaStreamBeginCapture(calls.origin, mode))
    assert lab.step(calls.origin, calls.a) == 0
    call = lambda: calls.call(row["call"])
    result = lab.elsewhere(call) if row["calling_thread"] == "other" else call()
    assert result[0].name == row["result"]
    assert lab.status(calls.origin) == row["status_after"]
    again = None if row["capture_stream"] == "blocking" else lab.step(calls.origin, calls.a)
    code, graph = lab.cudart.cudaStreamEndCapture(calls.origin)
    assert code.name == row["end_capture"]
    if code:
        assert graph is None and again in (None, 901)
    else:
        assert " ".join(lab.kinds(graph)) == row["nodes"]
    assert lab.status(calls.origin) == "None"
    assert lab.step(calls.origin, calls.b) == 0 and lab.cudart.cudaStreamSynchronize(calls.origin)[0] == 0
