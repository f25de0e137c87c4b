"""The form of a kernel: which blocks it has and which of them does the work."""

from dataclasses import dataclass
from typing import Any

_REDUCE = 2


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


def shape_of(module: Any, lanes: int) -> Shape | None:
    """The form of a module's `main`, or None when no template can hold it."""
    from tvm.s_tir import Schedule

    schedule = Schedule(module)
    root = schedule.get_sblock("root")
    blocks = [schedule.get(block) for block in schedule.get_child_blocks(root)]
    names = [str(block.name_hint) for block in blocks]
    reducing = [i for i, block in enumerate(blocks) if _reductions(block)]
    if not blocks or len(reducing) > 1:
        return None
    if not reducing:
        return Shape(before=(), anchor=None, after=tuple(names))
    at = reducing[0]
    if not _fills_vectors(blocks[-1], lanes):
        return None
    padded = [name for name in names[:at] if name.startswith("padded")]
    return Shape(
        before=tuple(name for name in names[:at] if name not in padded),
        anchor=names[at],
        after=tuple(names[at + 1 :]),
        reductions=_reductions(blocks[at]),
        padded=padded[0] if padded else None,
        windowed=not _broadcasts(blocks[at]),
    )


def _reductions(block: Any) -> int:
    return sum(int(var.iter_type) == _REDUCE for var in block.iter_vars)


def _broadcasts(block: Any) -> bool:
    """Whether some operand is the same for all lanes, as one side of a matrix product is."""
    lane = [var.var for var in block.iter_vars if int(var.iter_type) != _REDUCE][-1]
    return any(not _mentions(region, lane) for region in block.reads)


def _mentions(region: Any, wanted: Any) -> bool:
    """Whether the indices of a region depend on a variable."""
    from tvm.tirx.analysis import undefined_vars

    return any(var.same_as(wanted) for part in region.region for var in undefined_vars(part.min, []))


def _fills_vectors(block: Any, lanes: int) -> bool:
    spatial = [var for var in block.iter_vars if int(var.iter_type) != _REDUCE]
    extent = getattr(spatial[-1].dom.extent, "value", 0) if spatial else 0
    return bool(extent) and int(extent) % lanes == 0
