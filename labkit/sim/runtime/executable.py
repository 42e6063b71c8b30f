"""Graph Management: executables, from instantiation to launch."""
from .. import execute, stream as streams, structs, values
from ..world import Refused
from ._names import Exec, Graph, Stream, Struct, c_ulonglong, name


def _made(graph, *args):
    return values.cudaGraphExec_t(execute.instantiate(graph, *args).handle)


@name(gives=1)
def cudaGraphInstantiate(graph: Graph, flags: c_ulonglong):
    return _made(graph, flags)


@name(gives=1)
def cudaGraphInstantiateWithFlags(graph: Graph, flags: c_ulonglong):
    return _made(graph, flags)


@name(gives=1)
def cudaGraphInstantiateWithParams(graph: Graph, instantiateParams: Struct(structs.cudaGraphInstantiateParams)):
    params = instantiateParams
    if params is None:
        raise Refused("InvalidValue")
    upload = streams.stream_of(int(params.uploadStream))
    try:
        made = _made(graph, params.flags, upload)
    except Refused:
        params.result_out = execute.why_not(graph)
        raise
    params.result_out = execute.OK
    return made


@name()
def cudaGraphUpload(graphExec: Exec, stream: Stream):
    execute.upload_to(graphExec, stream)


@name()
def cudaGraphLaunch(graphExec: Exec, stream: Stream):
    execute.launch(graphExec, stream)


@name()
def cudaGraphExecDestroy(graphExec: Exec):
    execute.destroy(graphExec)


@name(gives=1)
def cudaGraphExecGetFlags(graphExec: Exec):
    return graphExec.flags
