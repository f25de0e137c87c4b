"""Products of 8-bit floating point: data by one step for a tensor, weights by one for each channel.

Numbers of 8 bits are a value divided by its step, sums are in single precision, and what a product gives is
multiplied by both steps. Everything between products is in half precision.
"""

from typing import Any

import numpy as np

from tuneloom.backends.cuda.passes.halves import in_half
from tuneloom.backends.meaning import VIEWS
from tuneloom.backends.quantising import Quantiser, Scale
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.number_types import numpy_type
from tuneloom.compiler.rewriting import (
    Lookup,
    array_of,
    constant_of,
    dtype_of,
    name_of,
    rewritten,
    shape_of,
)

EIGHT = "float8_e4m3fn"
BETWEEN = "float16"
"""What everything else is computed in."""
_LARGEST = 448.0
_LEAST_EXTENT = 16
_WEIGHTS = {"nn.conv1d": "OIW", "nn.conv2d": "OIHW"}


class EightQuantiser(Quantiser):
    """Products and convolutions with constant weights and at least as many channels as a tile."""

    def is_point(self, expression: Any) -> bool:
        name = name_of(expression)
        if name != "matmul" and name not in _WEIGHTS:
            return False
        weight = array_of(expression.args[1])
        if weight is None or not isinstance(expression.args[0], relax.Var):
            return False
        if dtype_of(expression.args[0]) != "float32" or shape_of(expression.args[0]) is None:
            return False
        if name != "matmul":
            attrs = expression.attrs
            plain = (str(attrs.kernel_layout), int(attrs.groups)) == (_WEIGHTS[name], 1)
            return plain and min(weight.shape[:2]) >= _LEAST_EXTENT
        return len(weight.shape) == 2 and min(weight.shape) >= _LEAST_EXTENT

    def scale(self, low: float, high: float) -> Scale:
        """The step by which the largest number of the type is the largest that was seen."""
        return Scale(step=max(-low, high, 1e-12) / _LARGEST, zero=0, dtype=EIGHT)

    def weights(self, product: Any) -> Any:
        """The weights as they are once they were 8-bit numbers."""
        narrow, steps = _narrowed(product)
        return relax.const(narrow.astype(np.float32) * steps, dtype_of(product.args[1]))


def roundings_spelled_out(module: Any) -> Any:
    """The module with conversions to 8-bit floating point and back as single operators, which others pass."""
    return rewritten(module, _spelled_out)


def _spelled_out(builder: Any, call: Any, _made: Lookup) -> Any | None:
    known = name_of(call) in ("quantize", "dequantize") and EIGHT in map(dtype_of, (call, call.args[0]))
    step = constant_of(call.args[1]) if known else None
    if step is None:
        return None
    if name_of(call) == "dequantize":
        return relax.op.multiply(builder.emit(relax.op.astype(call.args[0], "float32")), call.args[1])
    data = builder.emit(relax.op.multiply(call.args[0], relax.const(np.float32(1.0 / step))))
    return relax.op.astype(builder.emit(relax.op.clip(data, -_LARGEST, _LARGEST)), EIGHT)


def products_in_eight(module: Any) -> Any:
    """The module with 8-bit products where their data were rounded to 8 bits; others stay as they are."""
    return relax.transform.EliminateCommonSubexpr()(rewritten(module, _in_eight))


def _in_eight(builder: Any, call: Any, made: Lookup) -> Any | None:
    known = name_of(call) in ("matmul", *_WEIGHTS) and array_of(call.args[1]) is not None
    found = _data(builder, call.args[0], made) if known else None
    if found is None:
        return None
    data, step = found
    narrow, steps = _narrowed(call)
    make = _row_product if name_of(call) == "matmul" else in_half
    product = builder.emit(make(call, [data, relax.const(narrow, EIGHT)]))
    return relax.op.multiply(product, relax.const((steps.reshape(-1) * step).astype(np.float32)))


def _row_product(call: Any, operands: list[Any]) -> Any:
    """A product as a convolution of single pixels, whose filters have their depth inside.

    Tensor cores read 8-bit numbers only along the depth; weights of a product would be transposed each time.
    """
    rows, weight = operands
    depth, columns = shape_of(weight) or ()
    turned = np.ascontiguousarray(np.asarray(array_of(weight)).T)
    filters = relax.const(turned.reshape(columns, 1, depth), EIGHT)
    image = relax.op.reshape(rows, (1, -1, depth))
    done = relax.op.nn.conv1d(image, filters, data_layout="NWC", kernel_layout="OWI", out_dtype="float32")
    return relax.op.reshape(done, shape_of(call))


def _data(builder: Any, value: Any, made: Lookup) -> tuple[Any, float] | None:
    """A value that was rounded to 8 bits as such numbers, and their step; None for any other value."""
    bound = made(value)
    name = name_of(bound)
    if name == "astype" and dtype_of(bound.args[0]) == EIGHT:
        return bound.args[0], 1.0
    factor = constant_of(bound.args[1]) if name == "multiply" else 1.0
    if factor is None or (name not in ("astype", "multiply") and f"relax.{name}" not in VIEWS):
        return None
    found = _data(builder, bound.args[0], made)
    if found is None or name in ("astype", "multiply"):
        return None if found is None else (found[0], found[1] * factor)
    return builder.emit(relax.Call(bound.op, [found[0], *bound.args[1:]], bound.attrs)), found[1]


def _narrowed(product: Any) -> tuple[Any, Any]:
    """The weights of a product as 8-bit numbers, and the step of each channel, to be broadcast."""
    weight = np.asarray(array_of(product.args[1])).astype(np.float32)
    others = tuple(range(1, weight.ndim)) if name_of(product) in _WEIGHTS else (0,)
    steps = np.maximum(np.abs(weight).max(axis=others, keepdims=True), 1e-12) / _LARGEST
    return np.clip(weight / steps, -_LARGEST, _LARGEST).astype(numpy_type(EIGHT)), steps.astype(np.float32)
