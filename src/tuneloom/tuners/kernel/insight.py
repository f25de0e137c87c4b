"""What failed where: valid and invalid trials by pairs of knobs, for reports."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tuneloom.model import Trial
from tuneloom.tuners.kernel.space import KnobValue, Space


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


def pair_tables(space: Space, trials: Sequence[Trial]) -> list[PairTable]:
    """Tables for all pairs of knobs with more than one value, the most telling first."""
    rows = [(json.loads(t.candidate.configuration), t.seconds is not None) for t in trials]
    active = [name for name, values in space.knobs.items() if len(values) > 1]
    tables = [_table(rows, first, second) for first, second in combinations(active, 2)]
    return sorted(tables, key=lambda table: -table.contrast)


def _table(rows: Sequence[tuple[dict[str, KnobValue], bool]], first: str, second: str) -> PairTable:
    cells: dict[tuple[KnobValue, KnobValue], tuple[int, int]] = {}
    for values, valid in rows:
        key = (values[first], values[second])
        done, failed = cells.get(key, (0, 0))
        cells[key] = (done + valid, failed + (not valid))
    return PairTable(first, second, cells)
