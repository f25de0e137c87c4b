"""The core under a virtual clock."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import assert_never

from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named, view
from tuneloom.scheduling.messages import (
    Command,
    Event,
    FinishJob,
    JobSubmitted,
    RefuseJob,
    ResourceAdded,
    StageFinished,
    StageLost,
    StartStage,
    StopStage,
)
from tuneloom.scheduling.policies import Policy
from tuneloom.scheduling.stages import Grant
from tuneloom.simulation.jobs import SimulatedJob
from tuneloom.simulation.progress import Progress
from tuneloom.simulation.results import HeldSpan, ResourceUse, SimulationResult
from tuneloom.simulation.sharing import Key, SharedResource
from tuneloom.simulation.workload import Workload


@dataclass(frozen=True, slots=True)
class _SharedEnd:
    resource: str
    version: int


@dataclass(frozen=True, slots=True)
class _StageEnd:
    key: Key
    run: int
    lost: bool


@dataclass(frozen=True, slots=True)
class _Arrival:
    job: SimulatedJob


_Happening = Event | _Arrival | _SharedEnd | _StageEnd


@dataclass(slots=True)
class _Run:
    command: StartStage
    number: int
    since_s: float


def simulate(
    workload: Workload,
    resources: Iterable[Host | Device],
    policy: str | Policy,
    *,
    check: bool = False,
    keep_log: bool = True,
) -> SimulationResult:
    """Play a workload to its end under one policy.

    With `check` the core's invariants are checked after every event. Without `keep_log`
    the result has no spans and no events, which saves memory for very large workloads.
    """
    simulator = Simulator(workload, resources, policy, check=check, keep_log=keep_log)
    return simulator.run()


class Simulator:
    """One simulation; `run` may be called once."""

    def __init__(
        self,
        workload: Workload,
        resources: Iterable[Host | Device],
        policy: str | Policy,
        *,
        check: bool,
        keep_log: bool,
    ) -> None:
        self._policy = policy_named(policy) if isinstance(policy, str) else policy
        self.core = Core(self._policy)
        self._workload = workload
        self._check = check
        self._keep_log = keep_log
        self._chance = random.Random(workload.seed)
        self._agenda: list[tuple[float, int, _Happening]] = []
        self._counter = 0
        self._now_s = 0.0
        self._progress: dict[str, Progress] = {}
        self._runs: dict[Key, _Run] = {}
        self._ready_s: dict[Key, float] = {}
        self._shared: dict[str, SharedResource] = {}
        self._uses: dict[str, tuple[int, float]] = {}
        self._completed: dict[str, float] = {}
        self._cancelled: list[str] = []
        self._refused: list[str] = []
        self._spans: list[HeldSpan] = []
        self._events: list[Event] = []
        self._decisions = 0
        self._slots: dict[str, int] = {}
        for resource in resources:
            self._at(0.0, ResourceAdded(at_s=0.0, resource=resource))
        for event in workload.disturbances:
            self._at(event.at_s, event)
        for job in workload.jobs:
            self._at(job.arrives_s, _Arrival(job))

    def run(self) -> SimulationResult:
        """Take one happening after the other until nothing is left."""
        while self._agenda:
            self._now_s, _, happening = heappop(self._agenda)
            event = self._event_of(happening)
            if event is not None:
                self._tell(event)
        return self._result()

    def _at(self, at_s: float, happening: _Happening) -> None:
        self._counter += 1
        heappush(self._agenda, (at_s, self._counter, happening))

    def _event_of(self, happening: _Happening) -> Event | None:
        if isinstance(happening, _StageEnd):
            run = self._runs.get(happening.key)
            if run is None or run.number != happening.run:
                return None
            return self._stage_ended(happening.key, lost=happening.lost)
        if isinstance(happening, _SharedEnd):
            return self._shared_end(happening)
        if isinstance(happening, ResourceAdded):
            resource = happening.resource
            self._slots[resource.name] = resource.slots if isinstance(resource, Host) else 1
            return happening
        if isinstance(happening, _Arrival):
            return self._arrival(happening.job)
        return happening

    def _arrival(self, job: SimulatedJob) -> JobSubmitted:
        ticket = job.ticket
        progress = self._progress[ticket.id] = Progress(job)
        ready = progress.start()
        for request in ready:
            self._ready_s[ticket.id, request.id] = self._now_s
        return JobSubmitted(at_s=self._now_s, ticket=ticket, ready=ready)

    def _shared_end(self, happening: _SharedEnd) -> Event | None:
        shared = self._shared[happening.resource]
        ending = shared.next_end()
        if ending is None or shared.version != happening.version:
            return None
        return self._stage_ended(ending[1], lost=False)

    def _stage_ended(self, key: Key, *, lost: bool) -> StageFinished | StageLost:
        self._close(key, completed=not lost)
        job, stage = key
        if lost:
            self._ready_s[key] = self._now_s
            return StageLost(at_s=self._now_s, job=job, stage=stage)
        ready, done = self._progress[job].finish(stage)
        for request in ready:
            self._ready_s[job, request.id] = self._now_s
        return StageFinished(at_s=self._now_s, job=job, stage=stage, ready=ready, done=done)

    def _tell(self, event: Event) -> None:
        if self._keep_log:
            self._events.append(event)
        self._decisions += 1
        for command in self.core.handle(event):
            self._obey(command)
        if self._check:
            self.core.check()

    def _obey(self, command: Command) -> None:
        match command:
            case StartStage():
                self._start(command)
            case StopStage(job=job, stage=stage):
                self._close((job, stage), completed=False)
                self._ready_s[job, stage] = self._now_s
            case FinishJob(job=job):
                self._job_ended(job, cancelled=command.cancelled)
            case RefuseJob(job=job):
                self._refused.append(job)
                del self._progress[job]
            case _:
                assert_never(command)

    def _start(self, command: StartStage) -> None:
        request, grant = command.request, command.grant
        key = (request.job, request.id)
        self._counter += 1
        self._runs[key] = _Run(command, self._counter, self._now_s)
        stages, waited_s = self._uses.get(grant.resource, (0, 0.0))
        self._uses[grant.resource] = (stages + 1, waited_s + self._now_s - self._ready_s.pop(key))
        seconds = self._progress[request.job].seconds(request.id)
        if grant.shared:
            self._start_shared(key, grant, seconds)
            return
        lost = self._workload.loss_probability > 0 and self._chance.random() < self._workload.loss_probability
        self._at(self._now_s + (seconds / 2 if lost else seconds), _StageEnd(key, self._counter, lost))

    def _start_shared(self, key: Key, grant: Grant, seconds: float) -> None:
        shared = self._shared.get(grant.resource)
        if shared is None:
            shared = self._shared[grant.resource] = SharedResource(self._slots[grant.resource])
        shared.enter(key, grant.slots, seconds, self._now_s)
        self._expect_shared_end(grant.resource)

    def _expect_shared_end(self, resource: str) -> None:
        shared = self._shared[resource]
        ending = shared.next_end()
        if ending is not None:
            self._at(ending[0], _SharedEnd(resource, shared.version))

    def _close(self, key: Key, *, completed: bool) -> None:
        run = self._runs.pop(key)
        request, grant = run.command.request, run.command.grant
        if grant.shared:
            self._shared[grant.resource].leave(key, self._now_s)
            self._expect_shared_end(grant.resource)
        if self._keep_log:
            self._spans.append(
                HeldSpan(
                    grant.resource,
                    grant.slots,
                    request.job,
                    request.id,
                    request.lane,
                    request.kind,
                    run.since_s,
                    self._now_s,
                    completed,
                )
            )

    def _job_ended(self, job: str, *, cancelled: bool) -> None:
        del self._progress[job]
        if cancelled:
            self._cancelled.append(job)
        else:
            self._completed[job] = self._now_s

    def _result(self) -> SimulationResult:
        makespan_s = max(self._completed.values(), default=0.0)
        picture = view(self.core)
        uses = []
        for resource in picture.resources:
            stages, waited_s = self._uses.get(resource.name, (0, 0.0))
            capacity_s = resource.slots * makespan_s
            uses.append(
                ResourceUse(
                    name=resource.name,
                    key=resource.key,
                    slots=resource.slots,
                    utilisation=resource.busy_s / capacity_s if capacity_s else 0.0,
                    stages=stages,
                    waited_s=waited_s,
                )
            )
        return SimulationResult(
            policy=self._policy.name,
            makespan_s=makespan_s,
            resources=tuple(uses),
            completed_s=self._completed,
            arrived_s={job.ticket.id: job.arrives_s for job in self._workload.jobs},
            cancelled=tuple(self._cancelled),
            refused=tuple(self._refused),
            unfinished=tuple(self.core.jobs),
            decisions=self._decisions,
            spans=tuple(self._spans),
            events=tuple(self._events),
        )
