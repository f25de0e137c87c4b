"""Devices that come and go on one machine, noticed while calls run there."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from tuneloom.app.devices.describing import Description, MachineOrder, describe
from tuneloom.engine.machine import Offer
from tuneloom.engine.reports import ResourceDisturbed, ResourceJoined, ResourceLeft

Change = ResourceJoined | ResourceLeft | ResourceDisturbed
_EVERY_S = 5.0


class DeviceWatch:
    """Describes its machine again every few seconds, in a thread: a board may take long to answer.

    `look` never blocks. A device that stays keeps its first description.
    """

    def __init__(
        self,
        order: MachineOrder,
        first: Description,
        describe_again: Callable[[MachineOrder], Description] = describe,
    ) -> None:
        self._order = order
        self._describe = describe_again
        self._known: dict[str, Offer] = {offer.resource.name: offer for offer in first.offers}
        self._changes: SimpleQueue[Change] = SimpleQueue()
        self._lost: SimpleQueue[str] = SimpleQueue()
        self._disturbed: dict[str, str] = {}
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self) -> list[Change]:
        """What joined or left since the last look; the first look begins the watch."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="devices", daemon=True)
            self._thread.start()
        return self.changes()

    def changes(self) -> list[Change]:
        """What was noted since the last time."""
        changes: list[Change] = []
        while True:
            try:
                changes.append(self._changes.get_nowait())
            except Empty:
                return changes

    def lost(self, resource: str) -> None:
        """A call found out that a device is gone; it joins when it is seen again after that."""
        self._lost.put(resource)

    def forget_lost(self) -> None:
        """Know no more of devices that calls have lost; a look that was begun before proves nothing."""
        while not self._lost.empty():
            self._known.pop(self._lost.get(), None)

    def close(self) -> None:
        """Look no more; a look that is under way ends by itself."""
        self._ending.set()

    def compare(self, description: Description) -> None:
        """Note what is different now."""
        now = {offer.resource.name: offer for offer in description.offers}
        for name in [name for name in self._known if name not in now]:
            del self._known[name]
            reason = description.troubles.get(name, "it is not there any more")
            self._changes.put(ResourceLeft(name=name, reason=reason))
        for name, offer in now.items():
            if name not in self._known:
                self._known[name] = offer
                self._changes.put(ResourceJoined(offer=offer))
        self._compare_disturbances(description)

    def _compare_disturbances(self, description: Description) -> None:
        for seen in description.devices:
            name, by = seen.offer.resource.name, seen.sight.disturbed_by
            who = by.partition(";")[0]
            if seen.sight.usable and self._disturbed.get(name, "") != who:
                self._disturbed[name] = who
                self._changes.put(ResourceDisturbed(name=name, by=by))

    def _watch(self) -> None:
        while not self._ending.wait(_EVERY_S):
            self.forget_lost()
            self.compare(self._describe(self._order))
