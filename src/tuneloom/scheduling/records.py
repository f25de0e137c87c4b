"""What the core remembers: stages and jobs that have not ended, jobs that ended lately, who sits where."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tuneloom.errors import SchedulingError
from tuneloom.model import Device, Host
from tuneloom.scheduling.moves import JOB_RUNNING, JOB_WAITING, LEGAL, JobState, require_move
from tuneloom.scheduling.stages import Grant, JobTicket, StageRequest


class StageState(StrEnum):
    """Held stages belong to a paused job; waiting ones may start at any moment."""

    HELD = "held"
    WAITING = "waiting"
    RUNNING = "running"


STAGE_HELD, STAGE_WAITING, STAGE_RUNNING = StageState
"""Looked up once, as the states of jobs are."""


@dataclass(slots=True, eq=False)
class Stage:
    """A stage that has not ended; owned by the core, read by policies.

    `seq` counts stages in the order in which the core first heard of them. A running one holds some of
    its `seat`. Policies keep their own `notes` of it.
    """

    request: StageRequest
    job: "Job"
    seq: int
    queued_s: float
    state: StageState = StageState.WAITING
    grant: Grant | None = None
    started_s: float = 0.0
    seat: "Seat | None" = None
    notes: Any = None


@dataclass(slots=True, eq=False)
class Seat:
    """One resource with its holders; a device is a seat with one slot.

    `taken` counts granted slots and exceeds `slots` only under shared grants. `one_slot` is
    the grant of one slot, which for a device is all of it. One that was taken out is not `present`.
    """

    resource: Host | Device
    order: int
    slots: int
    key: str | None
    taken: int = 0
    holders: dict[Stage, int] = field(default_factory=dict)
    busy_slot_s: float = 0.0
    changed_s: float = 0.0
    listed: bool = False
    present: bool = True
    one_slot: Grant = field(init=False)

    def __post_init__(self) -> None:
        self.one_slot = Grant(resource=self.resource.name)

    @property
    def name(self) -> str:
        return self.resource.name

    @property
    def free(self) -> int:
        return self.slots - self.taken

    def advance(self, at_s: float) -> None:
        """Count the time up to now as busy for every slot in use."""
        if self.taken:
            used = self.taken if self.taken < self.slots else self.slots
            self.busy_slot_s += used * (at_s - self.changed_s)
        self.changed_s = at_s


@dataclass(slots=True, eq=False)
class Job:
    """A job that has not ended; owned by the core, read by policies, which keep their own `notes` of it."""

    ticket: JobTicket
    order: int
    submitted_s: float
    state: JobState = JobState.WAITING
    stages: dict[str, Stage] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    running: int = 0
    notes: Any = None

    @property
    def id(self) -> str:
        return self.ticket.id

    @property
    def accepts_starts(self) -> bool:
        """Whether a stage of this job may start now."""
        return self.state is JOB_RUNNING or self.state is JOB_WAITING

    def move(self, new: JobState) -> None:
        """Change the state; raises SchedulingError for a move that is not in the table."""
        if (self.state._value_, new._value_) not in LEGAL:
            require_move(self.ticket.id, self.state, new)
        self.state = new


@dataclass(frozen=True, slots=True)
class EndedJob:
    """All that is kept of a job after its end: how it ended, whose results may come late."""

    state: JobState
    stopped: frozenset[str]


MOST_ENDED = 10_000
"""Of so many jobs that ended it is kept how; late results of earlier ones would be refused."""


class KnownJobs:
    """Live jobs in the order in which they came, and what is kept of those that ended lately."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, EndedJob] = {}
        self._count = 0

    def enter(self, ticket: JobTicket, at_s: float) -> Job:
        """A new job; one that ended may come again, when its run was given away and taken back."""
        self.ended.pop(ticket.id, None)
        job = self.jobs[ticket.id] = Job(ticket, self._count, at_s)
        self._count += 1
        return job

    def end(self, name: str, ended: EndedJob) -> None:
        """A job ended, or never began."""
        self.jobs.pop(name, None)
        self.ended[name] = ended
        if len(self.ended) > MOST_ENDED:
            del self.ended[next(iter(self.ended))]

    def live_job(self, name: str) -> Job | None:
        """The job, or None if it has ended; raises SchedulingError if it was never submitted."""
        job = self.jobs.get(name)
        if job is None and name not in self.ended:
            raise SchedulingError(f"no job {name!r} is known: it was never submitted, or ended long ago")
        return job

    def running_stage(self, job_name: str, stage_name: str) -> Stage | None:
        """The running stage, or None for a late result of one that was stopped."""
        job = self.jobs.get(job_name)
        stage = job.stages.get(stage_name) if job is not None else None
        if stage is not None and stage.state is STAGE_RUNNING:
            return stage
        job = self.live_job(job_name)
        if stage_name in (job.stopped if job is not None else self.ended[job_name].stopped):
            return None
        raise SchedulingError(f"job {job_name!r} has no running stage {stage_name!r}")
