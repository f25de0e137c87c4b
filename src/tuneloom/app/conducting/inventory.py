"""The resources that a run can use now: they come, go, are disturbed, and are put aside for a while."""

from collections.abc import Callable

from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.placing import Placing, resident_of
from tuneloom.app.conducting.quarantine import Quarantine
from tuneloom.app.conducting.running import RunningPrograms
from tuneloom.engine.api import Engine
from tuneloom.engine.machine import Offer
from tuneloom.engine.reports import MachineLost, ResourceDisturbed, ResourceShared
from tuneloom.scheduling.messages import ResourceAdded, ResourceLost


class Inventory:
    """Tells core, listener and programs what becomes of resources."""

    def __init__(
        self,
        engine: Engine,
        listener: Listener,
        programs: RunningPrograms,
        tell: Callable[[ResourceAdded | ResourceLost], None],
        now_s: Callable[[], float],
    ) -> None:
        self.placing = Placing()
        self._quarantine = Quarantine()
        self._engine = engine
        self._listener = listener
        self._programs = programs
        self._tell = tell
        self._now_s = now_s

    def joined(self, offer: Offer) -> None:
        """A resource can be used from now on, whether or not it was put aside."""
        name, now_s = offer.resource.name, self._now_s()
        self._quarantine.left(name)
        if name in self.placing:
            self._remove(name, "it joined anew")
        self.placing.add(offer)
        self._listener.resource_joined(offer, now_s)
        self._tell(ResourceAdded(at_s=now_s, resource=offer.resource))

    def left(self, name: str, reason: str) -> None:
        """A resource can't be used any more."""
        self._quarantine.left(name)
        self._remove(name, reason)

    def machine_lost(self, lost: MachineLost) -> None:
        """A machine is gone with its resources and its workers."""
        self._quarantine.machine_left(lost.name)
        for worker in self.placing.workers_on(lost.name):
            self.worker_gone(worker.name, lost.name)
        for name in self.placing.of_machine(lost.name):
            self._remove(name, lost.reason)

    def worker_gone(self, name: str, machine: str) -> None:
        """A named worker is gone with what it kept."""
        worker = self.placing.forget_worker(name, machine)
        if worker is not None:
            self._programs.worker_lost(worker.job, name)

    def used_by_others(self, report: ResourceDisturbed | ResourceShared) -> None:
        """Others use a resource, too, at the same time or in turn."""
        shared = isinstance(report, ResourceShared)
        tell = self._listener.resource_shared if shared else self._listener.resource_disturbed
        if report.name in self.placing:
            tell(report.name, report.by, self._now_s())

    def judged(self, name: str, trouble: str) -> None:
        """A canary says what is wrong with a device; one of which it says so too often is put aside."""
        reason = self._quarantine.note(name, trouble)
        if reason and name in self.placing:
            self._quarantine.put_aside(self.placing.offer(name), self._now_s())
            self._remove(name, reason)

    def try_again(self) -> None:
        """Use the devices again that were put aside for long enough."""
        for offer in self._quarantine.over(self._now_s()):
            self.joined(offer)

    def _remove(self, name: str, reason: str) -> None:
        if name not in self.placing:
            return
        now_s = self._now_s()
        self.placing.remove(name)
        self._listener.resource_left(name, reason, now_s)
        self._tell(ResourceLost(at_s=now_s, name=name))
        self._engine.release(resident_of(name))
