"""Why cudaGraphExecUpdate refused: what exec_update() gives back beside the code.

    err, why = exec_update(executable, graph)
    why                                   # NodeTypeChanged at node 1 (Memset)
    why.result, why.position, why.kind    # "NodeTypeChanged", 1, "Memset"

Stands for: CUDA Runtime API, cudaGraphExecUpdateResult, cudaGraphExecUpdateResultInfo.
"""
from dataclasses import dataclass

# result: (in short, what it means, what to try). Success and Error say no more than the code itself.
REASONS = {
    "Success": ("the executable now does what the graph says", "", ""),
    "Error": ("the code says why", "", ""),
    "TopologyChanged": ("another number of nodes or edges",
                        "The graph's nodes or edges do not pair up with the executable's.",
                        "Keep the same nodes and edges, made in the same order, or instantiate the graph anew."),
    "NodeTypeChanged": ("another kind of node",
                        "In this place the executable has a node of another kind.",
                        "Keep the kinds of the nodes and their order, or instantiate the graph anew."),
    "FunctionChanged": ("another kernel",
                        "The node has another kernel, and a driver older than CUDA 11.2 cannot follow.",
                        "Update the driver, or instantiate the graph anew."),
    "ParametersChanged": ("parameters that cannot change",
                          "The node's parameters changed in a way that an update cannot follow, such as the direction of a copy.",
                          "Keep the direction of copies and the memory they belong to, or instantiate the graph anew."),
    "NotSupported": ("a node that cannot be updated",
                     "Something about this node cannot be updated at all.",
                     "Instantiate the graph anew."),
    "UnsupportedFunctionChange": ("a kernel that cannot take this place",
                                  "The new kernel belongs to another context, or launches work of its own where the old one did not.",
                                  "Use a kernel of the same kind, or instantiate the graph anew."),
    "AttributesChanged": ("attributes that cannot change",
                          "The node's launch attributes changed in a way that an update cannot follow.",
                          "Keep the attributes, or instantiate the graph anew."),
}


@dataclass(frozen=True, repr=False)
class UpdateResult:
    """Why an update was refused. result: the end of a cudaGraphExecUpdateResult name.

    node: the node of the new graph at fault, or None; position: its place in graph.nodes(graph), None inside a child graph;
    kind: its kind, or "". other: where the edge comes from that does not match, or None; other_position: its place.
    """
    result: str
    node: object = None
    other: object = None
    position: int | None = None
    kind: str = ""
    other_position: int | None = None

    def __repr__(self):
        if self.node is None:
            return self.result if self.result == "Success" else f"{self.result}: {REASONS.get(self.result, ('no reason known',))[0]}"
        where = f"a {self.kind} node in a child graph" if self.position is None else f"node {self.position} ({self.kind})"
        return f"{self.result} at {where}" + (f", which waits for node {self.other_position}" if self.other_position is not None else "")

    @property
    def explained(self):
        """(what it means, what to try) for ok(), or None where the code alone says it."""
        _, means, try_ = REASONS.get(self.result, ("", "", ""))
        return (f"{self}. {means}", try_) if means else None
