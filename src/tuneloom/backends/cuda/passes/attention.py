"""Attention that a program writes out, as the one operator that it is.

Scores are a product, scaled, with masks and biases added; then come softmax and a product with the values.
PyTorch also replaces rows without any finite score by zeros, which is what the operator gives for them.
"""

from math import prod
from typing import Any

from tuneloom.backends.cuda.passes.masks import Addend, added_bias
from tuneloom.backends.cuda.triton.templates.attention.finding import WIDEST
from tuneloom.compiler.hidden_rows import asked_about, asks_for_minus_infinity
from tuneloom.compiler.number_types import HALF
from tuneloom.compiler.rewriting import (
    Lookup,
    array_of,
    constant_of,
    dtype_of,
    name_of,
    number_of,
    rewritten,
    shape_of,
)

_MOVING = frozenset(("reshape", "broadcast_to", "astype"))
_HEADS_LAST, _KEYS_LAST = (0, 2, 1, 3), (0, 1, 3, 2)
_TYPES = HALF | {"float32"}
_HIDDEN = -1e4
"""A score that is replaced by so little, or less, counts for nothing."""
Scores = tuple[Any, float, tuple[Addend, ...]]
"""A product, what it is multiplied with, and what is added then."""


def attention_as_one(module: Any) -> Any:
    """The module with written-out attention as `relax.nn.attention`."""
    return rewritten(module, _joined)


def _joined(builder: Any, call: Any, made: Lookup) -> Any | None:
    from tvm import relax

    found = _written_out(call, made)
    if found is None or shape_of(call) is None:
        return None
    (product, scale, addends), outer = found
    stripping = _Stripping(builder, made)
    query, keys, values = (stripping.of(one) for one in (*product.args, call.args[1]))
    parts = [stripping.in_heads(one, outer) for one, _ in (query, keys, values)]
    if None in parts or len({dtype_of(one) for one in parts}) != 1 or dtype_of(parts[0]) not in _TYPES:
        return None
    if max((shape_of(parts[0]) or ())[-1], (shape_of(parts[2]) or ())[-1]) > WIDEST:
        return None  # channels that attend to each other have whole images as heads: two products are faster
    shape = (*outer, *(shape_of(product) or ())[-2:])
    added = added_bias(builder, addends, shape, dtype_of(parts[0]), made)
    if added is None:
        return None
    bias, causal = added
    parts[1] = builder.emit(relax.op.permute_dims(parts[1], _KEYS_LAST))
    turned = [builder.emit(relax.op.permute_dims(one, _HEADS_LAST)) for one in parts]
    whole = scale * query[1] * keys[1]
    done = builder.emit(relax.op.nn.attention(*turned, bias, scale=whole, causal_mask=causal))
    back = builder.emit(relax.op.permute_dims(done, _HEADS_LAST))
    wide = builder.emit(relax.op.astype(back, dtype_of(call))) if dtype_of(back) != dtype_of(call) else back
    result = builder.emit(relax.op.reshape(wide, shape_of(call)))
    return result if values[1] == 1.0 else relax.op.multiply(result, relax.const(values[1], dtype_of(call)))


def _written_out(call: Any, made: Lookup) -> tuple[Scores, tuple[int, int]] | None:
    """The scores behind the softmax that a product reads, and how many batches and heads there are."""
    if name_of(call) != "matmul":
        return None
    softmax = _softmax(made(_source(call.args[0], made)), made)
    scores = None if softmax is None else _scores(softmax.args[0], made)
    shape = shape_of(softmax)
    if scores is None or shape is None or len(shape) not in (3, 4):
        return None
    return scores, (shape[0], shape[1]) if len(shape) == 4 else (1, shape[0])


def _scores(value: Any, made: Lookup) -> Scores | None:
    bound = made(_source(value, made))
    name, shape = name_of(bound), shape_of(bound)
    if shape is None:
        return None
    if name == "matmul":
        return (bound, 1.0, ()) if len(shape) in (3, 4) else None
    if name in ("multiply", "divide"):
        return _scaled(bound, made)
    if name in ("add", "subtract"):
        return _biased(bound, made)
    return _hidden(bound, made) if name == "where" else None


