"""How alike the times of two points are: by each knob apart, by pairs of knobs, and by all together.

Times of kernels are largely products of what each knob does for itself. So in their
logarithms the effect of a knob is learned from all points, however much other knobs
differ, and what two knobs do to each other from all points that are alike in these two.
What is left is learned from points that are near each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.search.encoding import Encoding, Matrix
from tuneloom.tuners.validity import squared_distances

Vector = NDArray[np.float64]
_ROOT5 = np.sqrt(5.0)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Length scales of the groups of columns, and how much is shared together, apart and in pairs."""

    lengths: Vector
    together: float
    apart: float
    paired: float

    @property
    def variance(self) -> float:
        return self.together + self.apart + self.paired


@dataclass(frozen=True, slots=True)
class Level:
    """The values of one knob among some points: who has which, and how far they are from each other."""

    has: Matrix
    pairs: NDArray[np.int64]
    groups: Sequence[int]
    squares: Matrix


class Covariance:
    """Matérn-5/2 in the distance over all groups, and in that of each: their mean, and of their products.

    All share the length scales: a group alone is as far as all of them are together.
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

    def between(self, points: Points, others: Points, likeness: Likeness) -> Matrix:
        """The covariance of each of the points with each of the others."""
        return self.towards(others, likeness).of(points)

    def towards(self, others: Points, likeness: Likeness) -> "Towards":
        """How near each value of every knob is to these points, under these scales."""
        far, alike, squared = [], [], []
        for parts, place in zip(self._encoding.parts, self._encoding.active, strict=True):
            squares = [
                squared_distances(table, table[others[:, place]]) / likeness.lengths[group] ** 2
                for group, table in parts
            ]
            shared = [matern(self.scales * square)[0] for square in squares]
            far.append(np.sum(squares, axis=0))
            alike.append(np.sum(shared, axis=0))
            squared.append(np.sum([each**2 for each in shared], axis=0))
        if not far:
            far = alike = squared = [np.zeros((1, len(others)))]
        return Towards(
            self._encoding, likeness, self.scales, np.vstack(far), np.vstack(alike), np.vstack(squared)
        )

    def _level(self, points: Points, knob: int) -> Level:
        values, place = np.unique(points[:, self._encoding.active[knob]], return_inverse=True)
        parts = self._encoding.parts[knob]
        squares = [squared_distances(table[values], table[values]) for _, table in parts]
        pairs = place[:, None] * len(values) + place
        return Level(np.eye(len(values))[place], pairs, [group for group, _ in parts], np.stack(squares))


@dataclass(frozen=True, slots=True)
class Towards:
    """Squared distances and covariances from every value of every knob to some points."""

    encoding: Encoding
    likeness: Likeness
    scales: int
    far: Matrix
    alike: Matrix
    squared: Matrix

    def of(self, points: Points) -> Matrix:
        """The covariance of each point with each of those: its knobs' rows added up."""
        has = self.encoding.hot(points)
        shared = _matern_of(has @ self.far)
        shared *= self.likeness.together
        alike = has @ self.alike
        paired = alike * alike
        paired -= has @ self.squared
        paired *= self.likeness.paired / _pairs(self.scales)
        shared += paired
        alike *= self.likeness.apart / self.scales
        shared += alike
        return shared


@dataclass(frozen=True, slots=True)
class Spacing:
    """Squared distances between points: over each group of columns, and level by level."""

    squares: Matrix
    levels: Sequence[Level]

    def under(self, likeness: Likeness) -> "Shared":
        """What the points share if they are so alike."""
        whole = matern(np.tensordot(likeness.lengths**-2, self.squares, 1))
        each, slopes = np.empty_like(self.squares), []
        for level in self.levels:
            nearness = len(self.squares) * likeness.lengths[level.groups] ** -2.0
            values, slope = matern(nearness[:, None, None] * level.squares)
            for group, table in zip(level.groups, values, strict=True):
                np.take(table, level.pairs, out=each[group])
            slopes.append(slope)
        return Shared(self, likeness, whole, each if self.levels else 0 * each, slopes)


@dataclass(frozen=True, slots=True)
class Shared:
    """Covariances by distance together, with their slopes, and in each group, with those of its values."""

    spacing: Spacing
    likeness: Likeness
    together: tuple[Matrix, Matrix]
    each: Matrix
    slopes: Sequence[Matrix]

    @property
    def apart(self) -> Matrix:
        """The mean over the groups."""
        return np.asarray(self.each.mean(axis=0))

    @property
    def paired(self) -> Matrix:
        """The mean over products of two groups."""
        squared = np.einsum("gij,gij->ij", self.each, self.each)
        return np.asarray((self.each.sum(axis=0) ** 2 - squared) / _pairs(len(self.each)))

    @property
    def matrix(self) -> Matrix:
        """The covariance of all pairs."""
        by = self.likeness
        return np.asarray(by.together * self.together[0] + by.apart * self.apart + by.paired * self.paired)

    def pull(self, slack: Matrix) -> Vector:
        """Half the sum of `slack` times the derivatives by the logarithms of lengths and amounts."""
        by, count = self.likeness, len(self.each)
        shape, slope = self.together
        by_length = by.together * np.einsum("gij,ij->g", self.spacing.squares, slack * slope)
        total = self.each.sum(axis=0)
        for level, slopes in zip(self.spacing.levels, self.slopes, strict=True):
            for place, group in enumerate(level.groups):
                weight = by.apart / count + 2 * by.paired / _pairs(count) * (total - self.each[group])
                shared = level.has.T @ (slack * weight) @ level.has
                by_length[group] += count * np.einsum(
                    "ij,ij,ij->", shared, level.squares[place], slopes[place]
                )
        amounts = [
            0.5 * amount * np.einsum("ij,ij->", slack, matrix)
            for amount, matrix in ((by.together, shape), (by.apart, self.apart), (by.paired, self.paired))
        ]
        return np.concatenate([-by_length * by.lengths**-2, amounts])


def _pairs(groups: int) -> int:
    """Ordered pairs of different groups."""
    return max(groups * (groups - 1), 1)


def matern(distance: Matrix) -> tuple[Matrix, Matrix]:
    """The function of a squared distance, and its derivative."""
    root = np.sqrt(distance)
    decay = np.exp(-_ROOT5 * root)
    return (1 + _ROOT5 * root + 5 / 3 * distance) * decay, -5 / 6 * (1 + _ROOT5 * root) * decay


def _matern_of(distance: Matrix) -> Matrix:
    """The same function without its derivative, for many distances; they are overwritten.

    The exponential is taken in single precision: covariances are exact to seven digits.
    """
    np.maximum(distance, 0.0, out=distance)
    distance *= 5.0
    root = np.sqrt(distance)
    distance /= 3.0
    distance += root
    distance += 1.0
    distance *= np.exp(-root.astype(np.float32))
    return distance
