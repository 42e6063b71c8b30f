"""Graph Management: graphs, their nodes and edges as a whole. nodes.py has the kinds of nodes."""
from labkit.errors import NotSimulated
from .. import convert, graph as graphs, values
from ..structs import cudaGraphEdgeData
from ._names import Arg, Graph, Node, Nodes, Text, c_uint, name, size_t


def _edge_data(values_):
    found = convert.sequence(cudaGraphEdgeData)(values_)
    if any(one.type or one.from_port or one.to_port for one in found):
        raise NotSimulated("The program gives an edge a type or a port.", "Edges of that kind exist (programmatic dependent launch); the simulator has plain ones only.",
                           "Run this on a GPU, or pass None for the edge data.")
    return found


EdgeData = Arg(_edge_data)


def to_node(node):
    return values.cudaGraphNode_t(node.handle if node is not None else 0)


def looked_up(handles):
    """The nodes of a list of handles."""
    return [graphs.node_of(int(handle)) for handle in handles]


def edge_data(count):
    return [cudaGraphEdgeData() for _ in range(count)]


def counted(room, *columns):
    """CUDA's two-step lists: without room only the length; with it, that many entries, the ones
    past the end null, and the number of true ones."""
    total = len(columns[0])
    if room == 0:
        return (*[[] for _ in columns], total)
    filled = [[to_node(node) for node in column[:room]] + [to_node(None)] * (room - total) for column in columns]
    return (*filled, min(room, total))


def with_data(found, room):
    """The same with edge data before the number."""
    return (*found[:-1], edge_data(room), found[-1])


@name(gives=1)
def cudaGraphCreate(flags: c_uint):
    return values.cudaGraph_t(graphs.create(flags).handle)


@name()
def cudaGraphDestroy(graph: Graph):
    graphs.destroy(graph)


@name(gives=1)
def cudaGraphClone(originalGraph: Graph):
    return values.cudaGraph_t(graphs.clone(originalGraph).handle)


@name(gives=2)
def cudaGraphGetNodes(graph: Graph, numNodes: size_t = 0):
    return counted(numNodes, list(graph.nodes))


@name(gives=2)
def cudaGraphGetRootNodes(graph: Graph, pNumRootNodes: size_t = 0):
    return counted(pNumRootNodes, graphs.roots(graph))


def _edges(graph, room):
    pairs = graphs.edges(graph)
    return counted(room, [a for a, b in pairs], [b for a, b in pairs])


@name(gives=3, lines=(12,))
def cudaGraphGetEdges(graph: Graph, numEdges: size_t = 0):
    return _edges(graph, numEdges)


def _edges_with_data(graph: Graph, numEdges: size_t = 0):
    return with_data(_edges(graph, numEdges), numEdges)


name(gives=4, lines=(12,), called="cudaGraphGetEdges_v2")(_edges_with_data)
name(gives=4, lines=(13,), called="cudaGraphGetEdges")(_edges_with_data)


@name(gives=1)
def cudaGraphNodeGetType(node: Node):
    kinds = values.enum("cudaGraphNodeType")
    return getattr(kinds, "cudaGraphNodeType" + node.work.kind)


@name(gives=2, lines=(12,))
def cudaGraphNodeGetDependencies(node: Node, pNumDependencies: size_t = 0):
    return counted(pNumDependencies, list(node.before))


def _dependencies_with_data(node: Node, pNumDependencies: size_t = 0):
    return with_data(counted(pNumDependencies, list(node.before)), pNumDependencies)


name(gives=3, lines=(12,), called="cudaGraphNodeGetDependencies_v2")(_dependencies_with_data)
name(gives=3, lines=(13,), called="cudaGraphNodeGetDependencies")(_dependencies_with_data)


@name(gives=2, lines=(12,))
def cudaGraphNodeGetDependentNodes(node: Node, pNumDependentNodes: size_t = 0):
    return counted(pNumDependentNodes, graphs.dependents(node))


def _dependents_with_data(node: Node, pNumDependentNodes: size_t = 0):
    return with_data(counted(pNumDependentNodes, graphs.dependents(node)), pNumDependentNodes)


name(gives=3, lines=(12,), called="cudaGraphNodeGetDependentNodes_v2")(_dependents_with_data)
name(gives=3, lines=(13,), called="cudaGraphNodeGetDependentNodes")(_dependents_with_data)


def _pairs(from_, to):
    return list(zip(looked_up(from_), looked_up(to)))


@name(lines=(12,))
def cudaGraphAddDependencies(graph: Graph, from_: Nodes, to: Nodes, numDependencies: size_t):
    graphs.add_edges(graph, _pairs(from_, to))


def _add_with_data(graph: Graph, from_: Nodes, to: Nodes, edgeData: EdgeData, numDependencies: size_t):
    graphs.add_edges(graph, _pairs(from_, to))


name(lines=(12,), called="cudaGraphAddDependencies_v2")(_add_with_data)
name(lines=(13,), called="cudaGraphAddDependencies")(_add_with_data)


@name(lines=(12,))
def cudaGraphRemoveDependencies(graph: Graph, from_: Nodes, to: Nodes, numDependencies: size_t):
    graphs.remove_edges(graph, _pairs(from_, to))


def _remove_with_data(graph: Graph, from_: Nodes, to: Nodes, edgeData: EdgeData, numDependencies: size_t):
    graphs.remove_edges(graph, _pairs(from_, to))


name(lines=(12,), called="cudaGraphRemoveDependencies_v2")(_remove_with_data)
name(lines=(13,), called="cudaGraphRemoveDependencies")(_remove_with_data)


@name()
def cudaGraphDestroyNode(node: Node):
    graphs.remove(node)


@name()
def cudaGraphDebugDotPrint(graph: Graph, path: Text, flags: c_uint):
    graphs.write_dot(graph, path)
