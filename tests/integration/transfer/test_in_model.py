"""Kernels timed inside the running model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from support.models.onnx_files import write_network
from tuneloom.model import ModelRecipe, ModelSummary
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE
from tuneloom.tuners.tvm.models import in_model as model_times
from tuneloom.tuners.tvm.models.compiling import kernel_times as kernel_timing
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.making import compiled as making
from tuneloom.tuners.tvm.models.making.compiled import compile_model, tuned_model
from tuneloom.tuners.tvm.models.opening import open_model
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

RECIPE = ModelRecipe(key="weighed", source="", shapes={}, target="cpu")


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> ModelSummary:
    folder: Path = tmp_path_factory.mktemp("model")
    path = write_network(folder / "net.onnx", channels=32, size=16)
    recipe = ModelRecipe(key=RECIPE.key, source=str(path), shapes={}, target="cpu")
    opened = open_model(recipe)
    assert isinstance(opened, ModelSummary)
    compile_model(recipe, {})
    return opened


def test_every_kernel_of_a_model_is_timed_by_name(summary: ModelSummary) -> None:
    model = tuned_model(RECIPE, {}).open_here()
    values = seeded_inputs(summary.inputs, 0)
    times = model_times.kernel_times(model, values)
    assert {task.name for task in summary.tasks} <= times.keys()
    assert all(0 < seconds < 10 for seconds in times.values())


@pytest.mark.parametrize(("long_s", "runs"), [(10.0, 1 + 3), (0.0, 1 + 1)])
def test_a_model_that_takes_long_is_watched_in_a_single_run(
    summary: ModelSummary, monkeypatch: pytest.MonkeyPatch, long_s: float, runs: int
) -> None:
    model, made = tuned_model(RECIPE, {}).open_here(), []
    invoke = model.invoke
    monkeypatch.setattr(kernel_timing, "_LONG_S", long_s)
    monkeypatch.setattr(model, "invoke", lambda values: (made.append(values), invoke(values)))
    times = kernel_timing.kernel_times(model, seeded_inputs(summary.inputs, 0))
    assert len(made) == runs and {task.name for task in summary.tasks} <= times.keys()


def test_only_kernels_that_lose_inside_the_model_are_told(
    summary: ModelSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [task.name for task in summary.tasks]
    given, own = dict.fromkeys(names, 1.0), dict.fromkeys(names, 1.0)
    given[names[0]] = 1.5
    answers = cycle([given, own])
    monkeypatch.setattr(model_times, "kernel_times", lambda _model, _values: next(answers))
    keys = [task.key for task in summary.tasks]
    assert model_times.slower_in_model(RECIPE, {}, keys, {}, 0) == {keys[0]: 1.0}


@dataclass(frozen=True, slots=True)
class Known:
    """A compiled model, or a running one, that remembers which schedules are in it."""

    model: Any
    schedules: dict[str, str]
    unscheduled: Mapping[str, str] = field(default_factory=dict)

    def open_here(self) -> "Known":
        return Known(self.model.open_here(), self.schedules)


def test_a_kernel_is_compared_with_its_own_replacement_among_the_same_neighbours(
    summary: ModelSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled for real; that a kernel left as it is takes twice the time of a guess is invented."""
    slow = {summary.tasks[0].key: NO_TRACE}
    names = {task.name: task.key for task in summary.tasks}

    built: list[dict[str, str]] = []

    def build(lowered: LoweredModel, schedules: dict[str, str], guess: bool = False, **_: object) -> Known:
        built.append(schedules)
        return Known(build_model(lowered, schedules, guess=guess), schedules)

    def times(model: Known, _values: object) -> dict[str, float]:
        return {name: 1.0 + (key in model.schedules) for name, key in names.items()}

    monkeypatch.setattr(making, "build_model", build)
    monkeypatch.setattr(model_times, "kernel_times", times)
    compile_model(RECIPE, slow, instead={})
    assert model_times.slower_in_model(RECIPE, slow, list(slow), {}, 0) == dict.fromkeys(slow, 1.0)
    assert built == [slow, {}], "compiled before it is weighed, where nobody waits for the device"
    assert model_times.slower_in_model(RECIPE, {}, list(slow), slow, 0) == {}
