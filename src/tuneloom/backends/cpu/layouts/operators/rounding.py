"""Floats that become 8-bit whole numbers and back: products between them may work on those.

Only where that was asked for: a model that has such pairs itself is computed as it says, to the last bit.
"""

from typing import Any

from tuneloom.backends.cpu.layouts.expressions import scalar, whole_number
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes.values import Quantised, Restored
from tuneloom.backends.quantising import Scale
from tuneloom.compiler.rewriting import shape_of


def _quantize(rewriter: Rewriter, var: Any, call: Any) -> bool:
    step, zero = scalar(call.args[1]), whole_number(call.args[2])
    dtype, shape = str(call.attrs.out_dtype), shape_of(var)
    if step is None or zero is None or shape is None or dtype != rewriter.dots:
        return False
    scale = Scale(step=step, zero=zero, dtype=dtype)
    rewriter.bind(var, Quantised(shape=shape, source=rewriter.value(call.args[0]), scale=scale))
    return True


def _dequantize(rewriter: Rewriter, var: Any, call: Any) -> bool:
    data, shape = rewriter.value(call.args[0]), shape_of(var)
    if not isinstance(data, Quantised) or shape is None or str(call.attrs.out_dtype) != "float32":
        return False
    if (scalar(call.args[1]), whole_number(call.args[2])) != (data.scale.step, data.scale.zero):
        return False
    rewriter.bind(var, Restored(shape=shape, whole=data))
    return True


RULES: dict[str, Rule] = {"relax.quantize": _quantize, "relax.dequantize": _dequantize}
