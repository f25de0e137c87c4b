"""Spaces of knobs: what may be chosen, which combinations are allowed, who is next to whom."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.errors import SpaceError
from tuneloom.tuners.kernel.expressions import Column, Restriction, parse
from tuneloom.tuners.kernel.factors import Factor, Factors, Points, columns_of, factorise

KnobValue = int | float | str | bool
Configuration = dict[str, KnobValue]
LIST_LIMIT = 1_000_000
"""Allowed points up to this number may be listed."""
_PROBES = 200_000


class Space:
    """Knobs with their values in order, and the restrictions that configurations must meet.

    A point is a row of value positions, one a knob. `when` makes a knob conditional:
    where its condition does not hold, the knob rests at its first value. Raises
    SpaceError for a knob without values, a restriction that can't be read, or
    restrictions that exclude everything.
    """

    def __init__(
        self,
        knobs: Mapping[str, Iterable[KnobValue]],
        where: Sequence[str] = (),
        when: Mapping[str, str] | None = None,
    ) -> None:
        self.knobs = {name: _checked(name, values) for name, values in knobs.items()}
        if not self.knobs:
            raise SpaceError("a space needs at least one knob")
        self.names = tuple(self.knobs)
        self.where, self.when = tuple(where), dict(when or {})
        self._columns = [_column(values) for values in self.knobs.values()]
        self._restrictions = [parse(text, self.knobs) for text in where]
        self._restrictions += [self._resting(name, text) for name, text in self.when.items()]
        self._factors = factorise(self.names, self._columns, self._restrictions)
        self._refuse_empty()

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Sequence[Sequence[KnobValue]]) -> "Space":
        """A space of exactly these configurations; equal rows count once."""
        if not rows:
            raise SpaceError("a space of listed configurations needs at least one")
        knobs = {name: _ordered({row[i] for row in rows}) for i, name in enumerate(names)}
        space = cls(knobs)
        places = [{value: i for i, value in enumerate(values)} for values in knobs.values()]
        points = np.array([[place[v] for place, v in zip(places, row, strict=True)] for row in rows])
        table = Factor(tuple(range(len(names))), np.unique(points, axis=0))
        space._factors = Factors((table,), ())
        return space

    def _resting(self, name: str, text: str) -> Restriction:
        if name not in self.knobs:
            raise SpaceError(
                f"a condition is given for an unknown knob {name!r}; known: {', '.join(self.knobs)}"
            )
        condition, rest = parse(text, self.knobs), self.knobs[name][0]
        if name in condition.names:
            raise SpaceError(f"the condition of knob {name!r} reads the knob itself: {text}")

        def holds(columns: Mapping[str, Column]) -> NDArray[np.bool_]:
            rests: NDArray[np.bool_] = np.asarray(columns[name] == rest, dtype=bool)
            return np.logical_or(condition.holds(columns), rests)

        return Restriction(f"({text}) or {name} == {rest!r}", condition.names | {name}, holds)

    def _refuse_empty(self) -> None:
        if self._factors.size == 0:
            raise SpaceError(f"the restrictions exclude every configuration: {'; '.join(self.where)}")
        if self._factors.residual and not len(self.sample(1, np.random.default_rng(0))):
            raise SpaceError(
                f"no configuration meets all restrictions among {_PROBES} drawn; "
                f"split or loosen: {'; '.join(r.text for r in self._factors.residual)}"
            )

    @property
    def width(self) -> int:
        """How many knobs there are."""
        return len(self.names)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many values each knob has."""
        return tuple(len(values) for values in self.knobs.values())

    @property
    def size(self) -> int:
        """Allowed points; an upper bound where a restriction spans too many knobs to count."""
        return self._factors.size

    @property
    def listable(self) -> bool:
        """Whether all allowed points may be listed."""
        return self.size <= LIST_LIMIT

    def points(self) -> Points:
        """All allowed points in a fixed order; raises SpaceError for a space too large to list."""
        if not self.listable:
            raise SpaceError(f"a space of {self.size} points is not listed, at most {LIST_LIMIT}")
        points = self._factors.listed(self.width)
        return points[self._meets_residual(points)]

    def sample(self, count: int, rng: np.random.Generator) -> Points:
        """Up to `count` allowed points, each drawn uniformly; fewer if almost none are allowed."""
        if not self._factors.residual:
            return self._factors.draw(count, self.width, rng)
        kept: list[Points] = []
        found, tried = 0, 0
        while found < count and (tried < _PROBES or found):
            drawn = self._factors.draw(max(4 * count, 4096), self.width, rng)
            tried += len(drawn)
            kept.append(drawn[self._meets_residual(drawn)])
            found += len(kept[-1])
            if tried >= 50 * _PROBES:
                break
        return np.vstack(kept)[:count] if kept else np.empty((0, self.width), dtype=np.int64)

    def allows(self, points: Points) -> NDArray[np.bool_]:
        """Tell for each point whether it is in the space."""
        within = np.logical_and(points >= 0, points < np.array(self.shape))
        inside: NDArray[np.bool_] = np.asarray(within.all(axis=1))
        for table, codes in zip(self._factors.tables, self._codes, strict=True):
            if len(codes) == prod(self._sizes(table)):  # nothing restricts these knobs
                continue
            wanted = _encode(np.where(inside[:, None], points, 0)[:, table.knobs], self._sizes(table))
            place = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
            inside = np.logical_and(inside, codes[place] == wanted)
        return np.logical_and(inside, self._meets_residual(np.where(inside[:, None], points, 0)))

    @cached_property
    def _codes(self) -> list[NDArray[np.int64]]:
        return [np.sort(_encode(t.rows, self._sizes(t))) for t in self._factors.tables]

    def _sizes(self, table: Factor) -> tuple[int, ...]:
        return tuple(self.shape[k] for k in table.knobs)

    def _meets_residual(self, points: Points) -> NDArray[np.bool_]:
        met = np.ones(len(points), dtype=bool)
        for restriction in self._factors.residual:
            met &= restriction.holds(columns_of(points, self.names, self._columns))
        return met

    def steps(self, point: Sequence[int] | NDArray[np.int64]) -> Points:
        """The allowed points one knob and one step in the order of its values away."""
        start = np.asarray(point, dtype=np.int64)
        moved = np.repeat(start[None], 2 * self.width, axis=0)
        knob = np.arange(self.width)
        moved[knob, knob] -= 1
        moved[knob + self.width, knob] += 1
        return moved[self.allows(moved)]

    def variations(self, points: Points) -> Points:
        """The allowed points that differ from one of these in exactly one knob; some may be listed twice."""
        moved = np.empty((len(points) * sum(self.shape), self.width), dtype=np.int64)
        changed, begin = np.empty(len(moved), dtype=bool), 0
        for knob, count in enumerate(self.shape):
            end = begin + len(points) * count
            varied, values = moved[begin:end].reshape(len(points), count, -1), np.arange(count)
            varied[:] = points[:, None]
            varied[:, :, knob] = values
            changed[begin:end] = (points[:, knob, None] != values).ravel()
            begin = end
        moved = moved[changed]
        return moved[self.allows(moved)]

    def configuration(self, point: Sequence[int] | NDArray[np.int64]) -> Configuration:
        """The knob values of a point."""
        return {name: values[int(i)] for (name, values), i in zip(self.knobs.items(), point, strict=True)}

    def point(self, configuration: Mapping[str, Any]) -> tuple[int, ...]:
        """The point of a configuration; raises SpaceError for unknown knobs or values."""
        if set(configuration) != set(self.names):
            odd = sorted(set(configuration) ^ set(self.names))
            raise SpaceError(f"the configuration and the space differ in knobs: {', '.join(odd)}")
        return tuple(self._place(name, configuration[name]) for name in self.names)

    def _place(self, name: str, value: Any) -> int:
        try:
            return self.knobs[name].index(value)
        except ValueError:
            raise SpaceError(
                f"knob {name!r} has no value {value!r}; it has {list(self.knobs[name])}"
            ) from None


