"""Wrong answers to exercise 18, and what check() says of each."""
import time

from labkit import cudart, empty, kernels, launch, ok, to_host

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
TO_HOST = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
EXPECT = {
    "wait_outside__as_it_was": "900 cudaErrorStreamCaptureUnsupported  at  ok(cudart.cudaStreamSynchronize(stream))",
    "wait_outside__never_waits": "what it handed back",
    "wait_outside__waits_before_the_launch": "what it handed back",
    "wait_outside__sleeps": "what it handed back",
    "wait_outside__copied_once": "what it handed back",
    "wait_outside__hands_back_host": "it must be a copy",
    "wait_outside__copy_outside": "found    a graph with scale, axpy",
    "wait_outside__launches_no_graph": "0 launches (the check hears",
    "wait_outside__launches_twice": "found:    2",
    "wait_outside__one_stream_each": "found    a graph with",
    "wait_outside__hands_back_the_buffer": "found:    DeviceArray",
    "wait_outside__destroys_the_graph": "a graph that the function has destroyed",
    "wait_outside__destroys_each_time": "found:    a call of cudaGraphExecDestroy",
    "wait_outside__launches_at_once": "wait_outside launches nothing yet",
    "wait_outside__runs_the_kernels_first": "before any launch",
    "ask_outside__as_it_was": "901",
    "ask_outside__always_done": "found:    True",
    "ask_outside__never_done": "found:    False",
    "ask_outside__waits_in_done": "done() answers at once",
    "ask_outside__waits_in_start": "start() returns while the work",
    "ask_outside__asks_once": "done() says True",
    "ask_outside__hands_back_the_code": "found:    cudaError_t",
    "ask_outside__no_capture": "found:    no call",
    "ask_outside__work_each_time": "found:    0 launches",
    "ask_outside__starts_twice": "found:    2",
    "ask_outside__other_stream": "in another stream",
    "ask_outside__launches_at_once": "ask_outside launches nothing yet",
}
RIGHT = ("wait_outside__waits_for_an_event", "wait_outside__reads_y", "ask_outside__with_an_event", "ask_outside__instantiates_late")


def _run(stream, kernel, y, *args):
    ok(launch(stream, kernel, -(-y.size // 256), 256, y, *args, y.size))


def _begin(stream):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))


def _ready(stream):
    plan = ok(cudart.cudaStreamEndCapture(stream))
    return plan, ok(cudart.cudaGraphInstantiate(plan, 0))


def _three(stream, y, x, host):
    _begin(stream)
    _run(stream, kernels.scale, y, 2.0)
    _run(stream, kernels.axpy, y, x, 1.0)
    ok(cudart.cudaMemcpyAsync(host.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
    return _ready(stream)


def wait_outside__as_it_was(stream, y, x, host):
    _begin(stream)
    _run(stream, kernels.scale, y, 2.0)
    ok(cudart.cudaStreamSynchronize(stream))
    _run(stream, kernels.axpy, y, x, 1.0)
    return _ready(stream)[0], host.copy


def wait_outside__never_waits(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), host.copy())[1]


def wait_outside__waits_before_the_launch(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)

    def step():
        ok(cudart.cudaStreamSynchronize(stream))
        ok(cudart.cudaGraphLaunch(executable, stream))
        return host.copy()

    return plan, step


def wait_outside__sleeps(stream, y, x, host):
    """As if time were the same as having run."""
    plan, executable = _three(stream, y, x, host)

    def step():
        ok(cudart.cudaGraphLaunch(executable, stream))
        time.sleep(0.005)
        return host.copy()
    return plan, step


def wait_outside__copied_once(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)
    numbers = host.copy()

    def step():
        ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaStreamSynchronize(stream))
        return numbers
    return plan, step


def wait_outside__hands_back_host(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)

    def step():
        ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaStreamSynchronize(stream))
        return host
    return plan, step


def wait_outside__copy_outside(stream, y, x, host):
    _begin(stream)
    _run(stream, kernels.scale, y, 2.0)
    _run(stream, kernels.axpy, y, x, 1.0)
    plan, executable = _ready(stream)
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), to_host(y, stream))[1]


def wait_outside__launches_no_graph(stream, y, x, host):
    plan, _ = _three(stream, y, x, host)

    def step():
        _run(stream, kernels.scale, y, 2.0)
        _run(stream, kernels.axpy, y, x, 1.0)
        return to_host(y, stream)
    return plan, step


def wait_outside__launches_twice(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)

    def step():
        for _ in range(2):
            ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaStreamSynchronize(stream))
        return host.copy()
    return plan, step


def wait_outside__one_stream_each(stream, y, x, host):
    side, event = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)), ok(cudart.cudaEventCreate())
    _begin(stream)
    ok(cudart.cudaEventRecord(event, stream))
    ok(cudart.cudaStreamWaitEvent(side, event, 0))
    _run(stream, kernels.scale, y, 2.0)
    _run(side, kernels.axpy, y, x, 1.0)
    ok(cudart.cudaEventRecord(event, side))
    ok(cudart.cudaStreamWaitEvent(stream, event, 0))
    ok(cudart.cudaMemcpyAsync(host.ctypes.data, y.ptr, y.nbytes, TO_HOST, stream))
    plan, executable = _ready(stream)
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), ok(cudart.cudaStreamSynchronize(stream)), host.copy())[2]


