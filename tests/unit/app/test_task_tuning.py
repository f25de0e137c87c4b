"""How a budget of trials is spent on tasks."""

import signal

import pytest

from support.jobs.small import drive, measured_trial, progress_of, small_spec
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned, TimedOut
from tuneloom.model import Artifact, Failure, FailureKind, Measurement, Task, Trial
from tuneloom.scheduling.stages import ANY_CORE
from tuneloom.testing.jobs.fake_stages import FakeStages

KEPT = list[tuple[str, str]]


def tuning_of(
    names: str,
    trials: int,
    kept: KEPT | None = None,
    *,
    lanes: int = 3,
    seconds: float | None = None,
    goal_ms: float | None = None,
) -> TaskTuning:
    """A tuning of tasks named by letters, all searches in one worker."""

    def keep(task: Task, trial: Trial, _artifact: Artifact | None) -> None:
        if kept is not None:
            kept.append((task.name, trial.candidate.key))

    spec = small_spec(trials, seconds=seconds, goal_ms=goal_ms)
    return TaskTuning("job", spec, progress_of(*names), keep, lanes=lanes, workers=1)


@pytest.mark.parametrize("trials", [1, 3, 4, 17, 100])
@pytest.mark.parametrize("lanes", [1, 3])
def test_the_budget_is_spent_to_the_trial(trials: int, lanes: int) -> None:
    kept: KEPT = []
    tuning = tuning_of("abc", trials, kept, lanes=lanes)
    drive(tuning.begin(0.0, b""), FakeStages())
    assert tuning.spent == len(kept) == len(set(kept)) == trials
    assert not tuning.running
    assert all(task.in_flight == task.lanes == 0 for task in tuning.tasks)


def test_searches_begin_wherever_cores_are_free() -> None:
    steps = tuning_of("abc", 100).begin(0.0, b"")
    assert steps and all(step.request.needs == ANY_CORE == step.request.then for step in steps)


def test_failures_cost_trials_and_are_counted_by_kind() -> None:
    stages = FakeStages(
        build=lambda _task, n: (
            Raised(error="ValueError: no", trace="") if n % 4 == 1 else Artifact(payload=str(n).encode())
        ),
        profile=lambda _task, n: TimedOut(after_s=10.0) if n % 4 == 2 else Measurement(seconds=(1.0,)),
    )
    tuning = tuning_of("a", 40)
    drive(tuning.begin(0.0, b""), stages)
    assert tuning.tasks[0].failures == {FailureKind.BUILD_ERROR: 10, FailureKind.RUN_TIMEOUT: 10}
    assert tuning.tasks[0].measured == 20
    assert tuning.tasks[0].first_error == "ValueError: no"


def test_every_trial_is_kept_before_the_search_hears_of_it() -> None:
    stages = FakeStages()

    def keep(task: Task, trial: Trial, _artifact: Artifact | None) -> None:
        stages.log.append(f"keep {task.name}")

    tuning = TaskTuning("job", small_spec(30), progress_of("a", "b"), keep, lanes=3, workers=2)
    drive(tuning.begin(0.0, b""), stages)
    for name in "ab":
        kept = heard = 0
        for line in stages.log:
            kept += line == f"keep {name}"
            heard += int(line.split()[2]) if line.startswith(f"update {name}") else 0
            assert heard <= kept
        assert heard == kept > 0


def test_first_batches_reach_every_task_while_the_budget_is_small() -> None:
    tuning = tuning_of("abcdefgh", 32)
    drive(tuning.begin(0.0, b""), FakeStages())
    assert len(tuning.tasks) == 8 and all(task.trials for task in tuning.tasks)


@pytest.mark.parametrize("function", ["open_and_select", "select", "update"])
def test_a_lost_search_worker_is_replaced_and_told_all_known_trials(function: str) -> None:
    kept: KEPT = []
    stages = FakeStages()
    tuning = tuning_of("ab", 60, kept)
    steps = tuning.begin(0.0, b"")
    stages.crash_at_next(function)
    drive(steps, stages)
    assert tuning.spent == len(set(kept)) == 60
    assert not any(task.exhausted for task in tuning.tasks)
    reopened = dict(stages.opened_with)
    assert set(reopened) == {"a", "b"}
    if function != "open_and_select":
        assert all(known > 0 for known in reopened.values())


def test_a_search_whose_worker_always_dies_is_given_up() -> None:
    def dying(call: Call) -> CallResult:
        return Died(cause=KilledBy(signal.SIGSEGV))

    tuning = tuning_of("a", 10, lanes=1)
    steps = drive(tuning.begin(0.0, b""), dying)
    assert steps == 3
    assert tuning.spent == 0
    assert "SIGSEGV" in tuning.tasks[0].first_error


def test_a_search_whose_worker_others_kill_is_opened_again_and_again() -> None:
    healthy, kills = FakeStages(), iter(range(12))

    def answer(call: Call) -> CallResult:
        if call.function.endswith("select") and next(kills, None) is not None:
            return Died(cause=KilledBy(signal.SIGKILL))
        return healthy(call)

    tuning = tuning_of("a", 10, lanes=1)
    drive(tuning.begin(0.0, b""), answer)
    assert tuning.spent == 10 and not tuning.tasks[0].exhausted


