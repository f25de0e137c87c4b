"""The scale of times: fast ones are told apart, and every target is a time again."""

import numpy as np
import pytest

from tuneloom.tuners.kernel.search.targets import TargetScale


def test_one_very_slow_time_leaves_the_fast_ones_apart() -> None:
    fast = [1.0, 1.1, 1.2, 1.3, 1.4]
    _, without = TargetScale.of([*fast, 1.5])
    _, with_it = TargetScale.of([*fast, 1000.0])
    assert with_it[1] - with_it[0] > 0.5 * (without[1] - without[0])


def test_many_times_next_to_the_best_leave_the_slower_ones_apart() -> None:
    _, targets = TargetScale.of([*[1.0] * 20, 1.2, 1.5])
    assert targets[-1] - targets[-2] > 0.5 * (targets[-2] - targets[0])


def test_the_order_of_times_is_kept() -> None:
    _, targets = TargetScale.of([5.0, 1.0, 300.0, 2.0, 20.0])
    assert list(np.argsort(targets)) == [1, 3, 0, 4, 2]


def test_a_target_is_the_time_it_came_from() -> None:
    times = [1.0, 2.0, 3.0, 4.0, 8.0]
    scale, targets = TargetScale.of(times)
    assert [scale.seconds(float(target)) for target in targets] == pytest.approx(times)


def test_equal_times_have_equal_targets() -> None:
    _, targets = TargetScale.of([2.0, 2.0])
    assert targets == pytest.approx([0.0, 0.0])
