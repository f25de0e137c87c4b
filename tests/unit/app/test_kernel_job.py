"""A kernel's way through the program, with scripted workers."""

import json
import pickle
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from support.jobs.small import drive, measured_trial, small_context
from tuneloom.app.conducting.programs import Step
from tuneloom.app.kinds.kernel.job import KernelJob
from tuneloom.app.kinds.kernel.presampling import Sample
from tuneloom.app.kinds.kernel.specs import kernel_spec
from tuneloom.app.kinds.kernel.tuning import KernelTuning
from tuneloom.engine.calls import Call, CallResult, Died, ExitedWith, KilledBy, Raised, Returned, TimedOut
from tuneloom.errors import BudgetError, InputError, NothingMeasured
from tuneloom.model import Artifact, Candidate, Failure, FailureKind, Measurement, ModelSummary, Task, Trial
from tuneloom.scheduling.stages import DeviceDemand
from tuneloom.testing.jobs.fake_stages import FakeStages
from tuneloom.tuners.kernel import ON_DEVICE
from tuneloom.tuners.kernel.cargo import Cargo

CARGO = Cargo(paths=(), space=b"space", build=b"build", run=b"run")
TASK = Task(key="kernel:conv:1", name="conv", kernel_class="kernel", payload=pickle.dumps(CARGO))
SUMMARY = ModelSummary(
    name="conv",
    digest="1",
    target="cpu",
    family="kernel-cpu",
    tvm_version="",
    tasks=(TASK,),
    inputs=(),
    outputs=(),
    canary=b"",
    facts={},
)
LEARNED = {"pairs": [], "importance": {"tile": 1.0}}


class Notes:
    """What a store would keep of the job."""

    def __init__(self, presampled: Sequence[Sample] | None = None) -> None:
        self.samples = presampled
        self.opened: list[ModelSummary] = []

    def features(self) -> list[tuple[dict[str, float], float]]:
        return [({"code_bytes": 10.0}, 0.1)]

    def presampled(self) -> Sequence[Sample] | None:
        return self.samples

    def keep_presampled(self, _task: str, samples: Sequence[Sample], _took_s: float) -> None:
        self.samples = list(samples)


def job_of(
    trials: int = 6,
    known: dict[str, list[Trial]] | None = None,
    notes: Notes | None = None,
    workers: int = 1,
    **extra: Any,
) -> KernelJob:
    kept = notes or Notes()

    def opened(summary: ModelSummary) -> dict[str, list[Trial]]:
        kept.opened.append(summary)
        return known or {}

    spec = kernel_spec("conv", "conv.toml", "cpu", {"trials": trials, **extra})
    return KernelJob(small_context(spec, opened=opened, workers=workers), kept)


def workers(
    stages: FakeStages, facts: dict[str, Any] | None = None, batches: Sequence[int] = ()
) -> Callable[[Call], CallResult]:
    """Scripted answers: opening, presampling and looking back here, the stages from the fake."""
    left = list(batches)

    def answer(call: Call) -> CallResult:
        match call.function.partition(":")[2]:
            case "open_kernel":
                return Returned(value=replace(SUMMARY, facts=facts or {}))
            case "presample":
                count = left.pop(0) if left else 0
                return Returned(value=[Candidate(key=f"s{n}", configuration=str(n)) for n in range(count)])
            case "insight":
                return Returned(value=LEARNED)
            case _:
                return stages(call)

    return answer


def test_a_kernel_is_opened_tuned_and_looked_back_on() -> None:
    job = job_of()
    drive(job.begin(0.0), workers(FakeStages()))
    assert job.done and job.failure is None
    result = job.result()
    assert (result["trials"], result["best_s"], result["validity"]) == (6, 1e-3, LEARNED)


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (Died(cause=KilledBy(signal.SIGSEGV)), "killed by SIGSEGV"),
        (TimedOut(after_s=600.0), "it did not end within 600 s"),
        (Raised(error="ValueError: no", trace=""), "ValueError: no"),
    ],
)
def test_a_reference_that_crashes_or_hangs_ends_the_job_with_the_reason(
    ended: CallResult, reason: str
) -> None:
    job = job_of()
    drive(job.begin(0.0), lambda _call: ended)
    assert job.done and str(job.failure) == f"conv: its reference can't be computed: {reason}"


