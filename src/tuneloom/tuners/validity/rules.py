"""Limits that explain the failures seen: no valid point exceeds them, every failure exceeds one.

A member of the ensemble is a small set of limits found greedily: of the directions it
may use, it takes the one whose limit (the largest value of any valid point) the most
unexplained failures exceed, until none is left that could be explained.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Directions, Matrix

Flags = NDArray[np.bool_]
_SHARE = 0.3  # of the directions each member may use, so that members differ
_PLAINNESS = 0.15  # how much a limit over one more knob must explain in addition


@dataclass(frozen=True, slots=True)
class Limit:
    """Along `direction`, valid points reach `valid_to` and failures begin at `fails_from`."""

    direction: int
    valid_to: float
    fails_from: float
    explained: int


class LimitEnsemble:
    """Members vote on whether a point exceeds a limit; those that a new point contradicts are renewed."""

    def __init__(self, directions: Directions, members: int, rng: np.random.Generator) -> None:
        self._weights = directions.weights
        self._price = 1 + _PLAINNESS * (directions.knobs - 1)
        self._members: list[list[Limit]] = []
        self._count = members
        self._rng = rng
        self._turn = 0

    def learn(self, along: Matrix, valid: Flags) -> None:
        """Take in points by their values along all directions; the last one is new."""
        if not self._members:
            self._members = [self._explained(along, valid) for _ in range(self._count)]
            return
        self._turn = (self._turn + 1) % self._count
        for place, limits in enumerate(self._members):
            beyond = any(along[-1, limit.direction] > limit.valid_to + 1e-9 for limit in limits)
            if beyond == bool(valid[-1]) or place == self._turn:
                self._members[place] = self._explained(along, valid)

    def _explained(self, along: Matrix, valid: Flags) -> list[Limit]:
        used = np.flatnonzero(self._rng.random(len(self._price)) < _SHARE)
        if not len(used):
            return []
        reach = along[valid][:, used].max(axis=0)
        failed = along[~valid][:, used]
        exceeds = failed > reach + 1e-9
        price = self._price[used] * (1 + 1e-6 * self._rng.random(len(used)))
        limits: list[Limit] = []
        open_ = np.ones(len(failed), dtype=bool)
        while open_.any():
            gain = exceeds[open_].sum(axis=0) / price
            best = int(np.argmax(gain))
            if gain[best] <= 0:
                break
            beyond = exceeds[:, best]
            explained = int((beyond & open_).sum())
            limits.append(
                Limit(int(used[best]), float(reach[best]), float(failed[beyond, best].min()), explained)
            )
            open_ &= ~beyond
        return limits

    def probability(self, inputs: Matrix) -> NDArray[np.float64]:
        """The share of members, softened by their evidence, that see no limit exceeded."""
        listed = [limit for limits in self._members for limit in limits]
        if not listed:
            return np.ones(len(inputs))
        kept = 1 - _exceeded(inputs @ self._weights[:, [limit.direction for limit in listed]], listed)
        counts = np.array([len(limits) for limits in self._members if limits])
        begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
        unexplained = len(self._members) - len(counts)
        votes = np.multiply.reduceat(kept, begins, axis=1).sum(axis=1) + unexplained
        return np.asarray(votes / len(self._members), dtype=np.float64)


def _exceeded(along: Matrix, limits: Sequence[Limit]) -> Matrix:
    """How surely values exceed limits: not up to where valid points reach, fully where failures begin."""
    valid_to = np.array([limit.valid_to for limit in limits])
    gap = np.maximum([limit.fails_from for limit in limits] - valid_to, 1e-9)
    explained = np.array([limit.explained for limit in limits])
    trust = explained / (explained + 1)
    return np.asarray(trust * np.clip((along - valid_to) / gap, 0, 1), dtype=np.float64)
