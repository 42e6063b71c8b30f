"""Repaired programs of cases 09 to 16, each in two ways (fix, other), and cheats that must be refused."""
import ctypes

import numpy as np

from labkit import cases, cudart, empty, graph as graphs, keep_alive, kernel_params, kernels, launch, launched, ok, set_kernel, to_device, to_host
from labkit.arrays import copy_in
from tests.labkit.case_fixes_loud import axpy, begin, end, nothing, ready, scale

TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
TO_HOST = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost


# 09: the helper's launch goes to the capturing stream

def fix_09(stream, y, bias):
    def add_bias(y, bias, stream):
        return launch(stream, kernels.axpy, 8, 256, y, bias, 1.0, y.size)
    begin(stream)
    scale(stream, y, 2.0)
    ok(add_bias(y, bias, stream))
    return end(stream)


def other_09(stream, y, bias):
    begin(stream)
    scale(stream, y, 2.0)
    graph = end(stream)                                       # and the second kernel by hand
    ok(cudart.cudaGraphAddKernelNode(graph, graphs.nodes(graph), 1, kernel_params(kernels.axpy, 8, 256, y, bias, 1.0, y.size)))
    return graph


def cheat_09(stream, y, bias):
    begin(stream)
    scale(stream, y, 2.0)
    graph = end(stream)
    axpy(stream, y, bias)
    return graph


# 10: the new numbers come to the old place

def doubling(stream, y, x):
    begin(stream)
    ok(launch(stream, kernels.add, 8, 256, y, x, x, y.size))
    return end(stream)


def fix_10(stream, y, batch):
    x = to_device(batch)

    def feed(batch):
        copy_in(x, batch)
    return doubling(stream, y, x), feed


def other_10(stream, y, batch):
    x, kept = to_device(batch), np.array(batch)               # the graph brings the numbers itself
    begin(stream)
    ok(cudart.cudaMemcpyAsync(x.ptr, kept.ctypes.data, kept.nbytes, TO_DEVICE, stream))
    ok(launch(stream, kernels.add, 8, 256, y, x, x, y.size))

    def feed(batch):
        kept[:] = batch
    return end(stream), feed


def cheat_10(stream, y, batch):
    def feed(batch):
        copy_in(y, 2 * batch)
    return nothing(stream), feed


# 11: a copy that only the graph has

def fix_11(stream, y, table):
    mine = to_device(table)
    begin(stream)
    ok(launch(stream, kernels.add, 8, 256, y, mine, mine, y.size))
    return end(stream)


def other_11(stream, y, table):
    mine = table.copy()
    begin(stream)
    ok(cudart.cudaMemcpyAsync(y.ptr, mine.ctypes.data, mine.nbytes, TO_DEVICE, stream))
    scale(stream, y, 2.0)
    graph = end(stream)
    keep_alive(graph, mine)
    return graph


def third_11(stream, y, table):
    mine = table.copy()
    begin(stream)
    ok(cudart.cudaMemcpyAsync(y.ptr, mine.ctypes.data, mine.nbytes, TO_DEVICE, stream))
    scale(stream, y, 2.0)
    return end(stream), mine                                  # what else comes back is kept


def cheat_11(stream, y, table):
    copy_in(y, 2 * table)
    return nothing(stream)


def cheat_11_dropped(stream, y, table):
    return third_11(stream, y, table)[0]                      # nobody keeps the copy


# 12: another node, or memory

def fix_12(stream, w, grad):
    begin(stream)
    axpy(stream, w, grad)
    recorded, executable = ready(end(stream))

    def set_rate(r):
        set_kernel(executable, graphs.nodes(recorded)[0], args={2: r})
    return recorded, executable, set_rate


def other_12(stream, w, grad):
    rate, step = to_device(np.ones(1, np.float32)), empty(w.size)
    begin(stream)
    ok(launch(stream, kernels.dense, 8, 256, step, grad, rate, w.size, 1, 1, 0))     # step = grad * rate
    axpy(stream, w, step)
    recorded, executable = ready(end(stream))

    def set_rate(r):
        copy_in(rate, np.array([r], np.float32))
    return recorded, executable, set_rate


def cheat_12(stream, w, grad):
    def set_rate(r):
        axpy(stream, w, grad, r)
    return *ready(nothing(stream)), set_rate


