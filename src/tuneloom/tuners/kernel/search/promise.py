"""What a point promises: the improvement to expect of it, times its chance to be valid."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.search.pool import WALKERS

Vector = NDArray[np.float64]
_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_CHUNK = 250


def log_improvement(gap: Vector) -> Vector:
    """Logarithm of the expected improvement in units of the deviation, exact far below zero too."""
    density = -0.5 * gap**2 - _HALF_LOG_2PI
    near = np.maximum(gap, -5.0)
    direct = np.log(np.exp(-0.5 * near**2 - _HALF_LOG_2PI) + near * np.exp(log_ndtr(near)))
    far = density - 2 * np.log(np.maximum(np.abs(gap), 5.0))
    return np.asarray(np.where(gap > -5.0, direct, far), dtype=np.float64)


def promising(points: Points, improvement: Vector, log_chance: Callable[[Points], Vector]) -> Vector:
    """Improvement with the chance to be valid, exact for the best; minus infinity for hopeless ones.

    A chance only lowers what a point promises, so it is asked for in the order of
    improvement, until nothing that is left can be among the best.
    """
    order = np.argsort(-improvement, kind="stable")
    total = np.full(len(points), -np.inf)
    for begin in range(0, len(order), _CHUNK):
        part = order[begin : begin + _CHUNK]
        if begin and np.partition(total, -WALKERS)[-WALKERS] >= improvement[part[0]]:
            break
        total[part] = improvement[part] + log_chance(points[part])
    return total
