"""A first batch that begins in the middle and spreads out over what is likely to be valid."""

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Matrix

Vector = NDArray[np.float64]


def middle(candidates: Matrix, whole: Matrix) -> int:
    """The candidate nearest to all of `whole`, which stands for the space.

    Limits of hardware lie at the ends of knobs, so the middle rather works, and it tells
    more about the rest of the space than any other single point.
    """
    return int(np.argmin(np.sqrt(_squares(candidates, whole)).mean(axis=1)))


def spread(candidates: Matrix, seen: Matrix, probability: Vector) -> int:
    """The candidate farthest from everything seen, distances discounted by its chance to be valid.

    Coordinates should lie in comparable ranges. With nothing seen every candidate is
    equally far, and the likeliest one is taken.
    """
    if not len(seen):
        return int(np.argmax(probability))
    nearest = np.maximum(_squares(candidates, seen).min(axis=1), 1e-9)
    return int(np.argmax(0.5 * np.log(nearest) + np.log(probability + 1e-3)))


def _squares(left: Matrix, right: Matrix) -> Matrix:
    """Squared distances between all rows."""
    both = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None] - 2 * left @ right.T
    return np.asarray(np.maximum(both, 0.0), dtype=np.float64)
