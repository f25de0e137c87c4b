"""What a device did while it was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How a device stands at a moment: numbers that are kept with a measurement, by name.

    `throttled` says why it is slower than it should be, empty if it is not: times taken meanwhile don't
    count. `energy_j` is a counter that only grows; None where the device has none.
    """

    numbers: Mapping[str, float] = field(default_factory=dict)
    throttled: str = ""
    energy_j: float | None = None


class ConditionWatch(Protocol):
    """Looks at the device that this process holds; a look takes milliseconds and disturbs nothing."""

    def now(self) -> Conditions: ...
