"""Products in bfloat16: close to those in single precision, and one instruction where a CPU has it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.models.graphs import model_of
from tuneloom.backends.cpu.layouts.kernels import pairs
from tuneloom.backends.cpu.templates.generator import first_guess
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError, TargetError
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import kernel_calls, kernel_module
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.precision.halving import halve, in_type, moved
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

Import = Callable[[Any], ImportedModel]


def network() -> Any:
    """Convolutions that Winograd's method is not for, one with a border and an odd row, and a product."""
    random = np.random.default_rng(0)
    shapes = {"first": (24, 20, 1, 1), "second": (17, 24, 3, 3), "matrix": (17, 10)}
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"]),
        helper.make_node("Conv", ["a", "second"], ["b"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "matrix"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 20, 11, 11)}, {"y": (1, 10)}, weights)


def test_a_network_in_bfloat16_is_close_to_itself_in_single_precision(
    imported: Import, host: TargetSpec
) -> None:
    single = imported(network())
    half = lower(replace(single, dtype="bfloat16"), host)
    assert sum("conv2d_pairs" in name for name in kernel_calls(half.module)) == 2
    values = seeded_inputs(single.inputs, seed=1)
    (got,), (expected,) = (
        build_model(one, {}, guess=True).open().run(values) for one in (half, lower(single, host))
    )
    assert 0 < relative_difference(got, expected) < 0.02


@pytest.mark.parametrize(
    ("triple", "mcpu", "instruction"),
    [("x86_64-linux-gnu", "sapphirerapids", "vdpbf16ps"), ("aarch64-linux-gnu", "neoverse-v1", "bfdot")],
)
def test_two_products_become_one_instruction_on_every_cpu_that_has_it(
    triple: str, mcpu: str, instruction: str
) -> None:
    from tvm import te, tirx

    target = resolve_target(json.dumps({"kind": "llvm", "mtriple": triple, "mcpu": mcpu}))
    panel = 2 * target.lanes
    data, weights = (te.placeholder(shape, "uint16") for shape in ((8, 16), (2, 8, panel, 2)))
    function = te.create_prim_func([data, weights, pairs.product_pairs(data, weights, 2 * panel)])
    scheduled = first_guess(kernel_module(function), target)
    assert scheduled is not None
    with target.to_tvm() as made:
        code = str(tirx.build(scheduled.mod, target=made).inspect_source("asm"))
    assert instruction in code and "tuneloom_pairs" not in code


def test_a_cpu_without_such_products_is_refused_before_anything_is_done(
    imported: Import, host: TargetSpec
) -> None:
    with pytest.raises(TargetError, match="bfloat16 needs AVX512-BF16 or ARM's BF16"):
        halve(imported(network()), replace(host, pairs=None), [], 0.1, "bfloat16")


def test_outputs_beyond_the_tolerance_are_refused_with_the_first_layer_that_is(
    imported: Import, host: TargetSpec
) -> None:
    single = imported(network())
    values = seeded_inputs(single.inputs, seed=1)
    assert moved(in_type(single, "float32"), single, host, values, 0.1) == (
        "float32: outputs differ by 0 from those in float32"
    )
    with pytest.raises(InputError, match=r"by 0, .* layer 1 first \(conv2d to 1×24×11×11, by 0\); raise"):
        moved(in_type(single, "float32"), single, host, values, -1.0)


@pytest.mark.parametrize("given", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_a_layer_that_is_not_in_single_precision_can_not_be_converted(imported: Import, given: int) -> None:
    kind = helper.tensor_dtype_to_np_dtype(given)
    nodes = [
        helper.make_node("MatMul", ["x", "one"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=given),
        helper.make_node("MatMul", ["b", "two"], ["y"]),
    ]
    weights = {"one": np.ones((8, 8), np.float32), "two": np.ones((8, 8), kind)}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 8))],
        [helper.make_tensor_value_info("y", given, (4, 8))],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = imported(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10))
    with pytest.raises(InputError) as refused:
        in_type(model, "bfloat16")
    assert f"matmul (layer 2) computes in {kind.name}, which can't be converted to bfloat16" in str(
        refused.value
    )
    assert "omit --dtype" in str(refused.value)
