"""What people see of a run: a frozen picture, the same for the terminal, for JSON and for a server."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tuneloom.app.kinds.base import JobProgram, JobProgress
from tuneloom.scheduling import CoreView, JobState, JobView, ResourceView, RunningView
from tuneloom.store import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPicture:
    """A job at one moment; `stage` says what it does, or why it does nothing.

    `kernels` are those that have to be tuned, `measured` those of them with a good trial.
    `left_s` is None while nobody can tell. `outlook` says what is expected of a goal or a deadline.
    """

    id: str
    name: str
    status: str
    stage: str
    measured: int = 0
    kernels: int = 0
    spent: int = 0
    budget: int = 0
    best_s: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    left_s: float | None = None
    outlook: str = ""
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePicture:
    """A resource at one moment: what it runs in words, how busy it was, how many stages wait for it."""

    name: str
    key: str | None
    slots: int
    taken: int
    utilisation: float
    queue: int
    now: str

    @property
    def still(self) -> tuple[Any, ...]:
        """What people would notice of it."""
        now, used = self.now, round(self.utilisation, 2)
        return self.name, self.key, self.slots, self.taken, used, self.queue, now


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run at one moment; nobody needs to reach into anything that runs to show it."""

    run: str
    policy: str
    at_s: float
    resources: tuple[ResourcePicture, ...]
    jobs: tuple[JobPicture, ...]

    @property
    def failures(self) -> Counter[str]:
        """All failures of the run by kind."""
        counted: Counter[str] = Counter()
        for job in self.jobs:
            counted.update(job.failures)
        return counted

    def looks_like(self, other: "RunView | None") -> bool:
        """Whether nobody would notice the difference: clocks go on while nothing happens."""
        return other is not None and self._still() == other._still()

    def _still(self) -> tuple[Any, ...]:
        jobs = [{**_plain(job, _OF_JOB), "left_s": _about(job.left_s, -1)} for job in self.jobs]
        return self.run, self.policy, jobs, [each.still for each in self.resources]

    def to_json(self) -> dict[str, Any]:
        """Plain data for programs and for the store."""
        return {
            "run": self.run,
            "policy": self.policy,
            "at_s": self.at_s,
            "resources": [_plain(each, _OF_RESOURCE) for each in self.resources],
            "jobs": [{**_plain(job, _OF_JOB), "failures": dict(job.failures)} for job in self.jobs],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "RunView":
        """The view that `to_json` told."""
        resources = tuple(ResourcePicture(**each) for each in data["resources"])
        jobs = tuple(JobPicture(**each) for each in data["jobs"])
        return cls(run=data["run"], policy=data["policy"], at_s=data["at_s"], resources=resources, jobs=jobs)


_OF_JOB = tuple(each.name for each in fields(JobPicture))
_OF_RESOURCE = tuple(each.name for each in fields(ResourcePicture))


def _plain(picture: JobPicture | ResourcePicture, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(picture, name) for name in names}


def _about(number: Any, digits: int) -> Any:
    return number if number is None else round(number, digits)


def job_picture(
    program: JobProgram,
    progress: JobProgress,
    core: JobView | None,
    status: JobStatus,
    wait_s: float = 0.0,
    *,
    packing: bool = False,
) -> JobPicture:
    """A job as its program, the core and the store see it; `wait_s` is in how long it arrives."""
    going_on = core is not None and not status.ended and core.state is not JobState.PAUSED
    return JobPicture(
        id=program.ticket.id,
        name=program.spec.name,
        status=status.value,
        stage="packing" if packing else stage_words(core, status, wait_s),
        measured=progress.measured,
        kernels=len(progress.kernels),
        spent=progress.spent,
        budget=program.spec.budget.trials,
        best_s=progress.best_s,
        failures=dict(progress.failures),
        left_s=progress.left_s if going_on else None,
        outlook=progress.outlook if not status.ended else "",
        ended=status.ended,
    )


def stage_words(core: JobView | None, status: JobStatus, wait_s: float) -> str:
    """What a job does now, or why it does nothing."""
    if status.ended:
        return status.value
    if core is None:
        return f"comes in {max(0.0, wait_s):.0f} s"
    if core.state in (JobState.PAUSED, JobState.PAUSING):
        return core.state.value
    if core.stranded and not core.running:
        return "no device yet"
    kinds = Counter(stage.kind for stage in core.running)
    return ", ".join(f"{n} {kind}" if n > 1 else kind for kind, n in kinds.items()) or "waiting"


def resource_pictures(
    core: CoreView, known: Mapping[str, tuple[str, JobProgress]]
) -> tuple[ResourcePicture, ...]:
    """Every resource with what it does; `known` has the names of jobs and how far they are."""
    return tuple(_resource_picture(resource, known, core.at_s) for resource in core.resources)


def _resource_picture(
    resource: ResourceView, known: Mapping[str, tuple[str, JobProgress]], at_s: float
) -> ResourcePicture:
    counted = Counter(_stage_name(stage, known) for stage in resource.running)
    now = ", ".join(f"{n} × {name}" if n > 1 else name for name, n in counted.items())
    return ResourcePicture(
        name=resource.name,
        key=resource.key,
        slots=resource.slots,
        taken=resource.taken,
        utilisation=min(1.0, resource.busy_s / (resource.slots * at_s)) if at_s > 0 else 0.0,
        queue=resource.queue,
        now=now or "idle",
    )


def _stage_name(stage: RunningView, known: Mapping[str, tuple[str, JobProgress]]) -> str:
    """A stage as people call it: what it does, for which job, on which kernel."""
    name, progress = known.get(stage.job, (stage.job, JobProgress()))
    number = stage.lane.partition(".")[0]
    kernel = ""
    if number.isdecimal() and int(number) < len(progress.kernels):
        kernel = progress.kernels[int(number)]
        kernel = kernel if len(kernel) <= 24 else f"{kernel[:23]}…"
    return " ".join(filter(None, (stage.kind, name, kernel)))
