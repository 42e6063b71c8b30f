"""What each name of the Runtime API is to a capture, as data.

    free      harmless: captures do not mind
    unsafe    potentially unsafe: refused (900) where the mode of a capture and of the thread say so
    always    waits for the device: refused (900) beside any capture
    legacy    works in the legacy stream: refused (906) beside a capture on a blocking stream
    work      belongs to its stream: captured there; in the legacy stream like `legacy`
    pool      queues an allocation or a free: captured in a capturing stream, else `legacy` or `unsafe`
    decides   its own rule decides: no bytes to set are no work in the legacy stream
    refused   what no capture can hold or answer: refused (900) in a capturing stream, else like `work`
    waits     waits for, or queries, its stream: refused (900) for a capturing one, else `unsafe`
    asks      reads the state of a stream; the legacy stream has none beside a blocking capture (906)
    event     waits for, or queries, an event: refused (907) for a captured one, else `unsafe`
"""

_BROKEN = """
    StreamSynchronize DeviceSynchronize StreamQuery Malloc MallocAsync Memcpy MemsetAsync StreamIsCapturing StreamBeginCapture StreamEndCapture
    GraphInstantiate GraphLaunch GraphUpload EventRecord EventQuery EventCreate EventDestroy StreamCreate StreamCreateWithFlags StreamDestroy
    Free MemGetInfo MemcpyAsync Memset FreeAsync MallocHost LaunchHostFunc StreamWaitEvent StreamGetCaptureInfo StreamGetFlags
    EventCreateWithFlags EventSynchronize GraphInstantiateWithFlags
    GraphAddKernelNode GraphAddMemsetNode GraphExecKernelNodeSetParams"""
_UNBROKEN = """
    GraphCreate GraphAddEmptyNode GraphGetNodes GraphExecUpdate GraphExecDestroy GraphDestroy GetDevice GetDeviceCount RuntimeGetVersion
    SetDevice ThreadExchangeStreamCaptureMode DeviceGraphMemTrim GetLastError PeekAtLastError GetErrorName GetErrorString
    GraphClone GraphNodeGetType GetDeviceProperties DriverGetVersion"""
# Once a kernel has touched what is nobody's: calls that answer with its code, and calls that answer as before. Others were not asked.
BROKEN, UNBROKEN = ({"cuda" + name for name in names.split()} for names in (_BROKEN, _UNBROKEN))

_KINDS = {
    "free": """
        GetDeviceCount SetDevice GetDevice GetDeviceProperties DeviceGetAttribute DeviceGetLimit DeviceGetStreamPriorityRange
        DeviceReset DriverGetVersion RuntimeGetVersion MemGetInfo GetLastError PeekAtLastError GetErrorName GetErrorString
        DeviceGetDefaultMemPool DeviceGetMemPool DeviceGetGraphMemAttribute DeviceSetGraphMemAttribute DeviceGraphMemTrim
        StreamCreate StreamCreateWithFlags StreamCreateWithPriority StreamDestroy ThreadExchangeStreamCaptureMode
        EventCreate EventCreateWithFlags EventDestroy EventElapsedTime EventElapsedTime_v2
        GraphCreate GraphDestroy GraphClone GraphGetNodes GraphGetRootNodes GraphGetEdges GraphGetEdges_v2
        GraphNodeGetType GraphNodeGetDependencies GraphNodeGetDependencies_v2 GraphNodeGetDependentNodes
        GraphNodeGetDependentNodes_v2 GraphNodeFindInClone GraphNodeSetParams GraphAddKernelNode GraphAddMemsetNode GraphAddHostNode
        GraphAddEmptyNode GraphAddChildGraphNode GraphAddEventRecordNode GraphAddEventWaitNode GraphAddMemAllocNode
        GraphAddMemFreeNode GraphAddMemcpyNode1D GraphAddNode GraphAddNode_v2 GraphAddDependencies GraphAddDependencies_v2
        GraphRemoveDependencies GraphRemoveDependencies_v2 GraphDestroyNode GraphKernelNodeGetParams GraphKernelNodeSetParams
        GraphMemsetNodeGetParams GraphMemsetNodeSetParams GraphHostNodeGetParams GraphHostNodeSetParams
        GraphMemAllocNodeGetParams GraphMemFreeNodeGetParams GraphMemcpyNodeSetParams1D
        GraphEventRecordNodeGetEvent GraphEventRecordNodeSetEvent GraphEventWaitNodeGetEvent GraphEventWaitNodeSetEvent
        GraphChildGraphNodeGetGraph GraphDebugDotPrint UserObjectCreate UserObjectRetain UserObjectRelease
        GraphRetainUserObject GraphReleaseUserObject GraphConditionalHandleCreate GraphExecGetFlags
        GraphExecUpdate GraphExecKernelNodeSetParams GraphExecMemsetNodeSetParams GraphExecHostNodeSetParams
        GraphExecChildGraphNodeSetParams GraphExecMemcpyNodeSetParams1D GraphExecNodeSetParams
        GraphExecEventRecordNodeSetEvent GraphExecEventWaitNodeSetEvent GraphNodeSetEnabled GraphNodeGetEnabled""",
    "unsafe": """
        MemPoolCreate MemPoolDestroy MemPoolSetAttribute MemPoolGetAttribute DeviceSetMemPool
        Malloc Free MallocHost HostAlloc FreeHost MallocManaged MemPoolTrimTo DeviceSetLimit
        GraphInstantiate GraphInstantiateWithFlags GraphInstantiateWithParams GraphExecDestroy""",
    "always": "DeviceSynchronize",
    "legacy": "Memcpy",
    "work": """
        StreamBeginCapture StreamBeginCaptureToGraph StreamEndCapture StreamUpdateCaptureDependencies
        StreamUpdateCaptureDependencies_v2 StreamGetPriority
        MemcpyAsync MemsetAsync StreamWaitEvent EventRecord EventRecordWithFlags
        LaunchHostFunc""",
    "pool": "MallocAsync FreeAsync MallocFromPoolAsync",
    "decides": "Memset",
    "refused": "StreamGetFlags GraphLaunch GraphUpload",
    "waits": "StreamSynchronize StreamQuery",
    "asks": "StreamIsCapturing StreamGetCaptureInfo StreamGetCaptureInfo_v3",
    "event": "EventQuery EventSynchronize",
}
GUARDS = {"cuda" + name: kind for kind, names in _KINDS.items() for name in names.split()}
