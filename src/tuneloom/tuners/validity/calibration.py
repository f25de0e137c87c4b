"""Predictions corrected by how earlier ones came out.

The points that are tried are chosen for their promise, so a model is wrong about
them more often than about points at large. What it said before each trial, and what
then happened, gives a slope and an offset on the scale of log odds.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Vector = NDArray[np.float64]
_PRIOR_MEAN = np.array([1.0, 0.0])
_PRIOR_PRECISION = np.array([4.0, 1.0])
_ROUNDS = 8
_EDGE = 1e-3


class Calibration:
    """Learns slope and offset from past predictions; begins as the identity."""

    def __init__(self) -> None:
        self._said: list[float] = []
        self._happened: list[float] = []
        self._line = _PRIOR_MEAN.copy()

    def record(self, said: float, happened: bool) -> None:
        """Take in one prediction and its outcome."""
        self._said.append(_odds(np.array([said]))[0])
        self._happened.append(float(happened))
        self._fit()

    def corrected(self, probability: Vector) -> Vector:
        """Probabilities with the learned correction."""
        return np.asarray(expit(self._line[0] * _odds(probability) + self._line[1]), dtype=np.float64)

    def _fit(self) -> None:
        design = np.column_stack([self._said, np.ones(len(self._said))])
        happened, line = np.array(self._happened), self._line.copy()
        for _ in range(_ROUNDS):
            expected = expit(design @ line)
            gradient = design.T @ (expected - happened) + _PRIOR_PRECISION * (line - _PRIOR_MEAN)
            weights = np.maximum(expected * (1 - expected), 1e-6)
            curvature = (design * weights[:, None]).T @ design + np.diag(_PRIOR_PRECISION)
            line = line - np.clip(np.linalg.solve(curvature, gradient), -1, 1)
        self._line = np.array([max(float(line[0]), 0.1), float(line[1])])


def _odds(probability: Vector) -> Vector:
    return np.asarray(logit(np.clip(probability, _EDGE, 1 - _EDGE)), dtype=np.float64)
