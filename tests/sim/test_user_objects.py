"""User objects of the simulator, and the number type that attributes of memory take."""
import ctypes
import importlib.util
import threading
import time

import pytest

from labkit import kernels, sim
from labkit.errors import Undefined, ok
from labkit.sim import runtime as cu
from labkit.sim import values
from labkit.sim.world import world

INVALID, MOVE = 1, 1


class Watched:
    """A user object, and what its destructor saw: (argument, thread)."""

    def __init__(self, count=1, argument=7, then=lambda: None):
        self.seen, self.then = [], then
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.destroy)
        self.handle = ok(cu.cudaUserObjectCreate(argument, cu.cudaHostFn_t(ctypes.cast(self.function, ctypes.c_void_p).value), count, 1))

    def destroy(self, argument):
        self.seen.append((argument, threading.current_thread()))
        self.then()

    def held_by(self, graph):
        ok(cu.cudaGraphRetainUserObject(graph, self.handle, 1, MOVE))
        return self

    @property
    def gone(self):
        return len(self.seen)

    def waited(self):
        """How often the destructor ran, when it had a moment to do so."""
        end = time.monotonic() + 10
        while not self.seen and time.monotonic() < end:
            time.sleep(0.001)
        return len(self.seen)


def graph_of(steps=1):
    graph = ok(cu.cudaGraphCreate(0))
    for _ in range(steps):
        ok(cu.cudaGraphAddEmptyNode(graph, [], 0))
    return graph


def test_the_destructor_gets_the_pointer_and_runs_once_in_the_calling_thread():
    one = Watched(3)
    ok(cu.cudaUserObjectRelease(one.handle, 2))
    assert not one.gone
    ok(cu.cudaUserObjectRelease(one.handle, 1))
    assert one.seen == [(7, threading.current_thread())]


def test_a_graph_holds_until_it_is_destroyed_and_its_executable_after_it():
    graph, one = graph_of(), Watched()
    one.held_by(graph)
    made = ok(cu.cudaGraphInstantiate(graph, 0))
    ok(cu.cudaGraphDestroy(graph))
    assert not one.gone
    ok(cu.cudaGraphExecDestroy(made))
    assert one.seen == [(7, threading.current_thread())]        # it was never launched


def test_after_a_launch_the_destructor_runs_in_another_thread_without_a_wait(lab):
    graph, one, stream, go = graph_of(), Watched(), lab.stream(), threading.Event()
    one.held_by(graph)
    made = ok(cu.cudaGraphInstantiate(graph, 0))
    gate, kept = lab.host_function(lambda: go.wait(10))
    ok(cu.cudaLaunchHostFunc(stream, gate, 0)), ok(cu.cudaGraphLaunch(made, stream))
    ok(cu.cudaGraphDestroy(graph)), ok(cu.cudaGraphExecDestroy(made))
    time.sleep(0.01)
    assert not one.gone
    go.set()
    assert one.waited() == 1 and one.seen[0][1] is not threading.current_thread()
    del kept


def test_the_destructor_runs_without_the_lock_of_the_books():
    """It may wait for a thread that calls CUDA; with the lock held both would wait for ever."""
    answers = []
    other = threading.Thread(target=lambda: answers.append(cu.cudaStreamCreate()[0]))
    one = Watched(then=lambda: (other.start(), other.join(10)))
    ok(cu.cudaUserObjectRelease(one.handle, 1))
    assert answers == [0] and one.gone == 1


def test_a_destructor_may_not_call_cuda_and_those_after_it_still_run():
    graph, answers = graph_of(), []
    more = [Watched(then=lambda: answers.append(int(cu.cudaStreamQuery(0)[0]))).held_by(graph) for _ in range(3)]
    ok(cu.cudaGraphDestroy(graph))
    assert answers == [800] * 3 and [one.gone for one in more] == [1] * 3
    assert cu.cudaStreamQuery(0)[0] == 0


def test_a_destructor_may_ask_for_the_last_error_in_the_programs_own_thread(lab):
    mine, theirs, stream = [], [], lab.stream()
    ok(cu.cudaUserObjectRelease(Watched(then=lambda: mine.extend([cu.cudaPeekAtLastError()[0], cu.cudaGetLastError()[0]])).handle, 1))
    graph = graph_of()
    one = Watched(then=lambda: theirs.append(cu.cudaGetLastError()[0])).held_by(graph)
    made = lab.run(graph, stream)
    ok(cu.cudaGraphDestroy(graph)), ok(cu.cudaGraphExecDestroy(made))
    assert one.waited() == 1
    ok(cu.cudaDeviceSynchronize())
    assert mine == [0, 0] and theirs == [800]

