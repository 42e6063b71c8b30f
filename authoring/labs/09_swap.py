# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 09 · Swap
#
# A simulation steps: the new state comes from the old one, and the next step reads what this one
# wrote. Two buffers change places. A graph holds addresses, so who swaps them? Three ways. Goes with
# lesson 05; about 12 minutes.

# %%
from labkit import cudart, ok, launch, kernels, set_kernel, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## The step
#
# One step is one kernel: `add`, with the arguments `new, old, x, n`, does `new = old + x`. The state starts in buffer `a`.
# The first step writes `b` from `a`, the second writes `a` from `b`, the third `b` again, and so on. No buffer is copied.
#
# | | `a` | `b` |
# |---|---|---|
# | at first | state 0 | anything |
# | after one step | state 0 | state 1 |
# | after two | state 2 | state 1 |

# %% [markdown]
# ## Part 1: one executable, updated
#
# `executable` was made from a graph whose kernel node `node` is the first step, `b = a + x`. (It has a second node, which counts the
# launches: leave it alone.) Launch the executable `steps` times on `stream`, `steps` at least 1, and let it swap its buffers
# between the launches. Return the buffer with the last state.

# %%
def swap_by_update(stream, executable, node, a, b, steps):
    """Launch `steps` steps that swap a and b. Returns: the DeviceArray, a or b, that the last step wrote."""
    ### BEGIN SOLUTION
    old, new = a, b
    for _ in range(steps):
        ok(set_kernel(executable, node, args={0: new, 1: old}))
        ok(cudart.cudaGraphLaunch(executable, stream))
        old, new = new, old
    return old
    ### END SOLUTION

# %%
check(swap_by_update)

# %%
# hint(swap_by_update)          # three of them, one at a time

# %% [markdown]
# ## Part 2: two executables
#
# Nothing needs to change while the loop runs, if both steps are ready. Capture each on `stream` by itself and instantiate
# it: `there` does `b = a + x`, `back` does `a = b + x`. Return both, in this order. The check launches them in turn. `a`, `b` and `x`
# have one size.

# %%
def swap_by_two(stream, a, b, x):
    """Make an executable for each direction. Returns: (there, back), two cudaGraphExec_t."""
    ### BEGIN SOLUTION
    made = []
    for new, old in ((b, a), (a, b)):
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        ok(launch(stream, kernels.add, -(-a.size // 256), 256, new, old, x, a.size))
        graph = ok(cudart.cudaStreamEndCapture(stream))
        made.append(ok(cudart.cudaGraphInstantiate(graph, 0)))
        ok(cudart.cudaGraphDestroy(graph))
    return tuple(made)
    ### END SOLUTION

# %%
check(swap_by_two)

# %%
# hint(swap_by_two)

# %% [markdown]
# ## Part 3: one graph
#
# Capture several steps in a row: `pairs` times there and back, so 2 × `pairs` nodes of `add`, one after the other. One launch
# then makes that many steps, and the state is in `a` again. `pairs` is at least 1. Return the graph.

# %%
def swap_in_one_graph(stream, a, b, x, pairs):
    """Capture 2 * pairs steps that swap a and b. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    n, grid = a.size, -(-a.size // 256)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    for _ in range(pairs):
        ok(launch(stream, kernels.add, grid, 256, b, a, x, n))
        ok(launch(stream, kernels.add, grid, 256, a, b, x, n))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(swap_in_one_graph)

# %%
# hint(swap_in_one_graph)

# %% [markdown]
# The update pays before each launch. Two executables pay for memory. One graph pays nothing at a launch, and makes an even
# number of steps only. Which of the three would you take for a loop of ten thousand steps?

# %%
progress()
