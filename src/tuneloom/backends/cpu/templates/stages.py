"""Transforms in several small steps: each tile goes through all of them in registers."""

from typing import Any

from tuneloom.backends.cpu.layouts.kernels.winograd_lines import ACROSS, DOWN
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.elementwise import stream_sketch
from tuneloom.backends.cpu.templates.kernel import Shape

LINES = "winograd_lines"
_PLAIN = "to_plain"
_OUT, _TILE = 4, 6


def is_staged(shape: Shape) -> bool:
    """Whether this kernel is a transform to or from tiles."""
    return shape.anchor is None and any(name == LINES or _is_line(name) for name in shape.after)


def _is_line(name: str) -> bool:
    """Whether a transform is one along a single axis, in one step."""
    return name.startswith((DOWN, ACROSS))


def staged_sketch(sch: Any, shape: Shape, target: CpuTarget) -> None:
    """Compute the steps before the result for one tile at a time, fully unrolled."""
    tiled, rest = _before_and_after(shape, _PLAIN)
    to_tiles = tiled[-1].endswith("_input")
    across = not any(name.startswith(DOWN) for name in tiled)
    single = any(_is_line(name) for name in tiled)
    for name in tiled[:-1]:
        if name != LINES and not name.startswith("padded"):
            sch.compute_inline(sch.get_sblock(name))
    if rest:
        stream_sketch(sch, rest, target)
    result = sch.get_sblock(tiled[-1])
    vectors, lane = _vectors(sch, result, target)
    if single and to_tiles:
        place = _input_line(sch, result, vectors, lane)
    elif single:
        place = _output_line(sch, result, vectors, lane, across=across)
    else:
        place = (_input_tiles if to_tiles else _output_tiles)(sch, result, vectors, lane)
        _nest(sch, sch.get_sblock(LINES), place)
    for name in tiled:
        if name.startswith("padded"):
            _nest(sch, sch.get_sblock(name), place)
    if target.cores > 1:
        sch.parallel(sch.get_loops(result)[0])


def _before_and_after(shape: Shape, prefix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The blocks up to the first with a prefix, and from there on.

    Tiles end where channels are no longer together: what comes then reads whole images.
    """
    names = shape.after
    at = next((n for n, name in enumerate(names) if name.startswith(prefix)), len(names))
    return names[:at], names[at:]


def _vectors(sch: Any, result: Any, target: CpuTarget) -> tuple[list[Any], Any]:
    """The loop over the vectors of a block of channels, if there are several, and the one over a vector.

    A tile fills all registers with one vector of channels; the next finds the rest of its lines in the cache.
    """
    lane = sch.get_loops(result)[-1]
    if int(sch.get(lane).extent) <= target.lanes:
        return [], lane
    vectors, lane = sch.split(lane, [None, target.lanes])
    return [vectors], lane


def _input_tiles(sch: Any, result: Any, vectors: list[Any], lane: Any) -> Any:
    point, block, tile = sch.get_loops(result)[:3]
    i, j = sch.split(point, [_TILE, _TILE])
    around, tile = sch.split(tile, list(sch.sample_perfect_tile(tile, n=2, max_innermost_factor=1)))
    sch.reorder(block, around, tile, *vectors, i, j, lane)
    _finish(sch, (i, j), lane)
    return [tile, *vectors][-1]


def _output_tiles(sch: Any, result: Any, vectors: list[Any], lane: Any) -> Any:
    batch, block, row, col = sch.get_loops(result)[:4]
    down, i = sch.split(row, [None, _OUT])
    across, j = sch.split(col, [None, _OUT])
    sch.reorder(batch, block, down, across, *vectors, i, j, lane)
    _finish(sch, (i, j), lane)
    return [across, *vectors][-1]


def _input_line(sch: Any, result: Any, vectors: list[Any], lane: Any) -> Any:
    point, block, tile = sch.get_loops(result)[:3]
    sch.reorder(block, tile, *vectors, point, lane)
    _finish(sch, (point,), lane)
    return [tile, *vectors][-1]


def _output_line(sch: Any, result: Any, vectors: list[Any], lane: Any, *, across: bool) -> Any:
    batch, block, row, col = sch.get_loops(result)[:4]
    tile, inner = sch.split(col if across else row, [None, _OUT])
    order = (row, tile) if across else (tile, col)
    sch.reorder(batch, block, *order, *vectors, inner, lane)
    _finish(sch, (inner,), lane)
    return [*order, *vectors][-1]


def _nest(sch: Any, block: Any, place: Any) -> None:
    sch.set_scope(block, 0, "local")
    sch.compute_at(block, place, preserve_unit_loops=True)
    *loops, lane = sch.get_loops(block)
    first = len(sch.get_loops(block)) - len(sch.get(block).iter_vars)
    _finish(sch, tuple(loops[first:]), lane)


def _finish(sch: Any, loops: tuple[Any, ...], lane: Any) -> None:
    for loop in loops:
        sch.unroll(loop)
    sch.vectorize(lane)
