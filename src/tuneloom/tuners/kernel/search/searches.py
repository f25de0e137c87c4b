"""The searches that can be named, and what they all promise."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tuneloom.errors import InputError
from tuneloom.model import ProposalReason, Purpose
from tuneloom.tuners.kernel.factors import Point
from tuneloom.tuners.kernel.search.autotvm import AT_RANDOM, AutoTvmSearch
from tuneloom.tuners.kernel.search.guided import GuidedSearch
from tuneloom.tuners.kernel.search.pool import Visited, as_point, open_points, unseen
from tuneloom.tuners.kernel.search.terms import Terms
from tuneloom.tuners.kernel.space import Space


class PointSearch(Protocol):
    """Proposes points of a space and learns what became of them; used by one thread."""

    def propose(self, count: int) -> list[Point]:
        """Up to `count` points never proposed before; none when the space is spent."""

    def learn(self, point: Point, seconds: float | None) -> None:
        """Take in a point's time, or None for a failure; the point is not proposed again."""

    def hear(self, point: Point, builds: bool) -> None:
        """Take in whether a point builds; one that does not is never proposed."""

    def relevance(self) -> dict[str, float]:
        """How strongly the time depends on each knob, as shares of one; empty without a model."""

    def reason(self, point: Point) -> ProposalReason | None:
        """Why a point was proposed, at least by which member; None for one that was not."""


_STEP = ProposalReason(member="step to a neighbour", purpose=Purpose.IMPROVE)


class RandomSearch:
    """Points drawn uniformly, none twice."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._rng = space, np.random.default_rng([seed, 41])
        self._proposed = Visited(space.width)
        self._reasons: dict[Point, ProposalReason] = {}

    def propose(self, count: int) -> list[Point]:
        points: list[Point] = []
        while len(points) < count:
            pool = open_points(self._space, self._proposed, self._rng)
            if not len(pool):
                break
            order = self._rng.permutation(len(pool))[: count - len(points)]
            drawn = [as_point(pool[i]) for i in order]
            for point in drawn:
                self._proposed.add(point)
                self._reasons[point] = AT_RANDOM
            points += drawn
        return points

    def learn(self, point: Point, seconds: float | None) -> None:
        self._proposed.add(point)

    def hear(self, point: Point, builds: bool) -> None:
        if not builds:
            self._proposed.add(point)

    def relevance(self) -> dict[str, float]:
        return {}

    def reason(self, point: Point) -> ProposalReason | None:
        return self._reasons.get(point)


class LocalSearch(RandomSearch):
    """Walks to better points among those that differ in one knob; starts anew where none is better."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._here: Point | None = None
        self._level = float("inf")
        self._around: list[Point] = []

    def propose(self, count: int) -> list[Point]:
        points: list[Point] = []
        while self._around and len(points) < count:
            point = self._around.pop()
            if point not in self._proposed:
                self._proposed.add(point)
                self._reasons[point] = _STEP
                points.append(point)
        if points:
            return points
        self._here, self._level = None, float("inf")
        return super().propose(1)

    def learn(self, point: Point, seconds: float | None) -> None:
        super().learn(point, seconds)
        if seconds is not None and seconds < self._level:
            self._here, self._level = point, seconds
            around = unseen(self._space.variations(np.array([point])), self._proposed)
            self._around = [as_point(row) for row in self._rng.permutation(around)]


_Maker = Callable[[Space, Terms], PointSearch]
SEARCHES: dict[str, _Maker] = {
    "guided": GuidedSearch,
    "autotvm": AutoTvmSearch,
    "local": lambda space, terms: LocalSearch(space, terms.seed),
    "random": lambda space, terms: RandomSearch(space, terms.seed),
}


def new_search(name: str, space: Space, terms: Terms) -> PointSearch:
    """The search of this name; raises InputError for an unknown one."""
    if name not in SEARCHES:
        raise InputError(f"no search {name!r}; known: {', '.join(SEARCHES)}")
    return SEARCHES[name](space, terms)
