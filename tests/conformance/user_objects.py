"""User objects: who holds them, and when their destructors run, and in which thread."""
import threading
import time

from labkit import graph as graphs
from labkit import kernels
from tests.conformance.building import chain, child, empty, fill, node_params, plus
from tests.conformance.harness import scenario

FLAG, MOVE = 1, 1
MOST = 2 ** 31 - 1


def watched(t, count=1, data=7, seen=None):
    """(user object, what its destructor was given and the thread it ran in). The list may be shared."""
    seen = [] if seen is None else seen
    function = t.receiver(lambda given: seen.append((given, threading.get_ident())))
    return t.cudaUserObjectCreate(data, t.raw.cudaHostFn_t(function), count, FLAG)[1], seen


def held_by(t, graph, data=7, seen=None):
    """A graph gets the only reference to a new user object; what its destructor was given."""
    one, seen = watched(t, 1, data, seen)
    t.cudaGraphRetainUserObject(graph, one, 1, MOVE)
    return seen


def tell(t, seen, expected, where=False):
    """Write down which destructors have run, and, where that is certain, in which thread.

    Nothing of CUDA waits for them: so many are waited for, and a little longer, in case there are more.
    """
    end = time.monotonic() + 2
    while len(seen) < expected and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(0.002 if kernels.is_simulator(t.raw) else 0.05)
    names = {threading.get_ident(): "this thread", t.thread(threading.get_ident): "the other thread"}
    t.note("destroyed", sorted([given, names.get(thread, "a thread of the driver")] if where else given for given, thread in seen))


def small(t, steps=1, made="by hand"):
    return chain(t, [fill(t, t.spare, 1)] * steps, made)[0]


@scenario("The destructor runs once, in the call that gives the last reference back.", control="one",
          variants={"one": dict(steps=(-1,)), "kept": dict(steps=(1, -1)), "retained": dict(steps=(2, -1, -2)), "one by one": dict(steps=(1, -1, -1)),
                    "all at once": dict(steps=(4, -5))}, each={"thread": ("same", "other")})
def the_last_release_runs_the_destructor(t, steps, thread):
    one, seen = watched(t)
    left = 1
    for step in steps:
        left += step
        t.here_or_there(thread, lambda: t.cudaUserObjectRetain(one, step) if step > 0 else t.cudaUserObjectRelease(one, -step))
        tell(t, seen, left == 0, where=True)


@scenario("Creating a user object wants a destructor, a count and the one flag there is.", control="good",
          variants={"good": {}, "null pointer": dict(data=0), "null function": dict(null=True), "no flag": dict(flags=0), "another flag": dict(flags=2), "two flags": dict(flags=3),
                    "count 0": dict(count=0), "largest count": dict(count=MOST), "count too large": dict(count=MOST + 1), "largest of its type": dict(count=2 ** 32 - 1)},
          open=True, isolated=("count too large", "largest of its type"))
def what_creating_a_user_object_takes(t, data=7, null=False, count=1, flags=FLAG):
    seen = []
    function = 0 if null else t.receiver(lambda given: seen.append((given, threading.get_ident())))
    _, one = t.cudaUserObjectCreate(data, t.raw.cudaHostFn_t(function), count, flags)
    if one is not None and int(one):
        t.cudaUserObjectRelease(one, count)
    tell(t, seen, one is not None, where=True)
    t.recovered()


def _graph_arguments(call, graph):
    return (graph,) if "Graph" in call else ()


COUNTING = ("cudaUserObjectRetain", "cudaUserObjectRelease", "cudaGraphRetainUserObject", "cudaGraphReleaseUserObject")


@scenario("A count of 0 and a null object are refused, and nothing is counted.", control="good",
          variants={"good": {}, "count 0": dict(count=0), "null": dict(null=0), "None": dict(null=None)}, each={"call": COUNTING})
def what_the_counting_calls_take(t, call, count=1, null="no"):
    (_, graph), (one, seen) = t.cudaGraphCreate(0), watched(t, 2)
    t.cudaGraphRetainUserObject(graph, one, 2, 0)
    getattr(t, call)(*_graph_arguments(call, graph), one if null == "no" else null, count, *([0] if call == COUNTING[2] else []))
    counted = {COUNTING[0]: (3, 2), COUNTING[1]: (1, 2), COUNTING[2]: (2, 3), COUNTING[3]: (2, 1)}[call] if count and null == "no" else (2, 2)
    t.cudaUserObjectRelease(one, counted[0])
    tell(t, seen, 0)
    t.cudaGraphReleaseUserObject(graph, one, counted[1])
    tell(t, seen, 1)
    t.recovered()


