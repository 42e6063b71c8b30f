"""Wrong answers to exercise 15, and what check() says of each."""
from labkit import cudart, graph, kernels, launch, launched, ok

FLAGS = cudart.cudaGraphInstantiateFlags
AUTO_FREE = int(FLAGS.cudaGraphInstantiateFlagAutoFreeOnLaunch)
EXPECT = {
    "relaunchable__plainly": "launch 2 answers 1 cudaErrorInvalidValue",
    "relaunchable__another_flag": "launch 2 answers 1 cudaErrorInvalidValue",
    "relaunchable__the_graph_back": "expected back: executable",
    "relaunchable__frees_once_itself": "nothing is launched yet",
    "relaunchable__launches_it": "nothing is launched yet",
    "relaunchable__freed_too_early": "it need not wait for",
    "relaunchable__freed_beside_the_use": "it need not wait for axpy",
    "relaunchable__freed_too_early_and_the_graph_goes": "it need not wait for",
    "relaunchable__destroyed": "an executable that the function has destroyed",
    "relaunchable__a_graph_without_a_block": "no graph memory in use",
    "relaunchable__an_empty_graph": "expected y",
    "relaunchable__two_executables": "801",
    "relaunchable__without_the_add": "801",
    "clean_up__only_destroys": "it is still allocated",
    "clean_up__trim_before_the_free": "its page was not given back",
    "clean_up__no_wait": "its page was not given back",
    "clean_up__frees_in_the_default_stream": "cudaFreeAsync would free the block while a launch",
    "clean_up__with_cudaFree_at_once": "cudaFree would free the block while a launch",
    "clean_up__behind_an_event_of_another_stream": "cudaFreeAsync would free the block while a launch",
    "clean_up__destroys_twice": "was given the handle of a destroyed executable",
    "clean_up__no_trim": "its page was not given back",
    "clean_up__executable_stays": "expected: the executable is destroyed",
    "clean_up__graph_stays": "expected: the graph is destroyed",
    "clean_up__launches_once_more": "it is still allocated",
    "clean_up__frees_another_address": "1 cudaErrorInvalidValue",
}
RIGHT = ("relaunchable__a_node_that_frees", "relaunchable__and_the_graph_goes", "relaunchable__with_params",
         "clean_up__other_order", "clean_up__waits_first", "clean_up__with_cudaFree", "clean_up__behind_an_event")


def _plain(plan, flags=0):
    return ok(cudart.cudaGraphInstantiate(plan, flags))


def relaunchable__plainly(plan, address):
    return _plain(plan)


def relaunchable__another_flag(plan, address):
    return _plain(plan, int(FLAGS.cudaGraphInstantiateFlagUseNodePriority))


def relaunchable__the_graph_back(plan, address):
    return plan


def relaunchable__frees_once_itself(plan, address):
    executable = _plain(plan)
    ok(cudart.cudaGraphLaunch(executable, 0))
    ok(cudart.cudaFreeAsync(address, 0))
    return executable


def relaunchable__freed_too_early(plan, address):
    ok(cudart.cudaGraphAddMemFreeNode(plan, [], 0, address))
    return _plain(plan)


def relaunchable__freed_beside_the_use(plan, address):
    ok(cudart.cudaGraphAddMemFreeNode(plan, [graph.nodes(plan)[1]], 1, address))
    return _plain(plan)


def relaunchable__freed_too_early_and_the_graph_goes(plan, address):
    executable = relaunchable__freed_too_early(plan, address)
    ok(cudart.cudaGraphDestroy(plan))
    return executable


def relaunchable__destroyed(plan, address):
    executable = _plain(plan, AUTO_FREE)
    ok(cudart.cudaGraphExecDestroy(executable))
    return executable


def _last(plan):
    return next(node for node in graph.nodes(plan) if not graph.dependents(node))


