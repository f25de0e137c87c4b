"""Spaces of tasks as data, points of them to begin a search with, and configurations as text."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TVM = "tvm"
_NAMED = re.compile(r"([a-z][a-z0-9_-]*):(?=\{)")


def implementer_of(configuration: str) -> str:
    """Who makes code of a configuration: the name before the colon at its beginning; TVM of a trace."""
    found = _NAMED.match(configuration)
    return found[1] if found else TVM


def other_than_tvm(configuration: str) -> str:
    """The implementer of a configuration, as reports show it; empty for TVM."""
    found = implementer_of(configuration)
    return "" if found == TVM else found


def configured(implementer: str, values: Mapping[str, Any]) -> str:
    """The text of an implementer's configuration, the same for equal values."""
    return f"{implementer}:{json.dumps(dict(values), sort_keys=True, separators=(',', ':'))}"


def values_in(configuration: str) -> dict[str, Any]:
    """What `configured` wrote; raises ValueError for a trace."""
    found = _NAMED.match(configuration)
    if found is None:
        raise ValueError(f"no values but a trace: {configuration[:60]!r}")
    values: dict[str, Any] = json.loads(configuration[found.end() :])
    return values


Decision = int | tuple[int, ...]
"""What one knob is set to: a number, or the factors of a split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileDomain:
    """All ways to split a loop into parts, the innermost bounded."""

    extent: int
    parts: int
    innermost_max: int

    def __post_init__(self) -> None:
        if min(self.extent, self.parts, self.innermost_max) < 1:
            raise ValueError(f"no such split: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceDomain:
    """Whole numbers from `low` on."""

    low: int
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"a choice needs at least one value, got {self.count}")


KnobDomain = TileDomain | ChoiceDomain


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchSpace:
    """One form of schedule: its trace as text, and the knobs that it leaves open, in order."""

    trace: str = field(repr=False)
    knobs: tuple[KnobDomain, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpace:
    """Everything that can be tried for one task."""

    task_key: str
    sketches: tuple[SketchSpace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """Something to try before the search has ideas of its own.

    Either a point of the task's space (the number of a sketch and a decision for every
    knob) or, where `sketch` is None, a whole configuration. `origin` says who gave it.
    """

    origin: str
    sketch: int | None = None
    decisions: tuple[Decision, ...] = ()
    configuration: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if (self.sketch is None) == (not self.configuration):
            raise ValueError(f"a seed is a point or a configuration, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What was seen elsewhere at a point of the space: how many times slower than the best there."""

    sketch: int
    decisions: tuple[Decision, ...]
    slowdown: float

    def __post_init__(self) -> None:
        if not self.slowdown >= 1:
            raise ValueError(f"nothing is faster than the best, got {self.slowdown}")
