"""How jobs divide their time, which device key is the scarcest, and which will run dry."""

from collections import defaultdict
from dataclasses import dataclass, field

from tuneloom.scheduling.floor import Floor

STEPS_TO_COME = 64
"""How many more steps a job is thought to have that does not tell."""


@dataclass(slots=True)
class KeyUse:
    """One job on one device key: seconds spent, the fraction of its time, seconds to come."""

    spent_s: float = 0.0
    fraction: float = 0.0
    left_s: float = 0.0


@dataclass(slots=True)
class Appetite:
    """What one job spent where, and what it is expected to spend.

    `took_s` and `promised_s` tell how far its own forecasts are off: a new one is read
    as these teach. `expected_s` is the remaining time that was counted last, `host_fraction` the
    fraction of its time that it spends on hosts.
    """

    total_s: float = 0.0
    host_fraction: float = 0.0
    keys: dict[str, KeyUse] = field(default_factory=dict)
    host_left_s: float = 0.0
    expected_s: float = 0.0
    took_s: float = 0.0
    promised_s: float = 0.0

    def remaining_s(self, forecast_s: float | None, steps: int) -> float:
        """How long the job will go on, after so many steps; 0 if nobody knows.

        Of a job that forecasts nothing it is known how long its steps are. It is thought to
        have as many of them to come as any other: so jobs of longer steps are longer jobs.
        """
        if forecast_s is None:
            return STEPS_TO_COME * self.total_s / steps if steps else 0.0
        if self.promised_s > 0:
            return forecast_s * self.took_s / self.promised_s
        return forecast_s

    def compare(self, promised_s: float | None, took_s: float) -> None:
        """A stage took so long and had been forecast so long."""
        if promised_s is not None:
            self.took_s += took_s
            self.promised_s += promised_s


REFRESH = 32
WATCHED = 16


class Pressure:
    """Backlog and expected demand of every device key, kept up stage by stage."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._demand: defaultdict[str, float] = defaultdict(float)
        self._host_demand = 0.0
        self.backlog_s: defaultdict[str, float] = defaultdict(float)
        self._scarcest: list[str] = []
        self._asked = 0

    def used(self, appetite: Appetite, key: str | None, seconds: float) -> None:
        """A job spent time on a device of this key, or on a host."""
        appetite.total_s = total_s = appetite.total_s + seconds
        if key is not None:
            use = appetite.keys.get(key)
            if use is None:
                use = appetite.keys[key] = KeyUse()
            use.spent_s += seconds
        on_devices = 0.0
        for name, use in appetite.keys.items():
            fraction = use.spent_s / total_s if total_s > 0 else 0.0
            self._demand[name] += fraction - use.fraction
            use.fraction = fraction
            on_devices += fraction
        host_fraction = 1.0 - on_devices
        self._host_demand += host_fraction - appetite.host_fraction
        appetite.host_fraction = host_fraction

    def left(self, appetite: Appetite) -> None:
        """A job ended: it wants nothing any more."""
        for name, use in appetite.keys.items():
            self._demand[name] -= use.fraction
        self._host_demand -= appetite.host_fraction

    def queue(self, key: str, seconds: float) -> None:
        """Predicted work joined the line in front of a key."""
        self.backlog_s[key] += seconds

    def unqueue(self, key: str, seconds: float, *, empty: bool) -> None:
        """Predicted work left the line; an empty line has no rounding errors."""
        self.backlog_s[key] = 0.0 if empty else self.backlog_s[key] - seconds

    def runs_dry(self, key: str, within_s: float) -> bool:
        """Whether what waits for this key lasts less than that long."""
        devices = self._floor.devices.get(key)
        if not devices:
            return False
        return self.backlog_s.get(key, 0.0) <= within_s * len(devices)

    def hosts_scarcer_than(self, key: str) -> bool:
        """Whether jobs want more of each slot of a host than of each device of this key."""
        devices = self._floor.devices.get(key)
        slots = sum(host.slots for host in self._floor.hosts.values())
        if not devices or not slots:
            return False
        return self._host_demand / slots > self._demand.get(key, 0.0) / len(devices)

    def scarcest(self) -> list[str]:
        """The keys most in demand for their number of devices; refreshed now and then."""
        if self._asked % REFRESH == 0 or not self._scarcest:
            load = {
                key: self._demand.get(key, 0.0) / len(seats) for key, seats in self._floor.devices.items()
            }
            self._scarcest = sorted(load, key=load.__getitem__, reverse=True)[:WATCHED]
        self._asked += 1
        return self._scarcest