def relaunchable__a_graph_without_a_block(plan, address):
    """It adds the same numbers, from its own parameters, and leaves the block out."""
    use = next(node for node in graph.nodes(plan) if graph.kind(node) == "Kernel" and launched(node).kernel is kernels.axpy)
    fill = next(node for node in graph.nodes(plan) if graph.kind(node) == "Kernel" and launched(node).kernel is kernels.fill)
    y, value, n = int(launched(use).args[0]), launched(fill).args[1], launched(use).args[3]
    from labkit import empty
    _static.append(empty(n))
    stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    ok(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    ok(launch(stream, kernels.fill, -(-n // 256), 256, _static[-1], value, n))
    ok(launch(stream, kernels.axpy, -(-n // 256), 256, y, _static[-1], 1.0, n))
    other = ok(cudart.cudaStreamEndCapture(stream))
    ok(cudart.cudaStreamDestroy(stream))
    executable = _plain(other)
    ok(cudart.cudaGraphDestroy(other))
    return executable


_static = []


def relaunchable__an_empty_graph(plan, address):
    empty = ok(cudart.cudaGraphCreate(0))
    executable = _plain(empty)
    ok(cudart.cudaGraphDestroy(empty))
    return executable


def relaunchable__two_executables(plan, address):
    ok(cudart.cudaGraphExecDestroy(_plain(plan)))
    first = _plain(plan)
    try:
        return _plain(plan, AUTO_FREE)
    finally:
        ok(cudart.cudaGraphExecDestroy(first))


def relaunchable__without_the_add(plan, address):
    ok(cudart.cudaGraphDestroyNode(_last(plan)))
    return _plain(plan, AUTO_FREE)


def relaunchable__a_node_that_frees(plan, address):
    ok(cudart.cudaGraphAddMemFreeNode(plan, [_last(plan)], 1, address))
    return _plain(plan)


def relaunchable__and_the_graph_goes(plan, address):
    executable = _plain(plan, AUTO_FREE)
    ok(cudart.cudaGraphDestroy(plan))
    return executable


def relaunchable__with_params(plan, address):
    params = cudart.cudaGraphInstantiateParams()
    params.flags = AUTO_FREE
    return [ok(cudart.cudaGraphInstantiateWithParams(plan, params))]


def clean_up__only_destroys(executable, plan, address, stream):
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))
    ok(cudart.cudaDeviceGraphMemTrim(0))


def clean_up__trim_before_the_free(executable, plan, address, stream):
    ok(cudart.cudaDeviceGraphMemTrim(0))
    ok(cudart.cudaFreeAsync(address, stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))


def clean_up__no_wait(executable, plan, address, stream):
    """The last launch may still run: its page is in use when the trim comes."""
    ok(cudart.cudaFreeAsync(address, stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))
    ok(cudart.cudaDeviceGraphMemTrim(0))


def clean_up__frees_in_the_default_stream(executable, plan, address, stream):
    _freed(address, 0)
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))


def clean_up__destroys_twice(executable, plan, address, stream):
    _freed(address, stream)
    for _ in range(2):
        ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))


def clean_up__no_trim(executable, plan, address, stream):
    ok(cudart.cudaFreeAsync(address, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))


def _freed(address, stream):
    ok(cudart.cudaFreeAsync(address, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaDeviceGraphMemTrim(0))


def clean_up__executable_stays(executable, plan, address, stream):
    _freed(address, stream)
    ok(cudart.cudaGraphDestroy(plan))


def clean_up__graph_stays(executable, plan, address, stream):
    ok(cudart.cudaGraphExecDestroy(executable))
    _freed(address, stream)


def clean_up__launches_once_more(executable, plan, address, stream):
    """A launch frees what the one before left, and leaves a block of its own."""
    ok(cudart.cudaGraphLaunch(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))
    ok(cudart.cudaDeviceGraphMemTrim(0))


def clean_up__frees_another_address(executable, plan, address, stream):
    _freed(address + 512, stream)


def clean_up__other_order(executable, plan, address, stream):
    """The block outlives both, and is freed by its address."""
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))
    _freed(address, stream)


def clean_up__waits_first(executable, plan, address, stream):
    """When all has run, it does not matter in which stream the block is freed."""
    ok(cudart.cudaStreamSynchronize(stream))
    _freed(address, 0)
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))


def clean_up__with_cudaFree_at_once(executable, plan, address, stream):
    ok(cudart.cudaFree(address))
    ok(cudart.cudaDeviceSynchronize())
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))
    ok(cudart.cudaDeviceGraphMemTrim(0))


def clean_up__with_cudaFree(executable, plan, address, stream):
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaFree(address))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaDeviceGraphMemTrim(0))
    ok(cudart.cudaGraphDestroy(plan))


def relaunchable__launches_it(plan, address):
    executable = _plain(plan, AUTO_FREE)
    ok(cudart.cudaGraphLaunch(executable, 0))
    ok(cudart.cudaStreamSynchronize(0))
    return executable


def _in_a_side_stream(executable, plan, address, stream, recorded):
    side, mark = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)), ok(cudart.cudaEventCreate())
    ok(cudart.cudaEventRecord(mark, stream if recorded else side))
    ok(cudart.cudaStreamWaitEvent(side, mark, 0))
    _freed(address, side)
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))
    ok(cudart.cudaEventDestroy(mark))
    ok(cudart.cudaStreamDestroy(side))


def clean_up__behind_an_event(executable, plan, address, stream):
    """The free stands in another stream, which waits for the launches."""
    _in_a_side_stream(executable, plan, address, stream, True)


def clean_up__behind_an_event_of_another_stream(executable, plan, address, stream):
    _in_a_side_stream(executable, plan, address, stream, False)
