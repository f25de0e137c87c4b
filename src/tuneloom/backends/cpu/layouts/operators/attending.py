"""Attention, found as exporters write it out: two products with a softmax between them."""

from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.layouts.expressions import scalar
from tuneloom.backends.cpu.layouts.kernels.attention import attention, pays
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes import matrices
from tuneloom.compiler.rewriting import shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """What a softmax is taken of: queries times keys (…, inner, count), times a scale, plus a mask."""

    queries: Any
    keys: Any
    scale: float = 1.0
    mask: Any = None


def _attention(rewriter: Rewriter, var: Any, call: Any) -> bool:
    weights = rewriter.made_by(call.args[0], "nn.softmax")
    if weights is None or not rewriter.read_once(call.args[0]) or str(var.ty.dtype) != "float32":
        return False
    found, shape = _scores(rewriter, weights.args[0], 1.0), shape_of(weights.args[0])
    if found is None or shape is None or int(weights.attrs.axis) not in (-1, len(shape) - 1):
        return False
    if not _fits(found, call.args[1], shape) or not pays(shape, rewriter.lanes):
        return False
    _emit(rewriter, var, found, call.args[1])
    return True


def _scores(rewriter: Rewriter, expression: Any, scale: float, mask: Any = None) -> _Scores | None:
    """The product that scores come from; None if it is not there, or read by others as well."""
    if not rewriter.read_once(expression):
        return None
    made = rewriter.made_by(expression, "matmul")
    if made is not None:
        return _Scores(queries=made.args[0], keys=made.args[1], scale=scale, mask=mask)
    for name in ("multiply", "divide"):
        made = rewriter.made_by(expression, name)
        factor = scalar(made.args[1]) if made is not None else None
        if made is not None and factor:
            return _scores(
                rewriter, made.args[0], scale * (factor if name == "multiply" else 1 / factor), mask
            )
    made = rewriter.made_by(expression, "add")
    if made is None or mask is not None or scale != 1.0:  # a mask would have to be scaled too
        return None
    sides = [
        _scores(rewriter, made.args[0], 1.0, made.args[1]),
        _scores(rewriter, made.args[1], 1.0, made.args[0]),
    ]
    return next((one for one in sides if one is not None), None)


def _fits(found: _Scores, values: Any, shape: tuple[int, ...]) -> bool:
    """Whether all matrices are there, each with its own keys and values, and the mask can be broadcast."""
    queries, keys, summed = (shape_of(one) for one in (found.queries, found.keys, values))
    if queries is None or keys is None or summed is None or len(shape) < 2:
        return False
    if not queries[:-2] == keys[:-2] == summed[:-2] == shape[:-2]:
        return False
    if found.mask is None:
        return True
    mask = shape_of(found.mask)
    if mask is None or len(mask) > len(shape) or str(found.mask.ty.dtype) != "float32":
        return False
    return all(one in (1, other) for one, other in zip(reversed(mask), reversed(shape), strict=False))


def _emit(rewriter: Rewriter, var: Any, found: _Scores, values: Any) -> None:
    given = [rewriter.value(one) for one in (found.queries, found.keys, values)]
    queries, keys, summed = map(rewriter.plain, given)
    rows, count, width = given[0].shape[-2], given[1].shape[-1], given[2].shape[-1]
    panels = [
        rewriter.kernel(
            matrices.to_panels, [one], "to_panels", panel=matrices.panel_width(rows, columns, rewriter.lanes)
        )
        for one, columns in ((keys, count), (summed, width))
    ]
    mask = [] if found.mask is None else [rewriter.plain_tree(found.mask)]
    options = {"count": count, "width": width, "scale": found.scale, "lanes": rewriter.lanes}
    rewriter.emit_plain(var, attention, [queries, *panels, *mask], "attention", **options)


RULES: dict[str, Rule] = {"relax.matmul": _attention}
