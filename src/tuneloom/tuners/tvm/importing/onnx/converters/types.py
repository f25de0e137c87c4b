"""Operators whose operands may differ in type, or be truth values, where TVM's own converters stop."""

from typing import Any

import numpy as np

from tuneloom.compiler.lazy import onnx, relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import array, dtype_of, is_constant, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.making import Usual, around, own

_WHOLE = {
    "INT8": "int32",
    "UINT8": "int32",
    "INT16": "int32",
    "UINT16": "int32",
    "INT32": "int32",
    "UINT32": "int64",
    "INT64": "int64",
}
"""Types of whole numbers, and in which a real number becomes one before its upper bits are dropped."""


def typed(frontend: Any) -> dict[str, Any]:
    """Converters by the name of their operator."""
    return {
        "Cast": around(frontend.Cast, _truncated),
        "OneHot": own(_one_hot),
        "Pow": around(frontend.Pow, _power),
        "ReduceMax": around(frontend.ReduceMax, _extreme),
        "ReduceMin": around(frontend.ReduceMin, _extreme),
    }


def _truncated(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """Whole numbers from real ones by the CPU's own instruction, as ONNX Runtime does it.

    TVM's own guards every value and wraps it in seven steps, which blow up where they are inlined.
    """
    wide = _WHOLE.get(onnx.TensorProto.DataType.Name(attr["to"]))
    if wide is None or is_constant(inputs[0]) or not _is_real(inputs[0]):
        return usual()
    kind = onnx.TensorProto.DataType.Name(attr["to"]).lower()
    return _cast(bb, _cast(bb, inputs[0], wide), kind)


def _is_real(value: Any) -> bool:
    return isinstance(getattr(value, "ty", None), relax.TensorType) and "float" in dtype_of(value)


def _power(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """The result has the base's type; a whole base with a real exponent is computed in real numbers."""
    base, exponent = inputs[0], inputs[1]
    kind, other = dtype_of(base), dtype_of(exponent)
    if "float" not in kind and "float" not in other:
        raise NotImplementedError("Pow of whole numbers is not implemented")
    if kind == other:
        return usual()
    real = kind if "float" in kind else other if "float" in other else kind
    operands = [_cast(bb, base, real), _cast(bb, exponent, real)]
    return _cast(bb, bb.emit(relax.op.power(*operands)), kind)


def _extreme(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """The largest or the smallest number; of truth values, too."""
    if dtype_of(inputs[0]) != "bool":
        return usual()
    inputs[0] = _cast(bb, inputs[0], "int8")
    return _cast(bb, bb.emit(usual()), "bool")


def _one_hot(bb: Any, inputs: Any, attr: Any) -> Any:
    """Places compared with numbers: any type of depth, places and values."""
    known = array(inputs[1])
    if known is None:
        raise NotImplementedError("OneHot with a depth that is no constant is not implemented")
    depth = int(known.reshape(-1)[0])
    places = _cast(bb, inputs[0], "int64")
    behind = bb.emit(relax.op.add(places, relax.const(depth, "int64")))
    places = bb.emit(relax.op.where(relax.op.less(places, relax.const(0, "int64")), behind, places))
    rank = len(shape_of(places)) + 1
    axis = int(attr.get("axis", -1)) % rank
    numbers = np.arange(depth, dtype=np.int64).reshape([-1 if n == axis else 1 for n in range(rank)])
    hot = relax.op.equal(relax.op.expand_dims(places, axis), relax.const(numbers, "int64"))
    off, on = (
        bb.emit(relax.op.squeeze(relax.op.strided_slice(inputs[2], [0], [n], [n + 1]), [0])) for n in (0, 1)
    )
    return relax.op.where(bb.emit(hot), on, off)


def _cast(bb: Any, value: Any, kind: str) -> Any:
    return value if dtype_of(value) == kind else bb.emit(relax.op.astype(value, kind))