@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_destructor_that_raises_harms_nobody(capfd):
    one, two, graph = Watched(then=lambda: 1 / 0), Watched(), graph_of()
    one.held_by(graph), two.held_by(graph)
    ok(cu.cudaGraphDestroy(graph))
    assert (one.gone, two.gone) == (1, 1)
    capfd.readouterr()


def test_clones_and_copies_in_child_nodes_hold_too():
    source, parent, one = graph_of(), graph_of(), Watched()
    one.held_by(source)
    clone = ok(cu.cudaGraphClone(source))
    node = ok(cu.cudaGraphAddChildGraphNode(parent, [], 0, source))
    for gone in (lambda: cu.cudaGraphDestroy(source), lambda: cu.cudaGraphDestroy(clone), lambda: cu.cudaGraphDestroyNode(node)):
        assert not one.gone
        ok(gone())
    assert one.gone == 1


def test_a_child_node_that_is_refused_leaves_no_copy_that_holds():
    source, parent, one = graph_of(), graph_of(), Watched()
    one.held_by(source)
    node = ok(cu.cudaGraphAddEmptyNode(parent, [], 0))
    graphs = len(world.graphs)
    assert cu.cudaGraphAddChildGraphNode(parent, [node, node], 2, source) == (INVALID, None)
    assert len(world.graphs) == graphs
    ok(cu.cudaGraphDestroy(source))
    assert one.gone == 1


def test_a_graph_destroyed_in_its_own_capture_lets_go_once(lab):
    stream, one = lab.stream(), Watched(2)
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    graph = cu.cudaStreamGetCaptureInfo(stream)[3]
    ok(cu.cudaGraphRetainUserObject(graph, one.handle, 1, MOVE))
    ok(cu.cudaGraphDestroy(graph))
    assert cu.cudaDeviceSynchronize()[0] == 900 and cu.cudaStreamEndCapture(stream)[0] == 901
    assert not one.gone
    ok(cu.cudaUserObjectRelease(one.handle, 1))
    assert one.gone == 1


def test_a_lost_capture_lets_go(lab):
    stream, one = lab.stream(), Watched()
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    one.held_by(cu.cudaStreamGetCaptureInfo(stream)[3])
    cu.cudaDeviceSynchronize()
    assert cu.cudaStreamEndCapture(stream) == (901, None) and one.gone == 1


@pytest.mark.parametrize("by", ["name", "labkit"])
def test_an_update_swaps_what_the_executable_holds(by):
    a, b, first, second = graph_of(), graph_of(), Watched(), Watched()
    first.held_by(a), second.held_by(b)
    made = ok(cu.cudaGraphInstantiate(a, 0))
    ok(cu.cudaGraphDestroy(a))
    assert not first.gone
    assert int((cu.cudaGraphExecUpdate if by == "name" else sim.exec_update)(made, b)[0]) == 0
    assert first.gone == 1
    ok(cu.cudaGraphDestroy(b))
    assert not second.gone
    ok(cu.cudaGraphExecDestroy(made))
    assert second.gone == 1


def test_parameters_of_a_child_node_bring_the_objects_of_their_graph():
    a, b, parent, first, second, third = graph_of(), graph_of(), graph_of(), Watched(), Watched(), Watched()
    first.held_by(a), second.held_by(b), third.held_by(parent)
    node = ok(cu.cudaGraphAddChildGraphNode(parent, [], 0, a))
    made = ok(cu.cudaGraphInstantiate(parent, 0))
    ok(cu.cudaGraphExecChildGraphNodeSetParams(made, node, b))
    ok(cu.cudaGraphDestroy(b)), ok(cu.cudaGraphDestroy(a))
    assert (first.gone, second.gone, third.gone) == (0, 0, 0)
    ok(cu.cudaGraphDestroy(parent))
    assert (first.gone, second.gone, third.gone) == (1, 0, 0)
    ok(cu.cudaGraphExecDestroy(made))
    assert (first.gone, second.gone, third.gone) == (1, 1, 1)


def test_a_refused_update_swaps_nothing():
    a, b, first, second = graph_of(), graph_of(2), Watched(), Watched()
    first.held_by(a), second.held_by(b)
    made = ok(cu.cudaGraphInstantiate(a, 0))
    assert cu.cudaGraphExecUpdate(made, b)[0] == 910
    ok(cu.cudaGraphDestroy(a)), ok(cu.cudaGraphDestroy(b))
    assert (first.gone, second.gone) == (0, 1)


