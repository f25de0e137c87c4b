"""Times as a model of time sees them: logarithms of a common scale."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class TargetScale:
    """Logarithms of times, standardised; `spread` turns a difference of targets into one of logarithms."""

    middle: float
    spread: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> tuple["TargetScale", Vector]:
        """The scale of these times, and the times on it."""
        logs = np.log(np.array(list(seconds)))
        scale = cls(float(logs.mean()), float(logs.std() + _LEAST_SPREAD))
        return scale, (logs - scale.middle) / scale.spread

    def seconds(self, target: float) -> float:
        """The time of a target."""
        return float(np.exp(self.middle + self.spread * target))
