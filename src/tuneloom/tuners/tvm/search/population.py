"""Configurations of several sketches as rows of numbers: sampled, mutated, crossed, encoded."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.tvm.search.knobs import Decision, Floats, Knob, TileKnob
from tuneloom.tuners.tvm.search.sketches import Sketch

Row = tuple[int, ...]
"""The sketch's number, then one value's number per knob."""


class Population:
    """Makes and encodes rows; all chance comes from the generator given."""

    def __init__(self, sketches: Sequence[Sketch], random: np.random.Generator) -> None:
        self._sketches = sketches
        self._random = random
        self._tables = [[knob.table for knob in sketch.knobs] for sketch in sketches]
        self._width = max(sum(table.shape[1] for table in tables) for tables in self._tables)
        self._levels = [_levels(sketch.knobs) for sketch in sketches]

    def sample(self, count: int) -> list[Row]:
        """Uniformly random rows, sketches in equal shares."""
        return [self._sample_one(int(self._random.integers(len(self._sketches)))) for _ in range(count)]

    def mutate(self, row: Row) -> Row:
        """Change one to three knobs, mostly by a single step."""
        changed = list(row)
        knobs = self._sketches[row[0]].knobs
        movable = [i for i, knob in enumerate(knobs) if len(knob.values) > 1]
        for _ in range(1 + min(2, int(self._random.geometric(0.6)) - 1) if movable else 0):
            at = movable[int(self._random.integers(len(movable)))]
            changed[at + 1] = self._moved(knobs[at], changed[at + 1])
        return tuple(changed)

    def cross(self, one: Row, other: Row) -> Row:
        """Take each knob from either parent; parents of different sketches give the first."""
        if one[0] != other[0]:
            return one
        take = self._random.random(len(one)) < 0.5
        return tuple(a if first else b for a, b, first in zip(one, other, take, strict=True))

    def decisions(self, row: Row) -> list[Decision]:
        """What a row says to a trace."""
        knobs = self._sketches[row[0]].knobs
        return [knob.values[index] for knob, index in zip(knobs, row[1:], strict=True)]

    def row(self, kinds: tuple[str, ...], decisions: Sequence[Decision]) -> Row | None:
        """The row that says this, if some sketch can."""
        for number, sketch in enumerate(self._sketches):
            if sketch.kinds == kinds and len(sketch.knobs) == len(decisions):
                try:
                    pairs = zip(sketch.knobs, decisions, strict=True)
                    return (number, *(list(knob.values).index(value) for knob, value in pairs))
                except ValueError:
                    continue
        return None

    def encode(self, rows: Sequence[Row]) -> Floats:
        """Features of rows; what a sketch does not have is NaN."""
        shared = max(level.shape[1] for level in self._levels)
        out = np.full((len(rows), 1 + shared + self._width), np.nan, dtype=np.float32)
        for number in range(len(self._sketches)):
            at = [i for i, row in enumerate(rows) if row[0] == number]
            if at:
                self._encode_one(
                    number, np.asarray([rows[i][1:] for i in at], dtype=np.int64), out, at, shared
                )
        return out

    def _encode_one(
        self, number: int, indices: NDArray[np.int64], out: Floats, at: list[int], shared: int
    ) -> None:
        tables = self._tables[number]
        if not tables:
            out[at, 0] = number
            return
        flat = np.concatenate([table[indices[:, k]] for k, table in enumerate(tables)], axis=1)
        out[at, 0] = number
        levels = flat @ self._levels[number]
        out[at, 1 : 1 + levels.shape[1]] = levels
        out[np.ix_(at, range(1 + shared, 1 + shared + flat.shape[1]))] = flat

    def _sample_one(self, number: int) -> Row:
        knobs = self._sketches[number].knobs
        return (number, *(int(self._random.integers(len(knob.values))) for knob in knobs))

    def _moved(self, knob: Knob, index: int) -> int:
        near = knob.neighbours(index)
        if near and self._random.random() < 0.7:
            return int(near[int(self._random.integers(len(near)))])
        return int(self._random.integers(len(knob.values)))


def _levels(knobs: Sequence[Knob]) -> Floats:
    """Sums over all tiles of equally many parts, level by level: the size of a whole tile.

    How large the innermost tile is as a whole matters more than how any one loop is split.
    """
    width = sum(knob.table.shape[1] for knob in knobs)
    kinds = sorted({knob.parts for knob in knobs if isinstance(knob, TileKnob)})
    columns = {
        (parts, level): n for n, (parts, level) in enumerate((p, lv) for p in kinds for lv in range(p))
    }
    matrix = np.zeros((width, max(1, len(columns))), dtype=np.float32)
    offset = 0
    for knob in knobs:
        if isinstance(knob, TileKnob):
            for level in range(knob.parts):
                matrix[offset + level, columns[knob.parts, level]] = 1.0
        offset += knob.table.shape[1]
    return matrix
