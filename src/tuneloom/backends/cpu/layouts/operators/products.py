"""Matrix products: constant matrices are packed into panels once, others where they are made."""

from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.expressions import constant
from tuneloom.backends.cpu.layouts.kernels import dots, pairs
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes import matrices
from tuneloom.backends.cpu.layouts.shapes.values import Array, Quantised, Restored, pack_matrix
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of

_WORTH_PACKING = 4
"""With so many rows a right side that must be packed in every run is worth it."""


def _matmul(rewriter: Rewriter, var: Any, call: Any) -> bool:
    left, right = (shape_of(side) for side in call.args)
    if left is None or right is None or min(len(left), len(right)) < 2 or str(var.ty.dtype) != "float32":
        return False
    matrix = constant(call.args[1])
    if matrix is not None and matrix.ndim == 2:
        with_constant(rewriter, var, call.args[0], matrix, left)
        return True
    if left[:-2] != right[:-2] or left[-2] < _WORTH_PACKING or 2 * right[-1] < rewriter.lanes:
        return False
    _with_variable(rewriter, var, call, left, right)
    return True


def with_constant(rewriter: Rewriter, var: Any, data: Any, matrix: Array, left: tuple[int, ...]) -> None:
    """The product of data of this shape with a constant matrix (in, out)."""
    rows, width = int(np.prod(left[:-1])), int(matrix.shape[1])
    value = rewriter.value(data)
    if isinstance(value, Restored) and matrix.shape[0] % dots.FOUR == 0:
        _with_whole_numbers(rewriter, var, value.whole, matrix, rows)
        return
    panel = matrices.panel_width(rows, width, rewriter.lanes)
    if rewriter.pairs and matrix.shape[0] % pairs.TWO == 0:
        packed = relax.const(pairs.pack_pair_panels(matrix, panel))
        arguments = [rewriter.halves(rewriter.plain(value)), packed]
        side = rewriter.side("bf16", matrix.shape[0])
        rewriter.emit_plain(var, pairs.product_pairs, arguments, "product_pairs", width=width, side=side)
        return
    arguments = [rewriter.plain(value), relax.const(pack_matrix(matrix, panel))]
    rewriter.emit_plain(var, matrices.product, arguments, "product", width=width)


def _with_whole_numbers(rewriter: Rewriter, var: Any, data: Quantised, matrix: Array, rows: int) -> None:
    """A product of 8-bit whole numbers with a constant matrix."""
    width = int(matrix.shape[1])
    panel = matrices.panel_width(rows, width, rewriter.lanes)
    whole, step = dots.quantise_weight(np.ascontiguousarray(matrix.T))
    last = [relax.const(one) for one in dots.factor_and_shift(whole, step, None, data.scale)]
    rewriter.bind_plain(var, rewriter.product_of_wholes(rewriter.plain(data), whole, last, panel, data.scale))


def _with_variable(
    rewriter: Rewriter, var: Any, call: Any, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    width = right[-1]
    panel = matrices.panel_width(left[-2], width, rewriter.lanes)
    data, other = (rewriter.plain(rewriter.value(side)) for side in call.args)
    known = constant(other)
    if known is None:
        panels = rewriter.kernel(matrices.to_panels, [other], "to_panels", panel=panel)
    else:
        panels = relax.const(pack_matrix(known, panel))
    rewriter.emit_plain(var, matrices.product, [data, panels], "product", width=width)


RULES: dict[str, Rule] = {"relax.matmul": _matmul}
