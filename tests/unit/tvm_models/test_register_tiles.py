"""First guesses fill the registers without overflowing them."""

import math

import pytest

from tuneloom.tuners.tvm.rules.registers import good_tile, most_vectors
from tuneloom.tuners.tvm.targets.target import TargetSpec

WIDE = TargetSpec(kind="llvm", config={"kind": "llvm"}, vector_bits=512)
NARROW = TargetSpec(kind="llvm", config={"kind": "llvm"}, vector_bits=256)
RESULTS = [(1, 4, 56, 56, 1), (1, 16, 14, 14, 1), (1, 32, 7, 7, 1), (1, 3, 13, 13, 1), (1, 2, 111, 111, 1)]


@pytest.mark.parametrize("extents", RESULTS)
@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize("windowed", [True, False])
def test_tiles_divide_and_fit(extents: tuple[int, ...], target: TargetSpec, windowed: bool) -> None:
    tile = good_tile(extents, target, windowed=windowed)
    assert all(extent % size == 0 for extent, size in zip(extents, tile, strict=True))
    assert math.prod(tile) <= most_vectors(target)


@pytest.mark.parametrize("extents", RESULTS)
def test_products_keep_both_multipliers_busy(extents: tuple[int, ...]) -> None:
    assert math.prod(good_tile(extents, WIDE, windowed=False)) >= 10


def test_windows_tile_rows_rather_than_channels() -> None:
    assert good_tile((1, 12, 28, 28, 1), WIDE, windowed=True)[1] == 1


def test_a_target_knows_its_lanes_and_family() -> None:
    assert (WIDE.lanes, WIDE.family) == (16, "llvm-512")
    assert (NARROW.lanes, NARROW.family) == (8, "llvm-256")
