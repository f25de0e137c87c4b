"""Products in tile registers agree with NumPy's; without such registers loops stand for them."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import helper

from support.models.graphs import model_of
from tuneloom.backends.cpu.instructions import tiles
from tuneloom.backends.cpu.instructions.tiles import TileProduct
from tuneloom.backends.cpu.layouts.kernels import dots, pairs
from tuneloom.backends.cpu.templates import tile_products
from tuneloom.backends.cpu.templates.generator import first_guess, sketches_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import kernel_calls, kernel_module
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.facts import target_facts
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

ALL = frozenset(("bf16", "int8"))
SIZES = [(64, 64, 64), (16, 40, 128), (96, 256, 192), (37, 64, 64)]
"""Rows, columns and numbers in a sum; tiles need not divide rows, nor panels columns."""


def in_loops(product: TileProduct) -> str:
    """What the function in tiles computes, one product after another."""
    each, numbers = product.instruction.each, product.rows * product.columns * product.inner
    size, word = (16, "float") if product.kind == "bf16" else (8, "i32")
    if product.kind == "bf16":
        steps = [
            f"%{x}_wide = zext i16 %{x}_v to i32\n  %{x}_up = shl i32 %{x}_wide, 16\n"
            f"  %{x}_n = bitcast i32 %{x}_up to float"
            for x in "xw"
        ]
        times, plus = "fmul float", "fadd float"
    else:
        steps = ["%x_n = zext i8 %x_v to i32", "%w_n = sext i8 %w_v to i32"]
        times, plus = "mul i32", "add i32"
    return f"""
define linkonce_odr hidden i32 @{product.name}(ptr %s, i64 %s_long, ptr %x, i64 %x_long, ptr %w) {{
entry:
  %s_row = trunc i64 %s_long to i32
  %x_row = trunc i64 %x_long to i32
  br label %loop
loop:
  %n = phi i32 [ 0, %entry ], [ %next, %loop ]
  %k = urem i32 %n, {product.inner}
  %ij = udiv i32 %n, {product.inner}
  %j = urem i32 %ij, {product.columns}
  %i = udiv i32 %ij, {product.columns}
  %x_i = mul i32 %i, %x_row
  %x_at = add i32 %x_i, %k
  %x_p = getelementptr i{size}, ptr %x, i32 %x_at
  %x_v = load i{size}, ptr %x_p
  %group = udiv i32 %k, {each}
  %inside = urem i32 %k, {each}
  %w_row = mul i32 %group, {product.columns}
  %w_col = add i32 %w_row, %j
  %w_lane = mul i32 %w_col, {each}
  %w_at = add i32 %w_lane, %inside
  %w_p = getelementptr i{size}, ptr %w, i32 %w_at
  %w_v = load i{size}, ptr %w_p
  {steps[0]}
  {steps[1]}
  %s_i = mul i32 %i, %s_row
  %s_at = add i32 %s_i, %j
  %s_p = getelementptr {word}, ptr %s, i32 %s_at
  %s_v = load {word}, ptr %s_p
  %product = {times} %x_n, %w_n
  %sum = {plus} %s_v, %product
  store {word} %sum, ptr %s_p
  %next = add i32 %n, 1
  %more = icmp ult i32 %next, {numbers}
  br i1 %more, label %loop, label %end
end:
  ret i32 0
}}
"""


def network() -> Any:
    """Two products, of rows that tiles do not divide."""
    random = np.random.default_rng(0)
    matrices = {name: random.standard_normal((64, 64)).astype(np.float32) for name in ("first", "second")}
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "second"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 19, 64)}, {"y": (1, 19, 64)}, matrices)


@pytest.fixture(params=sorted(ALL))
def kind(request: pytest.FixtureRequest, host: TargetSpec, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kind of numbers; a machine that can't multiply them in tiles gets loops instead."""
    if request.param not in host.tiles:
        monkeypatch.setattr(tile_products, "source_of", in_loops)
    return str(request.param)


