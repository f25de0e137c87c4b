"""What may be expected of a job before it begins, from what a tenant's earlier jobs came to."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from tuneloom.store import JobStatus, Store, Submission, SubmittedJob

_LOOKED_AT = 20
_ENOUGH = 0.5  # a job with fewer trials than this part of those asked for says little
_ALONE = 0.12  # how far, in logarithms, a single earlier job may be off
_SUREST = 0.02
_SPREAD = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An expected value and its likely range."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An estimate for a job, based on `jobs` earlier ones of its tenant; `words` sums it up.

    `known_ms` is the best latency that this model has reached.
    """

    jobs: int
    latency_ms: Range | None
    seconds: Range | None
    known_ms: float | None
    words: str


def expectation(store: Store, submission: Submission) -> Expectation:
    """What earlier jobs of the tenant say about this one."""
    finished = store.submitted_jobs(submission.tenant, statuses=[JobStatus.FINISHED], limit=_LOOKED_AT)
    alike = [job for job in finished if _place(job.spec) == _place(submission.spec)]
    same = [job for job in alike if job.model == submission.model]
    latencies = _latencies(_long_enough(same, submission.trials))
    known_ms = min(_latencies(same), default=None)
    latency, seconds = likely(latencies), _seconds(same or alike, submission.trials)
    words = _words(submission.spec, latency, seconds, known_ms, _reference_ms(same))
    return Expectation(
        jobs=len(latencies), latency_ms=latency, seconds=seconds, known_ms=known_ms, words=words
    )


def as_submission(job: SubmittedJob) -> Submission:
    """A job that was submitted, as it was when it was."""
    return Submission(
        tenant=job.tenant,
        token="",
        name=job.name,
        model=job.model,
        spec=job.spec,
        trials=job.trials,
        request="",
    )


def likely(values: Sequence[float]) -> Range | None:
    """What comes next after these values, which differ by factors rather than by sums."""
    if not values:
        return None
    logs = [math.log(value) for value in values]
    spread = max(_SUREST, stdev(logs) * math.sqrt(1 + 1 / len(logs))) if len(logs) > 1 else _ALONE
    middle = fmean(logs)
    low, high = middle - _SPREAD * spread, middle + _SPREAD * spread
    return Range(expected=math.exp(middle), low=math.exp(low), high=math.exp(high))


def _place(spec: Mapping[str, Any]) -> tuple[object, object]:
    return spec.get("target"), spec.get("device_key")


def _long_enough(jobs: Sequence[SubmittedJob], trials: int) -> Sequence[SubmittedJob]:
    long = [job for job in jobs if job.trials >= _ENOUGH * trials]
    return long or jobs


def _latencies(jobs: Iterable[SubmittedJob]) -> list[float]:
    found = (job.result.get("latency_after_s") for job in jobs)
    return [seconds * 1e3 for seconds in found if isinstance(seconds, float) and 0 < seconds < math.inf]


def _seconds(jobs: Iterable[SubmittedJob], trials: int) -> Range | None:
    paces = []
    for job in jobs:
        made = job.result.get("trials", 0)
        if made and job.ended and job.started and job.ended > job.started:
            paces.append((job.ended - job.started) / made)
    pace = likely(paces)
    if pace is None:
        return None
    return Range(expected=pace.expected * trials, low=pace.low * trials, high=pace.high * trials)


def _reference_ms(jobs: Iterable[SubmittedJob]) -> float | None:
    """What ONNX Runtime took for this model when it was timed last."""
    found = (job.result.get("goal", {}).get("onnxruntime_s") for job in jobs)
    return next((seconds * 1e3 for seconds in found if seconds), None)


def _goal_ms(budget: Mapping[str, Any], reference_ms: float | None) -> float | None:
    wanted = [budget["goal_ms"]] if budget.get("goal_ms") else []
    if budget.get("goal_ratio") and reference_ms is not None:
        wanted.append(budget["goal_ratio"] * reference_ms)
    return min(wanted, default=None)


def _words(
    spec: Mapping[str, Any],
    latency: Range | None,
    seconds: Range | None,
    known_ms: float | None,
    reference_ms: float | None,
) -> str:
    goal_ms = _goal_ms(spec["budget"], reference_ms)
    told = [_of_goal(goal_ms, latency, known_ms), _of_deadline(spec.get("deadline_s"), seconds)]
    if latency is None and seconds is None:
        return "nothing comparable was tuned before"
    return "; ".join(words for words in told if words)


def _of_goal(goal_ms: float | None, latency: Range | None, known_ms: float | None) -> str:
    if goal_ms is None or latency is None:
        return ""
    if known_ms is not None and known_ms <= goal_ms:
        return f"{known_ms:.3g} ms is known already and meets the goal: little or no search is needed"
    about = f"about {latency.expected:.3g} ms ({latency.low:.3g} to {latency.high:.3g}) is expected"
    if latency.low > goal_ms:
        return f"the goal of {goal_ms:.3g} ms will hardly be met: {about}; it goes on to the best it can find"
    return f"the goal of {goal_ms:.3g} ms may be met: {about}"


def _of_deadline(deadline_s: float | None, seconds: Range | None) -> str:
    if deadline_s is None or seconds is None or seconds.low <= deadline_s:
        return ""
    return (
        f"about {seconds.expected:.0f} s are expected, so the deadline of {deadline_s:.0f} s will be missed"
    )
