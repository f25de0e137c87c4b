"""What users submit, and the machine it runs on."""

import json
import os
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from tuneloom.app.bank.looking import prune
from tuneloom.app.devices.describing import MachineOrder, describe, require_cores
from tuneloom.app.evaluating import evaluate_bundle
from tuneloom.app.kinds.kernel.specs import search_options
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.settings import RunSettings
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.errors import BudgetError, TargetError
from tuneloom.model import Budget, Device, JobSpec, MeasuringRules


def test_a_job_goes_through_json_unchanged() -> None:
    spec = JobSpec(
        name="net",
        model="net.onnx",
        budget=Budget(trials=10, seconds=5.0, goal_ms=1.5),
        shapes={"x": (1, 3, 224, 224)},
        measuring=MeasuringRules(repeats=5, run_timeout_s=2.0),
        deadline_s=60.0,
        out="fast",
    )
    assert JobSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_a_job_stored_before_its_measuring_rules_were_called_so_is_still_read() -> None:
    spec = JobSpec(name="net", model="net.onnx", budget=Budget(trials=1), measuring=MeasuringRules(repeats=5))
    data = spec.to_json()
    data["policy"] = data.pop("measuring")
    assert JobSpec.from_json(data) == spec


NEVER = [nan, inf, -inf, 10**400, "many", None, True, -1.5]
"""What no number may be."""


def job(**values: Any) -> JobSpec:
    return JobSpec(name="net", model="net.onnx", budget=Budget(trials=1), **values)


@pytest.mark.parametrize("wrong", [*NEVER, 0, -1, 2.5, 2**31], ids=str)
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("repeats", lambda value: MeasuringRules(repeats=value)),
        ("batch", lambda value: job(batch=value)),
        ("shape", lambda value: job(shapes={"x": (1, value)})),
        ("device_cores", lambda value: RunSettings(device_cores=value)),
        ("keep", prune),
    ],
)
def test_a_count_is_a_whole_number_of_at_least_1(
    name: str, make: Callable[[Any], object], wrong: Any
) -> None:
    with pytest.raises(BudgetError, match=f"{name}.* must be .*, got "):
        make(wrong)


@pytest.mark.parametrize("wrong", [*NEVER, -1, 2.5, 2**31], ids=str)
def test_trials_are_a_whole_number_of_at_least_0(wrong: Any) -> None:
    with pytest.raises(BudgetError, match=r"trials must be .*, got "):
        Budget(trials=wrong)


@pytest.mark.parametrize("wrong", [*(value for value in NEVER if value is not None), 0, -1, 1e10], ids=str)
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("seconds", lambda value: Budget(trials=1, seconds=value)),
        ("goal_ms", lambda value: Budget(trials=1, goal_ms=value)),
        ("run_timeout_s", lambda value: MeasuringRules(run_timeout_s=value)),
        ("build_timeout_s", lambda value: MeasuringRules(build_timeout_s=value)),
        ("deadline_s", lambda value: job(deadline_s=value)),
        ("seconds", lambda value: evaluate_bundle(Path("nowhere"), value)),
    ],
)
def test_a_duration_is_finite_and_above_0(name: str, make: Callable[[Any], object], wrong: Any) -> None:
    with pytest.raises(BudgetError, match=f"{name} must be .*, got "):
        make(wrong)


@pytest.mark.parametrize("wrong", NEVER, ids=str)
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("seed", lambda value: job(seed=value)),
        ("priority", lambda value: job(priority=value)),
        ("arrival_s", lambda value: job(arrival_s=value)),
        ("min_repeat_ms", lambda value: MeasuringRules(min_repeat_ms=value)),
        ("hopeless_ratio", lambda value: MeasuringRules(hopeless_ratio=value)),
        ("memory_bytes", lambda value: MeasuringRules(memory_bytes=value)),
        ("spare", lambda value: search_options({"spare": value})),
    ],
)
def test_every_other_number_is_finite_and_in_range(
    name: str, make: Callable[[Any], object], wrong: Any
) -> None:
    with pytest.raises(BudgetError, match=f"{name} must be .*, got "):
        make(wrong)


def test_a_number_that_is_too_large_is_told_the_limit() -> None:
    with pytest.raises(BudgetError, match="trials must be at most 2147483647, got 2147483648"):
        Budget(trials=2**31)


def test_the_cores_of_the_device_are_not_those_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    host, cpu, machine = described({0, 1, 2, 3}, 2, monkeypatch)
    assert host.cores == {0, 1} and cpu.cores == {2, 3}
    assert machine.slots == 2 and cpu.resource == Device(name="cpu0", key="cpu", lends_to="host")
    assert machine.cores_of("cpu") == 2 and machine.cores_of("cuda") == 0


def test_a_single_core_is_shared_and_not_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    host, cpu, _ = described({5}, 1, monkeypatch)
    assert host.cores == cpu.cores == {5}
    assert cpu.resource == Device(name="cpu0", key="cpu")


def test_a_device_of_all_cores_shares_them_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    host, cpu, machine = described({0, 1}, 2, monkeypatch)
    assert host.cores == cpu.cores == {0, 1}
    assert machine.slots == 2 and cpu.resource == Device(name="cpu0", key="cpu")


def described(
    cores: set[int], device_cores: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Offer, Offer, Fleet]:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: cores)
    monkeypatch.setattr("tuneloom.app.devices.cuda.visible_gpus", tuple)
    fleet = describe(MachineOrder(device_cores=device_cores)).fleet
    return *fleet.offers, fleet


@pytest.mark.parametrize("cores", [0, -1, 3, 9])
def test_a_device_of_no_cores_or_of_more_than_there_are_is_refused(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    with pytest.raises(TargetError, match=str(cores)):
        require_cores(cores)


def test_a_kernel_is_measured_shorter_on_a_gpu_whose_clock_hardly_varies() -> None:
    cpu, gpu = (
        job_spec({"name": "a", "model": "zoo:squeezenet", "target": target}) for target in ("cpu", "cuda")
    )
    assert gpu.measuring.min_repeat_ms < cpu.measuring.min_repeat_ms
    assert gpu.measuring.run_timeout_s == cpu.measuring.run_timeout_s
    assert gpu.measuring.tag != cpu.measuring.tag


@pytest.mark.parametrize("asked", [{"self_contained": True}, {"only_tvm": True}, {}])
def test_a_self_contained_model_leaves_nothing_to_other_runtimes(asked: dict[str, bool]) -> None:
    spec = job_spec({"name": "net", "model": "net.onnx", **asked})
    assert spec.only_tvm == bool(asked)
