"""The core under a virtual clock."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
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
from tuneloom.simulation.agenda import Agenda, Arrival, Happening, Key, SharedEnd, SharedResource, StageEnd
from tuneloom.simulation.jobs import SimulatedJob, Workload
from tuneloom.simulation.ledger import Ledger, SimulationResult
from tuneloom.simulation.progress import Progress


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
        self._chance = random.Random(workload.seed)
        self._agenda = Agenda()
        self._ledger = Ledger(keeps_log=keep_log)
        self._progress: dict[str, Progress] = {}
        self._runs: dict[Key, _Run] = {}
        self._started = 0
        self._shared: dict[str, SharedResource] = {}
        self._slots: dict[str, int] = {}
        for resource in resources:
            self._agenda.plan(0.0, ResourceAdded(at_s=0.0, resource=resource))
        for event in workload.disturbances:
            self._agenda.plan(event.at_s, event)
        for job in workload.jobs:
            self._agenda.plan(job.arrives_s, Arrival(job))

    def run(self) -> SimulationResult:
        """Take one happening after the other until nothing is left."""
        while (happening := self._agenda.next()) is not None:
            event = self._event_of(happening)
            if event is not None:
                self._tell(event)
        arrived_s = {job.ticket.id: job.arrives_s for job in self._workload.jobs}
        return self._ledger.result(self._policy.name, arrived_s, view(self.core))

    @property
    def _now_s(self) -> float:
        return self._agenda.now_s

    def _event_of(self, happening: Happening) -> Event | None:
        if isinstance(happening, StageEnd):
            run = self._runs.get(happening.key)
            if run is None or run.number != happening.run:
                return None
            return self._stage_ended(happening.key, lost=happening.lost)
        if isinstance(happening, SharedEnd):
            return self._shared_end(happening)
        if isinstance(happening, ResourceAdded):
            resource = happening.resource
            self._slots[resource.name] = resource.slots if isinstance(resource, Host) else 1
            return happening
        if isinstance(happening, Arrival):
            return self._arrival(happening.job)
        return happening

    def _arrival(self, job: SimulatedJob) -> JobSubmitted:
        ticket = job.ticket
        progress = self._progress[ticket.id] = Progress(job)
        ready = progress.start()
        for request in ready:
            self._ledger.ready((ticket.id, request.id), self._now_s)
        return JobSubmitted(at_s=self._now_s, ticket=ticket, ready=ready)

    def _shared_end(self, happening: SharedEnd) -> Event | None:
        shared = self._shared[happening.resource]
        ending = shared.next_end()
        if ending is None or shared.version != happening.version:
            return None
        return self._stage_ended(ending[1], lost=False)

    def _stage_ended(self, key: Key, *, lost: bool) -> StageFinished | StageLost:
        self._close(key, completed=not lost)
        job, stage = key
        if lost:
            self._ledger.ready(key, self._now_s)
            return StageLost(at_s=self._now_s, job=job, stage=stage)
        ready, done = self._progress[job].finish(stage)
        for request in ready:
            self._ledger.ready((job, request.id), self._now_s)
        return StageFinished(at_s=self._now_s, job=job, stage=stage, ready=ready, done=done)

    def _tell(self, event: Event) -> None:
        commands = self.core.handle(event)
        self._ledger.told(event, commands)
        for command in commands:
            self._obey(command)
        if self._check:
            self.core.check()

    def _obey(self, command: Command) -> None:
        match command:
            case StartStage():
                self._start(command)
            case StopStage(job=job, stage=stage):
                self._close((job, stage), completed=False)
                self._ledger.ready((job, stage), self._now_s)
            case FinishJob(job=job):
                self._job_ended(job, cancelled=command.cancelled)
            case RefuseJob(job=job):
                self._ledger.refused.append(job)
                del self._progress[job]
            case _:
                assert_never(command)

    def _start(self, command: StartStage) -> None:
        request, grant = command.request, command.grant
        key = (request.job, request.id)
        self._started += 1
        self._runs[key] = _Run(command, self._started, self._now_s)
        self._ledger.started(key, grant.resource, self._now_s)
        seconds = self._progress[request.job].seconds(request.id)
        if grant.shared:
            self._start_shared(key, grant, seconds)
            return
        lost = self._workload.loss_probability > 0 and self._chance.random() < self._workload.loss_probability
        end_s = self._now_s + (seconds / 2 if lost else seconds)
        self._agenda.plan(end_s, StageEnd(key, self._started, lost))

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
            self._agenda.plan(ending[0], SharedEnd(resource, shared.version))

    def _close(self, key: Key, *, completed: bool) -> None:
        run = self._runs.pop(key)
        grant = run.command.grant
        if grant.shared:
            self._shared[grant.resource].leave(key, self._now_s)
            self._expect_shared_end(grant.resource)
        self._ledger.held(run.command, run.since_s, self._now_s, completed=completed)

    def _job_ended(self, job: str, *, cancelled: bool) -> None:
        del self._progress[job]
        if cancelled:
            self._ledger.cancelled.append(job)
        else:
            self._ledger.completed_s[job] = self._now_s
