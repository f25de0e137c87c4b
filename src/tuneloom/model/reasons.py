"""Why a search proposed a candidate, and where it was stuck."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from math import isfinite
from typing import Any

from tuneloom.model.pickling import quickly_pickled

STUCK = 15
"""Trials without a better time from which on a search counts as stuck."""


class Purpose(StrEnum):
    """What a proposal was made for."""

    START = "start"
    IMPROVE = "improve"
    EXPLORE = "explore"


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReason:
    """The reason for one proposal; only what a model of time chose has an expected time and a promise.

    `member` names the part of the search that chose, in words for people. `promise` is the expected
    improvement as a fraction of the best time so far, `error` the relative error that the model
    allows for, `risk` the probability to fail where the search estimates it.
    """

    member: str
    purpose: Purpose
    risk: float | None = None
    expected_s: float | None = None
    error: float | None = None
    promise: float | None = None

    def plain(self) -> dict[str, Any]:
        """What is known, as data that a store keeps."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, told: Any) -> "ProposalReason | None":
        """What `plain` returned; None for anything else, such as the reasons of another version."""
        names = {field.name for field in fields(cls)}
        if not isinstance(told, Mapping) or not {"member", "purpose"} <= set(told) <= names:
            return None
        numbers = {name: told[name] for name in names - {"member", "purpose"} if _is_number(told.get(name))}
        if told["purpose"] not in list(Purpose):
            return None
        return cls(member=str(told["member"]), purpose=Purpose(told["purpose"]), **numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonedTrial:
    """What one proposal was made for, and its time (None: it failed)."""

    reason: ProposalReason | None
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Trials (counted from 1) in which the best stood although improvement was promised."""

    first: int
    last: int
    best_s: float
    promised: float
    failed: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1


def stalls(steps: Sequence[ReasonedTrial], least: int = STUCK) -> Iterator[Stall]:
    """Every stretch of at least `least` trials without a better time, once there was one."""
    best, since = float("inf"), 0
    for number, step in enumerate([*steps, None]):
        better = step is None or (step.seconds is not None and step.seconds < best)
        if not better:
            continue
        if best < float("inf") and number - since >= least:
            yield _stall(steps, since, number, best)
        if step is not None and step.seconds is not None:
            best, since = step.seconds, number + 1


def _stall(steps: Sequence[ReasonedTrial], since: int, end: int, best_s: float) -> Stall:
    held = steps[since:end]
    promised = sum(step.reason.promise or 0.0 for step in held if step.reason is not None)
    failed = sum(step.seconds is None for step in held)
    return Stall(first=since + 1, last=end, best_s=best_s, promised=promised, failed=failed)
