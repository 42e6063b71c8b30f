"""17: a pool of one's own, work that takes from it, and how much it keeps."""
import contextlib

import numpy as np

from labkit.arrays import DeviceArray, to_host
from labkit.backend import cudart
from labkit.cases.bench import Trouble
from labkit.errors import LabError, ok
from labkit.labs.calls import following, kernels_launched, kind, number, shown
from labkit.labs.judging import Lab
from labkit.labs.listening import listening
from labkit.labs.memory import MIB, now
from labkit.labs.pools import STEP, as_it_was, mib, new_pool, put, read

LAB = Lab("17_pool", "A pool of your own", lesson="10", minutes=10)
TAKING = ("cudaMallocAsync", "cudaMallocFromPoolAsync")


def run(t, pools, answer, *args):
    """(what it returned, the calls it made). `pools` follows: those that it made join, those that it destroyed leave. Where it failed, its blocks are freed."""
    with following("cudaMemPoolCreate", "cudaMemPoolDestroy", *TAKING, of=answer) as made:
        try:
            return t.run(answer, *args), made
        except Trouble:
            t.end_captures()
            _give_back(t, made)
            raise
        finally:
            pools += [reply[1] for _, reply in made["cudaMemPoolCreate"] if not int(reply[0])]
            for given, reply in made["cudaMemPoolDestroy"]:         # one at a time: the next pool may get the handle of one that is gone
                at = next((k for k, pool in enumerate(pools) if given and int(pool) == number(given[0])), None)
                if at is not None and not int(reply[0]):
                    del pools[at]


def _give_back(t, made):
    """Free what the function took and has not freed; a block that is free refuses."""
    for name in TAKING:
        for _, reply in made[name]:
            if not int(reply[0]):
                cudart.cudaFreeAsync(reply[1], t.stream)
    cudart.cudaStreamSynchronize(t.stream)


def _not_current(t, before):
    t.want(int(ok(cudart.cudaDeviceGetMemPool(0))) == before, "the device's current pool as it was", "another pool is current now")


@LAB.part(points=4, hints=(
    "Lesson 10 makes pools several times, in one function. Which properties must a pool have to hold memory of this GPU?",
    "What does a new pool keep at a wait, if nobody says anything? With which call is another size said?",
    "Fill a cudaMemPoolProps: what is allocated, where, and of which device. The threshold wants the C type cuuint64_t."))
def own_pool(t, answer):
    """A new pool with the given release threshold, each time another one; the device goes on taking from the pool that was current."""
    with as_it_was(t) as pools:
        current, default = int(ok(cudart.cudaDeviceGetMemPool(0))), ok(cudart.cudaDeviceGetDefaultMemPool(0))
        threshold, made = read(default, "ReleaseThreshold"), []
        for asked in (0, STEP * int(t.random.integers(2, 4)), t.size * MIB + 5):
            pool, _ = run(t, pools, answer, asked)
            t.want(isinstance(pool, cudart.cudaMemPool_t) and int(pool), "a pool, a cudaMemPool_t", kind(pool))
            t.want(int(pool) != int(default), "a pool of your own", "the device's default pool")
            t.want(int(pool) in [int(one) for one in pools], "a pool that is there", "one that your function has destroyed, or has not made")
            t.want(int(pool) not in made, "a new pool each time", "the same one again")
            made.append(int(pool))
            t.want(read(pool, "ReleaseThreshold") == asked, f"a release threshold of {asked:,} bytes", f"{read(pool, 'ReleaseThreshold'):,} bytes")
            _not_current(t, current)
            t.want(read(default, "ReleaseThreshold") == threshold, "the default pool as it was", "it has another release threshold")
            if asked <= 3 * STEP:
                _keeps(t, pool, asked)


def _keeps(t, pool, threshold):
    """The pool lends three steps of memory that can be used, and keeps after a wait no more than its threshold says."""
    code, address = cudart.cudaMallocFromPoolAsync(3 * STEP, pool, t.stream)
    if int(code):
        raise Trouble(f"{t.what}: the pool lends nothing: cudaMallocFromPoolAsync answers {int(code)} {code.name}.", code)
    values, some = t.numbers(), DeviceArray(address, t.size, np.float32)
    ok(cudart.cudaStreamSynchronize(t.stream))
    t.put(some, values)
    found = to_host(some)
    ok(cudart.cudaFreeAsync(address, t.stream))
    ok(cudart.cudaStreamSynchronize(t.stream))
    t.expect("written to memory of the pool", "the numbers", found, values)
    t.want(read(pool, "ReservedMemCurrent") <= threshold, f"at most {mib(threshold)} reserved after a free and a wait", mib(read(pool, "ReservedMemCurrent")))


@contextlib.contextmanager
def _steps(t, answer, y):
    """[(what, stream, arguments)] of the blocks taken and freed and the kernels launched meanwhile. What would touch foreign memory is refused before it runs."""
    made, freed, blocks = [], set(), set()              # blocks: all that were taken

    def heard(name, call, given):
        if name == "cudaFree" and given and number(given[0]) in blocks:
            raise LabError("cudaFree was called with the block of the pool.", "It is not in the order of the stream: the block may go while kernels use it.", "Give it back with cudaFreeAsync, on the stream.")
        reply, takes = call(), name in TAKING
        if not int(reply[0]) and name != "cudaFree":
            address = number(reply[1] if takes else given[0])
            freed.discard(address) if takes else freed.add(address)
            blocks.update([address] * takes)
            made.append(("a block taken" if takes else "a block freed", number(given[-1]), [address]))
        return reply

    def launched(kernel, stream, args):
        if freed.intersection(args):
            raise LabError(f"{kernel.name} gets the address of a block that is freed already.", "What lies there by now may be somebody else's.", "Free the block after its last use.")
        if kernel.name in ("fill", "axpy") and args[-1] > y.size:
            raise LabError(f"{kernel.name} goes over {args[-1]} floats; {y.size} are there.", "It would write behind the end.", "Its last argument is the count of floats.")
        made.append((kernel.name, stream, args))
    with listening((*TAKING, "cudaFreeAsync", "cudaFree"), heard, answer), kernels_launched(launched):
        yield made


