"""Which kernels are compiled alone to find the one that changes a model's outputs."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE
from tuneloom.tuners.tvm.models import checking


class Builds:
    """Stands for compiling: a model whose output is wrong if a certain kernel is scheduled."""

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong
        self.asked: list[set[str]] = []

    def __call__(self, _lowered: Any, schedules: dict[str, str]) -> Any:
        self.asked.append(set(schedules))
        output = np.full(4, 2.0 if self.wrong in schedules else 1.0)
        return SimpleNamespace(open=lambda: SimpleNamespace(run=lambda _values: [output]))


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    found = Builds(wrong="bad")
    monkeypatch.setattr(checking, "build_model", found)
    monkeypatch.setattr(checking, "tolerance_of", lambda _recipe: 1e-3)
    return found


def guilty_on(kind: str, schedules: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lowered = SimpleNamespace(target=SimpleNamespace(kind=kind), inputs=())
    monkeypatch.setattr(checking, "lowered_model", lambda _recipe: lowered)
    return checking.guilty_kernels(
        ModelRecipe(key="net", source="net.onnx", target=kind, shapes={}), schedules, 0
    )


def test_the_schedule_that_changes_the_outputs_is_found(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert guilty_on("llvm", {"good": "[[], []]", "bad": "[[], []]"}, monkeypatch) == ["bad"]


def test_on_a_gpu_loops_without_threads_are_never_compiled(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules = {"as it is": NO_TRACE, "bad": "[[1], []]"}
    assert guilty_on("cuda", schedules, monkeypatch) == ["bad"]
    assert builds.asked == [set(), {"bad"}]
