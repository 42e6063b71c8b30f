"""How a name of the Runtime API is written here: its arguments, its guard, its tuple.

    @name(gives=1)
    def cudaGraphClone(originalGraph: Graph):
        return to_graph(graphs.clone(originalGraph))

An annotation converts an argument as the bindings do and looks the object up. A refusal of a rule
becomes the code in the tuple, with None for each value; no rule is written in these files.
"""
import functools
import inspect

from labkit.errors import NotSimulated
from .. import capture, convert, engine, execute, graph, guards, stream, user_object, values
from ..world import Refused, thread, world

TABLE = {12: {}, 13: {}}        # line -> name -> function
IN_CALLBACKS = {"cudaGetErrorName", "cudaGetErrorString"}
IN_DESTRUCTORS = {"cudaGetLastError", "cudaPeekAtLastError"}     # of user objects, in the program's own threads


class Arg:
    """An annotation: convert raises what the bindings raise; look finds the object, or refuses."""

    def __init__(self, convert, look=None):
        self.convert, self.look = convert, look


size_t, c_int, c_uint, c_ulonglong = map(Arg, (convert.size_t, convert.c_int, convert.c_uint, convert.c_ulonglong))
Pointer, Text = Arg(convert.pointer), Arg(convert.text)
Stream = Arg(convert.handle(values.cudaStream_t), stream.stream_of)
Event = Arg(convert.handle(values.cudaEvent_t), stream.event_of)
EventHandle = Arg(Event.convert)         # where the rule wants to know about a bad one
NodeEvent = Arg(Event.convert, stream.event_of_node)
Graph = Arg(convert.handle(values.cudaGraph_t), graph.graph_of)
Node = Arg(convert.handle(values.cudaGraphNode_t), graph.node_of)
Exec = Arg(convert.handle(values.cudaGraphExec_t), execute.exec_of)
ExecToSet = Arg(Exec.convert, execute.exec_to_set)      # where one that was destroyed is refused
HostFunction = Arg(convert.handle(values.cudaHostFn_t))
Nodes = Arg(convert.sequence(values.cudaGraphNode_t))


def Enum(name):
    return Arg(convert.enum(name))


def Struct(cls):
    return Arg(convert.struct(cls))


def answer(code, *found):
    """The tuple of a call; a failure is remembered as the thread's last error."""
    member = values.error(code) if isinstance(code, str) else values.enum("cudaError_t")(code)
    if member:
        thread().last_error = int(member)
    return (member, *found)


def name(gives=0, lines=(12, 13), called=None, then=None, check=None):
    """Make a function over rules a runtime name.

    gives: how many values its tuple has beside the code. lines: the lines of the bindings that have
    it. called: its name, where two lines give one name to two forms. then: "wait" (the function
    returns ops that the host waits for), "query" (ops that make the answer "not ready"), "code"
    (the code that is the answer). check: converts arguments of which one decides on another's type: all in, all out.
    """
    def make(function):
        label = called or function.__name__
        signature = inspect.signature(function)
        args = [p.annotation for p in signature.parameters.values()]
        guard = guards.GUARDS[label]
        at = next((i for i, a in enumerate(args) if a is Stream), None)
        lists = [i for i, a in enumerate(args) if a is Nodes]
        length = next((i for i, p in enumerate(signature.parameters) if p == "numDependencies"), None)
        allowed, mine = label in IN_CALLBACKS, label in IN_DESTRUCTORS

        @functools.wraps(function)
        def call(*given, **named):
            if named or len(given) != len(args):
                bound = signature.bind(*given, **named)
                bound.apply_defaults()
                given = bound.args
            got = [a.convert(v) for a, v in zip(args, given)]
            for i in lists:
                got[i] = convert.first(got[i], got[length])
            if check is not None:
                got = list(check(got))
            try:
                if engine.in_callback() and not allowed and not (mine and not engine.on_device()):
                    raise Refused("NotPermitted")           # a host function must not call CUDA
                if world.broken and label not in guards.UNBROKEN:
                    raise Refused(world.broken) if label in guards.BROKEN else _unasked(label)
                with world.lock:
                    if at is not None:
                        got[at] = stream.stream_of(got[at])
                    if guard != "free":
                        capture.guard(guard, got[at] if at is not None else None)
                    got = [v if a.look is None or i == at else a.look(v) for i, (a, v) in enumerate(zip(args, got))]
                    found = function(*got)
                if then == "code":
                    return (values.enum("cudaError_t")(found),)
                if then == "wait":
                    engine.wait(found)
                elif then == "query":
                    _query(found)
            except Refused as no:
                if then == "query" and no.code == "NotReady":   # no error to remember
                    return (values.error(no.code),)
                return answer(no.code, *[None] * gives)
            finally:
                user_object.destroy()
            return _success(found, gives if then is None else 0)

        call.__name__ = call.__qualname__ = label
        call.__module__ = "labkit.sim.runtime"
        call.__signature__ = signature.replace(parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()])
        for line in lines:
            TABLE[line][label] = call
        return function
    return make


def _unasked(label):
    return NotSimulated(f"The program calls {label} after a kernel has touched memory that is nobody's.",
                        "The context is broken, and what this call answers then has not been recorded.", "Restart the kernel.")


def _success(found, gives):
    code = values.enum("cudaError_t")(0)
    if gives == 0:
        return (code,)
    return (code, found) if gives == 1 else (code, *found)


def _query(ops):
    """Unfinished work: not ready, once. It has run by the next query, unless a host function is in
    its way: then it runs in the background."""
    ops = stream.pending(ops)
    if not ops:
        engine.hear()
        return
    if any(op.host for op in ops):
        engine.begin(ops)
    else:
        engine.wait(ops)
    raise Refused("NotReady")
