"""Nodes between dequantised values, computed on the whole numbers themselves.

A graph that says "dequantise, convolve, quantise" means a convolution of whole numbers: their sums are
exact, and are scaled once. What only moves values about does so before they are dequantised.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.importing.cleaning.constants import Constants, Rounded
from tuneloom.tuners.tvm.importing.converters.constants import array, dtype_of, shape_of
from tuneloom.tuners.tvm.importing.converters.quantised import along, centred, convolved

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
    from tvm import relax

    call = bb.lookup_binding(value) if isinstance(value, relax.Var) else value
    if not isinstance(call, relax.Call) or getattr(call.op, "name", "") != "relax.dequantize":
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


def requantised(bb: Any, inputs: Any) -> Any | None:
    """The whole numbers that are dequantised only to be quantised in the same way again; None otherwise."""
    data = source_of(bb, inputs[0])
    if data is None or len(inputs) < 3 or inputs[2] is None:
        return None
    step, zero = array(inputs[1]), array(inputs[2])
    if step is None or zero is None or step.size != 1 or zero.size != 1:
        return None
    same = float(step.item()) == data.scale and zero.item() == array(data.zero).item()  # type: ignore[union-attr]
    return data.whole if same and zero.dtype.name == dtype_of(data.whole) else None


def moved(bb: Any, inputs: Any, convert: Callable[[Any], Any]) -> Any | None:
    """The result of a node that moves dequantised values: the whole numbers are moved; None for others."""
    from tvm import relax

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
    from tvm import relax

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
    from tvm import relax

    rank, exact = len(shape_of(sums)), _in_steps(bias.rounded, step)
    if exact:
        assert bias.rounded is not None
        sums = bb.emit(relax.op.add(sums, along(bb, _whole(bias.rounded.whole), axis, rank)))
    factor = along(bb, relax.const(np.asarray(step, np.float32)), axis, rank)
    scaled = bb.emit(relax.op.multiply(bb.emit(relax.op.astype(sums, "float32")), factor))
    if bias.value is None or exact:
        return scaled
    return bb.emit(relax.op.add(scaled, along(bb, bias.value, axis, rank)))


def _in_steps(bias: Rounded | None, step: Any) -> bool:
    return bias is not None and bool(np.allclose(bias.step.reshape(-1), step, rtol=_SAME_STEP, atol=0))


def _whole(values: Any) -> Any:
    from tvm import relax

    return relax.const(np.ascontiguousarray(values, dtype=np.int32))


_PRODUCTS = {"Conv": _convolution, "MatMul": _product, "Gemm": _general}
