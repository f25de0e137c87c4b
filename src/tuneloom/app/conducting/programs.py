"""Programs: what a job does, as steps that the core schedules and the engine carries out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tuneloom.engine.calls import Call, CallResult
from tuneloom.scheduling.stages import JobTicket, StageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One stage with what it calls and what its end leads to.

    `ended` gets the result and the time and answers with the steps that became
    possible, or None: do this one again. A step that got lost with its machine is
    repeated without being asked: `call` is called again, `ended` hears nothing of it. One that was
    lost with as many devices or machines as it has `chances` is to blame itself: it ends as Raised.
    While the call runs, `overdue` is asked now and then, with the seconds that it has run and
    the time, whether to give it up; it then ends as TimedOut. `judges` says from the result what
    is wrong with the device, empty if nothing is: a fixed kernel tells of its device, not of itself.
    """

    request: StageRequest
    call: Callable[[], Call] = field(repr=False)
    ended: Callable[[CallResult, float], "Sequence[Step] | None"] = field(repr=False)
    overdue: Callable[[float, float], bool] | None = field(default=None, repr=False)
    judges: Callable[[CallResult], str] | None = field(default=None, repr=False)
    chances: int = 10


class Program(Protocol):
    """A job from its first step to its last; used by one thread."""

    ticket: JobTicket

    @property
    def done(self) -> bool:
        """Whether no step is left, running ones included."""

    def begin(self, at_s: float) -> Sequence[Step]:
        """The steps that can start at once."""

    def stopping(self) -> None:
        """No new work after this: what runs may end, then the job finishes with what it has."""

    def worker_lost(self, worker: str) -> None:
        """A named worker of this job is gone with what it kept; the next call to it finds a new one."""
