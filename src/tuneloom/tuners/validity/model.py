"""The validity model: limits and trees, averaged, refreshed a little with every failure."""

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Matrix, directions
from tuneloom.tuners.validity.rules import LimitEnsemble
from tuneloom.tuners.validity.trees import TreeEnsemble

_MEMBERS = 24
_RENEWED = 4  # members of each ensemble that a later observation renews


class ValidityModel:
    """Learns from rows of numbers which are valid; deterministic for a seed.

    Before the first failure every probability is 1; before the first valid row it is
    the same for all. Used by one thread.
    """

    def __init__(self, width: int, seed: int) -> None:
        rng = np.random.default_rng([seed, 271])
        self._directions = directions(width)
        self._limits = LimitEnsemble(self._directions, _MEMBERS, rng)
        self._trees = TreeEnsemble(self._directions, _MEMBERS, rng)
        self._rows: list[Matrix] = []
        self._valid: list[bool] = []
        self._stale = 0
        self._fitted = False

    @property
    def failures(self) -> int:
        """How many invalid rows were seen."""
        return len(self._valid) - sum(self._valid)

    @property
    def decided(self) -> bool:
        """Whether both valid and invalid rows were seen, so that probabilities differ."""
        return 0 < sum(self._valid) < len(self._valid)

    def observe(self, row: Matrix, valid: bool) -> None:
        """Learn the fate of one row."""
        self._rows.append(np.asarray(row, dtype=np.float64))
        self._valid.append(valid)
        self._stale += 1

    def probability(self, rows: Matrix) -> NDArray[np.float64]:
        """The probability of each row to be valid."""
        seen = len(self._valid)
        share = (sum(self._valid) + 0.5) / (seen + 1)
        if not self.decided:
            return np.full(len(rows), 1.0 if not self.failures else share)
        self._refresh()
        learned = (self._limits.probability(rows) + self._trees.probability(rows)) / 2
        return np.asarray((learned * seen + share) / (seen + 1), dtype=np.float64)

    def _refresh(self) -> None:
        if not self._stale:
            return
        along = np.array(self._rows) @ self._directions
        valid = np.array(self._valid)
        count = _MEMBERS if not self._fitted else _RENEWED * self._stale
        self._limits.refit(along, valid, count)
        self._trees.refit(along, valid, count)
        self._stale, self._fitted = 0, True
