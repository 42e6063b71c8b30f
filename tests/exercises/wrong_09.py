"""Wrong answers to exercise 09, and what check() says of each."""
from labkit import cudart, graph, kernel_params, kernels, launch, launched, ok, set_kernel

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
EXPECT = {
    "swap_by_update__never_swaps": "buffer a",
    "swap_by_update__swaps_names_only": "a, the last state",
    "swap_by_update__copies_back": "buffer a",
    "swap_by_update__copies_back_and_says_a": "b, the state before",
    "swap_by_update__one_argument_only": "the last state",
    "swap_by_update__launches_kernels": "the count of launches of the executable",
    "swap_by_update__changes_the_graph": "a, the last state",
    "swap_by_update__one_launch_too_many": "the count of launches of the executable",
    "swap_by_update__returns_the_address": "buffer b",
    "swap_by_update__other_stream": "in another stream",
    "swap_by_update__default_stream": "in another stream",
    "swap_by_update__destroys_the_executable": "were not made here",
    "swap_by_update__says_no_word": "_Wordless",
    "swap_by_two__destroyed": "has destroyed",
    "swap_by_two__too_many_elements": "would go wrong",
    "swap_in_one_graph__destroyed": "has destroyed",
    "swap_in_one_graph__too_many_elements": "stays within its buffers",
    "swap_by_two__same_direction": "after there and back",
    "swap_by_two__copies_and_adds": "found:    one with Memcpy, axpy",
    "swap_by_two__one_twice": "the same one twice",
    "swap_by_two__other_order": "after there (launch 1)",
    "swap_by_two__graphs": "expected back: executable, executable",
    "swap_by_two__runs_at_once": "after there (launch 1)",
    "swap_in_one_graph__one_pair": "expected a graph with",
    "swap_in_one_graph__never_back": "after launch 1",
    "swap_in_one_graph__back_first": "after launch 1",
    "swap_in_one_graph__half_as_many": "expected a graph with",
    "swap_in_one_graph__runs_at_once": "before any launch",
    "swap_in_one_graph__copies": "expected a graph with",
}
RIGHT = ("swap_by_update__other_way", "swap_by_update__sets_after_the_launch", "swap_by_update__whole_update", "swap_by_two__other_way", "swap_in_one_graph__other_way")


def _set(executable, node, new, old):
    ok(set_kernel(executable, node, args={0: new, 1: old}))


def _copy(stream, to, from_):
    ok(cudart.cudaMemcpyAsync(to.ptr, from_.ptr, to.nbytes, TO_DEVICE, stream))


def swap_by_update__never_swaps(stream, executable, node, a, b, steps):
    for _ in range(steps):
        ok(cudart.cudaGraphLaunch(executable, stream))
    return b


def swap_by_update__swaps_names_only(stream, executable, node, a, b, steps):
    for _ in range(steps):
        ok(cudart.cudaGraphLaunch(executable, stream))
        a, b = b, a
    return a


def swap_by_update__copies_back(stream, executable, node, a, b, steps):
    for _ in range(steps - 1):
        ok(cudart.cudaGraphLaunch(executable, stream))
        _copy(stream, a, b)
    ok(cudart.cudaGraphLaunch(executable, stream))
    return b


def swap_by_update__copies_back_and_says_a(stream, executable, node, a, b, steps):
    for k in range(steps):
        ok(cudart.cudaGraphLaunch(executable, stream))
        if k < steps - 1 or steps % 2 == 0:
            _copy(stream, a, b)
    return b if steps % 2 else a


def swap_by_update__one_argument_only(stream, executable, node, a, b, steps):
    old, new = a, b
    for _ in range(steps):
        ok(set_kernel(executable, node, args={0: new}))
        ok(cudart.cudaGraphLaunch(executable, stream))
        old, new = new, old
    return old


def swap_by_update__launches_kernels(stream, executable, node, a, b, steps):
    held = launched(node)
    for _ in range(steps):
        ok(launch(stream, kernels.add, held.grid, 256, b, a, held.args[2], a.size))
        a, b = b, a
    return a


