"""Wrong answers to exercise 08, and what check() says of each."""
from labkit import cudart, graph, kernel_params, kernels, launch, launched, ok, set_kernel
from labkit.labs.kernels import axpy_counting

EXPECT = {
    "set_factor__changes_the_graph": "after set_factor(..., 3) and a launch",
    "set_factor__changes_both": "the graph as it was",
    "set_factor__always_three": "after set_factor(..., 0.5) and a launch",
    "set_factor__wrong_argument": "float",
    "set_factor__runs_it_instead": "after set_factor(..., 3) and a launch",
    "set_target__the_source_instead": "the new target",
    "set_target__both": "the new target",
    "set_target__copies_at_once": "the new target",
    "set_size__only_n": "the count of blocks",
    "set_size__only_the_grid": "expected",
    "set_size__one_block_too_many": "the count of blocks",
    "set_size__one_too_many_for_full_blocks": "after set_size(..., 256) and a launch",
    "set_size__rounds_down": "expected",
    "set_size__switches_it_off": "expected",
}
RIGHT = ("set_factor__from_scratch", "set_size__with_prepared_parameters")


def set_factor__changes_the_graph(executable, node, factor):
    ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={2: factor})))


def set_factor__changes_both(executable, node, factor):
    ok(set_kernel(executable, node, args={2: factor}))
    ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={2: factor})))


def set_factor__always_three(executable, node, factor):
    ok(set_kernel(executable, node, args={2: 3.0}))


def set_factor__wrong_argument(executable, node, factor):
    ok(set_kernel(executable, node, args={1: factor}))


def set_factor__runs_it_instead(executable, node, factor):
    y, x, _, n = launched(node).args
    stream = ok(cudart.cudaStreamCreate())
    ok(launch(stream, kernels.axpy, -(-n // 256), 256, y, x, factor, n))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaStreamDestroy(stream))


def set_factor__from_scratch(executable, node, factor):
    y, x, _, n = launched(node).args
    ok(cudart.cudaGraphExecKernelNodeSetParams(executable, node, kernel_params(kernels.axpy, -(-n // 256), 256, y, x, factor, n)))


def set_target__the_source_instead(executable, node, target):
    ok(set_kernel(executable, node, args={1: target}))


def set_target__both(executable, node, target):
    ok(set_kernel(executable, node, args={0: target, 1: target}))


def set_target__copies_at_once(executable, node, target):
    ok(cudart.cudaMemcpy(target.ptr, launched(node).args[0], target.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice))


def set_size__only_n(executable, node, n):
    ok(set_kernel(executable, node, args={3: n}))


def set_size__only_the_grid(executable, node, n):
    ok(set_kernel(executable, node, grid=-(-n // 256)))


def set_size__one_block_too_many(executable, node, n):
    ok(set_kernel(executable, node, grid=n // 256 + 1 + (n == 1), args={3: n}))


def set_size__rounds_down(executable, node, n):
    ok(set_kernel(executable, node, grid=max(1, n // 256), args={3: n}))


def set_size__switches_it_off(executable, node, n):
    ok(cudart.cudaGraphNodeSetEnabled(executable, node, 0))


def set_size__with_prepared_parameters(executable, node, n):
    y, x, a, _, blocks = launched(node).args
    assert graph.kind(node) == "Kernel"
    p = kernel_params(axpy_counting, -(-n // 256), 256, y, x, a, n, blocks)
    ok(cudart.cudaGraphExecKernelNodeSetParams(executable, node, p))


def set_size__one_too_many_for_full_blocks(executable, node, n):
    ok(set_kernel(executable, node, grid=n // 256 + 1, args={3: n}))
