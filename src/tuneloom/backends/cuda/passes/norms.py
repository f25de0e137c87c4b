"""Batch norms as part of the convolution or product before them.

TVM folds those that follow a convolution directly. Programs in half precision have a cast in between, and
others a bias. Weights are multiplied in double precision and rounded once.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tuneloom.backends.cuda.passes.long_norms import normed_by_channel
from tuneloom.compiler.number_types import numpy_type
from tuneloom.compiler.rewriting import (
    Lookup,
    array_of,
    dtype_of,
    name_of,
    rewritten,
    shape_of,
)

_LONGEST_ROW = 32768
_PRODUCT = "matmul"
_CONVOLUTIONS = frozenset(f"nn.conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose"))


@dataclass(frozen=True, slots=True)
class Affine:
    """A factor and a summand for each channel along an axis."""

    scale: Any
    shift: Any
    axis: int

    def along(self, values: Any, rank: int, dtype: str) -> Any:
        """One value a channel as a constant that is broadcast over the other axes."""
        from tvm import relax

        shape = [1] * rank
        shape[self.axis] = len(values)
        return relax.const(np.asarray(values, np.float32).reshape(shape).astype(numpy_type(dtype)), dtype)


def norms_folded(module: Any) -> Any:
    """The module without batch norms whose statistics are constants; group norms are norms of rows."""
    return rewritten(rewritten(module, _folded), _of_rows)


def _of_rows(builder: Any, call: Any, made: Lookup) -> Any | None:
    """A group norm as a layer norm of all elements of a group, scaled for each channel behind."""
    from tvm import relax

    shape = shape_of(call) if name_of(call) == "nn.group_norm" else None
    weights = [_constant(one, made) for one in call.args[1:]] if shape is not None else [None]
    if shape is None or any(one is None for one in weights) or int(call.attrs.channel_axis) != 1:
        return None
    groups, dtype = int(call.attrs.num_groups), dtype_of(call)
    length = prod(shape[1:]) // groups
    if len(call.attrs.axes) != len(shape) - 2:
        return None
    affine = Affine(weights[0], weights[1], 1)
    if length > _LONGEST_ROW:
        pair = [affine.along(one, len(shape), "float32") for one in (affine.scale, affine.shift)]
        return normed_by_channel(builder, call, *pair)
    rows = builder.emit(relax.op.reshape(call.args[0], (shape[0] * groups, length)))
    plain = [relax.const(np.full(length, one, numpy_type(dtype)), dtype) for one in (1.0, 0.0)]
    normed = builder.emit(relax.op.nn.layer_norm(rows, *plain, axes=[-1], epsilon=call.attrs.epsilon))
    scale, shift = (affine.along(one, len(shape), dtype) for one in weights)
    scaled = builder.emit(relax.op.multiply(builder.emit(relax.op.reshape(normed, shape)), scale))
    return relax.op.add(scaled, shift)


def _folded(builder: Any, field: Any, made: Lookup) -> Any | None:
    from tvm import relax

    norm = made(field.tuple_value) if isinstance(field, relax.TupleGetItem) and field.index == 0 else None
    affine = _affine(norm, made) if name_of(norm) == "nn.batch_norm" else None
    if norm is None or affine is None:
        return None
    shape = shape_of(norm.args[0]) or ()
    found = _product(norm.args[0], affine.axis == len(shape) - 1, made)
    changed = None if found is None else _scaled(builder, found[0], affine, made)
    if found is None or changed is None:
        return _written_out(builder, norm.args[0], affine)
    if name_of(found[0]) == _PRODUCT and shape_of(found[0]) != shape:
        changed = builder.emit(relax.op.reshape(changed, shape))
    bias = affine.shift + (0.0 if found[1] is None else found[1] * affine.scale)
    added = builder.emit(relax.op.add(changed, affine.along(bias, len(shape), dtype_of(changed))))
    return (
        added if dtype_of(added) == dtype_of(norm.args[0]) else relax.op.astype(added, dtype_of(norm.args[0]))
    )


def _affine(norm: Any, made: Lookup) -> Affine | None:
    """What a batch norm does to each channel; None if that is known only when the model runs."""
    values = [_constant(one, made) for one in norm.args[1:]]
    rank = len(shape_of(norm.args[0]) or ())
    if any(one is None for one in values) or not rank or norm.attrs.training:
        return None
    gamma, beta, mean, variance = (np.asarray(one, np.float64).reshape(-1) for one in values)
    scale = (gamma if norm.attrs.scale else 1.0) / np.sqrt(variance + float(norm.attrs.epsilon))
    shift = (beta if norm.attrs.center else 0.0) - mean * scale
    return Affine(scale, shift, int(norm.attrs.axis) % rank)


def _constant(value: Any, made: Lookup) -> Any | None:
    """The content of a constant, also behind a cast."""
    bound = made(value)
    return array_of(made(bound.args[0]) if name_of(bound) == "astype" else bound)


def _product(value: Any, last: bool, made: Lookup) -> tuple[Any, Any | None] | None:
    """The convolution or product that a value is, with the bias for each channel that was added to it.

    Whether channels are the `last` axis: rows of a product may have been put in another order.
    """
    bound, bias = _as_rows(_uncast(made(value), made), last, made), None
    if name_of(bound) == "add":
        bias = _constant(bound.args[1], made)
        if bias is None or bias.size != (shape_of(bound) or (0, 0))[-1 if last else 1]:
            return None
        bias = np.asarray(bias, np.float64).reshape(-1)
        bound = _as_rows(_uncast(made(bound.args[0]), made), last, made)
    known = name_of(bound) == _PRODUCT if last else name_of(bound) in _CONVOLUTIONS
    return (bound, bias) if known else None


def _as_rows(bound: Any, last: bool, made: Lookup) -> Any:
    """What was reshaped, if that left the last axis as it was."""
    while last and name_of(bound) == "reshape":
        before = made(bound.args[0])
        if (shape_of(before) or (0,))[-1] != (shape_of(bound) or (1,))[-1]:
            break
        bound = before
    return bound


def _uncast(bound: Any, made: Lookup) -> Any:
    return made(bound.args[0]) if name_of(bound) == "astype" else bound


def _scaled(builder: Any, product: Any, affine: Affine, made: Lookup) -> Any | None:
    """The product with its weights multiplied; None if they are not constant or in other groups."""
    from tvm import relax

    weights = _constant(product.args[1], made)
    axis = None if weights is None else _outputs(product, weights, affine)
    if weights is None or axis is None:
        return None
    shape = [1] * weights.ndim
    shape[axis] = len(affine.scale)
    scaled = (np.asarray(weights, np.float64) * affine.scale.reshape(shape)).astype(weights.dtype)
    constant = relax.const(scaled, str(weights.dtype))
    wanted = dtype_of(product.args[1])
    operand = constant if str(weights.dtype) == wanted else builder.emit(relax.op.astype(constant, wanted))
    return builder.emit(relax.Call(product.op, [product.args[0], operand], product.attrs))


def _outputs(product: Any, weights: Any, affine: Affine) -> int | None:
    """The axis of weights along which there is one number of outputs each; None if a norm has another."""
    if name_of(product) == _PRODUCT:
        return 1 if weights.ndim == 2 and weights.shape[1] == len(affine.scale) else None
    layout = str(product.attrs.kernel_layout)
    turned = "transpose" in name_of(product) and int(product.attrs.groups) > 1
    axis = str(product.attrs.out_layout or product.attrs.data_layout).find("C")
    return layout.index("O") if layout.isalpha() and not turned and axis == affine.axis else None


def _written_out(builder: Any, value: Any, affine: Affine) -> Any:
    """A product and a sum for each channel, in single precision."""
    from tvm import relax

    rank, dtype = len(shape_of(value) or ()), dtype_of(value)
    wide = value if dtype == "float32" else builder.emit(relax.op.astype(value, "float32"))
    factor, summand = (affine.along(one, rank, "float32") for one in (affine.scale, affine.shift))
    done = relax.op.add(builder.emit(relax.op.multiply(wide, factor)), summand)
    return done if dtype == "float32" else relax.op.astype(builder.emit(done), dtype)
