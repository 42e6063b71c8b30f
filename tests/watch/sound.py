"""Captures with nothing wrong in them: watch must accuse nobody."""
import contextlib
import ctypes
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from labkit import cudart, graph, kernels, launch, ok
from tests.watch.bench import D2D, GLOBAL, H2D, N, PATIENCE, RELAXED, THREAD_LOCAL, sound


def step(t, stream=None):
    ok(launch(t.s if stream is None else stream, kernels.scale, 1, N, t.x, 2.0, N))


def forked(t, *sides):
    event = t.event()
    ok(cudart.cudaEventRecord(event, t.s))
    for side in sides:
        ok(cudart.cudaStreamWaitEvent(side, event, 0))


def joined(t, *sides):
    for side in sides:
        event = t.event()
        ok(cudart.cudaEventRecord(event, side))
        ok(cudart.cudaStreamWaitEvent(t.s, event, 0))


def in_thread(function, *args):
    other = threading.Thread(target=function, args=args)
    other.start()
    other.join(PATIENCE)
    assert not other.is_alive()


@contextlib.contextmanager
def capturing(t, mode=GLOBAL):
    ok(cudart.cudaStreamBeginCapture(t.s, mode))
    yield
    ok(cudart.cudaGraphDestroy(ok(cudart.cudaStreamEndCapture(t.s))))


@sound
def a_chain(t):
    t.begin()
    for _ in range(5):
        t.work()
    t.end()


@sound
def an_empty_capture(t):
    t.begin()
    t.end()


@sound
def in_relaxed_mode_memory_may_be_allocated(t):
    t.begin(RELAXED)
    block = ok(cudart.cudaMalloc(4096))
    t.work()
    ok(cudart.cudaFree(block))
    t.end()


@sound
def asynchronous_copies(t):
    t.begin()
    ok(cudart.cudaMemcpyAsync(t.y.ptr, t.x.ptr, t.x.nbytes, D2D, t.s))
    ok(cudart.cudaMemcpyAsync(t.y.ptr, t.host.ctypes.data, t.host.nbytes, H2D, t.s))
    ok(cudart.cudaMemsetAsync(t.y.ptr, 0, t.y.nbytes, t.s))
    t.end()


@sound
def copies_of_nothing(t):
    nothing = 0
    t.begin()
    ok(cudart.cudaMemcpyAsync(t.y.ptr, t.x.ptr, 0, D2D, t.s))
    ok(cudart.cudaMemcpy(t.y.ptr, t.x.ptr, nothing, D2D))
    ok(cudart.cudaMemset(t.y.ptr, 0, nothing * 4))
    t.work()
    t.end()


@sound
def a_diamond(t):
    t.begin()
    t.work()
    forked(t, t.side)
    t.work()
    t.work(t.side)
    joined(t, t.side)
    t.work()
    t.end()


@sound
def a_wide_fork_in_a_loop(t):
    t.begin()
    for _ in range(3):
        forked(t, t.side, t.third)
        t.work(t.side)
        t.work(t.third)
        joined(t, t.side, t.third)
    t.end()


@sound
def a_fork_without_work(t):
    t.begin()
    t.work()
    forked(t, t.side)
    t.work()
    t.end()


@sound
def a_fork_of_a_fork_joined_through_it(t):
    t.begin()
    t.work()
    forked(t, t.side)
    t.work(t.side)
    first, second = t.event(), t.event()
    ok(cudart.cudaEventRecord(first, t.side))
    ok(cudart.cudaStreamWaitEvent(t.third, first, 0))
    t.work(t.third)
    ok(cudart.cudaEventRecord(second, t.third))
    ok(cudart.cudaStreamWaitEvent(t.side, second, 0))
    joined(t, t.side)
    t.end()


@sound
def work_from_a_child_thread(t):
    t.begin()
    in_thread(step, t)
    t.work()
    t.end()


@sound
def work_from_four_threads_of_a_pool(t):
    lock = threading.Lock()

    def one(_):
        with lock:
            step(t)
    t.begin()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(8)))
    t.end()


@sound
def a_thread_with_its_own_stream(t):
    def other():
        ok(launch(t.side, kernels.fill, 1, N, t.y, 1.0, N))
        ok(cudart.cudaMemsetAsync(t.y.ptr, 0, t.y.nbytes, t.side))
    t.begin()
    in_thread(other)
    t.work()
    t.end()


@sound
def a_thread_that_allocates_beside_a_thread_local_capture(t):
    def other():
        ok(cudart.cudaFree(ok(cudart.cudaMalloc(4096))))
    t.begin(THREAD_LOCAL)
    in_thread(other)
    t.work()
    t.end()


@sound
def a_thread_that_has_exchanged_its_mode(t):
    def other():
        ok(cudart.cudaThreadExchangeStreamCaptureMode(RELAXED))
        ok(cudart.cudaFree(ok(cudart.cudaMalloc(4096))))
    t.begin()
    in_thread(other)
    t.end()


