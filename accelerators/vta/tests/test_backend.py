"""Models on the accelerator: equal to int8 on the CPU, tuned by its own clock, by entry points alone."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.finding import backend_for, backend_named, backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.errors import TargetError
from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    FailureKind,
    Measurement,
    MeasuringRules,
    SearchOptions,
    Seed,
    Task,
)
from tuneloom.model.space import configured, values_in
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.measuring.contest import contest
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.precision.calibrating import Quantising, quantise
from tuneloom.tuners.tvm.search.claimed import ClaimSearch
from tuneloom.tuners.tvm.tuner import TvmTuner
from tuneloom_vta.backend.implementer import VtaClaim
from tuneloom_vta.configuration import DEFAULT
from tuneloom_vta.schedules.workloads import Convolution

SMALL_TARGET = json.dumps({"kind": "vta", "accelerator": "vta-small"})
RULES = MeasuringRules()


@pytest.fixture(scope="module", autouse=True)
def installed(site: Path) -> Iterator[None]:
    """The package as pip registers it."""
    sys.path.insert(0, str(site))
    for cached in (backend_for, backend_named):
        cached.cache_clear()
    yield
    sys.path.remove(str(site))
    for cached in (backend_for, backend_named):
        cached.cache_clear()


@pytest.fixture(scope="module")
def given(network: Path) -> Any:
    """An input of the network."""
    return np.load(network / "x.npy")


@pytest.fixture(scope="module")
def quantised(network: Path) -> ImportedModel:
    how = Quantising(samples=str(network / "small.npz"), tolerance=0.5)
    return quantise(import_model(str(network / "small.onnx"), {}), resolve_target("vta"), how).model


@pytest.fixture(scope="module")
def lowered(quantised: ImportedModel) -> dict[str, LoweredModel]:
    return {text: lower(quantised, resolve_target(text)) for text in ("vta", SMALL_TARGET)}


@pytest.fixture(scope="module")
def expected(quantised: ImportedModel, given: Any) -> Any:
    """What the CPU computes in int8."""
    target = resolve_target("cpu")
    if "int8" not in backend_of(target).dtypes(target):
        pytest.skip("this CPU has no int8 to compare with")
    return build_model(lower(quantised, target), {}).open_here().run([given])[0]


def first_guesses(model: LoweredModel) -> dict[str, str]:
    """The accelerator's first guess for every kernel that it claims."""
    found = [(task, list(claims_on(unpack(task)))) for task in extract(model)]
    return {task.key: configured("vta", claims[0][1].space.guesses[0]) for task, claims in found if claims}


def claimed(model: LoweredModel) -> Iterator[tuple[Task, str]]:
    chosen = first_guesses(model)
    return ((task, chosen[task.key]) for task in extract(model) if task.key in chosen)


@pytest.mark.parametrize("text", ["vta", SMALL_TARGET])
def test_outputs_are_those_of_int8_on_the_cpu_bit_for_bit(
    lowered: dict[str, LoweredModel], given: Any, expected: Any, text: str
) -> None:
    chosen = first_guesses(lowered[text])
    assert len(chosen) == 4
    compiled = build_model(lowered[text], chosen)
    assert not compiled.unscheduled
    (got,) = compiled.open_here().run([given])
    np.testing.assert_array_equal(got, expected)


def test_without_schedules_the_cpu_computes_the_same(
    lowered: dict[str, LoweredModel], given: Any, expected: Any
) -> None:
    (got,) = build_model(lowered["vta"], {}).open_here().run([given])
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


def test_a_model_takes_as_long_as_the_device_would(lowered: dict[str, LoweredModel], given: Any) -> None:
    """Ten times the cycles, not ten times the work of the simulator."""
    running = build_model(lowered["vta"], first_guesses(lowered["vta"])).open_here()
    before = running.now()
    running.run([given])
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
    ("sizes", "error"),
    [
        ({"inp_bytes": 1000}, "vta: inp_bytes=1000 is not a power of two of elements of 16 bytes"),
        ({"accelerator": "vta-huge"}, "no accelerator 'vta-huge'; known: vta, vta-small"),
        ({"block_in": "many"}, "block_in must be a whole number, got 'many'"),
        ({"batch": 2}, "models run with a batch of 1, got 2"),
    ],
)
def test_sizes_that_make_no_sense_are_refused_in_one_line(sizes: dict[str, Any], error: str) -> None:
    with pytest.raises(TargetError) as raised:
        resolve_target(json.dumps({"kind": "vta", **sizes}))
    assert error in str(raised.value) and "\n" not in str(raised.value)


def test_types_and_models_without_int8_are_refused() -> None:
    target = resolve_target("vta")
    with pytest.raises(TargetError, match="vta computes in int8, not in float32; give --dtype int8"):
        backend_of(target).require_dtype("float32", target)
    with pytest.raises(TargetError, match=r"net\.onnx: nothing in it runs on vta"):
        backend_of(target).require_kernels("net.onnx", ["relu", "fused_conv2d_add"], target)


def test_the_search_learns_what_can_be_built_and_borrowed_configurations_can() -> None:
    claim = VtaClaim(
        Convolution(name="one", height=9, width=9, kernel=3, in_channels=64, out_channels=64), DEFAULT
    )
    options = SearchOptions(seed=0, trials=40, batch=1)
    search = ClaimSearch("vta", claim, Task(key="one", name="one"), options)
    unfit = {**claim.space.guesses[0], "tile_h": max(claim.space.knobs["tile_h"]), "h_nthread": 2}
    assert claim.refusal(unfit)
    search.plant([Seed(origin="share:other", configuration=configured("vta", unfit))])
    (borrowed,) = search.select(1)
    first = [borrowed, *filter(None, (search.guess() for _ in range(search.guesses)))]
    assert len(first) > 1
    assert not any(claim.refusal(values_in(each.configuration)) for each in first)
    searched = [search.select(1)[0] for _ in range(20)]
    assert any(claim.refusal(values_in(each.configuration)) for each in searched)
    assert all(each.reason is not None for each in searched)
