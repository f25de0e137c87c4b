"""The books of a simulation, and what it found."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuneloom.scheduling import CoreView
from tuneloom.scheduling.messages import Command, Event, StartStage
from tuneloom.simulation.agenda import Key


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


class Ledger:
    """Written while a simulation runs; without `keeps_log` it has no spans and no events."""

    def __init__(self, *, keeps_log: bool) -> None:
        self._keeps_log = keeps_log
        self._ready_s: dict[Key, float] = {}
        self._uses: dict[str, tuple[int, float]] = {}
        self._spans: list[HeldSpan] = []
        self._events: list[Event] = []
        self._answers: list[tuple[Command, ...]] = []
        self._decisions = 0
        self.completed_s: dict[str, float] = {}
        self.cancelled: list[str] = []
        self.refused: list[str] = []

    def told(self, event: Event, commands: Sequence[Command]) -> None:
        """The core heard of an event and answered."""
        self._decisions += 1
        if self._keeps_log:
            self._events.append(event)
            self._answers.append(tuple(commands))

    def ready(self, key: Key, at_s: float) -> None:
        """A stage begins to wait."""
        self._ready_s[key] = at_s

    def started(self, key: Key, resource: str, at_s: float) -> None:
        """A stage waits no more."""
        stages, waited_s = self._uses.get(resource, (0, 0.0))
        self._uses[resource] = (stages + 1, waited_s + at_s - self._ready_s.pop(key))

    def held(self, command: StartStage, start_s: float, end_s: float, *, completed: bool) -> None:
        """A stage gave back what it held."""
        if self._keeps_log:
            request, grant = command.request, command.grant
            stage = (request.job, request.id, request.lane, request.kind)
            self._spans.append(HeldSpan(grant.resource, grant.slots, *stage, start_s, end_s, completed))

    def result(self, policy: str, arrived_s: dict[str, float], picture: CoreView) -> SimulationResult:
        """Close the books."""
        makespan_s = max(self.completed_s.values(), default=0.0)
        return SimulationResult(
            policy=policy,
            makespan_s=makespan_s,
            resources=self._resource_uses(picture, makespan_s),
            completed_s=self.completed_s,
            arrived_s=arrived_s,
            cancelled=tuple(self.cancelled),
            refused=tuple(self.refused),
            unfinished=tuple(job.id for job in picture.jobs),
            decisions=self._decisions,
            spans=tuple(self._spans),
            events=tuple(self._events),
            answers=tuple(self._answers),
        )

    def _resource_uses(self, picture: CoreView, makespan_s: float) -> tuple[ResourceUse, ...]:
        uses = []
        for resource in picture.resources:
            stages, waited_s = self._uses.get(resource.name, (0, 0.0))
            capacity_s = resource.slots * makespan_s
            use = ResourceUse(
                name=resource.name,
                key=resource.key,
                slots=resource.slots,
                utilisation=resource.busy_s / capacity_s if capacity_s else 0.0,
                stages=stages,
                waited_s=waited_s,
            )
            uses.append(use)
        return tuple(uses)
