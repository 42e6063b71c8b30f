# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 15 · Stop a leak
#
# A graph allocates a block and never frees it. It runs once, and later nobody gives the memory back. Cure the first, then clean
# up. Goes with lesson 14; about 10 minutes.

# %%
from labkit import cudart, ok, graph, check, hint, progress

# %%
AUTO_FREE = int(cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagAutoFreeOnLaunch)

# %% [markdown]
# ## Part 1: it runs once
#
# `plan` is a graph of three nodes in a row: it allocates a block at `address`, fills it, and adds it to a buffer. Return an executable
# of it that can be launched again and again; launch nothing yourself. The check launches it five times and frees nothing in between; what the block holds
# after a launch, nobody reads.

# %%
def relaunchable(plan, address):
    """Instantiate the graph so that every launch works. plan: cudaGraph_t, address: int. Returns: the cudaGraphExec_t."""
    ### BEGIN SOLUTION
    return ok(cudart.cudaGraphInstantiate(plan, AUTO_FREE))
    ### END SOLUTION

# %%
check(relaunchable)

# %%
# hint(relaunchable)          # three of them, one at a time

# %% [markdown]
# ## Part 2: nothing is left
#
# `executable` was made from such a `plan` with AutoFreeOnLaunch, and launched three times in `stream`; the last launch may still
# wait for its turn. Now all of it shall go: the block at `address` is free, executable and graph are destroyed, and CUDA counts as
# much graph memory *used* as before the first launch. The graph memory is that of device 0.

# %%
def clean_up(executable, plan, address, stream):
    """Free, destroy and give back all that this graph has taken. Returns nothing."""
    ### BEGIN SOLUTION
    ok(cudart.cudaFreeAsync(address, stream))
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(plan))
    ok(cudart.cudaDeviceGraphMemTrim(0))
    ### END SOLUTION

# %%
check(clean_up)

# %%
# hint(clean_up)

# %%
progress()
