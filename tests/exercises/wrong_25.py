"""Wrong answers to exercise 25, and what check() says of each."""
import numpy as np

from labkit import cudart, graph, kernel_params, kernels, launch, ok, to_device, to_host
from labkit.arrays import copy_in

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
UP, DOWN = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
EXPECT = {
    "two_layers__no_relu": "net.hidden[",
    "two_layers__relu_twice": "net.out[",
    "two_layers__one_layer": "expected a graph with",
    "two_layers__all_rows": "which stay as they are",
    "two_layers__few_blocks": "net.",
    "two_layers__blocks_of_the_last_layer_from_rows": "net.out[",
    "two_layers__second_first": "net.hidden[",
    "two_layers__waits": "900",
    "two_layers__by_numpy": "to_host",
    "two_layers__captures_itself": "With a network",
    "two_layers__not_on_the_stream": "found    a graph with no nodes",
    "two_layers__sizes_changed_about": "a graph that stays within its buffers",
    "captured__behind_the_end": ("bytes from net.", "1 cudaErrorInvalidValue"),
    "captured__from_the_last_row": ("a copy from or to another address", "1 cudaErrorInvalidValue"),
    "captured__destroyed": "a graph that the function has destroyed",
    "captured__layers_only": "expected a graph with",
    "captured__no_copy_back": "expected a graph with",
    "captured__all_rows": "which stay as they are",
    "captured__elements_for_bytes": "net.host_out[",
    "captured__copied_before": "expected a graph with",
    "captured__answer_first": "found    a graph with",
    "captured__one_size": "net.host_out",
    "captured__instantiated": "expected back: graph",
    "captured__left_open": "left a capture open",
    "inference__input_beside_the_layers": "run side by side",
    "inference__layers_side_by_side": "run side by side",
    "inference__plain_stream": "launches a graph that is ready and no kernels",
    "inference__captures_each_time": "launches a graph that is ready and no kernels",
    "inference__captures_and_updates": "launches a graph that is ready and no kernels",
    "inference__view": "which later ones do not change",
    "inference__does_not_wait": "expected answer[",
    "inference__fills_after_the_launch": "expected answer[",
    "inference__reads_before_the_wait": "expected answer[",
    "inference__in_a_stream_of_its_own": "every launch in the stream that was given",
    "inference__instantiates_each_time": "an executable that is there is launched",
    "inference__rebuilds_by_hand": "an executable that is there is launched",
    "inference__destroys_at_once": "was given the handle of a destroyed executable",
    "inference__by_numpy": "on the GPU",
    "inference__weights_of_the_first_day": "expected answer[",
    "inference__no_input": "expected answer[",
    "inference__first_size_only": "with",
    "inference__all_rows_back": "an array of shape",
    "inference__flat": "an array of shape",
    "inference__keeps_the_answers": "expected answer[",
    "inference__batch_in_the_graph": "expected answer[",
    "inference__device_array": "DeviceArray",
    "inference__returns_an_answer": "expected back: function",
    "inference__changes_the_batch": "which belongs to the caller",
    "new_weights__new_buffers": "other buffers in net",
    "new_weights__freed_and_new": "other buffers in net",
    "new_weights__numpy_in_net": "other buffers in net",
    "new_weights__does_not_wait": "from pinned memory that changed",
    "new_weights__in_a_stream_of_its_own": "so with the old weights",
    "new_weights__in_the_default_stream": "so with the old weights",
    "new_weights__first_only": "net.out[",
    "new_weights__second_only": "net.hidden[",
    "new_weights__transposed": "net.hidden[",
    "new_weights__elements_for_bytes": "net.hidden[",
    "new_weights__adds": "net.hidden[",
}
RIGHT = ("two_layers__other_way", "captured__other_way", "captured__by_hand", "inference__pads", "inference__size_in_memory", "inference__kept_in_a_list", "inference__grows",
         "inference__memory_of_its_own", "new_weights__through_pinned_memory", "new_weights__waits_first")


