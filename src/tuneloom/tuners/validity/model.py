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
        self._trees = TreeEnsemble(self._directions, _TREES, rng)
        self._calibration = Calibration()
        self._rows = np.empty((64, self._directions.weights.shape[1]))
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
        rows = np.asarray(row, dtype=np.float64).reshape(1, -1)
        if self.decided:
            self._calibration.record(float(self._learned(rows)[0]), valid)
        along = self._kept(self._directions.along(rows))
        self._valid = np.append(self._valid, valid)
        if self.decided:
            self._limits.learn(along, self._valid)
            self._trees.learn(along, self._valid)

    def _kept(self, row: Matrix) -> Matrix:
        """All rows so far along all directions, with this one as the last; there is room for more behind."""
        count = len(self._valid)
        if count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[count] = row
        return self._rows[: count + 1]

    def probability(self, rows: Matrix) -> NDArray[np.float64]:
        """The probability of each row to be valid."""
        if not self.decided:
            return np.full(len(rows), 1.0 if not self.failures else self._share())
        return self._calibration.corrected(self._learned(rows))

    def _learned(self, rows: Matrix) -> NDArray[np.float64]:
        seen = len(self._valid)
        voted = (self._limits.probability(rows) + self._trees.probability(rows)) / 2
        return np.asarray((voted * seen + self._share()) / (seen + 1), dtype=np.float64)

    def _share(self) -> float:
        return float((self._valid.sum() + 0.5) / (len(self._valid) + 1))
