"""Operators on whole numbers that ONNX Runtime adds to ONNX's own; its tools for quantising write them.

Those without sums of products are computed in single precision between two roundings, as ONNX Runtime does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import dtype_of, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.making import own
from tuneloom.tuners.tvm.importing.onnx.converters.quantised import along, centred, ratio, requantised

Formula = Callable[[list[Any], Any], Any]
"""What an operator does to floats; the last argument is its attributes."""


def _leaky(values: list[Any], attr: Any) -> Any:
    return relax.op.nn.leakyrelu(values[0], float(attr.get("alpha", 0.01)))


def _mean(values: list[Any], attr: Any) -> Any:
    if attr.get("channels_last", 0):
        raise NotImplementedError("QLinearGlobalAveragePool with channels last is not implemented")
    return relax.op.mean(values[0], list(range(2, len(shape_of(values[0])))), keepdims=True)


FORMULAS: dict[str, tuple[Formula, int]] = {
    "QLinearAdd": (lambda values, attr: relax.op.add(*values), 2),
    "QLinearMul": (lambda values, attr: relax.op.multiply(*values), 2),
    "QLinearSigmoid": (lambda values, attr: relax.op.sigmoid(values[0]), 1),
    "QLinearLeakyRelu": (_leaky, 1),
    "QLinearGlobalAveragePool": (_mean, 1),
}
"""Operators that are a formula of so many operands."""


def _between(formula: Formula, count: int) -> Any:
    """Operands, each with its scale and zero point, and then those of the result."""

    def between(bb: Any, inputs: Any, attr: Any) -> Any:
        operands = [_restored(bb, *_three(inputs, 3 * place)) for place in range(count)]
        scale, zero = inputs[3 * count], inputs[3 * count + 1]
        return _rounded(bb, bb.emit(formula(operands, attr)), scale, zero, dtype_of(inputs[0]))

    return between


def _concat(bb: Any, inputs: Any, attr: Any) -> Any:
    """The scale and zero point of the result come first."""
    parts = [_restored(bb, *_three(inputs, place)) for place in range(2, len(inputs), 3)]
    joined = bb.emit(relax.op.concat(parts, axis=int(attr["axis"])))
    return _rounded(bb, joined, inputs[0], inputs[1], dtype_of(inputs[2]))


def _gemm(bb: Any, inputs: Any, attr: Any) -> Any:
    """a, b, a bias in units of a times b, and y; without a scale for y the result is in floats."""
    a, a_scale, a_zero = _three(inputs, 0)
    b, b_scale, b_zero = _three(inputs, 3)
    bias, y_scale, y_zero = inputs[6], inputs[7], inputs[8]
    left, right = centred(bb, a, a_zero), centred(bb, b, b_zero, 0 if attr.get("transB", 0) else 1)
    left, right = (
        bb.emit(relax.op.permute_dims(side)) if attr.get(turned, 0) else side
        for side, turned in ((left, "transA"), (right, "transB"))
    )
    sums = bb.emit(relax.op.matmul(left, right, out_dtype="int32"))
    if bias is not None:
        sums = bb.emit(relax.op.add(sums, bias))
    one = relax.const(np.float32(1.0)) if y_scale is None else y_scale
    scale = ratio(bb, a_scale, along(bb, b_scale, 1, 2), one)
    if attr.get("alpha", 1.0) != 1.0:
        scale = bb.emit(relax.op.multiply(scale, relax.const(np.float32(attr["alpha"]))))
    if y_scale is None:
        return relax.op.multiply(bb.emit(relax.op.astype(sums, "float32")), scale)
    return requantised(bb, sums, scale, _zero(y_zero, dtype_of(a)))


def _three(inputs: Any, place: int) -> tuple[Any, Any, Any]:
    return inputs[place], inputs[place + 1], inputs[place + 2]


def _zero(zero: Any, kind: str) -> Any:
    return relax.const(0, kind) if zero is None else zero


def _restored(bb: Any, value: Any, scale: Any, zero: Any) -> Any:
    return bb.emit(relax.op.dequantize(value, scale, _zero(zero, dtype_of(value)), axis=-1))


def _rounded(bb: Any, value: Any, scale: Any, zero: Any, kind: str) -> Any:
    return bb.emit(relax.op.quantize(value, scale, _zero(zero, kind), axis=-1, out_dtype=kind))


CONTRIB = {
    f"com.microsoft.{name}": own(convert)
    for name, convert in {
        **{name: _between(formula, count) for name, (formula, count) in FORMULAS.items()},
        "QLinearConcat": _concat,
        "QGemm": _gemm,
    }.items()
}
"""Converters by the domain and name of their operator."""
