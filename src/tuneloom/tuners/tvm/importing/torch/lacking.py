"""PyTorch's operators that TVM's importer lacks, or means otherwise."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.torch.indexing import put_by_indices

Emit = Callable[[Any], Any]
Converter = Callable[[Emit, Any, Sequence[Any], Mapping[str, Any]], Any]
"""Gets a node, and its arguments with values in place of nodes."""


def like(value: float, x: Any) -> Any:
    """A number of the type of a tensor."""
    return relax.const(np.array(value), str(x.ty.dtype))


def _elu(emit: Emit, _node: Any, args: Sequence[Any], _: Mapping[str, Any]) -> Any:
    x = args[0]
    alpha, scale, input_scale = (*args[1:], 1.0, 1.0, 1.0)[:3]
    op = relax.op
    raised = emit(op.exp(emit(op.multiply(op.minimum(x, like(0.0, x)), like(input_scale, x)))))
    below = emit(op.multiply(emit(op.subtract(raised, like(1.0, x))), like(alpha * scale, x)))
    return emit(op.where(emit(op.greater(x, like(0.0, x))), emit(op.multiply(x, like(scale, x))), below))


def _reduced(name: str) -> Converter:
    def convert(emit: Emit, _node: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        x, axes, keep = (*args, None, False)[:3]
        wanted = [axes] if isinstance(axes, int) else list(axes or ())
        return emit(getattr(relax.op, name)(x, wanted or None, bool(keep)))

    return convert


def _var_mean(emit: Emit, node: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    x, axes = (*args, None)[:2]
    keep, correction = bool(options.get("keepdim")), options.get("correction")
    shape = [int(extent) for extent in x.ty.shape.values]
    places = list(range(len(shape))) if not axes else [axis % len(shape) for axis in axes]
    count = int(np.prod([shape[axis] for axis in places]))
    variance = emit(relax.op.variance(x, places, keep))
    less = 1.0 if correction is None else float(correction)
    if less:
        variance = emit(relax.op.multiply(variance, like(count / max(count - less, 0.0), x)))
    return variance, emit(relax.op.mean(x, places, keep))


def _of(*steps: Callable[[Any], Any]) -> Converter:
    """What some functions of one value make of it, one after the other."""

    def convert(emit: Emit, _node: Any, args: Sequence[Any], _: Mapping[str, Any]) -> Any:
        value = args[0]
        for step in steps:
            value = emit(step(value))
        return value

    return convert


def _exp2(x: Any) -> Any:
    return relax.op.exp(relax.op.multiply(x, like(np.log(2.0), x)))


def _erfc(x: Any) -> Any:
    return relax.op.subtract(like(1.0, x), relax.op.erf(x))


def _hypot(emit: Emit, _node: Any, args: Sequence[Any], _: Mapping[str, Any]) -> Any:
    squares = [emit(relax.op.multiply(one, one)) for one in args[:2]]
    return emit(relax.op.sqrt(emit(relax.op.add(*squares))))


def _known_of(better: str) -> Converter:
    """The greater or the smaller of two, or the one that is a number."""

    def convert(emit: Emit, _node: Any, args: Sequence[Any], _: Mapping[str, Any]) -> Any:
        one, other = args[:2]
        best = emit(getattr(relax.op, better)(one, other))
        best = emit(relax.op.where(emit(relax.op.isnan(one)), other, best))
        return emit(relax.op.where(emit(relax.op.isnan(other)), one, best))

    return convert


def _unfold(emit: Emit, _node: Any, args: Sequence[Any], _: Mapping[str, Any]) -> Any:
    """Windows of an axis, behind all others."""
    x, axis, size, step = args
    axis %= int(x.ty.ndim)
    begins = range(0, int(x.ty.shape[axis]) - size + 1, step)
    places = np.array([[begin + one for one in range(size)] for begin in begins])
    found = emit(relax.op.take(x, relax.const(places, "int64"), axis))
    order = [one for one in range(int(found.ty.ndim)) if one != axis + 1]
    return emit(relax.op.permute_dims(found, [*order, axis + 1]))


def _scatter_reduce(emit: Emit, node: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    x, axis, index, source, how = args[:5]
    reductions = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if how not in reductions or not options.get("include_self", True):
        raise ValueError(f"scatter_reduce by {how} of all but what is there is not imported")
    return emit(relax.op.scatter_elements(x, index, source, axis, reductions[how]))


def _group_norm(emit: Emit, _node: Any, args: Sequence[Any], _options: Mapping[str, Any]) -> Any:
    """TVM's own needs a scale and a shift."""
    x, scale, shift, *_, groups, epsilon = args
    return _norm_of_groups(emit, x, scale, shift, groups, epsilon)


def _instance_norm(emit: Emit, _node: Any, args: Sequence[Any], _options: Mapping[str, Any]) -> Any:
    """Each channel of each image is a group of its own."""
    x, scale, shift, *_, epsilon, _ = args
    return _norm_of_groups(emit, x, scale, shift, int(x.ty.shape[1]), epsilon)


def _norm_of_groups(emit: Emit, x: Any, scale: Any, shift: Any, groups: int, epsilon: float) -> Any:
    ones = np.ones(int(x.ty.shape[1]))
    scale, shift = (
        relax.const(ones * plain, str(x.ty.dtype)) if given is None else given
        for given, plain in ((scale, 1.0), (shift, 0.0))
    )
    places = {"num_groups": groups, "channel_axis": 1, "axes": list(range(2, int(x.ty.ndim)))}
    return emit(relax.op.nn.group_norm(x, scale, shift, epsilon=epsilon, **places))


def _put_at(emit: Emit, _node: Any, args: Sequence[Any], _: Mapping[str, Any]) -> Any:
    x, indices, values, adds = (*args, False)[:4]
    return put_by_indices(emit, x, indices, values, bool(adds))


def _max_pool_with_places(usual: Callable[[Any], Any], node: Any) -> Any:
    if any(user.args[1] != 0 for user in node.users):
        raise ValueError("where maxima are is not imported")
    return usual(node)


CONVERTERS: Mapping[str, Converter] = {
    "elu.default": _elu,
    "amax.default": _reduced("max"),
    "amin.default": _reduced("min"),
    "prod.dim_int": _reduced("prod"),
    "var_mean.correction": _var_mean,
    "exp2.default": _of(_exp2),
    "erfc.default": _of(_erfc),
    "hypot.default": _hypot,
    "fmax.default": _known_of("maximum"),
    "fmin.default": _known_of("minimum"),
    "unfold.default": _unfold,
    "scatter_reduce.two": _scatter_reduce,
    "index_put.default": _put_at,
    "native_group_norm.default": _group_norm,
    "instance_norm.default": _instance_norm,
}
without_places = partial(partial, _max_pool_with_places)
"""A pool's converter that refuses programs which ask where the maxima are."""
