"""The programs of library_calls(): CuPy and PyTorch inside a capture, a row each. Data, and nothing else."""
from typing import NamedTuple


class Program(NamedTuple):
    """One row: the library, the pitfall's class, the capture's mode, what it does in words, and its three parts."""
    library: str
    word: str
    mode: str
    title: str
    before: str
    inside: str
    after: str = ""


PROGRAMS = [Program(*row) for row in (
    ("cupy", "WARM", "Global", "new array, pool empty", "", "y = x * 2", "launch(); got, want = y.tolist(), [0, 2, 4, 6]"),
    ("cupy", "WARM", "Relaxed", "new array, pool empty", "", "y = x * 2", "launch(); got, want = y.tolist(), [0, 2, 4, 6]"),
    ("cupy", "WARM", "Global", "new array, warmed up on this stream", "y = x * 2; del y", "y = x * 2",
     "launch(); got, want = y.tolist(), [0, 2, 4, 6]"),
    ("cupy", "WARM", "Global", "new array, warmed up on another stream", "with cp.cuda.Stream(non_blocking=True): y = x * 2; del y", "y = x * 2"),
    ("cupy", "WARM", "Global", "output made before", "y = cp.empty_like(x)", "cp.multiply(x, 2, out=y)",
     "launch(); got, want = y.tolist(), [0, 2, 4, 6]"),
    ("cupy", "WARM", "Global", "new array, MemoryAsyncPool", "cp.cuda.set_allocator(cp.cuda.MemoryAsyncPool().malloc)", "y = x * 2",
     "launch(); got, want = y.tolist(), [0, 2, 4, 6]"),
    ("cupy", "WARM", "Global", "first use of a RawKernel",
     "k = cp.RawKernel('extern \"C\" __global__ void f(float* x) { x[threadIdx.x] += 1; }', 'f')", "k((1,), (4,), (x,))",
     "launch(); got, want = x.tolist(), [1, 2, 3, 4]"),
    ("cupy", "SYNC", "Global", "copy to the host", "", "x.get()"),
    ("cupy", "SYNC", "Global", "boolean mask", "m = x > 1", "y = x[m]"),
    ("cupy", "SYNC", "Relaxed", "boolean mask", "m = x > 1", "y = x[m]"),
    ("cupy", "SYNC", "Relaxed", "indices of what is not zero", "", "y = cp.nonzero(x)"),
    ("cupy", "SYNC", "Relaxed", "wait for the stream", "", "stream.synchronize()"),
    ("cupy", "LIB", "Global", "matrix product, first use", "a = cp.ones((64, 64), 'f'); c = cp.empty_like(a)", "cp.matmul(a, a, out=c)",
     "launch(); got, want = float(c[0, 0]), 64.0"),
    ("cupy", "LIB", "Relaxed", "matrix product, first use", "a = cp.ones((64, 64), 'f'); c = cp.empty_like(a)", "cp.matmul(a, a, out=c)",
     "launch(); got, want = float(c[0, 0]), 64.0"),
    ("cupy", "LIB", "Global", "matrix product, warmed up", "a = cp.ones((64, 64), 'f'); c = cp.empty_like(a); cp.matmul(a, a, out=c)",
     "cp.matmul(a, a, out=c)", "c.fill(0); launch(); got, want = float(c[0, 0]), 64.0"),
    ("cupy", "LIB", "Global", "a cuBLAS handle made", "", "h = cp.cuda.cublas.create()"),
    ("cupy", "TEARDOWN", "Global", "a cuBLAS handle destroyed", "h = cp.cuda.cublas.create()", "cp.cuda.cublas.destroy(h)"),
    ("cupy", "TEARDOWN", "Relaxed", "a cuBLAS handle destroyed", "h = cp.cuda.cublas.create()", "cp.cuda.cublas.destroy(h)"),
    ("cupy", "TEARDOWN", "Global", "an old graph let go", "stream.begin_capture(); out += 1; old = stream.end_capture()", "del old"),
    ("cupy", "TEARDOWN", "Global", "an old kernel let go",
     "m = cp.RawModule(code='extern \"C\" __global__ void f(float* x) { x[0] += 1; }'); k = m.get_function('f'); k((1,), (1,), (x,))",
     "del m, k; import gc; gc.collect()"),
    ("cupy", "TEARDOWN", "Global", "the pool emptied", "y = x * 2; del y", "cp.get_default_memory_pool().free_all_blocks()"),
    ("cupy", "LIB", "Global", "FFT, first use", "", "y = cp.fft.fft(x)", "launch(); got, want = y.real.tolist()[0], 6.0"),
    ("cupy", "LIB", "Relaxed", "FFT, first use", "", "y = cp.fft.fft(x)", "launch(); got, want = y.real.tolist()[0], 6.0"),
    ("cupy", "LIB", "Relaxed", "random numbers, first use", "", "y = cp.random.random(4)",
     "launch(); a = y.tolist(); launch(); got, want = 'the same twice' if a == y.tolist() else 'new ones', 'new ones'"),
    ("cupy", "LEGACY", "Relaxed", "work on Stream.null", "", "with cp.cuda.Stream.null: x += 1\ny = cp.negative(x, out=out)",
     "launch(); launch(); got, want = x.tolist(), [2, 3, 4, 5]"),
    ("cupy", "EVENT", "Relaxed", "time between two captured events", "a, b = cp.cuda.Event(), cp.cuda.Event()",
     "a.record(stream); x += 1; b.record(stream)", "launch(); got, want = cp.cuda.get_elapsed_time(a, b) > 0, True"),
    ("cupy", "DEVPTR", "Relaxed", "output rebound, its block handed on", "y = x * 2; del y", "y = x * 2",
     "del y; z = cp.full(4, 7, 'f'); launch(); got, want = z.tolist(), [7, 7, 7, 7]"),
    ("torch", "WARM", "global", "new tensor", "", "y = x * 2", "launch(); got, want = y.tolist(), [0, 2, 4, 6]"),
    ("torch", "LIB", "global", "matrix product, first use", "a = torch.ones(64, 64, device='cuda')", "c = a @ a",
     "launch(); got, want = float(c[0, 0]), 64.0"),
    ("torch", "LIB", "global", "matrix product, warmed up", "a = torch.ones(64, 64, device='cuda'); c = a @ a", "c = a @ a",
     "launch(); got, want = float(c[0, 0]), 64.0"),
    ("torch", "SYNC", "global", "one number", "", "x[0].item()"),
    ("torch", "SYNC", "global", "branch on a value", "", "if x.sum() > 3: x += 1"),
    ("torch", "SYNC", "global", "copy to the host", "", "x.cpu()"),
    ("torch", "SYNC", "global", "print a tensor", "", "print(x)"),
    ("torch", "SYNC", "global", "boolean mask", "m = x > 1", "y = x[m]"),
    ("torch", "SYNC", "global", "indices of what is not zero", "", "y = torch.nonzero(x)"),
    ("torch", "SYNC", "global", "wait for the device", "", "torch.cuda.synchronize()"),
    ("torch", "HOSTMEM", "global", "tensor from a Python list", "", "y = torch.tensor([1., 2.], device='cuda')",
     "launch(); got, want = y.tolist(), [1, 2]"),
    ("torch", "HOSTMEM", "global", "pinned tensor, changed before the replay", "h = torch.ones(4).pin_memory()",
     "y = h.to('cuda', non_blocking=True)", "h.fill_(7); launch(); got, want = y.tolist(), [1, 1, 1, 1]"),
    ("torch", "RNG", "global", "random numbers", "", "y = torch.rand(4, device='cuda')",
     "launch(); a = y.tolist(); launch(); got, want = 'the same twice' if a == y.tolist() else 'new ones', 'new ones'"),
    ("torch", "DEVPTR", "global", "input rebound", "", "out.copy_(x)", "x = torch.full_like(x, 7); launch(); got, want = out.tolist(), [7, 7, 7, 7]"),
    ("torch", "ALIAS", "global", "first result read after the second replay", "", "y = x * 2",
     "launch(); first = y; x.fill_(7); launch(); got, want = first.tolist(), [0, 2, 4, 6]"),
    ("torch", "TEARDOWN", "global", "an old graph collected", "import gc; old = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(old): out.add_(1)",
     "ring = [old]; ring.append(ring); del ring, old; gc.collect(); out.add_(1)"),
    ("torch", "TEARDOWN", "global", "the cache emptied", "y = torch.empty(2 ** 26, device='cuda'); del y", "torch.cuda.empty_cache(); out.add_(1)"),
    ("torch", "THREAD", "global", "another thread allocates", "", "other(lambda: torch.empty(2 ** 26, device='cuda'))"),
    ("torch", "THREAD", "thread_local", "another thread allocates", "", "other(lambda: torch.empty(2 ** 26, device='cuda'))"),
)]
