"""The end of a program: finalizers that still call CUDA must not hang it."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEGINNING = """
import atexit, ctypes, functools, os, sys, threading, weakref
from labkit import kernels
from labkit.errors import ok
from labkit.sim import runtime as cu

say = functools.partial(os.write, 1, b"freed\\n")       # sys.stdout may be gone

class Buffer:
    def __init__(self):
        self.ptr = ok(cu.cudaMalloc(256))
        self.stream = ok(cu.cudaStreamCreateWithFlags(1))
        kernels.launch_on(cu, self.stream, kernels.fill, 1, 32, self.ptr, 1.0, 4)

    def free(self, ok=ok, cu=cu, say=say):
        ok(cu.cudaStreamSynchronize(self.stream))
        ok(cu.cudaFree(self.ptr))
        say()
"""
ENDS = {"weakref.finalize": "buffer = Buffer()\nweakref.finalize(buffer, lambda ptr=buffer.ptr: (ok(cu.cudaFree(ptr)), say()))",
        "after other waits": "buffer = Buffer()\nok(cu.cudaDeviceSynchronize())\n"
                             "weakref.finalize(buffer, lambda ptr=buffer.ptr: (ok(cu.cudaFree(ptr)), say()))",
        "atexit": "atexit.register(Buffer().free)",
        "__del__": "Buffer.__del__ = Buffer.free\nkept = Buffer()\nok(cu.cudaDeviceSynchronize())",
        "__del__, the first wait": "Buffer.__del__ = Buffer.free\nkept = Buffer()",
        "__del__ while a worker stands still": "Buffer.__del__ = Buffer.free\nkept, gate = Buffer(), threading.Event()\n"
                                               "wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(gate.wait)\n"
                                               "ok(cu.cudaLaunchHostFunc(kept.stream, cu.cudaHostFn_t(ctypes.cast(wait, ctypes.c_void_p).value), 0))"}


@pytest.mark.parametrize("end", ENDS)
def test_finalizers_may_free_memory(end):
    paths = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)
    done = subprocess.run([sys.executable, "-c", BEGINNING + ENDS[end]], capture_output=True, text=True, cwd=ROOT, timeout=60,
                          env={**os.environ, "PYTHONPATH": paths, "LABKIT_BACKEND": "sim"})
    assert done.returncode == 0 and "freed" in done.stdout.splitlines(), done.stderr
