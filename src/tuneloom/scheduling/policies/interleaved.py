"""Interleaved: a queue per resource, served in the order in which stages became ready."""

from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.invariants import idle_devices_with_work, require
from tuneloom.scheduling.policies.base import Choice
from tuneloom.scheduling.policies.gates import StageGate
from tuneloom.scheduling.records import Job, Seat, Stage
from tuneloom.scheduling.stages import DeviceDemand, Grant

Queue = dict[Stage, None]


class Interleaved:
    """Round robin over jobs: who is ready first is served first.

    Each lane is a chain: its next stage enters a queue when its current stage, with all
    parts of it, is done. Devices of one key share a queue; host stages wait in the
    queue of their host or, without one, in a queue that all hosts serve. A stage that
    needs more slots than are free blocks the younger ones, so nobody is passed for ever.
    """

    name = "interleaved"
    overlaps = False

    def __init__(self) -> None:
        self._floor = Floor()
        self._gates: dict[str, dict[str, StageGate]] = {}
        self._device_queues: dict[str, Queue] = {}
        self._host_queues: dict[str | None, Queue] = {None: {}}
        self._keys_to_look_at: dict[str, None] = {}
        self._look_at_hosts = False

    def attach(self, floor: Floor) -> None:
        self._floor = floor

    def job_entered(self, job: Job) -> None:
        self._gates[job.id] = {}

    def job_left(self, job: Job) -> None:
        del self._gates[job.id]

    def queued(self, stage: Stage, at_s: float) -> None:
        gate = self._gates[stage.job.id].setdefault(stage.request.lane, StageGate())
        self._enqueue(gate.admit(stage))

    def withdrawn(self, stage: Stage) -> None:
        if self._gates[stage.job.id][stage.request.lane].withdraw(stage):
            self._queue_of(stage).pop(stage, None)

    def started(self, stage: Stage, at_s: float) -> None:
        del self._queue_of(stage)[stage]

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        needs = stage.request.needs
        if isinstance(needs, DeviceDemand):
            self._keys_to_look_at[needs.key] = None
        else:
            self._look_at_hosts = True
        if finished:
            lanes = self._gates[stage.job.id]
            gate = lanes[stage.request.lane]
            self._enqueue(gate.done(stage))
            if gate.open is None:
                del lanes[stage.request.lane]

    def resource_came(self, seat: Seat) -> None:
        if seat.key is not None:
            self._keys_to_look_at[seat.key] = None
        self._look_at_hosts = True

    def resource_went(self, seat: Seat) -> None:
        self._look_at_hosts = True

    def share_used(self, share: str, key: str, seconds: float) -> None:
        return

    def choose(self, at_s: float) -> Choice | None:
        while self._keys_to_look_at:
            key = next(iter(self._keys_to_look_at))
            device = self._floor.idle_device(key)
            queue = self._device_queues.get(key)
            if device is not None and queue:
                return (next(iter(queue)), Grant(resource=device.name))
            del self._keys_to_look_at[key]
        if self._look_at_hosts:
            for host in self._floor.hosts.values():
                if host.free > 0 and (stage := self._oldest_for(host)) is not None:
                    return (stage, Grant(resource=host.name, slots=_slots(stage)))
            self._look_at_hosts = False
        return None

    def check(self) -> None:
        for lanes in self._gates.values():
            for gate in lanes.values():
                gate.check()
        waiting = {key: len(queue) for key, queue in self._device_queues.items()}
        require(not idle_devices_with_work(self._floor, waiting), "no device idles while stages wait")

    def _oldest_for(self, host: Seat) -> Stage | None:
        """The oldest stage this host could ever serve, if it fits now."""
        heads = []
        for queue in (self._host_queues[None], self._host_queues.get(host.name, {})):
            stage = next((s for s in queue if _slots(s) <= host.slots), None)
            if stage is not None:
                heads.append(stage)
        oldest = min(heads, key=lambda stage: stage.seq, default=None)
        return oldest if oldest is not None and _slots(oldest) <= host.free else None

    def _enqueue(self, stages: list[Stage]) -> None:
        for stage in stages:
            self._queue_of(stage)[stage] = None
            needs = stage.request.needs
            if isinstance(needs, DeviceDemand):
                self._keys_to_look_at[needs.key] = None
            else:
                self._look_at_hosts = True

    def _queue_of(self, stage: Stage) -> Queue:
        needs = stage.request.needs
        if isinstance(needs, DeviceDemand):
            return self._device_queues.setdefault(needs.key, {})
        return self._host_queues.setdefault(needs.host, {})


def _slots(stage: Stage) -> int:
    needs = stage.request.needs
    return 1 if isinstance(needs, DeviceDemand) else needs.slots
