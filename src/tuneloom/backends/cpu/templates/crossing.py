"""Kernels that turn values: neighbours in the result are far apart in what is read, and the other way round.

Such a kernel goes tile by tile, so that what comes into the first cache for one row is still there for the
next one. It is found behind a reshape, too, that has made several axes into one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.pieces import common_width, cut, share
from tuneloom.backends.cpu.templates.reading import bounded, depends, is_even, loads_of, reading_of
from tuneloom.compiler.lazy import ir, tirx, tvm, tvm_ffi

_LONGEST_ROW, _SHORTEST_ROW = 256, 4
_MOST_ROWS = 64


@dataclass(frozen=True, slots=True)
class Crossing:
    """How loops have to be cut: the last one into parts, and which of all should be next to the last."""

    parts: tuple[int, ...]
    near: int
    arithmetic: bool
    """Whether so much is computed that wide vectors pay; just to turn values, narrow ones are as good."""


def crossing_of(block: Any) -> Crossing | None:
    """How a block turns what it reads, if it does."""
    reading, (axes, parts, places) = reading_of(block), _unfolded(block)
    row = axes[-1]
    near = {_near(place[-1], axes) for place in places if any(depends(index, row) for index in place)}
    turned = {axis for axis in near if axis is not None and axis < len(axes) - 1}
    even = all(is_even(index, row) for place in places for index in place)
    in_place = turned == {len(axes) - 2} and len(parts) == 1 and parts[-1] <= _LONGEST_ROW
    if len(turned) != 1 or in_place or not even or not reading.alike or parts[-1] < _SHORTEST_ROW:
        return None
    return Crossing(parts, turned.pop(), reading.much_is_computed)


def _unfolded(block: Any) -> tuple[list[Any], tuple[int, ...], list[list[Any]]]:
    """The axes of a block with the last one taken apart, its parts, and where is read in terms of these."""
    analyzer, (*others, last) = bounded(block), block.iter_vars
    places = [[analyzer.simplify(index) for index in load.indices] for load in loads_of(block.body)]
    parts = _parts(int(getattr(last.dom.extent, "value", 0)), list(chain(*places)), last.var)
    digits = _digits(parts, str(last.var.ty.dtype), analyzer)
    whole = _put_together(digits, parts)
    unfolded = [[analyzer.simplify(_replaced(index, last.var, whole)) for index in place] for place in places]
    return [*(other.var for other in others), *digits], parts, unfolded


def cross(sch: Any, result: Any, crossing: Crossing, target: CpuTarget) -> None:
    """Tiles of rows, each row of a tile in vectors; very long rows that can't be cut go side by side."""
    *axes, last = sch.get_loops(result)
    loops = [*axes, *(sch.split(last, list(crossing.parts)) if len(crossing.parts) > 1 else [last])]
    row, near = loops.pop(), loops.pop(crossing.near)
    length, height = int(sch.get(row).extent), int(sch.get(near).extent)
    outer, near = sch.split(near, [None, _largest_part(height, _MOST_ROWS, target.lanes)])
    loops.insert(crossing.near, outer)
    beyond, row = sch.split(row, [None, (size := _largest_part(length, _LONGEST_ROW, _LONGEST_ROW))])
    if size < min(length, target.lanes):
        sch.reorder(*loops, beyond, row, near)
        share(sch, loops[:3], target)
        sch.unroll(near)
        return
    sch.reorder(*loops, beyond, near, row)
    share(sch, loops[:3], target)
    if crossing.arithmetic:
        _whole, vector = cut(sch, row, target.lanes)
    else:
        _whole, vector = sch.split(row, [None, common_width(size, target.lanes)])
    sch.vectorize(vector)


def _largest_part(extent: int, most: int, good: int) -> int:
    """The length to cut an axis into: all of it, if that is not too much, or whatever divides it best."""
    if extent <= most and extent % good:
        return extent
    return max(size for size in range(1, good + 1) if extent % size == 0)


def _parts(extent: int, indices: Sequence[Any], last: Any) -> tuple[int, ...]:
    """The lengths of the axes that the last one was made of, as far as indices take it apart again."""
    lengths, inner = [], 1
    for divisor in sorted(_divisors(indices, last)):
        if divisor % inner == 0 and extent % divisor == 0 and inner < divisor < extent:
            lengths.append(divisor // inner)
            inner = divisor
    return (extent // inner, *reversed(lengths))


def _divisors(indices: Sequence[Any], last: Any) -> set[int]:
    found: set[int] = set()

    def seen(node: Any) -> None:
        scale = _scale(node.a, last)
        if scale is not None and hasattr(node.b, "value"):
            found.add(scale * int(node.b.value))

    for index in indices:
        tvm_ffi.structural_walk(index, (((tirx.FloorDiv, tirx.FloorMod), seen),))
    return found


def _scale(value: Any, last: Any) -> int | None:
    """By how much a number counts the last axis more coarsely; None if it is no count of that."""
    if value.same_as(last):
        return 1
    if not isinstance(value, tirx.FloorDiv | tirx.FloorMod) or not hasattr(value.b, "value"):
        return None
    inner = _scale(value.a, last)
    return inner if inner is None or isinstance(value, tirx.FloorMod) else inner * int(value.b.value)


def _digits(parts: Sequence[int], dtype: str, analyzer: Any) -> list[Any]:
    digits = [tirx.Var(f"digit{at}", dtype) for at in range(len(parts))]
    for digit, size in zip(digits, parts, strict=True):
        analyzer.bind(digit, tvm.ir.Range(tirx.const(0, dtype), tirx.const(size, dtype)))
    return digits


def _put_together(digits: Sequence[Any], parts: Sequence[int]) -> Any:
    whole = digits[0]
    for digit, size in zip(digits[1:], parts[1:], strict=True):
        whole = whole * size + digit
    return whole


def _replaced(index: Any, last: Any, whole: Any) -> Any:
    return tvm_ffi.structural_map(index, ((ir.Var, lambda var: whole if var.same_as(last) else var),))


def _near(index: Any, axes: Sequence[Any]) -> int | None:
    """The innermost axis along which neighbours are read."""
    return max((at for at, axis in enumerate(axes) if depends(index, axis)), default=None)
