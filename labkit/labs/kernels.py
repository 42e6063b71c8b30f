"""Kernels that only exercises launch: the judges', which see what an ordinary kernel hides, and some that learners get."""
from labkit.kernels import Kernel, _elementwise


def _axpy_counting(i, y, x, a, n, blocks):
    part = slice(0, max(0, min(i.size, int(n))))
    y[part] += a * x[part]
    blocks[0:1] += i.size // 256


axpy_counting = Kernel("""extern "C" __global__ void axpy_counting(float* y, const float* x, float a, int n, int* blocks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) atomicAdd(blocks, 1);
    if (i < n) y[i] += a * x[i];
}
""", "axpy_counting", ["float*", "const float*", "float", "int", "int*"], _axpy_counting)


def _occupy(i, milliseconds):
    pass                        # on the simulator, work that is queued waits until somebody waits for it


occupy = Kernel("""extern "C" __global__ void occupy(int milliseconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin) :: "memory");
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now) :: "memory");
    while (now - begin < milliseconds * 1000000ull);
}
""", "occupy", ["int"], _occupy)


def _axpy_at(i, y, x, a, n):
    y[i] += a[0] * x[i]


axpy_at = _elementwise("axpy_at", "float* y, const float* x, const float* a, int n", "y[i] += a[0] * x[i];", _axpy_at)
