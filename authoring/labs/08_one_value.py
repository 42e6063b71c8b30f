# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 08 · One value
#
# A graph is ready and fast, and then one number of it is wrong. Change that number in the
# executable, and nothing else. Goes with lesson 05; about 8 minutes.

# %%
from labkit import cudart, ok, set_kernel, check, hint, progress

# %% [markdown]
# ## Part 1: a number
#
# `executable` was made from a graph with one kernel node: `axpy`, y += 2 x, over all `n` elements, launched with
# the arguments `y, x, a, n`. Let it multiply by `factor` from now on. The graph must stay as it is.

# %%
def set_factor(executable, node, factor):
    """Make the node's kernel do y += factor x in this executable. factor: float. Returns nothing."""
    ### BEGIN SOLUTION
    ok(set_kernel(executable, node, args={2: factor}))
    ### END SOLUTION

# %%
check(set_factor)

# %%
# hint(set_factor)          # three of them, one at a time

# %% [markdown]
# ## Part 2: an address
#
# The same executable. From the next launch on it shall add to `target`, another buffer of the same size.

# %%
def set_target(executable, node, target):
    """Make the node's kernel do target += 2 x in this executable. target: a DeviceArray. Returns nothing."""
    ### BEGIN SOLUTION
    ok(set_kernel(executable, node, args={0: target}))
    ### END SOLUTION

# %%
check(set_target)

# %%
# hint(set_target)

# %% [markdown]
# ## Part 3: a size
#
# Only the first `n` elements, with blocks of 256 threads, and no block that has nothing to do. `n` is at least 1. The kernel has
# one argument more here, `y, x, a, n, blocks`: it counts the blocks that ran.

# %%
def set_size(executable, node, n):
    """Make the node's kernel go over n elements. n: int, from 1 to the size of the buffers. Returns nothing."""
    ### BEGIN SOLUTION
    ok(set_kernel(executable, node, grid=-(-n // 256), args={3: n}))
    ### END SOLUTION

# %%
check(set_size)

# %%
# hint(set_size)

# %%
progress()
