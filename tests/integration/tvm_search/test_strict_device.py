"""The TVM tuner where schedules fail for a reason nobody wrote down."""

from collections.abc import Callable
from math import prod

import pytest

from tuneloom.model import Candidate, Failure, FailureKind, Measurement, SearchOptions, Task, Trial
from tuneloom.tuners.tvm import TvmTuner
from tuneloom.tuners.tvm.search.sketches import decisions_in

BATCH = 16
LARGEST = 32


@pytest.fixture(scope="module")
def task(matmul: Callable[[int, int, int], Task]) -> Task:
    return matmul(64, 48, 96)


def fits(candidate: Candidate) -> bool:
    """The hidden limit: what the innermost tiles hold together."""
    if candidate.origin == "default":
        return True
    _, decisions = decisions_in(candidate.configuration)
    tiles = [decision for decision in decisions if isinstance(decision, tuple | list)]
    return prod(int(tile[-1]) for tile in tiles) <= LARGEST


def tried(candidate: Candidate) -> Trial:
    if not fits(candidate):
        return Trial(candidate=candidate, outcome=Failure(kind=FailureKind.BUILD_ERROR, message="too large"))
    return Trial(candidate=candidate, outcome=Measurement(seconds=(1.0,)))


def failed_in_batches(task: Task, seed: int, count: int) -> list[float]:
    """The share of each batch that failed."""
    search = TvmTuner().open(task, SearchOptions(seed=seed, trials=BATCH * count, batch=BATCH), [])
    shares = []
    for _ in range(count):
        trials = [tried(candidate) for candidate in search.select(BATCH)]
        search.update(trials)
        shares.append(sum(trial.seconds is None for trial in trials) / len(trials))
    return shares


def test_what_cannot_be_built_is_hardly_tried_again(task: Task) -> None:
    runs = [failed_in_batches(task, seed, 3) for seed in range(4)]
    first = sum(shares[0] for shares in runs)
    later = sum(shares[1] + shares[2] for shares in runs) / 2
    assert first > 1
    assert later < first / 2


def test_choices_after_failures_are_the_same_for_the_same_seed(task: Task) -> None:
    assert failed_in_batches(task, 3, 3) == failed_in_batches(task, 3, 3)
