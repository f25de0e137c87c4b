"""Softmax and normalisations over the last axis, each as one kernel."""

from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.layouts.expressions import scalar
from tuneloom.backends.cpu.layouts.kernels import lines
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of


def _softmax(rewriter: Rewriter, var: Any, call: Any) -> bool:
    shape = shape_of(var)
    if shape is None or not _last(int(call.attrs.axis), shape) or not _float(var):
        return False
    data = rewriter.plain(rewriter.value(call.args[0]))
    rewriter.emit_plain(var, lines.softmax, [data], "line_softmax", lanes=rewriter.lanes)
    return True


def _layer_norm(rewriter: Rewriter, var: Any, call: Any) -> bool:
    return _norm(rewriter, var, call, centred=True)


def _rms_norm(rewriter: Rewriter, var: Any, call: Any) -> bool:
    return _norm(rewriter, var, call, centred=False)


def _norm(rewriter: Rewriter, var: Any, call: Any, *, centred: bool) -> bool:
    shape, attrs = shape_of(var), call.attrs
    axes = [int(axis) for axis in attrs.axes]
    if shape is None or len(axes) != 1 or not _last(axes[0], shape) or not _float(var):
        return False
    data = rewriter.plain(rewriter.value(call.args[0]))
    options = {"lanes": rewriter.lanes, "epsilon": float(attrs.epsilon), "centred": centred}
    result = rewriter.kernel(lines.normalised, [data], "line_normalised", **options)
    operators = (relax.op.multiply, relax.op.add)
    used = [True, not centred or bool(getattr(attrs, "center", True))]
    for operator, weight, wanted in zip(operators, call.args[1:], used, strict=False):
        if wanted:
            result = rewriter.emit(operator(result, rewriter.plain_tree(weight)))
    rewriter.bind_plain(var, result)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standardised:
    """What a chain of operators turned out to be: lines minus their mean over their deviation."""

    data: Any
    epsilon: float


def _divide(rewriter: Rewriter, var: Any, call: Any) -> bool:
    found = _standardised(rewriter, call)
    if found is None or not _float(var):
        return False
    data = rewriter.plain(rewriter.value(found.data))
    options = {"lanes": rewriter.lanes, "epsilon": found.epsilon}
    rewriter.emit_plain(var, lines.normalised, [data], "line_normalised", **options)
    return True


def _standardised(rewriter: Rewriter, call: Any) -> _Standardised | None:
    """`(x - mean(x)) / sqrt(variance(x) + epsilon)` over the last axis, as exporters write it out."""
    away, root = rewriter.made_by(call.args[0], "subtract"), rewriter.made_by(call.args[1], "sqrt")
    total = rewriter.made_by(root.args[0], "add") if root is not None else None
    if away is None or total is None or (epsilon := scalar(total.args[1])) is None:
        return None
    data = away.args[0]
    centre, spread = rewriter.made_by(away.args[1], "mean"), _spread(rewriter, total.args[0], call.args[0])
    if centre is None or spread is None or not centre.args[0].same_as(data):
        return None
    shape = shape_of(data) or ()
    fits = all(_lines_of(one, shape) for one in (centre, spread))
    right = spread.args[0].same_as(data) or spread.op.name == "relax.mean"
    return _Standardised(data=data, epsilon=epsilon) if fits and right else None


def _spread(rewriter: Rewriter, expression: Any, away: Any) -> Any:
    """The call that computes the variance: as such, or as the mean of squares of what is `away`."""
    direct = rewriter.made_by(expression, "variance")
    if direct is not None:
        return direct
    squares = rewriter.made_by(expression, "mean")
    source = squares.args[0] if squares is not None else None
    power, product = rewriter.made_by(source, "power"), rewriter.made_by(source, "multiply")
    if power is not None and power.args[0].same_as(away) and scalar(power.args[1]) == 2.0:
        return squares
    if product is not None and all(side.same_as(away) for side in product.args):
        return squares
    return None


def _lines_of(call: Any, shape: tuple[int, ...]) -> bool:
    axes = [int(axis) for axis in call.attrs.axis or ()]
    return len(axes) == 1 and _last(axes[0], shape) and bool(call.attrs.keepdims)


def _last(axis: int, shape: tuple[int, ...]) -> bool:
    return len(shape) > 0 and axis in (-1, len(shape) - 1)


def _float(var: Any) -> bool:
    return str(var.ty.dtype) == "float32"


RULES: dict[str, Rule] = {
    "relax.nn.softmax": _softmax,
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.rms_norm": _rms_norm,
    "relax.divide": _divide,
}
