"""Memory, copies and when the host waits for them."""
import gc

import numpy as np
import pytest

from labkit import kernels
from labkit.errors import NotSimulated, Undefined, ok
from labkit.sim import runtime as cu


def test_freed_memory_is_given_out_again_at_the_same_address(lab):
    first = lab.buffer()
    ok(cu.cudaFree(first))
    assert cu.cudaFree(first)[0] == 1
    assert lab.buffer() == first and lab.buffer() != first and lab.buffer() > 1 << 51


def test_a_replay_reads_the_new_owners_bytes(lab):
    stream, x, y = lab.stream(), lab.buffer(value=1), lab.buffer(value=0)
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    ok(cu.cudaMemcpyAsync(y, x, 256, lab.D2D, stream))
    made = lab.run(ok(cu.cudaStreamEndCapture(stream)), stream)
    assert lab.read(y)[0] == 1
    ok(cu.cudaFree(x))
    assert cu.cudaGraphLaunch(made, stream)[0] == 0
    with pytest.raises(Undefined, match="No live allocation"):
        cu.cudaStreamSynchronize(stream)
    assert lab.buffer(value=7) == x
    ok(cu.cudaGraphLaunch(made, stream))
    ok(cu.cudaStreamSynchronize(stream))
    assert lab.read(y)[0] == 7


def test_past_the_end_is_undefined_and_the_world_goes_on(lab):
    stream, y = lab.stream(), lab.buffer(value=1)
    assert lab.launch(stream, kernels.scale, y, 2.0, 65, block=128) == 0
    with pytest.raises(Undefined, match="64 elements"):
        cu.cudaStreamSynchronize(stream)
    assert lab.step(stream, y) == 0 and cu.cudaStreamSynchronize(stream)[0] == 0 and lab.read(y)[0] == 2


def test_calls_see_what_memory_they_are_given(lab):
    y, host = lab.buffer(), np.zeros(64, np.float32)
    assert cu.cudaMemset(y, 0, 257)[0] == 1                         # past the end
    assert cu.cudaMemset(host, 0, 256)[0] == 1 and cu.cudaMemset(0, 0, 1)[0] == 1
    assert cu.cudaMemcpy(y, host, 256, 9)[0] == 21 and cu.cudaMemcpy(y, host, 0, lab.H2D)[0] == 0
    assert cu.cudaFree(y + 4)[0] == 1 and cu.cudaFree(0)[0] == 0 and cu.cudaMalloc(0) == (0, 0)
    assert cu.cudaMalloc(1 << 50) == (2, None)
    with pytest.raises(Undefined):
        cu.cudaMemcpy(y, y, 256, lab.H2D)


def test_reading_too_early_shows_the_old_bytes(lab):
    """A copy that nobody waits for has not run; waiting for it does no more than it needs."""
    pinned = ok(cu.cudaMallocHost(256))
    import ctypes
    seen = np.ctypeslib.as_array((ctypes.c_float * 64).from_address(pinned))
    seen[:] = 5
    a, b = lab.stream(), lab.stream()
    x, y = lab.buffer(value=1), lab.buffer(value=2)
    lab.step(a, x), lab.step(b, y)
    ok(cu.cudaMemcpyAsync(pinned, x, 256, lab.D2H, a))
    assert seen[0] == 5
    ok(cu.cudaStreamSynchronize(b))
    assert seen[0] == 5
    ok(cu.cudaStreamSynchronize(a))
    assert seen[0] == 2


def test_a_pageable_source_is_read_at_the_call_and_in_a_graph_at_replay(lab):
    stream, y, host = lab.stream(), lab.buffer(), np.full(64, 1, np.float32)
    ok(cu.cudaMemcpyAsync(y, host, 256, lab.H2D, stream))
    host[:] = 2
    ok(cu.cudaStreamSynchronize(stream))
    assert lab.read(y)[0] == 1
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    ok(cu.cudaMemcpyAsync(y, host, 256, lab.H2D, stream))
    graph = ok(cu.cudaStreamEndCapture(stream))
    host[:] = 3
    made = lab.run(graph, stream)
    assert lab.read(y)[0] == 3
    host[:] = 4
    ok(cu.cudaGraphLaunch(made, stream)), ok(cu.cudaStreamSynchronize(stream))
    assert lab.read(y)[0] == 4


