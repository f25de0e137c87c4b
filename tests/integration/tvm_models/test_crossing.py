"""Kernels that turn values put each of them in its place, tile by tile, also behind a reshape."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.cpu.templates.crossing import crossing_of
from tuneloom.backends.cpu.templates.generator import first_guess, sketches_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec

LANES = 16
Kernel = tuple[list[Any], tuple[int, ...], Callable[[Any], Any]]
"""Arguments of a kernel, the shape of what it reads, and what NumPy makes of that."""


def to_plain(channels: int, rows: int, columns: int, groups: int = 0) -> Kernel:
    """Channels out of blocks, as an image, or as so many lines."""
    from tvm import te

    given = (-(-channels // LANES), rows, columns, LANES)
    source = te.placeholder(given, name="source")
    plain = te.compute(
        (channels, rows, columns), lambda c, y, x: source[c // LANES, y, x, c % LANES], name="plain"
    )
    image = rows * columns

    def flat(g: Any, f: Any) -> Any:
        at = g * (channels * image // groups) + f
        return plain[at // image, at % image // columns, at % columns]

    lines = te.compute((groups, channels * image // groups), flat, name="lines") if groups else plain

    def wanted(values: Any) -> Any:
        planes = values.transpose(0, 3, 1, 2).reshape(-1, rows, columns)[:channels]
        return planes.reshape(groups, -1) if groups else planes

    return [source, lines], given, wanted


def transpose(rows: int, columns: int, arithmetic: bool) -> Kernel:
    from tvm import te

    source = te.placeholder((rows, columns), name="source")

    def value(j: Any, i: Any) -> Any:
        return ((source[i, j] * 2.0 + 1.0) * 4.0 - 8.0) * 0.5 if arithmetic else source[i, j]

    result = te.compute((columns, rows), value, name="result")

    def wanted(values: Any) -> Any:
        return ((values.T * 2 + 1) * 4 - 8) * 0.5 if arithmetic else values.T

    return [source, result], (rows, columns), wanted


KERNELS: dict[str, Callable[[], Kernel]] = {
    "whole blocks": lambda: to_plain(48, 5, 14),
    "channels left out": lambda: to_plain(21, 6, 8),
    "odd rows": lambda: to_plain(32, 7, 7),
    "one line": lambda: to_plain(32, 7, 7, groups=1),
    "groups": lambda: to_plain(64, 4, 10, groups=8),
    "groups of long rows": lambda: to_plain(32, 1, 3199, groups=4),
    "long rows": lambda: to_plain(32, 2, 1024),
    "a matrix": lambda: transpose(300, 70, arithmetic=False),
    "a matrix with arithmetic": lambda: transpose(601, 67, arithmetic=True),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("cores", [1, 2])
def test_every_value_comes_to_its_place_whichever_way_is_tried(name: str, cores: int) -> None:
    tvm, target = load_tvm(), resolve_target("cpu", cores=cores)
    arguments, given, wanted = KERNELS[name]()
    values = np.random.default_rng(0).random(given).astype(np.float32)
    ways = [schedule for schedule in sketches_of(module(arguments), target) if schedule is not None]
    assert len(ways) == 2
    for schedule in ways:
        made = tvm.runtime.tensor(np.full_like(wanted(values), np.nan))
        tvm.tirx.build(schedule.mod, target=target.to_tvm())["main"](tvm.runtime.tensor(values), made)
        assert np.array_equal(made.numpy(), wanted(values))


def test_an_axis_that_a_reshape_made_is_taken_apart_again() -> None:
    load_tvm()
    crossing = crossing_of(last_block(to_plain(64, 14, 14, groups=1)))
    assert crossing is not None
    assert crossing.parts == (4, 16, 14, 14)
    assert crossing.near == 2  # after the axis of groups: blocks, lanes, rows, columns


def test_a_copy_and_a_step_in_the_order_of_what_is_read_are_no_crossing() -> None:
    load_tvm()
    from tvm import te

    source = te.placeholder((8, 30, 40), name="source")
    copied = te.compute((8, 30, 40), lambda i, y, x: source[i, y, x] + 1.0, name="copied")
    moved = te.compute((30, 8, 40), lambda y, i, x: source[i, y, x], name="moved")
    for result in (copied, moved):
        assert crossing_of(last_block(([source, result], (), lambda values: values))) is None


def test_rows_of_a_tile_are_inside_of_the_image_rows(host: TargetSpec) -> None:
    load_tvm()
    arguments, _, _ = to_plain(64, 20, 24)
    text = str(first_guess(module(arguments), host).mod.script())
    assert text.index("for c_0, y") < text.index("c_1")


def module(arguments: list[Any]) -> Any:
    from tvm import te

    tvm = load_tvm()
    return tvm.IRModule({"main": te.create_prim_func(arguments).with_attr("global_symbol", "main")})


def last_block(kernel: Kernel) -> Any:
    from tvm.s_tir import Schedule

    schedule = Schedule(module(kernel[0]))
    *others, last = schedule.get_child_blocks(schedule.get_sblock("root"))
    for block in others:
        schedule.compute_inline(block)
    return schedule.get(last)
