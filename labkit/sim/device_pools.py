"""The pools of the device: its own one, those that a program makes, and which of them is current.

Runtime API, "Stream Ordered Memory Allocator". A pool's life, and what waiting does to all of them; what happens in one is
in pool.py.
"""
from labkit.errors import NotSimulated, Undefined
from . import engine, memory
from .pool import THRESHOLD, Pool
from .ranges import PAGE
from .world import Refused, find, find_alive, world


def default():
    """The pool that the device has from the beginning."""
    if world.default_pool is None:
        world.default_pool = Pool(world.handle("pool"))
        world.pools[world.default_pool.handle] = world.default_pool
    return world.default_pool


def current():
    """The pool that cudaMallocAsync takes from: the device's, whatever the stream."""
    return world.current_pool or default()


def pool_of(handle):
    default()
    return find(world.pools, handle, "InvalidValue")


def check(props):
    """Properties of memory: pinned (it stays where it is), on this device. The host's, and memory for other processes, are not simulated."""
    if props is None or int(props.allocType) == 0 or int(props.location.type) == 0:
        raise Refused("InvalidValue")
    for what, first in ((props.allocType, 1), (props.location.type, 1), (props.handleTypes, 0)):
        if int(what) != first:
            raise NotSimulated(f"The program asks for memory with {what}.", "The simulator has memory of one device, for one process.",
                               "Run this on a GPU.")
    if props.location.id:
        raise Refused("InvalidValue")


def create(props):
    """maxSize: bytes that the pool may reserve, in whole pages; 0 is no limit."""
    check(props)
    pool = Pool(world.handle("pool"), -(-props.maxSize // PAGE) if props.maxSize else None)
    world.pools[pool.handle] = pool
    return pool


def make_current(handle):
    """From here on cudaMallocAsync takes from this pool, in every stream."""
    default()
    world.current_pool = find_alive(world.pools, handle, "InvalidValue", "pool")


def destroy(pool):
    """Its memory may still be used, and what is being freed goes when that is done. Where it was the current pool the default one
    is again; that one cannot be destroyed."""
    if pool is default():
        raise Refused("InvalidValue")
    del world.pools[pool.handle]
    pool.alive = False
    if world.current_pool is pool:
        world.current_pool = None
    world.leaving.append(pool)
    _settle([pool])


def check_free(block):
    """Memory of a pool is freed before its pool is destroyed."""
    if block.kind == "async" and not block.region.home.alive:
        raise Undefined("The program frees memory whose pool was destroyed before.",
                        "The documentation allows it; with driver 580.159.04 the process hung or died when a pool was used the next time.",
                        "Free what a pool gave, then destroy the pool.")


def waited(ops, own=None):
    """What the host waits for; a wait that finds frees done gives back pages. own: the free of a cudaFree, which hears of no other that
    was under way."""
    pools = _all()
    if any(pool.pages and (not pool.alive or len(pool.pages) * PAGE > pool.values[THRESHOLD]) for pool in pools):
        unheard = {op for pool in pools for op, *_ in pool.freeing if own not in (None, op) and not engine.is_done(op)}

        def over(op):
            return engine.is_done(op) and op not in unheard
        return [engine.Op(lambda: _settle(over=over), ops), *ops]
    return ops


def _all():
    return [*world.pools.values(), *world.leaving]


def _settle(pools=None, over=engine.is_done):
    with world.lock:
        for pool in pools or _all():
            pool.settle(over)
            if not pool.alive and not pool.pages:
                world.leaving.remove(pool)
                memory.memory().spans.remove(pool.region)
