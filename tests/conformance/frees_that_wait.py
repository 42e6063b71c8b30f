"""Which calls that free memory wait for work that is under way."""
import threading

from labkit import kernels
from tests.conformance.counting import GraphMemory
from tests.conformance.harness import Buffer, scenario

HELD_UP = 0.1              # seconds


def _from_graph(t, stream):
    t.begin(stream)
    ptr = int(t.cudaMallocAsync(16, stream)[1])
    t.launch(stream, kernels.fill, 1, 32, ptr, 3.0, 4)
    return t.instantiate(t.end(stream)), ptr


@scenario("cudaFree waits for all work of the device, but not where the memory is a graph's or a pool's.", control="nothing under way",
          variants={"nothing under way": dict(where=None), "behind its use": dict(where="behind"), "before its use": dict(where="before"),
                    "in another stream": dict(where="beside"), "behind, then again": dict(where="behind", again=True)},
          each={"memory": ("cudaMalloc's", "a pool's", "a graph's")}, open=True, undefined=("before its use/a pool's",))
def what_cuda_free_waits_for(t, where, memory, again=False):
    stream, side, count = t.stream(), t.stream(), GraphMemory(t)
    executable, ptr = _from_graph(t, stream) if memory == "a graph's" else (None, None)

    def use():
        if executable:
            t.cudaGraphLaunch(executable, stream)
        else:
            t.fill(stream, Buffer(ptr, 4), 3)
    if executable is None:
        ptr = t.device([0] * 4).ptr if memory == "cudaMalloc's" else int(t.cudaMallocAsync(16, stream)[1])
    use()                                          # a first time: what is slow once is over
    t.cudaStreamSynchronize(stream)
    if executable:
        t.cudaFree(ptr)

    def hold(on):
        threading.Timer(HELD_UP, t.gate(on)).start()
    if where == "before":
        hold(stream)
    use()
    if where != "before":
        t.cudaStreamSynchronize(stream)
    if where in ("behind", "beside"):
        hold(stream if where == "behind" else side)
    count("in use")
    t.cudaFree(ptr)
    t.note("under way after it", [int(t.raw.cudaStreamQuery(one)[0]) for one in (stream, side)] if where else "nothing")
    if again:
        t.cudaFree(ptr)
    t.cudaDeviceSynchronize()
    count("freed")
    if executable:
        t.cudaGraphLaunch(executable, stream)
        t.cudaStreamSynchronize(stream)
        t.cudaFree(ptr)
        t.cudaDeviceSynchronize()
        t.cudaDeviceGraphMemTrim(0)
        count("freed again and trimmed")
    t.recovered(stream)
