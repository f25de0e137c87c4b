"""Weights of what is computed in TF32, rounded to nearest.

Tensor cores cut bits off what they read, which makes every product a little too small. Kernels round what
they read from other layers; weights are rounded once.
"""

from typing import Any

import numpy as np

from tuneloom.backends.cuda.tf32 import TF32, call_in_tf32
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import Lookup, array_of, rewritten

_CUT = 13
"""So many of the 23 bits behind the point of a float32 are not read."""


def weights_rounded(module: Any, dtype: str) -> Any:
    """The module with constant weights in TF32, for operators that compute in it in a model of this type."""

    def changed(_builder: Any, call: Any, made: Lookup) -> Any | None:
        if not call_in_tf32(dtype, call):
            return None
        weights = array_of(made(call.args[1]))
        if weights is None or weights.dtype != np.float32:
            return None
        operands = [call.args[0], relax.const(in_tf32(weights)), *call.args[2:]]
        return relax.Call(call.op, operands, call.attrs)

    return rewritten(module, changed) if dtype in TF32 else module


def in_tf32(values: Any) -> Any:
    """Float32 numbers rounded to those of TF32; halves go away from zero."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(1 << (_CUT - 1))) & ~np.uint32((1 << _CUT) - 1)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)
