"""Half precision where TVM's converters know single precision only: computed in that, and rounded once."""

from collections.abc import Mapping, Sequence
from typing import Any

from tuneloom.compiler.lazy import onnx, relax, tvm
from tuneloom.compiler.number_types import HALF

_MOVING = frozenset(
    (
        *("Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split"),
        *("Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
"""Operators that compute nothing, so that they need no other type."""


def has_half(values: Sequence[Any]) -> bool:
    """Whether some operand is in half precision."""
    return any(_kind(value) in HALF for value in values)


def is_rounded_once(node: Any, values: Sequence[Any]) -> bool:
    """Whether a node computes in bfloat16: CPUs have no arithmetic in it, so the node is computed in single
    precision as a whole, not operator by operator of what TVM makes of it."""
    return node.op_type not in _MOVING and any(_kind(value) == "bfloat16" for value in values)


def as_single(bb: Any, value: Any) -> Any:
    """An operand in single precision if it was in half; others as they are. What is known stays known."""
    import numpy as np

    if _kind(value) in HALF and isinstance(value, tvm.ir.GenericConst):
        return relax.const(value.value.numpy().astype(np.float32))
    return bb.emit(relax.op.astype(value, "float32")) if _kind(value) in HALF else value


def as_declared(bb: Any, node: Any, result: Any, types: Mapping[str, Any]) -> Any:
    """The outputs of a node in the types that ONNX gives them."""
    if any(name and types.get(name) is None for name in node.output):
        raise ValueError("ONNX does not define it for these types; a newer opset may")
    kinds = [
        str(onnx.helper.tensor_dtype_to_np_dtype(types[name].tensor_type.elem_type)) if name else ""
        for name in node.output
    ]
    if isinstance(result, relax.Tuple):  # there may be more than the node asks for
        fields = [_as(bb, field, kind) for field, kind in zip(result.fields, kinds, strict=False)]
        return relax.Tuple(fields) if len(kinds) > 1 else fields[0]
    return _as(bb, result, kinds[0])


def _as(bb: Any, value: Any, kind: str) -> Any:
    return value if kind in ("", _kind(value)) else bb.normalize(relax.op.astype(bb.emit(value), kind))


def _kind(value: Any) -> str:
    return str(getattr(getattr(value, "ty", None), "dtype", ""))
