"""What is remembered of a task's trials."""

from support.jobs.small import failed_trial, measured_trial, small_task
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.model import Artifact, Candidate, FailureKind


def fresh() -> TaskProgress:
    return TaskProgress(0, small_task("a"))


def test_the_best_three_are_kept_with_what_was_built_for_them() -> None:
    progress = fresh()
    for number, seconds in enumerate([5.0, 1.0, 4.0, 2.0, 3.0]):
        progress.add(measured_trial(f"p{number}", seconds), Artifact(payload=str(number).encode()))
    assert [c.seconds for c in progress.best] == [1.0, 2.0, 3.0]
    assert progress.best[0].artifact == Artifact(payload=b"1")
    assert progress.best_s == 1.0


def test_the_default_is_a_baseline_and_no_contender() -> None:
    progress = fresh()
    progress.add(measured_trial("p0", 0.5, origin="default"), None)
    assert progress.best == [] and progress.best_s == 0.5
    assert progress.default is not None and progress.default.seconds == 0.5


def test_the_first_error_stays() -> None:
    progress = fresh()
    progress.add(failed_trial("p1", "first"), None)
    progress.add(failed_trial("p2", "second", FailureKind.RUN_ERROR), None)
    assert progress.first_error == "first"
    assert progress.measured == 0 and len(progress.trials) == 2


def test_the_gain_is_counted_over_the_last_trials_only() -> None:
    progress = fresh()
    for number, seconds in enumerate([8.0, 4.0, 4.0, 3.0]):
        progress.add(measured_trial(f"p{number}", seconds), None)
    assert progress.gained_s(2) == 1.0
    assert progress.gained_s(100) == 5.0
    assert fresh().gained_s(10) == 0.0


def test_candidates_seen_before_are_sorted_out() -> None:
    progress = fresh()
    one, two = (Candidate(key=key, configuration=key) for key in ("one", "two"))
    assert progress.unseen([one, one]) == [one]
    assert progress.unseen([one, two]) == [two]
    progress.add(measured_trial("three", 1.0), None)
    assert progress.unseen([Candidate(key="three", configuration="three")]) == []