@sound
def another_capture_beside(t):
    t.begin()
    ok(cudart.cudaStreamBeginCapture(t.side, GLOBAL))
    t.work(t.side)
    t.work()
    ok(cudart.cudaMemsetAsync(t.y.ptr, 0, t.y.nbytes, t.side))
    ok(cudart.cudaGraphDestroy(ok(cudart.cudaStreamEndCapture(t.side))))
    t.end()


@sound
def another_capture_beside_is_lost(t):
    t.begin(THREAD_LOCAL)
    t.work()

    def other():
        ok(cudart.cudaStreamBeginCapture(t.side, RELAXED))
        code = cudart.cudaStreamQuery(t.side)[0]
        cudart.cudaStreamEndCapture(t.side)
        return code
    in_thread(other)
    t.work()
    t.end()


@sound
def memory_nodes(t):
    t.begin()
    block = ok(cudart.cudaMallocAsync(4096, t.s))
    ok(cudart.cudaMemsetAsync(block, 0, 4096, t.s))
    ok(cudart.cudaFreeAsync(block, t.s))
    t.end()


@sound
def a_host_function(t):
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda argument: None)
    t.keep = function
    t.begin()
    ok(cudart.cudaLaunchHostFunc(t.s, cudart.cudaHostFn_t(ctypes.cast(function, ctypes.c_void_p).value), 0))
    t.work()
    t.end()


@sound
def a_comprehension(t):
    t.begin()
    codes = [launch(t.s, kernels.fill, 1, N, t.x, value, N)[0] for value in (1.0, 2.0, 3.0)]
    assert not any(int(code) for code in codes)
    t.end()


@sound
def a_generator(t):
    def steps():
        for value in (1.0, 2.0):
            yield launch(t.s, kernels.fill, 1, N, t.x, value, N)
    t.begin()
    for answer in steps():
        ok(answer)
    t.end()


@sound
def a_caught_exception(t):
    t.begin()
    t.work()
    try:
        raise ValueError("not CUDA's")
    except ValueError:
        t.work()
    t.end()


@sound
def nested_functions_and_lambdas(t):
    def outer(times):
        return inner(times) if times == 1 else (inner(1), outer(times - 1))

    def inner(times):
        return ok(launch(t.s, kernels.scale, 1, N, t.x, float(times), N))
    t.begin()
    outer(4)
    (lambda: inner(2))()
    t.end()


@sound
def a_context_manager_of_your_own(t):
    with capturing(t):
        t.work()
        step(t)


@sound
def streams_and_events_made_in_the_capture(t):
    t.begin()
    made, event = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)), ok(cudart.cudaEventCreate())
    ok(cudart.cudaStreamDestroy(made))
    ok(cudart.cudaEventDestroy(event))
    t.work()
    t.end()


@sound
def questions_that_harm_nothing(t):
    t.begin()
    t.work()
    state = graph.capture_state(t.s)
    assert state.status == "Active" and len(graph.nodes(state.graph)) == 1
    cudart.cudaMemGetInfo(), cudart.cudaGetDevice(), cudart.cudaGetLastError()
    t.end()


@sound
def two_captures_one_after_the_other(t):
    for _ in range(2):
        t.begin()
        t.work()
        t.end()


@sound
def replays_before_and_after(t):
    executable = t.executable()
    ok(cudart.cudaGraphLaunch(executable, t.s))
    ok(cudart.cudaStreamSynchronize(t.s))
    t.begin()
    t.work()
    t.end()
    ok(cudart.cudaGraphLaunch(executable, t.s))
    ok(cudart.cudaStreamSynchronize(t.s))
    ok(cudart.cudaGraphExecDestroy(executable))


@sound
def dependencies_changed_by_hand(t):
    t.begin()
    t.work()
    graph.update_capture_dependencies(t.s, [], replace=True)
    t.work()
    t.end()


@sound
def a_blocking_stream_and_no_legacy_work(t):
    t.begin()
    t.work()
    ok(cudart.cudaMemsetAsync(t.y.ptr, 0, t.y.nbytes, t.s))
    t.end()


@sound
def threads_that_wait_and_sleep(t):
    stop, seen = threading.Event(), []

    def beat():
        while not stop.wait(0.001):
            seen.append(time.monotonic())
    other = threading.Thread(target=beat)
    other.start()
    t.begin()
    for _ in range(5):
        t.work()
        time.sleep(0.002)
    t.end()
    stop.set()
    other.join(PATIENCE)


@sound
def end_in_another_thread_in_relaxed_mode(t):
    t.begin(RELAXED)
    t.work()
    in_thread(t.end)


@sound
def a_forked_stream_destroyed_after_its_join(t):
    t.begin()
    t.work()
    branch = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    forked(t, branch)
    t.work(branch)
    joined(t, branch)
    ok(cudart.cudaStreamDestroy(branch))
    t.work()
    t.end()


@sound
def a_child_graph_and_nodes_added_by_hand(t):
    made = ok(cudart.cudaGraphCreate(0))
    t.begin()
    t.work()
    ok(cudart.cudaGraphAddEmptyNode(made, [], 0))
    t.end()
    ok(cudart.cudaGraphDestroy(made))
