"""What the core remembers of jobs and of stages that have not ended."""

from dataclasses import dataclass, field
from enum import StrEnum

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

    `seq` counts stages in the order in which the core first heard of them.
    """

    request: StageRequest
    job: "Job"
    seq: int
    queued_s: float
    state: StageState = StageState.WAITING
    grant: Grant | None = None
    started_s: float = 0.0


@dataclass(slots=True, eq=False)
class Job:
    """A job that has not ended; owned by the core, read by policies."""

    ticket: JobTicket
    order: int
    submitted_s: float
    state: JobState = JobState.WAITING
    stages: dict[str, Stage] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    running: int = 0

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
