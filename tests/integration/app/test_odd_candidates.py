"""Candidates that misbehave cost one trial each, and wrong schedules are dropped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tuneloom.app.tuning_service import RunSettings, tune
from tuneloom.model import Budget, JobSpec, MeasuringPolicy
from tuneloom.testing.onnx_models import write_network

PATIENT = MeasuringPolicy(build_timeout_s=8.0, run_timeout_s=8.0, memory_bytes=1 << 30)


def job(folder: Path, tuner: str, trials: int) -> JobSpec:
    model = write_network(folder / "net.onnx", channels=32)
    return JobSpec(
        name="net",
        model=str(model),
        tuner=tuner,
        budget=Budget(trials=trials),
        policy=PATIENT,
        batch=12,
        out=str(folder / "fast"),
    )


def test_crashing_hanging_hungry_and_talking_candidates_cost_one_trial_each(
    tmp_path: Path, plugged: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = tune([job(tmp_path, "moody", 40)], RunSettings())
    assert outcome.failure is None
    result = outcome.jobs[0].result
    tasks = len(result["kernels"])
    assert result["trials"] == 40
    assert result["failures"] == {
        "build_error": 3 * tasks,
        "build_timeout": tasks,
        "run_error": 3 * tasks,
        "run_timeout": tasks,
    }
    assert (tmp_path / "fast" / "model.so").is_file()
    assert capfd.readouterr() == ("", "")


def test_a_schedule_that_changes_the_outputs_is_dropped_and_the_model_stays_right(
    tmp_path: Path, plugged: Callable[..., None]
) -> None:
    outcome = tune([job(tmp_path, "wrong", 10)], RunSettings())
    assert outcome.failure is None
    result = outcome.jobs[0].result
    notes = [kernel["note"] for kernel in result["kernels"].values()]
    assert notes and all("changed the outputs" in note for note in notes), result["kernels"]
    assert result["output_difference"] < 1e-3
    assert not any(kernel["used"] for kernel in result["kernels"].values())
