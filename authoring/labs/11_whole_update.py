# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 11 · Whole update
#
# The work was captured again, with other values, sometimes in another shape. Keep the executable
# where CUDA can update it, make a new one where it cannot, and say why it could not. Goes with lesson 06;
# about 10 minutes.

# %%
from labkit import cudart, ok, exec_update, check, hint, progress

# %% [markdown]
# ## Part 1: keep it or replace it
#
# `executable` is in use. `new` is a graph that it shall do from now on. Try the update first: where it is accepted, return the
# same executable. Where it is refused, instantiate `new`, destroy the old executable, and return the new one. Leave the graph
# `new` as it is: whoever made it destroys it. Refusals here are about its shape only.

# %%
def refresh(executable, new):
    """Let the executable do what the graph `new` says, or make another one. Returns: the cudaGraphExec_t to launch from now on."""
    ### BEGIN SOLUTION
    code, why = exec_update(executable, new)
    if int(code) == 0:
        return executable
    fresh = ok(cudart.cudaGraphInstantiate(new, 0))
    ok(cudart.cudaGraphExecDestroy(executable))
    return fresh
    ### END SOLUTION

# %%
check(refresh)

# %%
# hint(refresh)          # three of them, one at a time

# %% [markdown]
# ## Part 2: why not?
#
# Before anything is changed: would an executable of the graph `plan` take over the graph `new`? Find out with an executable
# of your own, and leave none behind. Return None where the update is accepted. Where it is refused, return two words, such as
# `("NodeTypeChanged", "Memset")`: what `exec_update` calls the reason, and the kind of the node where CUDA stopped
# (`""` where it names none).

# %% [markdown]
# The second thing that `exec_update` returns has both, as `.result` and `.kind`; its `.position` is the node's number.

# %%
def why_not(plan, new):
    """Would an executable of `plan` be updated from `new`? Returns: None, or (the reason's word, the kind of the node or "")."""
    ### BEGIN SOLUTION
    executable = ok(cudart.cudaGraphInstantiate(plan, 0))
    code, why = exec_update(executable, new)
    ok(cudart.cudaGraphExecDestroy(executable))
    return None if int(code) == 0 else (why.result, why.kind)
    ### END SOLUTION

# %%
check(why_not)

# %%
# hint(why_not)

# %%
progress()
