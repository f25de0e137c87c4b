"""How accumulators fit into the vector registers: a limit, and a first guess.

Candidates whose accumulators do not fit are not built.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.kernel import Shape
from tuneloom.compiler.lazy import tirx

_SPARE = 2
_WIDEST_ROW, _WIDEST_OTHER = 32, 8
_MOST_SHARING = 16
"""Accumulators in a good tile of overlapping windows: what neighbours share is kept in registers, too."""
_LATENCY_PRODUCTS = 10
"""Independent products that keep two multipliers of four cycles busy, and some to spare."""


def most_vectors(target: CpuTarget) -> int:
    """How many accumulators a tile may have."""
    return target.vector_registers - _SPARE


def widest(position: int, axes: int, shape: Shape) -> int:
    """The largest tile of an axis; the second is that of channels, the one before the vectors the row."""
    if position == 1 and shape.team is not None:
        return shape.team
    return _WIDEST_ROW if position == axes - 2 else _WIDEST_OTHER


def good_tile(extents: Sequence[int], target: CpuTarget, shape: Shape) -> tuple[int, ...]:
    """A tile size for every axis that should be near the best, without measuring.

    The axes are those of the anchor's result in order, the last one counted in vectors.
    """
    choices = [_divisors(extent, widest(at, len(extents), shape)) for at, extent in enumerate(extents)]
    tiles = [_Tile(sizes=sizes, shape=shape) for sizes in product(*choices)]
    return max((tile for tile in tiles if tile.fits(target)), key=lambda tile: tile.merit(target)).sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tile:
    """Sizes of a tile along the axes of a result, and what computing it takes."""

    sizes: tuple[int, ...]
    shape: Shape

    @property
    def vectors(self) -> int:
        return math.prod(self.sizes)

    @property
    def loads(self) -> int:
        """Vectors and single numbers that one step of the reduction reads."""
        if self.shape.windowed:
            return self.vectors
        read = (math.prod(self.sizes[at] for at in one) for one in self.shape.operands)
        return sum(read)

    @property
    def across(self) -> int:
        """How many vectors meet the same number; for windows, how many blocks of channels."""
        if self.shape.windowed:
            return self.sizes[1] if len(self.sizes) > 3 else self.sizes[0]
        return math.prod(size for at, size in enumerate(self.sizes) if not self.shape.is_row(at))

    def fits(self, target: CpuTarget) -> bool:
        if target.broadcasts_from_memory or self.shape.windowed:
            most = most_vectors(target) - 2
            sharing = self.shape.overlapping and not self.shape.windowed
            return self.vectors <= (min(most, _MOST_SHARING) if sharing else most)
        return self.vectors == 1 or self.vectors + self.loads <= most_vectors(target)

    def merit(self, target: CpuTarget) -> tuple[float, ...]:
        """Products per cycle first; then few loads, then long rows."""
        cycles = max(self.vectors, self.loads, _LATENCY_PRODUCTS) / 2
        alone = self.shape.windowed and self.across == 1
        per_product = -self.loads / self.vectors
        return (
            round(self.vectors / cycles, 2),
            float(alone),
            float(self.shape.panel > 1 and self.across == self.shape.panel),
            -abs(self.across - 2) if target.broadcasts_from_memory else 0,
            per_product,
            self.sizes[-2] if len(self.sizes) > 1 else 1,
        )


def _divisors(extent: int, most: int) -> list[int]:
    return [size for size in range(1, min(extent, most) + 1) if extent % size == 0]


def register_budget(target: CpuTarget) -> Any:
    """A postprocessor that refuses tiles larger than the register file."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.postproc import PyPostproc

    most = most_vectors(target)

    @derived_object
    class RegisterBudget(PyPostproc):  # type: ignore[misc]
        """Counts the vectors of a tile."""

        def _initialize_with_tune_context(self, context: Any) -> None:
            pass

        def apply(self, sch: Any) -> bool:
            return tile_vectors(sch) <= most

        def clone(self) -> Any:
            return RegisterBudget()

    return RegisterBudget()


def tile_vectors(sch: Any) -> int:
    """How many vectors the accumulators of a schedule take; 0 when it has none."""
    root = sch.get_sblock("root")
    for block in sch.get_child_blocks(root):
        if str(sch.get(block).name_hint).endswith("_init"):
            return _unrolled(sch, block)
    return 0


def _unrolled(sch: Any, block: Any) -> int:
    count = 1
    for loop in sch.get_loops(block):
        node = sch.get(loop)
        if node.kind == tirx.ForKind.UNROLLED:
            count *= int(node.extent)
    return count
