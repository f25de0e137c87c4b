"""One stage after the other: what the three published strategies have in common."""

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.records import Job, Seat, Stage, StageState

StageName = tuple[str, int]


class StageGate:
    """Lets the parts of one stage through; the next stage waits until all of them are done.

    A stage is named by lane and step. Stages pass in the order in which their first
    part came. A part that was lost and comes again counts once.
    """

    def __init__(self) -> None:
        self.open: StageName | None = None
        self._parts: dict[StageName, dict[Stage, None]] = {}
        self._held: dict[Stage, None] = {}

    def admit(self, stage: Stage) -> list[Stage]:
        """Take a part in; the answer is what may start."""
        name = (stage.request.lane, stage.request.step)
        self._parts.setdefault(name, {})[stage] = None
        if self.open is None:
            self.open = name
        if name == self.open:
            return [stage]
        self._held[stage] = None
        return []

    def withdraw(self, stage: Stage) -> bool:
        """A part may not start for now; False if it had not been let through."""
        return self._held.pop(stage, self) is self

    def done(self, stage: Stage) -> list[Stage]:
        """A part finished; the answer is what may start because of it."""
        name = (stage.request.lane, stage.request.step)
        parts = self._parts[name]
        del parts[stage]
        if parts:
            return []
        del self._parts[name]
        if name != self.open:
            return []
        self.open = next(iter(self._parts), None)
        freed = [part for part in self._parts.get(self.open, ()) if part in self._held] if self.open else []
        for part in freed:
            del self._held[part]
        return freed

    def check(self) -> None:
        """Raise SchedulingError if a part of a closed stage runs."""
        for name, parts in self._parts.items():
            running = any(part.state is StageState.RUNNING for part in parts)
            if running and name != self.open:
                raise SchedulingError(f"broken invariant: step {name} runs before {self.open} is done")


class GatedPolicy:
    """A policy under which nothing of a job overlaps but the parts of one stage.

    `_waiting` are the stages that the gate of each job has let through; resources are read afresh at every
    choice, so there is nothing to note of them.
    """

    overlaps = False

    def __init__(self) -> None:
        self._floor = Floor()
        self._gates: dict[Job, StageGate] = {}
        self._waiting: dict[Job, dict[Stage, None]] = {}

    def attach(self, floor: Floor) -> None:
        self._floor = floor

    def job_entered(self, job: Job) -> None:
        self._gates[job] = StageGate()
        self._waiting[job] = {}

    def job_left(self, job: Job) -> None:
        del self._gates[job], self._waiting[job]

    def queued(self, stage: Stage, at_s: float) -> None:
        self._waiting[stage.job].update(dict.fromkeys(self._gates[stage.job].admit(stage)))

    def withdrawn(self, stage: Stage) -> None:
        if self._gates[stage.job].withdraw(stage):
            self._waiting[stage.job].pop(stage, None)

    def started(self, stage: Stage, at_s: float) -> None:
        del self._waiting[stage.job][stage]

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        if finished:
            self._waiting[stage.job].update(dict.fromkeys(self._gates[stage.job].done(stage)))

    def resource_came(self, seat: Seat) -> None:
        return

    def resource_went(self, seat: Seat) -> None:
        return

    def share_used(self, share: str, key: str, seconds: float) -> None:
        return

    def check(self) -> None:
        for gate in self._gates.values():
            gate.check()
