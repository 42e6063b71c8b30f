# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 23 · Fresh numbers
#
# A captured number is the same in every replay. Yet random numbers, a step count and a learning rate must change. Two cures: the number lies on the
# device and the graph moves it on; or each replay fetches it from the host. Goes with lesson 16; about 12 minutes.

# %%
from labkit import cudart, ok, launch, check, hint, progress

# %%
from labkit.cases.parts import advance, noise_at
from labkit.labs.kernels import axpy_at
GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
UP = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice

# %% [markdown]
# ## Part 1: a step that moves on
#
# `y` is a buffer of floats, `step` one int32 on the device, in a DeviceArray. Two kernels:
#
# | kernel | arguments | threads | does |
# |---|---|---|---|
# | `noise_at` | y, step, n | n | fills y with n random numbers, which the int in `step` decides |
# | `advance` | step, by | 1 | adds `by` to the int in `step` |

# %% [markdown]
# Capture both on `stream`, so that each replay has new numbers: it fills the whole of `y` for the step that stands in `step` when it
# runs, and leaves the next step there, one higher. The host writes nothing in between; whoever writes another step into `step` goes on from
# there. Nothing runs yet in your function.

# %%
def step_counter(stream, y, step):
    """Capture numbers for the step in `step`, which then moves on by 1. Returns: the cudaGraph_t."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(launch(stream, noise_at, -(-y.size // 256), 256, y, step, y.size))
    ok(launch(stream, advance, 1, 1, step, 1))
    return ok(cudart.cudaStreamEndCapture(stream))
    ### END SOLUTION

# %%
check(step_counter)

# %%
# hint(step_counter)          # three of them, one at a time

# %% [markdown]
# ## Part 2: a number of the host's
#
# `cell` is a NumPy array of one float32, in pinned host memory; `rate` is one float32 on the device. Capture two nodes, in a row: a copy of
# `cell` to `rate` (`cudaMemcpyAsync` from `cell.ctypes.data`), then `axpy_at` with the arguments y, x, rate, n: y += rate[0] · x.
# `y` and `x` have one size.

# %% [markdown]
# Return the graph and a function `set_number(number)` that writes into `cell`. Each launch on `stream` takes the number that was set last *before it*,
# even when it runs later: a launch before `set_number(3)` must not see the 3. `set_number` launches nothing.
#
# A captured copy reads pinned memory when it runs, not when it is launched. What has to be over before `set_number` may write?

# %%
def host_number(stream, y, x, rate, cell):
    """Capture y += number * x, with the number in `cell`. Returns: the cudaGraph_t and set_number, a function, in this order."""
    ### BEGIN SOLUTION
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    ok(cudart.cudaMemcpyAsync(rate.ptr, cell.ctypes.data, rate.nbytes, UP, stream))
    ok(launch(stream, axpy_at, -(-y.size // 256), 256, y, x, rate, y.size))
    graph = ok(cudart.cudaStreamEndCapture(stream))

    def set_number(number):
        ok(cudart.cudaStreamSynchronize(stream))
        cell[0] = number
    return graph, set_number
    ### END SOLUTION

# %%
check(host_number)

# %%
# hint(host_number)

# %% [markdown]
# The wait costs: the host may not run ahead. Who cannot afford it gives each replay in flight a cell of its own.

# %%
progress()
