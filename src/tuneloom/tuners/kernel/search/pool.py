"""Which points a model is asked about: chance, the surroundings of the best, and uphill walks."""

from collections.abc import Callable, Collection, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.factors import Point, Points
from tuneloom.tuners.kernel.space import Space

Score = Callable[[Points], NDArray[np.float64]]
Codes = NDArray[np.int64]
DRAWN = 2000
"""Random points in a pool; a space with no more points is asked about as a whole."""
WALKERS = 6
_WALK_LENGTH = 6


class Visited(Collection[Point]):
    """Points in the order they were added; tells which of many are new without looking at each.

    A point's code is a sum of its positions with odd 62-bit weights, so two points share
    one about once in 2**60 pairs; one of them would then count as visited.
    """

    def __init__(self, width: int) -> None:
        self._points: dict[Point, None] = {}
        self._width = width
        self._codes = np.empty(64, dtype=np.int64)

    def add(self, point: Point) -> None:
        """Remember a point."""
        if point in self._points:
            return
        count = len(self._points)
        if count == len(self._codes):
            self._codes = np.concatenate([self._codes, np.empty_like(self._codes)])
        self._codes[count] = coded(np.array([point], dtype=np.int64))[0]
        self._points[point] = None

    def __contains__(self, point: object) -> bool:
        return point in self._points

    def __iter__(self) -> Iterator[Point]:
        return iter(self._points)

    def __len__(self) -> int:
        return len(self._points)

    @property
    def codes(self) -> Codes:
        """The codes of all points."""
        return self._codes[: len(self._points)]


def coded(points: Points) -> Codes:
    """A number for each point, equal for equal points."""
    return np.asarray(points @ _code_weights(points.shape[1]), dtype=np.int64)


@cache
def _code_weights(width: int) -> Codes:
    return np.random.default_rng(8).integers(1 << 62, size=width) | 1


def as_point(row: Points) -> Point:
    """A row of a table of points, as the value that searches keep."""
    return tuple(row.tolist())


def unseen(points: Points, seen: Collection[Point]) -> Points:
    """The points that were not proposed before, each once."""
    codes = coded(points)
    _, first = np.unique(codes, return_index=True)
    first.sort()
    if not len(seen):
        return points[first]
    old = seen.codes if isinstance(seen, Visited) else coded(np.array(list(seen), dtype=np.int64))
    return points[first[~np.isin(codes[first], old)]]


def open_points(space: Space, seen: Collection[Point], rng: np.random.Generator) -> Points:
    """Points never proposed before, in random order; empty only when the space is spent."""
    if space.listable and (space.size <= DRAWN or 2 * len(seen) >= space.size):
        rest = unseen(space.points(), seen)
        return rest[rng.permutation(len(rest))[:DRAWN]]
    return unseen(space.sample(DRAWN, rng), seen)


def best_point(space: Space, pool: Points, score: Score, seen: Collection[Point]) -> Point:
    """The point with the highest score: of the pool, and of walks uphill from its best."""
    scores = score(pool)
    walked = np.zeros(len(pool), dtype=bool)
    for _ in range(_WALK_LENGTH):
        top = np.argsort(-scores, kind="stable")[:WALKERS]
        around = unseen(space.variations(pool[top[~walked[top]]]), seen)
        if not len(around):
            break
        risen = score(around)
        better = risen.max() > scores[top[0]]
        walked = np.concatenate([np.ones(len(top), dtype=bool), np.zeros(len(around), dtype=bool)])
        pool, scores = np.vstack([pool[top], around]), np.concatenate([scores[top], risen])
        if not better:
            break
    return as_point(pool[int(np.argmax(scores))])
