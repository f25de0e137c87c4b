"""Which device key is the scarcest, and which will run dry."""

import math
from dataclasses import dataclass, field

from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.records import Job
from tuneloom.scheduling.stages import StageRequest

HOSTS = ""
"""The pool name of all host slots; device pools are named by their key."""

FIRST_SHARE = 0.5
"""The part of a new job's time that it is thought to spend on its device keys."""

SHARPNESS = 2
"""How fast the weight of a chain falls when more work waits than it is long."""

GRADES = 4
"""Chains are told apart in so many grades: jobs that are nearly alike should not race each other."""

NEGLIGIBLE = 0.05
"""While others ask for less than this part of its own length, a chain loses nothing by sharing."""

STEADY = 0.75
"""A forecast that fell by less than this is not counted anew."""

REFRESH = 32
WATCHED = 16


@dataclass(slots=True)
class KeyUse:
    """One job on one device key: seconds spent, the share of its time, seconds to come."""

    spent_s: float = 0.0
    share: float = 0.0
    left_s: float = 0.0


@dataclass(slots=True)
class Appetite:
    """How one job divides its time between hosts and device keys, and how much is left of it.

    `took_s` and `promised_s` tell how far its own forecasts are off: a new one is read
    as these teach.
    """

    total_s: float = 0.0
    keys: dict[str, "KeyUse"] = field(default_factory=dict)
    host_left_s: float = 0.0
    expected_s: float = math.inf
    took_s: float = 0.0
    promised_s: float = 0.0

    def compare(self, promised_s: float | None, took_s: float) -> None:
        """A stage took so long and had been forecast so long."""
        if promised_s is not None:
            self.took_s += took_s
            self.promised_s += promised_s


class Pressure:
    """Backlog and expected demand of every device key, kept up stage by stage."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._demand: dict[str, float] = {}
        self.backlog_s: dict[str, float] = {}
        self._scarcest: list[str] = []
        self._asked = 0
        self._left: dict[str, float] = {}
        self._host_left_s = 0.0
        self._drain_s = 0.0
        self._drained = 0
        self._slots = 1

    def used(self, appetite: Appetite, key: str | None, seconds: float) -> None:
        """A job spent time on a device of this key, or on a host."""
        appetite.total_s = total_s = appetite.total_s + seconds
        if key is not None:
            use = appetite.keys.get(key)
            if use is None:
                use = appetite.keys[key] = KeyUse()
            use.spent_s += seconds
        if total_s <= 0:
            return
        for name, use in appetite.keys.items():
            share = use.spent_s / total_s
            self._demand[name] = self._demand.get(name, 0.0) + share - use.share
            use.share = share

    def left(self, appetite: Appetite) -> None:
        """A job ended: it wants nothing any more."""
        self._host_left_s -= appetite.host_left_s
        for name, use in appetite.keys.items():
            self._demand[name] = self._demand.get(name, 0.0) - use.share
            self._left[name] = self._left.get(name, 0.0) - use.left_s

    def weight_of_chain(self, appetite: Appetite, request: StageRequest, job: Job) -> float:
        """How near a job's own remaining chain comes to the time all jobs need to drain, 0 to 1.

        Such a job decides when everything ends, so it should never wait; while much more
        work waits for the resources than its chain is long, it may wait like others.
        """
        remaining_s = request.remaining_s
        if remaining_s is None or remaining_s <= 0:
            return 0.0
        if appetite.promised_s > 0:
            remaining_s *= appetite.took_s / appetite.promised_s
        if not STEADY < remaining_s / appetite.expected_s <= 1.0:
            self._expect(appetite, remaining_s, job)
        self._drained += 1
        if self._drained % REFRESH == 1:
            self._drain_s = self._drain()
        if self._others_s(appetite) < NEGLIGIBLE * remaining_s:
            return 0.0
        if remaining_s >= self._drain_s:
            return 1.0
        return round(GRADES * (remaining_s / self._drain_s) ** SHARPNESS) / GRADES

    def _expect(self, appetite: Appetite, remaining_s: float, job: Job) -> None:
        """Count what this job will still use of every pool."""
        appetite.expected_s = remaining_s
        if not appetite.keys:
            appetite.keys = {key: KeyUse() for key in sorted(job.ticket.device_keys)}
        rest = 1.0
        for key, use in appetite.keys.items():
            share = use.share or FIRST_SHARE / len(appetite.keys)
            left_s, rest = remaining_s * share, rest - share
            self._left[key] = self._left.get(key, 0.0) + left_s - use.left_s
            use.left_s = left_s
        host_left_s = remaining_s * max(0.0, rest)
        self._host_left_s += host_left_s - appetite.host_left_s
        appetite.host_left_s = host_left_s

    def _others_s(self, appetite: Appetite) -> float:
        """How long the pools that this job uses need for what all others will ask of them."""
        own_s = appetite.host_left_s
        longest_s = (self._host_left_s - own_s) / self._slots
        for key, use in appetite.keys.items():
            devices = len(self._floor.devices.get(key, ())) or 1
            longest_s = max(longest_s, (self._left.get(key, 0.0) - use.left_s) / devices)
        return longest_s

    def _drain(self) -> float:
        """How long the busiest pool needs for all that is known to come."""
        self._slots = max(1, sum(host.slots for host in self._floor.hosts.values()))
        times = [self._host_left_s / self._slots]
        times += [self._left.get(key, 0.0) / len(seats) for key, seats in self._floor.devices.items()]
        return max(times)

    def queue(self, key: str, seconds: float) -> None:
        """Predicted work joined the line in front of a key."""
        self.backlog_s[key] = self.backlog_s.get(key, 0.0) + seconds

    def unqueue(self, key: str, seconds: float, *, empty: bool) -> None:
        """Predicted work left the line; an empty line has no rounding errors."""
        self.backlog_s[key] = 0.0 if empty else self.backlog_s[key] - seconds

    def runs_dry(self, key: str, within_s: float) -> bool:
        """Whether what waits for this key lasts less than that long."""
        devices = self._floor.devices.get(key)
        if not devices:
            return False
        return self.backlog_s.get(key, 0.0) <= within_s * len(devices)

    def scarcest(self) -> list[str]:
        """The keys most in demand for their number of devices; refreshed now and then."""
        if self._asked % REFRESH == 0 or not self._scarcest:
            load = {
                key: self._demand.get(key, 0.0) / len(seats) for key, seats in self._floor.devices.items()
            }
            self._scarcest = sorted(load, key=lambda key: -load[key])[:WATCHED]
        self._asked += 1
        return self._scarcest