@scenario("A graph that retains: its flag, and counts that are too large.", control="new references",
          variants={"new references": {}, "moved": dict(flags=MOVE), "another flag": dict(flags=2), "two flags": dict(flags=3), "count too large": dict(count=MOST + 1),
                    "largest of its type": dict(count=2 ** 32 - 1), "retain too large": dict(count=MOST + 1, graph=False)},
          open=True, isolated=("count too large", "largest of its type", "retain too large"))
def what_a_graph_takes(t, flags=0, count=1, graph=True):
    (_, holder), (one, seen) = t.cudaGraphCreate(0), watched(t, 2)
    if graph:
        t.cudaGraphRetainUserObject(holder, one, count, flags)
    else:
        t.cudaUserObjectRetain(one, count)
    t.cudaGraphDestroy(holder)
    tell(t, seen, 0)
    t.cudaUserObjectRelease(one, 1 if graph and flags == MOVE else 2)
    tell(t, seen, 1)
    t.recovered()


@scenario("Only a graph that exists can hold anything.", control="a graph",
          variants={"a graph": dict(what="graph"), "null": dict(what=0), "None": dict(what=None), "destroyed": dict(what="destroyed")},
          each={"call": COUNTING[2:]}, open=True, isolated=("destroyed",))
def holding_without_a_graph(t, what, call):
    (_, graph), (one, seen) = t.cudaGraphCreate(0), watched(t, 2)
    t.cudaGraphRetainUserObject(graph, one, 1, 0)
    if what == "destroyed":
        t.cudaGraphDestroy(graph)
    getattr(t, call)(what if what in (0, None) else graph, one, 1, *([0] if call == COUNTING[2] else []))
    tell(t, seen, 0)
    t.cudaUserObjectRelease(one, 2)
    if what != "destroyed":
        t.cudaGraphDestroy(graph)
    tell(t, seen, 1)
    t.recovered()


# count: references at first; each step: (what, how many): "new" and "move" to the graph, "drop" by the graph, "give" by the program, "destroy" the graph
HOLDING = {"moved": (1, ("move", 1), ("destroy", 0)), "new, given back first": (1, ("new", 1), ("give", 1), ("destroy", 0)),
           "new, given back last": (1, ("new", 1), ("destroy", 0), ("give", 1)), "dropped": (1, ("move", 1), ("drop", 1), ("destroy", 0)),
           "three, two dropped": (1, ("new", 3), ("give", 1), ("drop", 2), ("destroy", 0)), "twice": (1, ("new", 1), ("new", 1), ("give", 1), ("drop", 1), ("drop", 1), ("destroy", 0)),
           "part moved": (3, ("move", 2), ("destroy", 0), ("give", 1)), "moved, then retained": (1, ("move", 1), ("retain", 1), ("destroy", 0), ("give", 1))}


@scenario("A graph holds its references until it drops them or is destroyed.", control="moved",
          variants={name: dict(steps=steps) for name, steps in HOLDING.items()}, each={"made": ("by hand", "captured")})
def a_graph_holds_user_objects(t, steps, made):
    graph = small(t, made=made)
    one, seen = watched(t, steps[0])
    own, held = steps[0], 0
    for what, count in steps[1:]:
        if what in ("new", "move"):
            t.cudaGraphRetainUserObject(graph, one, count, MOVE if what == "move" else 0)
            own, held = own - count * (what == "move"), held + count
        elif what == "drop":
            t.cudaGraphReleaseUserObject(graph, one, count)
            held -= count
        elif what == "destroy":
            t.cudaGraphDestroy(graph)
            held = 0
        else:
            (t.cudaUserObjectRelease if what == "give" else t.cudaUserObjectRetain)(one, count)
            own += -count if what == "give" else count
        tell(t, seen, own + held == 0, where=True)


@scenario("All objects of a graph go with it, in the thread that destroys it.", control="one",
          variants={"one": dict(count=1), "three": dict(count=3)}, each={"thread": ("same", "other")})
def several_objects_of_a_graph(t, count, thread):
    graph, seen = small(t), []
    for data in range(1, count + 1):
        held_by(t, graph, data, seen)
    t.here_or_there(thread, lambda: t.cudaGraphDestroy(graph))
    tell(t, seen, count, where=True)


