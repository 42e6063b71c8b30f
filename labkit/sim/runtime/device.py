"""Device Management, Error Handling and Version Management."""
from .. import device_pools as pools, engine, memory, stream as streams, structs, texts, values
from ..world import Refused, thread, world
from ._names import Enum, c_int, name

# What is known of the device that the simulator stands for: one H200 (compute capability 9.0).
PROPERTIES = {
    "name": b"labkit simulator (codes of an NVIDIA H200)", "totalGlobalMem": memory.TOTAL, "major": 9, "minor": 0, "warpSize": 32,
    "maxThreadsPerBlock": 1024, "maxThreadsDim": [1024, 1024, 64], "maxGridSize": [2147483647, 65535, 65535],
    "multiProcessorCount": 132, "sharedMemPerBlock": 49152, "sharedMemPerBlockOptin": 232448, "regsPerBlock": 65536,
    "maxThreadsPerMultiProcessor": 2048, "unifiedAddressing": 1, "memoryPoolsSupported": 1, "concurrentKernels": 1,
}
ATTRIBUTES = {
    "MaxThreadsPerBlock": 1024, "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64, "MaxGridDimX": 2147483647,
    "MaxGridDimY": 65535, "MaxGridDimZ": 65535, "WarpSize": 32, "MultiProcessorCount": 132, "ComputeCapabilityMajor": 9,
    "ComputeCapabilityMinor": 0, "MaxSharedMemoryPerBlock": 49152, "MaxSharedMemoryPerBlockOptin": 232448,
    "MaxThreadsPerMultiProcessor": 2048, "UnifiedAddressing": 1, "MemoryPoolsSupported": 1, "ConcurrentKernels": 1,
}
DRIVER = 13000

Attribute, Code = Enum("cudaDeviceAttr"), Enum("cudaError_t")


def device_of(number):
    """There is one device, number 0."""
    if number != 0:
        raise Refused("InvalidDevice")


@name(gives=1)
def cudaGetDeviceCount():
    return 1


@name()
def cudaSetDevice(device: c_int):
    device_of(device)


@name(gives=1)
def cudaGetDevice():
    return 0


@name(gives=1)
def cudaGetDeviceProperties(device: c_int):
    device_of(device)
    return structs.cudaDeviceProp(dict(PROPERTIES))


@name(gives=1)
def cudaDeviceGetAttribute(attr: Attribute, device: c_int):
    kinds = values.enum("cudaDeviceAttr")
    if attr not in kinds:
        raise Refused("InvalidValue")
    device_of(device)
    label = kinds(attr).name
    try:
        return ATTRIBUTES[label.removeprefix("cudaDevAttr")]
    except KeyError:
        from labkit.errors import NotSimulated
        raise NotSimulated(f"The program asks the device for {label}.",
                           "The simulator knows few attributes of the device that it stands for, and makes none up.",
                           "Run this on a GPU.") from None


@name(gives=2)
def cudaDeviceGetStreamPriorityRange():
    return streams.LOWEST, streams.HIGHEST


@name(then="wait")
def cudaDeviceSynchronize():
    return pools.waited(streams.everything())


@name(then="wait")
def cudaDeviceReset():
    return [engine.Op(world.reset, streams.everything())]


@name(gives=1)
def cudaDriverGetVersion():
    return DRIVER


@name(gives=1)
def cudaRuntimeGetVersion():
    return values.constants()["CUDART_VERSION"]


@name(gives=2)
def cudaMemGetInfo():
    return memory.TOTAL - memory.memory().taken(), memory.TOTAL


@name(then="code")
def cudaGetLastError():
    mine = thread()
    mine.last_error, code = 0, mine.last_error
    return code


@name(then="code")
def cudaPeekAtLastError():
    return thread().last_error


@name(gives=1)
def cudaGetErrorName(error: Code):
    codes = values.enum("cudaError_t")
    return codes(error).name.encode() if error in codes else b"unrecognized error code"


@name(gives=1)
def cudaGetErrorString(error: Code):
    known = error in values.enum("cudaError_t")
    return texts.TEXTS[error].encode() if known else b"unrecognized error code"
