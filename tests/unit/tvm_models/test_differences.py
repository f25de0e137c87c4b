"""How far outputs are apart."""

import numpy as np
import pytest

from tuneloom.tuners.tvm.models.compiling.differences import relative_difference

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("got", "expected", "difference"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 4.5], [3.0, 4.0], 0.1),
        ([3.0, -INF, NAN, 4.0], [3.0, -INF, NAN, 4.0], 0.0),
        ([3.0, INF], [3.0, -INF], INF),
        ([3.0, NAN], [3.0, 4.0], INF),
        ([3.0, 4.0], [3.0, NAN], INF),
        ([3.0], [3.0, 4.0], INF),
    ],
)
def test_outputs_are_as_far_apart_as_their_finite_numbers(
    got: list[float], expected: list[float], difference: float
) -> None:
    assert relative_difference(np.array(got), np.array(expected)) == pytest.approx(difference)
