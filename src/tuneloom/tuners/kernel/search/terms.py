"""What a search over points is told besides its space."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.factors import Points

Knowledge = Callable[[Points], NDArray[np.float64]]
"""The probability of points to be valid, known instead of learned."""


class StartingPoint(StrEnum):
    """Where the first points come from."""

    VALIDITY = "validity"
    RANDOM = "random"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Terms:
    """The seed and the start of a search, how many trials it should be planned for.

    `knowledge` replaces the learned validity (to measure what perfect knowledge would give).
    With `screens`, candidates are built before they count: that one fails to build is heard, never
    learned as a failed trial, and every other one is heard to build.
    """

    seed: int
    start: StartingPoint = StartingPoint.VALIDITY
    trials: int = 200
    knowledge: Knowledge | None = None
    screens: bool = False
