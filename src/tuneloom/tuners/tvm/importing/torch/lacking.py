"""PyTorch's operators that TVM's importer lacks, or means otherwise."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import shape_of
from tuneloom.tuners.tvm.importing.torch.indexing import Emit, put_by_indices

Converter = Callable[..., Any]
"""Gets what emits a call, and all arguments of the operator in the order of its schema."""


def like(value: float, x: Any) -> Any:
    """A number of the type of a tensor."""
    return relax.const(np.array(value), str(x.ty.dtype))


def _elu(emit: Emit, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    op = relax.op
    raised = emit(op.exp(emit(op.multiply(op.minimum(x, like(0.0, x)), like(input_scale, x)))))
    below = emit(op.multiply(emit(op.subtract(raised, like(1.0, x))), like(alpha * scale, x)))
    return emit(op.where(emit(op.greater(x, like(0.0, x))), emit(op.multiply(x, like(scale, x))), below))


def _greatest(emit: Emit, x: Any, axes: Sequence[int], keep: bool) -> Any:
    return emit(relax.op.max(x, list(axes) or None, keep))


def _least(emit: Emit, x: Any, axes: Sequence[int], keep: bool) -> Any:
    return emit(relax.op.min(x, list(axes) or None, keep))


def _prod(emit: Emit, x: Any, axis: int, keep: bool, _dtype: Any) -> Any:
    return emit(relax.op.prod(x, axis, keep))


def _var_mean(emit: Emit, x: Any, axes: Sequence[int] | None, correction: float | None, keep: bool) -> Any:
    shape = shape_of(x)
    places = [axis % len(shape) for axis in axes] if axes else list(range(len(shape)))
    count, less = math.prod(shape[axis] for axis in places), 1.0 if correction is None else correction
    variance = emit(relax.op.variance(x, places, keep))
    if less:
        factor = count / (count - less) if count > less else math.inf
        variance = emit(relax.op.multiply(variance, like(factor, x)))
    return variance, emit(relax.op.mean(x, places, keep))


def _exp2(emit: Emit, x: Any) -> Any:
    return emit(relax.op.exp(emit(relax.op.multiply(x, like(math.log(2.0), x)))))


def _erfc(emit: Emit, x: Any) -> Any:
    return emit(relax.op.subtract(like(1.0, x), emit(relax.op.erf(x))))


def _hypot(emit: Emit, one: Any, other: Any) -> Any:
    squares = [emit(relax.op.multiply(x, x)) for x in (one, other)]
    return emit(relax.op.sqrt(emit(relax.op.add(*squares))))


def _fmax(emit: Emit, one: Any, other: Any) -> Any:
    return _number(emit, emit(relax.op.maximum(one, other)), one, other)


def _fmin(emit: Emit, one: Any, other: Any) -> Any:
    return _number(emit, emit(relax.op.minimum(one, other)), one, other)


def _number(emit: Emit, best: Any, one: Any, other: Any) -> Any:
    """The better of two, or the one that is a number."""
    best = emit(relax.op.where(emit(relax.op.isnan(one)), other, best))
    return emit(relax.op.where(emit(relax.op.isnan(other)), one, best))


def _unfold(emit: Emit, x: Any, axis: int, size: int, step: int) -> Any:
    """Windows of an axis, behind all others."""
    axis %= len(shape_of(x))
    begins = np.arange(0, shape_of(x)[axis] - size + 1, step)
    places = begins[:, None] + np.arange(size)
    found = emit(relax.op.take(x, relax.const(places, "int64"), axis))
    order = [one for one in range(int(found.ty.ndim)) if one != axis + 1]
    return emit(relax.op.permute_dims(found, [*order, axis + 1]))


def _scatter_reduce(
    emit: Emit, x: Any, axis: int, index: Any, source: Any, how: str, include_self: bool
) -> Any:
    reductions = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if how not in reductions:
        raise ValueError(f"scatter_reduce by {how} is not imported")
    if not include_self:
        raise ValueError("scatter_reduce without include_self is not imported")
    return emit(relax.op.scatter_elements(x, index, source, axis, reductions[how]))


def _group_norm(emit: Emit, x: Any, scale: Any, shift: Any, *sizes: Any) -> Any:
    """TVM's own needs a scale and a shift."""
    *_, groups, epsilon = sizes
    return _norm_of_groups(emit, x, scale, shift, groups, epsilon)


def _instance_norm(emit: Emit, x: Any, scale: Any, shift: Any, *others: Any) -> Any:
    """Each channel of each image is a group of its own."""
    *_, epsilon, _cudnn = others
    return _norm_of_groups(emit, x, scale, shift, shape_of(x)[1], epsilon)


def _norm_of_groups(emit: Emit, x: Any, scale: Any, shift: Any, groups: int, epsilon: float) -> Any:
    ones = np.ones(shape_of(x)[1])
    scale, shift = (
        relax.const(ones * plain, str(x.ty.dtype)) if given is None else given
        for given, plain in ((scale, 1.0), (shift, 0.0))
    )
    places = {"num_groups": groups, "channel_axis": 1, "axes": list(range(2, int(x.ty.ndim)))}
    return emit(relax.op.nn.group_norm(x, scale, shift, epsilon=epsilon, **places))


CONVERTERS: Mapping[str, Converter] = {
    "elu.default": _elu,
    "amax.default": _greatest,
    "amin.default": _least,
    "prod.dim_int": _prod,
    "var_mean.correction": _var_mean,
    "exp2.default": _exp2,
    "erfc.default": _erfc,
    "hypot.default": _hypot,
    "fmax.default": _fmax,
    "fmin.default": _fmin,
    "unfold.default": _unfold,
    "scatter_reduce.two": _scatter_reduce,
    "index_put.default": put_by_indices,
    "native_group_norm.default": _group_norm,
    "instance_norm.default": _instance_norm,
}
