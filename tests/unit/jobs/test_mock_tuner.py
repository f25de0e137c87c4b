"""The mock tuner is a tuner: the same in every process, it proposes nothing twice and learns."""

import pytest

from tuneloom.errors import InputError
from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    Measurement,
    MeasuringRules,
    SearchOptions,
    Task,
    Trial,
)
from tuneloom.tuners.mock import MockTuner
from tuneloom.tuners.mock.kernel import MockKernel, mock_tasks
from tuneloom.tuners.stages import tuner_named

POLICY = MeasuringRules()
OPTIONS = SearchOptions(seed=1, trials=100, batch=8)


def tried(task: Task, candidate: Candidate) -> Trial:
    tuner = MockTuner()
    built = tuner.build(task, candidate, POLICY)
    outcome = built if isinstance(built, Failure) else tuner.profile(task, built, POLICY, None)
    return Trial(candidate=candidate, outcome=outcome)


def test_it_is_registered() -> None:
    assert isinstance(tuner_named("mock"), MockTuner)


def test_the_space_is_walked_once() -> None:
    (task,) = mock_tasks("mock:size=30")
    search = MockTuner().open(task, OPTIONS, [])
    keys: list[str] = []
    while batch := search.select(8):
        keys += [candidate.key for candidate in batch]
        search.update([tried(task, candidate) for candidate in batch])
    assert len(keys) == len(set(keys)) == 30


def test_the_first_candidate_is_the_default() -> None:
    (task,) = mock_tasks("mock:")
    assert [c.origin for c in MockTuner().open(task, OPTIONS, []).select(3)] == [
        "default",
        "search",
        "search",
    ]


def test_what_is_known_is_not_proposed_again() -> None:
    (task,) = mock_tasks("mock:size=10")
    known = [tried(task, candidate) for candidate in MockTuner().open(task, OPTIONS, []).select(6)]
    again = MockTuner().open(task, OPTIONS, known).select(10)
    assert len(again) == 4
    assert not {c.key for c in again} & {trial.candidate.key for trial in known}


def test_the_same_seed_proposes_the_same() -> None:
    (task,) = mock_tasks("mock:")
    assert MockTuner().open(task, OPTIONS, []).select(8) == MockTuner().open(task, OPTIONS, []).select(8)


def test_it_finds_better_points_than_chance() -> None:
    (task,) = mock_tasks("mock:size=2000")
    search = MockTuner().open(task, OPTIONS, [])
    found: list[float] = []
    for _ in range(10):
        trials = [tried(task, candidate) for candidate in search.select(8)]
        search.update(trials)
        found.append(min(trial.seconds for trial in trials if trial.seconds))
    assert min(found[5:]) < min(found[:2])


def test_points_fail_as_asked_for() -> None:
    (task,) = mock_tasks("mock:size=400,build_error=0.25,wrong_result=0.25")
    search = MockTuner().open(task, OPTIONS, [])
    outcomes = [tried(task, candidate).outcome for candidate in search.select(400)]
    kinds = [outcome.kind.value if isinstance(outcome, Failure) else "measured" for outcome in outcomes]
    assert 60 < kinds.count("build_error") < 140
    assert 60 < kinds.count("wrong_result") < 140
    assert isinstance(outcomes[0], Measurement)


def test_an_artifact_needs_no_task_to_be_profiled() -> None:
    (task,) = mock_tasks("mock:")
    candidate = MockTuner().open(task, OPTIONS, []).select(1)[0]
    bare = Task(key=task.key, name=task.name)
    built = MockTuner().build(bare, candidate, POLICY)
    assert isinstance(built, Artifact)
    measured = MockTuner().profile(bare, built, POLICY, None)
    assert isinstance(measured, Measurement)
    assert measured.best_s == MockKernel.from_bytes(task.payload).time_s(0)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("mock:zebra=1", "a mock model has no 'zebra'; known: tasks, size"),
        ("mock:tasks=x", "'tasks=x' in 'mock:tasks=x' needs a number"),
        ("mock:tasks=0", "1 to 10,000 tasks, not 0"),
        ("mock:size=0", "needs a positive size"),
        ("mock:build=nan", "'build=nan' in 'mock:build=nan' needs a finite number"),
        ("mock:size=inf", "'size=inf' in 'mock:size=inf' needs a finite number"),
        ("mock:build=-1", "no stage takes less than 0 s"),
        ("mock:build_error=2", "shares of failures lie between 0 and 1"),
    ],
)
def test_models_that_make_no_sense_are_refused(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mock_tasks(source)
