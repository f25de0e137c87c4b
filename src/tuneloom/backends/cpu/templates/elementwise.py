"""Kernels that only move or map values: one pass, vectorised, nothing kept in between."""

from collections.abc import Sequence
from typing import Any

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.crossing import cross, crossing_of
from tuneloom.backends.cpu.templates.kernel import Shape
from tuneloom.backends.cpu.templates.pieces import common_width, in_rows, share
from tuneloom.backends.cpu.templates.reading import reading_of, together

_LONGEST_ROW = 64


def elementwise_sketch(sch: Any, shape: Shape, target: CpuTarget) -> None:
    """Everything into the last block, whose loops suit what it reads."""
    stream_sketch(sch, shape.after, target)


def uncrossed_sketch(sch: Any, shape: Shape, target: CpuTarget) -> None:
    """The same in the order of the result; raises ValueError for kernels that are in this order anyway."""
    result = _inlined(sch, shape.after)
    if crossing_of(sch.get(result)) is None:
        raise ValueError("nothing is turned")
    _in_order(sch, result, target)


def stream_sketch(sch: Any, names: Sequence[str], target: CpuTarget) -> None:
    """A schedule for some of a kernel's blocks, the last of which stores their result."""
    result = _inlined(sch, names)
    crossing = crossing_of(sch.get(result))
    if crossing is None:
        _in_order(sch, result, target)
    else:
        cross(sch, result, crossing, target)


def _inlined(sch: Any, names: Sequence[str]) -> Any:
    for name in names[:-1]:
        sch.compute_inline(sch.get_sblock(name))
    return sch.get_sblock(names[-1])


def _in_order(sch: Any, result: Any, target: CpuTarget) -> None:
    *_, last = sch.get_loops(result)
    width = common_width(int(sch.get(last).extent), target.lanes)
    reading = reading_of(sch.get(result))
    if not (reading.even and reading.alike):
        around = _rows(sch, result, width, vectors=reading.pays_in_vectors)
    elif width == target.lanes:
        around = _one_stream(sch, result, width)
    else:
        in_rows(sch, sch.get_loops(result), together(sch.get(result)), target)
        return
    share(sch, around, target)


def _one_stream(sch: Any, result: Any, width: int) -> list[Any]:
    """All loops as one, in whole vectors, some of them unrolled; the outer part."""
    *axes, last = sch.get_loops(result)
    whole, vector = sch.split(last, [None, width])
    sch.vectorize(vector)
    rows = sch.fuse(*axes, whole)
    tile = sch.sample_perfect_tile(rows, n=2, max_innermost_factor=_LONGEST_ROW)
    around, unrolled = sch.split(rows, list(tile))
    sch.unroll(unrolled)
    return [around]


def _rows(sch: Any, result: Any, width: int, *, vectors: bool) -> list[Any]:
    """Loops that stay apart, so that what indices need of one is computed outside the next; the outer ones.

    The last goes in vectors, or its values are written out one by one: where neighbours of the result
    are no neighbours in what it is made of, a vector has to be gathered, which pays only for arithmetic.
    """
    *axes, last = sch.get_loops(result)
    whole, part = sch.split(last, [None, width])
    if vectors:
        sch.vectorize(part)
    else:
        sch.unroll(part)
    return [*axes[:2], whole][:2]