def test_kills_by_others_leave_a_search_its_tries() -> None:
    deaths = iter([signal.SIGKILL] * 5 + [signal.SIGSEGV] * 9)
    tuning = tuning_of("a", 10, lanes=1)
    steps = drive(tuning.begin(0.0, b""), lambda _: Died(cause=KilledBy(next(deaths))))
    assert steps == 5 + 3
    assert tuning.tasks[0].exhausted


def test_a_search_that_is_gone_without_notice_is_opened_again() -> None:
    healthy, asked = FakeStages(), []

    def answer(call: Call) -> CallResult:
        if call.function.endswith(":select"):
            asked.append(call.function)
            if len(asked) == 2:
                return Returned(value=None)
        return healthy(call)

    tuning = tuning_of("a", 40, lanes=1)
    drive(tuning.begin(0.0, b""), answer)
    assert len(asked) > 2 and len(healthy.opened_with) == 2
    assert tuning.spent == 40 and not tuning.tasks[0].exhausted


def test_a_search_that_raises_is_given_up_and_the_others_go_on() -> None:
    healthy = FakeStages()

    def answer(call: Call) -> CallResult:
        if call.function.endswith("open_and_select") and call.arguments[2].name == "a":
            return Raised(error="RuntimeError: no space", trace="")
        return healthy(call)

    tuning = tuning_of("ab", 20)
    drive(tuning.begin(0.0, b""), answer)
    first, second = tuning.tasks
    assert first.exhausted and first.first_error == "its search ended: RuntimeError: no space"
    assert len(second.trials) == 20


def test_exhausted_spaces_end_the_tuning_with_budget_left() -> None:
    tuning = tuning_of("ab", 1000)
    drive(tuning.begin(0.0, b""), FakeStages(space=7))
    assert [len(task.trials) for task in tuning.tasks] == [7, 7]
    assert all(task.exhausted for task in tuning.tasks) and not tuning.running


def test_a_candidate_proposed_twice_is_tried_once() -> None:
    kept: KEPT = []
    stages = FakeStages(space=20)
    tuning = tuning_of("a", 20, kept)
    steps = tuning.begin(0.0, b"")
    stages.crash_at_next("select")
    drive(steps, stages)
    assert len(kept) == len(set(kept)) == 20


def test_the_goal_ends_the_tuning() -> None:
    tuning = tuning_of("ab", 1000, goal_ms=2.5)
    drive(tuning.begin(0.0, b""), FakeStages())
    assert tuning.latency_s == pytest.approx(2e-3)
    assert tuning.spent < 1000


def test_the_time_ends_the_tuning_and_nothing_is_built_after_it() -> None:
    kept: KEPT = []
    built: list[int] = []

    def build(_task: str, number: int) -> Artifact:
        built.append(number)
        return Artifact(payload=str(number).encode())

    tuning, stages = tuning_of("a", 1000, kept, seconds=20.0), FakeStages(build=build)
    drive(tuning.begin(0.0, b""), stages)
    assert 0 < len(built) == tuning.spent == len(kept) < 20, "what was built is measured"
    assert stages.log[-1] == "select a", "candidates that were chosen last are not built any more"
    assert tuning.tasks[0].in_flight == tuning.tasks[0].lanes == 0 and not tuning.running


def test_a_task_that_has_no_schedule_when_the_time_is_over_still_gets_its_first() -> None:
    tuning = tuning_of("ab", 1000, seconds=1.0)
    drive(tuning.begin(0.0, b""), FakeStages())
    assert all(0 < len(task.trials) <= 6 and task.best for task in tuning.tasks)


@pytest.mark.parametrize(("seconds", "first"), [(10.0, 5), (4.0, 4), (100.0, 8), (None, 64)])
def test_first_batches_are_small_where_time_may_end_the_tuning(seconds: float | None, first: int) -> None:
    spec = small_spec(1000, batch=64, seconds=seconds)
    tuning = TaskTuning("job", spec, progress_of("a", "b"), lambda *_: None, lanes=2, workers=1)
    assert [step.call().arguments[-1] for step in tuning.begin(0.0, b"")] == [first, first]


def test_stopping_opens_no_more_batches() -> None:
    tuning = tuning_of("abc", 1000)
    steps = tuning.begin(0.0, b"")
    tuning.stop()
    drive(steps, FakeStages())
    assert 0 < tuning.spent <= 3 * 4


def test_known_trials_count_against_the_budget() -> None:
    tuning = tuning_of("a", 10)
    for number in range(8):
        tuning.tasks[0].add(measured_trial(f"p{number}", 1.0), None)
    stages = FakeStages()
    drive(tuning.begin(0.0, b""), stages)
    assert tuning.spent == 10
    assert stages.opened_with == [("a", 8)]


def test_the_canary_is_timed_once_a_batch_and_costs_no_trial() -> None:
    stages = FakeStages()
    tuning = tuning_of("a", 8)
    drive(tuning.begin(0.0, b"0"), stages)
    assert tuning.spent == 8
    assert len(tuning.canary_s) == 2


def test_a_canary_that_fails_disturbs_nothing() -> None:
    stages = FakeStages(
        profile=lambda _task, n: (
            Failure(kind=FailureKind.RUN_ERROR, message="") if n == 77 else Measurement(seconds=(1.0,))
        )
    )
    tuning = tuning_of("a", 8)
    drive(tuning.begin(0.0, b"77"), stages)
    assert tuning.spent == 8 and tuning.canary_s == []
