"""Runtimes that are timed in turn leave each other's cores alone."""

import os
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from tuneloom.tuners.tvm.measuring.stolen import stolen_ticks
from tuneloom.tuners.tvm.models.checking import time_in_turn
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.rivals import turns as own_runtime
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn, is_clear, wait_for_rest, warmed


class Clock:
    """A process whose threads are busy while the first looks at them are taken."""

    def __init__(self, busy_looks: int) -> None:
        self.busy_looks, self.looks, self.used_s = busy_looks, 0, 0.0

    def sleep(self, seconds: float) -> None:
        self.looks += 1
        if self.looks <= self.busy_looks:
            self.used_s += seconds

    def process_time(self) -> float:
        return self.used_s


@pytest.mark.parametrize(("busy", "looks"), [(0, 1), (7, 8), (10**9, own_runtime._MOST_LOOKS)])
def test_a_turn_begins_when_no_thread_is_busy_or_one_never_rests(
    busy: int, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(busy)
    monkeypatch.setattr(own_runtime, "time", clock)
    wait_for_rest()
    assert clock.looks == looks


def test_every_side_has_as_many_turns_and_begins_each_with_a_run_that_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    monkeypatch.setattr(own_runtime, "wait_for_rest", lambda: events.append("rest"))
    monkeypatch.setattr(own_runtime, "_TURN_S", 1e-12)
    times = all_in_turn([lambda: events.append("one"), lambda: events.append("other")], 0.0)
    assert [len(each) for each in times] == [5, 5]
    assert events[:6] == ["rest", "one", "one", "rest", "other", "other"]


def test_runs_of_seconds_count_from_the_first_and_three_of_them_are_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, runs = [0.0], []

    def run() -> None:
        runs.append(now_s[0])
        now_s[0] += 2.0

    monkeypatch.setattr(own_runtime, "wait_for_rest", lambda: None)
    monkeypatch.setattr(own_runtime, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    times = all_in_turn([run, run], 0.5, now=lambda: now_s[0])
    assert [len(each) for each in times] == [3, 3] and len(runs) == 6


def test_runs_of_a_simulated_device_are_timed_by_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_runtime, "wait_for_rest", lambda: None)
    ahead = [0.0]

    def simulated() -> None:
        ahead[0] += 100.0

    ours, theirs = all_in_turn([simulated, lambda: None], 0.0, now=lambda: time.perf_counter() + ahead[0])
    assert min(ours) >= 100.0 > max(theirs)


def test_turns_end_early_once_the_choice_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_runtime, "wait_for_rest", lambda: None)
    monkeypatch.setattr(own_runtime, "_TURN_S", 1e-12)
    times = all_in_turn(
        [lambda: None, lambda: None], 3600.0, lambda times: len(times) > 0 and len(times[0]) == 7, lambda: 0
    )
    assert [len(each) for each in times] == [7, 7]


@pytest.mark.parametrize(("taken_in", "counting"), [(range(3), 6), (range(1, 9, 2), 5), (range(9), 9)])
def test_turns_in_which_the_cores_were_taken_away_count_only_if_few_others_are_there(
    taken_in: range, counting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_runtime, "wait_for_rest", lambda: None)
    monkeypatch.setattr(own_runtime, "_TURN_S", 1e-12)
    monkeypatch.setattr(own_runtime, "_MOST_TURNS", 9)
    looks = iter(n for turn in range(9) for n in (2 * turn, 2 * turn + (turn in taken_in)))
    times = all_in_turn([lambda: None, lambda: None], 3600.0, stolen=lambda: next(looks))
    assert [len(each) for each in times] == [counting, counting]


def test_time_that_was_taken_away_is_that_of_the_cores_in_use() -> None:
    core = min(os.sched_getaffinity(0))
    ours = f"cpu{core} 1 2 3 4 5 6 7 80 9 10"
    assert stolen_ticks(f"cpu 1 2 3 4 5 6 7 99 9 10\n{ours}\ncpu98765 1 2 3 4 5 6 7 11 9 10\nintr 5") == 80
    assert stolen_ticks("") == 0
    assert stolen_ticks() >= 0


@pytest.mark.parametrize(
    ("times", "clear"),
    [
        ([[1.0] * 10, [1.3] * 10], True),
        ([[1.3] * 10, [1.0] * 10], True),
        ([[1.0] * 10, [1.1] * 10], False),
        ([[1.0] * 9, [2.0] * 9], False),
        ([[1.0, 1.4] * 5, [1.3] * 10], False),
        ([[1.0] * 10, [1.3] * 10, [1.0] * 10], False),
    ],
    ids=["far ahead", "far behind", "close", "too few turns", "noisy", "three sides"],
)
def test_a_choice_is_clear_if_nearly_all_runs_of_one_side_are_faster(
    times: list[list[float]], clear: bool
) -> None:
    assert is_clear(times) is clear


class Timed:
    """A model whose runs take as long as it says, without taking any time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.runs = seconds, 0

    def run(self, values: Sequence[Array]) -> list[Array]:
        raise AssertionError("only timed")

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        return self._once

    def _once(self) -> float:
        self.runs += 1
        return self.seconds


@pytest.mark.parametrize(
    ("took", "runs"),
    [
        ([1e-3], 3),
        ([0.3, 0.3, 0.3], 2),  # a long run is not made a third time
        ([9.0, 1e-3], 3),  # it compiled first
        ([9.0, 0.3, 0.3], 3),  # the second run may be preparing something, too
    ],
)
def test_a_model_is_warm_after_three_runs_or_two_long_ones_of_which_the_first_prepared_nothing(
    took: list[float], runs: int
) -> None:
    clock, made = [0.0], []

    def run() -> int:
        clock[0] += took[min(len(made), len(took) - 1)]
        made.append(len(made))
        return len(made)

    assert warmed(run, lambda: clock[0]) == runs == len(made)


@pytest.mark.parametrize(("plain_s", "runs"), [(30.0, 0), (0.5, 2)])
def test_an_untuned_model_whose_first_run_took_long_is_not_run_again(plain_s: float, runs: int) -> None:
    tuned, plain = Timed(0.4), Timed(plain_s)
    tuned_s, untuned_s = time_in_turn(tuned, plain, [], plain_s)
    assert plain.runs == runs
    assert set(tuned_s) == {0.4} and len(tuned_s) >= 3
    assert set(untuned_s) == {plain_s}
