"""What the compiler revealed decides which of the built candidates run first.

Code size, spilled values, registers and shared memory are known once a candidate is
built. From what ran so far a small regression learns how they go with time and with
failure; before it has seen enough, the order of the search stands.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_ENOUGH = 8  # runs per feature, and at least this many, before the regression is trusted
_RIDGE = 1.0


class Reranking:
    """Learns from features and times; a failure counts as slower than anything seen."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._rows: list[list[float]] = []
        self._logs: list[float | None] = []

    def learn(self, features: Mapping[str, float], seconds: float | None) -> None:
        """Take in what one run came to."""
        if not features:
            return
        self._names = self._names or tuple(sorted(features))
        self._rows.append(self._row(features))
        self._logs.append(None if seconds is None else float(np.log(seconds)))

    def order(self, candidates: Sequence[Mapping[str, float]]) -> list[int]:
        """The candidates' places, the most promising first."""
        usable = [log for log in self._logs if log is not None]
        plain = list(range(len(candidates)))
        if len(candidates) < 2 or len(usable) < _ENOUGH or not all(candidates):
            return plain
        scores = self._predicted(np.array([self._row(c) for c in candidates]), max(usable))
        return sorted(plain, key=lambda place: float(scores[place]))

    def _row(self, features: Mapping[str, float]) -> list[float]:
        return [float(np.log1p(max(features.get(name, 0.0), 0.0))) for name in self._names]

    def _predicted(self, rows: NDArray[np.float64], slowest: float) -> NDArray[np.float64]:
        seen = np.array(self._rows)
        targets = np.array([slowest + 1.0 if log is None else log for log in self._logs])
        middle, width = seen.mean(axis=0), seen.std(axis=0) + 1e-9
        design = _curved((seen - middle) / width)
        gram = design.T @ design + _RIDGE * np.eye(design.shape[1])
        weights = np.linalg.solve(gram, design.T @ (targets - targets.mean()))
        return np.asarray(_curved((rows - middle) / width) @ weights, dtype=np.float64)


def _curved(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([rows, rows**2])
