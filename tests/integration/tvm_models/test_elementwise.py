"""Kernels that only move values: their loops suit what is read, and they move each value to its place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.cpu.templates.generator import first_guess
from tuneloom.backends.cpu.templates.pieces import best_width
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec

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


@pytest.mark.parametrize("columns", [1, 3, 7, 12, 14, 24, 48, 197])
def test_rows_of_any_length_go_in_vectors(columns: int, host: TargetSpec) -> None:
    source = np.random.default_rng(0).random((8, 5, columns)).astype(np.float32)
    text, made = turned(source, host)
    assert f"T.vectorized({best_width(columns, host.lanes)})" in text
    assert np.array_equal(made, source.swapaxes(0, 1) + 1)


def turned(source: Any, target: TargetSpec) -> tuple[str, Any]:
    """Rows in another order, plus one: the kernel, and what it makes."""
    load_tvm()
    from tvm import te

    rows = te.placeholder(source.shape, name="source")
    shape = (source.shape[1], source.shape[0], source.shape[2])
    result = te.compute(shape, lambda y, c, x: rows[c, y, x] + 1.0, name="result")
    module = first_guess(_module([rows, result]), target).mod
    return str(module.script()), run(module, target, source, np.zeros(shape, np.float32))


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 7, 7), (1, 5, 1, 3), (3, 1, 17, 1), (1, 1, 1, 1), (2, 6, 5, 55)])
def test_images_of_any_size_go_through_in_one_stream(shape: tuple[int, ...], cores: int) -> None:
    load_tvm()
    from tvm import te

    target = resolve_target("cpu", cores=cores)
    source, slopes = te.placeholder(shape, name="source"), te.placeholder((shape[1],), name="slopes")
    result = te.compute(shape, lambda n, c, y, x: source[n, c, y, x] * slopes[c] + 1.0, name="result")
    module = first_guess(_module([source, slopes, result]), target).mod
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    several = np.arange(shape[1], dtype=np.float32)
    tvm = load_tvm()
    out = tvm.runtime.tensor(np.zeros_like(values))
    given = [tvm.runtime.tensor(one) for one in (values, several)]
    tvm.tirx.build(module, target=target.to_tvm())["main"](*given, out)
    np.testing.assert_allclose(out.numpy(), values * several[:, None, None] + 1, rtol=1e-6)
    if shape[2:] == (7, 7):
        assert "y_x_fused" in str(module.script())
