"""Stream Management: capture. Two lines of the bindings, two forms: 13.x adds edge data."""
from .. import capture as captures, values
from ._names import Enum, Graph, Nodes, Stream, c_uint, name, size_t
from .graph import EdgeData, edge_data, looked_up, to_node

Mode = Enum("cudaStreamCaptureMode")


@name()
def cudaStreamBeginCapture(stream: Stream, mode: Mode):
    captures.begin(stream, mode)


@name()
def cudaStreamBeginCaptureToGraph(stream: Stream, graph: Graph, dependencies: Nodes, dependencyData: EdgeData, numDependencies: size_t, mode: Mode):
    captures.begin(stream, mode, graph, looked_up(dependencies))


@name(gives=1)
def cudaStreamEndCapture(stream: Stream):
    return values.cudaGraph_t(captures.end(stream).handle)


@name(gives=1)
def cudaStreamIsCapturing(stream: Stream):
    return values.enum("cudaStreamCaptureStatus")(captures.state(stream)[0])


def _info(stream, with_edge_data):
    status, capture = captures.state(stream)
    active = status == captures.ACTIVE
    nodes = [to_node(node) for node in stream.next_after] if active else []
    edges = (edge_data(len(nodes)),) if with_edge_data else ()
    return (values.enum("cudaStreamCaptureStatus")(status), capture.id if active else 0,
            values.cudaGraph_t(capture.graph.handle if active else 0), nodes, *edges, len(nodes))


@name(gives=5, lines=(12,))
def cudaStreamGetCaptureInfo(stream: Stream):
    return _info(stream, False)


@name(gives=6, lines=(12,))
def cudaStreamGetCaptureInfo_v3(stream: Stream):
    return _info(stream, True)


@name(gives=6, lines=(13,), called="cudaStreamGetCaptureInfo")
def _info_13(stream: Stream):
    return _info(stream, True)


def _update(stream, nodes, flags):
    captures.update_dependencies(stream, looked_up(nodes), flags)


@name(lines=(12,))
def cudaStreamUpdateCaptureDependencies(stream: Stream, dependencies: Nodes, numDependencies: size_t, flags: c_uint):
    _update(stream, dependencies, flags)


@name(lines=(12,))
def cudaStreamUpdateCaptureDependencies_v2(stream: Stream, dependencies: Nodes, dependencyData: EdgeData, numDependencies: size_t, flags: c_uint):
    _update(stream, dependencies, flags)


@name(lines=(13,), called="cudaStreamUpdateCaptureDependencies")
def _update_13(stream: Stream, dependencies: Nodes, dependencyData: EdgeData, numDependencies: size_t, flags: c_uint):
    _update(stream, dependencies, flags)


@name(gives=1)
def cudaThreadExchangeStreamCaptureMode(mode: Mode):
    return values.enum("cudaStreamCaptureMode")(captures.exchange_mode(mode))
