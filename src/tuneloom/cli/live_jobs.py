"""One line about a job: its stage, how much it spent, what it found, when it may end."""

from collections import Counter
from dataclasses import dataclass

from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.kinds.results import failures
from tuneloom.scheduling import JobState, JobView
from tuneloom.store import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """What the live view says of a job; `left_s` is None while nobody can tell.

    `kernels` are those that have to be tuned, `measured` those of them with a good trial.
    """

    name: str
    stage: str
    measured: int
    kernels: int
    spent: int
    budget: int
    best_s: float | None
    failed: int
    left_s: float | None
    ended: bool


def job_line(job: ModelJob, core: JobView | None, status: JobStatus, now_s: float) -> JobLine:
    """A job as the program, the core and the store see it."""
    tuning = job.tuning
    going_on = core is not None and not status.ended and core.state is not JobState.PAUSED
    return JobLine(
        name=job.spec.name,
        stage=stage_of(job, core, status, now_s),
        measured=sum(task.measured > 0 for task in tuning.tasks) if tuning else 0,
        kernels=len(tuning.tasks) if tuning else 0,
        spent=tuning.spent if tuning else 0,
        budget=job.spec.budget.trials,
        best_s=tuning.latency_s if tuning else None,
        failed=sum(failures(job).values()),
        left_s=left_s(job, now_s) if going_on else None,
        ended=status.ended,
    )


def stage_of(job: ModelJob, core: JobView | None, status: JobStatus, now_s: float) -> str:
    """What a job does now, or why it does nothing."""
    if status.ended:
        return status.value
    if core is None:
        wait_s = max(0.0, job.spec.arrival_s - now_s)
        return f"comes in {wait_s:.0f} s"
    if core.state in (JobState.PAUSED, JobState.PAUSING):
        return core.state.value
    if core.stranded and not core.running:
        return "no device yet"
    kinds = Counter(stage.kind for stage in core.running)
    return ", ".join(f"{n} {kind}" if n > 1 else kind for kind, n in kinds.items()) or "waiting"


def left_s(job: ModelJob, now_s: float) -> float | None:
    """Seconds until the budget is spent by the pace so far; None before the first trial and at the end."""
    spending, budget = job.tuning.spending if job.tuning else None, job.spec.budget
    if job.finish is not None or spending is None or spending.started_s is None or not spending.spent:
        return None
    passed_s = now_s - spending.started_s
    rest_s = passed_s / spending.spent * (budget.trials - spending.spent)
    if budget.seconds is not None:
        rest_s = min(rest_s, budget.seconds - passed_s)
    return max(0.0, rest_s)
