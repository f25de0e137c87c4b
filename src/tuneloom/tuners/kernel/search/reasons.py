"""Why a search proposed a point, and where it was stuck."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Purpose(StrEnum):
    """What a proposal was made for."""

    START = "start"
    IMPROVE = "improve"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReason:
    """The reason for one proposal; only what a model chose has an expected time and a promise.

    `promise` is the expected improvement as a fraction of the best time so far, `error` the
    relative error that the model allows for, `risk` the probability to fail.
    """

    purpose: Purpose
    risk: float
    expected_s: float | None = None
    error: float | None = None
    promise: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTrial:
    """One trial of a run: what was proposed and why, and its time (None: it failed)."""

    point: tuple[int, ...]
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


def stalls(steps: Sequence[ReplayedTrial], least: int) -> Iterator[Stall]:
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


def _stall(steps: Sequence[ReplayedTrial], since: int, end: int, best_s: float) -> Stall:
    held = steps[since:end]
    promised = sum(step.reason.promise or 0.0 for step in held if step.reason is not None)
    failed = sum(step.seconds is None for step in held)
    return Stall(first=since + 1, last=end, best_s=best_s, promised=promised, failed=failed)
