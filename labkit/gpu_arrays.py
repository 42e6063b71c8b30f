"""For watch: did a statement give work of CuPy or PyTorch to a stream? As far as its text and the values of its names show it."""
import ast
import sys
import types

from labkit.place import UNKNOWN, read

_DOES = {"sum", "dot", "fill", "copy", "astype", "mean", "max", "min", "prod", "cumsum", "sort", "argmax", "argmin", "take", "put", "std", "var", "clip",
         "round", "zeros", "ones", "full", "arange", "zeros_like", "ones_like", "full_like", "matmul", "where", "concatenate", "stack", "linspace", "tensordot",
         "einsum", "add_", "mul_", "sub_", "div_", "fill_", "zero_", "copy_", "add", "mul", "clone", "relu", "exp", "sqrt", "sin", "cos", "maximum", "minimum"}


def _is_array(value):
    root = type(value).__module__.split(".")[0]
    return root == "cupy" and type(value).__name__ == "ndarray" or root == "torch" and bool(getattr(value, "is_cuda", False))


def current_streams():
    """{library: the number of its current stream in this thread}, of those that are in use."""
    found, cupy, torch = {}, sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None and hasattr(cupy, "ndarray"):
        found["cupy"] = cupy.cuda.get_current_stream().ptr
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        found["torch"] = torch.cuda.current_stream().cuda_stream
    return found


def array_work(text, frame):
    """The library whose current stream a statement gave work to, as far as its text shows it; else None."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        try:
            tree = ast.parse(text + " pass")        # the header of a compound statement
        except SyntaxError:
            return None

    def library(node):
        value = read(node, frame)
        return type(value).__module__.split(".")[0] if value is not UNKNOWN and _is_array(value) else None
    for node in ast.walk(tree):
        operands = []
        if isinstance(node, (ast.BinOp, ast.Compare)):
            operands = [node.left, *([node.right] if isinstance(node, ast.BinOp) else node.comparators)]
        elif isinstance(node, ast.UnaryOp):
            operands = [node.operand]
        elif isinstance(node, ast.AugAssign):
            operands = [node.target, node.target.value] if isinstance(node.target, ast.Subscript) else [node.target]
        elif isinstance(node, ast.Assign):
            operands = [t.value for t in node.targets if isinstance(t, ast.Subscript)]
        elif isinstance(node, ast.Call):
            function = read(node.func, frame)
            kind = type(function)
            if kind.__module__.split(".")[0] == "cupy" and kind.__name__ in ("ufunc", "ElementwiseKernel", "RawKernel", "ReductionKernel"):
                return "cupy"
            if isinstance(node.func, ast.Attribute) and node.func.attr in _DOES:
                owner = read(node.func.value, frame)
                if isinstance(owner, types.ModuleType) and owner.__name__ == "cupy":
                    return "cupy"
                operands = [node.func.value, *(node.args if isinstance(owner, types.ModuleType) and owner.__name__ == "torch" else [])]
        for found in map(library, operands):
            if found:
                return found
    return None
