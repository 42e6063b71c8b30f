"""Wrong answers to exercise 23, and what check() says of each."""
import ctypes

import numpy as np

from labkit import cudart, empty, graph as graphs, kernel_params, launch, ok, to_host
from labkit.cases.parts import advance, noise, noise_at
from labkit.kernels import axpy
from labkit.labs.kernels import axpy_at

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
UP = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
EXPECT = {
    "step_counter__frozen": "expected a graph with noise_at, advance",
    "step_counter__never_moves_on": "expected a graph with noise_at, advance",
    "step_counter__moves_on_first": "expected a graph with noise_at, advance",
    "step_counter__moves_on_at_the_capture": "before any launch",
    "step_counter__by_two": "by of advance is 1",
    "step_counter__by_the_step": "by of advance is 1",
    "step_counter__a_step_of_its_own": "the second argument of noise_at is the buffer step",
    "step_counter__other_stream": "expected a graph with noise_at, advance",
    "step_counter__at_once": "before any launch",
    "step_counter__tries_first": "before any launch",
    "step_counter__side_by_side": "expected a graph with noise_at, advance",
    "step_counter__half": "n of noise_at is",
    "step_counter__one_block": "threads of noise_at",
    "step_counter__two_rows": "in one row",
    "step_counter__two_rows_of_noise": "in one row",
    "step_counter__ten_replays": "expected a graph with noise_at, advance",
    "step_counter__an_executable": "expected back: graph",
    "step_counter__graph_and_more": "the graph, and nothing else",
    "step_counter__empty": "expected a graph with noise_at, advance",
    "host_number__frozen": "expected a graph with Memcpy, axpy_at",
    "host_number__copied_at_once": "before any launch",
    "host_number__does_not_wait": "while it still waits for its turn",
    "host_number__writes_and_waits": "while it still waits for its turn",
    "host_number__waits_for_another": "while it still waits for its turn",
    "host_number__waits_inside": "900 cudaErrorStreamCaptureUnsupported",
    "host_number__a_copy_of_cell": "a copy from or to another address",
    "host_number__a_name_only": "in cell after set_number",
    "host_number__sets_the_rate": "in cell after set_number",
    "host_number__sets_only_once": "in cell after set_number",
    "host_number__launches": "set_number launches nothing",
    "host_number__runs_a_kernel": "after set_number and before a launch",
    "host_number__two_bytes": "a copy of 4 bytes",
    "host_number__reads_cell_itself": "expected a graph with Memcpy, axpy_at",
    "host_number__other_order": "expected a graph with Memcpy, axpy_at",
    "host_number__one_for_all": "in cell after set_number",
    "host_number__adds_up": "in cell after set_number",
    "host_number__only_the_graph": "the graph and the function set_number",
    "host_number__wrong_way_round": "expected back: graph, function",
}
RIGHT = ("step_counter__other_way", "step_counter__more_threads", "host_number__other_way", "host_number__in_stream_order", "host_number__waits_for_all",
         "host_number__reads_the_rate_first", "host_number__named_arguments")