def _scaled(bound: Any, made: Lookup) -> Scores | None:
    inner, other = bound.args
    if name_of(bound) == "multiply" and constant_of(inner) is not None:
        inner, other = other, inner
    number, found = constant_of(other), _scores(inner, made)
    if not number or found is None:
        return None
    factor = number if name_of(bound) == "multiply" else 1.0 / number
    product, scale, addends = found
    return product, scale * factor, tuple(each.times(factor) for each in addends)


def _biased(bound: Any, made: Lookup) -> Scores | None:
    one, other = bound.args
    minus = name_of(bound) == "subtract"
    for inner, bias in ((one, other),) if minus else ((one, other), (other, one)):
        found = _scores(inner, made) if shape_of(inner) == shape_of(bound) else None
        if found is not None:
            addend = Addend(bias, shape_of(bound) or (), -1.0 if minus else 1.0)
            return found[0], found[1], (*found[2], addend)
    return None


def _hidden(bound: Any, made: Lookup) -> Scores | None:
    """Scores of which a mask replaces some by next to nothing."""
    mask, one, other = bound.args
    for inner, instead, keeps in ((one, other, True), (other, one, False)):
        number = number_of(instead, made)
        found = _scores(inner, made) if number is not None and number <= _HIDDEN else None
        if found is not None:
            addend = Addend(mask, shape_of(bound) or (), keeps=keeps, hides=number)
            return found[0], found[1], (*found[2], addend)
    return None


def _source(value: Any, made: Lookup) -> Any:
    """What a value was before casts, and before reshapes that only join batch and heads."""
    bound = made(value)
    while name_of(bound) in _MOVING and _keeps_matrices(bound):
        value = bound.args[0]
        bound = made(value)
    return value


def _keeps_matrices(moving: Any) -> bool:
    before, after = shape_of(moving.args[0]), shape_of(moving)
    if before is None or after is None or before[-2:] != after[-2:]:
        return False
    return name_of(moving) != "broadcast_to" or before == after


def _softmax(bound: Any, made: Lookup) -> Any | None:
    """The softmax over the last axis that a value is, also where rows without a finite score become zeros."""
    if name_of(bound) == "where":
        for inner, other, inside in ((2, 1, False), (1, 2, True)):
            zeros = number_of(bound.args[other], made) == 0.0
            if zeros and _tells_of_no_key(bound.args[0], inside, made):
                bound = made(_source(bound.args[inner], made))
                break
    if name_of(bound) != "nn.softmax":
        return None
    axis, rank = int(bound.attrs.axis), len(shape_of(bound) or ())
    return bound if axis in (-1, rank - 1) else None


def _tells_of_no_key(mask: Any, inside: bool, made: Lookup) -> bool:
    """Whether a mask asks for scores of minus infinity, or is a constant that leaves all shares as they are.

    Any other mask hides shares for a reason of its own.
    """
    bound = asked_about(mask, made)
    if asks_for_minus_infinity(bound, made):
        return True
    array = array_of(bound)
    return array is not None and bool((array.astype(bool) == inside).all())


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
            number = constant_of(bound.args[1]) or 1.0
            return inner, scale * (number if name == "multiply" else 1.0 / number)
        if name not in ("reshape", "broadcast_to", "permute_dims"):
            return value, 1.0
        inner, scale = self.of(bound.args[0])
        if inner is bound.args[0]:
            return value, scale
        moved = relax.Call(bound.op, [inner, *bound.args[1:]], bound.attrs)
        return self._builder.emit(moved), scale

    def in_heads(self, value: Any, outer: tuple[int, int]) -> Any | None:
        """A value with the axes batch, heads, rows and columns."""
        from tvm import relax

        shape = shape_of(value)
        if shape is None or len(shape) < 3 or prod(shape[:-2]) != prod(outer):
            return None
        wanted = (*outer, *shape[-2:])
        return value if shape == wanted else self._builder.emit(relax.op.reshape(value, wanted))
