"""What is added to scores of attention: as one bias, or as the causal mask that it amounts to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.compiler.rewriting import Lookup, array_of, shape_of

_HIDDEN = -1e4
Array = NDArray[Any]
Bias = tuple[Any | None, str | None]
"""The bias, and the name of the causal mask; neither where nothing is left to add."""


@dataclass(frozen=True, slots=True)
class Addend:
    """What is added to scores of shape `view`: a value times a factor.

    Where `hides` is a number, the value is a mask, and that number is added where the mask is not `keeps`.
    """

    value: Any
    view: tuple[int, ...]
    factor: float = 1.0
    keeps: bool = True
    hides: float | None = None

    def times(self, factor: float) -> "Addend":
        """The same for scores that are multiplied afterwards."""
        return replace(self, factor=self.factor * factor)


def added_bias(
    builder: Any, addends: Sequence[Addend], shape: tuple[int, ...], dtype: str, made: Lookup
) -> Bias | None:
    """The bias of scores of `shape` (batch, heads, queries, keys) in a type; None if it can't be had."""
    known = [array_of(made(each.value)) for each in addends]
    found = [_placed(each, shape) for each in addends]
    places = [each for each in found if each is not None]
    if len(places) < len(found):
        return None
    if all(array is not None for array in known):
        return _constant(builder, addends, known, places, shape, dtype)
    total: Any = None
    for addend, place in zip(addends, places, strict=True):
        one = _emitted(builder, addend, place, dtype)
        total = one if total is None else _emit(builder, "add", total, one)
    return total, None


Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def _placed(addend: Addend, shape: tuple[int, ...]) -> Shapes | None:
    """The shape that a value is broadcast to before it gets four axes, and those."""
    own, view = shape_of(addend.value), addend.view
    if own is None or len(own) > len(view):
        return None
    own = (*[1] * (len(view) - len(own)), *own)
    outer = view[:-2]
    cut = next((n for n in range(len(outer) + 1) if prod(outer[:n]) == shape[0]), None)
    if cut is None or prod(outer[cut:]) != shape[1]:
        return None
    groups = [_spread(own[part], view[part]) for part in (slice(0, cut), slice(cut, len(outer)))]
    keys = _spread(own[-1:], view[-1:], always=True)
    wide = (*groups[0], *groups[1], own[-2], *keys)
    return wide, (prod(groups[0]), prod(groups[1]), own[-2], *keys)


def _spread(own: tuple[int, ...], view: tuple[int, ...], *, always: bool = False) -> tuple[int, ...]:
    """Axes as they are if they are all of the view's or all 1, else the view's."""
    return own if own == view or (prod(own) == 1 and not always) else view


def _constant(
    builder: Any, addends: Sequence[Addend], known: Sequence[Any], places: Sequence[Any],
    shape: tuple[int, ...], dtype: str,
) -> Bias:  # fmt: skip
    from tvm import relax

    total: Array = np.zeros((1, 1, 1, shape[-1]), np.float32)
    for addend, array, (wide, four) in zip(addends, known, places, strict=True):
        value = _hiding(addend, array) if addend.hides is not None else array.astype(np.float32)
        padded = value.reshape((1,) * (len(wide) - value.ndim) + value.shape)
        total = total + np.broadcast_to(padded, wide).reshape(four) * np.float32(addend.factor)
    causal = _causal(total, shape)
    if causal is not None or not total.any():
        return None, causal
    return _cast(builder, relax.const(total.astype(np.float32)), dtype), None


def _hiding(addend: Addend, mask: Array) -> Array:
    kept = mask.astype(bool) == addend.keeps
    return np.where(kept, np.float32(0), np.float32(addend.hides or 0))


def _causal(total: Array, shape: tuple[int, ...]) -> str | None:
    """The name of the causal mask that a bias amounts to."""
    queries, keys = shape[-2:]
    if total.shape != (1, 1, queries, keys):
        return None
    for name, shift in (("TopLeft", 0), ("BottomRight", keys - queries)):
        seen = np.tri(queries, keys, shift, dtype=bool)
        if (total[0, 0][seen] == 0).all() and (total[0, 0][~seen] <= _HIDDEN).all() and not seen.all():
            return name
    return None


def _emitted(builder: Any, addend: Addend, place: Shapes, dtype: str) -> Any:
    from tvm import relax

    wide, four = place
    value = addend.value
    if addend.hides is not None:
        numbers = [relax.const(np.asarray(one, np.float32)) for one in (0.0, addend.hides * addend.factor)]
        value = _emit(builder, "where", value, *(numbers if addend.keeps else numbers[::-1]))
    elif addend.factor != 1.0:
        factor = relax.const(addend.factor, str(value.ty.dtype))
        value = _emit(builder, "multiply", value, factor)
    value = _cast(builder, value, dtype)
    if prod(wide) != prod(shape_of(value) or ()):
        value = _emit(builder, "broadcast_to", value, wide)
    return value if shape_of(value) == four else _emit(builder, "reshape", value, four)


def _cast(builder: Any, value: Any, dtype: str) -> Any:
    return value if str(value.ty.dtype) == dtype else _emit(builder, "astype", value, dtype)


def _emit(builder: Any, name: str, *operands: Any) -> Any:
    from tvm import relax

    return builder.emit(getattr(relax.op, name)(*operands))
