"""What a point promises: improvement times the chance to be valid, risky ones last."""

import numpy as np
import pytest

from tuneloom.tuners.kernel.promise import bar, log_chance, log_improvement, promising


@pytest.mark.parametrize(("ordinary", "least"), [(0.95, 0.95), (0.5, 0.5), (0.1, 0.5)])
def test_a_point_should_rather_work_and_not_be_riskier_than_chance(ordinary: float, least: float) -> None:
    assert bar(np.full(10, ordinary)) == pytest.approx(least)


def test_risky_points_come_after_safe_ones_and_likely_failures_after_both() -> None:
    safe, risky, failing = log_chance(np.array([0.96, 0.9, 0.4]), 0.95)
    assert safe > risky + np.log(1000) and risky > failing + np.log(1000)


def test_the_chance_to_be_valid_is_asked_until_nothing_better_can_come() -> None:
    points = np.arange(2000).reshape(-1, 1)
    improvement = -0.1 * np.arange(2000.0)
    asked: list[int] = []

    def validity(
        some: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        asked.append(len(some))
        return np.where(some[:, 0] == 0, 0.1, 1.0)

    total = promising(points, improvement, validity, 0.5)
    assert int(np.argmax(total)) == 1 and sum(asked) < 1000


def test_improvement_is_exact_far_below_what_can_be_expected() -> None:
    gaps = np.array([-30.0, -6.0, -5.0, 0.0, 3.0])
    found = log_improvement(gaps)
    assert np.isfinite(found).all() and (np.diff(found) > 0).all()
    assert found[3] == pytest.approx(np.log(1 / np.sqrt(2 * np.pi)))
