"""15: a graph that keeps its block: launched as often as you like, and then all of its memory given back."""
import numpy as np

from labkit.backend import cudart
from labkit.errors import LabError, ok
from labkit.kernels import axpy, fill, launch
from labkit.labs.calls import Calls, number
from labkit.labs.held import held
from labkit.labs.judging import Lab
from labkit.labs.listening import listening
from labkit.labs.memory import MIB, captured, given_back, now, used
from labkit.labs.shapes import Found

LAB = Lab("15_stop_a_leak", "Stop a leak", lesson="14", minutes=10)
_ORDER = ("cudaFree", "cudaFreeAsync", "cudaEventRecord", "cudaEventRecordWithFlags", "cudaStreamWaitEvent")
AUTO_FREE = int(cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagAutoFreeOnLaunch)


def _leaking(t, y, value):
    """(graph, address): a block of the graph is filled with value and added to y, and nobody frees it."""
    grid = -(-t.size // 256)

    def work():
        block = ok(cudart.cudaMallocAsync(y.nbytes, t.stream))
        ok(launch(t.stream, fill, grid, 256, block, value, t.size))
        ok(launch(t.stream, axpy, grid, 256, y, block, 1.0, t.size))
        return block
    return captured(t, work)


@LAB.part(points=3, hints=(
    "Why is the second launch refused? Which of the graph's nodes has no partner?",
    "Either something frees the block before the next launch, or a node frees it in the same one. Can either be said when the executable is made?",
    "Lesson 09 has an instantiation flag for it. And lesson 13 adds nodes to a graph by hand: this one would have to come last."))
def relaunchable(t, answer):
    """An executable of the given graph that can be launched again and again with nothing between the launches."""
    y, value = t.buffer(), float(t.random.integers(2, 9))
    graph, address = _leaking(t, y, value)
    start = used()
    wrong = []
    calls = Calls(t, look=lambda one: wrong.extend(_freed_early(one, address)))
    executable = calls.alive(calls.run(answer, graph, address), "executable")
    for expected, found in wrong:
        t.want(False, expected, found)
    launches = len(calls.of("cudaGraphLaunch"))
    try:
        t.want(not launches, "nothing is launched yet", f"{launches} launch{'es' * (launches != 1)} before your function returned")
        for which in range(1, 6):
            old, = t.fresh(y)
            t.launch(executable, which)
            t.expect(f"after launch {which}", "y", y, old + value)
            t.want(which > 1 or now() > start, "an executable of this graph, which takes a block", "no graph memory in use after its first launch")
    finally:
        cudart.cudaFreeAsync(address, t.stream)          # what AutoFreeOnLaunch left; else there is nothing to free, and it says so
        cudart.cudaStreamSynchronize(t.stream)


def _freed_early(graph, address):
    """[(expected, found)] in words: where a MemFree node need not wait for the kernels that use the block."""
    found = Found(graph)
    if "MemFree" not in found.labels:
        return []
    free = found.labels.index("MemFree")
    if given_back(found.handles[free]) != address:
        return [("a MemFree node for the graph's block", "it frees another address")]
    early = [label for k, label in enumerate(found.labels) if k != free and free not in found.paths[k]]
    return [("a MemFree node that waits for all others", f"it need not wait for {', '.join(early)}")] if early else []


@LAB.part(points=4, hints=(
    "Four things are left after the last launch: an executable, a graph, a block, a page. Which of them goes with another one?",
    "Who frees what the last launch left allocated? And when does a page go back to the GPU?",
    "Free the block by its address, wait, destroy both, trim: lesson 09 does the same under the question of who frees the last one."))
def clean_up(t, answer):
    """Nothing of the graph is left: its block is freed, executable and graph are destroyed, and as much graph memory is used as before."""
    start, y = used(), t.buffer()
    graph, address = _leaking(t, y, 3.0)
    executable = _instantiate(t, graph)
    old, = t.fresh(y)
    for which in (1, 2):
        t.launch(executable, which)
    calls = Calls(t)
    with held(t), listening(_ORDER, _in_order(t), answer):        # the third has not run yet: who does not wait, trims too early
        ok(cudart.cudaGraphLaunch(executable, t.stream))
        calls.run(answer, executable, graph, address, t.stream)
    left = now() - start
    still = not int(cudart.cudaFreeAsync(address, t.stream)[0])       # a block that is free cannot be freed
    ok(cudart.cudaStreamSynchronize(t.stream))
    t.want(not still, "the block is free", f"it is still allocated: {left // MIB} MiB of graph memory are in use that were not before")
    t.want(("executable", int(executable)) in calls.gone, "the executable is destroyed", "it is still there")
    t.want(("graph", int(graph)) in calls.gone, "the graph is destroyed", "it is still there")
    t.want(left <= 0, "as much graph memory in use as before the first launch",
           f"{left // MIB} MiB more: the block is free, and its page was not given back once that was done")
    t.expect("after three launches", "y", y, old + 9 * np.ones(t.size))


def _in_order(t):
    """A free that does not wait for the launch is refused: what the launch then writes to is anybody's. (cudaFree did not wait on an H200.)"""
    behind, marks = {number(t.stream)}, set()           # streams that wait for the launch, events recorded in these

    def heard(name, call, given):
        first, second = [*map(number, given), -1, -1][:2]
        if name.startswith("cudaFree"):
            if (name == "cudaFree" or second not in behind) and int(cudart.cudaStreamQuery(t.stream)[0]):
                raise LabError(f"{name} would free the block while a launch that uses it still waits in the stream that was given.",
                               "For graph memory neither cudaFree nor a free in another stream waits for it.", "Free it on the stream of the launches, or wait for them first.")
        elif name == "cudaStreamWaitEvent":
            behind.update({first} if second in marks else ())
        else:
            (marks.add if second in behind else marks.discard)(first)
        return call()
    return heard


def _instantiate(t, graph):
    executable = ok(cudart.cudaGraphInstantiate(graph, AUTO_FREE))
    t._execs.append(executable)
    return executable
