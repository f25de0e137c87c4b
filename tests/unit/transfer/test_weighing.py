"""Borrowed schedules have to win inside the model, too."""

import signal
from dataclasses import dataclass, field, replace

import pytest

from support.jobs.small import drive, measured_trial, progress_of, small_spec
from tuneloom.app.finishing.choices import Choices
from tuneloom.app.finishing.finish import Finish
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned, TimedOut
from tuneloom.model import Artifact, CheckResult, ModelRecipe

SAME = CheckResult(difference=0.0, tuned_s=(1.0,), untuned_s=(2.0,))


@dataclass(slots=True)
class Stages:
    """Answers for the last stages; `losers` are told once."""

    weighed: CallResult
    calls: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    instead: set[str] = field(default_factory=set)
    compiled: list[dict[str, str] | None] = field(default_factory=list)
    contest_s: list[float] | None = None

    def __call__(self, call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        self.calls.append(function)
        match function:
            case "contest":
                times = self.contest_s or [1.0] * len(call.arguments[0])
                return Returned(value=[[seconds] for seconds in times])
            case "compile_model":
                self.compiled.append(call.arguments[-1])
                return Returned(value={})
            case "check_model":
                return Returned(value=SAME)
            case "slower_in_model":
                self.asked, self.instead = list(call.arguments[2]), set(call.arguments[3])
                return self.weighed
        return Returned(value=None)


def tuned(**origins: str) -> list[TaskProgress]:
    tasks = progress_of(*origins)
    for progress, origin in zip(tasks, origins.values(), strict=True):
        built = Artifact(payload=b"so")
        progress.add(measured_trial("p0", 10.0, "default"), built)
        progress.add(measured_trial("p1", 1.0, origin), built)
    return tasks


def finished(tasks: list[TaskProgress], stages: Stages, target: str = "cpu") -> Finish:
    recipe = ModelRecipe(key="job", source="net.onnx", shapes={}, target=target)
    finish = Finish("job", replace(small_spec(10), target=target), recipe, tasks, "out", Choices(target))
    drive(finish.begin(), stages)
    assert finish.finished and not finish.failure
    return finish


def test_only_borrowed_kernels_are_weighed() -> None:
    stages = Stages(Returned(value={}))
    finish = finished(tuned(a="search", b="transfer:7", c="share:key-a"), stages)
    assert stages.asked == ["key-b", "key-c"]
    assert stages.instead == {"key-a"}
    assert set(finish.choices.schedules) == {"key-a", "key-b", "key-c"}
    assert stages.calls.count("compile_model") == 1


def test_what_a_model_is_weighed_against_is_compiled_with_it_once() -> None:
    stages = Stages(Returned(value={"key-b": 2.0}))
    finished(tuned(a="search", b="transfer:7"), stages)
    weighed, afterwards = stages.compiled
    assert weighed is not None and weighed.keys() == stages.instead and afterwards is None


def test_a_gpu_is_not_held_for_weighing_what_takes_the_same_in_the_model() -> None:
    stages = Stages(Returned(value={}))
    finished(tuned(a="search", b="transfer:7"), stages, target="cuda")
    assert "slower_in_model" not in stages.calls


def test_a_model_that_borrowed_nothing_is_not_weighed() -> None:
    stages = Stages(Returned(value={}))
    finished(tuned(a="search", b="guess"), stages)
    assert "slower_in_model" not in stages.calls


def test_a_borrowed_kernel_that_loses_in_the_model_is_dropped_and_the_model_compiled_again() -> None:
    stages = Stages(Returned(value={"key-b": 3.0}))
    finish = finished(tuned(a="search", b="transfer:7"), stages)
    assert set(finish.choices.schedules) == {"key-a"}
    verdict = finish.choices.verdicts["key-b"]
    assert "slower inside the model" in verdict.note
    assert verdict.used_s == 3.0, "what it takes in the model, not what the default took"
    assert stages.calls[-4:] == ["slower_in_model", "compile_model", "check_model", "export_model"]


@pytest.mark.parametrize(
    ("weighed", "compiles"),
    [
        (Raised(error="no instrument", trace=""), 1),
        (Died(cause=KilledBy(signal.SIGKILL)), 2),
        (TimedOut(after_s=9.0), 2),
    ],
)
def test_what_cannot_be_weighed_is_kept(weighed: CallResult, compiles: int) -> None:
    stages = Stages(weighed)
    finish = finished(tuned(a="transfer:7"), stages)
    assert set(finish.choices.schedules) == {"key-a"}
    assert stages.calls.count("compile_model") == compiles
    assert stages.calls[-1] == "export_model"


def test_a_borrowed_kernel_that_loses_gives_way_to_the_tasks_own_best() -> None:
    tasks = tuned(a="transfer:7")
    for number, origin in enumerate(["share:b", "share:c", "guess", "search"]):
        tasks[0].add(
            measured_trial(f"q{number}", 1.1 + number / 10, origin), Artifact(payload=origin.encode())
        )
    stages = Stages(Returned(value={"key-a": 3.0}))
    finish = finished(tasks, stages)
    verdict = finish.choices.verdicts["key-a"]
    assert verdict.chosen is not None and verdict.chosen.trial.candidate.origin == "guess"
    assert verdict.note == "its borrowed schedule was slower inside the model: its own best is used instead"
    assert stages.calls.count("slower_in_model") == 1 and stages.calls.count("compile_model") == 2


def test_an_own_schedule_slower_than_the_default_is_no_way_out() -> None:
    tasks = tuned(a="transfer:7")
    tasks[0].add(measured_trial("slow", 11.0, "search"), Artifact(payload=b"so"))
    stages = Stages(Returned(value={"key-a": 3.0}), contest_s=[1.0, 11.0])
    finish = finished(tasks, stages)
    assert finish.choices.schedules == {} and "was dropped" in finish.choices.verdicts["key-a"].note
