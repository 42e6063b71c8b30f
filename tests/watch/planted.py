"""Failures planted in the learner's own code and in threads. Each marks the line that watch must name."""
import ctypes
import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

from labkit import cudart, kernels, launch, ok
from tests.watch.bench import GLOBAL, H2D, N, PATIENCE, RELAXED, planted, prepared

# ---- waiting, asking, allocating ----


@planted("SYNC", 900)
def synchronize_the_stream(t):
    t.begin()
    t.work()
    cudart.cudaStreamSynchronize(t.s)  # guilty
    t.end()


@planted("SYNC", 900)
def query_in_a_called_function(t):
    def ready(stream):
        answer = cudart.cudaStreamQuery(stream)  # guilty
        return int(answer[0]) == 0
    t.begin()
    t.work()
    if not ready(t.s):
        t.end()


@planted("ERRCHK", 900)
def wait_for_the_device_over_several_lines(t):
    t.begin(RELAXED)
    t.work()
    codes = [name for name in (  # guilty
        "before",
        cudart.cudaDeviceSynchronize()[0].name,
        "after",
    )]
    assert len(codes) == 3
    t.end()


@planted("WARM", 900)
def a_check_that_raises(t):
    t.begin()
    for step in range(3):
        t.work()
        try:
            ok(cudart.cudaMalloc(4096))  # guilty
        except Exception:
            break
    t.end()


# ---- the legacy default stream ----


@planted("LEGACY", 906)
def copy_beside_a_blocking_capture(t):
    t.begin()
    t.work()
    code, = cudart.cudaMemcpy(t.x.ptr, t.host.ctypes.data, t.host.nbytes, H2D)  # guilty
    t.end()


@planted("LEGACY", 906)
def launch_on_stream_zero_beside_a_blocking_capture(t):
    t.begin()
    t.work()
    launch(0, kernels.fill, 1, N, t.x, 1.0, N)  # guilty
    t.work(t.side)
    t.end()


@planted("FROZEN", None, found="left_out")
def a_counter_kept_on_stream_zero(t):
    t.begin()
    t.work()
    t.work()
    ok(launch(0, kernels.fill, 1, N, t.x, 1.0, N))  # guilty
    t.end()


@planted("RNG", None, found="left_out")
def a_generator_reset_without_a_stream(t):
    t.begin()
    t.work()
    ok(cudart.cudaMemset(t.y.ptr, 0, t.y.nbytes))  # guilty
    ok(cudart.cudaMemsetAsync(t.x.ptr, 0, t.x.nbytes, t.s))
    t.end()


# ---- other threads ----


def in_thread(function):
    other = threading.Thread(target=function)
    other.start()
    other.join(PATIENCE)
    assert not other.is_alive()


@planted("THREAD", 900, by="threads")
def allocation_in_a_thread(t):
    def load():
        code, block = cudart.cudaMalloc(4 * N)  # guilty
        return code, block
    t.begin()
    t.work()
    in_thread(load)
    t.end()


@planted("THREAD", 900, by="threads")
def device_wait_in_a_worker_while_the_main_thread_sleeps(t):
    done = threading.Event()

    def report():
        time.sleep(0.02)
        cudart.cudaDeviceSynchronize()  # guilty
        done.set()
    t.begin(RELAXED)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(report)
        while not done.wait(0.005):
            time.sleep(0.005)
    t.end()


def _watchdog(t):
    """A thread that is there before the watched block."""
    t.captured, event = threading.Event(), t.event()
    ok(cudart.cudaEventRecord(event, t.side))

    def guard():
        t.captured.wait(PATIENCE)
        t.ask(event)
    t.watchdog = threading.Thread(target=guard, daemon=True)
    t.watchdog.start()


@planted("THREAD", 900, by="threads", newer=True)
@prepared(_watchdog)
def a_watchdog_that_was_there_before(t):
    def ask(event):
        cudart.cudaEventQuery(event)  # guilty
    t.ask = ask
    t.begin()
    t.work()
    t.captured.set()
    t.watchdog.join(PATIENCE)
    t.end()


@planted("THREAD", 908, by="threads")
def end_in_another_thread(t):
    def finish():
        return cudart.cudaStreamEndCapture(t.s)  # guilty
    t.begin()
    t.work()
    in_thread(finish)


# ---- forks, joins, events ----


def recorded(t):
    event = t.event()
    ok(cudart.cudaEventRecord(event, t.s))
    return event


@planted("JOIN", 904, found="unjoined")
def a_fork_without_a_join(t):
    t.begin()
    t.work()
    event = recorded(t)
    ok(cudart.cudaStreamWaitEvent(t.side, event, 0))  # guilty
    t.work(t.side)
    t.work()
    t.end()


@planted("JOIN", 902)
def two_captures_meet(t):
    t.begin()
    t.work()
    event = recorded(t)
    ok(cudart.cudaStreamBeginCapture(t.side, GLOBAL))
    answer = cudart.cudaStreamWaitEvent(t.side, event, 0)  # guilty
    cudart.cudaStreamEndCapture(t.side)
    t.end()
    return answer


@planted("ERRCHK", 903)
def end_on_the_stream_that_was_drawn_in(t):
    t.begin()
    event = recorded(t)
    ok(cudart.cudaStreamWaitEvent(t.side, event, 0))
    t.work(t.side)
    code, graph = cudart.cudaStreamEndCapture(t.side)  # guilty
    t.end()


@planted("EVENT", 905)
def wait_for_an_event_from_before(t):
    event = t.event()
    ok(cudart.cudaEventRecord(event, t.third))
    t.begin()
    t.work()
    cudart.cudaStreamWaitEvent(t.s, event, 0)  # guilty
    t.end()