def test_no_function_reaches_the_store() -> None:
    notes = Notes()
    drive(job_of(notes=notes).begin(0.0), workers(FakeStages()))
    assert [task.payload for task in notes.opened[0].tasks] == [b""]


def test_every_stage_gets_its_part_of_the_kernel_and_no_other() -> None:
    parts: dict[str, Cargo] = {}
    stages = FakeStages()

    def answer(call: Call) -> CallResult:
        stage = call.function.partition(":")[2]
        for argument in call.arguments:
            if isinstance(argument, Task):
                parts[stage] = pickle.loads(argument.payload)
        return workers(stages)(call)

    drive(job_of().begin(0.0), answer)
    assert (parts["build"].build, parts["build"].run, parts["build"].space) == (b"build", b"", b"")
    assert (parts["profile"].build, parts["profile"].run) == (b"", b"run")
    assert (parts["open_and_select"].space, parts["open_and_select"].run) == (b"space", b"")


def seen(steps: Sequence[Step], answer: Callable[[Call], CallResult]) -> dict[str, list[Any]]:
    """Drive to the end; the demands of every kind of stage."""
    demands: dict[str, list[Any]] = {}
    waiting = list(steps)
    while waiting:
        step = waiting.pop(0)
        demands.setdefault(step.request.kind, []).append(step.request.needs)
        waiting += step.ended(answer(step.call()), 1.0) or []
    return demands


@pytest.mark.parametrize("on_device", [False, True])
def test_only_what_needs_the_device_holds_it(on_device: bool) -> None:
    demands = seen(job_of().begin(0.0), workers(FakeStages(), {ON_DEVICE: on_device}))
    held = {kind: all(isinstance(need, DeviceDemand) for need in needs) for kind, needs in demands.items()}
    assert held == {
        "initialise": False,
        "select": False,
        "build": on_device,
        "profile": True,
        "update": False,
        "finalise": False,
    }


def test_known_trials_count_and_are_told_to_the_search() -> None:
    stages = FakeStages()
    known = {TASK.key: [measured_trial("p3", 0.5), measured_trial("p4", 0.4)]}
    job = job_of(trials=6, known=known)
    drive(job.begin(0.0), workers(stages))
    assert stages.opened_with == [("conv", 2)]
    assert job.tuning is not None and job.tuning.spent == 6


def test_trials_of_a_kernel_that_was_changed_are_refused() -> None:
    job = job_of(known={"kernel:conv:0": [measured_trial("p1", 1.0)]})
    drive(job.begin(0.0), workers(FakeStages()))
    assert isinstance(job.failure, InputError) and "was changed" in str(job.failure)


def test_a_kernel_of_which_nothing_works_says_what_happened_most() -> None:
    def build(_task: Task, number: int) -> Artifact | Failure:
        kind = FailureKind.BUILD_TIMEOUT if number == 0 else FailureKind.BUILD_ERROR
        return Failure(kind=kind, message=f"number {number}")

    job = job_of()
    drive(job.begin(0.0), workers(FakeStages(build=build)))
    assert isinstance(job.failure, NothingMeasured)
    assert "all 6 configurations failed; 5 with build_error, for example: number 1" in str(job.failure)


def numbered(_task: Task, number: int) -> Artifact:
    return Artifact(payload=str(number).encode(), features={"code_bytes": 100.0 - number})


def test_spares_are_built_and_only_run_when_nothing_else_is_left() -> None:
    job = job_of(trials=4, spare=1)
    drive(job.begin(0.0), workers(FakeStages(build=numbered)))
    assert isinstance(job.tuning, KernelTuning)
    assert (job.tuning.spent, job.tuning.built_only) == (4, 3)
    small = job_of(trials=20, spare=1)
    drive(small.begin(0.0), workers(FakeStages(space=7, build=numbered)))
    assert isinstance(small.tuning, KernelTuning)
    assert (small.tuning.spent, small.tuning.built_only) == (7, 0)


def test_a_spare_that_fails_to_build_never_exceeds_the_budget() -> None:
    def build(_task: Task, number: int) -> Artifact | Failure:
        return numbered(_task, number) if number % 3 == 0 else Failure(kind=FailureKind.BUILD_ERROR)

    for trials in (3, 4, 5, 9):
        job = job_of(trials=trials, spare=2)
        drive(job.begin(0.0), workers(FakeStages(build=build)))
        assert job.tuning is not None and job.tuning.spent == trials