def product_of(kind: str, rows: int, width: int, inner: int, side: int = 16) -> tuple[Any, list[Any], Any]:
    """A kernel, its arguments, and what it should compute."""
    from tvm import te

    random, panel = np.random.default_rng(0), 32
    if kind == "bf16":
        x, m = (random.standard_normal(shape).astype(np.float32) for shape in ((rows, inner), (inner, width)))
        values: list[Any] = [pairs.rounded(x), pairs.pack_pair_panels(m, panel)]
        data, weights = (te.placeholder(value.shape, "uint16") for value in values)
        function = te.create_prim_func([data, weights, pairs.product_pairs(data, weights, width, side)])
        sides = [(pairs.rounded(one).astype(np.uint32) << 16).view(np.float32) for one in (x, m)]
        return function, values, sides[0] @ sides[1]
    x8 = random.integers(0, 256, (rows, inner), dtype=np.uint8)
    m8 = random.integers(-128, 128, (width, inner), dtype=np.int8)
    factor = random.standard_normal(width).astype(np.float32)
    values = [x8, dots.pack_dot_panels(m8, panel), factor]
    data, weights, scale = (te.placeholder(value.shape, str(value.dtype)) for value in values)
    result = dots.product_dots(data, weights, scale, scale, width, side)
    function = te.create_prim_func([data, weights, scale, result])
    return function, values, (x8.astype(np.int32) @ m8.T.astype(np.int32)) * factor + factor


def computed(module: Any, target: TargetSpec, values: list[Any], like: Any) -> Any:
    tvm = load_tvm()
    with target.to_tvm() as made:
        built = tvm.tirx.build(module, target=made)
    tensors = [tvm.runtime.tensor(value) for value in (*values, np.zeros(like.shape, np.float32))]
    built["main"](*tensors)
    return tensors[-1].numpy()


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("rows", "width", "inner"), SIZES)
def test_every_schedule_in_tiles_computes_the_product(
    kind: str, rows: int, width: int, inner: int, cores: int, host: TargetSpec
) -> None:
    target = replace(host, tiles=ALL, cores=cores)
    function, values, expected = product_of(kind, rows, width, inner)
    found = [one for one in sketches_of(kernel_module(function), target) if one is not None]
    tiled = [one for one in found if "tuneloom_tiles" in one.mod.script()]
    assert len(tiled) >= 2
    assert tiled[0] is found[0]
    for schedule in tiled:
        got = computed(schedule.mod, host, values, expected)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max()))


def test_a_network_in_tiles_is_close_to_itself_in_single_precision(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "bf16" not in host.tiles:
        monkeypatch.setattr(tile_products, "source_of", in_loops)
    single = imported(network())
    half = lower(replace(single, dtype="bfloat16"), replace(host, tiles=ALL))
    values = seeded_inputs(single.inputs, seed=1)
    (got,), (expected,) = (
        build_model(one, {}, guess=True).open().run(values) for one in (half, lower(single, host))
    )
    assert 0 < relative_difference(got, expected) < 0.02
    facts = target_facts(half.target, kernel_calls(half.module))
    assert "amx_bf16" in facts["cpu_flags"].values()
    assert "amx_int8" not in facts["cpu_flags"].values()


@pytest.mark.parametrize(("rows", "inner"), [(20, 64), (64, 40)])
def test_a_product_that_no_tiles_divide_is_left_to_vectors(kind: str, rows: int, inner: int) -> None:
    divided, ragged = (
        [one.mod.script() for one in sketches_of(kernel_module(function), rapids()) if one is not None]
        for function, _, _ in (
            product_of(kind, 64, 64, 64, side=1),
            product_of(kind, rows, 64, inner, side=1),
        )
    )
    assert any("tuneloom_tiles" in code for code in divided)
    assert ragged and not any("tuneloom_tiles" in code for code in ragged)


def rapids() -> TargetSpec:
    """A CPU with tiles, which nothing of this test runs on."""
    config = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "sapphirerapids"}
    return replace(resolve_target(json.dumps(config)), tiles=ALL)


@pytest.mark.parametrize(("kind", "instruction"), [("bf16", "tdpbf16ps"), ("int8", "tdpbusd")])
def test_the_code_has_the_instruction_and_lets_go_of_the_registers(kind: str, instruction: str) -> None:
    from tvm import tirx

    target = rapids()
    function, _, _ = product_of(kind, 64, 64, 64)
    schedule = first_guess(kernel_module(function), target)
    assert schedule is not None
    with target.to_tvm() as made:
        code = str(tirx.build(schedule.mod, target=made).inspect_source("asm"))
    assert all(word in code for word in ("ldtilecfg", "tileloadd", instruction, "tilestored", "tilerelease"))


def test_a_process_that_never_saw_a_schedule_in_tiles_can_follow_it(
    kind: str, host: TargetSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = replace(host, tiles=ALL)
    function, _, _ = product_of(kind, 48, 64, 64)
    schedule = first_guess(kernel_module(function), target)
    assert schedule is not None
    trace = trace_text(schedule.trace)
    monkeypatch.setattr(tiles, "_registered", set())
    tiles.make_known(trace, ALL)
    assert tiles._registered == {f"tuneloom_tiles_{kind}_16x32x64"}
    monkeypatch.setattr(tiles, "_registered", set())
    tiles.make_known(trace, frozenset())
    assert not tiles._registered
