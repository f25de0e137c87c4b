"""Lending a device's own cores to host stages while no profile wants them."""

from heapq import heappop, heappush

from tuneloom.model import Device
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.policies.load_aware.lines import LineEntry
from tuneloom.scheduling.policies.load_aware.pressure import Pressure
from tuneloom.scheduling.records import STAGE_RUNNING, Seat, Stage

TOLERANCE = 1.25
"""How much longer than the device's expected wait a borrowing stage may be."""


class Loans:
    """Knows which lending devices are worth a look and when their next stage is due.

    `hosts` are those whose lenders were not looked at since something changed.
    """

    def __init__(self, floor: Floor, pressure: Pressure) -> None:
        self._floor = floor
        self._pressure = pressure
        self.hosts: dict[str, None] = {}
        self._due: dict[str, list[tuple[float, int, float, Stage]]] = {}

    def look_at(self, host: str) -> None:
        """Stages wait on this host, or a device that lends to it idles."""
        if host in self._floor.lenders:
            self.hosts[host] = None

    def look_at_all(self) -> None:
        """Stages wait that any host could run."""
        if self._floor.lenders:
            self.hosts.update(dict.fromkeys(self._floor.lenders))

    def device_idle(self, seat: Seat) -> None:
        """A device came or was given back."""
        if isinstance(seat.resource, Device) and seat.resource.lends_to is not None:
            self.hosts[seat.resource.lends_to] = None

    def looked_at(self, host: str) -> None:
        """Nothing (more) is to be lent to this host for now."""
        del self.hosts[host]

    def feeder_started(self, key: str, entry: LineEntry, at_s: float, due_s: float) -> None:
        """A stage runs whose lane needs this key at about that time."""
        if self._floor.lenders:
            self._first_due(key)
            heappush(self._due.setdefault(key, []), (due_s, entry.seq, at_s, entry.stage))

    def device_for(self, host: str, entry: LineEntry, at_s: float) -> Seat | None:
        """An idle device to lend to this stage.

        It must be back before it is wanted, unless hosts are scarcer than the device: then what
        waits for it meanwhile costs less than hosts gain. Callers have served all stages that
        wait for devices before they ask.
        """
        if host not in self._floor.hosts:
            return None
        for seat in self._floor.lenders.get(host, {}).values():
            if not seat.taken and seat.key is not None and self._worth_it(seat.key, entry, at_s):
                return seat
        return None

    def _worth_it(self, key: str, entry: LineEntry, at_s: float) -> bool:
        return self._pressure.hosts_scarcer_than(key) or self._short_enough(key, entry, at_s)

    def _short_enough(self, key: str, entry: LineEntry, at_s: float) -> bool:
        wait_s = self._wait_s(key, at_s)
        return wait_s is None or (entry.predicted_s or 0.0) <= TOLERANCE * wait_s

    def _wait_s(self, key: str, at_s: float) -> float | None:
        due_s = self._first_due(key)
        return None if due_s is None else max(0.0, due_s - at_s)

    def _first_due(self, key: str) -> float | None:
        """When the first running stage that leads to this key should end; None if none runs."""
        heap = self._due.get(key)
        while heap:
            due_s, _, started_s, stage = heap[0]
            if stage.state is STAGE_RUNNING and stage.started_s == started_s:
                return due_s
            heappop(heap)
        return None