def test_a_pinned_source_is_read_when_the_copy_runs(lab):
    import ctypes
    stream, y, pinned = lab.stream(), lab.buffer(), ok(cu.cudaHostAlloc(256, 0))
    seen = np.ctypeslib.as_array((ctypes.c_float * 64).from_address(pinned))
    seen[:] = 1
    ok(cu.cudaMemcpyAsync(y, pinned, 256, lab.H2D, stream))
    seen[:] = 2
    ok(cu.cudaStreamSynchronize(stream))
    assert lab.read(y)[0] == 2
    assert lab.launch(stream, kernels.scale, pinned, 5.0, 64) == 0 and cu.cudaStreamSynchronize(stream)[0] == 0 and seen[0] == 10
    ok(cu.cudaFreeHost(pinned))
    assert cu.cudaFreeHost(pinned)[0] == 1


def test_host_memory_that_is_gone_does_not_crash(lab):
    import mmap
    import ctypes
    area = mmap.mmap(-1, 1 << 16)
    view = (ctypes.c_char * 256).from_buffer(area)
    stream, y, address = lab.stream(), lab.buffer(), ctypes.addressof(view)
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    ok(cu.cudaMemcpyAsync(y, address, 256, lab.H2D, stream))
    made = lab.run(ok(cu.cudaStreamEndCapture(stream)), stream)
    del view
    gc.collect()
    area.close()
    with pytest.raises(Undefined, match="no longer exists"):
        cu.cudaGraphLaunch(made, stream)        # pageable memory is read by this call


def test_sync_copies_wait_for_blocking_streams_only(lab):
    for blocking, seen in ((True, 2), (False, 1)):
        stream, y = lab.stream(blocking), lab.buffer(value=1)
        lab.step(stream, y)
        assert lab.read(y)[0] == seen


def test_stream_ordered_memory(lab):
    stream = lab.stream()
    y = ok(cu.cudaMallocAsync(256, stream))
    assert lab.launch(stream, kernels.fill, y, 3.0, 64) == 0
    ok(cu.cudaFreeAsync(y, stream))
    assert cu.cudaFreeAsync(y, stream)[0] == 1
    again = ok(cu.cudaMallocAsync(256, stream))
    assert again == y
    ok(cu.cudaStreamSynchronize(stream))
    assert cu.cudaFree(again)[0] == 0


class TestGraphMemory:
    def graph(self, lab, free):
        stream, keep = lab.stream(), lab.buffer()
        ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
        y = ok(cu.cudaMallocAsync(256, stream))
        lab.launch(stream, kernels.fill, y, 3.0, 64)
        ok(cu.cudaMemcpyAsync(keep, y, 256, lab.D2D, stream))
        if free:
            ok(cu.cudaFreeAsync(y, stream))
            assert cu.cudaFreeAsync(y, stream)[0] == 1 and lab.status(stream) == "Active"
        return ok(cu.cudaStreamEndCapture(stream)), stream, y, keep

    def test_allocated_and_freed_inside_relaunches_at_will(self, lab):
        graph, stream, y, keep = self.graph(lab, free=True)
        assert lab.kinds(graph) == ["MemAlloc", "Kernel", "Memcpy", "MemFree"]
        lab.run(graph, stream, times=3)
        assert lab.read(keep)[0] == 3

    def test_left_unfreed_it_launches_once(self, lab):
        graph, stream, y, _ = self.graph(lab, free=False)
        assert cu.cudaMemset(y, 0, 256)[0] == 1                 # not before the first launch
        made = lab.run(graph, stream)
        assert cu.cudaGraphLaunch(made, stream)[0] == 1 and cu.cudaMemset(y, 0, 256)[0] == 0
        ok(cu.cudaFreeAsync(y, stream)), ok(cu.cudaGraphLaunch(made, stream))
        ok(cu.cudaFree(y)), ok(cu.cudaGraphLaunch(made, stream))
        ok(cu.cudaStreamSynchronize(stream))

    def test_auto_free_relaunches(self, lab):
        graph, stream, _, keep = self.graph(lab, free=False)
        made = ok(cu.cudaGraphInstantiate(graph, 1))
        for _ in range(3):
            ok(cu.cudaGraphLaunch(made, stream))
        ok(cu.cudaStreamSynchronize(stream))
        assert lab.read(keep)[0] == 3

    def test_freed_by_a_second_graph_it_alternates(self, lab):
        graph, stream, y, _ = self.graph(lab, free=False)
        made = lab.run(graph, stream)
        ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
        ok(cu.cudaFreeAsync(y, stream))
        second = lab.run(ok(cu.cudaStreamEndCapture(stream)), stream)
        for _ in range(2):
            ok(cu.cudaGraphLaunch(made, stream)), ok(cu.cudaGraphLaunch(second, stream))
        ok(cu.cudaStreamSynchronize(stream))

    def test_neither_cloned_nor_a_child_nor_instantiated_twice(self, lab):
        graph, *_ = self.graph(lab, free=True)
        made = ok(cu.cudaGraphInstantiate(graph, 0))
        assert cu.cudaGraphInstantiate(graph, 0) == (801, None) and cu.cudaGraphClone(graph) == (801, None)
        assert cu.cudaGraphAddChildGraphNode(ok(cu.cudaGraphCreate(0)), None, 0, graph) == (801, None)
        ok(cu.cudaGraphExecDestroy(made))
        assert cu.cudaGraphInstantiate(graph, 0)[0] == 0

    def test_nodes_say_what_they_allocate(self, lab):
        graph, _, y, _ = self.graph(lab, free=True)
        nodes = cu.cudaGraphGetNodes(graph, 4)[1]
        params = ok(cu.cudaGraphMemAllocNodeGetParams(nodes[0]))
        assert (params.bytesize, params.dptr) == (256, y) and ok(cu.cudaGraphMemFreeNodeGetParams(nodes[3])) == y
        assert cu.cudaGraphMemFreeNodeGetParams(nodes[0]) == (1, None)


