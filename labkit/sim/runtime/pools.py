"""Stream Ordered Memory Allocator; and Graph Management: the counters of graph memory."""
from labkit.errors import NotSimulated
from .. import convert, device_pools as pools, graph_memory, structs, transfer, values
from ..pool import FLAGS
from ..world import Refused
from ._names import Arg, Pointer, Stream, Struct, c_int, name, size_t
from .device import device_of

PoolHandle = Arg(convert.handle(values.cudaMemPool_t))
Pool = Arg(PoolHandle.convert, pools.pool_of)
Anything = Arg(lambda value: value)


class _Attribute(Arg):
    """An attribute: a member of its enumeration. The simulator has those in `known`, which line 12.9 has, too."""

    def __init__(self, name, known):
        super().__init__(self.convert)
        self.number, self.known = convert.enum(name), known

    def convert(self, value):
        self.number(value)
        if value.value not in self.known:
            raise NotSimulated(f"The program names the attribute {value.name}.", "The real function may know it; the simulator does not.",
                               "Run this on a GPU, or leave this part out.")
        return value.value


PoolAttribute, GraphAttribute = _Attribute("cudaMemPoolAttr", range(1, 9)), _Attribute("cudaGraphMemAttributeType", range(4))


def _size(value):
    """The number that a size lies in; the bindings ask for its address, so nothing but cuuint64_t will do."""
    value.getPtr()
    if not isinstance(value, values.cuuint64_t):
        raise TypeError(f"expected cuuint64_t, got {type(value).__name__}")
    return int(value)


def _pool_value(got):
    memPool, attr, value = got
    return memPool, attr, convert.c_int(value) if attr in FLAGS else _size(value)


def _graph_value(got):
    device, attr, value = got
    return device, attr, _size(value)


def to_pool(pool):
    return values.cudaMemPool_t(pool.handle)


def only_this_device(number):
    """There is one device, number 0; these calls call another one an invalid value."""
    if number != 0:
        raise Refused("InvalidValue")


@name(gives=1)
def cudaMemPoolCreate(poolProps: Struct(structs.cudaMemPoolProps)):
    return to_pool(pools.create(poolProps))


@name()
def cudaMemPoolDestroy(memPool: Pool):
    pools.destroy(memPool)


@name(check=_pool_value)
def cudaMemPoolSetAttribute(memPool: Pool, attr: PoolAttribute, value: Anything):
    memPool.set(attr, value)


@name(gives=1)
def cudaMemPoolGetAttribute(memPool: Pool, attr: PoolAttribute):
    found = memPool.values[attr]
    return found if attr in FLAGS else values.cuuint64_t(found)


@name()
def cudaMemPoolTrimTo(memPool: Pool, minBytesToKeep: size_t):
    memPool.trim(minBytesToKeep)


@name(gives=1)
def cudaMallocAsync(size: size_t, hStream: Stream):
    return transfer.allocate_async(size, hStream)


@name()
def cudaFreeAsync(devPtr: Pointer, hStream: Stream):
    transfer.free_async(devPtr, hStream)


@name(gives=1)
def cudaMallocFromPoolAsync(size: size_t, memPool: Pool, stream: Stream):
    return transfer.allocate_async(size, stream, memPool)


@name(gives=1)
def cudaDeviceGetDefaultMemPool(device: c_int):
    device_of(device)
    return to_pool(pools.default())


@name(gives=1)
def cudaDeviceGetMemPool(device: c_int):
    only_this_device(device)
    return to_pool(pools.current())


@name()
def cudaDeviceSetMemPool(device: c_int, memPool: PoolHandle):
    only_this_device(device)
    pools.make_current(memPool)


# ---- graph memory ----

@name(gives=1)
def cudaDeviceGetGraphMemAttribute(device: c_int, attr: GraphAttribute):
    device_of(device)
    return values.cuuint64_t(graph_memory.get(attr))


@name(check=_graph_value)
def cudaDeviceSetGraphMemAttribute(device: c_int, attr: GraphAttribute, value: Anything):
    device_of(device)
    graph_memory.reset(attr, value)


@name()
def cudaDeviceGraphMemTrim(device: c_int):
    device_of(device)
    graph_memory.trim()
