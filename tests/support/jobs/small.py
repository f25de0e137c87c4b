"""Tasks and jobs small enough to follow by eye, and a driver that needs no engine."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from tuneloom.app.conducting.programs import Step
from tuneloom.app.kinds.base import JobContext, Opened
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.engine.calls import Returned
from tuneloom.model import Budget, Candidate, Failure, FailureKind, JobSpec, Measurement, Task, Trial
from tuneloom.store import Store
from tuneloom.testing.engines.scripted import Answer


def small_task(name: str, *, weight: int = 1, gflop: float = 1.0, kernel_class: str = "conv2d") -> Task:
    return Task(key=f"key-{name}", name=name, weight=weight, gflop=gflop, kernel_class=kernel_class)


def small_spec(
    trials: int, *, batch: int = 4, seconds: float | None = None, goal_ms: float | None = None
) -> JobSpec:
    budget = Budget(trials=trials, seconds=seconds, goal_ms=goal_ms)
    return JobSpec(name="net", model="net.onnx", budget=budget, batch=batch)


def small_context(
    spec: JobSpec,
    known: Mapping[str, list[Trial]] | None = None,
    *,
    job: str = "job",
    lanes: int = 3,
    workers: int = 1,
    opened: Opened | None = None,
) -> JobContext:
    """What a job works with where nothing is kept; its store must not be asked."""
    return JobContext(
        job=job,
        spec=spec,
        store=cast(Store, None),
        opened=opened or (lambda _summary: dict(known or {})),
        keep=lambda _task, _trial, _artifact: None,
        lanes=lanes,
        workers=workers,
    )


def progress_of(*names: str) -> list[TaskProgress]:
    return [TaskProgress(index, small_task(name)) for index, name in enumerate(names)]


def measured_trial(key: str, seconds: float, origin: str = "search") -> Trial:
    candidate = Candidate(key=key, configuration="0", origin=origin)
    return Trial(candidate=candidate, outcome=Measurement(seconds=(seconds,)))


def failed_trial(key: str, message: str, kind: FailureKind = FailureKind.BUILD_ERROR) -> Trial:
    candidate = Candidate(key=key, configuration="0")
    return Trial(candidate=candidate, outcome=Failure(kind=kind, message=message))


def drive(steps: Iterable[Step], answer: Answer) -> int:
    """Carry steps out one after another, a second each, until none is left; returns how many ran."""
    waiting, count = list(steps), 0
    while waiting:
        step = waiting.pop(0)
        count += 1
        needless = step.needless is not None and step.needless(float(count))
        result = Returned(value=None) if needless else answer(step.call())
        following: Sequence[Step] | None = step.ended(result, float(count))
        waiting += [step] if following is None else following
    return count