def test_there_is_no_clock(lab):
    a, b, stream = lab.event(), lab.event(), lab.stream()
    assert cu.cudaEventElapsedTime(a, b) == (400, None)
    for event in (a, b):
        ok(cu.cudaEventRecord(event, stream))
    ok(cu.cudaStreamSynchronize(stream))
    with pytest.raises(NotSimulated, match="no clock"):
        cu.cudaEventElapsedTime(a, b)


def test_memory_is_counted(lab):
    free, total = cu.cudaMemGetInfo()[1:]
    y = lab.buffer()
    assert cu.cudaMemGetInfo()[1] < free
    ok(cu.cudaFree(y))
    assert cu.cudaMemGetInfo()[1:] == (free, total)


def test_cuda_malloc_takes_the_device_in_steps_of_2_mib(lab):
    lab.buffer()
    free = cu.cudaMemGetInfo()[1]
    small = [lab.buffer() for _ in range(3)]
    assert cu.cudaMemGetInfo()[1] == free
    large = ok(cu.cudaMalloc(3 << 20))
    assert cu.cudaMemGetInfo()[1] == free - (4 << 20)
    for place in (*small, large):
        ok(cu.cudaFree(place))
    assert cu.cudaMemGetInfo()[1] == free
    ok(cu.cudaMallocHost(1 << 22))                              # memory of the host does not count
    assert cu.cudaMemGetInfo()[1] == free


def test_free_async_takes_memory_of_cuda_malloc_outside_a_capture(lab):
    stream, place = lab.stream(), lab.buffer(value=1)
    lab.step(stream, place)
    ok(cu.cudaFreeAsync(place, stream))
    assert cu.cudaFree(place)[0] == cu.cudaMemset(place, 0, 4)[0] == 1
    assert lab.buffer() != place                                # the free has not run yet
    ok(cu.cudaStreamSynchronize(stream))
    assert lab.buffer() == place
    assert [cu.cudaFreeAsync(bad, stream)[0] for bad in (12345678, np.zeros(4), place + 4, ok(cu.cudaMallocHost(64)), 0, None)] == [1, 1, 1, 1, 0, 0]


def test_a_second_free_async_of_memory_of_cuda_malloc_is_heard_of_at_the_next_wait(lab):
    stream, place, other = lab.stream(), lab.buffer(), lab.buffer()
    ok(cu.cudaFreeAsync(place, stream)), ok(cu.cudaFreeAsync(place, stream))
    with pytest.raises(Undefined, match="twice"):
        cu.cudaStreamSynchronize(stream)
    ok(cu.cudaStreamSynchronize(stream))
    assert lab.buffer() == place and cu.cudaFreeAsync(place, stream)[0] == 0        # the new owner frees it once
    ok(cu.cudaFree(other))
    assert cu.cudaFreeAsync(other, stream)[0] == 1
