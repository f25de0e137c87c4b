"""Attention in one kernel: all steps for some queries at a time, both products in vector registers."""

from typing import Any

from tuneloom.backends.cpu.layouts.kernels.attention import KEPT, RESULT, SCORES, SUMS, TRIMMED
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.lines import in_vectors, inlined
from tuneloom.backends.cpu.templates.registers import most_vectors
from tuneloom.compiler.lazy import s_tir

_MOST_ROWS = 8
"""Rows of a tile of accumulators."""
_GROUP = 32
"""How many queries should go through all steps together, about."""
_AROUND = 3
"""Loops around the line of one query: matrices, groups of queries, queries."""


def is_attention(module: Any) -> bool:
    """Whether a module's `main` is a kernel of attention."""
    try:
        s_tir.Schedule(module, error_render_level="none").get_sblock(SCORES)
    except s_tir.ScheduleError:
        return False
    return True


def attention_sketch(sch: Any, target: CpuTarget) -> None:
    """Some queries after the other; how many, and how they are tiled, are sampling decisions."""
    *steps, last = sch.get_child_blocks(sch.get_sblock("root"))
    products = (SCORES, KEPT, SUMS, RESULT)
    scores, kept, sums, result = (sch.get_sblock(name) for name in products)
    lines = inlined(sch, [step for step in steps if str(sch.get(step).name_hint) not in products])
    group, sizes, second = _summed(sch, sums, result, target)
    if str(sch.get(last).name_hint) == TRIMMED:
        _trimmed(sch, last, result, target)
    for block in (*reversed(lines), kept):
        sch.compute_at(block, group, preserve_unit_loops=True)
    first = _scored(sch, scores, kept, sizes, target)
    if target.cores > 1:  # zeros and sums of a product apart from each other can't be shared among threads
        sch.parallel(sch.fuse(*sch.get_loops(kept)[:2]))
    for block, along in ((sums, second), (scores, first)):
        sch.decompose_reduction(block, along)
    for block in lines:
        in_vectors(sch, block, target, _AROUND - 1 if target.cores > 1 else _AROUND)


def _summed(sch: Any, sums: Any, result: Any, target: CpuTarget) -> tuple[Any, list[Any], Any]:
    """Tile the second product; returns its groups of queries, how queries are split, the loop along sums."""
    *lead, row, column = sch.get_loops(result)
    panel = _panel(sch, sums)
    guess = good_rows(int(sch.get(row).extent), panel // target.lanes, target)
    sizes = sch.sample_perfect_tile(row, n=3, max_innermost_factor=_MOST_ROWS, decision=guess)
    group, tile, inner = sch.split(row, list(sizes))
    matrices = sch.fuse(*lead) if lead else sch.add_unit_loop(group)
    panels, along = _tiled(sch, sums, result, (tile, inner, column), panel, target)
    sch.reorder(matrices, group, panels, tile)
    return group, list(sizes), along


def _scored(sch: Any, scores: Any, kept: Any, sizes: list[Any], target: CpuTarget) -> Any:
    """Tile the first product in the same way; what is done to scores happens before they are stored."""
    *_, row, key = sch.get_loops(kept)
    tile, inner = sch.split(row, [None, sizes[-1]])
    _, along = _tiled(sch, scores, kept, (tile, inner, key), _panel(sch, scores), target)
    return along


def _panel(sch: Any, block: Any) -> int:
    return int(sch.get(block).reads[1].source.ty.shape[-1])


def _tiled(
    sch: Any, block: Any, after: Any, loops: tuple[Any, Any, Any], panel: int, target: CpuTarget
) -> tuple[Any, Any]:
    """A product with accumulators in registers, and what follows it; its loops over panels and along sums."""
    tile, inner, column = loops
    panels, vectors, lane = sch.split(column, [None, panel // target.lanes, target.lanes])
    sch.reorder(panels, tile, inner, vectors, lane)
    _in_registers(sch, inner, vectors, lane)
    sch.set_scope(block, 0, "local")
    sch.compute_at(block, tile, preserve_unit_loops=True)
    *_, inner, column, k = sch.get_loops(block)
    vectors, lane = sch.split(column, [None, target.lanes])
    sch.reorder(k, inner, vectors, lane)
    _in_registers(sch, inner, vectors, lane)
    extent = int(sch.get(k).extent)
    step = max(size for size in (1, 2, 3, 4, 7) if extent % size == 0)
    k, unrolled = sch.split(k, [None, step])
    sch.unroll(unrolled)
    return panels, k


def _in_registers(sch: Any, inner: Any, vectors: Any, lane: Any) -> None:
    sch.unroll(inner)
    sch.unroll(vectors)
    sch.vectorize(lane)


def good_rows(rows: int, vectors: int, target: CpuTarget) -> list[int]:
    """Groups, tiles of a group and rows of a tile that should be near the best."""
    most = [size for size in range(1, _MOST_ROWS + 1) if rows % size == 0]
    tile = max(size for size in most if size == 1 or size * vectors + vectors + 1 <= most_vectors(target))
    tiles = rows // tile
    count = max(size for size in range(1, max(1, _GROUP // tile) + 1) if tiles % size == 0)
    return [tiles // count, count, tile]


def _trimmed(sch: Any, last: Any, result: Any, target: CpuTarget) -> None:
    """Store what is needed of a tile as soon as it is computed."""
    width = int(sch.get(sch.get_loops(last)[-1]).extent)
    tile = sch.get_loops(result)[_AROUND]
    sch.set_scope(result, 0, "local")
    sch.reverse_compute_at(last, tile, preserve_unit_loops=True)
    *loops, column = sch.get_loops(last)[_AROUND + 1 :]
    if width % target.lanes == 0:
        column, vector = sch.split(column, [None, target.lanes])
        sch.vectorize(vector)
    for loop in (*loops, column):
        sch.unroll(loop)
