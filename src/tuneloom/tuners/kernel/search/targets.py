"""Times as a model of time sees them: logarithms on a common scale, the slow ones drawn together.

How slow the slow points are says little about where the fast ones lie, and a few very slow
ones would make all differences between fast ones look small.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_LEAST_SPREAD = 1e-9
_REACH = 2.0  # how far beyond the median times are told apart, in distances from the best to the median
# A search that refines the best has most of its points next to it. Without a least distance, everything
# slower than these would look the same, and the model would be sure of what it never saw.
_LEAST_DISTANCE = 0.15


@dataclass(frozen=True, slots=True)
class TargetScale:
    """Logarithms of times, standardised; `spread` turns a difference of targets into one of logarithms.

    Logarithms beyond `bend` approach one that is `reach` above it.
    """

    middle: float = 0.0
    spread: float = 1.0
    bend: float = float("inf")
    reach: float = 1.0

    @classmethod
    def of(cls, seconds: Iterable[float]) -> tuple["TargetScale", Vector]:
        """The scale of these times, and the times on it."""
        logs = np.log(np.array(list(seconds)))
        distance = max(float(np.median(logs) - logs.min()), _LEAST_DISTANCE)
        bend, reach = float(logs.min()) + distance, _REACH * distance
        bent = np.where(logs > bend, bend + reach * np.tanh((logs - bend) / reach), logs)
        scale = cls(float(bent.mean()), float(bent.std() + _LEAST_SPREAD), bend, reach)
        return scale, (bent - scale.middle) / scale.spread

    def seconds(self, target: float) -> float:
        """The time of a target."""
        log = self.middle + self.spread * target
        if log > self.bend:
            log = self.bend + self.reach * float(np.arctanh(min((log - self.bend) / self.reach, 0.999)))
        return float(np.exp(log))