def _in_child(t, graph, deep=1):
    """(parent, node, the graph inside it): a child node that holds a copy."""
    outer, nodes = chain(t, [empty(t), child(t, graph)])
    for _ in range(deep - 1):
        inner, (outer, nodes) = outer, chain(t, [empty(t), child(t, outer)])
        t.cudaGraphDestroy(inner)
    return outer, nodes[1]


@scenario("Clones, and copies in child nodes, hold what their source held when they were made.", control="no copy",
          variants={"no copy": dict(copy=None), "clone": dict(copy="clone"), "clone of a clone": dict(copy="clone", deep=2), "child": dict(copy="child"), "child of a child": dict(copy="child", deep=2),
                    "clone of a parent": dict(copy="both"), "clone made before": dict(copy="clone", late=True), "child made before": dict(copy="child", late=True)},
          each={"first": ("source", "copy")})
def copies_hold_user_objects(t, copy, first, deep=1, late=False):
    source, seen = small(t), []
    if not late:
        held_by(t, source, 7, seen)
    made = []
    if copy in ("child", "both"):
        made.append(_in_child(t, source, deep)[0])
    if copy == "both":
        made = [t.cudaGraphClone(made[0])[1], *made]
    if copy == "clone":
        for _ in range(deep):
            made.insert(0, t.cudaGraphClone(made[0] if made else source)[1])
    if late:
        held_by(t, source, 7, seen)
    order = [source, *made] if first == "source" else [*made, source]
    holders = [source] if late else order
    for graph in order:
        t.cudaGraphDestroy(graph)
        tell(t, seen, graph is holders[-1], where=True)


@scenario("The graph inside a child node holds its own references.", control="parent destroyed",
          variants={name: dict(what=name) for name in ("parent destroyed", "node destroyed", "released inside", "retained inside", "replaced", "refused")},
          open=True, isolated=("released inside", "retained inside", "replaced"))
def the_graph_inside_a_child_node_holds(t, what):
    source, seen = small(t), []
    one, _ = watched(t, 1, 7, seen)
    t.cudaGraphRetainUserObject(source, one, 1, MOVE)
    if what == "refused":
        _, parent = t.cudaGraphCreate(0)
        node = t.cudaGraphAddEmptyNode(parent, [], 0)[1]
        t.cudaGraphAddChildGraphNode(parent, [node, node], 2, source)
    else:
        parent, node = _in_child(t, source)
        inside = t.cudaGraphChildGraphNodeGetGraph(node)[1]
    if what == "retained inside":
        held_by(t, inside, 8, seen)
    t.cudaGraphDestroy(source)
    tell(t, seen, what == "refused")
    if what == "node destroyed":
        t.cudaGraphDestroyNode(node)
    elif what == "released inside":
        t.cudaGraphReleaseUserObject(inside, one, 1)
    elif what == "replaced":
        params, other = node_params(t, "Graph"), small(t)
        params.graph.graph = other
        held_by(t, other, 9, seen)
        t.cudaGraphNodeSetParams(node, params)
        t.cudaGraphDestroy(other)
    tell(t, seen, what not in ("parent destroyed", "retained inside"))
    t.cudaGraphDestroy(parent)
    tell(t, seen, 2 if what in ("retained inside", "replaced") else 1)
    t.recovered()


USES = ("never launched", "uploaded", "launched")


def _use(t, executable, use):
    stream = t.stream()
    if use != "never launched":
        (t.cudaGraphUpload if use == "uploaded" else t.cudaGraphLaunch)(executable, stream)
    t.cudaStreamSynchronize(stream)


@scenario("Executables take references to what their graph holds, when they are made.", control="no executable",
          variants={"no executable": dict(order="g", made=0), "graph first": dict(order="ge"), "executable first": dict(order="eg"), "two executables": dict(order="gee", made=2),
                    "dropped by the graph": dict(order="deg"), "of a parent": dict(order="gpe"), "retained later": dict(order="reg", late=True)}, each={"use": USES})
def executables_hold_user_objects(t, order, use, made=1, late=False):
    graph, seen = small(t), []
    one, _ = watched(t, 1, 7, seen)
    if not late:
        t.cudaGraphRetainUserObject(graph, one, 1, MOVE)
    parent = _in_child(t, graph)[0] if "p" in order else None
    executables = [t.instantiate(parent or graph) for _ in range(made)]
    for executable in executables:
        _use(t, executable, use)
    calls = {"g": lambda: t.cudaGraphDestroy(graph), "p": lambda: t.cudaGraphDestroy(parent), "e": lambda: t.cudaGraphExecDestroy(executables.pop()),
             "d": lambda: t.cudaGraphReleaseUserObject(graph, one, 1), "r": lambda: t.cudaGraphRetainUserObject(graph, one, 1, MOVE)}
    for place, step in enumerate(order, 1):
        calls[step]()
        gone = place >= (2 if order == "deg" else len(order))
        tell(t, seen, gone, where=order in ("g", "ge") and use != "uploaded")


