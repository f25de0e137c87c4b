"""Kernels that only move values: their loops suit what is read, and they move each value to its place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.rules.generator import first_guess
from tuneloom.tuners.tvm.targets.target import TargetSpec, resolve_target

Moved = Callable[[Any, int], Any]
"""What a kernel makes of an array of channels, rows and columns, on so many lanes."""


def shuffled(values: Any, _lanes: int) -> Any:
    channels, rows, columns = values.shape
    return values.reshape(4, channels // 4, rows, columns).swapaxes(0, 1).reshape(values.shape)


def cut(values: Any, lanes: int) -> Any:
    return values[: lanes + lanes // 2]


def scaled(values: Any, _lanes: int) -> Any:
    return values * 2


def computed(values: Any, lanes: int) -> Any:
    return ((shuffled(values, lanes) * 2 + 1) * 4 - 8) * 0.5


PLACES: dict[Moved, Callable[[int, int], int]] = {
    shuffled: lambda channel, channels: channel % 4 * (channels // 4) + channel // 4,
    computed: lambda channel, channels: channel % 4 * (channels // 4) + channel // 4,
    cut: lambda channel, _channels: channel,
    scaled: lambda channel, _channels: channel,
}


ARITHMETIC: dict[Moved, Callable[[Any], Any]] = {
    computed: lambda value: ((value * 2.0 + 1.0) * 4.0 - 8.0) * 0.5,
    scaled: lambda value: value * 2.0,
}


def kernel(moved: Moved, shape: tuple[int, int, int], lanes: int) -> Any:
    """From channels in blocks, through what moves them, to channels in blocks again."""
    load_tvm()
    from tvm import te, tirx

    channels, rows, columns = shape
    kept = moved(np.zeros(shape), lanes).shape[0]
    blocks = -(-kept // lanes)
    place = PLACES[moved]
    source = te.placeholder((channels // lanes, rows, columns, lanes), name="source")
    plain = te.compute(shape, lambda c, y, x: source[c // lanes, y, x, c % lanes], name="to_plain")
    arithmetic = ARITHMETIC.get(moved, lambda value: value)
    between = te.compute(
        (kept, rows, columns), lambda c, y, x: arithmetic(plain[place(c, channels), y, x]), name="moved"
    )
    result = te.compute(
        (blocks, rows, columns, lanes),
        lambda o, y, x, c: tirx.if_then_else(o * lanes + c < kept, between[o * lanes + c, y, x], 0.0),
        name="to_blocked",
    )
    return _module([source, result])


def _module(arguments: list[Any]) -> Any:
    from tvm import te

    tvm = load_tvm()
    return tvm.IRModule({"main": te.create_prim_func(arguments).with_attr("global_symbol", "main")})


def in_blocks(values: Any, lanes: int) -> Any:
    channels, rows, columns = values.shape
    padded = np.zeros((-(-channels // lanes) * lanes, rows, columns), np.float32)
    padded[:channels] = values
    return np.ascontiguousarray(padded.reshape(-1, lanes, rows, columns).transpose(0, 2, 3, 1))


def run(module: Any, target: TargetSpec, source: Any, like: Any) -> Any:
    tvm = load_tvm()
    out = tvm.runtime.tensor(np.full_like(like, np.nan))
    tvm.tirx.build(module, target=target.to_tvm())["main"](tvm.runtime.tensor(source), out)
    return out.numpy()


@pytest.mark.parametrize("moved", PLACES)
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (4, 16), (1, 1)])
def test_every_value_comes_to_its_place(moved: Moved, cores: int, rows: int, columns: int) -> None:
    target = resolve_target("cpu", cores=cores)
    shape = (3 * target.lanes, rows, columns)
    schedule = first_guess(kernel(moved, shape, target.lanes), target)
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    wanted = in_blocks(moved(values, target.lanes), target.lanes)
    assert np.array_equal(run(schedule.mod, target, in_blocks(values, target.lanes), wanted), wanted)


def test_channels_from_many_places_are_written_one_by_one(host: TargetSpec) -> None:
    text = guess(shuffled, host)
    assert "T.unroll" in text
    assert "T.vectorized" not in text


def test_channels_from_many_places_are_gathered_if_much_is_computed(host: TargetSpec) -> None:
    assert "T.vectorized" in guess(computed, host)


def test_channels_that_stay_together_are_written_as_vectors(host: TargetSpec) -> None:
    assert "T.vectorized" in guess(scaled, host)


def test_where_some_lanes_are_left_out_loops_stay_apart(host: TargetSpec) -> None:
    """Then the blocks that lack no lane can do without asking."""
    text = guess(cut, host)
    assert "T.vectorized" in text
    assert "fused" not in text


def guess(moved: Moved, target: TargetSpec) -> str:
    return str(first_guess(kernel(moved, (3 * target.lanes, 5, 7), target.lanes), target).mod.script())


@pytest.mark.parametrize(("columns", "width"), [(28, 4), (14, 2), (48, None)])
def test_rows_that_no_whole_vector_fits_go_in_shorter_ones(
    columns: int, width: int | None, host: TargetSpec
) -> None:
    load_tvm()
    from tvm import te

    source = te.placeholder((8, 5, columns), name="source")
    result = te.compute((5, 8, columns), lambda y, c, x: source[c, y, x] + 1.0, name="result")
    text = str(first_guess(_module([source, result]), host).mod.script())
    assert f"T.vectorized({width or host.lanes})" in text