def _checked(name: str, values: Iterable[KnobValue]) -> tuple[KnobValue, ...]:
    if not isinstance(name, str) or not name.isidentifier():
        raise SpaceError(f"a knob's name must be an identifier, got {name!r}")
    if isinstance(values, str):
        raise SpaceError(f"knob {name!r} needs a list of values, got the text {values!r}")
    listed = tuple(_plain(name, value) for value in values)
    if not listed:
        raise SpaceError(f"knob {name!r} has no values; give it at least one")
    if len(set(listed)) != len(listed):
        raise SpaceError(f"knob {name!r} has a value twice: {list(listed)}")
    return listed


def _plain(name: str, value: Any) -> KnobValue:
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, int | float | str):
        raise SpaceError(
            f"knob {name!r} has the value {value!r}; numbers, text and truth values are possible"
        )
    if isinstance(plain, float) and not np.isfinite(plain):
        raise SpaceError(f"knob {name!r} has the value {value!r}, which is not finite")
    return plain


def _ordered(values: set[KnobValue]) -> list[KnobValue]:
    numbers = all(isinstance(value, int | float) for value in values)
    return sorted(values, key=None if numbers else str)


def _column(values: tuple[KnobValue, ...]) -> Column:
    if all(isinstance(value, int | float) for value in values):
        return np.array([float(value) for value in values])
    return np.array(values, dtype=object)


def _encode(rows: Points, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    codes = np.zeros(len(rows), dtype=np.int64)
    for i, size in enumerate(sizes):
        codes = codes * size + rows[:, i]
    return codes
