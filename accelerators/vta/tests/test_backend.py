"""Models on the accelerator: equal to int8 on the CPU, tuned by its own clock, by entry points alone."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tuneloom.backends.finding import backend_for, backend_named, backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.errors import TargetError
from tuneloom.model import Artifact, Candidate, Failure, FailureKind, Measurement, MeasuringRules, Task
from tuneloom.model.space import configured
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.measuring.contest import contest
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.precision.calibrating import Quantising, quantise
from tuneloom.tuners.tvm.tuner import TvmTuner

SMALL_TARGET = json.dumps({"kind": "vta", "accelerator": "vta-small"})
RULES = MeasuringRules()
POINTS = "[tuneloom.backends]\nvta = tuneloom_vta.backend.backend:BACKEND\n"
POINTS += "[tuneloom.devices]\nvta = tuneloom_vta.device:KIND\n"

_RANDOM = np.random.default_rng(0)
SAMPLES = _RANDOM.standard_normal((4, 3, 14, 14)).astype(np.float32)
INPUT = SAMPLES[:1] + np.float32(0.25)


def small_model(path: Path) -> None:
    """Write the network: a branch that is added, pooling, and a product at the end."""
    shapes = {
        "first": (32, 3, 3, 3),
        "second": (32, 32, 3, 3),
        "narrow": (48, 32, 1, 1),
        "wide": (48, 32, 3, 3),
        "last": (48, 40),
    }
    weights = [numpy_helper.from_array(_weight(shape), name) for name, shape in shapes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "narrow"], ["e"], strides=[2, 2]),
        helper.make_node("Conv", ["b", "wide"], ["f"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Add", ["e", "f"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["i"]),
        helper.make_node("Flatten", ["i"], ["j"]),
        helper.make_node("MatMul", ["j", "last"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 14, 14])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 40])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))


def _weight(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    spread = np.sqrt(np.prod(shape[1:]))
    return np.asarray(_RANDOM.standard_normal(shape) / spread, dtype=np.float32)


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package as pip registers it."""
    site = tmp_path_factory.mktemp("site")
    info = site / "tuneloom_vta-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tuneloom-vta\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    sys.path.insert(0, str(site))
    for cached in (backend_for, backend_named):
        cached.cache_clear()
    yield site
    sys.path.remove(str(site))
    for cached in (backend_for, backend_named):
        cached.cache_clear()


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> ImportedModel:
    folder = tmp_path_factory.mktemp("model")
    small_model(folder / "small.onnx")
    np.savez(folder / "small.npz", x=SAMPLES)
    how = Quantising(samples=str(folder / "small.npz"), tolerance=0.5)
    return quantise(import_model(str(folder / "small.onnx"), {}), resolve_target("vta"), how).model


@pytest.fixture(scope="module")
def lowered(quantised: ImportedModel) -> dict[str, LoweredModel]:
    return {text: lower(quantised, resolve_target(text)) for text in ("vta", SMALL_TARGET)}


@pytest.fixture(scope="module")
def expected(quantised: ImportedModel) -> Any:
    """What the CPU computes in int8."""
    target = resolve_target("cpu")
    if "int8" not in backend_of(target).dtypes(target):
        pytest.skip("this CPU has no int8 to compare with")
    return build_model(lower(quantised, target), {}).open_here().run([INPUT])[0]


def first_guesses(model: LoweredModel) -> dict[str, str]:
    """The accelerator's first guess for every kernel that it claims."""
    found = [(task, list(claims_on(unpack(task)))) for task in extract(model)]
    return {task.key: configured("vta", claims[0][1].space.guesses[0]) for task, claims in found if claims}


def claimed(model: LoweredModel) -> Iterator[tuple[Task, str]]:
    chosen = first_guesses(model)
    return ((task, chosen[task.key]) for task in extract(model) if task.key in chosen)


