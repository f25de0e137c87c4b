"""Sequential: one job after the other, one stage at a time."""

from tuneloom.scheduling.floor import Floor, Seat
from tuneloom.scheduling.invariants import require
from tuneloom.scheduling.policies.base import Choice
from tuneloom.scheduling.policies.gates import StageGate
from tuneloom.scheduling.records import Job, Stage
from tuneloom.scheduling.stages import DeviceDemand, Grant


class Sequential:
    """Runs the job that was submitted first to its end, then the next one.

    It shows what tuning costs without sharing. Parts of one stage may run side by side;
    stages of a job never overlap. While the first job is paused, or waits for a
    resource that is not there, the next one that can run takes its place.
    """

    name = "sequential"
    overlaps = False

    def __init__(self) -> None:
        self._floor = Floor()
        self._gates: dict[str, StageGate] = {}
        self._waiting: dict[Job, dict[Stage, None]] = {}
        self._running: dict[Job, int] = {}

    def attach(self, floor: Floor) -> None:
        self._floor = floor

    def job_entered(self, job: Job) -> None:
        self._gates[job.id] = StageGate()
        self._waiting[job] = {}

    def job_left(self, job: Job) -> None:
        del self._gates[job.id]
        del self._waiting[job]

    def queued(self, stage: Stage, at_s: float) -> None:
        self._let_through(stage.job, self._gates[stage.job.id].admit(stage))

    def withdrawn(self, stage: Stage) -> None:
        if self._gates[stage.job.id].withdraw(stage):
            self._waiting[stage.job].pop(stage, None)

    def started(self, stage: Stage, at_s: float) -> None:
        del self._waiting[stage.job][stage]
        self._running[stage.job] = self._running.get(stage.job, 0) + 1

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        self._running[stage.job] -= 1
        if not self._running[stage.job]:
            del self._running[stage.job]
        if finished:
            self._let_through(stage.job, self._gates[stage.job.id].done(stage))

    def resource_came(self, seat: Seat) -> None:
        """Nothing to note: the floor is read afresh at every choice."""

    def resource_went(self, seat: Seat) -> None:
        """Nothing to note: the floor is read afresh at every choice."""

    def share_used(self, share: str, key: str, seconds: float) -> None:
        return

    def choose(self, at_s: float) -> Choice | None:
        for job in self._running or self._waiting:
            for stage in self._waiting[job]:
                grant = self._grant_for(stage)
                if grant is not None:
                    return (stage, grant)
        return None

    def check(self) -> None:
        require(len(self._running) <= 1, "one job runs at a time")
        for gate in self._gates.values():
            gate.check()

    def _let_through(self, job: Job, stages: list[Stage]) -> None:
        self._waiting[job].update(dict.fromkeys(stages))

    def _grant_for(self, stage: Stage) -> Grant | None:
        needs = stage.request.needs
        if isinstance(needs, DeviceDemand):
            device = self._floor.idle_device(needs.key)
            return None if device is None else Grant(resource=device.name)
        host = self._floor.roomiest_host() if needs.host is None else self._floor.hosts.get(needs.host)
        if host is None or host.free < needs.slots:
            return None
        return Grant(resource=host.name, slots=needs.slots)
