"""What can be read back of a node besides its kind, and how it reads where it changed."""
import re
from typing import NamedTuple

from labkit.backend import cudart
from labkit.errors import LabError


class Value(NamedTuple):
    """A parameter: what is compared, and how it is written. An address is compared and never written."""
    value: object
    text: str = ""


def parameters(node, kind):
    """{name: Value} of one node; {} where nothing can be read back. A child graph's handle is under "graph"."""
    if kind == "Graph":
        return {"graph": cudart.cudaGraphChildGraphNodeGetGraph(node)[1]}
    read = {"Kernel": _kernel, "Memset": _memset, "MemAlloc": _allocation, "EventRecord": _event, "WaitEvent": _event}.get(kind)
    return read(node, kind) if read else {}


def _kernel(node, kind):
    from labkit.update import launched
    try:
        found = launched(node)
    except LabError:                                     # another package's kernel
        return {}
    kernel, out = found.kernel, {"kernel": Value(found.kernel.source, found.kernel.name)}
    out.update(grid=_size(found.grid), block=_size(found.block), shared=Value(found.shared, f"{found.shared:,}"))
    for name, param, value in zip(names(kernel), kernel.params, found.args):
        out[name] = Value(int(value)) if param.pointer else Value(value, f"{value:g}" if isinstance(value, float) else f"{value}")
    return out


def names(kernel):
    """The names of a kernel's parameters, as its CUDA C has them."""
    text = re.search(rf"\b{re.escape(kernel.name)}\s*\(([^)]*)\)", kernel.source)
    found = [re.findall(r"\w+", part)[-1] for part in text[1].split(",") if re.search(r"\w", part)] if text else []
    return found if len(found) == len(kernel.params) else [f"argument {k}" for k in range(len(kernel.params))]


def _size(size):
    """(8, 1, 1) as 8, (8, 4, 1) as 8 x 4."""
    size = tuple(size)
    used = max([k + 1 for k in range(len(size)) if size[k] != 1], default=1)
    return Value(size, " x ".join(map(str, size[:used])))


def _memset(node, kind):
    code, found = cudart.cudaGraphMemsetNodeGetParams(node)
    if int(code):
        return {}
    return {"dst": Value(int(found.dst)), **{name: Value(int(getattr(found, name)), str(int(getattr(found, name))))
                                             for name in ("value", "elementSize", "width", "height")}}


def _allocation(node, kind):
    code, found = cudart.cudaGraphMemAllocNodeGetParams(node)
    return {} if int(code) else {"bytes": Value(int(found.bytesize), f"{int(found.bytesize)}")}


def _event(node, kind):
    read = cudart.cudaGraphEventRecordNodeGetEvent if kind == "EventRecord" else cudart.cudaGraphEventWaitNodeGetEvent
    code, event = read(node)
    return {} if int(code) else {"event": Value(int(event))}


def changed(old, new):
    """What differs between the parameters of two nodes of one kind: ["grid 4 -> 8", "y: another address"]."""
    out, both = [], [name for name in old if name in new]
    if "kernel" in both and old["kernel"] != new["kernel"]:
        same = old["kernel"].text == new["kernel"].text
        out.append(f"another {new['kernel'].text}" if same else f"{new['kernel'].text} instead of {old['kernel'].text}")
        if list(old) != list(new):                       # another kernel's arguments are not these
            both = [name for name in both if name in ("grid", "block", "shared")]
    for name in both:
        a, b = old[name], new[name]
        if name == "kernel" or repr(a.value) == repr(b.value):            # nan is nan, and -0.0 is not 0.0
            continue
        told = (a.text, b.text) if a.text != b.text else (repr(a.value), repr(b.value))      # in full where the short form hides it
        out.append(f"{name} {told[0]} -> {told[1]}" if a.text else "another event" if name == "event" else f"{name}: another address")
    return out