def _blocks(floats):
    return -(-floats // 256)


def _dense(stream, net, rows, relu=(1, 0), blocks=None):
    first, second = blocks or (_blocks(rows * net.middle), _blocks(rows * net.cols))
    ok(launch(stream, kernels.dense, first, 256, net.hidden, net.x, net.w1, rows, net.inner, net.middle, relu[0]))
    ok(launch(stream, kernels.dense, second, 256, net.out, net.hidden, net.w2, rows, net.middle, net.cols, relu[1]))


def two_layers__no_relu(stream, net, rows):
    _dense(stream, net, rows, relu=(0, 0))


def two_layers__relu_twice(stream, net, rows):
    _dense(stream, net, rows, relu=(1, 1))


def two_layers__one_layer(stream, net, rows):
    ok(launch(stream, kernels.dense, _blocks(rows * net.middle), 256, net.hidden, net.x, net.w1, rows, net.inner, net.middle, 1))


def two_layers__all_rows(stream, net, rows):
    _dense(stream, net, net.most)


def two_layers__few_blocks(stream, net, rows):
    _dense(stream, net, rows, blocks=(_blocks(rows), _blocks(rows)))


def two_layers__blocks_of_the_last_layer_from_rows(stream, net, rows):
    _dense(stream, net, rows, blocks=(_blocks(rows * net.middle), _blocks(rows)))


def two_layers__second_first(stream, net, rows):
    """In a row, but the second layer reads what the first has not made yet; the copies of both are there."""
    ok(launch(stream, kernels.dense, _blocks(rows * net.cols), 256, net.out, net.hidden, net.w2, rows, net.middle, net.cols, 0))
    ok(launch(stream, kernels.dense, _blocks(rows * net.middle), 256, net.hidden, net.x, net.w1, rows, net.inner, net.middle, 0))


def two_layers__waits(stream, net, rows):
    _dense(stream, net, rows)
    ok(cudart.cudaStreamSynchronize(stream))


def two_layers__by_numpy(stream, net, rows):
    x = to_host(net.x, stream).reshape(net.most, net.inner)[:rows]
    hidden = np.maximum(x @ to_host(net.w1).reshape(net.inner, net.middle), 0)
    copy_in(net.hidden, hidden)


def two_layers__captures_itself(stream, net, rows):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    _dense(stream, net, rows)
    return ok(cudart.cudaStreamEndCapture(stream))


def two_layers__not_on_the_stream(stream, net, rows):
    other = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    _dense(other, net, rows)


def two_layers__other_way(stream, net, rows):
    """More blocks than there is work for, and a loop over the layers."""
    layers = (net.hidden, net.x, net.w1, net.inner, net.middle, 1), (net.out, net.hidden, net.w2, net.middle, net.cols, 0)
    for y, x, w, inner, cols, relu in layers:
        ok(launch(stream, kernels.dense, (rows * cols + 255) // 256 + 1, 256, y, x, w, rows, inner, cols, relu))


def _up(stream, net, rows, each=4, source=None):
    ok(cudart.cudaMemcpyAsync(net.x.ptr, (net.host_in if source is None else source).ctypes.data, rows * net.inner * each, UP, stream))


def _down(stream, net, rows, each=4):
    ok(cudart.cudaMemcpyAsync(net.host_out.ctypes.data, net.out.ptr, rows * net.cols * each, DOWN, stream))


def _record(stream, *steps):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for step in steps:
        step()
    return ok(cudart.cudaStreamEndCapture(stream))


def _all(stream, net, rows):
    return _record(stream, lambda: _up(stream, net, rows), lambda: _dense(stream, net, rows), lambda: _down(stream, net, rows))


def two_layers__sizes_changed_about(stream, net, rows):
    """The second layer makes rows of net.middle floats, where there is room for rows of net.cols. (Or reads past the end.)"""
    ok(launch(stream, kernels.dense, _blocks(rows * net.middle), 256, net.hidden, net.x, net.w1, net.most, net.middle, net.inner, 1))
    ok(launch(stream, kernels.dense, _blocks(rows * net.middle), 256, net.out, net.hidden, net.w2, net.most, 2 * net.cols, 2 * net.middle, 0))


def captured__behind_the_end(stream, net, rows):
    return _record(stream, lambda: _up(stream, net, 2 * net.most), lambda: _dense(stream, net, rows), lambda: _down(stream, net, rows))


def captured__from_the_last_row(stream, net, rows):
    return _record(stream, lambda: _up(stream, net, rows, source=net.host_in[-1:]), lambda: _dense(stream, net, rows), lambda: _down(stream, net, rows))


def captured__destroyed(stream, net, rows):
    made = _all(stream, net, rows)
    ok(cudart.cudaGraphDestroy(made))
    return made


def captured__layers_only(stream, net, rows):
    return _record(stream, lambda: _dense(stream, net, rows))


def captured__no_copy_back(stream, net, rows):
    return _record(stream, lambda: _up(stream, net, rows), lambda: _dense(stream, net, rows))


def captured__all_rows(stream, net, rows):
    return _all(stream, net, net.most)


def captured__elements_for_bytes(stream, net, rows):
    return _record(stream, lambda: _up(stream, net, rows, 1), lambda: _dense(stream, net, rows), lambda: _down(stream, net, rows, 1))


def captured__copied_before(stream, net, rows):
    _up(stream, net, rows)
    return _record(stream, lambda: _dense(stream, net, rows), lambda: _down(stream, net, rows))


def captured__answer_first(stream, net, rows):
    return _record(stream, lambda: _down(stream, net, rows), lambda: _up(stream, net, rows), lambda: _dense(stream, net, rows))


def captured__one_size(stream, net, rows):
    return _all(stream, net, 1)


def captured__instantiated(stream, net, rows):
    return ok(cudart.cudaGraphInstantiate(_all(stream, net, rows), 0))


def captured__left_open(stream, net, rows):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    _up(stream, net, rows), _dense(stream, net, rows), _down(stream, net, rows)
    return graph.capture_state(stream).graph


def captured__other_way(stream, net, rows):
    """In another mode, over buffers that are cut to the rows."""
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal))
    ok(cudart.cudaMemcpyAsync(net.x.ptr, net.host_in.ctypes.data, net.host_in[:rows].nbytes, cudart.cudaMemcpyKind.cudaMemcpyDefault, stream))
    two_layers__other_way(stream, net, rows)
    ok(cudart.cudaMemcpyAsync(net.host_out.ctypes.data, net.out.ptr, net.host_out[:rows].nbytes, cudart.cudaMemcpyKind.cudaMemcpyDefault, stream))
    return ok(cudart.cudaStreamEndCapture(stream))


def captured__by_hand(stream, net, rows):
    made = ok(cudart.cudaGraphCreate(0))
    node = ok(cudart.cudaGraphAddMemcpyNode1D(made, [], 0, net.x.ptr, net.host_in.ctypes.data, rows * net.inner * 4, UP))
    for y, x, w, inner, cols, relu in ((net.hidden, net.x, net.w1, net.inner, net.middle, 1), (net.out, net.hidden, net.w2, net.middle, net.cols, 0)):
        node = ok(cudart.cudaGraphAddKernelNode(made, [node], 1, kernel_params(kernels.dense, _blocks(rows * cols), 256, y, x, w, rows, inner, cols, relu)))
    ok(cudart.cudaGraphAddMemcpyNode1D(made, [node], 1, net.host_out.ctypes.data, net.out.ptr, rows * net.cols * 4, DOWN))
    return made


def _wait(stream):
    ok(cudart.cudaStreamSynchronize(stream))


def _served(stream, net, ready, batch, wait=True, write=True):
    rows = len(batch)
    if rows not in ready:
        ready[rows] = ok(cudart.cudaGraphInstantiate(_all(stream, net, rows), 0))
    if write:
        net.host_in[:rows] = batch
    ok(cudart.cudaGraphLaunch(ready[rows], stream))
    if wait:
        _wait(stream)
    return net.host_out[:rows]


def inference__plain_stream(stream, net):
    def infer(batch):
        rows = len(batch)
        net.host_in[:rows] = batch
        _up(stream, net, rows), _dense(stream, net, rows), _down(stream, net, rows)
        _wait(stream)
        return net.host_out[:rows].copy()
    return infer


def _forked(stream, net, first, beside):
    """Serves with graphs in which one piece of work is on a stream of its own, joined before the copy back."""
    ready, side, event = {}, ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)), ok(cudart.cudaEventCreate())

    def infer(batch):
        rows = len(batch)
        if rows not in ready:
            ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
            first(rows)
            ok(cudart.cudaEventRecord(event, stream))
            ok(cudart.cudaStreamWaitEvent(side, event, 0))
            beside(side, rows)
            ok(cudart.cudaEventRecord(event, side))
            ok(cudart.cudaStreamWaitEvent(stream, event, 0))
            _down(stream, net, rows)
            plan = ok(cudart.cudaStreamEndCapture(stream))
            ready[rows] = ok(cudart.cudaGraphInstantiate(plan, 0))
            ok(cudart.cudaGraphDestroy(plan))
        net.host_in[:rows] = batch
        ok(cudart.cudaGraphLaunch(ready[rows], stream))
        _wait(stream)
        return net.host_out[:rows].copy()
    return infer


