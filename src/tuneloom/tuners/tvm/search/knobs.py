"""Sampling decisions of a schedule as knobs with numbered values.

Every sampling instruction of a sketch becomes a knob whose values can be listed, so
that a configuration is a row of small numbers, and thousands of them can be made and
scored without replaying a single trace.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Decision = int | tuple[int, ...]


class Knob(Protocol):
    """One sampling instruction: its values in order, as decisions and as features."""

    @property
    def values(self) -> Sequence[Decision]:
        """All decisions that can be made."""

    @property
    def table(self) -> Floats:
        """One row of features a value."""

    def neighbours(self, index: int) -> Sequence[int]:
        """Values one step away."""


@dataclass(frozen=True, slots=True)
class ChoiceKnob:
    """One of a few; neighbours are the next ones in order."""

    values: Sequence[int]

    @property
    def table(self) -> Floats:
        return np.asarray(self.values, dtype=np.float32)[:, None]

    def neighbours(self, index: int) -> Sequence[int]:
        return [i for i in (index - 1, index + 1) if 0 <= i < len(self.values)]


@dataclass(frozen=True, slots=True)
class TileKnob:
    """A loop split into parts; a step moves one prime factor from one part to another."""

    extent: int
    parts: int
    innermost_max: int

    @property
    def values(self) -> tuple[tuple[int, ...], ...]:
        return factorisations(self.extent, self.parts, self.innermost_max)

    @property
    def table(self) -> Floats:
        return _tile_table(self.extent, self.parts, self.innermost_max)

    def neighbours(self, index: int) -> Sequence[int]:
        return _tile_neighbours(self.extent, self.parts, self.innermost_max)(index)


@cache
def factorisations(extent: int, parts: int, innermost_max: int) -> tuple[tuple[int, ...], ...]:
    """All ways to write `extent` as a product of `parts` factors, the last one bounded."""
    if parts == 1:
        return ((extent,),) if extent <= innermost_max else ()
    return tuple(
        (first, *rest)
        for first in divisors(extent)
        for rest in factorisations(extent // first, parts - 1, innermost_max)
    )


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    low = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*low, *(number // d for d in low)}))


@cache
def _tile_table(extent: int, parts: int, innermost_max: int) -> Floats:
    logs = np.log2(np.asarray(factorisations(extent, parts, innermost_max), dtype=np.float64))
    inner = np.cumsum(logs[:, ::-1], axis=1)[:, 1:-1] if parts > 2 else logs[:, :0]
    return np.concatenate([logs, inner], axis=1).astype(np.float32)


@cache
def _tile_neighbours(extent: int, parts: int, innermost_max: int) -> Callable[[int], tuple[int, ...]]:
    values = factorisations(extent, parts, innermost_max)
    index_of = {value: index for index, value in enumerate(values)}
    primes = [p for p in divisors(extent)[1:] if len(divisors(p)) == 2]

    @cache
    def neighbours(index: int) -> tuple[int, ...]:
        found = []
        for give in range(parts):
            for take in range(parts):
                for prime in primes:
                    moved = list(values[index])
                    if give == take or moved[give] % prime:
                        continue
                    moved[give] //= prime
                    moved[take] *= prime
                    if (other := index_of.get(tuple(moved))) is not None:
                        found.append(other)
        return tuple(found)

    return neighbours
