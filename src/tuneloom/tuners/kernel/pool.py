"""Which points a model is asked about: chance, the surroundings of the best, and uphill walks."""

from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.space import Space

Score = Callable[[Points], NDArray[np.float64]]
DRAWN = 2000
"""Random points in a pool; a space with no more points is asked about as a whole."""
_WALKERS = 6
_WALK_LENGTH = 6


def unseen(points: Points, seen: Collection[tuple[int, ...]]) -> Points:
    """The points that were not proposed before, each once."""
    kept = dict.fromkeys(tuple(row) for row in points.tolist())
    fresh = [row for row in kept if row not in seen]
    return np.array(fresh, dtype=np.int64).reshape(len(fresh), points.shape[1])


def open_points(space: Space, seen: Collection[tuple[int, ...]], rng: np.random.Generator) -> Points:
    """Points never proposed before; empty only when the space is spent."""
    if space.listable and (space.size <= DRAWN or 2 * len(seen) >= space.size):
        rest = unseen(space.points(), seen)
        return rest if len(rest) <= DRAWN else rest[rng.choice(len(rest), DRAWN, replace=False)]
    return unseen(space.sample(DRAWN, rng), seen)


def best_point(
    space: Space, pool: Points, score: Score, seen: Collection[tuple[int, ...]]
) -> tuple[int, ...]:
    """The point with the highest score: of the pool, and of walks uphill from its best."""
    scores = score(pool)
    for _ in range(_WALK_LENGTH):
        top = np.argsort(-scores, kind="stable")[:_WALKERS]
        around = unseen(space.variations(pool[top]), seen)
        if not len(around):
            break
        risen = score(around)
        better = risen.max() > scores[top[0]]
        pool, scores = np.vstack([pool[top], around]), np.concatenate([scores[top], risen])
        if not better:
            break
    return tuple(int(i) for i in pool[int(np.argmax(scores))])