def _in_order(t, steps, y):
    """Trouble unless these are the four steps, in their order, on the given stream."""
    right = ["a block taken", "fill", "axpy", "a block freed"]
    found = [name for name, _, _ in steps]
    t.want(found == right, f"{', '.join(right)}, in this order", ", ".join(found) or "none of them")
    other = [name for name, stream, _ in steps if stream != number(t.stream)]
    t.want(not other, "all of it on the stream that was given", f"{', '.join(other)} on another stream")
    (block,), fill, axpy, _ = (args for _, _, args in steps)
    t.want(fill[:2] == [block, 3.0], "fill of the block with 3.0", f"{'the block' if fill[0] == block else 'other memory'}, filled with {fill[1]:g}")
    t.want(axpy[:3] == [y.ptr, block, 1.0], "axpy: y += 1.0 block", f"{'y' if axpy[0] == y.ptr else 'other memory'} += {axpy[2]:g} {'block' if axpy[1] == block else 'other memory'}")


@LAB.part(points=4, hints=(
    "From which pool does the plain allocation take? Which call names another one?",
    "What you took from a pool in stream order: with which call does it go back, and must anybody wait for the kernels before?",
    "Four calls on the stream, as inside a graph in lesson 08. Only the first is another one here: it has the pool between size and stream."))
def from_your_pool(t, answer):
    """y += 3 by way of a block of the given pool: taken, filled, added and given back, all on the stream; the device's current pool stays."""
    with as_it_was(t) as pools:
        pool, y = new_pool(pools, 2 ** 40), t.buffer()
        current, before = int(ok(cudart.cudaDeviceGetMemPool(0))), now()
        for which in (1, 2):
            put(pool, "UsedMemHigh", 0)
            old, = t.fresh(y)
            with _steps(t, answer, y) as steps, following("cudaDeviceSetMemPool", of=answer) as switched:
                _, made = run(t, pools, answer, pool, t.stream, y)
            t.want(int(pool) in [int(one) for one in pools], "the pool is there", "your function has destroyed it")
            high, left = read(pool, "UsedMemHigh"), read(pool, "UsedMemCurrent")
            if left:
                _give_back(t, made)
            t.want(high == y.nbytes, f"a block of {y.nbytes:,} bytes from the pool", f"at most {high:,} bytes were taken from it")
            t.want(left == 0, "the pool has it back, freed with cudaFreeAsync", f"it counts {left:,} bytes as used")
            t.expect(f"after call {which}", "y", y, old + 3)
            _not_current(t, current)
            t.want(not switched["cudaDeviceSetMemPool"], "the device's current pool stays, the whole time", "a call of cudaDeviceSetMemPool")
            t.want(read(pool, "ReleaseThreshold") == 2 ** 40, "the pool's threshold as it was", f"{read(pool, 'ReleaseThreshold'):,} bytes")
            _in_order(t, steps, y)
        t.want(now() <= before, "no graph memory", f"{(now() - before) // MIB} MiB more in use")


@LAB.part(points=5, hints=(
    "The blocks are freed, and the pool still has its memory reserved. What made it keep that, and which call takes it back?",
    "A trim lets go only of memory that the host knows to be free. What must the host do first?",
    "Wait for the stream, trim to the size, read the attribute of what is reserved now. The threshold has nothing to do with it."))
def trim_back(t, answer):
    """The pool has just the asked bytes reserved, whatever was freed a moment before; its threshold stays, and so does the block that is in use."""
    with as_it_was(t) as pools:
        pool = new_pool(pools, 2 ** 40)
        blocks = [ok(cudart.cudaMallocFromPoolAsync(STEP, pool, t.stream)) for _ in range(5)]
        ok(cudart.cudaStreamSynchronize(t.stream))
        values, used = t.numbers(), DeviceArray(blocks[0], t.size, np.float32)
        t.put(used, values)
        try:
            for keep in (int(t.random.integers(2, 5)) * STEP, STEP):
                more = [ok(cudart.cudaMallocFromPoolAsync(STEP, pool, t.stream)) for _ in range(5 - len(blocks))]
                blocks += more
                while len(blocks) > 1:
                    ok(cudart.cudaFreeAsync(blocks.pop(), t.stream))
                result, _ = run(t, pools, answer, pool, t.stream, keep)
                t.want(int(pool) in [int(one) for one in pools], "the pool is there", "your function has destroyed it")
                reserved = read(pool, "ReservedMemCurrent")
                t.want(reserved == keep, f"{mib(keep)} reserved", f"{mib(reserved)}")
                t.want(not isinstance(result, str) and number(result) == keep, f"back: the bytes that are reserved now, {keep}", shown(result, 60))
                t.want(read(pool, "ReleaseThreshold") == 2 ** 40, "the pool's threshold as it was", f"{read(pool, 'ReleaseThreshold'):,} bytes")
                t.want(read(pool, "UsedMemCurrent") == STEP, "the block that is in use stays", f"{mib(read(pool, 'UsedMemCurrent'))} in use")
                t.expect("after the trim", "the block that is in use", used, values)
        finally:
            if pools and int(pool) in [int(one) for one in pools]:
                for block in blocks:
                    cudart.cudaFreeAsync(block, t.stream)
                cudart.cudaStreamSynchronize(t.stream)
