"""Products whose blocks are computed in tile registers, by a function that the kernel calls for each.

There is little to search: how many rows a block has, and which loop over blocks is outermost.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tuneloom.backends.cpu.instructions.tile_code import source_of
from tuneloom.backends.cpu.instructions.tiles import KNOWN, SIDE, TileProduct
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.kernel import Shape
from tuneloom.backends.cpu.templates.tiles import result_block, share
from tuneloom.compiler.lazy import s_tir

_ROWS = (64, 32, 128, 16)
"""How many rows a block may have, the most promising first."""
_COLUMNS = (SIDE, 2 * SIDE)
"""How many columns of weights may lie together."""
_LOOPS = 4
"""Rows, columns, groups of numbers that meet in a lane, and these numbers."""

_NAMES = {"bf16": "product_pairs", "int8": "product_dots"}
"""What kernels are called that tile registers may compute."""

Template = Callable[[Any], None]


def in_tiles(kernels: Iterable[str], target: CpuTarget) -> frozenset[str]:
    """Which numbers the kernels of these names may multiply in tiles on a target."""
    names = list(kernels)
    return frozenset(kind for kind in target.tiles if any(_NAMES[kind] in name for name in names))


def tile_templates(module: Any, shape: Shape, target: CpuTarget) -> list[Template]:
    """The templates for a product on a target with tile registers; none for any other kernel."""
    kind = "bf16" if shape.pairs else "int8"
    if kind not in target.tiles or not shape.dots or shape.windowed or shape.reductions != 2:
        return []
    rows, columns, inner = _sizes(module, shape)
    if inner % KNOWN[kind].inner or columns not in _COLUMNS:
        return []
    blocks = [
        TileProduct(kind=kind, rows=size, columns=columns, inner=inner)
        for size in _ROWS
        if rows and rows % size == 0
    ]
    orders = (shape.wide, not shape.wide)
    return [_template(shape, target, block, first) for block in blocks for first in orders]


def _sizes(module: Any, shape: Shape) -> tuple[int, int, int]:
    """How many rows the result has, how many columns lie together, and how many products a sum has."""
    schedule = s_tir.Schedule(module)
    anchor = schedule.get(schedule.get_sblock(shape.anchor))
    extents = [int(getattr(var.dom.extent, "value", 0)) for var in anchor.iter_vars]
    *_, rows, _, groups, each = extents
    panels = [region for region in anchor.reads if len(region.source.ty.shape) == _LOOPS]
    columns = int(panels[-1].source.ty.shape[2]) if panels else 0
    return rows, columns, groups * each


def _template(shape: Shape, target: CpuTarget, block: TileProduct, channels_first: bool) -> Template:
    return lambda sch: _schedule(sch, shape, target, block.known(), channels_first)


def _schedule(sch: Any, shape: Shape, target: CpuTarget, block: TileProduct, channels_first: bool) -> None:
    anchor = sch.get_sblock(shape.anchor)
    for name in (*shape.before, *shape.after[:-1]):
        sch.compute_inline(sch.get_sblock(name))
    result = result_block(sch, shape, anchor)
    outer = _blocks(sch, anchor if shape.trimmed else result, shape, block, channels_first)
    if shape.trimmed:
        sch.reverse_compute_at(result, outer[-1], preserve_unit_loops=True)
    else:
        sch.compute_at(anchor, outer[-1], preserve_unit_loops=True)
    _in_vectors(sch, result, target)
    if target.cores > 1:
        share(sch, outer, replace(shape, padded=None), target)
    if shape.padded:
        _in_vectors(sch, sch.get_sblock(shape.padded), target)
    first = sch.decompose_reduction(anchor, sch.get_loops(anchor)[-_LOOPS])
    _in_vectors(sch, first, target)
    outermost = sch.get_loops(anchor)[0]
    sch.tensorize(sch.get_loops(anchor)[-_LOOPS], block.name)
    sch.annotate(outermost, "pragma_import_llvm", source_of(block))


def _blocks(sch: Any, at: Any, shape: Shape, block: TileProduct, channels_first: bool) -> list[Any]:
    """Split the loops over the result into those over blocks, which are returned, and those inside."""
    loops = sch.get_loops(at)
    *batch, row, column = loops[: len(loops) - shape.reductions] if shape.trimmed else loops
    down, rows = sch.split(row, [None, block.rows])
    across, columns = sch.split(column, [None, block.columns])
    outer = [*batch, across, down] if channels_first else [*batch, down, across]
    sch.reorder(*outer, rows, columns)
    return outer


def _in_vectors(sch: Any, block: Any, target: CpuTarget) -> None:
    last = sch.get_loops(block)[-1]
    if int(sch.get(last).extent) % target.lanes == 0:
        _, vector = sch.split(last, [None, target.lanes])
        sch.vectorize(vector)
