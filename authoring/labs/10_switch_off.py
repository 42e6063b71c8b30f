# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 10 · Switch off
#
# One executable for several cases: leave nodes out instead of instantiating again. And where a node stays,
# but writes elsewhere: each kind of node has a setter of its own. Goes with lesson 05 (lesson 13 has more);
# about 6 minutes.

# %%
from labkit import cudart, ok, graph, set_kernel, check, hint, progress

# %% [markdown]
# ## Part 1: one of several
#
# `executable` was made from a graph that fills `y` with 1 and then has several kernels in a row, each of which adds
# something else to `y`. `branches` is the list of the nodes of these kernels. From the next launch on, only
# `branches[chosen]` shall run, whatever was chosen before; the fill always runs. Nothing else about the kernels changes.

# %%
def only_one(executable, branches, chosen):
    """Let only the node branches[chosen] of all branches run. chosen: its position, from 0. Returns nothing."""
    ### BEGIN SOLUTION
    for k, node in enumerate(branches):
        ok(cudart.cudaGraphNodeSetEnabled(executable, node, int(k == chosen)))
    ### END SOLUTION

# %%
check(only_one)

# %%
# hint(only_one)          # three of them, one at a time

# %% [markdown]
# ## Part 2: the setter of its kind
#
# `node` is a node of the executable's graph. From the next launch on it shall write into `target`, a buffer as large as the one it
# writes now, and do all else as before. It may be
#
# | kind | what it does now |
# |---|---|
# | `"Kernel"` | launches `fill` with `y, a, n` |
# | `"Memset"` | sets all bytes of its buffer to a value |
# | `"Memcpy"` | copies all of `source`, a DeviceArray, device to device |
#
# Return True then. For a node of another kind, change nothing and return False. The graph itself stays as it is.

# %%
TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice

# %%
def write_to(executable, node, target, source):
    """Let the node write into target, a DeviceArray, in this executable. Returns: True where the kind has a target, else False."""
    ### BEGIN SOLUTION
    kind = graph.kind(node)
    if kind == "Kernel":
        ok(set_kernel(executable, node, args={0: target}))
    elif kind == "Memset":
        params = ok(cudart.cudaGraphMemsetNodeGetParams(node))
        params.dst = target.ptr
        ok(cudart.cudaGraphExecMemsetNodeSetParams(executable, node, params))
    elif kind == "Memcpy":
        ok(cudart.cudaGraphExecMemcpyNodeSetParams1D(executable, node, target.ptr, source.ptr, source.nbytes, TO_DEVICE))
    return kind in ("Kernel", "Memset", "Memcpy")
    ### END SOLUTION

# %%
check(write_to)

# %%
# hint(write_to)

# %%
progress()
