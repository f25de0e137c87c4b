"""How much risk the next point may take: failures have an allowance, and are avoided beyond it.

Expected improvement is largest where nothing valid was ever seen, so on its own it would
buy one failure after the other there. And the best points often lie next to what can't
run, so a search that never fails does not find them. Both are weighed by counting: while
few trials failed for what chance would have cost, a point should rather work than fail and,
where most points work, not be riskier than one drawn by chance. Once the allowance is spent
only points of a fraction of that risk are tried, as long as there are any.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_RATHER_FAILS = 0.5
_OF_CHANCE = 0.25  # the share of the failures of a random search that ours may have
_LESSONS = 2  # failures allowed besides: where limits lie has to be learned
_LATER = np.log(1e-4)  # a risky point has to promise so much more than a safe one
_LAST = -1e4  # no promise outweighs it


@dataclass(frozen=True, slots=True)
class Caution:
    """The least chance to be valid that a point should have, and what having less costs it."""

    least: float
    discount: float

    @classmethod
    def after(cls, tried: int, failed: int, ordinary: Vector) -> "Caution":
        """What so many trials and failures leave, by the chances of points drawn at random."""
        risk = 1 - float(ordinary.mean())
        if failed < _LESSONS + _OF_CHANCE * risk * tried:
            return cls(max(_RATHER_FAILS, 1 - risk), _LATER)
        return cls(max(_RATHER_FAILS, 1 - _OF_CHANCE * risk), _LAST)

    def log_chance(self, validity: Vector) -> Vector:
        """Logarithm of the chance to be valid, discounted below the least, and again for likely failures."""
        times = (validity < self.least).astype(np.float64) + (validity < _RATHER_FAILS)
        return np.asarray(np.log(np.maximum(validity, 1e-12)) + self.discount * times, dtype=np.float64)
