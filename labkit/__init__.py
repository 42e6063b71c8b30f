"""labkit: the small helper package of the CUDA Graphs lab kit.

    from labkit import cudart, ok, launch, to_device, graph

Names are loaded when first asked for, so that `labkit doctor` works where the GPU does not.
"""
import importlib
import sys
import types

# public name: the file it lives in
_ROOMS = {
    "cudart": "backend", "backend": "backend", "cuuint64_t": "backend",
    "ok": "errors", "LabError": "errors", "NotSimulated": "errors", "Undefined": "errors",
    "Kernel": "kernels", "launch": "kernels", "kernels": "kernels",
    "DeviceArray": "arrays", "empty": "arrays", "to_device": "arrays", "to_host": "arrays",
    "graph": "graph", "recover": "recover", "keep_alive": "keep_alive", "memory_log": "memory_log",
    "kernel_params": "params", "launched": "update", "set_kernel": "update", "exec_update": "update", "prepare_update": "update",
    "predict": "predict", "predict_order": "predict", "measure": "measure", "recorded": "measurement", "footprint": "footprint", "timeline": "timeline", "stamp": "timeline",
    "draw": "draw", "film": "film", "watch": "watch", "explain": "explain", "in_child": "in_child", "cases": "cases",
    "check": "exercise", "hint": "exercise", "progress": "solved",
}
__all__ = sorted(_ROOMS)


class _Package(types.ModuleType):
    """Where a file and its main function share a name (measure, film), the package shows the function."""

    def __setattr__(self, name, value):
        if isinstance(value, types.ModuleType) and name in _ROOMS:
            value = getattr(value, name, value)
        super().__setattr__(name, value)


def __getattr__(name):
    if name not in _ROOMS:
        raise AttributeError(f"labkit has no {name!r}; it has {', '.join(__all__)}")
    module = importlib.import_module(f"labkit.{_ROOMS[name]}")
    value = getattr(module, name, module)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__():
    return __all__


sys.modules[__name__].__class__ = _Package
