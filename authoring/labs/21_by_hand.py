# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 21 · By hand
#
# A graph needs no capture: add its nodes yourself. And once you can read and write graphs, say when two of them are the same. Goes
# with lesson 13, and the edges of lesson 04; about 15 minutes.

# %%
from labkit import cudart, ok, kernels, kernel_params, launched, graph, check, hint, progress

# %% [markdown]
# ## Part 1: four nodes
#
# Make a graph without any capture: `fill` x with 1.0; then `axpy`, x += 1.0 x, and side by side with it `scale`, y *= 3.0; then `add`,
# z = x + y, which waits for both. `x`, `y`, `z` are buffers of one size. `kernel_params` takes what `launch` takes, less the stream.

# %%
def diamond_by_hand(x, y, z):
    """Make the diamond node by node. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    n, grid = x.size, -(-x.size // 256)
    plan, add = ok(cudart.cudaGraphCreate(0)), cudart.cudaGraphAddKernelNode
    first = ok(add(plan, [], 0, kernel_params(kernels.fill, grid, 256, x, 1.0, n)))
    left = ok(add(plan, [first], 1, kernel_params(kernels.axpy, grid, 256, x, x, 1.0, n)))
    right = ok(add(plan, [first], 1, kernel_params(kernels.scale, grid, 256, y, 3.0, n)))
    ok(add(plan, [left, right], 2, kernel_params(kernels.add, grid, 256, z, x, y, n)))
    return plan
    ### END SOLUTION

# %%
check(diamond_by_hand)

# %%
# hint(diamond_by_hand)          # three of them, one at a time

# %% [markdown]
# ## Part 2: who must wait for whom?
#
# Node c waits for a if there is an edge from a to c, and also if the way leads through others: a to b, b to c.
# `graph.edges(plan)` gives the edges as pairs of positions. Return the set of *all* pairs (i, j) where node j must wait for node i.

# %%
def must_wait(plan):
    """All pairs of positions in graph.nodes(plan), the earlier node first. Returns: a set of tuples of two ints."""
    ### BEGIN SOLUTION
    pairs = set(graph.edges(plan))
    while True:
        more = pairs | {(a, d) for a, b in pairs for c, d in pairs if b == c}
        if more == pairs:
            return pairs
        pairs = more
    ### END SOLUTION

# %%
check(must_wait)

# %%
# hint(must_wait)

# %% [markdown]
# ## Part 3: are they the same?
#
# Here two graphs are *the same* if
#
# - they launch the same kernels, each with the same grid, block and arguments;
# - a launch must wait for another one in one graph exactly where it must in the other.
#
# The order in which nodes were made does not count, nor an edge that adds nothing to `must_wait`.

# %% [markdown]
# All nodes are kernel nodes, and no two nodes *of one graph* are launched alike. `launched(node)` has `.kernel`, `.grid`, `.block` and
# `.args`. Your `must_wait` may help. Change neither graph.

# %%
def same(one, other):
    """Are these two graphs the same, in the sense above? one, other: cudaGraph_t. Returns: True or False."""
    ### BEGIN SOLUTION
    def read(plan):
        found = [launched(node) for node in graph.nodes(plan)]
        names = [(f.kernel, f.grid, f.block, f.args) for f in found]
        return set(names), {(names[i], names[j]) for i, j in must_wait(plan)}
    return read(one) == read(other)
    ### END SOLUTION

# %%
check(same)

# %%
# hint(same)

# %%
progress()
