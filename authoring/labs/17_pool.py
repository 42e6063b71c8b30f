# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 17 · A pool of your own
#
# A pool of your own has a threshold and counters of its own. Make one, take from it, and cut it back. Goes with lesson 10; about
# 10 minutes.

# %%
from labkit import cudart, ok, cuuint64_t, launch, kernels, check, hint, progress

# %%
Attr = cudart.cudaMemPoolAttr
PINNED, DEVICE = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned, cudart.cudaMemLocationType.cudaMemLocationTypeDevice

# %% [markdown]
# ## Part 1: make a pool
#
# Make a new pool for memory of device 0 (the allocation type is called Pinned, the only one there is; it has nothing to do with memory of
# the host). Let it keep `threshold` bytes at a wait, and return it. The device goes on taking from the pool that was current before.
# `threshold` is an int.

# %%
def own_pool(threshold):
    """Make a pool on device 0 with this release threshold, in bytes. Returns: the cudaMemPool_t."""
    ### BEGIN SOLUTION
    props = cudart.cudaMemPoolProps()
    props.allocType = PINNED
    props.location.type, props.location.id = DEVICE, 0
    pool = ok(cudart.cudaMemPoolCreate(props))
    ok(cudart.cudaMemPoolSetAttribute(pool, Attr.cudaMemPoolAttrReleaseThreshold, cuuint64_t(threshold)))
    return pool
    ### END SOLUTION

# %%
check(own_pool)

# %%
# hint(own_pool)          # three of them, one at a time

# %% [markdown]
# ## Part 2: take from it
#
# No graph this time, plain work on `stream`: take a block of as many bytes as `y` has from `pool`; `fill` it with 3.0; `axpy`,
# y += 1.0 block; give the block back in stream order. The pool that is current for the device stays so
# all the time, and `pool` keeps its threshold.

# %%
def from_your_pool(pool, stream, y):
    """Do y += 3 by way of a block of the pool. pool: cudaMemPool_t, y: a DeviceArray of float32. Returns nothing."""
    ### BEGIN SOLUTION
    n, grid = y.size, -(-y.size // 256)
    block = ok(cudart.cudaMallocFromPoolAsync(y.nbytes, pool, stream))
    ok(launch(stream, kernels.fill, grid, 256, block, 3.0, n))
    ok(launch(stream, kernels.axpy, grid, 256, y, block, 1.0, n))
    ok(cudart.cudaFreeAsync(block, stream))
    ### END SOLUTION

# %%
check(from_your_pool)

# %%
# hint(from_your_pool)

# %% [markdown]
# ## Part 3: give memory back
#
# `pool` has 160 MiB reserved and never lets go by itself. One block of 32 MiB is in use and stays. The others were freed on `stream` a
# moment ago, and nobody has waited. Bring *reserved* down to `keep` bytes, a multiple of 32 MiB, and return what the pool then counts. The
# threshold stays.

# %%
def trim_back(pool, stream, keep):
    """Have the pool reserve keep bytes and no more. Returns: the bytes that are reserved now, as CUDA counts them."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaMemPoolTrimTo(pool, keep))
    return int(ok(cudart.cudaMemPoolGetAttribute(pool, Attr.cudaMemPoolAttrReservedMemCurrent)))
    ### END SOLUTION

# %%
check(trim_back)

# %%
# hint(trim_back)

# %%
progress()
