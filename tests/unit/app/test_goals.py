"""Goals: what a job is tuned for, when it is met, and what is said early if it will hardly be."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from support.jobs.small import drive, small_context, small_spec, small_task
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.tuning.outlook import Standing, forecast, outlook
from tuneloom.app.tuning.spending import Goal
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import InputError, TuneloomError
from tuneloom.model import Budget, CheckResult, Measurement, ModelSummary
from tuneloom.testing.jobs.fake_stages import FakeStages

SUMMARY = ModelSummary(
    name="net", digest="d", target="{}", family="llvm-512", tasks=(small_task("a"), small_task("b"))
)
FASTER = FakeStages(profile=lambda _task, n: Measurement(seconds=(1e-3 / (1 + n),)))


class Workers:
    """Scripted answers; `whole_s` are the times of the whole model, check after check."""

    def __init__(self, whole_s: Iterable[float] = (), reference: float | TuneloomError = 1e-3) -> None:
        self.asked: list[str] = []
        self._whole_s = list(whole_s)
        self._reference = reference

    def __call__(self, call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        self.asked.append(function)
        match function:
            case "open_model":
                return Returned(value=SUMMARY)
            case "reference_s":
                return Returned(value=self._reference)
            case "compile_plain" | "compile_guesses" | "compile_model":
                return Returned(value={})
            case "check_model":
                seconds = self._whole_s.pop(0) if self._whole_s else 1e-6
                return Returned(value=CheckResult(difference=0.0, tuned_s=(seconds,), untuned_s=(2.0,)))
            case "contest":
                return Returned(value=[[1e-3 * (1 + n)] for n in range(len(call.arguments[0]))])
        return FASTER(call)


def job_for(budget: Budget) -> ModelJob:
    return ModelJob(small_context(replace(small_spec(8), reuse="off", budget=budget)))


def test_a_part_of_another_runtime_s_time_is_a_goal_once_that_was_timed() -> None:
    goal = Goal(Budget(trials=1, goal_ratio=0.8))
    assert goal.latency_s is None and not goal.met_by(0.0)
    goal.reference_s = 1e-3
    assert goal.latency_s == pytest.approx(0.8e-3)
    assert goal.met_by(0.7e-3) and not goal.met_by(0.9e-3)


def test_of_two_goals_both_have_to_be_met() -> None:
    goal = Goal(Budget(trials=1, goal_ms=3, goal_ratio=0.5), reference_s=4e-3)
    assert goal.latency_s == 2e-3


def test_a_job_ends_as_soon_as_its_model_is_fast_enough_against_the_other_runtime() -> None:
    workers, job = Workers(), job_for(Budget(trials=1000, goal_ratio=0.5))
    drive(job.begin(0.0), workers)
    assert workers.asked.index("reference_s") < workers.asked.index("open_and_select")
    assert job.tuning is not None and job.tuning.spent < 200
    assert job.result()["goal"] == {"wanted_s": 0.5e-3, "onnxruntime_s": 1e-3, "met": True}


def test_a_runtime_that_can_t_be_timed_ends_the_job_with_its_own_words() -> None:
    job = job_for(Budget(trials=10, goal_ratio=0.5))
    drive(job.begin(0.0), Workers(reference=InputError("onnxruntime is not installed")))
    assert job.done and "not installed" in str(job.failure)


def test_a_model_that_misses_the_goal_as_a_whole_is_tuned_on() -> None:
    workers, job = Workers(whole_s=[0.9e-3, 0.4e-3]), job_for(Budget(trials=1000, goal_ms=0.5))
    drive(job.begin(0.0), workers)
    assert workers.asked.count("check_model") == 2
    assert job.done and job.failure is None
    assert job.result()["goal"] == {"wanted_s": 0.5e-3, "met": True}


def test_a_goal_that_can_t_be_met_ends_with_the_budget_and_says_so() -> None:
    workers, job = Workers(whole_s=[1.0] * 9), job_for(Budget(trials=40, goal_ms=0.2))
    drive(job.begin(0.0), workers)
    assert job.done and job.tuning is not None and job.tuning.spent == 40
    assert job.result()["goal"]["met"] is False


def test_only_onnx_models_on_the_cpu_are_compared_with_onnx_runtime() -> None:
    base = {"name": "a", "goal_ratio": 0.8}
    assert job_spec({**base, "model": "net.onnx"}).budget.goal_ratio == 0.8
    for values in (
        {"model": "net.tflite"},
        {"model": "mock:size=4"},
        {"model": "net.onnx", "target": "cuda"},
    ):
        with pytest.raises(InputError) as raised:
            job_spec({**base, **values})
        assert raised.value.field == "goal_ratio"


CURVE = [(n, 1e-2 * n**-0.3) for n in (8, 16, 32, 64, 128)]


def test_the_curve_is_drawn_on_and_the_further_the_less_sure() -> None:
    near, far = forecast(CURVE, 256), forecast(CURVE, 4096)
    assert near is not None and far is not None
    assert near.expected_s == pytest.approx(1e-2 * 256**-0.3, rel=1e-6)
    assert near.low_s < near.expected_s < near.high_s
    assert far.high_s / far.low_s > near.high_s / near.low_s


def test_two_points_are_no_curve() -> None:
    assert forecast(CURVE[:2], 1000) is None and forecast([], 10) is None


def test_a_hopeless_goal_is_told_early_and_a_near_one_is_not() -> None:
    standing = Standing(spent=128, budget=256, pace_s=1.0, at_s=128.0, goal_s=1e-3)
    assert "will hardly be met with this budget" in outlook(standing, CURVE)
    assert outlook(replace(standing, goal_s=1.9e-3), CURVE) == ""
    assert outlook(replace(standing, goal_s=1.0), CURVE) == ""


def test_a_deadline_that_will_be_missed_is_told() -> None:
    standing = Standing(spent=128, budget=1000, pace_s=1.0, at_s=128.0, deadline_s=200.0)
    assert outlook(standing, CURVE) == (
        "the deadline will be missed by about 800 s if the whole budget is spent"
    )
    assert outlook(replace(standing, deadline_s=2000.0), CURVE) == ""


def test_a_goal_that_would_take_longer_than_the_deadline_is_told_with_it() -> None:
    standing = Standing(spent=128, budget=10**6, pace_s=1.0, at_s=128.0, deadline_s=200.0, goal_s=1e-3)
    words = outlook(standing, CURVE)
    assert "will hardly be met by the deadline" in words and "goes on to the best" in words
