"""Programs: what a job does, as steps that the core schedules; those that are to come, and those that run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tuneloom.engine.calls import Call, CallResult
from tuneloom.model import StageKind
from tuneloom.scheduling.stages import ANY_CORE, Demand, JobTicket, StageRequest


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
    One that is `needless` when its turn comes, by the time, is not called and ends as Returned(None).
    """

    request: StageRequest
    call: Callable[[], Call] = field(repr=False)
    ended: Callable[[CallResult, float], "Sequence[Step] | None"] = field(repr=False)
    overdue: Callable[[float, float], bool] | None = field(default=None, repr=False)
    judges: Callable[[CallResult], str] | None = field(default=None, repr=False)
    needless: Callable[[float], bool] | None = field(default=None, repr=False)
    chances: int = 10

    def leading_to(self, ended: Callable[[CallResult, float], "Sequence[Step] | None"]) -> "Step":
        """The same step with another end."""
        return Step(
            request=self.request,
            call=self.call,
            ended=ended,
            overdue=self.overdue,
            judges=self.judges,
            needless=self.needless,
            chances=self.chances,
        )


def single_step(
    job: str,
    name: str,
    call: Callable[[], Call],
    ended: Callable[[CallResult, float], "Sequence[Step] | None"],
    *,
    kind: str = StageKind.INITIALISE,
    needs: Demand = ANY_CORE,
    **more: Any,
) -> Step:
    """A step in a lane of its own, or in the one among what else is said of its request."""
    lane: dict[str, Any] = {"lane": name, "step": 0, "then": ANY_CORE}
    request = StageRequest(id=name, job=job, kind=str(kind), needs=needs, **{**lane, **more})
    return Step(request=request, call=call, ended=ended)


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


class Arrivals:
    """Programs by the time at which they come; what is wanted of one counts even before it is added."""

    def __init__(self) -> None:
        self._coming: list[tuple[float, Program]] = []
        self._paused: set[str] = set()
        self._priorities: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._coming)

    @property
    def next_s(self) -> float:
        """When the next one comes; infinite if none will."""
        return self._coming[0][0] if self._coming else float("inf")

    def add(self, program: Program, at_s: float) -> None:
        """Let a program come at some time."""
        priority = self._priorities.pop(program.ticket.id, None)
        if priority is not None:
            program.ticket = replace(program.ticket, priority=priority)
        self._coming.append((at_s, program))
        self._coming.sort(key=lambda pair: pair[0])

    def come(self, now_s: float) -> Iterator[Program]:
        """The programs whose time has come; they are not here any more."""
        while self._coming and self._coming[0][0] <= now_s:
            yield self._coming.pop(0)[1]

    def cancel(self, job: str) -> bool:
        """Let a job never come, and forget what was wanted of it; whether it was to come."""
        self._paused.discard(job)
        self._priorities.pop(job, None)
        staying = [pair for pair in self._coming if pair[1].ticket.id != job]
        was_coming = len(staying) < len(self._coming)
        self._coming = staying
        return was_coming

    def pause(self, job: str) -> None:
        """Let a job come paused."""
        self._paused.add(job)

    def resume(self, job: str) -> None:
        """Let a job come as it is."""
        self._paused.discard(job)

    def is_paused(self, job: str) -> bool:
        return job in self._paused

    def prioritise(self, job: str, priority: int) -> None:
        """Let a job come with this priority, whether its program is here already or is yet to be added."""
        coming = [program for _, program in self._coming if program.ticket.id == job]
        for program in coming:
            program.ticket = replace(program.ticket, priority=priority)
        if not coming:
            self._priorities[job] = priority


class RunningPrograms:
    """Programs by job; an error in the code of one, or of what it keeps, is noted and ends its job alone."""

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}
        self._errors: dict[str, Exception] = {}

    def __bool__(self) -> bool:
        return bool(self._programs)

    def __contains__(self, job: str) -> bool:
        return job in self._programs

    def __getitem__(self, job: str) -> Program:
        return self._programs[job]

    def add(self, program: Program) -> None:
        """A job begins."""
        self._programs[program.ticket.id] = program

    def remove(self, job: str) -> Exception | None:
        """A job ended; the answer is the error that ended it, if one did."""
        self._programs.pop(job, None)
        return self._errors.pop(job, None)

    def worker_lost(self, job: str, worker: str) -> None:
        """Tell a program that what a worker kept for it is gone."""
        if job in self._programs:
            with self.blaming(job):
                self._programs[job].worker_lost(worker)

    @contextmanager
    def blaming(self, job: str) -> Iterator[None]:
        """Note what is raised as the error of a job."""
        try:
            yield
        except Exception as error:
            self._errors[job] = error

    def blame(self, job: str, error: Exception) -> None:
        """Note an error of a job."""
        self._errors[job] = error

    def is_broken(self, job: str) -> bool:
        """Whether an error of a job was noted."""
        return job in self._errors

    @property
    def broken(self) -> list[str]:
        """The jobs that have to be ended because of an error."""
        return list(self._errors)
