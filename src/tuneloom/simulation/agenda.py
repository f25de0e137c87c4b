"""What will happen when, in a simulation."""

from dataclasses import dataclass
from heapq import heappop, heappush

from tuneloom.scheduling.messages import Event
from tuneloom.simulation.jobs import SimulatedJob
from tuneloom.simulation.sharing import Key


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
