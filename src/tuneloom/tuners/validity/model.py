"""The validity model: limits and trees, averaged, corrected by how they came out before."""

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.calibration import Calibration
from tuneloom.tuners.validity.directions import Directions, Matrix
from tuneloom.tuners.validity.rules import LimitEnsemble
from tuneloom.tuners.validity.trees import TreeEnsemble

_LIMIT_SETS = 24
_TREES = 16


class ValidityModel:
    """Learns from rows of numbers which are valid; deterministic for a seed.

    Before the first failure every probability is 1; before the first valid row it is
    the same for all. Used by one thread.
    """

    def __init__(self, width: int, seed: int) -> None:
        rng = np.random.default_rng([seed, 271])
        self._directions = Directions.over(width)
        self._limits = LimitEnsemble(self._directions, _LIMIT_SETS, rng)
        self._trees = TreeEnsemble(self._directions.weights, _TREES, rng)
        self._calibration = Calibration()
        self._along = np.empty((0, self._directions.weights.shape[1]))
        self._valid = np.empty(0, dtype=bool)

    @property
    def failures(self) -> int:
        """How many invalid rows were seen."""
        return int((~self._valid).sum())

    @property
    def decided(self) -> bool:
        """Whether both valid and invalid rows were seen, so that probabilities differ."""
        return bool(self._valid.any() and not self._valid.all())

    def observe(self, row: Matrix, valid: bool) -> None:
        """Learn the fate of one row; members of the model that it contradicts are renewed."""
        inputs = self._directions.extended(np.asarray(row, dtype=np.float64).reshape(1, -1))
        if self.decided:
            self._calibration.record(float(self._learned(inputs)[0]), valid)
        self._along = np.vstack([self._along, inputs @ self._directions.weights])
        self._valid = np.append(self._valid, valid)
        if self.decided:
            self._limits.learn(self._along, self._valid)
            self._trees.learn(self._along, self._valid)

    def probability(self, rows: Matrix) -> NDArray[np.float64]:
        """The probability of each row to be valid."""
        if not self.decided:
            return np.full(len(rows), 1.0 if not self.failures else self._share())
        return self._calibration.corrected(self._learned(self._directions.extended(rows)))

    def _learned(self, inputs: Matrix) -> NDArray[np.float64]:
        seen = len(self._valid)
        voted = (self._limits.probability(inputs) + self._trees.probability(inputs)) / 2
        return np.asarray((voted * seen + self._share()) / (seen + 1), dtype=np.float64)

    def _share(self) -> float:
        return float((self._valid.sum() + 0.5) / (len(self._valid) + 1))
