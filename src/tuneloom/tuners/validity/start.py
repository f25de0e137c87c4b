"""A first batch that is spread out over what is likely to be valid, its boundary included."""

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Matrix

Vector = NDArray[np.float64]


def spread(candidates: Matrix, seen: Matrix, probability: Vector) -> int:
    """The candidate farthest from everything seen, distances discounted by its chance to be valid.

    Coordinates should lie in comparable ranges. With nothing seen every candidate is
    equally far, and the likeliest one is taken.
    """
    if not len(seen):
        return int(np.argmax(probability))
    nearest = np.maximum(squared_distances(candidates, seen).min(axis=1), 1e-9)
    return int(np.argmax(0.5 * np.log(nearest) + np.log(probability + 1e-3)))


def squared_distances(left: Matrix, right: Matrix) -> Matrix:
    """Squared Euclidean distances between all rows."""
    both = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None] - 2 * left @ right.T
    return np.asarray(np.maximum(both, 0.0), dtype=np.float64)