@scenario("An instantiation that is refused takes nothing.", control="made",
          variants={"made": dict(cycle=False), "cycle": dict(cycle=True)})
def a_refused_instantiation_takes_nothing(t, cycle):
    graph, nodes = chain(t, [empty(t), empty(t)])
    if cycle:
        t.add_edges(graph, nodes[1:], nodes[:1])
    seen = held_by(t, graph)
    executable = t.instantiate(graph)
    t.cudaGraphDestroy(graph)
    tell(t, seen, cycle)
    if executable is not None:
        t.cudaGraphExecDestroy(executable)
    tell(t, seen, 1)
    t.recovered()


@scenario("A launch holds the objects of its executable until it is done.", control="done",
          variants={"done": dict(held=False), "queued": dict(held=True), "queued twice": dict(held=True, times=2), "in another stream": dict(held=True, apart=True)})
def launches_hold_user_objects(t, held, times=1, apart=False):
    stream, other, x = t.stream(), t.stream(), t.device([0] * 4)
    graph = chain(t, [plus(t, x, 1)])[0]
    seen = held_by(t, graph)
    executable = t.instantiate(graph)
    let_go = t.gate(stream) if held else lambda: None
    for _ in range(times):
        t.cudaGraphLaunch(executable, stream)
    if apart:
        t.cudaGraphLaunch(executable, other)
    if not held:
        t.cudaStreamSynchronize(stream)
    t.cudaGraphDestroy(graph)
    t.cudaGraphExecDestroy(executable)
    tell(t, seen, not held, where=True)
    let_go()
    tell(t, seen, 1, where=True)            # without a wait for the stream
    t.values(x, stream), t.values(x, other)


@scenario("An updated executable holds what the new graph holds, and no longer what the old one held.", control="no update",
          variants={"no update": dict(how=None), "updated": dict(how="updated"), "refused": dict(how="refused"), "twice": dict(how="twice"), "with its own graph": dict(how="own")},
          each={"use": ("never launched", "launched")}, open=True)
def updates_swap_user_objects(t, how, use):
    a, b, seen = small(t), small(t, 2 if how == "refused" else 1), []
    held_by(t, a, 1, seen), held_by(t, b, 2, seen)
    executable = t.instantiate(a)
    _use(t, executable, use)
    if how == "own":
        held_by(t, a, 3, seen)
    if how is not None:
        t.cudaGraphExecUpdate(executable, a if how == "own" else b)
    if how == "twice":
        t.cudaGraphExecUpdate(executable, a)
    _use(t, executable, use)
    moved = how == "updated"
    t.cudaGraphDestroy(a)
    tell(t, seen, moved)
    t.cudaGraphDestroy(b)
    tell(t, seen, 1)
    t.cudaGraphExecDestroy(executable)
    tell(t, seen, 3 if how == "own" else 2)
    t.recovered()


@scenario("A launch that is queued, and an update of its executable: when the old objects go.", control="done",
          variants={"done": dict(held=False), "queued": dict(held=True)}, open=True)
def an_update_while_a_launch_is_queued(t, held):
    stream, a, b, seen = t.stream(), small(t), small(t), []
    held_by(t, a, 1, seen), held_by(t, b, 2, seen)
    executable = t.instantiate(a)
    let_go = t.gate(stream) if held else lambda: None
    t.cudaGraphLaunch(executable, stream)
    if not held:
        t.cudaStreamSynchronize(stream)
    t.cudaGraphExecUpdate(executable, b)
    t.cudaGraphDestroy(a)
    tell(t, seen, not held)
    let_go()
    t.cudaStreamSynchronize(stream)
    tell(t, seen, 1)
    t.cudaGraphExecDestroy(executable), t.cudaGraphDestroy(b)
    tell(t, seen, 2)
    t.recovered(stream)


@scenario("Other parameters for a child node of an executable: whose objects it holds.", control="none given",
          variants={"none given": dict(given=False), "given": dict(given=True)}, open=True)
