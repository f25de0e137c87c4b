"""What a search chose and why: member by member, trial by trial, and where it was stuck."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from tuneloom.model import ProposalReason, ReasonedTrial, Stall, Trial, stalls


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChoice:
    """One trial with the reason for it.

    `gain` is by how much of the best time before it was faster: 0 if it was not, None if nothing had run.
    """

    trial: int
    reason: ProposalReason
    seconds: float | None
    gain: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberResult:
    """What one member of a search chose, and with what success."""

    name: str
    chosen: int
    failed: int
    improved: int
    best_s: float | None
    promised: float | None
    """The sum of what its choices promised; None for a member that promises nothing."""
    gained: float
    """The sum of what they were faster than the best before them, as promises are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStory:
    """The search of one kernel; `trials` counts also those that nobody gave a reason for."""

    job: str
    task: str
    name: str
    trials: int
    choices: tuple[ShownChoice, ...]
    members: tuple[MemberResult, ...]
    stalls: tuple[Stall, ...]


def story_of(job: str, task: str, name: str, trials: Sequence[Trial]) -> SearchStory | None:
    """The story that a kernel's trials tell, in the order in which they were made; None without reasons."""
    choices = tuple(_choices(trials))
    if not choices:
        return None
    steps = [ReasonedTrial(reason=trial.candidate.reason, seconds=trial.seconds) for trial in trials]
    names = list(dict.fromkeys(choice.reason.member for choice in choices))
    return SearchStory(
        job=job,
        task=task,
        name=name,
        trials=len(trials),
        choices=choices,
        members=tuple(_member(each, [c for c in choices if c.reason.member == each]) for each in names),
        stalls=tuple(stalls(steps)),
    )


def _choices(trials: Sequence[Trial]) -> Iterator[ShownChoice]:
    best = inf
    for number, trial in enumerate(trials, 1):
        seconds, reason = trial.seconds, trial.candidate.reason
        if reason is not None:
            yield ShownChoice(trial=number, reason=reason, seconds=seconds, gain=_gain(seconds, best))
        best = min(best, seconds or inf)


def _gain(seconds: float | None, best_s: float) -> float | None:
    if best_s == inf:
        return None
    return max(0.0, 1 - seconds / best_s) if seconds is not None else 0.0


def _member(name: str, choices: Sequence[ShownChoice]) -> MemberResult:
    promises = [choice.reason.promise for choice in choices if choice.reason.promise is not None]
    times = [choice.seconds for choice in choices if choice.seconds is not None]
    return MemberResult(
        name=name,
        chosen=len(choices),
        failed=len(choices) - len(times),
        improved=sum(bool(choice.gain) for choice in choices),
        best_s=min(times, default=None),
        promised=sum(promises) if promises else None,
        gained=sum(choice.gain or 0.0 for choice in choices),
    )
