"""The resources that a run can use now: they come, go, are disturbed, and are put aside for a while."""

from collections.abc import Callable
from dataclasses import dataclass

from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.placing import Placing, resident_of
from tuneloom.app.conducting.programs import RunningPrograms
from tuneloom.engine.api import Engine, MachineLost, ResourceDisturbed, ResourceShared
from tuneloom.engine.machine import Offer
from tuneloom.scheduling.messages import ResourceAdded, ResourceLost

STRIKES = 3
"""So many canaries in a row have to fail."""

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 960.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aside:
    offer: Offer
    until_s: float


class Quarantine:
    """Counts what canaries say of devices; the pause doubles each time that a device comes in again."""

    def __init__(self) -> None:
        self._strikes: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._aside: dict[str, _Aside] = {}

    def note(self, device: str, trouble: str) -> str:
        """Why a device should be put aside after this; empty if it should not. No trouble clears it."""
        if not trouble:
            self._strikes.pop(device, None)
            self._times.pop(device, None)
            return ""
        strikes = self._strikes[device] = self._strikes.get(device, 0) + 1
        return f"its canary failed {strikes} times in a row: {trouble}" if strikes >= STRIKES else ""

    def put_aside(self, offer: Offer, now_s: float) -> None:
        """Use a device no more until its pause is over."""
        name = offer.resource.name
        self._strikes[name] = STRIKES - 1  # one more failure is enough when it is back
        times = self._times[name] = self._times.get(name, 0) + 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (times - 1))
        self._aside[name] = _Aside(offer=offer, until_s=now_s + pause_s)

    def over(self, now_s: float) -> list[Offer]:
        """The devices that should be tried again now."""
        due = [aside.offer for aside in self._aside.values() if aside.until_s <= now_s]
        for offer in due:
            del self._aside[offer.resource.name]
        return due

    def left(self, device: str) -> None:
        """A device is gone by itself."""
        self._aside.pop(device, None)

    def machine_left(self, machine: str) -> None:
        """A machine is gone with its devices."""
        self._aside = {
            name: aside for name, aside in self._aside.items() if aside.offer.resource.machine != machine
        }


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
