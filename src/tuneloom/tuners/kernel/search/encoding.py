"""Points as numbers that models can learn from."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.space import KnobValue, Space

Matrix = NDArray[np.float64]
FEW_VALUES = 4
"""A knob of three or four values may be a mere choice, so it also gets a distance without order."""


@dataclass(frozen=True)
class Encoding:
    """Tables from a knob's value positions to numbers.

    `smooth` columns lie in [0, 1] and belong to `groups` that share a length scale;
    `plain` columns are in the units of limits: logarithms of sizes, so that products
    and ratios of knobs are sums and differences.
    """

    smooth_tables: tuple[Matrix, ...]
    plain_tables: tuple[Matrix, ...]
    active: tuple[int, ...]
    groups: NDArray[np.int64]

    @classmethod
    def of(cls, space: Space, halved: bool = False) -> "Encoding":
        """The encoding of a space; knobs with a single value are left out.

        `halved` adds to sizes how often two divides them: a block of 96 threads may be more like one
        of 160 than like one of 100.
        """
        active = tuple(i for i, count in enumerate(space.shape) if count > 1)
        values = list(space.knobs.values())
        smooth = tuple(_smooth_and_halved(values[i]) if halved else _smooth(values[i]) for i in active)
        plain = tuple(_plain(values[i]) for i in active)
        return cls(smooth, plain, active, _grouped(smooth))

    @cached_property
    def parts(self) -> tuple[tuple[tuple[int, Matrix], ...], ...]:
        """For each knob its groups, with the columns of its table that belong to each."""
        parts, first = [], 0
        for table in self.smooth_tables:
            own = self.groups[first : first + table.shape[1]]
            parts.append(tuple((int(group), table[:, own == group]) for group in np.unique(own)))
            first += table.shape[1]
        return tuple(parts)

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        counts = [len(table) for table in self.smooth_tables] or [1]
        return np.concatenate([[0], np.cumsum(counts)])

    def hot(self, points: Points) -> NDArray[np.float32]:
        """A column for every value of every knob: 1 where a point has it."""
        has = np.zeros((len(points), int(self._begins[-1])), dtype=np.float32)
        rows = np.arange(len(points))[:, None]
        has[rows, points[:, self.active] + self._begins[:-1][: len(self.active)]] = 1.0
        return has

    def smooth(self, points: Points) -> Matrix:
        """Columns for models that interpolate."""
        return self._looked_up(self.smooth_tables, points)

    def plain(self, points: Points) -> Matrix:
        """Columns for models that look for limits."""
        return self._looked_up(self.plain_tables, points)

    def _looked_up(self, tables: tuple[Matrix, ...], points: Points) -> Matrix:
        if not tables:
            return np.zeros((len(points), 1))
        return np.hstack([table[points[:, i]] for table, i in zip(tables, self.active, strict=True)])


def _numbers(values: tuple[KnobValue, ...]) -> Matrix | None:
    if any(isinstance(value, str | bool) for value in values):
        return None
    return np.array(values, dtype=np.float64)


def _scale(values: tuple[KnobValue, ...]) -> Matrix:
    """Positions of ordered values: logarithms of sizes, else the order itself."""
    numbers = _numbers(values)
    if numbers is not None and numbers.min() > 0:
        return np.asarray(np.log2(numbers), dtype=np.float64)
    return np.arange(len(values), dtype=np.float64)


def _one_hot(count: int) -> Matrix:
    return np.asarray(np.eye(count) * np.sqrt(0.5), dtype=np.float64)


def _smooth(values: tuple[KnobValue, ...]) -> Matrix:
    if any(isinstance(value, str) for value in values):
        return _one_hot(len(values))
    scale = _scale(values)
    column: Matrix = np.asarray((scale - scale.min()) / np.ptp(scale)).reshape(-1, 1)
    if 2 < len(values) <= FEW_VALUES:
        return np.hstack([column, _one_hot(len(values))])
    return column


def _smooth_and_halved(values: tuple[KnobValue, ...]) -> Matrix:
    """The same, with a further column for how often two divides each value if its size does not say it."""
    halvings = _halvings(values)
    smooth = _smooth(values)
    if len(values) <= FEW_VALUES or not 1 < len(set(halvings)) < len(values):
        return smooth
    column = np.array(halvings, dtype=np.float64)
    return np.column_stack([smooth, (column - column.min()) / np.ptp(column)])


def _halvings(values: tuple[KnobValue, ...]) -> tuple[int, ...]:
    sizes = [value for value in values if type(value) is int and value > 0]
    return tuple((size & -size).bit_length() for size in sizes) if len(sizes) == len(values) else ()


def _plain(values: tuple[KnobValue, ...]) -> Matrix:
    if any(isinstance(value, str) for value in values) and len(values) > 2:
        return np.eye(len(values))
    return _scale(values).reshape(-1, 1)


def _grouped(tables: tuple[Matrix, ...]) -> NDArray[np.int64]:
    groups: list[int] = []
    for table in tables:
        ordered = bool(np.ptp(table[:, 0]) == 1.0)
        first = groups[-1] + 1 if groups else 0
        groups += [first] if ordered else [first] * table.shape[1]
        if ordered and table.shape[1] > 1:
            groups += [first + 1] * (table.shape[1] - 1)
    return np.array(groups or [0], dtype=np.int64)
