"""What a simulation found."""

from dataclasses import dataclass

from tuneloom.scheduling.messages import Command, Event


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """Who held what when; `completed` is False for a stage that was lost or stopped."""

    resource: str
    slots: int
    job: str
    stage: str
    lane: str
    kind: str
    start_s: float
    end_s: float
    completed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUse:
    """One resource: the busy fraction of its slots over the makespan, and how long stages waited for it."""

    name: str
    key: str | None
    slots: int
    utilisation: float
    stages: int
    waited_s: float

    @property
    def mean_wait_s(self) -> float:
        """The mean time between ready and started of the stages that ran here."""
        return self.waited_s / self.stages if self.stages else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """`completed_s` tells when each job ended; `unfinished` jobs wait for what never came.

    `answers` are the core's commands for each of `events`.
    """

    policy: str
    makespan_s: float
    resources: tuple[ResourceUse, ...]
    completed_s: dict[str, float]
    arrived_s: dict[str, float]
    cancelled: tuple[str, ...]
    refused: tuple[str, ...]
    unfinished: tuple[str, ...]
    decisions: int
    spans: tuple[HeldSpan, ...] = ()
    events: tuple[Event, ...] = ()
    answers: tuple[tuple[Command, ...], ...] = ()

    @property
    def mean_stay_s(self) -> float:
        """The mean time from arrival to end over all jobs that ended."""
        stays = [end - self.arrived_s[job] for job, end in self.completed_s.items()]
        return sum(stays) / len(stays) if stays else 0.0
