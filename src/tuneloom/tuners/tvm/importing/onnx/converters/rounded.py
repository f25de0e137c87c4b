"""Nodes between dequantised values, computed on the whole numbers themselves.

A graph that says "dequantise, convolve, quantise" means a convolution of whole numbers: their sums are
exact, and are scaled once. What only moves values about does so before they are dequantised.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.cleaning.constants import Constants, Rounded
from tuneloom.tuners.tvm.importing.onnx.converters.constants import array, dtype_of, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.quantised import (
    along,
    centred,
    convolved,
    requantised,
    rounded_to,
)

MOVING = frozenset(("MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze"))
"""Operators whose results are values they were given."""
_NARROW = ("int8", "uint8")
_SAME_STEP = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """8-bit whole numbers, and the step and zero point that were known when they were dequantised."""

    whole: Any
    step: Any
    zero: Any
    axis: int

    @property
    def scale(self) -> float:
        return float(array(self.step).item())  # type: ignore[union-attr]


def source_of(bb: Any, value: Any) -> Source | None:
    """What a value was dequantised from, with a known step and zero point for all of it; else None."""
    call = _bound(bb, value)
    if not _is(call, "dequantize"):
        return None
    whole, step, zero = call.args
    single = all(known is not None and known.size == 1 for known in (array(step), array(zero)))
    if not single or dtype_of(whole) not in _NARROW or dtype_of(call) != "float32":
        return None
    return Source(whole=whole, step=step, zero=zero, axis=int(call.attrs.axis))


def in_whole_numbers(bb: Any, node: Any, inputs: Any, attr: Any, constants: Constants) -> Any | None:
    """The result of a node that multiplies dequantised values by dequantised weights; None for any other."""
    make = _PRODUCTS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if make is None or len(node.input) < 2:
        return None
    data, weight = source_of(bb, inputs[0]), constants.rounded(node.input[1])
    bias = inputs[2] if len(node.input) > 2 and node.input[2] else None
    if data is None or weight is None or np.abs(weight.whole).max(initial=0) > np.iinfo(np.uint8).max:
        return None
    given = constants.rounded(node.input[2]) if bias is not None else None
    return make(bb, data, weight, attr, _Bias(value=bias, rounded=given))


def quantised_again(bb: Any, inputs: Any) -> Any | None:
    """Sums that are scaled only to be quantised, scaled once for both; None for anything else.

    So are whole numbers that are dequantised only to be quantised in the same way again: they stay.
    """
    step, zero = (array(one) for one in (inputs[1], inputs[2] if len(inputs) > 2 else None))
    if step is None or zero is None or step.size != 1 or zero.size != 1 or zero.dtype.name not in _NARROW:
        return None
    data = source_of(bb, inputs[0])
    if data is None:
        return _scaled_once(bb, inputs[0], step.reshape(()), inputs[2])
    same = float(step.item()) == data.scale and zero.item() == array(data.zero).item()  # type: ignore[union-attr]
    return data.whole if same and zero.dtype.name == dtype_of(data.whole) else None


def _scaled_once(bb: Any, value: Any, step: Any, zero: Any) -> Any | None:
    """Scaled sums, perhaps without their negative ones, in steps of the result."""
    call = _bound(bb, value)
    positive = _is(call, "nn.relu")
    call = _bound(bb, call.args[0]) if positive else call
    factor = array(call.args[1]) if _is(call, "multiply") else None
    sums: Any = _bound(bb, call.args[0]) if factor is not None else None
    if not _is(sums, "astype") or dtype_of(sums.args[0]) != "int32" or step.dtype != np.float32:
        return None
    assert factor is not None
    ratio = relax.const((factor / step).astype(np.float32))
    if not positive:
        return requantised(bb, sums.args[0], ratio, zero)
    # Nothing below the zero point is left of what was negative.
    wide = bb.emit(relax.op.astype(sums.args[0], "float32"))
    return rounded_to(bb, bb.emit(relax.op.nn.relu(bb.emit(relax.op.multiply(wide, ratio)))), zero)


def _bound(bb: Any, value: Any) -> Any:
    return bb.lookup_binding(value) if isinstance(value, relax.Var) else value


def _is(call: Any | None, name: str) -> bool:
    return isinstance(call, relax.Call) and getattr(call.op, "name", "") == f"relax.{name}"


def moved(bb: Any, inputs: Any, convert: Callable[[Any], Any]) -> Any | None:
    """The result of a node that moves dequantised values: the whole numbers are moved; None for others."""
    data = source_of(bb, inputs[0])
    if data is None:
        return None
    whole = bb.emit(convert(type(inputs)([data.whole, *inputs[1:]])))
    single = [relax.const(array(one).reshape(())) for one in (data.step, data.zero)]  # type: ignore[union-attr]
    return bb.normalize(relax.op.dequantize(whole, *single, axis=-1, out_dtype="float32"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bias:
    """What is added at last, and the whole numbers it stands for, if it does."""

    value: Any
    rounded: Rounded | None


def _convolution(bb: Any, data: Source, weight: Rounded, attr: Any, bias: _Bias) -> Any | None:
    rank = weight.whole.ndim
    if rank not in (3, 4) or weight.step.size not in (1, weight.step.shape[0] if weight.step.ndim else 1):
        return None
    sums = convolved(bb, centred(bb, data.whole, data.zero), _whole(weight.whole), attr)
    return _scaled(bb, sums, data.scale * weight.step.reshape(-1), bias, 1)


def _product(bb: Any, data: Source, weight: Rounded, attr: Any, bias: _Bias) -> Any | None:
    last = weight.step.shape[-1] if weight.step.ndim else 1
    if weight.whole.ndim != 2 or weight.step.size not in (1, last) or len(shape_of(data.whole)) < 2:
        return None
    matmul = relax.op.matmul(centred(bb, data.whole, data.zero), _whole(weight.whole), out_dtype="int32")
    sums = bb.emit(matmul)
    return _scaled(bb, sums, data.scale * weight.step.reshape(-1), bias, len(shape_of(sums)) - 1)


def _general(bb: Any, data: Source, weight: Rounded, attr: Any, bias: _Bias) -> Any | None:
    plain = attr.get("alpha", 1.0) == 1.0 and attr.get("beta", 1.0) == 1.0 and not attr.get("transA", 0)
    size = 0 if bias.value is None else len(shape_of(bias.value))
    if not plain or size > 1:
        return None
    return _product(bb, data, weight.turned(None) if attr.get("transB", 0) else weight, attr, bias)


def _scaled(bb: Any, sums: Any, step: Any, bias: _Bias, axis: int) -> Any:
    """Sums as floats, with a bias that is added to the sums themselves if it counts in the same steps."""
    rank, exact = len(shape_of(sums)), _in_steps(bias.rounded, step)
    if exact:
        assert bias.rounded is not None
        sums = bb.emit(relax.op.add(sums, _whole(_laid(bias.rounded.whole, axis, rank))))
    factor = relax.const(np.asarray(_laid(step, axis, rank), np.float32))
    scaled = bb.emit(relax.op.multiply(bb.emit(relax.op.astype(sums, "float32")), factor))
    if bias.value is None or exact:
        return scaled
    return bb.emit(relax.op.add(scaled, along(bb, bias.value, axis, rank)))


def _laid(values: Any, axis: int, rank: int) -> Any:
    """Numbers along one axis; a single one stays alone."""
    return values.reshape([-1 if place == axis else 1 for place in range(rank)] if values.size > 1 else ())


def _in_steps(bias: Rounded | None, step: Any) -> bool:
    return bias is not None and bool(np.allclose(bias.step.reshape(-1), step, rtol=_SAME_STEP, atol=0))


def _whole(values: Any) -> Any:
    return relax.const(np.ascontiguousarray(values, dtype=np.int32))


_PRODUCTS = {"Conv": _convolution, "MatMul": _product, "Gemm": _general}
