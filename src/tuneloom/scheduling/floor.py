"""The shop floor: which host slots and devices there are, and who holds them."""

from heapq import heapify, heappop, heappush

from tuneloom.errors import PolicyError, SchedulingError
from tuneloom.model import Device, Host
from tuneloom.scheduling.records import Seat, Stage
from tuneloom.scheduling.stages import Demand, DeviceDemand, Grant


class Floor:
    """All resources present; changed by the core alone, read by policies."""

    def __init__(self) -> None:
        self.seats: dict[str, Seat] = {}
        self.hosts: dict[str, Seat] = {}
        self.devices: dict[str, dict[str, Seat]] = {}
        self.lenders: dict[str, dict[str, Seat]] = {}
        self.widest = 0
        self._added = 0
        self._idle: dict[str, list[tuple[int, Seat]]] = {}
        self._roomy: list[tuple[int, int, Seat]] = []

    def add(self, resource: Host | Device, at_s: float) -> Seat:
        """Bring a resource in; raises SchedulingError if its name is taken."""
        if resource.name in self.seats:
            raise SchedulingError(f"there is a resource named {resource.name!r} already; names must differ")
        self._require_own_host(resource)
        self._added += 1
        if isinstance(resource, Host):
            seat = Seat(resource, self._added, resource.slots, None, changed_s=at_s)
            self.hosts[resource.name] = seat
            self.widest = max(self.widest, seat.slots)
        else:
            seat = Seat(resource, self._added, 1, resource.key, changed_s=at_s)
            self.devices.setdefault(resource.key, {})[resource.name] = seat
            if resource.lends_to is not None:
                self.lenders.setdefault(resource.lends_to, {})[resource.name] = seat
        self.seats[resource.name] = seat
        self._offer(seat)
        return seat

    def remove(self, name: str) -> Seat:
        """Take a resource out with whatever it still lists as holders."""
        seat = self.seats.pop(name, None)
        if seat is None:
            known = ", ".join(repr(other) for other in self.seats) or "none"
            raise SchedulingError(f"no resource named {name!r}; known: {known}")
        seat.present = False
        resource = seat.resource
        if isinstance(resource, Host):
            del self.hosts[name]
            self.widest = max((host.slots for host in self.hosts.values()), default=0)
            return seat
        del self.devices[resource.key][name]
        if not self.devices[resource.key]:
            del self.devices[resource.key]
        if resource.lends_to is not None:
            del self.lenders[resource.lends_to][name]
        return seat

    def take(self, stage: Stage, grant: Grant, at_s: float) -> Seat:
        """Give a grant out; raises PolicyError if that would disturb another holder."""
        seat = self.seats.get(grant.resource)
        if seat is None:
            raise PolicyError(f"a stage was granted {grant.resource!r}, which is not here")
        if not grant.shared and grant.slots > seat.slots - seat.taken:
            raise PolicyError(f"{grant.slots} slots of {grant.resource!r} granted, {seat.free} are free")
        seat.advance(at_s)
        seat.holders[stage] = grant.slots
        seat.taken += grant.slots
        stage.seat = seat
        self._offer(seat)
        return seat

    def release(self, stage: Stage, at_s: float) -> Seat | None:
        """Take back what a stage holds; None if its resource is gone."""
        seat = stage.seat
        if seat is None or not seat.present:
            return None
        seat.advance(at_s)
        seat.taken -= seat.holders.pop(stage)
        self._offer(seat)
        return seat

    def idle_device(self, key: str) -> Seat | None:
        """The idle device of this key that was added first."""
        heap = self._idle.get(key)
        while heap:
            seat = heap[0][1]
            if not seat.taken and seat.present:
                return seat
            heappop(heap)
            seat.listed = False
        return None

    def roomiest_host(self) -> Seat | None:
        """The host with the most free slots, if any slot is free."""
        heap = self._roomy
        while heap:
            negative, _, seat = heap[0]
            if seat.slots - seat.taken == -negative and seat.present:
                return seat
            heappop(heap)
        return None

    def host_of_machine(self, machine: str) -> str | None:
        """The host of a machine, if it has one."""
        return next((name for name, seat in self.hosts.items() if seat.resource.machine == machine), None)

    def could_ever(self, needs: Demand) -> bool:
        """Whether a resource that is present could serve this once it is free."""
        if isinstance(needs, DeviceDemand):
            return needs.key in self.devices
        if needs.host is None:
            return needs.slots <= self.widest
        host = self.hosts.get(needs.host)
        return host is not None and needs.slots <= host.slots

    def _require_own_host(self, resource: Host | Device) -> None:
        """Raise SchedulingError for a device that would lend to a host of another machine."""
        lends_to = resource.lends_to if isinstance(resource, Device) else None
        host = self.hosts.get(lends_to) if lends_to is not None else None
        if host is not None and host.resource.machine != resource.machine:
            raise SchedulingError(
                f"device {resource.name!r} of machine {resource.machine!r} can't lend to {lends_to!r}, "
                f"which is on machine {host.resource.machine!r}"
            )

    def _offer(self, seat: Seat) -> None:
        if seat.key is not None:
            if not seat.taken and not seat.listed:
                seat.listed = True
                heappush(self._idle.setdefault(seat.key, []), (seat.order, seat))
            return
        free = seat.slots - seat.taken
        if free > 0:
            heappush(self._roomy, (-free, seat.order, seat))
        if len(self._roomy) > 64 + 4 * len(self.hosts):
            self._roomy = [(-host.free, host.order, host) for host in self.hosts.values() if host.free > 0]
            heapify(self._roomy)
