"""The devices of this machine while calls run: which are ours, which come and go, who else uses them."""

import logging
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from tuneloom.app.devices.describing import Description, MachineOrder, describe, wanted_cores
from tuneloom.engine.api import (
    ResourceDisturbed,
    ResourceJoined,
    ResourceLeft,
    ResourceReport,
    ResourceShared,
)
from tuneloom.engine.calls import Call
from tuneloom.engine.local import Watch
from tuneloom.engine.machine import Offer
from tuneloom.engine.sharing.reservations import Reservation

_EVERY_S = 5.0
_LOG = logging.getLogger("tuneloom.devices")


def occupied(order: MachineOrder) -> tuple[Description, "DeviceWatch"]:
    """Reserve and describe what a machine is asked for; closing the watch gives it back."""
    every = os.sched_getaffinity(0)
    reservation = Reservation(every, min(wanted_cores(order), len(every)))
    try:
        description = describe(order, reservation.cores)
        reservation.note(lock for seen in description.devices for lock in seen.offer.locks)
        _tell_moved(reservation, every)
    except BaseException:
        reservation.close()
        raise
    return description, DeviceWatch(order, description, reservation)


def _tell_moved(reservation: Reservation, every: set[int]) -> None:
    """Say so if others have the cores that would be ours if we were alone."""
    usual = frozenset(sorted(every)[-len(reservation.cores) :]) if reservation.cores else frozenset()
    by = [str(other) for other in reservation.others() if other.cores & usual]
    if by and usual.isdisjoint(reservation.cores):
        here = ", ".join(map(str, sorted(reservation.cores)))
        measure = "measures" if len(by) == 1 else "measure"
        _LOG.warning("%s %s on the last cores; this run measures on core %s", ", ".join(by), measure, here)


class DeviceWatch(Watch):
    """Describes its machine again every few seconds, in a thread: a board may take long to answer.

    `look` never blocks. A device that stays keeps its first description.
    """

    def __init__(
        self,
        order: MachineOrder,
        first: Description,
        reservation: Reservation | None = None,
        describe_again: Callable[[MachineOrder, frozenset[int] | None], Description] = describe,
    ) -> None:
        self._order = order
        self._describe = describe_again
        self._reservation = reservation
        self._known: dict[str, Offer] = {offer.resource.name: offer for offer in first.offers}
        self._changes: SimpleQueue[ResourceReport] = SimpleQueue()
        self._lost: SimpleQueue[str] = SimpleQueue()
        self.away: dict[str, str] = {}
        """Devices that left, and why."""
        self._disturbed: dict[str, str] = {}
        self._shared: dict[str, str] = {}
        self._measures = False
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._compare_sharing()

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What can be used now."""
        return tuple(dict(self._known).values())

    def look(self) -> list[ResourceReport]:
        """What joined or left since the last look; the first look begins the watch."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="devices", daemon=True)
            self._thread.start()
        return self.changes()

    def changes(self) -> list[ResourceReport]:
        """What was noted since the last time."""
        changes: list[ResourceReport] = []
        while True:
            try:
                changes.append(self._changes.get_nowait())
            except Empty:
                return changes

    def fitted(self, call: Call) -> Call:
        """A call that disturbs no other process that measures here.

        With the first that measures it begins to matter, and is told, with whom devices are shared.
        """
        if call.alone and not self._measures:
            self._measures = True
            for name, by in dict(self._shared).items():
                self._changes.put(ResourceShared(name=name, by=by))
        return call if self._reservation is None else self._reservation.fitted(call)

    def lost(self, resource: str) -> None:
        """A call found out that a device is gone; it joins when it is seen again after that."""
        self._lost.put(resource)

    def forget_lost(self) -> None:
        """Know no more of devices that calls have lost; a look that was begun before proves nothing."""
        while not self._lost.empty():
            self._known.pop(self._lost.get(), None)

    def close(self) -> None:
        """Look no more, and leave the devices to others; a look that is under way ends by itself."""
        self._ending.set()
        if self._reservation is not None:
            self._reservation.close()

    def compare(self, description: Description) -> None:
        """Note what is different now."""
        now = {offer.resource.name: offer for offer in description.offers}
        for name in [name for name in self._known if name not in now]:
            del self._known[name]
            reason = description.troubles.get(name, "it is not there any more")
            self.away[name] = reason
            self._changes.put(ResourceLeft(name=name, reason=reason))
        for name, offer in now.items():
            if name not in self._known:
                self._known[name] = offer
                self.away.pop(name, None)
                self._changes.put(ResourceJoined(offer=offer))
        self._compare_disturbances(description)
        self._compare_sharing()

    def _compare_disturbances(self, description: Description) -> None:
        for seen in description.devices:
            name, by = seen.offer.resource.name, seen.state.disturbed_by
            who = by.partition(";")[0]
            if seen.state.usable and self._disturbed.get(name, "") != who:
                self._disturbed[name] = who
                self._changes.put(ResourceDisturbed(name=name, by=by))

    def _compare_sharing(self) -> None:
        """Note which of our devices other processes measure on, too."""
        if self._reservation is None:
            return
        for name, offer in self._known.items():
            by = self._reservation.shared_with(offer.locks)
            if self._shared.get(name, "") != by:
                self._shared[name] = by
                if self._measures:
                    self._changes.put(ResourceShared(name=name, by=by))

    def _watch(self) -> None:
        cores = None if self._reservation is None else self._reservation.cores
        while not self._ending.wait(_EVERY_S):
            self.forget_lost()
            self.compare(self._describe(self._order, cores))
