"""What a kernel's NumPy twin sees of a pointer: a typed array with bounds.

    v[i]          the elements at the indices i (an int, a slice or an array of ints)
    v[i] = x      store; where two threads store to one place, one of them wins, as on a GPU
    v[i] += x     load, add, store: also loses updates, as on a GPU
    v.add(i, x)   atomicAdd: loses none
"""
import numpy as np

from labkit.errors import Undefined
from . import access, memory


class View:
    """Elements of `dtype` from `address` to the end of its allocation. `const` refuses stores.

    The range is looked up at the first access: a pointer that no thread follows may point
    anywhere. Raises Undefined where an index leaves the allocation.
    """
    __slots__ = ("_address", "dtype", "_const", "_name", "_whole", "_first")

    def __init__(self, address, dtype, const, name):
        self._address, self.dtype, self._const, self._name = address, dtype, const, name
        self._whole = self._first = None

    def _find(self):
        """Every element of the allocation, and the number of the one that the pointer points to."""
        if self._whole is None:
            size = self.dtype.itemsize
            access.touch(self._address, 0, self._name)
            block = memory.memory().live_at(self._address)
            offset = self._address - block.start
            if offset % size:
                raise Undefined(f"{self._name} follows a pointer to {self.dtype} at {self._address:#x}.",
                                f"The address is no multiple of {size}, and CUDA wants a type's own alignment.",
                                "Move pointers by whole elements.")
            self._whole, self._first = block.data[:block.size // size * size].view(self.dtype), offset // size
        return self._whole, self._first

    def __len__(self):
        """Elements from the pointer to the end of the allocation."""
        whole, first = self._find()
        return len(whole) - first

    def _place(self, index):
        whole, first = self._find()
        if isinstance(index, slice):
            start, stop = index.start or 0, len(whole) - first if index.stop is None else index.stop
            if index.step in (None, 1) and 0 <= start <= stop <= len(whole) - first:
                return whole, slice(start + first, stop + first)
            index = np.arange(start, stop, index.step or 1)
        index = np.asarray(index)
        if index.dtype == bool:
            index = np.flatnonzero(index)
        if index.dtype.kind not in "iu":
            raise TypeError(f"{self._name}: a pointer is indexed with whole numbers, not {index.dtype}")
        if index.size:
            low, high = int(np.minimum.reduce(index, None)), int(np.maximum.reduce(index, None))
            if low < -first or high >= len(whole) - first:
                raise Undefined(f"{self._name} uses index {high if low >= -first else low} of a pointer to {self.dtype}.",
                                f"The allocation has {len(whole) - first} elements from that pointer on; "
                                "outside of it a GPU may answer with an error, with luck, or with another owner's data.",
                                "Check the size, and the bound in the kernel (if (i < n)).")
        return whole, index + first if first else index

    def __getitem__(self, index):
        whole, index = self._place(index)
        return whole[index]

    def __setitem__(self, index, value):
        if self._const:
            raise TypeError(f"{self._name}: the parameter is a pointer to const, and the twin stores through it")
        whole, index = self._place(index)
        whole[index] = value

    def add(self, index, value):
        """atomicAdd(&v[i], x) for every i."""
        if self._const:
            raise TypeError(f"{self._name}: the parameter is a pointer to const, and the twin stores through it")
        whole, index = self._place(index)
        np.add.at(whole, index, value)
