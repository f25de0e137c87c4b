"""Weights of what is computed in TF32, rounded to nearest.

Tensor cores cut bits off what they read, which makes every product a little too small. Kernels round what
they read from other layers; weights are rounded once.
"""

from typing import Any

import numpy as np

from tuneloom.backends.cuda.single import CONVOLVING, TF32, convolves_in_tf32
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import Lookup, array_of, name_of, rewritten, shape_of

_SAID = ("strides", "groups", "data_layout", "kernel_layout", "out_layout")
_CUT = 13
"""So many of the 23 bits behind the point of a float32 are not read."""


def weights_rounded(module: Any, dtype: str) -> Any:
    """The module with constant weights in TF32, for operators that compute in it in a model of this type."""
    operators = TF32.get(dtype, ())

    def changed(_builder: Any, call: Any, made: Lookup) -> Any | None:
        operator = f"relax.{name_of(call)}"
        if not operator.startswith(operators) or not _pays(operator, call):
            return None
        weights = array_of(made(call.args[1]))
        if weights is None or weights.dtype != np.float32:
            return None
        operands = [call.args[0], relax.const(in_tf32(weights)), *call.args[2:]]
        return relax.Call(call.op, operands, call.attrs)

    return rewritten(module, changed) if operators else module


def _pays(operator: str, call: Any) -> bool:
    """Whether an operator that may compute in TF32 does."""
    if operator not in CONVOLVING:
        return True
    filters, result = shape_of(call.args[1]), shape_of(call)
    if filters is None or result is None:
        return True
    attributes = {name: getattr(call.attrs, name) for name in _SAID}
    return convolves_in_tf32(attributes, filters, result)


def in_tf32(values: Any) -> Any:
    """Float32 numbers rounded to those of TF32; halves go away from zero."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(1 << (_CUT - 1))) & ~np.uint32((1 << _CUT) - 1)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)
