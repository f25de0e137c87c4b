"""Adaptive pools whose windows differ in size, as loops of constant length.

TVM's own loops are as long as each window, and none of its rules binds such loops to a GPU's threads.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from tuneloom.compiler.summing import summing_loops

_POOLED = {"avg": ("sum", 0.0), "max": ("max", float("-inf"))}


def are_uneven(extents: Sequence[Any], sizes: Sequence[Any]) -> bool:
    """Whether extents are known, and some windows of theirs are longer than others or overlap."""
    known = [getattr(one, "value", one) for one in (*extents, *sizes)]
    pairs = zip(known[: len(extents)], known[len(extents) :], strict=True)
    return all(isinstance(one, int) for one in known) and any(extent % size for extent, size in pairs)


def pooled(data: Any, axes: Sequence[int], sizes: Sequence[int], kind: str) -> Any:
    """The mean or the largest value of each window; sums are in single precision."""
    from tvm import te, tirx

    reduction, neutral = _POOLED[kind]
    extents = [int(data.shape[axis]) for axis in axes]
    turns = [te.reduce_axis((0, _longest(*pair))) for pair in zip(extents, sizes, strict=True)]
    wide = "float32" if kind == "avg" else str(data.dtype)
    shape = list(data.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size

    def windows(place: Sequence[Any]) -> list[tuple[Any, Any]]:
        pairs = zip(axes, extents, sizes, strict=True)
        return [_window(place[axis], extent, size) for axis, extent, size in pairs]

    def gathered(*place: Any) -> Any:
        source, inside = list(place), []
        for axis, turn, extent, (begin, length) in zip(axes, turns, extents, windows(place), strict=True):
            source[axis] = tirx.min(begin + turn, extent - 1)
            inside.append(turn < length)
        value = tirx.if_then_else(
            tirx.all(*inside), data[tuple(source)].astype(wide), tirx.const(neutral, wide)
        )
        return getattr(te, reduction)(value, axis=turns)

    found = te.compute(shape, gathered, name=f"adaptive_{kind}")
    if kind == "max":
        return found

    def divided(*place: Any) -> Any:
        count = prod(length for _, length in windows(place))
        return (found[place] / count.astype(wide)).astype(str(data.dtype))

    return te.compute(shape, divided, name="adaptive_mean")


def adaptive_means() -> Mapping[str, Any]:
    """How adaptive means become loops, by name: TVM's own unless windows are uneven."""
    others, names = summing_loops(), (f"relax.nn.adaptive_avg_pool{n}d" for n in (1, 2, 3))
    return {name: _legaliser(others[name]) for name in names}


def _legaliser(others: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def legalise(builder: Any, call: Any) -> Any:
        axes = [place for place, name in enumerate(str(call.attrs.layout)) if name not in "NC"]
        extents, sizes = ([kind.shape[axis] for axis in axes] for kind in (call.args[0].ty, call.ty))
        if not are_uneven(extents, sizes):
            return others(builder, call)
        loops = partial(pooled, axes=axes, sizes=[int(size) for size in sizes], kind="avg")
        return builder.call_te(loops, call.args[0], primfunc_name_hint="adaptive_pool")

    return legalise


def _window(number: Any, extent: int, size: int) -> tuple[Any, Any]:
    """Where a window begins, and how long it is."""
    from tvm import tirx

    begin = tirx.indexdiv(number * extent, size)
    return begin, tirx.indexdiv((number + 1) * extent + size - 1, size) - begin


def _longest(extent: int, size: int) -> int:
    windows = [(n * extent // size, -(-(n + 1) * extent // size)) for n in range(size)]
    return max(end - begin for begin, end in windows)
