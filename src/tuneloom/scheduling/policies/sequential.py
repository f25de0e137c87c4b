"""Sequential: one job after the other, one stage at a time."""

from tuneloom.scheduling.invariants import require
from tuneloom.scheduling.policies.base import Choice
from tuneloom.scheduling.policies.gates import GatedPolicy
from tuneloom.scheduling.records import Job, Stage
from tuneloom.scheduling.stages import DeviceDemand, Grant


class Sequential(GatedPolicy):
    """Runs the job that was submitted first to its end, then the next one.

    It shows what tuning costs without sharing. Parts of one stage may run side by side;
    stages of a job never overlap. While the first job is paused, or waits for a
    resource that is not there, the next one that can run takes its place.
    """

    name = "sequential"

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[Job, int] = {}

    def started(self, stage: Stage, at_s: float) -> None:
        super().started(stage, at_s)
        self._running[stage.job] = self._running.get(stage.job, 0) + 1

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        self._running[stage.job] -= 1
        if not self._running[stage.job]:
            del self._running[stage.job]
        super().ended(stage, at_s, finished=finished)

    def choose(self, at_s: float) -> Choice | None:
        for job in self._running or self._waiting:
            for stage in self._waiting[job]:
                grant = self._grant_for(stage)
                if grant is not None:
                    return (stage, grant)
        return None

    def check(self) -> None:
        require(len(self._running) <= 1, "one job runs at a time")
        super().check()

    def _grant_for(self, stage: Stage) -> Grant | None:
        needs = stage.request.needs
        if isinstance(needs, DeviceDemand):
            device = self._floor.idle_device(needs.key)
            return None if device is None else Grant(resource=device.name)
        host = self._floor.roomiest_host() if needs.host is None else self._floor.hosts.get(needs.host)
        if host is None or host.free < needs.slots:
            return None
        return Grant(resource=host.name, slots=needs.slots)
