"""The allowed points of a space as a product of small tables, so that huge spaces are never listed.

Every restriction joins the tables of the knobs it reads, as long as the joined table
stays small; what can't be joined stays behind as a residual that drawn points are
checked against. Drawing uniformly from the tables and refusing what a residual
refuses is uniform over the allowed points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.kernel.expressions import Column, Restriction

Points = NDArray[np.int64]
Point = tuple[int, ...]
JOIN_LIMIT = 2_000_000
"""Rows of a table before its restrictions are applied."""


@dataclass(frozen=True, slots=True)
class Factor:
    """The allowed index combinations of some knobs (`knobs` are their positions)."""

    knobs: tuple[int, ...]
    rows: Points


@dataclass(frozen=True, slots=True)
class Factors:
    """Independent tables over all knobs, and the restrictions left to check."""

    tables: tuple[Factor, ...]
    residual: tuple[Restriction, ...]

    @property
    def size(self) -> int:
        """Points of the product; an upper bound when there are residual restrictions."""
        return prod(len(table.rows) for table in self.tables)

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Points:
        """Draw points from the product, with repetition; residuals are not checked."""
        points = np.empty((count, width), dtype=np.int64)
        for table in self.tables:
            points[:, table.knobs] = table.rows[rng.integers(len(table.rows), size=count)]
        return points

    def listed(self, width: int) -> Points:
        """All points of the product, in a fixed order; only for products that are small."""
        grids = np.indices([len(table.rows) for table in self.tables]).reshape(len(self.tables), -1)
        points = np.empty((grids.shape[1], width), dtype=np.int64)
        for table, index in zip(self.tables, grids, strict=True):
            points[:, table.knobs] = table.rows[index]
        return points


def factorise(
    names: Sequence[str],
    values: Sequence[Column],
    restrictions: Sequence[Restriction],
    limit: int = JOIN_LIMIT,
) -> Factors:
    """Join the knobs' tables along the restrictions, the cheapest join first."""
    tables = [Factor((i,), np.arange(len(column)).reshape(-1, 1)) for i, column in enumerate(values)]
    waiting = list(restrictions)
    while waiting:
        best = min(waiting, key=lambda r: _joined_size(tables, names, r))
        if _joined_size(tables, names, best) > limit:
            break
        waiting.remove(best)
        tables = _join(tables, names, values, best)
    return Factors(tuple(tables), tuple(waiting))


def _touched(tables: Sequence[Factor], names: Sequence[str], restriction: Restriction) -> list[Factor]:
    return [t for t in tables if any(names[k] in restriction.names for k in t.knobs)]


def _joined_size(tables: Sequence[Factor], names: Sequence[str], restriction: Restriction) -> int:
    return prod(len(t.rows) for t in _touched(tables, names, restriction))


def _join(
    tables: Sequence[Factor], names: Sequence[str], values: Sequence[Column], restriction: Restriction
) -> list[Factor]:
    touched = _touched(tables, names, restriction)
    if not touched:
        return list(tables) if _constant(restriction) else [Factor(tables[0].knobs, tables[0].rows[:0])]
    knobs = tuple(k for t in touched for k in t.knobs)
    index = np.indices([len(t.rows) for t in touched]).reshape(len(touched), -1)
    rows = np.hstack([t.rows[i] for t, i in zip(touched, index, strict=True)])
    kept = rows[restriction.holds(columns_of(rows, [names[k] for k in knobs], [values[k] for k in knobs]))]
    return [*(t for t in tables if t not in touched), Factor(knobs, kept)]


def _constant(restriction: Restriction) -> bool:
    return bool(restriction.holds({"": np.zeros(1)})[0])


def columns_of(rows: Points, names: Sequence[str], values: Sequence[Column]) -> Mapping[str, Column]:
    """The knob values of these index rows, by name."""
    return {name: column[rows[:, i]] for i, (name, column) in enumerate(zip(names, values, strict=True))}
