"""RMS norms that a program writes out, as the one operator that they are: one kernel instead of two."""

from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import (
    Lookup,
    constant_of,
    dtype_of,
    name_of,
    rewritten,
    shape_of,
)


def rms_norms_as_one(module: Any) -> Any:
    """The module with values times the reciprocal root of their mean square as `relax.nn.rms_norm`."""
    return rewritten(module, _joined)


def _joined(_builder: Any, call: Any, made: Lookup) -> Any | None:
    if name_of(call) != "multiply":
        return None
    for value, other in (call.args, call.args[::-1]):
        epsilon = _epsilon(value, made(other), made)
        shape = shape_of(value)
        if epsilon is not None and shape is not None and dtype_of(value) == "float32":
            ones = relax.const(np.ones(shape[-1], np.float32))
            return relax.op.nn.rms_norm(value, ones, axes=[-1], epsilon=epsilon)
    return None


def _epsilon(value: Any, root: Any, made: Lookup) -> float | None:
    """What is added to the mean square of a value's rows, if that is what a root is of."""
    total = made(root.args[0]) if name_of(root) == "rsqrt" else None
    epsilon = constant_of(total.args[1]) if total is not None and name_of(total) == "add" else None
    mean = made(total.args[0]) if total is not None and epsilon is not None else None
    if mean is None or name_of(mean) != "mean" or not mean.attrs.keepdims or mean.attrs.axis is None:
        return None
    last = len(shape_of(value) or ()) - 1
    if [int(axis) % (last + 1) for axis in mean.attrs.axis] != [last]:
        return None
    return epsilon if _is_square(made(mean.args[0]), value) else None


def _is_square(square: Any, value: Any) -> bool:
    name = name_of(square)
    if name == "multiply":
        return all(one.same_as(value) for one in square.args)
    twice = name == "square" or (name == "power" and constant_of(square.args[1]) == 2.0)
    return twice and bool(square.args[0].same_as(value))
