"""The parameters of a node of any kind: cudaGraphNodeParams, and what it holds for each kind.

C lays the kinds over each other; here each lies beside the others, and `type` says which one counts.
"""
from . import convert, values
from .structs import STRUCTS, Field, Struct, declare, handle_class

_CONTEXT = "13:ctx handle cudaExecutionContext_t"


class _Same(Field):
    """A field that lies where `func` lies, seen as a handle."""

    def __get__(self, made, owner=None):
        if made is None:
            return self
        self.check_line(made)
        return handle_class(self.arg)(made.func)

    def __set__(self, made, value):
        self.check_line(made)
        made.func = convert.handle(handle_class(self.arg))(value)


cudaPos = declare("cudaPos", "x size", "y size", "z size")
cudaExtent = declare("cudaExtent", "width size", "height size", "depth size")
cudaPitchedPtr = declare("cudaPitchedPtr", "ptr ptr", "pitch size", "xsize size", "ysize size")
cudaMemcpy3DParms = declare("cudaMemcpy3DParms", "srcArray handle cudaArray_t", "srcPos struct cudaPos", "srcPtr struct cudaPitchedPtr",
                            "dstArray handle cudaArray_t", "dstPos struct cudaPos", "dstPtr struct cudaPitchedPtr",
                            "extent struct cudaExtent", "kind enum cudaMemcpyKind")

cudaKernelNodeParamsV2 = declare("cudaKernelNodeParamsV2", "func ptr", _Same("13:kern handle cudaKernel_t"),
                                 _Same("13:cuFunc handle cudaFunction_t"), "gridDim struct dim3", "blockDim struct dim3", "sharedMemBytes u32",
                                 "kernelParams params", "extra u64", _CONTEXT, "13:functionType enum cudaKernelFunctionType")
cudaMemcpyNodeParams = declare("cudaMemcpyNodeParams", "flags i32", "12:reserved list 3", _CONTEXT, "copyParams struct cudaMemcpy3DParms")
cudaMemsetParamsV2 = declare("cudaMemsetParamsV2", "dst ptr", "pitch size", "value u32", "elementSize u32", "width size", "height size", _CONTEXT)
cudaHostNodeParamsV2 = declare("cudaHostNodeParamsV2", "fn handle cudaHostFn_t", "userData ptr", "13:syncMode u32", _CONTEXT)
cudaChildGraphNodeParams = declare("cudaChildGraphNodeParams", "graph handle cudaGraph_t", "ownership enum cudaGraphChildGraphNodeOwnership")
cudaEventWaitNodeParams = declare("cudaEventWaitNodeParams", "event handle cudaEvent_t")
cudaEventRecordNodeParams = declare("cudaEventRecordNodeParams", "event handle cudaEvent_t", _CONTEXT)
for _end in ("Signal", "Wait"):
    declare(f"cudaExternalSemaphore{_end}NodeParamsV2", "extSemArray list", "paramsArray list", "numExtSems u32", _CONTEXT)
cudaMemAllocNodeParamsV2 = declare("cudaMemAllocNodeParamsV2", "poolProps struct cudaMemPoolProps", "accessDescs list", "accessDescCount size",
                                   "bytesize size", "dptr ptr")
cudaMemFreeNodeParams = declare("cudaMemFreeNodeParams", "dptr ptr")
cudaConditionalNodeParams = declare("cudaConditionalNodeParams", "handle handle cudaGraphConditionalHandle",
                                    "type enum cudaGraphConditionalNodeType", "size u32", "phGraph_out list", _CONTEXT)
cudaGraphNodeParams = declare("cudaGraphNodeParams", "type enum cudaGraphNodeType", "12:reserved0 list 3", "12:reserved1 list 29",
                              "kernel struct cudaKernelNodeParamsV2", "memcpy struct cudaMemcpyNodeParams", "memset struct cudaMemsetParamsV2",
                              "host struct cudaHostNodeParamsV2", "graph struct cudaChildGraphNodeParams",
                              "eventWait struct cudaEventWaitNodeParams", "eventRecord struct cudaEventRecordNodeParams",
                              "extSemSignal struct cudaExternalSemaphoreSignalNodeParamsV2",
                              "extSemWait struct cudaExternalSemaphoreWaitNodeParamsV2", "alloc struct cudaMemAllocNodeParamsV2",
                              "free struct cudaMemFreeNodeParams", "conditional struct cudaConditionalNodeParams", "12:reserved2 u64")


def _zero(params):
    """No grid and no block: the zeros of memory that C cleared, where a dim3 of its own begins with ones."""
    for size in (params.gridDim, params.blockDim):
        size.x = size.y = size.z = 0


def _begin_kernel(self, _ptr=0):
    Struct.__init__(self)
    if values.line() == 13:
        _zero(self)


def _begin_any(self, _ptr=0):
    Struct.__init__(self)
    _zero(self.kernel)


cudaKernelNodeParamsV2.__init__, cudaGraphNodeParams.__init__ = _begin_kernel, _begin_any


def make_cudaPos(x, y, z):
    """A cudaPos: elements, or bytes in linear memory."""
    return _filled(cudaPos, x=x, y=y, z=z)


def make_cudaExtent(w, h, d):
    """A cudaExtent: in linear memory the width is in bytes."""
    return _filled(cudaExtent, width=w, height=h, depth=d)


def make_cudaPitchedPtr(d, p, xsz, ysz):
    """A cudaPitchedPtr: address, bytes from row to row, and the size of the whole."""
    return _filled(cudaPitchedPtr, ptr=d, pitch=p, xsize=xsz, ysize=ysz)


def _filled(cls, **fields):
    made = cls()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


STRUCTS.update({made.__name__: made for made in (make_cudaPos, make_cudaExtent, make_cudaPitchedPtr)})
