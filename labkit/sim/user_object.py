"""User objects: things of the program's own that graphs hold, each with a destructor for when nobody does.

References belong to the program, to graphs (clones and copies in child nodes hold what their source
held), and to executables, which take those of their graph and of the graphs inside it, level by level. Queued launches hold theirs until they are
done. Rules: Runtime API, Graph Management; Programming Guide, CUDA Graphs, "CUDA User Objects".
"""
import ctypes
import threading

from labkit.errors import Undefined
from . import engine
from .world import Refused, find_alive, world

NO_DESTRUCTOR_SYNC = MOVE = 1
MOST = 2 ** 31 - 1                      # references that one call can add or give back
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_mine = threading.local()


class UserObject:
    """own: references of the program; held: those of graphs and executables. Both 0: the destructor runs, once."""

    def __init__(self, argument, function, count):
        self.handle, self.argument, self.function = world.handle("user object"), argument, function
        self.own, self.held = count, 0


def object_of(handle):
    return find_alive(world.objects, handle, "InvalidValue", "user object")


def create(argument, function, count, flags):
    """No call can wait for a destructor, and the flag that says so is not optional. Any count but 0 will do."""
    if not count or not function or flags != NO_DESTRUCTOR_SYNC:
        raise Refused("InvalidValue")
    made = UserObject(argument, function, count)
    world.objects[made.handle] = made
    return made


def retain(one, count):
    """The program gets more references."""
    _counted(count)
    one.own += count


def release(one, count):
    """The program gives references back, none that it does not have."""
    _counted(count)
    _from_program(one, count)
    _settle(one)


def retain_for(graph, one, count, flags):
    """A graph gets references: new ones, or those of the program."""
    _counted(count)
    if flags not in (0, MOVE):
        raise Refused("InvalidValue")
    if flags == MOVE:
        _from_program(one, count)
    one.held += count
    graph.objects[one] = graph.objects.get(one, 0) + count


def release_from(graph, one, count):
    """A graph gives references back, none that it does not have."""
    _counted(count)
    if count > graph.objects.get(one, 0):
        _too_many(f"The program releases {count} references of a graph that holds {graph.objects.get(one, 0)}.")
    graph.objects[one] -= count
    if not graph.objects[one]:
        del graph.objects[one]
    let_go({one: count})


def _counted(count):
    if not 0 < count <= MOST:
        raise Refused("InvalidValue")


def _from_program(one, count):
    if count > one.own:
        _too_many(f"The program gives away {count} references to a user object and has {one.own}.")
    one.own -= count


def _too_many(what):
    raise Undefined(what, "CUDA does not check for this: the destructor runs while somebody still holds the object.",
                    "Release each reference once; one that was moved to a graph belongs to the graph.")


# ---- what graphs and executables hold ----

def share(objects):
    """As many references again, for a copy."""
    for one, count in objects.items():
        one.held += count
    return dict(objects)


def take(levels):
    """Executables hold what the graphs of their levels hold at this moment. levels: (level, graph). Returns what they held before."""
    old = []
    for level, graph in levels:
        old.append(level.objects)
        level.objects = share(graph.objects)
    return merged(old)


def merged(held):
    """Several {object: references} in one."""
    found = {}
    for objects in held:
        for one, count in objects.items():
            found[one] = found.get(one, 0) + count
    return found


def let_go(objects):
    """Nobody may hold some of them any more: their destructors run at the end of this call, in this thread."""
    for one, count in objects.items():
        one.held -= count
        _settle(one)


def let_go_after(last, objects):
    """An executable lets go of its objects. Of one that was launched, a thread of the driver does it when the last launch is done."""
    if last is None or not objects:
        let_go(objects)
    else:
        engine.begin([engine.Op(lambda: _in_background(objects), [last])])


def _in_background(objects):
    with world.lock:
        let_go(objects)
    destroy()


def _settle(one):
    if not one.own and not one.held and world.objects.pop(one.handle, None):
        _due().append(one)


def _due():
    try:
        return _mine.due
    except AttributeError:
        _mine.due = []
        return _mine.due


def destroy():
    """Run the destructors that are due in this thread, without the world's lock. Like host functions they may not call CUDA."""
    due = _due()
    while due and not engine.in_callback():
        one = due.pop(0)
        engine.call_back(_Destructor(one.function), one.argument)
