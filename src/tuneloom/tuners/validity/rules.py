"""Limits that explain the failures seen: no valid point exceeds them, every failure exceeds one.

A member of the ensemble is a small set of limits found greedily: of the directions it
may use, it takes the one whose limit (the largest value of any valid point) the most
unexplained failures exceed, until none is left that could be explained.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Directions, Matrix, picked

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
        self._directions = directions
        self._price = 1 + _PLAINNESS * (directions.knobs - 1)
        self._members: list[list[Limit]] = []
        self._count = members
        self._rng = rng
        self._turn = 0

    def learn(self, along: Matrix, valid: Flags) -> None:
        """Take in points by their values along all directions; the last one is new."""
        if not self._members:
            self._members = [self._explained(along, valid) for _ in range(self._count)]
        else:
            self._turn = (self._turn + 1) % self._count
            for place, limits in enumerate(self._members):
                beyond = any(along[-1, limit.direction] > limit.valid_to + 1e-9 for limit in limits)
                if beyond == bool(valid[-1]) or place == self._turn:
                    self._members[place] = self._explained(along, valid)
        self._listed = _Listed.of(self._members, self._directions)

    def _explained(self, along: Matrix, valid: Flags) -> list[Limit]:
        used = np.flatnonzero(self._rng.random(len(self._price)) < _SHARE)
        if not len(used):
            return []
        reach = picked(along, np.flatnonzero(valid), used).max(axis=0)
        failed = picked(along, np.flatnonzero(~valid), used)
        exceeds = (failed > reach + 1e-9).astype(np.float64)
        price = self._price[used] * (1 + 1e-6 * self._rng.random(len(used)))
        limits: list[Limit] = []
        open_ = np.ones(len(failed), dtype=bool)
        while open_.any():
            gain = open_.astype(np.float64) @ exceeds / price  # a product counts faster than sums of flags
            best = int(np.argmax(gain))
            if gain[best] <= 0:
                break
            beyond = exceeds[:, best] > 0
            explained = int((beyond & open_).sum())
            limits.append(
                Limit(int(used[best]), float(reach[best]), float(failed[beyond, best].min()), explained)
            )
            open_ &= ~beyond
        return limits

    def probability(self, rows: Matrix) -> NDArray[np.float64]:
        """The share of members, softened by their evidence, that see no limit exceeded."""
        if not any(self._members):
            return np.ones(len(rows))
        kept, begins = 1 - self._listed.exceeded(rows), self._listed.begins
        votes = np.multiply.reduceat(kept, begins, axis=1).sum(axis=1) + len(self._members) - len(begins)
        return np.asarray(votes / len(self._members), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Listed:
    """The limits of all members in arrays, and where those of each member with limits begin."""

    directions: Directions
    valid_to: Matrix
    gap: Matrix
    trust: Matrix
    begins: NDArray[np.int64]

    @classmethod
    def of(cls, members: Sequence[Sequence[Limit]], directions: Directions) -> "_Listed":
        listed = [limit for limits in members for limit in limits]
        explained = np.array([limit.explained for limit in listed])
        valid_to = np.array([limit.valid_to for limit in listed])
        counts = [len(limits) for limits in members if limits]
        return cls(
            directions.only(np.array([limit.direction for limit in listed], dtype=np.int64)),
            valid_to,
            np.maximum(np.array([limit.fails_from for limit in listed]) - valid_to, 1e-9),
            explained / (explained + 1),
            np.cumsum([0, *counts[:-1]]),
        )

    def exceeded(self, rows: Matrix) -> Matrix:
        """How surely rows exceed limits: not up to where valid points reach, fully where failures begin."""
        beyond = np.clip((self.directions.along(rows) - self.valid_to) / self.gap, 0, 1)
        return np.asarray(self.trust * beyond, dtype=np.float64)
