"""Better conversions of elementwise ONNX operators than TVM's own.

TVM turns Clip into two opaque kernels with tests for NaN bounds, and adds tensors by
stacking them first; both hide simple elementwise operations from fusion.
"""

from functools import reduce
from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import dtype_of, is_constant, is_float32, number
from tuneloom.tuners.tvm.importing.onnx.converters.making import Usual, around, own


def elementwise(frontend: Any) -> dict[str, Any]:
    """Converters by the name of their operator."""
    return {"Clip": _clip(frontend), "Sum": around(frontend.Sum, _sum), "IsInf": own(_is_inf)}


def _clip(frontend: Any) -> Any:
    class Clip(frontend.Clip):  # type: ignore[misc]
        """Constant bounds become one `clip`."""

        @classmethod
        def _impl_v13(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
            bounds = [number(inputs[1], float("-inf")), number(inputs[2], float("inf"))]
            low, high = bounds
            if low is None or high is None or low != low or high != high or not is_float32(inputs[0]):
                return super()._impl_v13(bb, inputs, attr, params)
            return relax.op.clip(inputs[0], low, high)

        @classmethod
        def _impl_v1(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
            low, high = float(attr.get("min", float("-inf"))), float(attr.get("max", float("inf")))
            return relax.op.clip(inputs[0], low, high)

    return Clip


def _sum(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """A chain of additions; nothing is stacked."""
    if any(is_constant(value) for value in inputs):
        return usual()
    return reduce(lambda left, right: bb.emit(relax.op.add(left, right)), list(inputs))


def _is_inf(bb: Any, inputs: Any, attr: Any) -> Any:
    """TVM's own forgets that only one sign may be asked for."""
    found = bb.emit(relax.op.isinf(inputs[0]))
    zero = relax.const(0, dtype_of(inputs[0]))
    if not attr.get("detect_negative", 1):
        found = bb.emit(relax.op.logical_and(found, bb.emit(relax.op.greater(inputs[0], zero))))
    if not attr.get("detect_positive", 1):
        found = bb.emit(relax.op.logical_and(found, bb.emit(relax.op.less(inputs[0], zero))))
    return found