@planted("EVENT", 907)
def ask_an_event_of_the_capture(t):
    t.begin()
    t.work()
    event = recorded(t)
    print(cudart.cudaEventSynchronize(event))  # guilty
    t.end()


# ---- memory ----


@planted("WARM", 900)
def first_use_in_a_function(t):
    spaces = {}

    def space(size):
        if size not in spaces:
            spaces[size] = cudart.cudaMalloc(size)  # guilty
        return spaces[size]
    t.begin()
    t.work()
    space(4096)
    t.end()


@planted("HOSTMEM", 900)
def pinned_memory_in_the_capture(t):
    t.begin()
    t.work()
    code, buffer = cudart.cudaMallocHost(4096)  # guilty
    t.end()
    return buffer


@planted("DEVPTR", 900)
def free_a_buffer_in_the_capture(t):
    spare = ok(cudart.cudaMalloc(4096))
    t.begin()
    t.work()
    results = [cudart.cudaFree(pointer) for pointer in (spare,)]  # guilty
    t.end()
    assert results
    ok(cudart.cudaFree(spare))


@planted("MEMNODE", 1, found="refused")
def free_a_block_twice(t):
    t.begin()
    block = ok(cudart.cudaMallocAsync(4096, t.s))
    cudart.cudaFreeAsync(block, t.s)
    cudart.cudaFreeAsync(block, t.s)  # guilty
    t.end()


@planted("MEMNODE", 1, found="refused")
def free_what_no_graph_allocated(t):
    t.begin()
    t.work()
    cudart.cudaFreeAsync(t.y.ptr, t.s)  # guilty
    t.end()


# ---- unchecked codes, destructors, other graphs ----


@planted("ERRCHK", 1)
def an_impossible_launch_that_nobody_checks(t):
    t.begin()
    t.work()
    launch(t.s, kernels.fill, 1, 4096, t.x, 1.0, N)  # guilty
    launch(t.s, kernels.fill, 1, N, t.x, 1.0, N)
    t.end()


@planted("ERRCHK", 401, found="refused")
def begin_twice(t):
    t.begin()
    t.work()
    cudart.cudaStreamBeginCapture(t.s, GLOBAL)  # guilty
    t.work()
    t.end()


class Owner:
    """Destroys its executable when Python lets go of it."""

    def __init__(self, executable):
        self.executable = executable

    def __del__(self):
        cudart.cudaGraphExecDestroy(self.executable)


@planted("TEARDOWN", 900)
def a_destructor_on_an_innocent_line(t):
    old = Owner(t.executable())
    t.begin()
    t.work()
    old = None  # guilty
    t.end()
    return old


@planted("TEARDOWN", 900)
def the_garbage_collector(t):
    gc.disable()
    ring = [Owner(t.executable())]
    ring.append(ring)
    del ring
    try:
        t.begin()
        t.work()
        gc.collect()  # guilty
        t.end()
    finally:
        gc.enable()


@planted("TEARDOWN", 900)
def a_finalizer(t):
    class Model:
        pass
    model = Model()
    weakref.finalize(model, cudart.cudaGraphExecDestroy, t.executable())
    t.begin()
    t.work()
    del model  # guilty
    t.end()


@planted("COMPOSE", 900)
def launch_a_graph_in_the_capture(t):
    executable = t.executable()
    t.begin()
    t.work()
    result = cudart.cudaGraphLaunch(executable, t.s)  # guilty
    t.end()
    return result


@planted("RESOURCE", 900)
def one_executable_a_shape_made_in_the_capture(t):
    code, graph = cudart.cudaGraphCreate(0)
    made = {}
    t.begin()
    t.work()
    for shape in range(2):
        made[shape] = cudart.cudaGraphInstantiate(graph, 0)  # guilty
    t.end()


# ---- work that was left out ----


@planted("HOSTCB", None, found="left_out")
def a_callback_on_another_stream(t):
    called = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda argument: called.append(len(called)))
    t.keep = function, called
    t.begin()
    t.work()
    ok(cudart.cudaLaunchHostFunc(t.side, cudart.cudaHostFn_t(ctypes.cast(function, ctypes.c_void_p).value), 0))  # guilty
    t.end()


@planted("ALIAS", None, found="left_out")
def copy_out_on_another_stream(t):
    streams = {"main": t.s, "copy": t.side}
    t.begin()
    t.work()
    ok(launch(streams["copy"], kernels.add, 1, N, t.y, t.x, t.x, N))  # guilty
    t.end()


@planted("FROZEN", None, found="left_out")
def a_branch_on_a_value_read_back(t):
    t.begin()
    t.work()
    if int(cudart.cudaMemcpy(t.host.ctypes.data, t.x.ptr, t.host.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost)[0]) == 0:  # guilty
        t.work()
    t.end()


@planted("RNG", None, found="left_out")
def a_seed_copied_without_a_stream(t):
    def reseed(seed):
        t.host[:] = seed
        return cudart.cudaMemcpy(t.y.ptr, t.host.ctypes.data, t.host.nbytes, H2D)  # guilty
    t.begin()
    t.work()
    ok(reseed(7))
    t.work()
    t.end()


@planted("HOSTMEM", None, by="threads", found="left_out")
def a_thread_that_copies_without_a_stream(t):
    def load():
        ok(cudart.cudaMemcpy(t.y.ptr, t.host.ctypes.data, t.host.nbytes, H2D))  # guilty
    t.begin()
    t.work()
    in_thread(load)
    t.end()
