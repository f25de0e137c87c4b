"""Softmax, normalisations and sums over the last axis, written as tensor expressions.

Every line is summed in vectors first: several sums side by side, which become one vector,
whose own sum comes last. What does not fill a vector is taken in there.
"""

from collections.abc import Callable
from typing import Any

from tuneloom.backends.cpu.layouts.kernels.extremes import fold_of
from tuneloom.compiler.lazy import te, tirx, topi

Read = Callable[..., Any]
"""The value at an index."""
_CHAINS = 4
"""Vectors summed side by side, so that one sum need not wait for the one before."""


def softmax(data: Any, lanes: int) -> Any:
    """Exponentials of a line divided by their sum."""
    largest = reduced(lambda *at: data[at], data.shape, lanes, "max")
    moved = te.compute(data.shape, lambda *at: data[at] - largest[at[:-1]], name="moved")
    powers = topi.fast_exp(moved)
    total = reduced(lambda *at: powers[at], data.shape, lanes, "sum")
    share = te.compute(total.shape, lambda *at: te.const(1.0, data.dtype) / total[at], name="share")
    return te.compute(data.shape, lambda *at: powers[at] * share[at[:-1]], name="line_softmax")


def normalised(data: Any, lanes: int, epsilon: float, centred: bool = True) -> Any:
    """A line minus its mean, divided by its standard deviation (or its root mean square)."""
    part = te.const(1.0 / int(data.shape[-1]), data.dtype)
    away = data
    if centred:
        total = reduced(lambda *at: data[at], data.shape, lanes, "sum")
        away = te.compute(data.shape, lambda *at: data[at] - total[at[:-1]] * part, name="away")
    square = reduced(lambda *at: away[at] * away[at], data.shape, lanes, "sum")
    scale = te.compute(
        square.shape,
        lambda *at: te.const(1.0, data.dtype) / te.sqrt(square[at] * part + te.const(epsilon, data.dtype)),
        name="scale",
    )
    return te.compute(data.shape, lambda *at: away[at] * scale[at[:-1]], name="line_normalised")


def folded(data: Any, lanes: int, kind: str, kept: int) -> Any:
    """The sum, mean, largest or smallest value of every line, and so many axes of one value after it."""
    total = reduced(lambda *at: data[at], data.shape, lanes, kind)
    if kind == "mean":
        part, whole = te.const(1.0 / int(data.shape[-1]), data.dtype), total
        total = te.compute(whole.shape, lambda *at: whole[at] * part, name="line_share")
    if not kept:
        return total
    rank = len(total.shape)
    return te.compute((*total.shape, *[1] * kept), lambda *at: total[at[:rank]], name="line_kept")


def reduced(read: Read, shape: Any, lanes: int, kind: str) -> Any:
    """The sum, the largest or the smallest value of every line."""
    fold = fold_of(kind, "float32")
    *lead, length = (int(extent) for extent in shape)
    wide = lanes * _CHAINS if length >= 2 * lanes * _CHAINS else lanes
    whole = length // wide * wide
    if not whole:
        k = te.reduce_axis((0, length), name="k")
        return te.compute(lead, lambda *at: fold(read(*at, k), axis=[k]), name=f"line_{kind}")
    r = te.reduce_axis((0, length // wide), name="r")
    parts = te.compute(
        (*lead, wide),
        lambda *at: fold(read(*at[:-1], r * wide + at[-1]), axis=[r]),
        name=f"line_parts_{kind}",
    )
    if wide > lanes:
        c = te.reduce_axis((0, _CHAINS), name="c")
        chains = parts
        parts = te.compute(
            (*lead, lanes),
            lambda *at: fold(chains[*at[:-1], c * lanes + at[-1]], axis=[c]),
            name=f"line_lanes_{kind}",
        )
    k = te.reduce_axis((0, lanes + length - whole), name="k")

    def rest(*at: Any) -> Any:
        if whole == length:
            return parts[*at, k]
        return tirx.if_then_else(
            k < lanes, parts[*at, te.min(k, lanes - 1)], read(*at, te.max(k - lanes, 0) + whole)
        )

    return te.compute(lead, lambda *at: fold(rest(*at), axis=[k]), name=f"line_{kind}")
