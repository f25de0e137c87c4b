"""Which jobs decide when everything ends: those whose own chain outlasts the work of all."""

from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.policies.load_aware.pressure import Appetite, KeyUse
from tuneloom.scheduling.records import Job

FIRST_FRACTION = 0.5
"""The part of a new job's time that it is thought to spend on its device keys."""

SHARPNESS = 2
"""How fast the weight of a chain falls when more work waits than it is long."""

GRADES = 8
"""Chains are told apart in so many grades: jobs that are nearly alike should not race each other."""

NEGLIGIBLE = 0.05
"""While others ask for less than this part of its own length, a chain loses nothing by sharing."""

STEADY = 0.9
"""An expectation that changed by less than this is not counted anew."""

LONGER = 1.2
"""A chain that is not so much longer than the average of all is one among equals."""

REFRESH = 32


class Chains:
    """Sums up what all jobs still want of every pool, and weighs each job's chain against it."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._left: dict[str, float] = {}
        self._host_left_s = 0.0
        self._drain_s = 0.0
        self._asked = 0
        self._slots = 1
        self._expected_s = 0.0
        self._jobs = 0

    def weight(self, appetite: Appetite, forecast_s: float | None, job: Job, steps: int) -> float:
        """How near a job's own remaining chain comes to the time all jobs need to drain, 0 to 1.

        Such a job decides when everything ends, so it should never wait; while much more
        work waits for the resources than its chain is long, it may wait like others.
        """
        remaining_s = appetite.remaining_s(forecast_s, steps)
        if remaining_s <= 0:
            return 0.0
        change = remaining_s / appetite.expected_s if appetite.expected_s else 0.0
        if not STEADY <= change <= (1.0 if forecast_s is not None else 1.0 / STEADY):
            self._expect(appetite, remaining_s, job)
        elif forecast_s is None:
            remaining_s = appetite.expected_s
        self._asked += 1
        if self._asked % REFRESH == 1:
            self._drain_s = self._drain()
        if remaining_s * self._jobs < LONGER * self._expected_s:
            return 0.0
        return self._weigh(appetite, remaining_s)

    def _weigh(self, appetite: Appetite, remaining_s: float) -> float:
        weight = 1.0
        if remaining_s < self._drain_s:
            weight = round(GRADES * (remaining_s / self._drain_s) ** SHARPNESS) / GRADES
        if weight and self._others_s(appetite) < NEGLIGIBLE * remaining_s:
            return 0.0
        return weight

    def left(self, appetite: Appetite) -> None:
        """A job ended: it wants nothing any more."""
        self._jobs -= appetite.expected_s > 0
        self._expected_s -= appetite.expected_s
        self._host_left_s -= appetite.host_left_s
        for name, use in appetite.keys.items():
            self._left[name] = self._left.get(name, 0.0) - use.left_s

    def _expect(self, appetite: Appetite, remaining_s: float, job: Job) -> None:
        """Count what this job will still use of every pool."""
        self._jobs += not appetite.expected_s
        self._expected_s += remaining_s - appetite.expected_s
        appetite.expected_s = remaining_s
        if not appetite.keys:
            appetite.keys = {key: KeyUse() for key in sorted(job.ticket.device_keys)}
        rest = 1.0
        for key, use in appetite.keys.items():
            fraction = use.fraction or FIRST_FRACTION / len(appetite.keys)
            left_s, rest = remaining_s * fraction, rest - fraction
            self._left[key] = self._left.get(key, 0.0) + left_s - use.left_s
            use.left_s = left_s
        host_left_s = remaining_s * rest if rest > 0 else 0.0
        self._host_left_s += host_left_s - appetite.host_left_s
        appetite.host_left_s = host_left_s

    def _others_s(self, appetite: Appetite) -> float:
        """How long the pools that this job uses need for what all others will ask of them."""
        longest_s = (self._host_left_s - appetite.host_left_s) / self._slots
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
