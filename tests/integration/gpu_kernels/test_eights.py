"""Models in 8-bit floating point: scales from samples, products on tensor cores that have the type."""

import json
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper

sys.path.append(str(Path(__file__).parent))
from relax_models import operators

from support.models.graphs import model_of
from tuneloom.backends.cuda.triton.implementer import triton_claim
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.errors import InputError, TargetError
from tuneloom.model.space import configured
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import kernel_calls
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.kernels import meanings_by_key
from tuneloom.tuners.tvm.models.precision.calibrating import QuantisedModel, Quantising, quantise

pytest.importorskip("triton", reason="the extra triton is not installed")
pytestmark = pytest.mark.integration
EIGHT = "float8_e4m3fn"


def target(arch: str = "sm_90") -> Any:
    return resolve_target(json.dumps({"kind": "cuda", "arch": arch}))


def network() -> Any:
    """Convolutions, one of few channels, a batch norm, a way around, then two products."""
    random = np.random.default_rng(5)
    shapes = {"first": (32, 3, 3, 3), "second": (48, 32, 3, 3), "third": (48, 48, 1, 1)}
    weights = {name: random.standard_normal(one) / np.sqrt(np.prod(one[1:])) for name, one in shapes.items()}
    weights |= {"bias": random.standard_normal(48), "matrix": random.standard_normal((48, 64)) / 7}
    weights |= {"last": random.standard_normal((64, 24)) / 8}
    weights |= {name: random.uniform(0.5, 2.0, 48) for name in ("scale", "shift", "mean", "variance")}
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second", "bias"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["d"]),
        helper.make_node("Conv", ["d", "third"], ["e"]),
        helper.make_node("Add", ["e", "d"], ["f"]),
        helper.make_node("GlobalAveragePool", ["f"], ["g"]),
        helper.make_node("Flatten", ["g"], ["h"]),
        helper.make_node("MatMul", ["h", "matrix"], ["i"]),
        helper.make_node("Relu", ["i"], ["j"]),
        helper.make_node("MatMul", ["j", "last"], ["y"]),
    ]
    single = {name: value.astype(np.float32) for name, value in weights.items()}
    return model_of(nodes, {"x": (1, 3, 8, 8)}, {"y": (1, 24)}, single)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("eights")
    (place / "net.onnx").write_bytes(network().SerializeToString())
    np.savez(place / "samples.npz", x=np.random.default_rng(6).standard_normal((4, 3, 8, 8), np.float32))
    return place


def quantised(folder: Path, arch: str = "sm_90", tolerance: float = 0.1) -> QuantisedModel:
    how = Quantising(dtype="fp8", samples=str(folder / "samples.npz"), tolerance=tolerance)
    return quantise(import_model(str(folder / "net.onnx")), target(arch), how)


@pytest.fixture(scope="module")
def made(folder: Path) -> QuantisedModel:
    return quantised(folder)


@pytest.fixture(scope="module")
def lowered(made: QuantisedModel) -> LoweredModel:
    return lower(made.model, target())


def laid_out(made: QuantisedModel) -> Any:
    tvm, spec = load_tvm(), target()
    passes = tvm.transform.Sequential(backend_of(spec).laying_out(spec, "fp8"))
    with spec.to_tvm(), tvm.transform.PassContext(opt_level=3):
        return passes(made.model.module)


def products(lowered: LoweredModel) -> list[Any]:
    """The kernels that multiply, with the types of their factors."""
    found = []
    for name in kernel_calls(lowered.module):
        meaning = lowered.meanings[name]
        for step in meaning.steps:
            if step.operator.startswith(("relax.matmul", "relax.nn.conv")):
                found.append((meaning, [meaning.type_of(each).dtype for each in step.operands]))
    return found


def test_outputs_in_fp8_are_off_by_its_roundings(made: QuantisedModel) -> None:
    assert 1e-3 < made.difference < 0.1 and made.points == 4 and made.samples == 4
    assert made.note.startswith("fp8: outputs differ by ")


