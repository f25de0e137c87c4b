"""A loop of any length in vectors: as wide ones as its length allows, and single values for what is left."""

from typing import Any

from tuneloom.backends.cpu.target import CpuTarget

_LONGEST_UNROLL = 8
_TURNS = (1, 2, 3, 4)
_WORTH_IT = 4
"""Vectors of so many lanes are worth using for a whole short row, since no value is left over then."""


def in_rows(sch: Any, loops: list[Any], together: int, target: CpuTarget) -> None:
    """The last loops as one row, if they go together, in vectors; those around them for all cores."""
    rows = len(loops) - max(1, together)
    row = sch.fuse(*loops[rows:])
    share(sch, loops[:rows] or [sch.add_unit_loop(row)], target)
    in_pieces(sch, row, target.lanes)


def share(sch: Any, loops: list[Any], target: CpuTarget) -> None:
    """Let all cores have a part of these loops."""
    if target.cores > 1:
        sch.parallel(sch.fuse(*loops) if len(loops) > 1 else loops[0])


def in_pieces(sch: Any, loop: Any, lanes: int) -> None:
    """Vectorise a loop; how many of the vectors are unrolled is a sampling decision."""
    whole, vector = cut(sch, loop, lanes)
    sch.vectorize(vector)
    count = int(sch.get(whole).extent)
    step = max(size for size in _TURNS if count % size == 0)
    tile = sch.sample_perfect_tile(
        whole, n=2, max_innermost_factor=_LONGEST_UNROLL, decision=[count // step, step]
    )
    _around, unrolled = sch.split(whole, list(tile))
    sch.unroll(unrolled)


def cut(sch: Any, loop: Any, lanes: int) -> tuple[Any, Any]:
    """A loop over pieces of a vector's length, and the one over such a piece; what is left is unrolled."""
    extent = int(sch.get(loop).extent)
    width = best_width(extent, lanes)
    if extent % width:
        loop, rest = sch.loop_partition(loop, [extent - extent % width, None])
        sch.unroll(rest)  # a vector of its own would have to begin at 0; LLVM finds what goes together
    whole, vector = sch.split(loop, [None, width])
    return whole, vector


def common_width(extent: int, lanes: int) -> int:
    """The widest vector of at most so many lanes, a power of two, that a row can be cut into."""
    return min(lanes, extent & -extent)


def best_width(extent: int, lanes: int) -> int:
    """How many lanes the vectors for a row should have."""
    whole = common_width(extent, lanes)
    if extent >= 2 * lanes or whole == lanes:
        return lanes
    return whole if whole >= _WORTH_IT else min(lanes, 1 << (extent.bit_length() - 1))
