"""What a policy is: it hears what happens and says which waiting stage starts next, and where."""

from typing import Protocol

from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.records import Job, Seat, Stage
from tuneloom.scheduling.stages import Grant

Choice = tuple[Stage, Grant]
"""A decision: this waiting stage gets this grant now."""


class Policy(Protocol):
    """Chooses among waiting stages; driven by one core, called by one thread.

    The core keeps the books. After every event it calls `choose` until that returns
    None; each choice is carried out and told through `started` before the next call.
    A policy must not change stages, jobs (but for their `notes`) or the floor, must not look at a clock,
    and must give the same answers to the same calls.
    """

    name: str
    overlaps: bool
    """Whether it gives one resource to several stages at once on purpose; False for all but `synchronous`."""

    def attach(self, floor: Floor) -> None:
        """Meet the resources; called once, before anything else."""

    def job_entered(self, job: Job) -> None:
        """A job was accepted; its stages follow."""

    def job_left(self, job: Job) -> None:
        """A job ended; everything about it may be forgotten."""

    def queued(self, stage: Stage, at_s: float) -> None:
        """A stage may start from now on; also after it was lost or its job was resumed."""

    def withdrawn(self, stage: Stage) -> None:
        """A waiting stage may not start any more, for now or for ever."""

    def started(self, stage: Stage, at_s: float) -> None:
        """A choice was carried out."""

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        """A running stage gave back what it held; not finished: it was lost or stopped."""

    def resource_came(self, seat: Seat) -> None:
        """A host or device is new."""

    def resource_went(self, seat: Seat) -> None:
        """A host or device is gone; the ends of its stages have been told already."""

    def share_used(self, share: str, key: str, seconds: float) -> None:
        """Jobs of a share used devices of a key elsewhere; a policy without shares ignores it."""

    def choose(self, at_s: float) -> Choice | None:
        """The next stage to start, or None if nothing should start now."""

    def check(self) -> None:
        """Raise SchedulingError if the policy's own books are wrong."""
