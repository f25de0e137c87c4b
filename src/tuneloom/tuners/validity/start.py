"""A first batch that is spread out over what is likely to be valid, its boundary included."""

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.validity.directions import Matrix


def spread(candidates: Matrix, seen: Matrix, probability: NDArray[np.float64]) -> int:
    """The candidate farthest from everything seen, distances discounted by its chance to be valid.

    Coordinates should lie in comparable ranges. With nothing seen every candidate is
    equally far, and the likeliest one is taken.
    """
    if not len(seen):
        return int(np.argmax(probability))
    squares = (candidates**2).sum(axis=1)[:, None] + (seen**2).sum(axis=1)[None] - 2 * candidates @ seen.T
    nearest = np.maximum(squares.min(axis=1), 1e-9)
    return int(np.argmax(0.5 * np.log(nearest) + np.log(probability + 1e-3)))