def wait_outside__hands_back_the_buffer(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), ok(cudart.cudaStreamSynchronize(stream)), y)[2]


def wait_outside__destroys_the_graph(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)
    ok(cudart.cudaGraphDestroy(plan))
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), ok(cudart.cudaStreamSynchronize(stream)), host.copy())[2]


def wait_outside__destroys_each_time(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)

    def step():
        ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaStreamSynchronize(stream))
        ok(cudart.cudaGraphExecDestroy(executable))
        return host.copy()
    return plan, step


def wait_outside__waits_for_an_event(stream, y, x, host):
    plan, executable = _three(stream, y, x, host)
    event = ok(cudart.cudaEventCreate())

    def step():
        ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaEventRecord(event, stream))
        ok(cudart.cudaEventSynchronize(event))
        return host * 1
    return plan, step


def wait_outside__reads_y(stream, y, x, host):
    """The numbers are the same, and to_host waits."""
    plan, executable = _three(stream, y, x, host)
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), to_host(y, stream))[1]


def _work(stream, work):
    _begin(stream)
    work(stream)
    _, executable = _ready(stream)
    return lambda: ok(cudart.cudaGraphLaunch(executable, stream))


def _idle(stream):
    return int(cudart.cudaStreamQuery(stream)[0]) == 0


def ask_outside__as_it_was(stream, work):
    _begin(stream)
    work(stream)
    code, = cudart.cudaStreamQuery(stream)
    _, executable = _ready(stream)
    return lambda: ok(cudart.cudaGraphLaunch(executable, stream)), lambda: not int(code)


def ask_outside__always_done(stream, work):
    return _work(stream, work), lambda: True


def ask_outside__never_done(stream, work):
    return _work(stream, work), lambda: False


def ask_outside__waits_in_done(stream, work):
    def done():
        was = _idle(stream)
        ok(cudart.cudaStreamSynchronize(stream))
        return was
    return _work(stream, work), done


def ask_outside__waits_in_start(stream, work):
    start = _work(stream, work)
    return lambda: (start(), ok(cudart.cudaStreamSynchronize(stream)))[1], lambda: _idle(stream)


def ask_outside__asks_once(stream, work):
    start, seen = _work(stream, work), []
    return lambda: (start(), seen.append(_idle(stream)))[0], lambda: seen[-1]


def ask_outside__hands_back_the_code(stream, work):
    return _work(stream, work), lambda: cudart.cudaStreamQuery(stream)[0]


def ask_outside__no_capture(stream, work):
    return lambda: work(stream), lambda: _idle(stream)


def ask_outside__work_each_time(stream, work):
    _work(stream, work)
    return lambda: work(stream), lambda: _idle(stream)


def ask_outside__starts_twice(stream, work):
    start = _work(stream, work)
    return lambda: (start(), start())[0], lambda: _idle(stream)


def ask_outside__other_stream(stream, work):
    _begin(stream)
    work(stream)
    _, executable = _ready(stream)
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    empty(1)
    return lambda: ok(cudart.cudaGraphLaunch(executable, other)), lambda: _idle(stream)


def ask_outside__with_an_event(stream, work):
    start, event = _work(stream, work), ok(cudart.cudaEventCreate())
    return (lambda: (start(), ok(cudart.cudaEventRecord(event, stream)))[1],
            lambda: cudart.cudaEventQuery(event)[0] == cudart.cudaError_t.cudaSuccess)


def ask_outside__instantiates_late(stream, work):
    """The executable is made at the first start."""
    _begin(stream)
    work(stream)
    plan, made = ok(cudart.cudaStreamEndCapture(stream)), []

    def start():
        if not made:
            made.append(ok(cudart.cudaGraphInstantiate(plan, 0)))
        ok(cudart.cudaGraphLaunch(made[0], stream))
    return start, lambda: _idle(stream)


def wait_outside__launches_at_once(stream, y, x, host):
    """A first launch, "to warm up"."""
    plan, executable = _three(stream, y, x, host)

    def step():
        ok(cudart.cudaGraphLaunch(executable, stream))
        ok(cudart.cudaStreamSynchronize(stream))
        return host.copy()
    step()
    return plan, step


def wait_outside__runs_the_kernels_first(stream, y, x, host):
    _run(stream, kernels.scale, y, 2.0)
    _run(stream, kernels.axpy, y, x, 1.0)
    plan, executable = _three(stream, y, x, host)
    return plan, lambda: (ok(cudart.cudaGraphLaunch(executable, stream)), ok(cudart.cudaStreamSynchronize(stream)), host.copy())[2]


def ask_outside__launches_at_once(stream, work):
    start = _work(stream, work)
    start()
    ok(cudart.cudaStreamSynchronize(stream))
    return start, lambda: _idle(stream)
