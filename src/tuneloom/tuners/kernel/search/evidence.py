"""The model of time: of two Gaussian processes the one that explains better what was measured."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.search.encoding import Encoding
from tuneloom.tuners.kernel.search.gaussian import GaussianProcess
from tuneloom.tuners.kernel.space import Space

Vector = NDArray[np.float64]
_CLEARLY = 1.5  # how much better, in logarithms of probability, the one that knows more has to explain


class TimeModel:
    """One process knows how large sizes are; the other also how often two divides them.

    Blocks and tiles that are whole multiples of a warp or a cache line can be faster than those
    beside them. To a process that only knows how near sizes are such a knob is rough, and nothing
    measured says much about its neighbours. Where halves make no difference, looking for it costs
    trials, so the second process is asked only while it explains the measurements clearly better.
    """

    def __init__(self, space: Space) -> None:
        self._plain = GaussianProcess(Encoding.of(space))
        halved = Encoding.of(space, halved=True)
        knows_more = len(halved.groups) > len(self._plain.encoding.groups)
        self._halved = GaussianProcess(halved) if knows_more else None
        self._asked = self._plain

    def fit(self, points: Points, targets: Vector, steps: int) -> None:
        """Learn from these observations; with `steps` to improve the scales, choose whom to ask."""
        if steps and self._halved is not None:
            self._plain.fit(points, targets, steps)
            self._halved.fit(points, targets, steps)
            clearly_better = self._halved.misfit + _CLEARLY < self._plain.misfit
            self._asked = self._halved if clearly_better else self._plain
        else:
            self._asked.fit(points, targets, steps)

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Mean and standard deviation of a measurement at each point."""
        return self._asked.predict(points)

    def relevance(self) -> Mapping[int, float]:
        """How strongly each knob matters, by its position in the space."""
        weights, encoding = self._asked.relevance(), self._asked.encoding
        return {
            knob: float(sum(weights[group] for group, _ in parts))
            for parts, knob in zip(encoding.parts, encoding.active, strict=True)
        }
