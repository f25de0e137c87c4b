"""Borrowed schedules have to win inside the model, too."""

from dataclasses import dataclass, field

import pytest

from tuneloom.app.finishing import Finish
from tuneloom.app.progress import TaskProgress
from tuneloom.engine.calls import Call, CallResult, Died, Raised, Returned
from tuneloom.model import Artifact
from tuneloom.testing.small_jobs import drive, measured_trial, progress_of, small_spec
from tuneloom.tuners.tvm.model_stages import CheckResult, ModelRecipe

SAME = CheckResult(difference=0.0, tuned_s=(1.0,), untuned_s=(2.0,))


@dataclass(slots=True)
class Stages:
    """Answers for the last stages; `losers` are told once."""

    weighed: CallResult
    calls: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __call__(self, call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        self.calls.append(function)
        match function:
            case "contest":
                return Returned(value=[[1.0] for _ in call.arguments[0]])
            case "check_model":
                return Returned(value=SAME)
            case "slower_in_model":
                self.asked = list(call.arguments[1])
                return self.weighed
        return Returned(value=None)


def tuned(**origins: str) -> list[TaskProgress]:
    tasks = progress_of(*origins)
    for progress, origin in zip(tasks, origins.values(), strict=True):
        built = Artifact(payload=b"so")
        progress.add(measured_trial("p0", 10.0, "default"), built)
        progress.add(measured_trial("p1", 1.0, origin), built)
    return tasks


def finished(tasks: list[TaskProgress], stages: Stages) -> Finish:
    recipe = ModelRecipe(key="job", source="net.onnx", shapes={}, target="cpu")
    finish = Finish("job", small_spec(10), recipe, tasks, "out")
    drive(finish.begin(), stages)
    assert finish.finished and not finish.failure
    return finish


def test_only_borrowed_kernels_are_weighed() -> None:
    stages = Stages(Returned(value=[]))
    finish = finished(tuned(a="search", b="transfer:7", c="share:key-a"), stages)
    assert stages.asked == ["key-b", "key-c"]
    assert set(finish.schedules) == {"key-a", "key-b", "key-c"}
    assert stages.calls.count("compile_model") == 1


def test_a_model_that_borrowed_nothing_is_not_weighed() -> None:
    stages = Stages(Returned(value=[]))
    finished(tuned(a="search", b="guess"), stages)
    assert "slower_in_model" not in stages.calls


def test_a_borrowed_kernel_that_loses_in_the_model_is_dropped_and_the_model_compiled_again() -> None:
    stages = Stages(Returned(value=["key-b"]))
    finish = finished(tuned(a="search", b="transfer:7"), stages)
    assert set(finish.schedules) == {"key-a"}
    assert "slower inside the model" in finish.verdicts["key-b"].note
    assert stages.calls[-4:] == ["slower_in_model", "compile_model", "check_model", "export_model"]


@pytest.mark.parametrize(
    ("weighed", "compiles"),
    [(Raised(error="no instrument", trace=""), 1), (Died(reason="killed by SIGKILL"), 2)],
)
def test_what_cannot_be_weighed_is_kept(weighed: CallResult, compiles: int) -> None:
    stages = Stages(weighed)
    finish = finished(tuned(a="transfer:7"), stages)
    assert set(finish.schedules) == {"key-a"}
    assert stages.calls.count("compile_model") == compiles
    assert stages.calls[-1] == "export_model"
