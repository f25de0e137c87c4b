"""Whatever sizes the search draws for a product's tile, its accumulators are counted and in vectors."""

import math
from typing import Any

import pytest

from tuneloom.backends.cpu.templates.generator import first_guess
from tuneloom.backends.cpu.templates.registers import tile_vectors
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.lowering.tasks import kernel_module


def drawn(module: Any, like: Any, seed: int) -> Any:
    """A schedule of the same steps with sizes drawn anew."""
    from tvm.s_tir import Schedule

    schedule = Schedule(module, seed=seed)
    like.trace.apply_to_schedule(schedule, False, lambda *_: None)
    return schedule


@pytest.mark.parametrize("panels", [1, 2, 4])
def test_a_tile_of_any_size_is_counted_in_vectors(panels: int, host: TargetSpec) -> None:
    load_tvm()
    from tvm import te

    from tuneloom.backends.cpu.layouts.shapes.matrices import product

    width = panels * host.lanes
    shapes = ((1, 64, 48), (512 // width, 48, width))
    left, right = (te.placeholder(shape, name=name) for shape, name in zip(shapes, "ab", strict=True))
    module = kernel_module(te.create_prim_func([left, right, product(left, right, 512)]))
    guess = first_guess(module, host)
    counts = set()
    for seed in range(1, 13):
        schedule = drawn(module, guess, seed)
        *tiles, _reduction = (tuple(map(int, sizes)) for sizes in schedule.trace.decisions.values())
        counts.add(tile_vectors(schedule))
        assert tile_vectors(schedule) == math.prod(inner for _, inner in tiles)
        widest = max(int(loop.extent) for loop in vector_loops(schedule))
        assert widest == host.lanes
    assert len(counts) > 2


def vector_loops(schedule: Any) -> list[Any]:
    from tvm.tirx import ForKind

    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    loops = [schedule.get(loop) for block in blocks for loop in schedule.get_loops(block)]
    return [loop for loop in loops if loop.kind == ForKind.VECTORIZED]
