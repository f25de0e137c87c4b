"""The TVM tuner on a real kernel, in this process."""

from collections.abc import Callable

import pytest

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
from tuneloom.tuners.tvm import TvmTuner
from tuneloom.tuners.tvm.measuring.contest import contest

POLICY = MeasuringRules(repeats=1, min_repeat_ms=1.0)
OPTIONS = SearchOptions(seed=5, trials=32, batch=8)


@pytest.fixture(scope="module")
def task(matmul: Callable[[int, int, int], Task]) -> Task:
    return matmul(8, 4, 16)


def through(task: Task, candidate: Candidate) -> Trial:
    tuner = TvmTuner()
    built = tuner.build(task, candidate, POLICY)
    if isinstance(built, Failure):
        return Trial(candidate=candidate, outcome=built)
    return Trial(candidate=candidate, outcome=tuner.profile(task, built, POLICY, None))


def test_the_default_schedule_comes_first_then_the_templates_guess_then_the_search(task: Task) -> None:
    origins = [candidate.origin for candidate in TvmTuner().open(task, OPTIONS, []).select(6)]
    assert origins[:2] == ["default", "guess"]
    assert origins[-1] == "search"


def test_a_search_is_the_same_for_the_same_seed_and_history(task: Task) -> None:
    histories = []
    for _ in range(2):
        search = TvmTuner().open(task, OPTIONS, [])
        first = search.select(6)
        search.update(
            [Trial(candidate=c, outcome=Measurement(seconds=(n + 1.0,))) for n, c in enumerate(first)]
        )
        histories.append([c.key for c in first + search.select(6)])
    assert histories[0] == histories[1]


def test_no_configuration_is_proposed_twice_until_the_space_is_spent(task: Task) -> None:
    search = TvmTuner().open(task, OPTIONS, [])
    keys: list[str] = []
    for _ in range(400):
        candidates = search.select(16)
        keys += [candidate.key for candidate in candidates]
        search.update([Trial(candidate=c, outcome=Measurement(seconds=(1.0,))) for c in candidates])
        if not candidates or len(keys) > 600:
            break
    assert len(keys) == len(set(keys)) > 10


def test_a_reopened_search_does_not_propose_what_is_known(task: Task) -> None:
    first = TvmTuner().open(task, OPTIONS, []).select(8)
    known = [Trial(candidate=c, outcome=Measurement(seconds=(1.0,))) for c in first]
    again = TvmTuner().open(task, OPTIONS, known).select(8)
    assert not {c.key for c in first} & {c.key for c in again}


def test_candidates_build_and_run(task: Task) -> None:
    trials = [through(task, candidate) for candidate in TvmTuner().open(task, OPTIONS, []).select(4)]
    assert [t.outcome for t in trials if not isinstance(t.outcome, Measurement)] == []


def test_a_kept_trace_builds_again_without_its_payload(task: Task) -> None:
    candidate = TvmTuner().open(task, OPTIONS, []).select(3)[-1]
    kept = Candidate(key=candidate.key, configuration=candidate.configuration)
    assert isinstance(through(task, kept).outcome, Measurement)


def test_a_trace_that_does_not_fit_is_a_build_error(task: Task) -> None:
    trace = '[[["GetSBlock",[],["nowhere","main"],["b0"]]],[]]'
    built = TvmTuner().build(task, Candidate(key="x", configuration=trace), POLICY)
    assert isinstance(built, Failure)
    assert "does not fit" in built.message


def test_garbage_as_an_artifact_is_a_run_error(task: Task) -> None:
    outcome = TvmTuner().profile(task, Artifact(payload=b"\0\0\0\2{}no library"), POLICY, None)
    assert isinstance(outcome, Failure)


def test_contenders_are_timed_in_rounds(task: Task) -> None:
    tuner = TvmTuner()
    built = [tuner.build(task, candidate, POLICY) for candidate in tuner.open(task, OPTIONS, []).select(2)]
    rounds = contest([artifact.payload for artifact in built if isinstance(artifact, Artifact)], POLICY)
    assert len(rounds) == 2
    assert len(rounds[0]) == len(rounds[1])
    assert all(seconds > 0 for times in rounds for seconds in times)
