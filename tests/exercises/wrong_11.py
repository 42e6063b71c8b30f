"""Wrong answers to exercise 11, and what check() says of each."""
import numpy as np

from labkit import cudart, exec_update, graph, ok

EXPECT = {
    "refresh__always_anew": "the new graph has",
    "refresh__always_anew_and_destroys": "CUDA takes it over in an update",
    "refresh__never_anew": "an executable made from the new graph comes back",
    "refresh__raises": "cudaErrorGraphExecUpdateFailure",
    "refresh__keeps_the_old_one_too": "the old one is destroyed",
    "refresh__destroys_too_early": "destroyed",
    "refresh__returns_the_graph": "an executable back",
    "refresh__returns_all": "an executable back",
    "refresh__does_nothing": "With",
    "refresh__destroys_the_new_graph": "left as it is",
    "refresh__makes_one_for_nothing": "1 executable not destroyed",
    "refresh__destroyed": "has destroyed",
    "refresh__looks_at_the_count": "CUDA",
    "why_not__says_yes_or_no": "the new graph has",
    "why_not__word_only": "the new graph has",
    "why_not__always_a_reason": "None",
    "why_not__leaves_its_executable": "1 executable not destroyed",
    "why_not__leaves_it_when_refused": "1 executable not destroyed",
    "why_not__leaves_one_of_the_new": "1 executable not destroyed",
    "why_not__destroys_the_new_graph": "both graphs are left alone",
    "why_not__an_array": "found:    array(",
    "why_not__bindings_only": "the new graph has",
    "why_not__guesses_from_the_kinds": "the new graph has",
    "why_not__kind_in_the_plan": "the new graph has",
}
RIGHT = ("refresh__other_way", "refresh__makes_it_first", "why_not__other_way", "why_not__an_executable_of_each")


def _anew(executable, new):
    fresh = ok(cudart.cudaGraphInstantiate(new, 0))
    ok(cudart.cudaGraphExecDestroy(executable))
    return fresh


def refresh__always_anew(executable, new):
    return ok(cudart.cudaGraphInstantiate(new, 0))


def refresh__always_anew_and_destroys(executable, new):
    return _anew(executable, new)


def refresh__never_anew(executable, new):
    exec_update(executable, new)
    return executable


def refresh__raises(executable, new):
    ok(exec_update(executable, new))
    return executable


def refresh__keeps_the_old_one_too(executable, new):
    code, _ = exec_update(executable, new)
    return ok(cudart.cudaGraphInstantiate(new, 0)) if int(code) else executable


def refresh__destroys_too_early(executable, new):
    fresh = _anew(executable, new)
    code, _ = exec_update(executable, new)
    return fresh if int(code) else executable


def refresh__returns_the_graph(executable, new):
    code, _ = exec_update(executable, new)
    return new


def refresh__returns_all(executable, new):
    code, why = exec_update(executable, new)
    return (executable if int(code) == 0 else _anew(executable, new)), why


def refresh__does_nothing(executable, new):
    return executable


def refresh__destroys_the_new_graph(executable, new):
    code, _ = exec_update(executable, new)
    back = _anew(executable, new) if int(code) else executable
    ok(cudart.cudaGraphDestroy(new))
    return back


def refresh__looks_at_the_count(executable, new):
    """As many nodes as before: updated. It does not look at what CUDA says."""
    if len(graph.nodes(new)) == 3:
        exec_update(executable, new)
        return executable
    return _anew(executable, new)


def refresh__other_way(executable, new):
    """The bindings' own call, and any code but 0 taken as a refusal."""
    if cudart.cudaGraphExecUpdate(executable, new)[0] == cudart.cudaError_t.cudaSuccess:
        return executable
    cudart.cudaGetLastError()
    ok(cudart.cudaGraphExecDestroy(executable))
    return ok(cudart.cudaGraphInstantiateWithFlags(new, 0))


def refresh__makes_it_first(executable, new):
    fresh = ok(cudart.cudaGraphInstantiate(new, 0))
    gone = executable if int(exec_update(executable, new)[0]) else fresh
    ok(cudart.cudaGraphExecDestroy(gone))
    return fresh if gone is executable else executable


def _tried(plan, new, destroys=lambda code: True):
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    code, why = exec_update(executable, new)
    if destroys(int(code)):
        ok(cudart.cudaGraphExecDestroy(executable))
    return int(code), why


def why_not__says_yes_or_no(plan, new):
    return _tried(plan, new)[0] == 0


def why_not__word_only(plan, new):
    code, why = _tried(plan, new)
    return why.result if code else None


def why_not__always_a_reason(plan, new):
    code, why = _tried(plan, new)
    return why.result, why.kind


def why_not__leaves_its_executable(plan, new):
    code, why = _tried(plan, new, lambda code: False)
    return (why.result, why.kind) if code else None


def why_not__leaves_it_when_refused(plan, new):
    code, why = _tried(plan, new, lambda code: code == 0)
    return (why.result, why.kind) if code else None


def why_not__bindings_only(plan, new):
    """The bindings drop the reason."""
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    code, info = cudart.cudaGraphExecUpdate(executable, new)
    ok(cudart.cudaGraphExecDestroy(executable))
    return (str(info), "") if int(code) else None


def why_not__guesses_from_the_kinds(plan, new):
    """Without asking CUDA: the first node, from the front, whose kind differs."""
    old, later = graph.kinds(plan), graph.kinds(new)
    if len(old) != len(later):
        return "TopologyChanged", ""
    return next((("NodeTypeChanged", b) for a, b in zip(old, later) if a != b), None)


def why_not__kind_in_the_plan(plan, new):
    """The kind that stands in the old graph in that place."""
    code, why = _tried(plan, new)
    if code == 0:
        return None
    return why.result, graph.kinds(plan)[why.position] if why.position is not None else ""


def why_not__other_way(plan, new):
    """With a list, on a clone of the plan, and the executable destroyed whatever happens."""
    clone = ok(cudart.cudaGraphClone(plan))
    executable = ok(cudart.cudaGraphInstantiate(clone, 0))
    try:
        code, why = exec_update(executable, new)
        return [why.result, why.kind] if why.result != "Success" else None
    finally:
        ok(cudart.cudaGraphExecDestroy(executable))
        ok(cudart.cudaGraphDestroy(clone))


def why_not__an_executable_of_each(plan, new):
    one, other = (ok(cudart.cudaGraphInstantiate(each, 0)) for each in (plan, new))
    code, why = exec_update(one, new)
    for made in (one, other):
        ok(cudart.cudaGraphExecDestroy(made))
    if int(code) == 0:
        return None
    return why.result, why.kind


def refresh__makes_one_for_nothing(executable, new):
    fresh = ok(cudart.cudaGraphInstantiate(new, 0))
    if int(exec_update(executable, new)[0]) == 0:
        return executable
    ok(cudart.cudaGraphExecDestroy(executable))
    return fresh


def refresh__destroyed(executable, new):
    fresh = _anew(executable, new)
    ok(cudart.cudaGraphExecDestroy(fresh))
    return fresh


def why_not__leaves_one_of_the_new(plan, new):
    ok(cudart.cudaGraphInstantiate(new, 0))
    return why_not__other_way(plan, new)


def why_not__destroys_the_new_graph(plan, new):
    try:
        return why_not__other_way(plan, new)
    finally:
        ok(cudart.cudaGraphDestroy(new))


def why_not__an_array(plan, new):
    return np.array([1, 2])
