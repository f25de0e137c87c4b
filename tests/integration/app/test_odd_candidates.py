"""Candidates that misbehave cost one trial each, and wrong schedules are dropped."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from support.models.onnx_files import write_network
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.model import Budget, Failure, JobSpec, MeasuringRules
from tuneloom.store import open_store

PATIENT = MeasuringRules(build_timeout_s=15.0, run_timeout_s=15.0, memory_bytes=512 << 20)


def job(folder: Path, tuner: str, trials: int) -> JobSpec:
    model = write_network(folder / "net.onnx", channels=32)
    return JobSpec(
        name="net",
        model=str(model),
        tuner=tuner,
        budget=Budget(trials=trials),
        measuring=PATIENT,
        batch=12,
        out=str(folder / "fast"),
    )


ENDS = {
    "build crash": "build_error",
    "build hang": "build_timeout",
    "build eat_memory": "build_error",
    "build refuse": "build_error",
    "build chatter": "measured",
    "run crash": "run_error",
    "run hang": "run_timeout",
    "run eat_memory": "run_error",
    "run refuse": "run_error",
    "run chatter": "measured",
}


def ends(run: str) -> dict[str, set[str]]:
    """How the trials of each mood ended, by what is in the store."""
    store = open_store()
    found: dict[str, set[str]] = defaultdict(set)
    for job_record in store.jobs(run):
        for record in store.trials(job_record.id):
            outcome = record.trial.outcome
            end = outcome.kind.value if isinstance(outcome, Failure) else "measured"
            found[record.trial.candidate.origin].add(end)
    store.close()
    return found


def test_crashing_hanging_hungry_and_talking_candidates_cost_one_trial_each(
    tmp_path: Path, plugged: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = tune([job(tmp_path, "moody", 20)], RunSettings())
    assert outcome.failure is None
    assert outcome.jobs[0].result["trials"] == 20
    found = ends(outcome.run)
    assert {mood: found[mood] for mood in ENDS} == {mood: {end} for mood, end in ENDS.items()}
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
