"""The types and shapes that PyTorch's operators have, and in which type TVM computes them."""

from typing import Any

from tuneloom.compiler.number_types import HALF

_PROMOTED = frozenset(
    (
        *("add", "sub", "rsub", "mul", "div", "floor_divide", "pow", "maximum", "minimum", "remainder"),
        *("fmod", "cumsum", "cumprod", "sum", "prod"),
    )
)
"""Operators that PyTorch computes in the type of their result; truth values are summed as whole numbers."""

_PRODUCTS = frozenset(("addmm", "mm", "bmm", "baddbmm", "matmul", "linear", "convolution"))
"""Operators that sum products: in half precision TVM mixes a single product with a half bias."""


def computed_in(kind: str, wanted: str) -> str | None:
    """The type to compute an operator in; None to leave its operands as they are."""
    if kind in _PRODUCTS and wanted in HALF:
        return "float32"
    return wanted if kind in _PROMOTED else None


def require_shape(kind: str, result: Any, expected: Any) -> None:
    """Raise ValueError where a converter means another shape than PyTorch; open extents are not compared."""
    shape = getattr(getattr(result, "ty", None), "shape", None)
    found = [getattr(extent, "value", extent) for extent in getattr(shape, "values", None) or ()]
    wanted = list(expected.shape)
    pairs = zip(found, wanted, strict=False)
    differs = any(type(one) is type(other) is int and one != other for one, other in pairs)
    if shape is not None and (len(found) != len(wanted) or differs):
        raise ValueError(f"TVM gives {kind} the shape {tuple(found)}, PyTorch {tuple(wanted)}")


def torch_type(node: Any) -> str | None:
    """The element type of what a node gives; None if that is not one tensor."""
    import torch

    value = node.meta.get("val")
    return str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else None
