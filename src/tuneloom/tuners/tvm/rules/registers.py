"""How accumulators fit into the vector registers: a limit, and a first guess.

Candidates whose accumulators do not fit are not built.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from tuneloom.tuners.tvm.targets.target import TargetSpec

_REGISTERS = {512: 32, 256: 16, 128: 16}
_SPARE = 2
_WIDEST_ROW, _WIDEST_OTHER = 32, 8
_LATENCY_PRODUCTS = 10
"""Independent products that keep two multipliers of four cycles busy, and some to spare."""


def most_vectors(target: TargetSpec) -> int:
    """How many accumulators a tile may have."""
    return _REGISTERS.get(target.vector_bits, 16) - _SPARE


def widest(position: int, axes: int) -> int:
    """The largest tile of an axis; the one before the vectors is the row."""
    return _WIDEST_ROW if position == axes - 2 else _WIDEST_OTHER


def good_tile(extents: Sequence[int], target: TargetSpec, *, windowed: bool) -> tuple[int, ...]:
    """A tile size for every axis that should be near the best, without measuring.

    The axes are those of a result in order, channels second of at least four.
    """
    choices = [_divisors(extent, widest(at, len(extents))) for at, extent in enumerate(extents)]
    fitting = [tile for tile in product(*choices) if math.prod(tile) <= most_vectors(target) - 2]
    return max(fitting, key=lambda tile: _merit(tile, windowed))


def _merit(tile: tuple[int, ...], windowed: bool) -> tuple[float, ...]:
    """Products per cycle first; then few loads, then long rows."""
    channels = tile[1] if len(tile) > 3 else tile[0]
    vectors = math.prod(tile)
    rows = vectors // channels
    loads = vectors if windowed else rows + channels
    cycles = max(vectors, loads, _LATENCY_PRODUCTS) / 2
    alone = windowed and channels == 1
    return (round(vectors / cycles, 2), float(alone), -abs(channels - 2), -loads / vectors, tile[-2])


def _divisors(extent: int, most: int) -> list[int]:
    return [size for size in range(1, min(extent, most) + 1) if extent % size == 0]


def register_budget(target: TargetSpec) -> Any:
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
    from tvm.tirx import ForKind

    count = 1
    for loop in sch.get_loops(block):
        node = sch.get(loop)
        if node.kind == ForKind.UNROLLED:
            count *= int(node.extent)
    return count
