"""Products of two matrices that a model dequantises just before: dot products of their whole numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.expressions import scalar, whole_number
from tuneloom.backends.cpu.layouts.kernels import dots, wholes
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes import matrices
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of

_NARROW = ("int8", "uint8")
_WORTH_PACKING = 4
"""With so many rows a right side that must be packed in every run is worth it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NarrowMatrix:
    """A matrix of 8-bit whole numbers in the type that the instruction takes."""

    numbers: Any
    shape: tuple[int, ...]
    step: float
    zero: int


def _matmul(rewriter: Rewriter, var: Any, call: Any) -> bool:
    left, right = (shape_of(side) for side in call.args)
    if not rewriter.whole or left is None or right is None or str(var.ty.dtype) != "float32":
        return False
    if not _fits(left, right, rewriter.lanes):
        return False
    sides = [
        _side(rewriter, side, kind) for side, kind in zip(call.args, (rewriter.whole, "int8"), strict=True)
    ]
    if sides[0] is None or sides[1] is None:
        return False
    rewriter.bind_plain(var, _product(rewriter, sides[0], sides[1]))
    return True


def _fits(left: tuple[int, ...], right: tuple[int, ...], lanes: int) -> bool:
    deep = len(left) == len(right) > 2 and left[:-2] == right[:-2]
    return deep and left[-1] % dots.FOUR == 0 and left[-2] >= _WORTH_PACKING and right[-1] >= lanes


def _side(rewriter: Rewriter, side: Any, kind: str) -> _NarrowMatrix | None:
    """What a side was dequantised from, with one known step and zero point; None for any other."""
    call = rewriter.made_by(side, "dequantize")
    if call is None or str(call.args[0].ty.dtype) not in _NARROW:
        return None
    step, zero = scalar(call.args[1]), whole_number(call.args[2])
    if step is None or zero is None:
        return None
    value, own = rewriter.value(call.args[0]), str(call.args[0].ty.dtype)
    if own != kind:
        value, zero = rewriter.resigned(value, kind), zero + (dots.HALF if kind == "uint8" else -dots.HALF)
    shape = shape_of(side) or ()
    return _NarrowMatrix(numbers=rewriter.plain(value), shape=shape, step=step, zero=zero)


def _product(rewriter: Rewriter, left: _NarrowMatrix, right: _NarrowMatrix) -> Any:
    """Sums of the numbers as they are; what their zero points add is taken away again."""
    *lead, rows, inner = left.shape
    width = right.shape[-1]
    panel = matrices.panel_width(rows, width, rewriter.lanes)
    panels = rewriter.kernel(wholes.to_dot_panels, [right.numbers], "to_panels", panel=panel)
    ones = np.ones((*lead, 1, inner), rewriter.whole)
    beside = np.ones((rewriter.lanes, inner), np.int8)
    options = {
        "width": width,
        "zeros": (left.zero, right.zero),
        "factor": left.step * right.step,
    }
    columns = rewriter.kernel(dots.product_sums, [relax.const(ones), panels], "product_dots")
    packed = relax.const(dots.pack_dot_panels(beside, rewriter.lanes))
    lines = rewriter.kernel(dots.product_sums, [left.numbers, packed], "product_dots")
    arguments = [left.numbers, panels, lines, columns]
    return rewriter.kernel(wholes.product_of_two, arguments, "product_dots", **options)


RULES: dict[str, Rule] = {"relax.matmul": _matmul}
