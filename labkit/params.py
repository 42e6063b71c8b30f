"""Prepared parameters of a kernel node: made once, set as often as you like.

    p = kernel_params(axpy, 4, 256, y, x, 2.0, 1000)
    cudart.cudaGraphExecKernelNodeSetParams(executable, node, p)
    cudart.cudaGraphExecKernelNodeSetParams(executable, node, p.but(grid=2, args={3: 500}))

CUDA reads the arguments through addresses that the structure holds; here the structure also owns what is at these addresses.
Each call has its price in Python; where many nodes change, update.prepare_update sets them all in one.
"""
from functools import lru_cache

import numpy as np

from labkit import kernels
from labkit.arguments import sizes
from labkit.backend import cudart as _chosen
from labkit.errors import LabError


class KernelParams:
    """A kernel and all that it is launched with. The fields are CUDA's own; `but` gives a changed copy.

    .kernel, .args: as given. .grid, .block: (x, y, z). .shared: bytes. Buffers among the arguments stay alive as long as this does.
    """

    grid = property(lambda self: (self.gridDim.x, self.gridDim.y, self.gridDim.z))
    block = property(lambda self: (self.blockDim.x, self.blockDim.y, self.blockDim.z))
    shared = property(lambda self: self.sharedMemBytes)

    def but(self, kernel=None, grid=None, block=None, args=None, shared=None):
        """The same with some of it changed; the original stays as it is.

        args: all of them as a tuple, or {position: new value}, positions from 0. Raises LabError as kernel_params does.
        """
        return kernel_params(self.kernel if kernel is None else kernel, self.grid if grid is None else grid,
                             self.block if block is None else block, *self._changed(args),
                             shared=self.shared if shared is None else shared, cudart=self._cudart)

    def _changed(self, args):
        if args is None or isinstance(args, (tuple, list)):
            return self.args if args is None else args
        if not isinstance(args, dict):
            raise LabError(f"{self.kernel.name} got args = {args!r:.40}.",
                           "args is a tuple of all arguments, or {position: new value}.", "Write for example args={2: 3.0}.")
        for position in args:
            if not isinstance(position, (int, np.integer)) or not 0 <= position < len(self.args):
                raise LabError(f"{self.kernel.name} got a new value for args[{position!r:.40}].",
                               f"It was launched with {len(self.args)} arguments, counted from 0: "
                               f"{', '.join(param.ctype for param in self.kernel.params)}.", "Name one of these, or pass all arguments as a tuple.")
        return [args.get(position, old) for position, old in enumerate(self.args)]

    def __repr__(self):
        shown = [hex(v) if p.pointer else repr(a) for p, v, a in zip(self.kernel.params, self._values, self.args)]
        return f"{self.kernel.name}<<<{', '.join(map(str, [self.grid, self.block, *[self.shared] * (self.shared > 0)]))}>>>({', '.join(shown)})"


@lru_cache
def _params_class(cudart):
    """CUDA's own structure with the extras above, so that every call takes it."""
    extras = {"__doc__": KernelParams.__doc__, "__module__": __name__}
    return type("KernelParams", (KernelParams, cudart.cudaKernelNodeParams), extras)


def kernel_params(kernel, grid, block, *args, shared=0, cudart=_chosen):
    """What launch(stream, kernel, grid, block, *args) is told, as a cudaKernelNodeParams to set or add kernel nodes with.

    The memory that it points to lives as long as it does, so one object serves any number of calls. Raises LabError for
    a wrong type or count of arguments or a freed buffer; a size that the GPU refuses is refused by the call that gets it.
    Stands for: CUDA Runtime API, cudaKernelNodeParams.
    """
    if not isinstance(kernel, kernels.Kernel):
        raise LabError(f"kernel_params() got {type(kernel).__name__} as its kernel.",
                       "The order is kernel_params(kernel, grid, block, *args).", "Pass a labkit.Kernel first.")
    if not isinstance(shared, (int, np.integer)) or not 0 <= shared < 2 ** 32:
        raise LabError(f"A launch of {kernel.name} got shared={shared!r:.20}.",
                       "It is the dynamic shared memory in bytes, a whole number from 0.", "Write for example shared=1024.")
    made = _params_class(cudart)()
    for dim, size in ((made.gridDim, sizes("grid", grid)), (made.blockDim, sizes("block", block))):
        dim.x, dim.y, dim.z = size
    made._values = kernel.pack(args)
    made.kernelParams, made._memory = kernel.laid_out(made._values)
    made.func, made.sharedMemBytes = int(kernel.func_on(cudart)), int(shared)
    made.kernel, made.args, made._cudart = kernel, args, cudart
    return made