def _grid(y):
    return -(-y.size // 256)


def _record(stream, work):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work()
    return ok(cudart.cudaStreamEndCapture(stream))


def _draw(stream, y, step):
    ok(launch(stream, noise_at, _grid(y), 256, y, step, y.size))


def _move(stream, step, by=1):
    ok(launch(stream, advance, 1, 1, step, by))


def step_counter__frozen(stream, y, step):
    now = int(to_host(step)[0])
    return _record(stream, lambda: (ok(launch(stream, noise, _grid(y), 256, y, now, y.size)), _move(stream, step)))


def step_counter__never_moves_on(stream, y, step):
    return _record(stream, lambda: _draw(stream, y, step))


def step_counter__moves_on_first(stream, y, step):
    return _record(stream, lambda: (_move(stream, step), _draw(stream, y, step)))


def step_counter__moves_on_at_the_capture(stream, y, step):
    graph = _record(stream, lambda: _draw(stream, y, step))
    _move(stream, step)
    return graph


def step_counter__by_two(stream, y, step):
    return _record(stream, lambda: (_draw(stream, y, step), _move(stream, step, 2)))


def step_counter__by_the_step(stream, y, step):
    now = int(to_host(step)[0])
    return _record(stream, lambda: (_draw(stream, y, step), _move(stream, step, now + 1)))


def step_counter__a_step_of_its_own(stream, y, step):
    mine = empty(1, np.int32)
    return _record(stream, lambda: (_draw(stream, y, mine), _move(stream, mine)))


def step_counter__other_stream(stream, y, step):
    return _record(stream, lambda: (_draw(stream, y, step), launch(0, advance, 1, 1, step, 0)))


def step_counter__at_once(stream, y, step):
    _draw(stream, y, step)
    _move(stream, step)
    return _record(stream, lambda: None)


def step_counter__tries_first(stream, y, step):
    _draw(stream, y, step)
    _move(stream, step)
    return step_counter__more_threads(stream, y, step)


def step_counter__side_by_side(stream, y, step):
    graph = ok(cudart.cudaGraphCreate(0))
    ok(cudart.cudaGraphAddKernelNode(graph, [], 0, kernel_params(noise_at, _grid(y), 256, y, step, y.size)))
    ok(cudart.cudaGraphAddKernelNode(graph, [], 0, kernel_params(advance, 1, 1, step, 1)))
    return graph


def step_counter__half(stream, y, step):
    return _record(stream, lambda: (ok(launch(stream, noise_at, _grid(y), 256, y, step, y.size // 2)), _move(stream, step)))


def step_counter__one_block(stream, y, step):
    return _record(stream, lambda: (ok(launch(stream, noise_at, 1, 256 if y.size > 256 else 2, y, step, y.size)), _move(stream, step)))


def step_counter__two_rows(stream, y, step):
    """Two threads add to the step."""
    return _record(stream, lambda: (_draw(stream, y, step), ok(launch(stream, advance, (1, 2), 1, step, 1))))


def step_counter__two_rows_of_noise(stream, y, step):
    return _record(stream, lambda: (ok(launch(stream, noise_at, _grid(y), (256, 2), y, step, y.size)), _move(stream, step)))


def step_counter__ten_replays(stream, y, step):
    return _record(stream, lambda: [(_draw(stream, y, step), _move(stream, step)) for _ in range(10)])


def step_counter__an_executable(stream, y, step):
    return ok(cudart.cudaGraphInstantiate(step_counter__more_threads(stream, y, step), 0))


def step_counter__graph_and_more(stream, y, step):
    graph = step_counter__more_threads(stream, y, step)
    return graph, ok(cudart.cudaGraphInstantiate(graph, 0))


def step_counter__empty(stream, y, step):
    return _record(stream, lambda: None)


def step_counter__other_way(stream, y, step):
    """Built node by node."""
    graph = ok(cudart.cudaGraphCreate(0))
    first = ok(cudart.cudaGraphAddKernelNode(graph, [], 0, kernel_params(noise_at, _grid(y), 256, y, step, y.size)))
    ok(cudart.cudaGraphAddKernelNode(graph, [first], 1, kernel_params(advance, 1, 1, step, 1)))
    return graph


def step_counter__more_threads(stream, y, step):
    """Larger grids than needed: both kernels look who they are."""
    return _record(stream, lambda: (ok(launch(stream, noise_at, 2 * _grid(y), 128 if y.size < 100 else 256, y, step, y.size)), ok(launch(stream, advance, 2, 32, step, 1))))


# ---- part 2 --------------------------------------------------------------------------------------

def _copy(stream, rate, address, count=4):
    ok(cudart.cudaMemcpyAsync(rate.ptr, address, count, UP, stream))


def _add(stream, y, x, rate):
    ok(launch(stream, axpy_at, _grid(y), 256, y, x, rate, y.size))


def _graph(stream, y, x, rate, cell):
    return _record(stream, lambda: (_copy(stream, rate, cell.ctypes.data), _add(stream, y, x, rate)))


def _put(stream, cell):
    def set_number(number):
        ok(cudart.cudaStreamSynchronize(stream))
        cell[0] = number
    return set_number


def host_number__frozen(stream, y, x, rate, cell):
    now = float(cell[0])
    return _record(stream, lambda: ok(launch(stream, axpy, _grid(y), 256, y, x, now, y.size))), _put(stream, cell)


def host_number__copied_at_once(stream, y, x, rate, cell):
    def work():
        ok(cudart.cudaMemcpy(rate.ptr, cell.ctypes.data, 4, UP))
        _add(stream, y, x, rate)
    return _record(stream, work), _put(stream, cell)


def host_number__does_not_wait(stream, y, x, rate, cell):
    def set_number(number):
        cell[0] = number
    return _graph(stream, y, x, rate, cell), set_number


def host_number__writes_and_waits(stream, y, x, rate, cell):
    def set_number(number):
        cell[0] = number
        ok(cudart.cudaStreamSynchronize(stream))
    return _graph(stream, y, x, rate, cell), set_number


def host_number__waits_for_another(stream, y, x, rate, cell):
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    return _graph(stream, y, x, rate, cell), _put(other, cell)


def host_number__waits_inside(stream, y, x, rate, cell):
    def work():
        _copy(stream, rate, cell.ctypes.data)
        ok(cudart.cudaStreamSynchronize(stream))
        _add(stream, y, x, rate)
    return _record(stream, work), _put(stream, cell)


def host_number__a_copy_of_cell(stream, y, x, rate, cell):
    mine = cell.copy()                              # pageable: read when it is launched
    set_mine = _put(stream, mine)
    return _graph(stream, y, x, rate, mine), set_mine


def host_number__a_name_only(stream, y, x, rate, cell):
    def set_number(number):
        nonlocal cell
        ok(cudart.cudaStreamSynchronize(stream))
        cell = np.array([number], np.float32)
    return _graph(stream, y, x, rate, cell), set_number


def host_number__sets_the_rate(stream, y, x, rate, cell):
    def set_number(number):
        ok(cudart.cudaStreamSynchronize(stream))
        ok(cudart.cudaMemcpy(rate.ptr, np.array([number], np.float32).ctypes.data, 4, UP))
    return _graph(stream, y, x, rate, cell), set_number


def host_number__sets_only_once(stream, y, x, rate, cell):
    done = []

    def set_number(number):
        ok(cudart.cudaStreamSynchronize(stream))
        if not done:
            cell[0] = number
            done.append(number)
    return _graph(stream, y, x, rate, cell), set_number


def host_number__launches(stream, y, x, rate, cell):
    graph = _graph(stream, y, x, rate, cell)
    executable, put = ok(cudart.cudaGraphInstantiate(graph, 0)), _put(stream, cell)

    def set_number(number):
        put(number)
        ok(cudart.cudaGraphLaunch(executable, stream))
    return graph, set_number


def host_number__runs_a_kernel(stream, y, x, rate, cell):
    put = _put(stream, cell)

    def set_number(number):
        put(number)
        _copy(stream, rate, cell.ctypes.data)
        _add(stream, y, x, rate)
    return _graph(stream, y, x, rate, cell), set_number


def host_number__two_bytes(stream, y, x, rate, cell):
    return _record(stream, lambda: (_copy(stream, rate, cell.ctypes.data, 2), _add(stream, y, x, rate))), _put(stream, cell)


def host_number__reads_cell_itself(stream, y, x, rate, cell):
    return _record(stream, lambda: ok(launch(stream, axpy_at, _grid(y), 256, y, x, cell.ctypes.data, y.size))), _put(stream, cell)


def host_number__other_order(stream, y, x, rate, cell):
    return _record(stream, lambda: (_add(stream, y, x, rate), _copy(stream, rate, cell.ctypes.data))), _put(stream, cell)


_latest = []


def host_number__one_for_all(stream, y, x, rate, cell):
    _latest[:] = [cell]                             # one name for all graphs

    def set_number(number):
        ok(cudart.cudaStreamSynchronize(stream))
        _latest[0][0] = number
    return _graph(stream, y, x, rate, cell), set_number


def host_number__adds_up(stream, y, x, rate, cell):
    def set_number(number):
        ok(cudart.cudaStreamSynchronize(stream))
        cell[0] += number
    return _graph(stream, y, x, rate, cell), set_number


def host_number__only_the_graph(stream, y, x, rate, cell):
    return _graph(stream, y, x, rate, cell)


def host_number__wrong_way_round(stream, y, x, rate, cell):
    return _put(stream, cell), _graph(stream, y, x, rate, cell)


def host_number__reads_the_rate_first(stream, y, x, rate, cell):
    """A copy that is not captured is nobody's business."""
    number = np.zeros(1, np.float32)
    ok(cudart.cudaMemcpyAsync(number.ctypes.data, rate.ptr, 4, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    return _graph(stream, y, x, rate, cell), _put(stream, cell)


def host_number__named_arguments(stream, y, x, rate, cell):
    def work():
        ok(cudart.cudaMemcpyAsync(stream=stream, kind=UP, count=np.int64(4), src=cell.ctypes.data, dst=rate.ptr))
        _add(stream, y, x, rate)
    return _record(stream, work), _put(stream, cell)


class _Setter:
    def __init__(self, stream, cell):
        self.stream, self.cell = stream, cell

    def __call__(self, number):
        ok(cudart.cudaStreamSynchronize(self.stream))
        self.cell[:] = number
        return number


def host_number__other_way(stream, y, x, rate, cell):
    """Built node by node; an object that can be called."""
    graph = ok(cudart.cudaGraphCreate(0))
    copy = ok(cudart.cudaGraphAddMemcpyNode1D(graph, [], 0, rate.ptr, cell.ctypes.data, 4, UP))
    ok(cudart.cudaGraphAddKernelNode(graph, [copy], 1, kernel_params(axpy_at, _grid(y), 256, y, x, rate, y.size)))
    assert graphs.kinds(graph) == ["Memcpy", "Kernel"]
    return graph, _Setter(stream, cell)


def host_number__waits_for_all(stream, y, x, rate, cell):
    """All of the device is waited for."""
    def set_number(number):
        ok(cudart.cudaDeviceSynchronize())
        cell.fill(number)
    return _graph(stream, y, x, rate, cell), set_number


_alive = []                                         # C functions that CUDA may call


def host_number__in_stream_order(stream, y, x, rate, cell):
    """Nobody waits: the write has its turn in the stream."""
    def set_number(number):
        _alive.append(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: cell.__setitem__(0, number)))
        ok(cudart.cudaLaunchHostFunc(stream, cudart.cudaHostFn_t(ctypes.cast(_alive[-1], ctypes.c_void_p).value), 0))
    return _graph(stream, y, x, rate, cell), set_number