# 13: the seed lies in device memory

def fix_13(stream, y):
    seed = to_device(np.array([1234], np.int32))
    begin(stream)
    ok(launch(stream, cases.noise_at, 8, 256, y, seed, y.size))
    ok(launch(stream, cases.advance, 1, 1, seed, y.size))
    return end(stream)


def other_13(stream, y):
    seed, address = to_device(np.array([1], np.int32)), ok(cudart.cudaMallocHost(4))     # pinned: read when the copy runs
    kept = np.ctypeslib.as_array((ctypes.c_int32 * 1).from_address(address))            # a host node draws it

    def draw():
        kept[0] = np.random.randint(2 ** 30)
    graph = ok(cudart.cudaGraphCreate(0))
    host = cases.host_node(graph, draw)
    copy = ok(cudart.cudaGraphAddMemcpyNode1D(graph, [host], 1, seed.ptr, kept.ctypes.data, 4, TO_DEVICE))
    ok(cudart.cudaGraphAddKernelNode(graph, [copy], 1, kernel_params(cases.noise_at, 8, 256, y, seed, y.size)))
    return graph, kept


def cheat_13(stream, y):
    begin(stream)
    scale(stream, y, -0.5)                                    # other numbers, and no noise
    return end(stream)


# 14: each result is taken to safety

def feed_and_launch(stream, executable, x, batch):
    ok(cudart.cudaMemcpyAsync(x.ptr, batch.ctypes.data, batch.nbytes, TO_DEVICE, stream))
    ok(cudart.cudaGraphLaunch(executable, stream))


def fix_14(stream, executable, x, y, batches):
    results = []
    for batch in batches:
        feed_and_launch(stream, executable, x, batch)
        results.append(to_host(y, stream))
    return results


def other_14(stream, executable, x, y, batches):
    results = [empty(y.size) for _ in batches]
    for batch, result in zip(batches, results):
        feed_and_launch(stream, executable, x, batch)
        ok(cudart.cudaMemcpyAsync(result.ptr, y.ptr, y.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    return results


def cheat_14(stream, executable, x, y, batches):
    return [2 * batch for batch in batches]


# 15: the graph brings the number, the function only reads it

def fix_15(stream, y, log):
    first = np.zeros(1, np.float32)
    begin(stream)
    scale(stream, y, 2.0)
    ok(cudart.cudaMemcpyAsync(first.ctypes.data, y.ptr, 4, TO_HOST, stream))
    recorded = end(stream)
    cases.host_node(recorded, lambda: log.append(float(first[0])))
    return recorded


def other_15(stream, y, log):
    first = np.zeros(y.size, np.float32)
    begin(stream)
    scale(stream, y, 2.0)
    recorded = end(stream)
    ok(cudart.cudaGraphAddMemcpyNode1D(recorded, graphs.nodes(recorded), 1, first.ctypes.data, y.ptr, y.nbytes, TO_HOST))
    cases.host_node(recorded, lambda: log.append(first[0]))
    return recorded


def cheat_15(stream, y, log):
    begin(stream)
    scale(stream, y, 2.0)
    recorded = end(stream)
    value = 2 * float(to_host(y, stream)[0])                  # what the first launch would give, if y stayed
    cases.host_node(recorded, lambda: log.append(value))
    return recorded


# 16: the executable is set, not the graph

def counted(stream, y, change):
    begin(stream)
    scale(stream, y, 2.0)
    recorded, executable = ready(end(stream))
    node, = graphs.nodes(recorded)
    return recorded, executable, lambda n: change(recorded, executable, node, n)


def fix_16(stream, y):
    return counted(stream, y, lambda recorded, executable, node, n:
                   ok(cudart.cudaGraphExecKernelNodeSetParams(executable, node, launched(node).but(args={2: n}))))


def other_16(stream, y):
    def change(recorded, executable, node, n):
        ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={2: n})))
        ok(cudart.cudaGraphExecUpdate(executable, recorded))
    return counted(stream, y, change)


def cheat_16(stream, y):
    def set_count(n):
        ok(launch(stream, kernels.scale, 8, 256, y, 2.0, n))
    return *ready(nothing(stream)), set_count
