"""What is known of an expression of a program: its constant value."""

from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.shapes.values import Array
from tuneloom.compiler.lazy import tvm


def constant(expression: Any) -> Array | None:
    """The values of a constant float tensor, None for anything else."""
    if not isinstance(expression, tvm.ir.GenericConst) or not hasattr(expression.value, "numpy"):
        return None
    found = expression.value.numpy()
    return found if found.dtype == np.float32 else None


def scalar(expression: Any) -> float | None:
    """The value of a constant with one element, None for anything else."""
    found = constant(expression)
    return float(found.item()) if found is not None and found.size == 1 else None


def whole_numbers(expression: Any) -> Any | None:
    """The values of a constant tensor of whole numbers, None for anything else."""
    if not isinstance(expression, tvm.ir.GenericConst) or not hasattr(expression.value, "numpy"):
        return None
    found = expression.value.numpy()
    return found if found.dtype.kind in "iu" else None


def whole_number(expression: Any) -> int | None:
    """The value of a constant whole number, None for anything else."""
    found = whole_numbers(expression)
    return int(found.item()) if found is not None and found.size == 1 else None
