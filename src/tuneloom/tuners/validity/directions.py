"""Directions along which limits of hardware are looked for."""

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
MOST_DIRECTIONS = 2500


def directions(width: int, largest: int = 3) -> Matrix:
    """Columns of signed sums of up to `largest` inputs, fewer where there would be too many.

    In logarithms a signed sum is a product or ratio: `tile_x * tile_y / threads`.
    """
    columns = [_signed(width, chosen, signs) for chosen, signs in _choices(width, 1)]
    for order in range(2, largest + 1):
        added = [_signed(width, chosen, signs) for chosen, signs in _choices(width, order)]
        if len(columns) + len(added) > MOST_DIRECTIONS:
            break
        columns += added
    return np.array(columns, dtype=np.float64).T


def _choices(width: int, order: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(c, s) for c in combinations(range(width), order) for s in product((1, -1), repeat=order)]


def _signed(width: int, chosen: tuple[int, ...], signs: tuple[int, ...]) -> Matrix:
    column = np.zeros(width)
    column[list(chosen)] = signs
    return column