def child_parameters_and_user_objects(t, given):
    a, b, seen = small(t), small(t), []
    held_by(t, a, 1, seen), held_by(t, b, 2, seen)
    parent, node = _in_child(t, a)
    executable = t.instantiate(parent)
    if given:
        t.cudaGraphExecChildGraphNodeSetParams(executable, node, b)
    for graph in (b, a, parent):
        t.cudaGraphDestroy(graph)
        tell(t, seen, 1)
    t.cudaGraphExecDestroy(executable)
    tell(t, seen, 2)
    t.recovered()


CALLS = {"nothing": lambda t: None, "stream query": lambda t: t.raw.cudaStreamQuery(0)[0], "malloc": lambda t: t.raw.cudaMalloc(64)[0],
         "event create": lambda t: t.raw.cudaEventCreate()[0], "graph create": lambda t: t.raw.cudaGraphCreate(0)[0], "last error": lambda t: t.raw.cudaGetLastError()[0]}


@scenario("A destructor may not call CUDA.", control="nothing",
          variants={name: dict(call=name) for name in CALLS}, each={"by": ("release", "graph", "launched executable")}, open=True)
def a_destructor_may_not_call_cuda(t, call, by):
    codes = []

    def destructor(data):
        code = CALLS[call](t)
        codes.append("nothing" if code is None else code.name)
    graph = small(t)
    _, one = t.cudaUserObjectCreate(7, t.raw.cudaHostFn_t(t.receiver(destructor)), 1, FLAG)
    if by == "release":
        t.cudaUserObjectRelease(one, 1)
    else:
        t.cudaGraphRetainUserObject(graph, one, 1, MOVE)
        executable = t.instantiate(graph) if by == "launched executable" else None
        if executable is not None:
            _use(t, executable, "launched")
        t.cudaGraphDestroy(graph)
        if executable is not None:
            t.cudaGraphExecDestroy(executable)
    end = time.monotonic() + 2
    while not codes and time.monotonic() < end:
        time.sleep(0.001)
    t.note("codes", codes)
    t.recovered()


@scenario("The graph of a capture that goes on can hold objects; it lets go when the capture is lost.", control="ended",
          variants={"ended": dict(lost=None), "invalidated": dict(lost="invalidated"), "unjoined": dict(lost="unjoined"), "given graph, ended": dict(lost=None, given=True),
                    "given graph, invalidated": dict(lost="invalidated", given=True)}, open=True)
def a_capture_that_goes_on_holds(t, lost, given=False):
    stream, other = t.stream(), t.stream()
    if given:
        t.begin_to_graph(stream, t.cudaGraphCreate(0)[1])
    else:
        t.begin(stream)
    t.fill(stream, t.spare, 1)
    seen = held_by(t, graphs.capture_state(stream, cudart=t.raw).graph)
    if lost == "invalidated":
        t.cudaDeviceSynchronize()
    elif lost == "unjoined":
        t.follow(other, stream)
        t.fill(other, t.spare, 2)
    t.status(stream)
    tell(t, seen, 0)
    graph = t.end(stream)
    tell(t, seen, bool(lost), where=True)
    if graph is not None and int(graph):
        t.cudaGraphDestroy(graph)
    tell(t, seen, 1, where=True)
    t.recovered(stream)


WRONG = {"good": lambda t, graph, one: None, "over-released": lambda t, graph, one: t.cudaUserObjectRelease(one, 5),
         "released after the end": lambda t, graph, one: (t.cudaUserObjectRelease(one, 1), t.cudaUserObjectRelease(one, 1)),
         "retained after the end": lambda t, graph, one: (t.cudaUserObjectRelease(one, 1), t.cudaUserObjectRetain(one, 1)),
         "held after the end": lambda t, graph, one: (t.cudaUserObjectRelease(one, 1), t.cudaGraphRetainUserObject(graph, one, 1, 0)),
         "moved after it was moved": lambda t, graph, one: [t.cudaGraphRetainUserObject(graph, one, 1, MOVE) for _ in range(2)],
         "dropped by a graph without it": lambda t, graph, one: t.cudaGraphReleaseUserObject(graph, one, 1),
         "dropped twice": lambda t, graph, one: (t.cudaGraphRetainUserObject(graph, one, 1, 0), [t.cudaGraphReleaseUserObject(graph, one, 1) for _ in range(2)])}


@scenario("References that somebody does not have cannot be given away: CUDA does not check.", control="good",
          variants={name: dict(what=name) for name in WRONG}, undefined=[name for name in WRONG if name != "good"])
def references_that_are_not_there(t, what):
    (_, graph), (one, seen) = t.cudaGraphCreate(0), watched(t)
    WRONG[what](t, graph, one)
    t.cudaUserObjectRelease(one, 1)
    tell(t, seen, 1)
