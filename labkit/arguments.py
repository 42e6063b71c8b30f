"""What a kernel's parameters are, and what may be passed for them.

A buffer of the wrong type, a number that does not fit or an array in host memory would make a GPU
read other bytes than you meant, silently. Here each is a LabError, raised before CUDA sees it.
Not here: sizes. A grid or block that the GPU refuses is the GPU's to refuse (kernels.py).
"""
import ctypes
import math
import operator
import re
from typing import NamedTuple

import numpy as np

from labkit.arrays import DeviceArray
from labkit.errors import LabError

SCALARS = {
    "float": (np.float32, ctypes.c_float), "double": (np.float64, ctypes.c_double),
    "int": (np.int32, ctypes.c_int32), "unsigned int": (np.uint32, ctypes.c_uint32),
    "long long": (np.int64, ctypes.c_int64), "unsigned long long": (np.uint64, ctypes.c_uint64),
}


class Param(NamedTuple):
    """One kernel parameter: its C type, whether it is a pointer, to const, and the NumPy dtype."""
    ctype: str
    pointer: bool
    const: bool
    dtype: np.dtype


def parameter(ctype):
    """The Param of a C type such as "const float*". Raises LabError for a type that labkit cannot pass."""
    base = re.sub(r"\bconst\b|\*|\b__restrict__\b", " ", ctype)
    base = " ".join(base.split())
    if base not in SCALARS or ctype.count("*") > 1:
        raise LabError(f"A kernel parameter has the type {ctype!r}.", f"labkit passes {', '.join(SCALARS)} and pointers to them.",
                       "Write one of these, for example 'const float*'.")
    return Param(ctype, "*" in ctype, "const" in ctype, np.dtype(SCALARS[base][0]))


def pointer(param):
    """A function that gives the device address of a buffer as int, or raises LabError."""
    def address(value):
        if type(value) is DeviceArray and value.dtype is param.dtype or type(value) is int:
            return int(value)
        if hasattr(value, "__cuda_array_interface__"):
            shape = value.__cuda_array_interface__           # raises LabError for a freed labkit buffer
            if shape.get("strides") is not None and not getattr(getattr(value, "flags", None), "c_contiguous", False):
                raise LabError(f"{type(value).__name__} with gaps between its elements was passed for {param.ctype}.",
                               "The kernel would read the gaps.", "Pass a contiguous copy of it.")
            if np.dtype(shape["typestr"]) != param.dtype:
                raise LabError(f"A buffer of {np.dtype(shape['typestr'])} was passed for {param.ctype}.",
                               "The kernel would read its bytes as another type.", f"Pass a buffer of {param.dtype}.")
            return shape["data"][0]
        if isinstance(value, np.integer):
            return int(value)
        where = "lives in host memory; to_device(array) gives a device buffer" if isinstance(value, np.ndarray) else \
            "is no device buffer; None is what a refused call returns in place of one, and its code says why" if value is None else "is no device buffer"
        raise LabError(f"{type(value).__name__} was passed for {param.ctype}.", f"This {where}.",
                       "Pass a buffer from to_device() or empty(), a CuPy or PyTorch array, or an address as int.")
    return address


def scalar(param):
    """A function that gives a number as a NumPy scalar of the parameter's type, or raises LabError where it does not fit."""
    whole, make = param.dtype.kind in "iu", param.dtype.type
    largest = 0 if whole else float(np.finfo(param.dtype).max)
    low, high = (int(np.iinfo(param.dtype).min), int(np.iinfo(param.dtype).max)) if whole else (0, 0)

    def number(value):
        if not whole and type(value) is float and -largest <= value <= largest:
            return make(value)
        try:
            found = operator.index(value) if whole else float(operator.pos(value))    # pos: text has none
        except (TypeError, ValueError, OverflowError):
            raise LabError(f"{value!r:.40} was passed for {param.ctype}.", f"It is a {type(value).__name__}, not a number of that kind.",
                           f"Pass {'a whole number' if whole else 'a number'}.") from None
        if whole and not low <= found <= high:
            raise LabError(f"{found} was passed for {param.ctype}.", "The number does not fit in that type.", "Use a smaller number.")
        if not whole and math.isfinite(found) and abs(found) > largest:
            raise LabError(f"{found} was passed for {param.ctype}.", "The number does not fit in that type.", "Use a smaller number.")
        return make(found)
    return number


def sizes(what, value):
    """`value`, a whole number or one to three of them, as (x, y, z). what: "grid" or "block". Raises LabError for anything else."""
    if type(value) is int and 0 <= value < 2 ** 32:
        return (value, 1, 1)
    dims = (value,) if isinstance(value, (int, np.integer)) else value
    if not isinstance(dims, (tuple, list)) or not 1 <= len(dims) <= 3 or not all(isinstance(d, (int, np.integer)) for d in dims):
        raise LabError(f"A launch got {what} = {value!r:.40}.", "It is a whole number, or one to three of them (x, y, z).",
                       "Write for example 4, or (4, 2).")
    if not all(0 <= d < 2 ** 32 for d in dims):
        raise LabError(f"A launch got {what} = {value!r:.40}.", "CUDA takes sizes from 0 to 4294967295.", "Use a size in that range.")
    return tuple(int(d) for d in dims) + (1,) * (3 - len(dims))


def refused(kernel, args, no):
    """The LabError `no` about one of a kernel's arguments, with the names of the kernel and of the parameter in it."""
    inside = re.search(rf"\b{re.escape(kernel.name)}\s*\(([^()]*)\)", kernel.source)
    names = [" ".join(part.split()) for part in inside[1].split(",")] if inside else []
    if len(names) != len(args):
        names = [param.ctype for param in kernel.params]
    for position, (param, value) in enumerate(zip(kernel.params, args)):
        try:
            (pointer if param.pointer else scalar)(param)(value)
        except LabError:
            return LabError(f"{kernel.name}, args[{position}] ({names[position]}): {no.did}", no.means, no.try_)
    return no
