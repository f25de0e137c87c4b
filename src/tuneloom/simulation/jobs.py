"""Jobs to simulate, when they come, and what goes wrong meanwhile."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tuneloom.errors import InputError
from tuneloom.model import ROUND, StageKind
from tuneloom.scheduling.messages import Event
from tuneloom.scheduling.stages import DeviceDemand, JobTicket, SlotDemand
from tuneloom.simulation.steps import Rounds, TimedStep

THESIS_STAGES: Mapping[str, float] = {"select": 22.0, "build": 8.3, "profile": 39.5, "update": 22.0}
"""Seconds of one round of tuning ResNet-18, as measured when this kind of scheduling was proposed."""


class SimulatedJob(Protocol):
    """What the simulation needs of a job; `prior_factor` 1 gives the core true priors, None gives none."""

    @property
    def ticket(self) -> JobTicket: ...
    @property
    def arrives_s(self) -> float: ...
    @property
    def prior_factor(self) -> float | None: ...
    def lanes(self) -> tuple[Sequence[TimedStep], ...]:
        """Chains of steps that depend on nothing but their own predecessor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsJob:
    """A tuning job: so many rounds of select, build, profile and update.

    With `parts` build and profile are split into that many candidates and streamed;
    with `lanes_in_flight` the rounds are dealt out to that many independent lanes.
    """

    name: str
    rounds: int
    stages: Mapping[str, float] = field(default_factory=lambda: dict(THESIS_STAGES))
    parts: int = 1
    lanes_in_flight: int = 1
    device_key: str = "device"
    lendable_builds: bool = False
    arrives_s: float = 0.0
    priority: int = 0
    weight: float = 1.0
    deadline_s: float | None = None
    prior_factor: float | None = None

    def __post_init__(self) -> None:
        for what in ("rounds", "parts", "lanes_in_flight"):
            if getattr(self, what) < 1:
                raise InputError(f"job {self.name!r} needs at least 1 of {what}, got {getattr(self, what)}")
        unknown = [kind for kind in self.stages if kind not in ROUND]
        if unknown:
            known = ", ".join(kind.value for kind in ROUND)
            raise InputError(f"no stage {unknown[0]!r} in a round; known: {known}")
        if not self.stages:
            raise InputError(f"job {self.name!r} needs the time of at least one stage")

    @property
    def ticket(self) -> JobTicket:
        return JobTicket(
            id=self.name,
            priority=self.priority,
            weight=self.weight,
            deadline_s=self.deadline_s,
            device_keys=frozenset({self.device_key} if StageKind.PROFILE in self.stages else ()),
        )

    def lanes(self) -> tuple[Sequence[TimedStep], ...]:
        steps = tuple(self._step(kind) for kind in ROUND if kind in self.stages)
        count = min(self.lanes_in_flight, self.rounds)
        return tuple(Rounds(steps, len(range(lane, self.rounds, count))) for lane in range(count))

    def _step(self, kind: StageKind) -> TimedStep:
        split = self.parts if kind in (StageKind.BUILD, StageKind.PROFILE) else 1
        lendable = self.lendable_builds and kind is StageKind.BUILD
        return TimedStep(
            kind=kind.value,
            needs=DeviceDemand(key=self.device_key)
            if kind is StageKind.PROFILE
            else SlotDemand(lendable=lendable),
            parts=(self.stages[kind] / split,) * split,
            streamed=kind is StageKind.BUILD and split > 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainJob:
    """Any process that holds one thing after another; the core can't tell it from tuning."""

    name: str
    steps: tuple[TimedStep, ...]
    arrives_s: float = 0.0
    waits_for_devices: bool = False
    prior_factor: float | None = None

    @property
    def ticket(self) -> JobTicket:
        keys = frozenset(step.needs.key for step in self.steps if isinstance(step.needs, DeviceDemand))
        return JobTicket(id=self.name, device_keys=keys, waits_for_devices=self.waits_for_devices)

    def lanes(self) -> tuple[Sequence[TimedStep], ...]:
        return (self.steps,) if self.steps else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs with their arrival times, and what goes wrong.

    `disturbances` are events given to the core at their time (resources that go and
    come, jobs cancelled or paused); each started stage is lost halfway with
    `loss_probability`, by a chance that `seed` fixes.
    """

    jobs: tuple[SimulatedJob, ...]
    disturbances: tuple[Event, ...] = ()
    loss_probability: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        names = [job.ticket.id for job in self.jobs]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two jobs are named {twice!r}; give each its own name")
        if not 0 <= self.loss_probability < 1:
            raise InputError(f"a probability of loss lies in [0, 1), got {self.loss_probability}")


def poisson_arrivals(count: int, per_hour: float, seed: int) -> tuple[float, ...]:
    """Arrival times in seconds of a Poisson process; the first job is there at 0."""
    if not per_hour > 0:
        raise InputError(f"an arrival rate must be positive, got {per_hour} jobs an hour")
    chance, at_s, times = random.Random(seed), 0.0, []
    for _ in range(count):
        times.append(at_s)
        at_s += chance.expovariate(per_hour / 3600.0)
    return tuple(times)
