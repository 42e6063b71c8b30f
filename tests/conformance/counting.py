"""What scenarios on memory share: counters, and small graphs written as text.

Counters are told above what they were at the start, so that a scenario does not depend on the ones before it.
"""
from labkit import kernels

MIB = 1 << 20
GIB = 1 << 30
HUGE = 1 << 50              # bytes that no device has
PAGE = 32 * MIB             # the step of reserved memory on the recorded device
SIZES = {"KiB": 1 << 10, "MiB": MIB}
COUNTERS = ("UsedMemCurrent", "UsedMemHigh", "ReservedMemCurrent", "ReservedMemHigh")
FLAGS = ("FollowEventDependencies", "AllowOpportunistic", "AllowInternalDependencies")


class _Counters:
    """Four counters, written down in MiB (whole ones as integers): used, its high mark, reserved, its high mark."""

    def __init__(self, t):
        self.t, self.base = t, [0] * 4
        t._put("cudaDeviceSynchronize")
        self.start()
        self.base = self.read()

    def __call__(self, label):
        self.t.note(label, self.now())

    def now(self):
        return [one if isinstance(one, str) else mib(one - zero) for one, zero in zip(self.read(), self.base)]

    def read(self):
        return [int(value) if code == 0 else code.name for code, value in map(self.ask, COUNTERS)]


class GraphMemory(_Counters):
    """The counters of graph memory, since a trim: `count = GraphMemory(t)`, then `count("launched")`."""

    def start(self):
        self.t._put("cudaDeviceGraphMemTrim", 0)
        for name in ("UsedMemHigh", "ReservedMemHigh"):
            self.t._put("cudaDeviceSetGraphMemAttribute", 0, graph_attribute(self.t, name), self.t.u64(0))

    def ask(self, name):
        return self.t.raw.cudaDeviceGetGraphMemAttribute(0, graph_attribute(self.t, name))


class PoolMemory(_Counters):
    """The counters of a memory pool, in the same way; used memory in bytes where it is no whole number of MiB."""

    def __init__(self, t, pool):
        self.pool = pool
        super().__init__(t)

    def start(self):
        self.t._put("cudaMemPoolTrimTo", self.pool, 0)
        for name in ("UsedMemHigh", "ReservedMemHigh"):
            self.t._put("cudaMemPoolSetAttribute", self.pool, pool_attribute(self.t, name), self.t.u64(0))

    def ask(self, name):
        return self.t.raw.cudaMemPoolGetAttribute(self.pool, pool_attribute(self.t, name))


def mib(size):
    """A size as a note: whole MiB as a number, anything else as text in bytes."""
    return size // MIB if size % MIB == 0 else f"{size} B"


def graph_attribute(t, name):
    return getattr(t.raw.cudaGraphMemAttributeType, f"cudaGraphMemAttr{name}")


def pool_attribute(t, name):
    """ReleaseThreshold, a counter, or one of the three reuse flags."""
    prefix = "cudaMemPoolReuse" if name in FLAGS else "cudaMemPoolAttr"
    return getattr(t.raw.cudaMemPoolAttr, prefix + name)


def pool_props(t, maxSize=0):
    """The properties of an ordinary pool on the device."""
    props = t.raw.cudaMemPoolProps()
    props.allocType = t.raw.cudaMemAllocationType.cudaMemAllocationTypePinned
    props.location.type = t.raw.cudaMemLocationType.cudaMemLocationTypeDevice
    props.location.id, props.maxSize = 0, maxSize
    t.keep.append(props)
    return props


def make_pool(t, threshold=None, maxSize=0, **flags):
    """A new pool; `threshold` in bytes, the reuse flags by name."""
    pool = t.cudaMemPoolCreate(pool_props(t, maxSize))[1]
    if threshold is not None:
        t.cudaMemPoolSetAttribute(pool, pool_attribute(t, "ReleaseThreshold"), t.u64(threshold))
    for name, value in flags.items():
        t.cudaMemPoolSetAttribute(pool, pool_attribute(t, name), value)
    return pool


def from_pool(t, size, pool, stream):
    """The address of an allocation from a pool, 0 where it was refused."""
    return int(t.cudaMallocFromPoolAsync(size, pool, stream)[1] or 0)


def captured(t, stream, text, unit=MIB, pool=None):
    """(graph, {name: address}) of a capture written as text: "a20 b20 -a c30" allocates a and b, of 20 units each, frees a, allocates c."""
    t.begin(stream)
    places = blocks(t, stream, text, unit, pool)
    return t.end(stream), places


def blocks(t, stream, text, unit=MIB, pool=None, places=None):
    """The same on a stream that captures already, or that does not: {name: address}."""
    places = {} if places is None else places
    for step in text.split():
        if step[0] == "-":
            t.cudaFreeAsync(places[step[1:]], stream)
        elif pool is None:
            places[step[0]] = int(t.cudaMallocAsync(int(step[1:]) * unit, stream)[1] or 0)
        else:
            places[step[0]] = from_pool(t, int(step[1:]) * unit, pool, stream)
    return places


def write_offsets(t, places, unit=MIB):
    """Write down where each block lies, in units from the first one."""
    first = next(iter(places.values()))
    t.note("at", {name: (place - first) // unit if (place - first) % unit == 0 else f"{place - first} B" for name, place in places.items()})


def use(t, stream, ptr, value=3):
    """A kernel that writes four floats at an address."""
    return t.launch(stream, kernels.fill, 1, 32, ptr, float(value), 4)
