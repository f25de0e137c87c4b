"""Better conversions of a few ONNX operators than TVM's own.

TVM turns Clip into two opaque kernels with tests for NaN bounds, and adds tensors by
stacking them first; both hide simple elementwise operations from fusion.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any


@contextmanager
def better_converters() -> Iterator[None]:
    """Replace TVM's table of ONNX converters while a model is imported."""
    from tvm.relax.frontend.onnx import onnx_frontend

    original = onnx_frontend._get_convert_map
    onnx_frontend._get_convert_map = lambda: {**original(), **_converters(onnx_frontend)}
    try:
        yield
    finally:
        onnx_frontend._get_convert_map = original


def _converters(frontend: Any) -> dict[str, Any]:
    from tvm import relax

    class Clip(frontend.Clip):  # type: ignore[misc]
        """Constant bounds become one `clip`."""

        @classmethod
        def _impl_v13(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
            bounds = [_number(inputs[1], float("-inf")), _number(inputs[2], float("inf"))]
            low, high = bounds
            if low is None or high is None or low != low or high != high or not _is_float32(inputs[0]):
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
            if any(_is_const(value) for value in inputs):
                return super()._impl_v1(bb, inputs, attr, params)
            return reduce(lambda left, right: bb.emit(relax.op.add(left, right)), list(inputs))

        _impl_v6 = _impl_v8 = _impl_v13 = _impl_v1

    return {"Clip": Clip, "Sum": Sum}


def _is_const(value: Any) -> bool:
    import tvm

    return isinstance(value, tvm.ir.GenericConst)


def _is_float32(value: Any) -> bool:
    return str(value.ty.dtype) == "float32"


def _number(bound: Any, missing: float) -> float | None:
    """A bound as a number; None when it is only known when the model runs."""
    if bound is None:
        return missing
    return float(bound.value.numpy().item()) if _is_const(bound) else None
