"""What the judge of pools asks: a pool's counters and threshold, a pool of its own, and all pools as they were."""
import contextlib

from labkit.backend import cudart, cuuint64_t
from labkit.errors import ok
from labkit.labs.memory import MIB

STEP = 32 * MIB                                          # pools reserve in such steps
Attr = cudart.cudaMemPoolAttr


def read(pool, what):
    """An attribute of a pool: "UsedMemCurrent", "ReservedMemHigh", "ReleaseThreshold" ... in bytes."""
    return int(ok(cudart.cudaMemPoolGetAttribute(pool, getattr(Attr, "cudaMemPoolAttr" + what))))


def put(pool, what, value):
    ok(cudart.cudaMemPoolSetAttribute(pool, getattr(Attr, "cudaMemPoolAttr" + what), cuuint64_t(value)))


def mib(size):
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size:,} bytes"


@contextlib.contextmanager
def as_it_was(t):
    """The device's current pool and the default pool's threshold are put back, and pools made meanwhile destroyed. Yields them as a list."""
    current, default, pools = ok(cudart.cudaDeviceGetMemPool(0)), ok(cudart.cudaDeviceGetDefaultMemPool(0)), []
    threshold = read(default, "ReleaseThreshold")
    try:
        yield pools
    finally:
        t.end_captures()
        cudart.cudaDeviceSynchronize()
        cudart.cudaDeviceSetMemPool(0, current)
        cudart.cudaMemPoolSetAttribute(default, Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(threshold))
        for pool in pools:
            cudart.cudaMemPoolDestroy(pool)
        cudart.cudaGetLastError()


def new_pool(pools, threshold):
    """A pool of the judge's own."""
    props = cudart.cudaMemPoolProps()
    props.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    props.location.type, props.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    pools.append(ok(cudart.cudaMemPoolCreate(props)))
    put(pools[-1], "ReleaseThreshold", threshold)
    return pools[-1]
