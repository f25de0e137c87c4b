"""What was measured of a space, whole or in part."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, prod

from tuneloom.errors import RecordsError
from tuneloom.model import FailureKind
from tuneloom.tuners.kernel.space import KnobValue, Space

Row = tuple[KnobValue, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration: its time, or why it failed; `cost_ms` is what finding out took."""

    time_ms: float | None
    failure: FailureKind | None = None
    cost_ms: float = 0.0

    def __post_init__(self) -> None:
        if (self.time_ms is None) == (self.failure is None):
            raise RecordsError("an entry has either a time or a failure")
        if self.time_ms is not None and not (isfinite(self.time_ms) and self.time_ms > 0):
            raise RecordsError(f"a time must be positive and finite, got {self.time_ms}")


@dataclass(frozen=True)
class Recording:
    """Entries by configuration; `repeated` counts rows that were left out as duplicates.

    `strict` makes every point of the full grid that was not recorded a failure;
    otherwise the space holds exactly what was recorded.
    """

    name: str
    knobs: tuple[str, ...]
    entries: Mapping[Row, Entry] = field(repr=False)
    repeated: int = 0
    strict: bool = False

    def __post_init__(self) -> None:
        if not self.knobs:
            raise RecordsError(f"{self.name}: no knobs recorded")
        if not self.entries:
            raise RecordsError(f"{self.name}: no configurations recorded")
        if all(entry.time_ms is None for entry in self.entries.values()):
            raise RecordsError(f"{self.name}: every recorded configuration failed, nothing can be found")

    @cached_property
    def space(self) -> Space:
        """The space that was recorded."""
        rows = list(self.entries)
        listed = Space.of_rows(self.knobs, rows)
        whole = prod(listed.shape) == len(rows)
        return Space(listed.knobs) if whole or self.strict else listed

    @cached_property
    def best_ms(self) -> float:
        """The fastest recorded time."""
        return min(entry.time_ms for entry in self.entries.values() if entry.time_ms is not None)

    @property
    def size(self) -> int:
        """Configurations in the space."""
        return self.space.size

    @property
    def invalid_share(self) -> float:
        """The share of the space that fails."""
        valid = sum(entry.time_ms is not None for entry in self.entries.values())
        return 1 - valid / self.size

    def failures(self) -> Counter[FailureKind]:
        """How often each kind of failure was recorded."""
        return Counter(entry.failure for entry in self.entries.values() if entry.failure is not None)

    def within(self, share: float) -> int:
        """How many configurations are at most this share slower than the best."""
        limit = self.best_ms * (1 + share)
        return sum(e.time_ms is not None and e.time_ms <= limit for e in self.entries.values())

    def at(self, point: Sequence[int]) -> Entry:
        """What happened at a point of the space; an unrecorded point fails to build."""
        return self.entry(
            tuple(values[int(i)] for values, i in zip(self.space.knobs.values(), point, strict=True))
        )

    def entry(self, row: Row) -> Entry:
        """What happened to a configuration; an unrecorded one fails to build."""
        return self.entries.get(row, _MISSING)

    def stressed(self) -> "Recording":
        """The same with every unrecorded point of the grid as a failure."""
        return Recording(f"{self.name}+stress", self.knobs, self.entries, self.repeated, True)


_MISSING = Entry(None, FailureKind.BUILD_ERROR)


class RowCollector:
    """Gathers rows of a file: repeated configurations are counted, contradictions refused."""

    def __init__(self, name: str, knobs: Sequence[str]) -> None:
        self.name, self.knobs = name, tuple(knobs)
        self.entries: dict[Row, Entry] = {}
        self.repeated = 0

    def add(self, place: str, row: Row, entry: Entry) -> None:
        """Add one row; raises RecordsError when it contradicts an earlier one."""
        known = self.entries.setdefault(row, entry)
        if known is entry:
            return
        self.repeated += 1
        if (known.time_ms is None) != (entry.time_ms is None):
            shown = ", ".join(f"{k}={v}" for k, v in zip(self.knobs, row, strict=True))
            raise RecordsError(f"{self.name}, {place}: {shown} is recorded twice, once valid and once failed")

    def recording(self) -> Recording:
        """Everything gathered."""
        return Recording(self.name, self.knobs, self.entries, self.repeated)
