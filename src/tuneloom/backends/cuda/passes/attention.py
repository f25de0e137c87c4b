"""Attention that a program writes out, as the one operator that it is.

Scores are a product, scaled, put through softmax and multiplied with the values. PyTorch also replaces rows
without any finite score by zeros, which can only be where a mask was added; there is none here.
"""

from typing import Any

from tuneloom.backends.cuda.passes.halves import HALF
from tuneloom.backends.cuda.passes.rewriting import (
    Lookup,
    constant_of,
    dtype_of,
    name_of,
    rewritten,
    shape_of,
)

_MOVING = frozenset(("reshape", "broadcast_to", "astype"))
_HEADS_LAST, _KEYS_LAST = (0, 2, 1, 3), (0, 1, 3, 2)


def attention_as_one(module: Any) -> Any:
    """The module with written-out attention as `relax.nn.attention`."""
    return rewritten(module, _joined)


def _joined(builder: Any, call: Any, made: Lookup) -> Any | None:
    from tvm import relax

    scores = _scores(call, made)
    if scores is None or shape_of(call) is None:
        return None
    product, scale = scores
    stripping = _Stripping(builder, made)
    query, keys, values = (stripping.of(one) for one in (*product.args, call.args[1]))
    parts = [stripping.in_heads(one) for one, _ in (query, keys, values)]
    if None in parts or len({dtype_of(one) for one in parts}) != 1 or dtype_of(parts[0]) not in _TYPES:
        return None
    parts[1] = builder.emit(relax.op.permute_dims(parts[1], _KEYS_LAST))
    turned = [builder.emit(relax.op.permute_dims(one, _HEADS_LAST)) for one in parts]
    whole = scale * query[1] * keys[1]
    done = builder.emit(relax.op.nn.attention(*turned, scale=whole))
    back = builder.emit(relax.op.permute_dims(done, _HEADS_LAST))
    wide = builder.emit(relax.op.astype(back, dtype_of(call))) if dtype_of(back) != dtype_of(call) else back
    result = builder.emit(relax.op.reshape(wide, shape_of(call)))
    return result if values[1] == 1.0 else relax.op.multiply(result, relax.const(values[1], dtype_of(call)))


_TYPES = HALF | {"float32"}


def _scores(call: Any, made: Lookup) -> tuple[Any, float] | None:
    """The product behind the softmax that a product reads, and what it is multiplied with."""
    if name_of(call) != "matmul":
        return None
    softmax = _softmax(made(_source(call.args[0], made)), made)
    if softmax is None:
        return None
    bound, scale = made(_source(softmax.args[0], made)), 1.0
    while name_of(bound) in ("multiply", "divide") and constant_of(bound.args[1]):
        scale *= _factor(bound)
        bound = made(_source(bound.args[0], made))
    batched = name_of(bound) == "matmul" and len(shape_of(bound) or ()) in (3, 4)
    return (bound, scale) if batched else None


def _factor(scaled: Any) -> float:
    number = constant_of(scaled.args[1]) or 1.0
    return number if name_of(scaled) == "multiply" else 1.0 / number


def _source(value: Any, made: Lookup) -> Any:
    """What a value was before casts, and before reshapes that only join batch and heads."""
    bound = made(value)
    while name_of(bound) in _MOVING and _keeps_matrices(bound):
        value = bound.args[0]
        bound = made(value)
    return value


def _keeps_matrices(moving: Any) -> bool:
    before, after = shape_of(moving.args[0]), shape_of(moving)
    return before is not None and after is not None and before[-2:] == after[-2:]


def _softmax(bound: Any, made: Lookup) -> Any | None:
    """The softmax over the last axis that a value is, also where rows without a finite score become zeros."""
    if name_of(bound) == "where" and name_of(made(bound.args[1])) in ("full_like", "zeros_like", "full"):
        bound = made(bound.args[2])
    if name_of(bound) != "nn.softmax":
        return None
    axis, rank = int(bound.attrs.axis), len(shape_of(bound) or ())
    return bound if axis in (-1, rank - 1) else None


class _Stripping:
    """Takes casts and factors off operands; what moves data is done again on what is left."""

    def __init__(self, builder: Any, made: Lookup) -> None:
        self._builder, self._made = builder, made

    def of(self, value: Any) -> tuple[Any, float]:
        """A value without casts from half precision and without factors, and the factors' product."""
        from tvm import relax

        bound = self._made(value)
        name = name_of(bound)
        if name == "astype" and dtype_of(bound.args[0]) in HALF:
            return self.of(bound.args[0])
        if name in ("multiply", "divide") and constant_of(bound.args[1]):
            inner, scale = self.of(bound.args[0])
            return inner, scale * _factor(bound)
        if name not in ("reshape", "broadcast_to", "permute_dims"):
            return value, 1.0
        inner, scale = self.of(bound.args[0])
        if inner is bound.args[0]:
            return value, scale
        moved = relax.Call(bound.op, [inner, *bound.args[1:]], bound.attrs)
        return self._builder.emit(moved), scale

    def in_heads(self, value: Any) -> Any | None:
        """A value with the axes batch, heads, rows and columns."""
        from tvm import relax

        shape = shape_of(value)
        if shape is None or len(shape) not in (3, 4):
            return None
        return value if len(shape) == 4 else self._builder.emit(relax.op.reshape(value, (1, *shape)))
