"""A bundle is timed on the cores it was measured on."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tuneloom.app.bundles import models
from tuneloom.errors import TargetError


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[int]]:
    """The cores that were used, on a machine of four."""
    used: list[frozenset[int]] = []

    def call(_function: str, *_: Any, cores: frozenset[int], timeout_s: float) -> list[float]:
        assert timeout_s > 1.0
        used.append(cores)
        return [1.0]

    monkeypatch.setattr(models, "call_in_worker", call)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    return used


def bundle(folder: Path, **provenance: int) -> Path:
    target = {"machine": "m68k", "mcpu": "any", "cpu_features": [], "device": "cpu"}
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
    timed = models.evaluate_bundle(bundle(tmp_path, device_cores=2), 1.0)
    assert pinned == [{2, 3}] and timed["device_cores"] == 2


@pytest.mark.parametrize("known", [{}, {"device_cores": 0}])
def test_a_bundle_that_names_no_cores_gets_one(
    pinned: list[frozenset[int]], tmp_path: Path, known: dict[str, int]
) -> None:
    models.evaluate_bundle(bundle(tmp_path, **known), 1.0)
    assert pinned == [{3}]


def test_the_user_may_choose_other_cores(pinned: list[frozenset[int]], tmp_path: Path) -> None:
    models.evaluate_bundle(bundle(tmp_path, device_cores=2), 1.0, 3)
    assert pinned == [{1, 2, 3}]


def test_too_few_cores_are_told_with_the_remedy(pinned: list[frozenset[int]], tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"measured on 8 cores, but 4 are available; give --device-cores 4"):
        models.evaluate_bundle(bundle(tmp_path, device_cores=8), 1.0)
    with pytest.raises(TargetError, match="--device-cores asks for 5 cores, but 4 are available"):
        models.evaluate_bundle(bundle(tmp_path), 1.0, 5)
    assert pinned == []