def test_all_products_but_the_first_are_of_8_bit_numbers_that_triton_multiplies(
    lowered: LoweredModel,
) -> None:
    found = products(lowered)
    assert sorted(types for _, types in found) == [["float16"] * 2, *[[EIGHT] * 2] * 4]
    for name in kernel_calls(lowered.module):
        assert triton_claim(lowered.meanings[name], target().config) is not None, name


def test_the_model_is_built_from_first_guesses_alone(lowered: LoweredModel) -> None:
    guesses = {}
    for key, meaning in meanings_by_key(lowered).items():
        claim = triton_claim(meaning, target().config)
        assert claim is not None
        guesses[key] = configured("triton", claim.space.guesses[0])
    assert build_model(lowered, guesses).unscheduled == {}, "loops of TVM would need NVRTC"


def test_what_follows_a_product_is_in_its_kernel(lowered: LoweredModel) -> None:
    found = [
        [step.operator.removeprefix("relax.") for step in meaning.steps]
        for meaning, types in products(lowered)
        if types[0] == EIGHT
    ]
    behind = ["multiply", "astype", "nn.relu", "astype", "const", "multiply", "clip", "astype"]
    assert ["nn.conv1d", *behind] in found, "scaled, rounded to half precision, and scaled for the next"
    assert ["nn.conv2d", "multiply", "astype", "add", "nn.relu"] in found


def test_the_laid_out_model_computes_what_calibration_saw(made: QuantisedModel, folder: Path) -> None:
    tvm = load_tvm()
    from tvm import relax

    module = laid_out(made)
    assert "relax.quantize" not in operators(module)
    value = tvm.runtime.tensor(np.load(folder / "samples.npz")["x"][:1])
    got, right = (
        relax.VirtualMachine(tvm.compile(one, tvm.target.Target("llvm")), tvm.cpu())["main"](value).numpy()
        for one in (module, made.model.module)
    )
    assert np.linalg.norm(got - right) < 0.05 * np.linalg.norm(right)


def test_weights_are_rounded_once_however_often_they_are_written(made: QuantisedModel) -> None:
    weight = next(numpy_helper.to_array(one) for one in network().graph.initializer if one.name == "last")
    steps = np.abs(weight).max(axis=0) / 448.0
    right = (weight / steps).astype(ml_dtypes.float8_e4m3fn)
    constants = []
    relax_visit(laid_out(made), constants)
    found = [one for one in constants if one.shape == (24, 1, 64)]
    assert len(found) == 1
    np.testing.assert_array_equal(found[0].reshape(24, 64).astype(np.float32), right.T.astype(np.float32))


def relax_visit(module: Any, constants: list[Any]) -> None:
    """Collect the constants of `main`."""
    from tvm import relax

    def visit(one: Any) -> None:
        if hasattr(getattr(one, "value", None), "numpy"):
            constants.append(one.value.numpy())

    relax.analysis.post_order_visit(module["main"], visit)


def test_outputs_beyond_the_tolerance_are_rejected_with_the_first_layer_that_moved(folder: Path) -> None:
    """Which is not the convolution of few channels, as that is computed in half precision."""
    with pytest.raises(InputError, match=r"fp8 changes the outputs of net by ") as refused:
        quantised(folder, tolerance=1e-4)
    text = str(refused.value)
    assert "more than the tolerance of 0.0%, layer 2 first (conv2d to 1×48×4×4, by " in text
    assert text.endswith("%); raise --tolerance, or omit --dtype")


@pytest.mark.parametrize("arch", ["sm_80", "sm_86"])
def test_gpus_without_the_type_are_named_in_one_line(folder: Path, arch: str) -> None:
    with pytest.raises(TargetError, match=rf"fp8 is not available on .*{arch}.*; omit --dtype"):
        quantised(folder, arch)
