"""The form of a kernel: which blocks it has and which of them does the work."""

import math
from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.layouts.shapes.skipping import TEAM
from tuneloom.compiler.lazy import s_tir, tirx, tvm

_REDUCE = 2
_FOUR, _TWO = 4, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Names of blocks in order: what feeds the anchor, the anchor, what follows it.

    `anchor` is None when nothing is reduced; the last of `after` writes the result.
    """

    before: tuple[str, ...]
    anchor: str | None
    after: tuple[str, ...]
    reductions: int = 0
    padded: str | None = None
    windowed: bool = False
    """Whether lanes never mix, as in pooling and depthwise convolution."""
    operands: tuple[frozenset[int], ...] = ()
    """Which of the anchor's result axes each thing it reads depends on."""
    trimmed: bool = False
    """Whether the anchor computes more than the result needs, so that tiles fit."""

    dots: bool = False
    """Whether the anchor adds short products along its last reduction by an instruction of their own: four
    of 8-bit whole numbers, or two of bfloat16 numbers."""
    pairs: bool = False
    """Whether these are the latter."""
    panel: int = 1
    """How many neighbouring vectors of the operand with lanes lie together; 1 if unknown."""
    wide: bool = True
    """Whether what the rows need is smaller than what the channels need."""

    overlapping: bool = False
    """Whether neighbours in a row share numbers that they meet at other steps of the innermost reduction."""

    team: int | None = None
    """How many neighbouring blocks of channels a tile may hold, if that is limited."""

    def is_row(self, axis: int) -> bool:
        """Whether a step along an axis needs the same vectors as the step before."""
        return not any(axis in one for one in self.operands if self._lane in one)

    def is_channel(self, axis: int) -> bool:
        """Whether a step along an axis needs the same numbers that all lanes share."""
        return not any(axis in one for one in self.operands if self._lane not in one)

    @property
    def _lane(self) -> int:
        return max((max(one, default=0) for one in self.operands), default=0)


def shape_of(module: Any, lanes: int) -> Shape | None:
    """The form of a module's `main`, or None when no template can hold it."""
    schedule = s_tir.Schedule(module, error_render_level="none")
    try:
        root = schedule.get_sblock("root")
    except s_tir.ScheduleError:
        return None  # one call of a routine, such as a sort: there are no loops
    blocks = [schedule.get(block) for block in schedule.get_child_blocks(root)]
    names = [str(block.name_hint) for block in blocks]
    reducing = [i for i, block in enumerate(blocks) if _reductions(block)]
    if not blocks or len(reducing) > 1:
        return None
    if not reducing:
        return Shape(before=(), anchor=None, after=tuple(names))
    at = reducing[0]
    if not _fills_vectors(blocks[at], lanes) or not _same_axes(blocks[at], blocks[-1]):
        return None
    padded = [name for name in names[:at] if name.startswith("padded")]
    return Shape(
        before=tuple(name for name in names[:at] if name not in padded),
        anchor=names[at],
        after=tuple(names[at + 1 :]),
        reductions=_reductions(blocks[at]),
        padded=padded[0] if padded else None,
        windowed=not _broadcasts(blocks[at]),
        operands=_operands(blocks[at]),
        trimmed=_extents(blocks[at]) != _extents(blocks[-1]),
        dots=_adds_dots(blocks[at]),
        pairs=_adds_pairs(blocks[at]),
        panel=_panel(blocks[at]) // lanes,
        wide=_is_wide(blocks[at]),
        overlapping=_overlaps(blocks[at]),
        team=_team(blocks[at]),
    )


def _same_axes(anchor: Any, result: Any) -> bool:
    """Whether every value that is reduced makes one value of the result, some of which may be left out.

    A mean that is spread over a row again is another kind of kernel.
    """
    made, kept = _extents(anchor), _extents(result)
    return len(made) == len(kept) and all(one >= other for one, other in zip(made, kept, strict=True))


def _extents(block: Any) -> list[int]:
    return [int(getattr(var.dom.extent, "value", 0)) for var in _spatial(block)]


def _spatial(block: Any) -> list[Any]:
    return [var for var in block.iter_vars if int(var.iter_type) != _REDUCE]


def _operands(block: Any) -> tuple[frozenset[int], ...]:
    axes = [var.var for var in _spatial(block)]
    return tuple(
        frozenset(at for at, axis in enumerate(axes) if _mentions(region, axis)) for region in block.reads
    )


def _is_wide(block: Any) -> bool:
    """Whether the operand that all lanes share is smaller than the one with a value for each."""
    lane = _spatial(block)[-1].var
    sizes = {True: 0, False: 0}
    for region in block.reads:
        sizes[_mentions(region, lane)] += math.prod(_shape(region))
    return sizes[False] <= sizes[True]


def _overlaps(block: Any) -> bool:
    """Whether a window moves along its innermost axis by less than its size."""
    *_, taps = (var for var in block.iter_vars if int(var.iter_type) == _REDUCE)
    extent = int(getattr(taps.dom.extent, "value", 0))
    return any(
        0 < step < extent
        for region in block.reads
        for part in region.region
        if _depends_on(part.min, taps.var)
        for step in (_step(part.min, axis.var) for axis in _spatial(block))
    )


def _step(index: Any, axis: Any) -> int:
    """How far an index moves along an axis; 0 if that is not the same everywhere."""
    found = tvm.sym.detect_linear_equation(index, [axis])
    return int(getattr(found[0], "value", 0)) if len(found) else 0


def _team(block: Any) -> int | None:
    return int(block.annotations[TEAM]) if TEAM in block.annotations else None


def _panel(block: Any) -> int:
    lane = _spatial(block)[-1].var
    last = -2 if _adds_dots(block) else -1
    widths = [_shape(region)[last] for region in block.reads if _mentions(region, lane)]
    return min(widths, default=1)


def _shape(region: Any) -> list[int]:
    return [int(getattr(extent, "value", 1)) for extent in region.source.ty.shape] or [1]


def _adds_dots(block: Any) -> bool:
    return _adds(block, frozenset(("int8", "uint8")), _FOUR) or _adds_pairs(block)


def _adds_pairs(block: Any) -> bool:
    return _adds(block, frozenset(("uint16",)), _TWO)


def _adds(block: Any, kinds: frozenset[str], count: int) -> bool:
    """Whether so many products of these types are added along the last reduction."""
    reduced = [var for var in block.iter_vars if int(var.iter_type) == _REDUCE]
    found = {str(region.source.ty.dtype) for region in block.reads}
    return found <= kinds and int(getattr(reduced[-1].dom.extent, "value", 0)) == count


def _reductions(block: Any) -> int:
    return sum(int(var.iter_type) == _REDUCE for var in block.iter_vars)


def _broadcasts(block: Any) -> bool:
    """Whether some operand is the same for all lanes, as one side of a matrix product is."""
    lane = _spatial(block)[-1].var
    return any(not _mentions(region, lane) for region in block.reads)


def _mentions(region: Any, wanted: Any) -> bool:
    """Whether the indices of a region depend on a variable."""
    return any(_depends_on(part.min, wanted) for part in region.region)


def _depends_on(index: Any, wanted: Any) -> bool:
    return any(var.same_as(wanted) for var in tirx.analysis.undefined_vars(index, []))


def _fills_vectors(block: Any, lanes: int) -> bool:
    extents = _extents(block)
    return bool(extents) and extents[-1] > 0 and extents[-1] % lanes == 0