def test_presampling_builds_batches_and_teaches_the_search() -> None:
    notes = Notes()
    job = job_of(notes=notes, presample=True)
    options: list[Any] = []
    stages = FakeStages(
        build=lambda _task, n: numbered(_task, n) if n % 2 else Failure(kind=FailureKind.BUILD_ERROR)
    )
    scripted = workers(stages, batches=(2, 1))

    def answer(call: Call) -> CallResult:
        if call.function.endswith(":open_and_select"):
            options.append(call.arguments[3])
        return scripted(call)

    drive(job.begin(0.0), answer)
    assert notes.samples == [("0", False), ("1", True), ("0", False)]
    assert json.loads(options[0].extra["presampled"]) == [[0, False], [1, True], [0, False]]
    assert job.presampling_s > 0 and job.result()["presampling_s"] == job.presampling_s


def test_after_presampling_builds_that_fail_cost_no_trials() -> None:
    stages = FakeStages(
        build=lambda task, n: numbered(task, n) if n % 2 else Failure(kind=FailureKind.BUILD_ERROR)
    )
    job = job_of(trials=6, presample=True)
    drive(job.begin(0.0), workers(stages))
    assert job.tuning is not None and job.tuning.spent == 6
    trials = job.tuning.tasks[0].trials
    assert sum(trial.built for trial in trials) == 6 < len(trials)


def test_a_kernel_of_which_nothing_builds_ends_after_presampling_too() -> None:
    stages = FakeStages(build=lambda _task, _n: Failure(kind=FailureKind.BUILD_ERROR))
    job = job_of(trials=2, presample=True)
    drive(job.begin(0.0), workers(stages))
    assert job.done and job.tuning is not None
    assert len(job.tuning.tasks[0].trials) == 18


def test_what_was_presampled_before_is_not_built_again() -> None:
    job = job_of(notes=Notes([("0", True)]), presample=True)
    asked: list[str] = []

    def answer(call: Call) -> CallResult:
        asked.append(call.function.partition(":")[2])
        return workers(FakeStages())(call) if len(asked) < 3 else Died(cause=ExitedWith(1))

    for step in job.begin(0.0):
        step.ended(answer(step.call()), 1.0)
    assert asked == ["open_kernel"] and job.tuning is not None


def test_losing_the_last_look_loses_no_result() -> None:
    job, scripted = job_of(), workers(FakeStages())

    def answer(call: Call) -> CallResult:
        return Died(cause=ExitedWith(1)) if call.function.endswith(":insight") else scripted(call)

    drive(job.begin(0.0), answer)
    assert job.done and job.failure is None
    assert "validity" not in job.result() and job.result()["best_s"] == 1e-3


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"search": "magic"}, "no search 'magic'; known: guided"),
        ({"init": "luck"}, "no start 'luck'; known: validity"),
        ({"trials": 0}, "trials must be a whole number of at least 1"),
        ({"seconds": -1}, "seconds must be a number above 0"),
        ({"run_timeout_s": 0}, "run_timeout_s must be a number above 0"),
    ],
)
def test_values_that_make_no_sense_are_refused(values: dict[str, Any], error: str) -> None:
    with pytest.raises((InputError, BudgetError), match=error):
        kernel_spec("conv", "conv.toml", "cpu", values)


@pytest.mark.parametrize(("build_s", "most"), [(0.1, 2), (2.5, 4), (50.0, 9)])
def test_no_more_candidates_are_under_way_than_keep_the_device_busy(build_s: float, most: int) -> None:
    job = job_of(trials=40, workers=8)
    answer = workers(
        FakeStages(
            build=lambda _task, n: Artifact(payload=str(n).encode(), build_s=build_s),
            profile=lambda _task, n: Measurement(seconds=(1e-3 * (n + 1),), profile_s=1.0),
        )
    )
    waiting, under_way = list(job.begin(0.0)), []
    while waiting:
        step = waiting.pop(0)
        waiting += step.ended(answer(step.call()), 1.0) or []
        under_way.append(job.tuning.tasks[0].in_flight if job.tuning else 0)
    assert max(under_way) == most
