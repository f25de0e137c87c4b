"""Sums, means and extremes: of whole images with blocked channels, and of lines."""

import math
from collections.abc import Sequence
from typing import Any

from tuneloom.backends.cpu.layouts.forms import VOLUME
from tuneloom.backends.cpu.layouts.kernels import compute, lines
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes.values import Value
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of

_POOLS = {
    "sum": "global_sum_pool2d",
    "mean": "global_avg_pool2d",
    "max": "global_max_pool2d",
    "min": "global_min_pool2d",
}
"""What each kind is called where it takes whole images."""


def _of_images(rewriter: Rewriter, var: Any, call: Any, *, kind: str) -> bool:
    data = rewriter.value(call.args[0])
    rank = len(data.shape)
    if not rewriter.is_blocked(data) or rank >= VOLUME or _axes(call, rank) != list(range(2, rank)):
        return False
    pooled = rewriter.kernel(compute.global_pool2d, [rewriter.blocked(data)], _POOLS[kind], kind=kind)
    point = Value(shape=(*data.shape[:2], *[1] * (rank - 2)), blocked=pooled)
    if call.attrs.keepdims:
        rewriter.bind(var, point)
    else:
        rewriter.bind_plain(var, _shaped(rewriter, rewriter.plain(point), data.shape[:2]))
    return True


def _of_lines(rewriter: Rewriter, var: Any, call: Any, *, kind: str) -> bool:
    """Along the last axis, or several last ones as if they were one."""
    data = rewriter.value(call.args[0])
    rank = len(data.shape)
    axes = _axes(call, rank)
    lead, rest = data.shape[: rank - len(axes)], data.shape[rank - len(axes) :]
    fits = bool(lead) and axes == list(range(len(lead), rank))
    if not fits or math.prod(rest) < 2 * rewriter.lanes:
        return False
    along = rewriter.plain(data)
    if len(rest) > 1:
        along = _shaped(rewriter, along, (*lead, math.prod(rest)))
    options = {"lanes": rewriter.lanes, "kind": kind, "kept": len(axes) if call.attrs.keepdims else 0}
    rewriter.emit_plain(var, lines.folded, [along], f"line_{kind}", **options)
    return True


def _axes(call: Any, rank: int) -> list[int]:
    """The axes that disappear, in order; none if nothing is known of the shape."""
    given = call.attrs.axis
    return sorted(range(rank) if given is None else {int(axis) % rank for axis in given} if rank else ())


def _shaped(rewriter: Rewriter, data: Any, shape: Sequence[int]) -> Any:
    return rewriter.emit(relax.op.reshape(data, tuple(shape)))


def _rule(kind: str) -> Rule:
    def reduce(rewriter: Rewriter, var: Any, call: Any) -> bool:
        if shape_of(var) is None or str(var.ty.dtype) != "float32":
            return False
        return any(part(rewriter, var, call, kind=kind) for part in (_of_images, _of_lines))

    return reduce


RULES: dict[str, Rule] = {f"relax.{kind}": _rule(kind) for kind in _POOLS}