@pytest.mark.parametrize("text", ["vta", SMALL_TARGET])
def test_outputs_are_those_of_int8_on_the_cpu_bit_for_bit(
    lowered: dict[str, LoweredModel], expected: Any, text: str
) -> None:
    chosen = first_guesses(lowered[text])
    assert len(chosen) == 4
    compiled = build_model(lowered[text], chosen)
    assert not compiled.unscheduled
    (got,) = compiled.open_here().run([INPUT])
    np.testing.assert_array_equal(got, expected)


def test_without_schedules_the_cpu_computes_the_same(lowered: dict[str, LoweredModel], expected: Any) -> None:
    (got,) = build_model(lowered["vta"], {}).open_here().run([INPUT])
    np.testing.assert_array_equal(got, expected)


def test_kernels_are_timed_by_the_cycles_of_the_device(lowered: dict[str, LoweredModel]) -> None:
    task, text = next(claimed(lowered["vta"]))
    built = TvmTuner().build(task, Candidate(key="one", configuration=text), RULES)
    assert isinstance(built, Artifact)
    outcomes = [TvmTuner().profile(task, built, RULES, None) for _ in range(2)]
    one, other = (outcome for outcome in outcomes if isinstance(outcome, Measurement))
    assert one.seconds == other.seconds == (one.counters["cycles"] / 1e8,)
    assert set(one.counters) == {"cycles", "load busy", "compute busy", "store busy"}
    assert contest([built.payload], RULES)[0][0] == one.best_s


def test_a_model_takes_as_long_as_the_device_would(lowered: dict[str, LoweredModel]) -> None:
    """Ten times the cycles, not ten times the work of the simulator."""
    running = build_model(lowered["vta"], first_guesses(lowered["vta"])).open_here()
    before = running.now()
    running.run([INPUT])
    cycles = 0.0
    for task, text in claimed(lowered["vta"]):
        built = TvmTuner().build(task, Candidate(key="one", configuration=text), RULES)
        assert isinstance(built, Artifact)
        outcome = TvmTuner().profile(task, built, RULES, None)
        assert isinstance(outcome, Measurement)
        cycles += task.weight * outcome.counters["cycles"]
    assert running.now() - before > cycles / 1e8


def test_a_configuration_whose_sums_come_back_too_early_is_a_wrong_result(
    lowered: dict[str, LoweredModel],
) -> None:
    task, _ = next(claimed(lowered["vta"]))
    knobs = dict.fromkeys(("tile_h", "tile_w", "tile_ci", "tile_co", "oc_nthread", "h_nthread"), 1)
    built = TvmTuner().build(task, Candidate(key="one", configuration=configured("vta", knobs)), RULES)
    assert isinstance(built, Artifact)
    outcome = TvmTuner().profile(task, built, RULES, None)
    assert isinstance(outcome, Failure) and outcome.kind is FailureKind.WRONG_RESULT


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"inp_bytes": 1000}, "vta: inp_bytes=1000 is not a power of two of elements of 16 bytes"),
        ({"accelerator": "vta-huge"}, "no accelerator 'vta-huge'; known: vta, vta-small"),
        ({"block_in": "many"}, "block_in must be a whole number, got 'many'"),
        ({"batch": 2}, "models run with a batch of 1, got 2"),
    ],
)
def test_sizes_that_make_no_sense_are_refused_in_one_line(given: dict[str, Any], error: str) -> None:
    with pytest.raises(TargetError) as raised:
        resolve_target(json.dumps({"kind": "vta", **given}))
    assert error in str(raised.value) and "\n" not in str(raised.value)


def test_types_and_models_without_int8_are_refused() -> None:
    target = resolve_target("vta")
    with pytest.raises(TargetError, match="vta computes in int8, not in float32; give --dtype int8"):
        backend_of(target).require_dtype("float32", target)
    with pytest.raises(TargetError, match=r"net\.onnx: nothing in it runs on vta"):
        backend_of(target).require_kernels("net.onnx", ["relu", "fused_conv2d_add"], target)
