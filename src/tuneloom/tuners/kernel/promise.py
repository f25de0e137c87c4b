"""What a point promises: the improvement to expect of it, times its chance to be valid."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.pool import WALKERS

Vector = NDArray[np.float64]
_RATHER_FAILS = 0.5
_LAST_RESORT = np.log(1e-4)  # what points below the bar are discounted by, and again those that rather fail
_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_CHUNK = 250


def log_improvement(gap: Vector) -> Vector:
    """Logarithm of the expected improvement in units of the deviation, exact far below zero too."""
    density = -0.5 * gap**2 - _HALF_LOG_2PI
    near = np.maximum(gap, -5.0)
    direct = np.log(np.exp(-0.5 * near**2 - _HALF_LOG_2PI) + near * np.exp(log_ndtr(near)))
    far = density - 2 * np.log(np.maximum(np.abs(gap), 5.0))
    return np.asarray(np.where(gap > -5.0, direct, far), dtype=np.float64)


def bar(ordinary: Vector) -> float:
    """The least chance to be valid that a point should have, by the chances of ordinary ones.

    Expected improvement is largest where nothing valid was ever seen, so on its own it would
    buy one failure after the other there. A point should rather work than fail, and where most
    points work it should not be riskier than one drawn by chance.
    """
    return max(_RATHER_FAILS, float(ordinary.mean()))


def log_chance(validity: Vector, least: float) -> Vector:
    """Logarithm of the chance to be valid; points with less than the least come later, failures last."""
    discounts = (validity < least).astype(np.float64) + (validity < _RATHER_FAILS)
    return np.asarray(np.log(np.maximum(validity, 1e-12)) + _LAST_RESORT * discounts, dtype=np.float64)


def promising(
    points: Points, improvement: Vector, validity: Callable[[Points], Vector], least: float
) -> Vector:
    """Improvement with the chance to be valid, exact for the best; minus infinity for hopeless ones.

    A chance only lowers what a point promises, so validity is asked for in the order of
    improvement, until nothing that is left can be among the best.
    """
    order = np.argsort(-improvement, kind="stable")
    total = np.full(len(points), -np.inf)
    for begin in range(0, len(order), _CHUNK):
        part = order[begin : begin + _CHUNK]
        if begin and np.partition(total, -WALKERS)[-WALKERS] >= improvement[part[0]]:
            break
        total[part] = improvement[part] + log_chance(validity(points[part]), least)
    return total
