"""Trials become curves, counts and times."""

from dataclasses import replace

import pytest

from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Task, Trial
from tuneloom.model.space import configured
from tuneloom.report import CurvePoint, TaskTrial, failure_counts, progress_of, task_result
from tuneloom.report.data import ReportData, TaskResult
from tuneloom.report.sections.kernels import kernels_section
from tuneloom.report.sections.tables import came_from


def tried(outcome: float | FailureKind, origin: str = "search", message: str = "") -> Trial:
    candidate = Candidate(key="k", configuration="{}", origin=origin)
    if isinstance(outcome, FailureKind):
        return Trial(candidate=candidate, outcome=Failure(kind=outcome, message=message))
    return Trial(candidate=candidate, outcome=Measurement(seconds=(outcome, outcome * 2)))


TASK = Task(key="k", name="conv", weight=3)
TRIALS = [
    tried(4.0, "default"),
    tried(FailureKind.BUILD_ERROR),
    tried(5.0),
    tried(2.0, "donor"),
    tried(3.0),
]


def test_a_curve_has_a_point_for_every_improvement() -> None:
    result = task_result("job", TASK, TRIALS)
    assert result.curve == (CurvePoint(trial=1, best_s=4.0), CurvePoint(trial=4, best_s=2.0))
    assert result.failed_at == (2,)
    assert result.trials == 5


def test_the_default_trial_is_before_and_the_best_is_after() -> None:
    result = task_result("job", TASK, TRIALS)
    assert (result.before_s, result.after_s, result.speed_up) == (4.0, 2.0, 2.0)
    assert (result.origin, result.cost_s) == ("donor", 12.0)


@pytest.mark.parametrize(
    ("configuration", "implementer", "row"),
    [("[[], []]", "", "search"), (configured("weaver", {"rows": 4}), "weaver", "search, weaver")],
)
def test_who_made_the_code_is_told_unless_it_was_tvm(configuration: str, implementer: str, row: str) -> None:
    candidate = Candidate(key="k", configuration=configuration, origin="search")
    result = task_result(
        "job", TASK, [Trial(candidate=candidate, outcome=Measurement(seconds=(1.0,)))], before_s=2.0
    )
    assert result.implementer == implementer and came_from(result) == row
    drawn = str(kernels_section(ReportData(run="r", tasks=(result,))))
    assert ("[weaver]" in drawn) == ("code by weaver" in drawn) == bool(implementer)


def test_final_times_go_before_those_of_trials() -> None:
    result = task_result("job", TASK, TRIALS, before_s=4.4, after_s=2.2)
    assert (result.before_s, result.after_s) == (4.4, 2.2)


def test_what_the_model_runs_but_nobody_timed_has_no_time() -> None:
    result = task_result("job", TASK, TRIALS, before_s=4.4, decided=True)
    assert (result.before_s, result.after_s) == (4.4, None)


def test_a_task_without_a_measurement_has_no_times() -> None:
    result = task_result("job", TASK, [tried(FailureKind.RUN_ERROR)])
    assert (result.before_s, result.after_s, result.speed_up, result.curve) == (None, None, None, ())


def test_progress_is_the_weighted_sum_of_the_best() -> None:
    trials = [
        TaskTrial(task_key="a", trial=tried(1.0)),
        TaskTrial(task_key="b", trial=tried(10.0)),
        TaskTrial(task_key="a", trial=tried(FailureKind.RUN_ERROR)),
        TaskTrial(task_key="a", trial=tried(0.5)),
    ]
    results = [
        TaskResult(job="j", key="a", name="a", weight=2, before_s=4.0),
        TaskResult(job="j", key="b", name="b"),
    ]
    assert progress_of([results[0], replace(results[1], before_s=10.0)], trials) == (
        CurvePoint(trial=1, best_s=12.0),
        CurvePoint(trial=4, best_s=11.0),
    )


def test_progress_begins_at_once_with_kernels_that_nobody_measured() -> None:
    trials = [TaskTrial(task_key="a", trial=tried(1.0))]
    results = [
        TaskResult(job="j", key="a", name="a", weight=2, gflop=1.0, before_s=3.0),
        TaskResult(job="j", key="b", name="b", gflop=2.0),
    ]
    assert progress_of(results, trials) == (CurvePoint(trial=1, best_s=2 * 1.0 + 2 * 3.0),)


def test_without_any_measurement_there_is_no_curve() -> None:
    trials = [TaskTrial(task_key="a", trial=tried(FailureKind.RUN_ERROR))]
    assert progress_of([TaskResult(job="j", key="a", name="a", gflop=1.0)], trials) == ()


def test_failures_are_counted_by_kind_with_the_first_message() -> None:
    kinds = (FailureKind.BUILD_ERROR, FailureKind.RUN_ERROR, FailureKind.RUN_ERROR)
    messages = ("no", "", "boom")
    counts = failure_counts([tried(k, message=m) for k, m in zip(kinds, messages, strict=True)])
    assert [(c.kind, c.count, c.example) for c in counts] == [
        ("run_error", 2, "boom"),
        ("build_error", 1, "no"),
    ]


def test_a_time_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="the time of 'conv' must be positive"):
        task_result("job", TASK, [], after_s=-1.0)
