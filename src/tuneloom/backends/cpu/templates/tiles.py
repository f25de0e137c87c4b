"""A reduction computed tile by tile, with the tile's accumulators in vector registers.

The result's axes are tiled; for every tile the whole reduction runs over accumulators
in local memory that is so small and so fully unrolled that the compiler keeps it in
registers; the elementwise tail is applied to them before they are stored.
"""

from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.kernel import Shape
from tuneloom.backends.cpu.templates.registers import good_tile, widest

_LONGEST_UNROLL = 16
_TURNS = 4
"""How many pieces of work a thread should have at least, so that none waits long for the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What knobs can't say: where padding happens, and which loop is outermost.

    `padding` is `whole` (before everything), `block` (per tile of channels), `row` (per
    tile of rows) or `inline`; `channels_first` runs over all rows for one tile of
    channels, else over all channels for one tile of rows.
    """

    padding: str = "whole"
    channels_first: bool = True


def variants(shape: Shape) -> list[Variant]:
    """The variants worth searching for a kernel of this form, the most promising first."""
    if shape.windowed:
        places = ("inline", "row", "block") if shape.padded else ("whole",)
        return [Variant(padding=place) for place in places]
    return [Variant(channels_first=first) for first in (shape.wide, not shape.wide)]


def tiled_sketch(sch: Any, shape: Shape, target: CpuTarget, variant: Variant) -> None:
    """Apply the template to a fresh schedule; its tile sizes are sampling decisions."""
    assert shape.anchor is not None
    anchor = sch.get_sblock(shape.anchor)
    _inline(sch, shape, variant)
    result = result_block(sch, shape, anchor)
    outer = _tile_result(sch, anchor if shape.trimmed else result, shape, target, variant)
    if shape.trimmed:
        _trim(sch, result, outer, target)
    else:
        sch.compute_at(anchor, outer[-1], preserve_unit_loops=True)
    reduction = _order_reduction(sch, anchor, len(outer), shape, target)
    _place_padding(sch, shape, variant, outer, target)
    if target.cores > 1:
        share(sch, outer, shape, target)
    first = sch.decompose_reduction(anchor, reduction)
    if shape.dots:
        _with_dots(sch, anchor, first, shape, target)


def share(sch: Any, outer: list[Any], shape: Shape, target: CpuTarget) -> None:
    """Let threads take turns at tiles: the fewest outer loops that are enough for all of them.

    Padding may sit inside the third loop, and is done by all threads where it comes first.
    """
    count, parts = 1, int(sch.get(outer[0]).extent)
    most = 2 if shape.windowed else len(outer)
    while count < most and parts < _TURNS * target.cores:
        parts *= int(sch.get(outer[count]).extent)
        count += 1
    sch.parallel(sch.fuse(*outer[:count]) if count > 1 else outer[0])
    if shape.padded and not shape.windowed:
        around = sch.get_loops(sch.get_sblock(shape.padded))[:-2]
        sch.parallel(sch.fuse(*around))


def _trim(sch: Any, result: Any, outer: list[Any], target: CpuTarget) -> None:
    """Store what is needed of a tile as soon as it is computed."""
    width = int(sch.get(sch.get_loops(result)[-1]).extent)
    sch.reverse_compute_at(result, outer[-1], preserve_unit_loops=True)
    *loops, last = sch.get_loops(result)[len(outer) :]
    if width % target.lanes == 0:
        last, vector = sch.split(last, [None, target.lanes])
        sch.vectorize(vector)
    for loop in (*loops, last):
        sch.unroll(loop)


def _inline(sch: Any, shape: Shape, variant: Variant) -> None:
    for name in (*shape.before, *shape.after[:-1]):
        sch.compute_inline(sch.get_sblock(name))
    if shape.padded and variant.padding == "inline":
        sch.compute_inline(sch.get_sblock(shape.padded))


def result_block(sch: Any, shape: Shape, anchor: Any) -> Any:
    """The block that stores the result; accumulators become local."""
    if not shape.after:
        return sch.cache_write(anchor, 0, "local")
    sch.set_scope(anchor, 0, "local")
    return sch.get_sblock(shape.after[-1])


