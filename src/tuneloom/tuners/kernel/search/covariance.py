"""How alike the times of two points are: by all knobs together, and by each knob apart.

Times of kernels are largely products of what each knob does for itself. So in their
logarithms the effect of a knob is learned from all points, however much other knobs
differ; what knobs do together is learned from points that are near each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.search.encoding import Encoding, Matrix
from tuneloom.tuners.validity import squared_distances

Vector = NDArray[np.float64]
Single = NDArray[np.float32]
_ROOT5 = np.sqrt(5.0)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Length scales of the groups of columns, and how much is shared together and apart."""

    lengths: Vector
    together: float
    apart: float

    @property
    def variance(self) -> float:
        return self.together + self.apart


@dataclass(frozen=True, slots=True)
class Level:
    """The values of one knob among some points: who has which, and how far they are from each other."""

    has: Matrix
    groups: Sequence[int]
    squares: Matrix


class Covariance:
    """Matérn-5/2 in the distance over all groups, and its mean over the distances in each of them.

    Both share the length scales: a group alone is as far as all of them are together.
    """

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.scales = int(encoding.groups.max()) + 1

    def among(self, points: Points) -> "Spacing":
        """Everything about the distances between some points that does not depend on scales."""
        inputs, groups = self._encoding.smooth(points), self._encoding.groups
        squares = [
            squared_distances(inputs[:, groups == g], inputs[:, groups == g]) for g in range(self.scales)
        ]
        return Spacing(np.stack(squares), [self._level(points, k) for k in range(len(self._encoding.active))])

    def towards(self, others: Points, likeness: Likeness) -> "Towards":
        """How near each value of every knob is to these points, under these scales."""
        far, alike = [], []
        for parts, place in zip(self._encoding.parts, self._encoding.active, strict=True):
            squares = [
                squared_distances(table, table[others[:, place]]) / likeness.lengths[group] ** 2
                for group, table in parts
            ]
            far.append(np.sum(squares, axis=0))
            alike.append(sum(matern(self.scales * square)[0] for square in squares))
        if not far:
            far, alike = [np.zeros((1, len(others)))], [np.zeros((1, len(others)))]
        shared = likeness.apart / self.scales * np.vstack(alike)
        return Towards(self._encoding, likeness.together, _single(np.vstack(far)), _single(shared))

    def _level(self, points: Points, knob: int) -> Level:
        values, has = _one_hot(points[:, self._encoding.active[knob]])
        parts = self._encoding.parts[knob]
        squares = [squared_distances(table[values], table[values]) for _, table in parts]
        return Level(has, [group for group, _ in parts], np.stack(squares))


@dataclass(frozen=True, slots=True)
class Towards:
    """Squared distances and covariances from every value of every knob to some points.

    Single precision: many points are asked about, and covariances need no more than six digits.
    """

    encoding: Encoding
    together: float
    far: Single
    apart: Single

    def of(self, points: Points) -> Single:
        """The covariance of each point with each of those: its knobs' rows added up."""
        has = self.encoding.hot(points)
        shared = _matern_of(has @ self.far)
        shared *= self.together
        shared += has @ self.apart
        return shared


@dataclass(frozen=True)
class Spacing:
    """Squared distances between points: over each group of columns, and level by level."""

    squares: Matrix
    levels: Sequence[Level]

    def under(self, likeness: Likeness) -> "Shared":
        """What the points share if they are so alike."""
        whole = matern(np.tensordot(likeness.lengths**-2, self.squares, 1))
        nearness = len(self.squares) * likeness.lengths**-2.0
        near = [(nearness[level.groups, None, None] * level.squares).ravel() for level in self.levels]
        values, slopes = matern(np.concatenate([np.empty(0), *near]))
        shared = [
            of.sum(axis=0) @ level.has.T for level, of in zip(self.levels, self.split(values), strict=True)
        ]
        apart = self.has @ np.vstack([np.empty((0, len(whole[0]))), *shared])
        return Shared(self, likeness, whole, apart / len(self.squares), list(self.split(slopes)))

    @cached_property
    def has(self) -> Matrix:
        """Which values of all knobs each point has."""
        return np.hstack([np.empty((self.squares.shape[1], 0)), *(level.has for level in self.levels)])

    def split(self, listed: Vector) -> Iterator[Matrix]:
        """Numbers for all pairs of values, level by level."""
        first = 0
        for level in self.levels:
            yield listed[first : first + level.squares.size].reshape(level.squares.shape)
            first += level.squares.size


@dataclass(frozen=True, slots=True)
class Shared:
    """Covariances by distance together and apart, each with its slopes."""

    spacing: Spacing
    likeness: Likeness
    together: tuple[Matrix, Matrix]
    apart: Matrix
    slopes: Sequence[Matrix]

    @property
    def matrix(self) -> Matrix:
        """The covariance of all pairs."""
        return np.asarray(self.likeness.together * self.together[0] + self.likeness.apart * self.apart)

    def pull(self, slack: Matrix) -> tuple[Vector, float, float]:
        """Half the sum of `slack` times the derivatives by the logarithms of lengths, together, apart."""
        shape, slope = self.together
        by_length = self.likeness.together * np.einsum("gij,ij->g", self.spacing.squares, slack * slope)
        pulled, first = self.spacing.has.T @ slack, 0
        for level, slopes in zip(self.spacing.levels, self.slopes, strict=True):
            shared = pulled[first : (first := first + level.has.shape[1])] @ level.has
            # the number of groups cancels out: once in the mean, once in the distance
            by_length[level.groups] += self.likeness.apart * np.einsum(
                "ij,gij,gij->g", shared, level.squares, slopes
            )
        together = 0.5 * self.likeness.together * np.einsum("ij,ij->", slack, shape)
        apart = 0.5 * self.likeness.apart * np.einsum("ij,ij->", slack, self.apart)
        return -by_length * self.likeness.lengths**-2, float(together), float(apart)


def matern(distance: Matrix) -> tuple[Matrix, Matrix]:
    """The function of a squared distance, and its derivative."""
    root = np.sqrt(distance)
    decay = np.exp(-_ROOT5 * root)
    return (1 + _ROOT5 * root + 5 / 3 * distance) * decay, -5 / 6 * (1 + _ROOT5 * root) * decay


def _matern_of(distance: Single) -> Single:
    """The same function without its derivative, for many distances; they are overwritten."""
    distance *= 5.0
    root = np.sqrt(distance)
    distance /= 3.0
    distance += root
    distance += 1.0
    distance *= np.exp(np.negative(root, out=root), out=root)
    return distance


def _single(numbers: Matrix) -> Single:
    return np.asarray(numbers, dtype=np.float32)


def _one_hot(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], Matrix]:
    """The different values, and which of them each row has."""
    present, place = np.unique(values, return_inverse=True)
    has = np.zeros((len(values), len(present)))
    has[np.arange(len(values)), place] = 1.0
    return present, has
