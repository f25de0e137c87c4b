"""What users submit, and the machine it runs on."""

import json
import os
from typing import Any

import pytest

from tuneloom.app.conducting.machine import this_machine
from tuneloom.errors import BudgetError, TargetError
from tuneloom.model import Budget, JobSpec, MeasuringPolicy


def test_a_job_goes_through_json_unchanged() -> None:
    spec = JobSpec(
        name="net",
        model="net.onnx",
        budget=Budget(trials=10, seconds=5.0, goal_ms=1.5),
        shapes={"x": (1, 3, 224, 224)},
        policy=MeasuringPolicy(repeats=5, run_timeout_s=2.0),
        deadline_s=60.0,
        out="fast",
    )
    assert JobSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    "wrong", [{"trials": 0}, {"trials": -3}, {"trials": 1, "seconds": 0.0}, {"trials": 1, "goal_ms": -1.0}]
)
def test_a_budget_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BudgetError, match="got"):
        Budget(**wrong)


@pytest.mark.parametrize("name", ["run_timeout_s", "build_timeout_s"])
def test_a_timeout_has_to_be_positive(name: str) -> None:
    with pytest.raises(BudgetError, match=name):
        MeasuringPolicy(**{name: 0.0})


def test_the_cores_of_the_device_are_not_those_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    machine = this_machine(device_cores=2)
    assert machine.cores["host"] == {0, 1} and machine.cores["cpu0"] == {2, 3}
    assert machine.host.slots == 2 and machine.devices[0].lends_to == "host"


def test_a_single_core_is_shared_and_not_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {5})
    machine = this_machine()
    assert machine.cores["host"] == machine.cores["cpu0"] == {5}
    assert machine.devices[0].lends_to is None


@pytest.mark.parametrize("cores", [0, -1, 2, 9])
def test_a_device_of_no_cores_or_of_all_is_refused(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    with pytest.raises(TargetError, match=str(cores)):
        this_machine(device_cores=cores)