def swap_by_update__changes_the_graph(stream, executable, node, a, b, steps):
    for k in range(steps):
        ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={0: b, 1: a})))
        ok(cudart.cudaGraphLaunch(executable, stream))
        a, b = b, a
    return a


def swap_by_update__one_launch_too_many(stream, executable, node, a, b, steps):
    ok(cudart.cudaGraphLaunch(executable, stream))
    for _ in range(steps):
        _set(executable, node, b, a)
        ok(cudart.cudaGraphLaunch(executable, stream))
        a, b = b, a
    return a


def swap_by_update__returns_the_address(stream, executable, node, a, b, steps):
    for _ in range(steps):
        _set(executable, node, b, a)
        ok(cudart.cudaGraphLaunch(executable, stream))
        a, b = b, a
    return a.ptr


def swap_by_update__other_way(stream, executable, node, a, b, steps):
    """Both sets of parameters prepared before the loop."""
    held = launched(node)
    ways = [kernel_params(kernels.add, held.grid, held.block, new, old, *held.args[2:]) for new, old in ((b, a), (a, b))]
    for k in range(steps):
        ok(cudart.cudaGraphExecKernelNodeSetParams(executable, node, ways[k % 2]))
        ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    return (b, a)[(steps - 1) % 2]


def swap_by_update__sets_after_the_launch(stream, executable, node, a, b, steps):
    for _ in range(steps):
        ok(cudart.cudaGraphLaunch(executable, stream))
        _set(executable, node, a, b)
        a, b = b, a
    return a


def swap_by_update__whole_update(stream, executable, node, a, b, steps):
    """The other direction from a changed copy of the graph: the node's copy is found by its kernel."""
    counting = graph.dependents(node)[0]
    x, ran = launched(node).args[2], launched(counting).args[0]
    from labkit.cases.parts import advance
    for k in range(steps):
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(launch(stream, kernels.add, launched(node).grid, 256, b, a, x, a.size))
        ok(launch(stream, advance, 1, 1, ran, 1))
        fresh = ok(cudart.cudaStreamEndCapture(stream))
        ok(cudart.cudaGraphExecUpdate(executable, fresh))
        ok(cudart.cudaGraphDestroy(fresh))
        ok(cudart.cudaGraphLaunch(executable, stream))
        a, b = b, a
    return a


