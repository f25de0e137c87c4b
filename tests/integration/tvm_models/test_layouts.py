"""Blocked layouts change how a network is computed, never what it computes."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.backends.cpu.target import cpu_of
from tuneloom.backends.cpu.templates.generator import first_guess, has_template
from tuneloom.backends.cpu.templates.registers import tile_vectors
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.lazy import te
from tuneloom.compiler.target import TargetSpec
from tuneloom.model import ModelRecipe, ModelSummary
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import LowerOptions, lower
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_module, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel
from tuneloom.tuners.tvm.models.opening import open_model

sys.path.insert(0, str(Path(__file__).parent))
from small_networks import NETWORKS, network

Import = Callable[[Any], ImportedModel]
Check = Callable[[Any, CompiledModel], None]


@pytest.mark.parametrize("name", NETWORKS)
def test_blocked_and_guessed_network_agrees_with_onnx_runtime(
    name: str, host: TargetSpec, imported: Import, agrees: Check
) -> None:
    model = network(name)
    lowered = lower(imported(model), host)
    agrees(model, build_model(lowered, {}, guess=True))


@pytest.mark.parametrize(
    "name", ["odd_channels", "transformed", "pools", "classifier", "groups_of_any_width"]
)
def test_unscheduled_network_agrees_with_onnx_runtime(
    name: str, host: TargetSpec, imported: Import, agrees: Check
) -> None:
    model = network(name)
    agrees(model, build_model(lower(imported(model), host), {}))


@pytest.mark.parametrize(("name", "count"), [("transformed_along_an_axis", 4), ("transformed_signal", 1)])
def test_convolutions_along_an_axis_become_products(
    name: str, count: int, host: TargetSpec, imported: Import
) -> None:
    main = str(lower(imported(network(name)), host).module["main"])
    assert main.count("call_tir(winograd_product") == count
    assert "(conv2d" not in main


def test_points_that_a_stride_leaves_are_taken_out_before_their_product(
    host: TargetSpec, imported: Import
) -> None:
    main = str(lower(imported(network("some_points")), host).module["main"])
    assert "strided_slice" in main


@pytest.mark.parametrize("name", ["first_layer", "norms", "elementwise"])
def test_plain_layout_is_still_there(name: str, host: TargetSpec, imported: Import, agrees: Check) -> None:
    model = network(name)
    lowered = lower(imported(model), host, LowerOptions(layout="plain"))
    agrees(model, build_model(lowered, {}))


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("odd_channels", 128),
        ("depthwise", 256),
        ("concat_into_narrow", 256),
        ("norms", 512),
        ("attention", 512),
        ("transposed", 256),
        ("transposed_into_few", 512),
        ("lines", 512),
        ("uneven_groups", 512),
        ("groups_of_any_width", 512),
        ("groups_of_any_width", 256),
    ],
)
def test_blocks_for_vectors_of_any_width_compute_the_same(
    name: str, bits: int, host: TargetSpec, imported: Import, agrees: Check
) -> None:
    """LLVM splits vectors that the host does not have."""
    model = network(name)
    lowered = lower(imported(model), replace(host, vector_bits=bits))
    agrees(model, build_model(lowered, {}, guess=True))


@pytest.mark.parametrize("name", ["transformed", "attention", "layer_norms", "lines", "groups_of_any_width"])
def test_several_cores_give_the_same_result(name: str, imported: Import, agrees: Check) -> None:
    model = network(name)
    lowered = lower(imported(model), resolve_target("cpu", cores=2))
    agrees(model, build_model(lowered, {}, guess=True))


def test_norms_vanish_into_weights(host: TargetSpec, imported: Import) -> None:
    classes = [task.kernel_class for task in extract(lower(imported(network("norms")), host))]
    assert any(name.startswith("conv2d_add_relu") for name in classes)
    assert not any("subtract" in name or "divide" in name for name in classes)


def test_narrow_convolution_never_sees_the_concatenation(host: TargetSpec, imported: Import) -> None:
    classes = [task.kernel_class for task in extract(lower(imported(network("concat_into_narrow")), host))]
    assert any("conv2d" in name for name in classes)
    assert not any("concat" in name for name in classes)


def test_products_half_as_wide_as_a_vector_are_computed_in_vectors(imported: Import) -> None:
    wide = resolve_target('{"kind": "llvm", "mcpu": "skylake-avx512"}', cores=1)
    lowered = lower(imported(network("narrow_heads")), wide)
    assert not [task.name for task in extract(lowered) if task.name.startswith("matmul")]


def test_unknown_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="layout must be one of"):
        LowerOptions(layout="sideways")


@pytest.mark.parametrize(
    "name",
    [
        "lines",
        "group_norms",
        "layer_norms",
        "transposed",
        "slopes",
        "attention",
        "ragged_products",
        "groups_of_any_width",
    ],
)
@pytest.mark.parametrize("cores", [1, 2])
def test_every_kernel_has_a_template(name: str, cores: int, imported: Import) -> None:
    target = resolve_target("cpu", cores=cores)
    tasks = extract(lower(imported(network(name)), target))
    without = [task.name for task in tasks if not has_template(unpack(task).module, target)]
    assert tasks and not without


@pytest.mark.parametrize("name", ["transformed", "dilated", "attention"])
def test_templates_share_their_work_among_cores(name: str, imported: Import) -> None:
    several = resolve_target("cpu", cores=2)
    tasks = extract(lower(imported(network(name)), several))
    assert tasks
    for task in tasks:
        schedule = first_guess(unpack(task).module, several)
        assert schedule is not None
        assert has_template(unpack(task).module, several), task.name
        assert "T.parallel" in schedule.mod.script(), task.name


def test_a_model_for_several_cores_has_records_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(network("norms").SerializeToString())
    recipes = [ModelRecipe(key=f"{n}", source=str(path), shapes={}, target="cpu", cores=n) for n in (1, 2)]
    alone, together = (open_model(recipe) for recipe in recipes)
    assert isinstance(alone, ModelSummary) and isinstance(together, ModelSummary)
    assert '"num-cores": 2' in together.target
    assert together.family == f"{alone.family}x2"
    assert not {task.key for task in alone.tasks} & {task.key for task in together.tasks}


def test_no_activation_calls_the_library_for_one_number(host: TargetSpec, imported: Import) -> None:
    classes = [task.kernel_class for task in extract(lower(imported(network("activations")), host))]
    assert any("fast_exp" in name for name in classes)
    assert not any("sigmoid" in name for name in classes)


def test_standardising_is_one_kernel_however_it_is_written(host: TargetSpec, imported: Import) -> None:
    classes = [task.kernel_class for task in extract(lower(imported(network("layer_norms")), host))]
    assert sorted(name.split("_multiply")[0] for name in classes) == ["line_normalised", "line_normalised"]


def test_bias_and_activation_stay_in_the_registers_of_a_product(host: TargetSpec, imported: Import) -> None:
    classes = [task.kernel_class for task in extract(lower(imported(network("ragged_products")), host))]
    assert "product_add" in classes


@pytest.mark.parametrize(
    ("taps", "stride", "most"), [(7, 2, 16), (3, 1, 16), (4, 4, 28), (1, 1, 28)], ids=str
)
def test_windows_that_overlap_get_small_tiles(taps: int, stride: int, most: int) -> None:
    """Compilers keep in registers what neighbouring windows share, beside the sums."""
    from tuneloom.backends.cpu.layouts.kernels.compute import conv2d_from_plain

    target = cpu_of(resolve_target('{"kind": "llvm", "mcpu": "skylake-avx512"}', cores=1))
    image = te.placeholder((1, 3, 224, 224), name="image")
    weight = te.placeholder((4, 3, taps, taps, 16), name="weight")
    window = Window(kernel=(taps, taps), stride=(stride, stride), padding=(taps // 2,) * 4)
    result = conv2d_from_plain(image, weight, window)
    schedule = first_guess(kernel_module(te.create_prim_func([image, weight, result])), target)
    assert most - 4 <= tile_vectors(schedule) <= most


def test_groups_that_an_output_block_does_not_read_are_skipped_outside_of_the_inner_loops(
    imported: Import,
) -> None:
    """Inside of them, every product would be a jump, a multiplication and an addition."""
    from tvm import tirx

    wide = resolve_target('{"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "skylake-avx512"}')
    tasks = extract(lower(imported(network("uneven_groups")), wide))
    grouped = [task for task in tasks if task.kernel_class.startswith("conv2d_in_groups")]
    assert len(grouped) == 2
    for task in grouped:
        schedule = first_guess(unpack(task).module, wide)
        assert schedule is not None
        with wide.to_tvm() as made:
            code = str(tirx.build(schedule.mod, target=made).inspect_source("asm"))
        assert "vfmadd" in code and "vmulps" not in code, task.name
        assert code.count("vfmadd") % tile_vectors(schedule) == 0, task.name


def test_schedules_of_uneven_groups_replay(host: TargetSpec, imported: Import, agrees: Check) -> None:
    model, wide = network("groups_of_any_width"), replace(host, vector_bits=512)
    lowered = lower(imported(model), wide)
    tasks = [task for task in extract(lowered) if task.kernel_class.startswith("conv2d_in_groups")]
    guesses = {task.key: first_guess(unpack(task).module, wide) for task in tasks}
    assert len(guesses) == 3
    agrees(model, build_model(lowered, {key: trace_text(one.trace) for key, one in guesses.items() if one}))
