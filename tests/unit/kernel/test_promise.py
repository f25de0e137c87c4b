"""What a point promises: improvement times the chance to be valid."""

import numpy as np
import pytest

from tuneloom.tuners.kernel.search.caution import Caution
from tuneloom.tuners.kernel.search.promise import log_improvement, promising


def test_the_chance_to_be_valid_is_asked_until_nothing_better_can_come() -> None:
    points = np.arange(2000).reshape(-1, 1)
    improvement = -0.1 * np.arange(2000.0)
    asked: list[int] = []

    def validity(
        some: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        asked.append(len(some))
        return np.where(some[:, 0] == 0, 0.1, 1.0)

    total = promising(points, improvement, lambda some: Caution(10.0).log_chance(validity(some)))
    assert int(np.argmax(total)) == 1 and sum(asked) < 1000


def test_improvement_is_exact_far_below_what_can_be_expected() -> None:
    gaps = np.array([-30.0, -6.0, -5.0, 0.0, 3.0])
    found = log_improvement(gaps)
    assert np.isfinite(found).all() and (np.diff(found) > 0).all()
    assert found[3] == pytest.approx(np.log(1 / np.sqrt(2 * np.pi)))
