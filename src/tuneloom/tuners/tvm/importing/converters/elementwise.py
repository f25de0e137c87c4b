"""Better conversions of elementwise ONNX operators than TVM's own.

TVM turns Clip into two opaque kernels with tests for NaN bounds, and adds tensors by
stacking them first; both hide simple elementwise operations from fusion.
"""

from functools import reduce
from typing import Any

from tuneloom.tuners.tvm.importing.converters.constants import is_constant, is_float32, number


def elementwise(frontend: Any) -> dict[str, Any]:
    """Converters by the name of their operator."""
    from tvm import relax

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

    class Sum(frontend.Sum):  # type: ignore[misc]
        """A chain of additions; nothing is stacked."""

        @classmethod
        def _impl_v1(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
            if any(is_constant(value) for value in inputs):
                return super()._impl_v1(bb, inputs, attr, params)
            return reduce(lambda left, right: bb.emit(relax.op.add(left, right)), list(inputs))

        _impl_v6 = _impl_v8 = _impl_v13 = _impl_v1

    return {"Clip": Clip, "Sum": Sum}