@pytest.mark.parametrize("wrong", [
    lambda one, graph: cu.cudaUserObjectRelease(one.handle, 2),
    lambda one, graph: (cu.cudaUserObjectRelease(one.handle, 1), cu.cudaUserObjectRetain(one.handle, 1)),
    lambda one, graph: (cu.cudaUserObjectRelease(one.handle, 1), cu.cudaGraphRetainUserObject(graph, one.handle, 1, 0)),
    lambda one, graph: cu.cudaGraphRetainUserObject(graph, one.handle, 2, MOVE), lambda one, graph: cu.cudaGraphReleaseUserObject(graph, one.handle, 1)])
def test_giving_away_what_one_does_not_have_is_undefined(wrong):
    with pytest.raises(Undefined, match="user object|references of a graph"):
        wrong(Watched(), graph_of())


def test_a_new_world_runs_no_destructor_of_the_old_one(lab):
    graph, one, stream = graph_of(), Watched(), lab.stream()
    one.held_by(graph)
    made = ok(cu.cudaGraphInstantiate(graph, 0))
    ok(cu.cudaGraphLaunch(made, stream)), ok(cu.cudaGraphDestroy(graph))
    sim.reset()
    assert not world.objects
    with pytest.raises(Undefined):
        cu.cudaUserObjectRetain(one.handle, 1)
    time.sleep(0.01)
    assert not one.gone


def test_arguments_are_converted_as_in_the_bindings():
    function = cu.cudaHostFn_t(7)
    for bad, error in (("a", TypeError), ([], TypeError), (-1, TypeError)):
        with pytest.raises(error):
            cu.cudaUserObjectCreate(bad, function, 1, 1)
    for bad, error in ((-1, OverflowError), (2 ** 32, OverflowError), (None, TypeError)):
        with pytest.raises(error):
            cu.cudaUserObjectCreate(0, function, bad, 1)
        with pytest.raises(error):
            cu.cudaGraphRetainUserObject(0, 0, 1, bad)
    flag = cu.cudaUserObjectFlags.cudaUserObjectNoDestructorSync
    many = ok(cu.cudaUserObjectCreate(0, function, 2 ** 32 - 1, flag))
    assert cu.cudaUserObjectCreate(0, function, 0, flag) == (1, None)
    assert [cu.cudaUserObjectRelease(many, 2 ** 31)[0], cu.cudaUserObjectRetain(many, 2 ** 31)[0], cu.cudaUserObjectRelease(many, 5)[0]] == [1, 1, 0]
    code, made = cu.cudaUserObjectCreate(None, 7, 1.0, flag)
    assert code == 0 and repr(made) == f"<CUuserObject {int(made):#x}>" and made == cu.cudaUserObject_t(int(made))


# ---- cuuint64_t ----

def kinds():
    found = [values.cuuint64_t]
    if importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.bindings"):
        from cuda.bindings import driver
        found.append(driver.cuuint64_t)
    return found


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__module__)
def test_a_cuuint64_is_a_number_at_an_address(kind):
    """The same is asked of the bindings' own class, where they are installed."""
    five = kind(5)
    assert int(five) == 5 and repr(five) == str(five) == "<cuuint64_t 5>" and repr(kind()) == "<cuuint64_t 0>"
    assert five == five and five != kind(5) and five != 5 and hash(five) == hash(five) and bool(kind(0))
    assert ctypes.c_uint64.from_address(kind.getPtr(big := kind(2 ** 64 - 1))).value == 2 ** 64 - 1 == int(big)
    assert int(kind(5.7)) == 5 and int(kind(kind(3))) == 3 and int(kind(init_value=4)) == 4 and int(kind(True)) == 1
    for bad, error, says in (("5", TypeError, "an integer is required"), (None, TypeError, "an integer is required"), (-1, OverflowError, "can't convert negative value to uint64_t"),
                             (2 ** 64, OverflowError, "Python int too large to convert to C unsigned long")):
        with pytest.raises(error, match=says):
            kind(bad)
    for no in (lambda: five < kind(6), lambda: five + 1, lambda: float(five), lambda: [0] * five):
        with pytest.raises(TypeError):
            no()
    with pytest.raises(AttributeError):
        five.x = 1


def test_launched_kernels_still_run_when_their_executable_is_gone(lab):
    graph, stream, y, one = ok(cu.cudaGraphCreate(0)), lab.stream(), lab.buffer(value=1), Watched()
    ok(cu.cudaStreamBeginCapture(stream, lab.GLOBAL))
    lab.launch(stream, kernels.scale, y, 2.0, lab.N)
    graph = ok(cu.cudaStreamEndCapture(stream))
    one.held_by(graph)
    made = ok(cu.cudaGraphInstantiate(graph, 0))
    ok(cu.cudaGraphLaunch(made, stream)), ok(cu.cudaGraphDestroy(graph)), ok(cu.cudaGraphExecDestroy(made))
    assert one.waited() == 1
    ok(cu.cudaStreamSynchronize(stream))
    assert set(lab.read(y)) == {2}
