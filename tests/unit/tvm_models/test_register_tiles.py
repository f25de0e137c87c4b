"""First guesses fill the registers without overflowing them."""

import math
from dataclasses import replace

import pytest

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.kernel import Shape
from tuneloom.backends.cpu.templates.registers import good_tile, most_vectors

WIDE = CpuTarget(kind="llvm", config={"kind": "llvm"}, vector_bits=512, vector_registers=32)
NARROW = CpuTarget(kind="llvm", config={"kind": "llvm"}, vector_bits=256)
ARM = CpuTarget(
    kind="llvm",
    config={"kind": "llvm"},
    vector_bits=128,
    vector_registers=32,
    broadcasts_from_memory=False,
)
CONV = Shape(
    before=(), anchor="conv2d", after=(), operands=(frozenset((0, 2, 3)), frozenset((1, 4))), reductions=4
)
POOL = Shape(before=(), anchor="pool", after=(), windowed=True, operands=(frozenset(range(5)),), reductions=2)
PRODUCT = Shape(
    before=(), anchor="product", after=(), operands=(frozenset((0,)), frozenset((1,))), reductions=1, panel=4
)
RESULTS = [(1, 4, 56, 56, 1), (1, 16, 14, 14, 1), (1, 32, 7, 7, 1), (1, 3, 13, 13, 1), (1, 2, 111, 111, 1)]


@pytest.mark.parametrize("extents", RESULTS)
@pytest.mark.parametrize("target", [WIDE, NARROW, ARM])
@pytest.mark.parametrize("shape", [CONV, POOL])
def test_tiles_divide_and_fit(extents: tuple[int, ...], target: CpuTarget, shape: Shape) -> None:
    tile = good_tile(extents, target, shape)
    assert all(extent % size == 0 for extent, size in zip(extents, tile, strict=True))
    assert math.prod(tile) <= most_vectors(target)


@pytest.mark.parametrize("extents", RESULTS)
def test_products_keep_both_multipliers_busy(extents: tuple[int, ...]) -> None:
    assert math.prod(good_tile(extents, WIDE, CONV)) >= 10


def test_windows_tile_rows_rather_than_channels() -> None:
    assert good_tile((1, 12, 28, 28, 1), WIDE, POOL)[1] == 1


@pytest.mark.parametrize("team", [1, 2])
def test_tiles_hold_no_more_blocks_than_meet_the_same_condition(team: int) -> None:
    assert good_tile((1, 32, 7, 7, 1), WIDE, replace(CONV, team=team))[1] == team


def test_numbers_that_need_registers_of_their_own_leave_fewer_for_sums() -> None:
    rows, vectors = good_tile((200, 48), ARM, PRODUCT)
    assert vectors == PRODUCT.panel
    assert rows * vectors + rows + vectors <= ARM.vector_registers


def test_a_target_knows_its_lanes_and_family() -> None:
    assert (WIDE.lanes, WIDE.family) == (16, "llvm-512")
    assert (NARROW.lanes, NARROW.family) == (8, "llvm-256")