def inference__input_beside_the_layers(stream, net):
    def beside(side, rows):
        _up(side, net, rows)
        _dense(stream, net, rows)
    return _forked(stream, net, lambda rows: None, beside)


def inference__layers_side_by_side(stream, net):
    def beside(side, rows):
        ok(launch(stream, kernels.dense, -(-rows * net.middle // 256), 256, net.hidden, net.x, net.w1, rows, net.inner, net.middle, 1))
        ok(launch(side, kernels.dense, -(-rows * net.cols // 256), 256, net.out, net.hidden, net.w2, rows, net.middle, net.cols, 0))
    return _forked(stream, net, lambda rows: _up(stream, net, rows), beside)


def inference__captures_each_time(stream, net):
    return lambda batch: _served(stream, net, {}, batch).copy()


def inference__captures_and_updates(stream, net):
    executable = ok(cudart.cudaGraphInstantiate(_all(stream, net, net.most), 0))

    def infer(batch):
        fresh = _all(stream, net, len(batch))
        ok(cudart.cudaGraphExecUpdate(executable, fresh))
        ok(cudart.cudaGraphDestroy(fresh))
        return _served(stream, net, {len(batch): executable}, batch).copy()
    return infer


def inference__view(stream, net):
    ready = {}
    return lambda batch: _served(stream, net, ready, batch)


def inference__does_not_wait(stream, net):
    ready = {}
    return lambda batch: _served(stream, net, ready, batch, wait=False).copy()


def inference__fills_after_the_launch(stream, net):
    """Right where the GPU is slow to begin."""
    ready = {}

    def infer(batch):
        rows = len(batch)
        if rows not in ready:
            ready[rows] = ok(cudart.cudaGraphInstantiate(_all(stream, net, rows), 0))
        ok(cudart.cudaGraphLaunch(ready[rows], stream))
        net.host_in[:rows] = batch
        _wait(stream)
        return net.host_out[:rows].copy()
    return infer


def inference__reads_before_the_wait(stream, net):
    """Right where the GPU is fast."""
    ready = {}

    def infer(batch):
        answer = _served(stream, net, ready, batch, wait=False).copy()
        _wait(stream)
        return answer
    return infer


def inference__in_a_stream_of_its_own(stream, net):
    ready, own = {}, ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    return lambda batch: _served(own, net, ready, batch).copy()


def inference__instantiates_each_time(stream, net):
    graphs = {}

    def infer(batch):
        rows = len(batch)
        if rows not in graphs:
            graphs[rows] = _all(stream, net, rows)
        return _served(stream, net, {rows: ok(cudart.cudaGraphInstantiate(graphs[rows], 0))}, batch).copy()
    return infer


def inference__rebuilds_by_hand(stream, net):
    return lambda batch: _served(stream, net, {len(batch): ok(cudart.cudaGraphInstantiate(captured__by_hand(stream, net, len(batch)), 0))}, batch).copy()


def inference__destroys_at_once(stream, net):
    ready = {}

    def infer(batch):
        answer = _served(stream, net, ready, batch).copy()
        ok(cudart.cudaGraphExecDestroy(ready[len(batch)]))
        return answer
    return infer


def inference__grows(stream, net):
    """One executable, for the most rows that have come so far; the one before is destroyed."""
    made = {}

    def infer(batch):
        rows = len(batch)
        if not made or max(made) < rows:
            for executable in made.values():
                ok(cudart.cudaGraphExecDestroy(executable))
            made.clear()
        if not made:
            plan = _all(stream, net, rows)
            made[rows] = ok(cudart.cudaGraphInstantiate(plan, 0))
            ok(cudart.cudaGraphDestroy(plan))
        net.host_in[:rows] = batch
        ok(cudart.cudaGraphLaunch(next(iter(made.values())), stream))
        ok(cudart.cudaDeviceSynchronize())
        return net.host_out[:rows].copy()
    return infer


def inference__memory_of_its_own(stream, net):
    """The batch goes up by a copy before the launch; the graph has the layers only, and the answer is fetched after them."""
    ready = {}

    def infer(batch):
        rows = len(batch)
        if rows not in ready:
            ready[rows] = ok(cudart.cudaGraphInstantiate(_record(stream, lambda: _dense(stream, net, rows)), 0))
        ok(cudart.cudaMemcpyAsync(net.x.ptr, batch.ctypes.data, batch.nbytes, UP, stream))
        ok(cudart.cudaGraphLaunch(ready[rows], stream))
        return to_host(net.out, stream).reshape(net.most, net.cols)[:rows].copy()
    return infer


def _numpy(net, batch, w1, w2):
    return np.maximum(batch @ w1.reshape(net.inner, net.middle), 0) @ w2.reshape(net.middle, net.cols)


def inference__by_numpy(stream, net):
    return lambda batch: _numpy(net, batch, to_host(net.w1), to_host(net.w2))


def inference__weights_of_the_first_day(stream, net):
    """Runs the graph, and answers from the host."""
    ready, w1, w2 = {}, to_host(net.w1), to_host(net.w2)

    def infer(batch):
        _served(stream, net, ready, batch)
        return _numpy(net, batch, w1, w2)
    return infer


def inference__no_input(stream, net):
    ready = {}
    return lambda batch: _served(stream, net, ready, batch, write=False).copy()


def inference__first_size_only(stream, net):
    made = []

    def infer(batch):
        if not made:
            made.append(ok(cudart.cudaGraphInstantiate(_all(stream, net, len(batch)), 0)))
        return _served(stream, net, {len(batch): made[0]}, batch).copy()
    return infer


def inference__all_rows_back(stream, net):
    ready = {}

    def infer(batch):
        _served(stream, net, ready, batch)
        return net.host_out.copy()
    return infer


def inference__flat(stream, net):
    ready = {}
    return lambda batch: _served(stream, net, ready, batch).flatten()


def inference__keeps_the_answers(stream, net):
    """An answer for each size, found again when the size comes again."""
    ready, answers = {}, {}

    def infer(batch):
        if len(batch) not in answers:
            answers[len(batch)] = _served(stream, net, ready, batch).copy()
        return answers[len(batch)]
    return infer


def inference__batch_in_the_graph(stream, net):
    """The first batch of each size is what the graph reads, from pageable memory."""
    ready = {}

    def infer(batch):
        rows = len(batch)
        if rows not in ready:
            made = _record(stream, lambda: _up(stream, net, rows, source=batch), lambda: _dense(stream, net, rows), lambda: _down(stream, net, rows))
            ready[rows] = ok(cudart.cudaGraphInstantiate(made, 0))
        return _served(stream, net, ready, batch).copy()
    return infer


def inference__device_array(stream, net):
    ready = {}

    def infer(batch):
        _served(stream, net, ready, batch)
        return net.out
    return infer


def inference__returns_an_answer(stream, net):
    return _served(stream, net, {}, net.host_in.copy()).copy()


def inference__changes_the_batch(stream, net):
    ready = {}

    def infer(batch):
        answer = _served(stream, net, ready, batch).copy()
        batch[:] = 0
        return answer
    return infer


def inference__pads(stream, net):
    """Always all rows; the first ones are the answer."""
    executable = ok(cudart.cudaGraphInstantiate(_all(stream, net, net.most), 0))

    def infer(batch):
        net.host_in[:len(batch)] = batch
        ok(cudart.cudaGraphLaunch(executable, stream))
        _wait(stream)
        return np.array(net.host_out[:len(batch)])
    return infer


def inference__size_in_memory(stream, net):
    """One executable whose kernels read the count of rows on the GPU."""
    now, counts = to_device(np.zeros(1, np.int32)), np.arange(net.most + 1, dtype=np.int32)

    def layers():
        for y, x, w, inner, cols, relu in ((net.hidden, net.x, net.w1, net.inner, net.middle, 1), (net.out, net.hidden, net.w2, net.middle, net.cols, 0)):
            ok(launch(stream, kernels.dense_n, _blocks(net.most * cols), 256, y, x, w, now, inner, cols, relu))
    made = _record(stream, lambda: _up(stream, net, net.most), layers, lambda: _down(stream, net, net.most))
    executable = ok(cudart.cudaGraphInstantiate(made, 0))

    def infer(batch):
        rows = len(batch)
        ok(cudart.cudaMemcpyAsync(now.ptr, counts.ctypes.data + 4 * rows, 4, UP, stream))
        net.host_in[:rows] = batch
        ok(cudart.cudaGraphLaunch(executable, stream))
        _wait(stream)
        return net.host_out[:rows].copy()
    return infer


class _Served:
    def __init__(self, stream, net):
        self.stream, self.net, self.ready = stream, net, [None] * (net.most + 1)

    def __call__(self, batch):
        rows, _ = batch.shape
        if self.ready[rows] is None:
            _dense(self.stream, self.net, rows)                 # a warm-up, once
            self.ready[rows] = ok(cudart.cudaGraphInstantiate(_all(self.stream, self.net, rows), 0))
        np.copyto(self.net.host_in[:rows], batch)
        ok(cudart.cudaGraphLaunch(self.ready[rows], self.stream))
        _wait(self.stream)
        return self.net.host_out[:rows].copy()


def inference__kept_in_a_list(stream, net):
    """An object that can be called, with a list, and a warm-up before each capture."""
    return _Served(stream, net)


def _copy(stream, buffer, weights, nbytes):
    ok(cudart.cudaMemcpyAsync(buffer.ptr, weights.ctypes.data, nbytes, UP, stream))
    _wait(stream)


def new_weights__new_buffers(stream, net, w1, w2):
    net.w1, net.w2 = to_device(w1), to_device(w2)


def new_weights__freed_and_new(stream, net, w1, w2):
    """The new buffers may well lie where the old ones lay: right by luck."""
    net.w1.free(), net.w2.free()
    net.w1, net.w2 = to_device(w1), to_device(w2)


def new_weights__numpy_in_net(stream, net, w1, w2):
    net.w1, net.w2 = w1, w2


def new_weights__first_only(stream, net, w1, w2):
    _copy(stream, net.w1, w1, net.w1.nbytes)


def new_weights__second_only(stream, net, w1, w2):
    _copy(stream, net.w2, w2, net.w2.nbytes)


def new_weights__transposed(stream, net, w1, w2):
    for buffer, weights in ((net.w1, w1.T.copy()), (net.w2, w2.T.copy())):
        _copy(stream, buffer, weights, buffer.nbytes)


def new_weights__elements_for_bytes(stream, net, w1, w2):
    for buffer, weights in ((net.w1, w1), (net.w2, w2)):
        _copy(stream, buffer, weights, buffer.size)


def new_weights__adds(stream, net, w1, w2):
    for buffer, weights in ((net.w1, w1), (net.w2, w2)):
        copy_in(buffer, to_host(buffer) + weights.reshape(-1))


def new_weights__does_not_wait(stream, net, w1, w2):
    for buffer, weights in ((net.w1, w1), (net.w2, w2)):
        ok(cudart.cudaMemcpyAsync(buffer.ptr, weights.ctypes.data, buffer.nbytes, UP, stream))


def new_weights__in_a_stream_of_its_own(stream, net, w1, w2):
    own = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    _copy(own, net.w1, w1, net.w1.nbytes)
    _copy(own, net.w2, w2, net.w2.nbytes)
    ok(cudart.cudaStreamDestroy(own))


def new_weights__in_the_default_stream(stream, net, w1, w2):
    """It waits for its own copies, and for nothing that stream has to do."""
    copy_in(net.w1, w1)
    copy_in(net.w2, w2)


def new_weights__through_pinned_memory(stream, net, w1, w2):
    """One piece of pinned memory in between; the arrays are read at once, and only that memory has to stay."""
    for buffer, weights in ((net.w1, w1), (net.w2, w2)):
        address = ok(cudart.cudaMallocHost(buffer.nbytes))
        ok(cudart.cudaMemcpy(address, weights.ctypes.data, buffer.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToHost))
        ok(cudart.cudaMemcpyAsync(buffer.ptr, address, buffer.nbytes, UP, stream))
        _wait(stream)
        ok(cudart.cudaFreeHost(address))


def new_weights__waits_first(stream, net, w1, w2):
    ok(cudart.cudaDeviceSynchronize())
    for buffer, weights in ((net.w1, w1), (net.w2, w2)):
        ok(cudart.cudaMemcpy(buffer.ptr, weights.ctypes.data, weights.nbytes, UP))
