# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 16 · Freed elsewhere
#
# A block may be allocated by one graph and freed by another. Then the order of the launches is part of the program: you are the one
# who keeps it. Goes with lesson 09; about 10 minutes.

# %%
from labkit import cudart, ok, launch, kernels, graph, check, hint, progress

# %%
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal

# %% [markdown]
# ## Part 1: producer and consumer
#
# `x` and `y` are buffers of one size. Capture two graphs on `stream`. The producer allocates a block of as many bytes as `x` has, and
# `add`, block = x + x; it frees nothing. The consumer has `axpy`, y += 1.0 block, then frees the block. Return both, the producer first;
# launch nothing.

# %%
def producer_and_consumer(stream, x, y):
    """Capture a graph that fills a block of its own and one that uses and frees it. Returns: two cudaGraph_t."""
    ### BEGIN SOLUTION
    n, grid = x.size, -(-x.size // 256)
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    block = ok(cudart.cudaMallocAsync(x.nbytes, stream))
    ok(launch(stream, kernels.add, grid, 256, block, x, x, n))
    producer = ok(cudart.cudaStreamEndCapture(stream))
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, kernels.axpy, grid, 256, y, block, 1.0, n))
    ok(cudart.cudaFreeAsync(block, stream))
    consumer = ok(cudart.cudaStreamEndCapture(stream))
    return producer, consumer
    ### END SOLUTION

# %%
check(producer_and_consumer)

# %%
# hint(producer_and_consumer)          # three of them, one at a time

# %% [markdown]
# ## Part 2: in which order?
#
# Several graphs, in a wrong order. Some allocate a block that a later one frees; some do both; one frees only what it allocated itself.
# `addresses` reads which blocks a graph allocates and which it frees: two sets.

# %%
def addresses(plan):
    nodes = [(graph.kind(node), node) for node in graph.nodes(plan)]
    allocated = [int(ok(cudart.cudaGraphMemAllocNodeGetParams(node)).dptr) for kind, node in nodes if kind == "MemAlloc"]
    freed = [int(ok(cudart.cudaGraphMemFreeNodeGetParams(node))) for kind, node in nodes if kind == "MemFree"]
    return set(allocated), set(freed)

# %% [markdown]
# Return the graphs in an order in which every launch is accepted: what a graph frees was allocated by one before it, or by itself. At
# the start no block is allocated. Often several orders are right; any of them will do. Launch nothing.

# %%
def launch_order(plans):
    """An order of launches that CUDA accepts. plans: a list of cudaGraph_t. Returns: a list of the same graphs, each once."""
    ### BEGIN SOLUTION
    left, held, order = list(plans), set(), []
    while left:
        for plan in left:
            allocated, freed = addresses(plan)
            if freed - allocated <= held:
                break
        held = (held | allocated) - freed
        left.remove(plan)
        order.append(plan)
    return order
    ### END SOLUTION

# %%
check(launch_order)

# %%
# hint(launch_order)

# %%
progress()