def _tile_result(sch: Any, block: Any, shape: Shape, target: CpuTarget, variant: Variant) -> list[Any]:
    """Split the loops over the result into outer and inner ones; returns the outer ones."""
    loops = sch.get_loops(block)
    *axes, last = loops[: len(loops) - shape.reductions] if shape.trimmed else loops
    whole, vector = sch.split(last, [None, target.lanes])
    axes.append(whole)
    extents = [int(sch.get(axis).extent) for axis in axes]
    guess = good_tile(extents, target, shape)
    outer, inner = [], []
    for position, axis in enumerate(axes):
        tile = sch.sample_perfect_tile(
            axis,
            n=2,
            max_innermost_factor=widest(position, len(axes), shape),
            decision=[extents[position] // guess[position], guess[position]],
        )
        out, into = sch.split(axis, list(tile))
        outer.append(out)
        inner.append(into)
    order = _outer_order(outer, shape, variant)
    sch.reorder(*order, *_inner_order(inner, shape), vector)
    if not shape.trimmed:
        for loop in inner:
            sch.unroll(loop)
        sch.vectorize(vector)
    return order


def _outer_order(outer: list[Any], shape: Shape, variant: Variant) -> list[Any]:
    if shape.windowed:
        return outer
    rows = [loop for at, loop in enumerate(outer) if shape.is_row(at)]
    channels = [loop for at, loop in enumerate(outer) if shape.is_channel(at)]
    batch = [loop for at, loop in enumerate(outer) if not (shape.is_row(at) or shape.is_channel(at))]
    return [*batch, *channels, *rows] if variant.channels_first else [*batch, *rows, *channels]


def _inner_order(inner: list[Any], shape: Shape) -> list[Any]:
    """Channel blocks innermost: one broadcast value then meets several weight vectors."""
    if shape.windowed:
        return inner if len(inner) < 4 else [inner[0], *inner[2:], inner[1]]
    rows = [loop for at, loop in enumerate(inner) if shape.is_row(at)]
    return rows + [loop for at, loop in enumerate(inner) if not shape.is_row(at)]


def _order_reduction(sch: Any, anchor: Any, outer: int, shape: Shape, target: CpuTarget) -> Any:
    """Reduction loops around the tile; the innermost partly unrolled. Returns the first."""
    loops = sch.get_loops(anchor)[outer:]
    spatial, reduction = loops[: -shape.reductions], loops[-shape.reductions :]
    if shape.dots or not shape.windowed:
        spatial[-1:] = sch.split(spatial[-1], [None, target.lanes])
    four = [reduction.pop()] if shape.dots else []
    sch.reorder(*reduction, *_inner_order(spatial[:-1], shape), spatial[-1], *four)
    for loop in spatial[:-1]:
        sch.unroll(loop)
    if not shape.dots:
        sch.vectorize(spatial[-1])
    extent = int(sch.get(reduction[-1]).extent)
    step = max(size for size in (1, 2, 3, 4, 7) if extent % size == 0)
    tile = sch.sample_perfect_tile(
        reduction[-1], n=2, max_innermost_factor=_LONGEST_UNROLL, decision=[extent // step, step]
    )
    around, unrolled = sch.split(reduction[-1], list(tile))
    sch.unroll(unrolled)
    return reduction[0] if len(reduction) > 1 else around


def _with_dots(sch: Any, anchor: Any, first: Any, shape: Shape, target: CpuTarget) -> None:
    """One instruction for some products in all lanes, and zeros in vectors before."""
    sch.vectorize(sch.get_loops(first)[-1])
    instruction = target.pairs if shape.pairs else target.dots
    assert instruction is not None
    outermost = sch.get_loops(anchor)[0]
    sch.tensorize(sch.get_loops(anchor)[-2], instruction.name)
    if shape.pairs:
        assert target.pairs is not None
        sch.annotate(outermost, "pragma_import_llvm", target.pairs.source)


def _place_padding(sch: Any, shape: Shape, variant: Variant, outer: list[Any], target: CpuTarget) -> None:
    if not shape.padded or variant.padding == "inline":
        return
    padded = sch.get_sblock(shape.padded)
    if variant.padding == "block":
        sch.compute_at(padded, outer[1], preserve_unit_loops=True)
    elif variant.padding == "row":
        sch.compute_at(padded, outer[2], preserve_unit_loops=True)
    last = sch.get_loops(padded)[-1]
    if int(sch.get(last).extent) == target.lanes:
        sch.vectorize(last)
