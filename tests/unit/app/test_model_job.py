"""A model's way through the program, with scripted workers."""

import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from support.jobs.small import drive, measured_trial, small_context, small_spec, small_task
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned
from tuneloom.errors import ModelError, NothingMeasured
from tuneloom.model import (
    Artifact,
    Budget,
    CheckResult,
    Failure,
    FailureKind,
    LayoutChoice,
    Measurement,
    ModelSummary,
    Trial,
)
from tuneloom.testing.jobs.fake_stages import FakeStages
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE

SUMMARY = ModelSummary(
    name="net",
    digest="d",
    target="{}",
    family="llvm-512",
    tvm_version="0",
    tasks=(small_task("a"), small_task("b")),
    inputs=(),
    outputs=(),
    canary=b"",
    facts={},
)
Known = dict[str, list[Trial]]


def job_of(trials: int = 20, known: Known | None = None, seconds: float | None = None) -> ModelJob:
    spec = replace(small_spec(trials, seconds=seconds), reuse="off")
    return ModelJob(small_context(spec, known))


def workers(stages: FakeStages, opened: CallResult | None = None) -> Callable[[Call], CallResult]:
    """Scripted answers: the model's stages here, the tuner's stages from the fake."""
    own: dict[str, CallResult] = {
        "open_model": opened or Returned(value=SUMMARY),
        "compile_plain": Returned(value=None),
        "compile_guesses": Returned(value=True),
        "compile_model": Returned(value={}),
        "check_model": Returned(value=CheckResult(difference=0.0, tuned_s=(1.0,), untuned_s=(2.0,))),
    }

    def answer(call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        if function == "contest":
            return Returned(value=[[1e-3 * (1 + n)] for n in range(len(call.arguments[0]))])
        return own.get(function) or stages(call)

    return answer


def test_a_job_without_trials_goes_to_the_end_with_what_is_known() -> None:
    job = job_of(trials=0)
    functions: list[str] = []
    answers = workers(FakeStages())

    def listening(call: Call) -> CallResult:
        functions.append(call.function.partition(":")[2])
        return answers(call)

    drive(job.begin(0.0), listening)
    assert job.done and job.failure is None
    assert functions == ["open_model", "compile_model", "check_model"]
    assert job.result()["trials"] == 0 and "no trials were made" in job.result()["notes"][-1]


@pytest.mark.parametrize("trials", [0, 20])
def test_the_worker_that_opened_a_model_makes_all_of_it(trials: int) -> None:
    spec = replace(small_spec(trials), reuse="off")
    job = ModelJob(replace(small_context(spec, None), model_worker="checked"))
    used: dict[str, str | None] = {}
    answers = workers(FakeStages())

    def listening(call: Call) -> CallResult:
        used[call.function.partition(":")[2]] = call.worker
        return answers(call)

    drive(job.begin(0.0), listening)
    assert job.done and job.failure is None
    assert {used[name] for name in ("open_model", "compile_model", "check_model")} == {"checked"}


def test_a_model_is_opened_tuned_and_finished() -> None:
    job = job_of()
    drive(job.begin(0.0), workers(FakeStages()))
    assert job.done and job.failure is None
    assert job.tuning is not None and job.tuning.spent == 20
    assert job.finish is not None and set(job.finish.choices.schedules) == {"key-a", "key-b"}


def test_a_model_that_cannot_be_used_ends_the_job_with_its_own_error() -> None:
    job = job_of()
    wrong = ModelError("net.onnx: no such file")
    drive(job.begin(0.0), workers(FakeStages(), Returned(value=wrong)))
    assert job.done and job.failure is wrong


def test_an_importer_that_crashes_is_named_with_its_model() -> None:
    for result in (Raised(error="RuntimeError: oops", trace=""), Died(cause=KilledBy(signal.SIGSEGV))):
        job = job_of()
        drive(job.begin(0.0), workers(FakeStages(), result))
        assert job.done and "net.onnx can't be imported" in str(job.failure)


def test_no_success_without_a_measurement_and_the_first_error_is_told() -> None:
    stages = FakeStages(
        build=lambda _task, n: Failure(kind=FailureKind.BUILD_ERROR, message=f"error {n}\nmore of it")
    )
    job = job_of()
    drive(job.begin(0.0), workers(stages))
    assert isinstance(job.failure, NothingMeasured)
    assert str(job.failure).startswith("net: none of ")
    assert str(job.failure).endswith("trials of a succeeded; the first failed with: error 0")


def test_a_kernel_that_cannot_be_measured_keeps_its_default_and_the_others_are_tuned() -> None:
    stages = FakeStages(
        profile=lambda task, _n: (
            Measurement(seconds=(1.0,))
            if task.name == "a"
            else Failure(kind=FailureKind.RUN_ERROR, message="b is broken")
        )
    )
    job = job_of()
    drive(job.begin(0.0), workers(stages))
    assert job.done and job.failure is None and job.finish is not None
    result = job.result()["kernels"]
    assert result["key-a"]["used"] and not result["key-b"]["used"]
    assert "b is broken" in result["key-b"]["note"] and result["key-b"]["after_s"] is None
    assert job.finish.choices.schedules["key-b"] == NO_TRACE, "no guess is trusted where everything failed"


def test_one_search_that_fails_leaves_its_kernel_untuned_with_a_note() -> None:
    def answer(call: Call) -> CallResult:
        if call.function.endswith("open_and_select") and call.arguments[2].name == "a":
            return Raised(error="RuntimeError: no design space", trace="")
        return everyone(call)

    everyone, job = workers(FakeStages()), job_of()
    drive(job.begin(0.0), answer)
    assert job.done and job.failure is None
    note = job.result()["kernels"]["key-a"]["note"]
    assert note == "not tuned: its search ended: RuntimeError: no design space"


def test_the_untuned_model_is_compiled_while_kernels_are_tuned_and_once() -> None:
    calls: list[str] = []

    def answer(call: Call) -> CallResult:
        calls.append(call.function.partition(":")[2])
        return everyone(call)

    everyone, job = workers(FakeStages()), job_of(40)
    drive(job.begin(0.0), answer)
    assert job.done and calls.count("compile_plain") == 1
    last_update = len(calls) - 1 - calls[::-1].index("update")
    assert calls.index("compile_plain") < last_update < calls.index("compile_model")


def test_a_short_time_for_tuning_is_not_spent_on_the_untuned_model() -> None:
    calls: list[str] = []

    def answer(call: Call) -> CallResult:
        calls.append(call.function.partition(":")[2])
        return everyone(call)

    everyone = workers(FakeStages(build=lambda _task, n: Artifact(payload=str(n).encode(), build_s=5.0)))
    job = job_of(seconds=60.0)
    drive(job.begin(0.0), answer)
    last_update = len(calls) - 1 - calls[::-1].index("update")
    assert job.done and "compile_model" in calls[last_update:]
    assert "compile_plain" not in calls[:last_update]


def test_a_job_that_fails_waits_for_what_still_runs() -> None:
    stages = FakeStages(build=lambda _task, _n: Failure(kind=FailureKind.BUILD_ERROR, message="no"))
    everyone, job, plain = workers(stages), job_of(), []
    waiting = list(job.begin(0.0))
    while waiting:
        step = waiting.pop(0)
        if step.request.lane == "plain":
            plain.append(step)
            continue
        waiting += step.ended(everyone(step.call()), 1.0) or []
    assert isinstance(job.failure, NothingMeasured) and len(plain) == 1 and not job.done
    assert plain[0].ended(Returned(value=None), 2.0) == [] and job.done


def test_a_search_that_cannot_start_is_no_success_either() -> None:
    def answer(call: Call) -> CallResult:
        if call.function.endswith("open_and_select"):
            return Raised(error="RuntimeError: no design space", trace="")
        return workers(FakeStages())(call)

    job = job_of()
    drive(job.begin(0.0), answer)
    assert isinstance(job.failure, NothingMeasured) and "no design space" in str(job.failure)


def test_trials_of_an_earlier_run_are_not_made_again() -> None:
    known = {"key-a": [measured_trial(f"p{n}", 1.0 + n) for n in range(15)]}
    job = job_of(20, known)
    stages = FakeStages(build=lambda _task, n: Artifact(payload=str(n).encode()))
    drive(job.begin(0.0), workers(stages))
    assert job.tuning is not None and job.tuning.spent == 20
    assert dict(stages.opened_with).get("a", 15) == 15


def in_layouts(choice: CallResult, known: LayoutChoice | None = None) -> Callable[[Call], CallResult]:
    """Answers for a model that may have two layouts, in the second of which it has another kernel."""
    other = replace(SUMMARY, tasks=(small_task("c"),))
    answers = workers(FakeStages())

    def answer(call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        if function == "open_model":
            first = call.arguments[0].layout == "blocked"
            return Returned(value=replace(SUMMARY, layouts=LAID_OUT, chosen=known) if first else other)
        own = {"compile_layouts": Returned(value=None), "choose_layout": choice}
        return own.get(function) or answers(call)

    return answer


LAID_OUT = ("channels_last", "channels_first")
FIRST = LayoutChoice(layout="channels_first", seconds={"channels_last": 2e-3, "channels_first": 1e-3})
LAST = LayoutChoice(layout="channels_last", seconds={"channels_last": 1e-3, "channels_first": 2e-3})


@pytest.mark.parametrize(("choice", "kernels"), [(FIRST, ["key-c"]), (LAST, ["key-a", "key-b"])])
def test_kernels_are_those_of_the_layout_that_the_model_is_fastest_in(
    choice: LayoutChoice, kernels: list[str]
) -> None:
    job = job_of()
    drive(job.begin(0.0), in_layouts(Returned(value=choice)))
    assert list(job.result()["kernels"]) == kernels
    assert job.recipe.layout == ("blocked" if choice is LAST else "channels_first")
    assert job.result()["layout"] == {"layout": choice.layout, "seconds": choice.seconds}
    assert any(note.startswith(f"layout {choice.layout}: a run took") for note in job.result()["notes"])


@pytest.mark.parametrize("trials", [20, 1])
def test_a_layout_that_was_chosen_before_is_not_timed_again(trials: int) -> None:
    job = job_of(trials)
    drive(job.begin(0.0), in_layouts(Raised(error="it was timed", trace=""), known=FIRST))
    assert job.recipe.layout == "channels_first"
    assert list(job.result()["kernels"]) == ["key-c"]


def test_layouts_that_cannot_be_compared_cost_only_a_note() -> None:
    job = job_of()
    drive(job.begin(0.0), in_layouts(Raised(error="no memory", trace="")))
    assert job.failure is None
    assert list(job.result()["kernels"]) == ["key-a", "key-b"]
    assert "its layouts could not be compared" in job.result()["notes"][0]


@pytest.mark.parametrize(
    "asked",
    [{"layout": "channels_last"}, {"budget": Budget(trials=1)}, {"budget": Budget(trials=20, seconds=10)}],
)
def test_a_layout_that_is_given_and_a_small_budget_leave_nothing_to_choose(asked: dict[str, Any]) -> None:
    job = ModelJob(small_context(replace(small_spec(20), reuse="off", **asked)))
    drive(job.begin(0.0), in_layouts(Raised(error="it was timed", trace="")))
    assert "notes" not in job.result()


def test_a_job_told_to_stop_while_it_is_imported_still_ends_in_order() -> None:
    job = job_of()
    steps = job.begin(0.0)
    job.stopping()
    drive(steps, workers(FakeStages()))
    assert job.done and isinstance(job.failure, NothingMeasured)