def _row(stream, x, *pairs, kernel=kernels.add):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for new, old in pairs:
        ok(launch(stream, kernel, -(-x.size // 256), 256, new, old, x, x.size))
    return ok(cudart.cudaStreamEndCapture(stream))


def _made(stream, x, *pairs):
    return ok(cudart.cudaGraphInstantiate(_row(stream, x, *pairs), 0))


def swap_by_two__same_direction(stream, a, b, x):
    return _made(stream, x, (b, a)), _made(stream, x, (b, a))


def swap_by_two__one_twice(stream, a, b, x):
    both = _made(stream, x, (b, a))
    return both, both


def swap_by_two__other_order(stream, a, b, x):
    return _made(stream, x, (a, b)), _made(stream, x, (b, a))


def swap_by_two__graphs(stream, a, b, x):
    return _row(stream, x, (b, a)), _row(stream, x, (a, b))


def swap_by_two__runs_at_once(stream, a, b, x):
    ok(launch(stream, kernels.add, -(-x.size // 256), 256, b, a, x, x.size))
    ok(launch(stream, kernels.add, -(-x.size // 256), 256, a, b, x, x.size))
    return _made(stream, x), _made(stream, x)


def swap_by_two__other_way(stream, a, b, x):
    """The second from the first graph, by a clone that is changed."""
    first = _row(stream, x, (b, a))
    there, other = ok(cudart.cudaGraphInstantiate(first, 0)), ok(cudart.cudaGraphClone(first))
    node, = graph.nodes(other)
    ok(cudart.cudaGraphKernelNodeSetParams(node, launched(node).but(args={0: a, 1: b})))
    back = ok(cudart.cudaGraphInstantiate(other, 0))
    return [there, back]


def swap_in_one_graph__one_pair(stream, a, b, x, pairs):
    return _row(stream, x, (b, a), (a, b))


def swap_in_one_graph__never_back(stream, a, b, x, pairs):
    return _row(stream, x, *[(b, a)] * (2 * pairs))


def swap_in_one_graph__back_first(stream, a, b, x, pairs):
    return _row(stream, x, *[(a, b), (b, a)] * pairs)


def swap_in_one_graph__half_as_many(stream, a, b, x, pairs):
    return _row(stream, x, *[(b, a), (a, b)][:pairs])


def swap_in_one_graph__runs_at_once(stream, a, b, x, pairs):
    for _ in range(pairs):
        ok(launch(stream, kernels.add, -(-x.size // 256), 256, b, a, x, x.size))
        ok(launch(stream, kernels.add, -(-x.size // 256), 256, a, b, x, x.size))
    return _row(stream, x, *[(b, a), (a, b)] * pairs)


def swap_in_one_graph__copies(stream, a, b, x, pairs):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for _ in range(pairs):
        for _ in range(2):
            ok(launch(stream, kernels.add, -(-x.size // 256), 256, b, a, x, x.size))
            _copy(stream, a, b)
    return ok(cudart.cudaStreamEndCapture(stream))


def swap_in_one_graph__other_way(stream, a, b, x, pairs):
    """Names that swap, and a graph built by hand."""
    made, before = ok(cudart.cudaGraphCreate(0)), []
    for _ in range(2 * pairs):
        before = [ok(cudart.cudaGraphAddKernelNode(made, before, len(before), kernel_params(kernels.add, -(-x.size // 256), 256, b, a, x, x.size)))]
        a, b = b, a
    return made


def swap_by_update__other_stream(stream, executable, node, a, b, steps):
    own = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    return swap_by_update__sets_after_the_launch(own, executable, node, a, b, steps)


def swap_by_update__default_stream(stream, executable, node, a, b, steps):
    return swap_by_update__sets_after_the_launch(0, executable, node, a, b, steps)


def swap_by_update__destroys_the_executable(stream, executable, node, a, b, steps):
    back = swap_by_update__other_way(stream, executable, node, a, b, steps)
    ok(cudart.cudaGraphExecDestroy(executable))
    return back


class _Wordless:
    def __repr__(self):
        raise RuntimeError("no words")


def swap_by_update__says_no_word(stream, executable, node, a, b, steps):
    swap_by_update__other_way(stream, executable, node, a, b, steps)
    return _Wordless()


def swap_by_two__destroyed(stream, a, b, x):
    there, back = swap_by_two__other_way(stream, a, b, x)
    ok(cudart.cudaGraphExecDestroy(back))
    return there, back


def _too_long(stream, new, old, x):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.add, -(-x.nbytes // 256), 256, new, old, x, x.nbytes))       # bytes for elements
    return ok(cudart.cudaStreamEndCapture(stream))


def swap_by_two__too_many_elements(stream, a, b, x):
    return [ok(cudart.cudaGraphInstantiate(_too_long(stream, *pair, x), 0)) for pair in ((b, a), (a, b))]


def swap_in_one_graph__destroyed(stream, a, b, x, pairs):
    made = swap_in_one_graph__other_way(stream, a, b, x, pairs)
    ok(cudart.cudaGraphDestroy(made))
    return made


def swap_in_one_graph__too_many_elements(stream, a, b, x, pairs):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for _ in range(pairs):
        for new, old in ((b, a), (a, b)):
            ok(launch(stream, kernels.add, -(-x.nbytes // 256), 256, new, old, x, x.nbytes))
    return ok(cudart.cudaStreamEndCapture(stream))


def swap_by_two__copies_and_adds(stream, a, b, x):
    def one(new, old):
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(cudart.cudaMemcpyAsync(new.ptr, old.ptr, old.nbytes, TO_DEVICE, stream))
        ok(launch(stream, kernels.axpy, -(-x.size // 256), 256, new, x, 1.0, x.size))
        return ok(cudart.cudaGraphInstantiate(ok(cudart.cudaStreamEndCapture(stream)), 0))
    return one(b, a), one(a, b)
