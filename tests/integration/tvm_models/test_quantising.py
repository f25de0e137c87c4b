"""Models in int8: close to the model in floats, by dot products, refused where they are not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from support.models.graphs import model_of
from tuneloom.backends.cpu.layouts.kernels import dots
from tuneloom.backends.cpu.templates.generator import first_guess, has_template
from tuneloom.backends.quantising import Scale
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError, TargetError
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_module, unpack
from tuneloom.tuners.tvm.models.precision.calibrating import Quantising, quantise

CHANNELS = 32


def network() -> Any:
    """Convolutions with padding, strides and a way around, then a product; two outputs."""
    random = np.random.default_rng(5)
    shapes = {
        "first": (CHANNELS, 3, 3, 3),
        "second": (CHANNELS, CHANNELS, 3, 3),
        "third": (CHANNELS, CHANNELS, 1, 1),
    }
    weights = {
        name: random.standard_normal(shape) / np.sqrt(np.prod(shape[1:])) for name, shape in shapes.items()
    }
    weights |= {"bias": random.standard_normal(CHANNELS), "matrix": random.standard_normal((CHANNELS, 24))}
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second", "bias"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("LeakyRelu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "third"], ["e"]),
        helper.make_node("Add", ["e", "b"], ["f"]),
        helper.make_node("GlobalAveragePool", ["f"], ["g"]),
        helper.make_node("Flatten", ["g"], ["h"]),
        helper.make_node("MatMul", ["h", "matrix"], ["y"]),
    ]
    single = {name: value.astype(np.float32) for name, value in weights.items()}
    return model_of(nodes, {"x": (1, 3, 18, 18)}, {"y": (1, 24), "h": (1, CHANNELS)}, single)


@pytest.fixture
def samples(tmp_path: Path) -> str:
    path = tmp_path / "samples.npz"
    np.savez(path, x=np.random.default_rng(6).standard_normal((4, 3, 18, 18)).astype(np.float32))
    return str(path)


def test_a_network_in_int8_is_close_to_itself_in_floats(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, samples: str
) -> None:
    if host.dots is None:
        pytest.skip("this CPU has no dot products")
    model = imported(network())
    found = quantise(model, host, Quantising(samples=samples, tolerance=0.1))
    assert 0 < found.difference < 0.1 and found.points == 3 and found.samples == 4
    tasks = extract(lower(found.model, host))
    whole = [task for task in tasks if "dots" in task.name]
    assert len(whole) == 3 and all(has_template(unpack(task).module, host) for task in whole)


def test_a_model_is_refused_beyond_the_tolerance_with_the_first_layer_that_moved(
    imported: Callable[[Any], ImportedModel], host: TargetSpec, samples: str
) -> None:
    """Which is not the convolution of three channels, as that stays in floats."""
    if host.dots is None:
        pytest.skip("this CPU has no dot products")
    with pytest.raises(
        InputError, match=r"int8 changes the outputs of net by .* more than the tol"
    ) as refused:
        quantise(imported(network()), host, Quantising(samples=samples, tolerance=1e-6))
    assert "layer 2 first (conv2d to 1×32×9×9, by " in str(refused.value)


@pytest.mark.parametrize(
    ("triple", "mcpu", "instruction"),
    [("x86_64-linux-gnu", "sapphirerapids", "vpdpbusd"), ("aarch64-linux-gnu", "neoverse-n1", "sdot")],
)
def test_dot_products_become_one_instruction_on_every_cpu_that_has_it(
    triple: str, mcpu: str, instruction: str
) -> None:
    from tvm import te, tirx

    target = resolve_target(json.dumps({"kind": "llvm", "mtriple": triple, "mcpu": mcpu}))
    assert target.dots is not None
    panel = 2 * target.lanes
    shapes = [((8, 16), target.dots.data), ((2, 4, panel, 4), "int8"), ((2 * panel,), "float32")]
    data, weights, factor = (te.placeholder(shape, dtype) for shape, dtype in shapes)
    result = dots.product_dots(data, weights, factor, factor, 2 * panel)
    function = te.create_prim_func([data, weights, factor, result])
    scheduled = first_guess(kernel_module(function), target)
    assert scheduled is not None
    with target.to_tvm() as made:
        code = str(tirx.build(scheduled.mod, target=made).inspect_source("asm"))
    assert instruction in code


def test_a_cpu_without_dot_products_is_refused_before_anything_is_done(
    imported: Callable[[Any], ImportedModel], host: TargetSpec
) -> None:
    with pytest.raises(TargetError, match="int8 needs"):
        quantise(imported(network()), replace(host, dots=None), Quantising(samples="missing.npz"))


def test_floats_are_rounded_to_even_by_what_tvm_computes_in_vectors(host: TargetSpec) -> None:
    """A call that it can't make for many values at once makes it give up the vectors of a whole kernel."""
    tvm = load_tvm()
    from tvm import te
    from tvm_ffi import structural_walk

    halves = np.arange(-4, 12, dtype=np.float32) / 2
    data = te.placeholder(halves.shape, name="data")
    function = te.create_prim_func([data, dots.quantised(data, Scale(step=1.0, zero=3, dtype="uint8"))])
    calls: list[Any] = []
    structural_walk(function.body, ((tvm.ir.Call, calls.append),))
    assert calls and all(call.op.get_attr("TVectorizable") for call in calls)
    made, found = (tvm.runtime.tensor(np.zeros(halves.shape, kind)) for kind in ("float32", "uint8"))
    made.copyfrom(halves)
    tvm.compile(function, target=host.to_tvm())["main"](made, found)
    assert found.numpy().tolist() == (np.rint(halves) + 3).tolist()
