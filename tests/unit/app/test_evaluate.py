"""A bundle is timed on the cores it was measured on."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tuneloom.app import evaluating
from tuneloom.engine.machine import Offer
from tuneloom.errors import TargetError
from tuneloom.model import Device


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[int]]:
    """The cores that were used, on a machine of four."""
    used: list[frozenset[int]] = []

    def call(_function: str, *_: Any, cores: frozenset[int], timeout_s: float) -> dict[str, Any]:
        assert timeout_s > 1.0
        used.append(cores)
        return {"seconds": [1.0], "conditions": {}, "energy_j": None}

    monkeypatch.setattr(evaluating, "call_in_worker", call)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    return used


def bundle(folder: Path, device: str = "cpu", **provenance: int) -> Path:
    target = {"machine": "m68k", "mcpu": "any", "cpu_features": [], "device": device}
    manifest = {
        "format": 1,
        "name": "n",
        "inputs": [],
        "outputs": [],
        "target": target,
        "provenance": provenance,
    }
    (folder / "bundle.json").write_text(json.dumps(manifest))
    return folder


def test_a_bundle_is_timed_on_as_many_cores_as_it_was_measured_on(
    pinned: list[frozenset[int]], tmp_path: Path
) -> None:
    timed = evaluating.evaluate_bundle(bundle(tmp_path, device_cores=2), 1.0)
    assert pinned == [{2, 3}] and timed["device_cores"] == 2


@pytest.mark.parametrize("known", [{}, {"device_cores": 0}])
def test_a_bundle_that_names_no_cores_gets_one(
    pinned: list[frozenset[int]], tmp_path: Path, known: dict[str, int]
) -> None:
    evaluating.evaluate_bundle(bundle(tmp_path, **known), 1.0)
    assert pinned == [{3}]


def test_the_user_may_choose_other_cores(pinned: list[frozenset[int]], tmp_path: Path) -> None:
    evaluating.evaluate_bundle(bundle(tmp_path, device_cores=2), 1.0, 3)
    assert pinned == [{1, 2, 3}]


def test_too_few_cores_are_told_with_the_remedy(pinned: list[frozenset[int]], tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"measured on 8 cores, but 4 are available; give --device-cores 4"):
        evaluating.evaluate_bundle(bundle(tmp_path, device_cores=8), 1.0)
    with pytest.raises(TargetError, match="--device-cores asks for 5 cores, but 4 are available"):
        evaluating.evaluate_bundle(bundle(tmp_path), 1.0, 5)
    assert pinned == []


def test_a_bundle_for_a_gpu_gets_the_gpu_to_itself_and_every_core(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found: dict[str, Any] = {}

    def call(_function: str, *_: Any, **options: Any) -> dict[str, Any]:
        found.update(options)
        return {"seconds": [1.0, 3.0], "conditions": {"core_mhz": 1980.0}, "energy_j": 0.5}

    gpu = Offer(
        resource=Device(name="cuda0", key="cuda"), environment={"CUDA_VISIBLE_DEVICES": "GPU-aa"},
        locks=("gpu-GPU-aa",), target="cuda",
    )  # fmt: skip
    monkeypatch.setattr(evaluating, "call_in_worker", call)
    monkeypatch.setattr(evaluating, "describe", lambda _order: SimpleNamespace(offers=(gpu,)))
    timed = evaluating.evaluate_bundle(bundle(tmp_path, device="cuda"), 1.0)
    assert found["environment"] == gpu.environment and found["locks"] == gpu.locks
    assert "cores" not in found and timed["device_cores"] == len(os.sched_getaffinity(0))
    assert (timed["energy_j"], timed["conditions"]) == (0.5, {"core_mhz": 1980.0})


def test_a_bundle_for_a_gpu_is_refused_in_one_line_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(evaluating, "describe", lambda _order: SimpleNamespace(offers=()))
    with pytest.raises(TargetError, match="was built for cuda, and this machine has no such device"):
        evaluating.evaluate_bundle(bundle(tmp_path, device="cuda"), 1.0)


def test_a_bundle_is_compared_with_the_fastest_way_of_another_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rivals = [
        {"name": "slow", "difference": 0.1, "seconds": [8.0]},
        {"name": "fast", "difference": 0.2, "seconds": [4.0]},
        {"name": "none", "failed": "no compiler"},
    ]
    answer = {"seconds": [2.0], "rivals": rivals, "tf32": False}
    monkeypatch.setattr(evaluating, "call_in_worker", lambda *_, **__: answer)
    found = evaluating.compare_bundle(bundle(tmp_path), "torch", 1.0)
    assert (found["against_name"], found["ratio"], found["difference"]) == ("fast", 0.5, 0.2)
    assert [each.get("ratio") for each in found["rivals"]] == [0.25, 0.5, None]
