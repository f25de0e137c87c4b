"""What failed where: valid and invalid trials by pairs of knobs, for reports."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tuneloom.model import Trial

KnobValue = int | float | str | bool
Knobs = Mapping[str, Sequence[KnobValue]]
Expected = Callable[[str, int, str, int], float | None]
"""The chance to be valid where two knobs have the values at these places; None if unknown."""
MOST_PAIRS = 6


@dataclass(frozen=True, slots=True)
class PairTable:
    """Trials by the values of two knobs: (valid, failed) for each pair that was tried."""

    first: str
    second: str
    cells: dict[tuple[KnobValue, KnobValue], tuple[int, int]]

    @property
    def contrast(self) -> float:
        """How well the pair tells valid from failed: 0 not at all, 1 perfectly."""
        total = sum(valid + failed for valid, failed in self.cells.values())
        failures = sum(failed for _, failed in self.cells.values())
        mixed = failures * (total - failures) / total if total else 0.0
        left = sum(valid * failed / (valid + failed) for valid, failed in self.cells.values())
        return 1 - left / mixed if mixed else 0.0


def pair_tables(knobs: Knobs, trials: Sequence[Trial]) -> list[PairTable]:
    """Tables for all pairs of knobs with more than one value, the most telling first."""
    rows = [(json.loads(t.candidate.configuration), t.seconds is not None) for t in trials]
    active = [name for name, values in knobs.items() if len(values) > 1]
    tables = [_table(rows, first, second) for first, second in combinations(active, 2)]
    return sorted(tables, key=lambda table: -table.contrast)


def _table(rows: Sequence[tuple[dict[str, KnobValue], bool]], first: str, second: str) -> PairTable:
    cells: dict[tuple[KnobValue, KnobValue], tuple[int, int]] = {}
    for values, valid in rows:
        key = (values[first], values[second])
        done, failed = cells.get(key, (0, 0))
        cells[key] = (done + valid, failed + (not valid))
    return PairTable(first, second, cells)


def insight_of_trials(trials: Sequence[Trial]) -> dict[str, Any]:
    """What failed where as far as trials alone tell: of the values that were tried."""
    rows = [json.loads(trial.candidate.configuration) for trial in trials]
    knobs = {name: _ordered([row[name] for row in rows]) for name in rows[0]}
    return {"pairs": pairs_told(knobs, trials, lambda *_: None), "importance": {}}


def pairs_told(knobs: Knobs, trials: Sequence[Trial], expected: Expected) -> list[dict[str, Any]]:
    """The most telling pairs of knobs as plain data; cells are `[x, y, valid, failed, expected]`."""
    return [_told(knobs, table, expected) for table in pair_tables(knobs, trials)[:MOST_PAIRS]]


def _told(knobs: Knobs, table: PairTable, expected: Expected) -> dict[str, Any]:
    xs, ys = knobs[table.first], knobs[table.second]
    cells = []
    for i, x in enumerate(xs):
        for j, y in enumerate(ys):
            valid, failed = table.cells.get((x, y), (0, 0))
            chance = expected(table.first, i, table.second, j)
            if valid or failed or chance is not None:
                cells.append([x, y, valid, failed, chance])
    named = {"x_knob": table.first, "y_knob": table.second}
    return {**named, "x_values": list(xs), "y_values": list(ys), "cells": cells}


def _ordered(values: Sequence[KnobValue]) -> list[KnobValue]:
    seen = set(values)
    return sorted(seen, key=None if all(isinstance(v, int | float) for v in seen) else str)
