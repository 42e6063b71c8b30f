"""Arguments as the bindings convert them, with the errors that they raise.

A converter takes what the program passed and returns an int (or a handle's value). The bindings
convert through C, so a float is cut to an int and anything with `__int__` is a number.
"""
import ctypes

_WORD = {  # C type: (bits, signed, the name in its own messages)
    "size_t": (64, False), "unsigned int": (32, False), "unsigned long long": (64, False), "int": (32, True),
    "unsigned char": (8, False), "unsigned short": (16, False), "PY_LONG_LONG": (64, False), "uint64_t": (64, False),
}


def _number(value):
    if isinstance(value, int):
        return int(value)
    if not hasattr(type(value), "__int__"):
        raise TypeError("an integer is required")
    return int(value)


def integer(ctype):
    """A converter to this C type: OverflowError where the number does not fit."""
    bits, signed = _WORD[ctype]
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)

    def convert(value):
        number = _number(value)
        if low <= number < high:
            return number
        if number < 0 and not signed:
            raise OverflowError(f"can't convert negative value to {'unsigned ' if ctype == 'PY_LONG_LONG' else ''}{ctype}")
        if not -1 << 63 <= number < 1 << 64 or bits == 64:
            raise OverflowError(f"Python int too large to convert to C {'long' if signed else 'unsigned long'}")
        raise OverflowError(f"value too large to convert to {ctype}")
    convert.__name__ = ctype
    return convert


size_t, c_uint, c_ulonglong, c_int = map(integer, ("size_t", "unsigned int", "unsigned long long", "int"))
c_uchar, c_ushort, void_ptr, uint64 = map(integer, ("unsigned char", "unsigned short", "PY_LONG_LONG", "uint64_t"))


class _Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes, _get.restype = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int], ctypes.c_int
_has = ctypes.pythonapi.PyObject_CheckBuffer
_has.argtypes, _has.restype = [ctypes.py_object], ctypes.c_int
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes, _release.restype = [ctypes.POINTER(_Buffer)], None
ANY_CONTIGUOUS = 0x80 | 0x10 | 0x8      # PyBUF_ANY_CONTIGUOUS


def pointer(value):
    """An address: a number as it is, None as 0, a contiguous buffer as where its bytes begin."""
    if value is None:
        return 0
    if not (getattr(value, "ndim", 0) and _has(value)):
        try:
            return void_ptr(value)
        except Exception:
            pass
    if not _has(value):
        raise TypeError(f"Provided argument is of type {type(value)} but expected Type None, int or object with Buffer Protocol")
    view = _Buffer()
    _get(value, ctypes.byref(view), ANY_CONTIGUOUS)
    address = view.buf or 0
    _release(ctypes.byref(view))
    return address


def handle(cls):
    """A converter of handles of one kind: None is 0, a number stands for itself."""
    def convert(value):
        if value is None:
            return 0
        return int(value) if isinstance(value, cls) else void_ptr(value)
    convert.__name__ = cls.__name__
    return convert


def enum(name):
    """A converter of an enumeration's values. It checks the range of an int and no more."""
    def convert(value):
        if value is None:
            raise TypeError("Argument must not be None")
        number = int(value)
        if not -1 << 63 <= number < 1 << 63:
            raise OverflowError("Python int too large to convert to C long")
        if number < 0:
            raise OverflowError(f"can't convert negative value to enum {name}")
        if number >= 1 << 32:
            raise OverflowError(f"value too large to convert to enum {name}")
        return number
    convert.__name__ = name
    return convert


def struct(cls):
    """A converter that lets one structure class pass, and None."""
    def convert(value):
        if value is not None and not isinstance(value, cls):
            raise TypeError(f"Argument has incorrect type (expected {cls.__module__}.{cls.__name__}, got {type(value).__name__})")
        return value
    convert.__name__ = cls.__name__
    return convert


def sequence(cls):
    """A converter of an optional tuple or list of one class."""
    def convert(values):
        values = [] if values is None else values
        if not all(isinstance(value, cls) for value in values):
            raise TypeError(f"Argument is not instance of type (expected tuple[{cls.__name__}] or list[{cls.__name__}])")
        return list(values)
    convert.__name__ = cls.__name__ + " list"
    return convert


def first(values, count):
    """The first `count` of a list, as C reads an array whose length is told beside it."""
    if count > len(values):
        raise RuntimeError(f"List is too small: {len(values)} < {count}")
    return values[:count]


def text(value):
    """A C string: bytes only."""
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError(f"expected bytes, {type(value).__name__} found")
    return bytes(value)
