"""What will happen when in a simulation, and stages that share a resource on purpose."""

from dataclasses import dataclass
from heapq import heappop, heappush

from tuneloom.scheduling.messages import Event
from tuneloom.simulation.jobs import SimulatedJob

Key = tuple[str, str]


class SharedResource:
    """A resource under shared grants: with n times its slots in use, everything takes n times as long.

    All holders advance at the same rate, so one figure, the progress since the start,
    tells when each of them ends.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._taken: dict[Key, int] = {}
        self._in_use = 0
        self._progress_s = 0.0
        self._changed_s = 0.0
        self._ends: list[tuple[float, int, Key]] = []
        self._serial: dict[Key, int] = {}
        self._count = 0
        self.version = 0

    def enter(self, key: Key, slots: int, seconds: float, at_s: float) -> None:
        """A stage starts that would take so long alone."""
        self._advance(at_s)
        self._count += 1
        self._taken[key] = slots
        self._in_use += slots
        self._serial[key] = self._count
        heappush(self._ends, (self._progress_s + seconds, self._count, key))

    def leave(self, key: Key, at_s: float) -> None:
        """A stage ended or was stopped."""
        self._advance(at_s)
        self._in_use -= self._taken.pop(key)
        del self._serial[key]

    def next_end(self) -> tuple[float, Key] | None:
        """When, and which stage, ends next if nobody comes or goes before."""
        while self._ends and self._serial.get(self._ends[0][2]) != self._ends[0][1]:
            heappop(self._ends)
        if not self._ends:
            return None
        progress_s, _, key = self._ends[0]
        return self._changed_s + max(0.0, progress_s - self._progress_s) * self._slowdown, key

    @property
    def _slowdown(self) -> float:
        return max(1.0, self._in_use / self._slots)

    def _advance(self, at_s: float) -> None:
        self._progress_s += (at_s - self._changed_s) / self._slowdown
        self._changed_s = at_s
        self.version += 1


@dataclass(frozen=True, slots=True)
class SharedEnd:
    """Somebody on this shared resource ends, unless its holders have changed since."""

    resource: str
    version: int


@dataclass(frozen=True, slots=True)
class StageEnd:
    """A stage ends well or is lost, unless this run of it was stopped before."""

    key: Key
    run: int
    lost: bool


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job is submitted."""

    job: SimulatedJob


Happening = Event | Arrival | SharedEnd | StageEnd


class Agenda:
    """Happenings by time; those of one moment in the order in which they were planned."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Happening]] = []
        self._planned = 0
        self.now_s = 0.0

    def plan(self, at_s: float, happening: Happening) -> None:
        """Something will happen."""
        self._planned += 1
        heappush(self._heap, (at_s, self._planned, happening))

    def next(self) -> Happening | None:
        """Move the clock to the next happening; None if nothing is left."""
        if not self._heap:
            return None
        self.now_s, _, happening = heappop(self._heap)
        return happening
