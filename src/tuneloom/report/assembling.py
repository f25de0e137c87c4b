"""From tasks and their trials to what a report shows of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tuneloom.model import Failure, Measurement, Task, Trial
from tuneloom.model.space import other_than_tvm
from tuneloom.report.data import CurvePoint, FailureCount, TaskResult

DEFAULT_ORIGIN = "default"
"""The origin of a trial that measures the untuned schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTrial:
    """A trial and the task it belongs to."""

    task_key: str
    trial: Trial


def task_result(
    job: str,
    task: Task,
    trials: Sequence[Trial],
    *,
    before_s: float | None = None,
    after_s: float | None = None,
    decided: bool = False,
) -> TaskResult:
    """One task's result from its trials, in the order in which they were made.

    Times given come from the final measurement; without them the untuned schedule's
    trial and the best trial stand in. Where it is `decided` what the model runs, and nobody
    timed that, no other trial stands in for it.
    """
    best = min((t for t in trials if t.seconds), key=lambda t: t.seconds or 0.0, default=None)
    return TaskResult(
        job=job,
        key=task.key,
        name=task.name,
        weight=task.weight,
        gflop=task.gflop,
        shapes=task.shapes,
        kernel_class=task.kernel_class,
        trials=len(trials),
        before_s=before_s or default_time(trials),
        after_s=after_s or (best.seconds if best and not decided else None),
        origin=best.candidate.origin if best else "",
        implementer=other_than_tvm(best.candidate.configuration) if best else "",
        curve=_improvements((number, trial.seconds) for number, trial in enumerate(trials, 1)),
        failed_at=tuple(n for n, trial in enumerate(trials, 1) if isinstance(trial.outcome, Failure)),
        counters=_counters(trials),
    )


def _counters(trials: Iterable[Trial]) -> Mapping[str, float]:
    """What was counted in the fastest run in which a device counted."""
    counted = [t.outcome for t in trials if isinstance(t.outcome, Measurement) and t.outcome.counters]
    return min(counted, key=lambda outcome: outcome.best_s).counters if counted else {}


def default_time(trials: Iterable[Trial]) -> float | None:
    """The untuned schedule's time if it was among the trials."""
    found = [t.seconds for t in trials if t.candidate.origin == DEFAULT_ORIGIN and t.seconds is not None]
    return min(found, default=None)


def progress_of(results: Sequence[TaskResult], trials: Sequence[TaskTrial]) -> tuple[CurvePoint, ...]:
    """What all kernels of a model cost together, against the job's trials, from the first one on.

    A kernel counts with its untuned time until it was measured. Where that is not known, it is estimated from
    the kernel's operations and the untuned times of the others; without any of these there is no curve.
    """
    best = untuned_times(results)
    weights = {result.key: result.weight for result in results}
    steps: list[tuple[int, float | None]] = []
    for number, tried in enumerate(trials, 1) if best else ():
        seconds = tried.trial.seconds
        if seconds is not None and tried.task_key in weights:
            best[tried.task_key] = min(seconds, best[tried.task_key])
        steps.append((number, sum(weight * best[key] for key, weight in weights.items())))
    return _improvements(steps)


def untuned_times(results: Sequence[TaskResult]) -> dict[str, float]:
    """Seconds of every kernel before it was tuned, measured or estimated; empty if none was measured."""
    known = {result.key: result.before_s or _first_s(result) for result in results}
    rates = [known[result.key] / result.gflop for result in results if known[result.key] and result.gflop]
    rate = median(rates) if rates else 0.0
    return (
        {result.key: known[result.key] or rate * result.gflop for result in results}
        if any(known.values())
        else {}
    )


def _first_s(result: TaskResult) -> float:
    return result.curve[0].best_s if result.curve else 0.0


def failure_counts(trials: Iterable[Trial]) -> tuple[FailureCount, ...]:
    """Failures by kind, most frequent first, each with its first message."""
    messages: dict[str, list[str]] = {}
    for trial in trials:
        if isinstance(trial.outcome, Failure):
            messages.setdefault(trial.outcome.kind.value, []).append(trial.outcome.message)
    counts = [
        FailureCount(kind=kind, count=len(all_of), example=next(filter(None, all_of), ""))
        for kind, all_of in messages.items()
    ]
    return tuple(sorted(counts, key=lambda failure: (-failure.count, failure.kind)))


def _improvements(steps: Iterable[tuple[int, float | None]]) -> tuple[CurvePoint, ...]:
    points: list[CurvePoint] = []
    for number, seconds in steps:
        if seconds is not None and (not points or seconds < points[-1].best_s):
            points.append(CurvePoint(trial=number, best_s=seconds))
    return tuple(points)
