"""Kernels that work line by line: sums along a line, and what is made of the line with them.

A whole line goes through all steps before the next begins, so that it stays in the
first cache and nothing in between is stored.
"""

from typing import Any

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.pieces import in_pieces

_REDUCE = 2


def line_sketch(sch: Any, target: CpuTarget) -> None:
    """Compute every block for one line at a time; raises ValueError where there are no lines."""
    blocks = sch.get_child_blocks(sch.get_sblock("root"))
    lead = _lead(sch, blocks)
    kept = inlined(sch, blocks[:-1])
    result = blocks[-1]
    loops = sch.get_loops(result)[:lead]
    line = sch.fuse(*loops) if loops else sch.add_unit_loop(sch.get_loops(result)[0])
    for block in reversed(kept):
        sch.set_scope(block, 0, "local" if _small(sch, block, lead) else "global")
        sch.compute_at(block, line, preserve_unit_loops=True)
    if target.cores > 1:
        sch.parallel(line)
    for block in (*kept, result):
        in_vectors(sch, block, target)


def inlined(sch: Any, blocks: list[Any]) -> list[Any]:
    """Inline what one block alone reads; returns the blocks that are left, in order."""
    kept = []
    for block in blocks:
        if not _reduction(sch, block) and len(sch.get_consumers(block)) == 1:
            sch.compute_inline(block)
        else:
            kept.append(block)
    return kept


def _lead(sch: Any, blocks: list[Any]) -> int:
    """How many leading axes all blocks of a line have in common."""
    result = _extents(sch, blocks[-1])
    reducing = [block for block in blocks if _reduction(sch, block)]
    if not reducing:
        raise ValueError("nothing is summed along a line")
    one_a_line = _extents(sch, reducing[-1]) == result
    if one_a_line and len(reducing) == 1:
        raise ValueError("a sum alone has no vectors along its line")
    most = len(result) if one_a_line else len(result) - 1
    lead = min(most, *(_common(_extents(sch, block), result) for block in reducing))
    if any(len(_extents(sch, block)) > lead + 1 for block in reducing):
        raise ValueError("sums of more than lines")
    return lead


def _common(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _extents(sch: Any, block: Any) -> list[int]:
    return [int(var.dom.extent) for var in sch.get(block).iter_vars if int(var.iter_type) != _REDUCE]


def _reduction(sch: Any, block: Any) -> bool:
    return any(int(var.iter_type) == _REDUCE for var in sch.get(block).iter_vars)


def _small(sch: Any, block: Any, lead: int) -> bool:
    """Whether what a line needs of a block fits into registers."""
    size = 1
    for extent in _extents(sch, block)[lead:]:
        size *= extent
    return size <= 64


def in_vectors(sch: Any, block: Any, target: CpuTarget, around: int = 1) -> None:
    """The loops inside a line in vectors; what does not fill one is left to the compiler.

    `around` is how many loops are around a line.
    """
    inner = sch.get_loops(block)[around:]
    if not _reduction(sch, block):
        _stream(sch, inner, target)
        return
    axes = [int(var.iter_type) for var in sch.get(block).iter_vars]
    reduced = sum(kind == _REDUCE for kind in axes)
    spatial, along = inner[: len(inner) - reduced], inner[len(inner) - reduced :]
    width = int(sch.get(spatial[-1]).extent) if spatial else 1
    if width % target.lanes or width == 1:
        return
    whole, vector = sch.split(spatial[-1], [None, target.lanes])
    sch.reorder(*along, whole, vector)
    sch.unroll(whole)
    sch.vectorize(vector)
    sch.decompose_reduction(block, along[0])


def _stream(sch: Any, inner: list[Any], target: CpuTarget) -> None:
    if not inner:
        return
    loop = sch.fuse(*inner) if len(inner) > 1 else inner[0]
    if int(sch.get(loop).extent) >= target.lanes:
        in_pieces(sch, loop, target.lanes)
