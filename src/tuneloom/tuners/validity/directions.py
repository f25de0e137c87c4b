"""Quantities along which limits of hardware are looked for.

Inputs are logarithms of sizes. A signed sum of them is a product or ratio of knobs:
`tile_x * tile_y / threads`. What two tiles take together is a sum of sizes, and with
further factors the memory that a kernel asks for: `(tile_x + tile_y) * depth`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
MOST_DIRECTIONS = 2500
_FACTORS = 3
_FACTORS_OF_SUMS = 2


@dataclass(frozen=True, slots=True)
class Directions:
    """Columns of `weights` over the inputs and the sums of `pairs`; `knobs` counts the inputs of each."""

    pairs: NDArray[np.int64]
    weights: Matrix
    knobs: Matrix

    @classmethod
    def over(cls, width: int) -> "Directions":
        """Products and ratios first, then those with a sum; simpler ones before others, never too many."""
        pairs = np.array(list(combinations(range(width), 2)), dtype=np.int64).reshape(-1, 2)
        columns: list[Matrix] = []
        for group in _groups(width, pairs):
            room = MOST_DIRECTIONS - len(columns)
            added = list(islice(group, room + 1))
            if len(added) > room:
                break
            columns += added
        weights = np.array(columns, dtype=np.float64).T
        if not weights[width:].any():  # there was no room for sums
            pairs, weights = pairs[:0], weights[:width]
        counted = np.abs(weights)
        return cls(pairs, weights, counted[:width].sum(axis=0) + 2 * counted[width:].sum(axis=0))

    def extended(self, rows: Matrix) -> Matrix:
        """Rows with the logarithms of the sums of all pairs."""
        sums = np.logaddexp2(rows[:, self.pairs[:, 0]], rows[:, self.pairs[:, 1]])
        return np.hstack([rows, sums])

    def along(self, rows: Matrix) -> Matrix:
        """The values of rows along all directions."""
        return self.extended(rows) @ self.weights

    def only(self, some: NDArray[np.int64]) -> "Directions":
        """Some of the directions, with no more sums than they need."""
        width, weights = len(self.weights) - len(self.pairs), self.weights[:, some]
        needed = weights[width:].any(axis=1)
        kept = np.concatenate([np.ones(width, dtype=bool), needed])
        return Directions(self.pairs[needed], weights[kept], self.knobs[some])


def picked(along: Matrix, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Matrix:
    """What stands in these rows and columns, twice as fast as by `np.ix_`."""
    return np.asarray(along.take(rows[:, None] * along.shape[1] + columns), dtype=np.float64)


def _groups(width: int, pairs: NDArray[np.int64]) -> Iterator[Iterator[Matrix]]:
    """Directions of the same make: of one factor, of two, of three; a sum alone, and with factors."""
    everything = width + len(pairs)
    for order in range(1, _FACTORS + 1):
        yield _signed(range(width), order, everything)
    for order in range(_FACTORS_OF_SUMS + 1):
        yield _with_sums(width, pairs, order)


def _with_sums(width: int, pairs: NDArray[np.int64], order: int) -> Iterator[Matrix]:
    """Columns of one sum each, with `order` of the other inputs as factors."""
    for place, pair in enumerate(pairs.tolist()):
        others = [i for i in range(width) if i not in pair]
        yield from _signed(others, order, width + len(pairs), width + place)


def _signed(among: Collection[int], order: int, width: int, sum_at: int | None = None) -> Iterator[Matrix]:
    """Columns with every choice of `order` places and signs, and a one at the place of a sum."""
    for chosen in combinations(among, order):
        for signs in product((1.0, -1.0), repeat=order):
            column = np.zeros(width)
            column[list(chosen)] = signs
            if sum_at is not None:
                column[sum_at] = 1.0
            yield column
