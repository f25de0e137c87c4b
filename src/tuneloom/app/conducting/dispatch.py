"""What the core decides, carried out command by command."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from tuneloom.app.conducting.inbox import Inbox
from tuneloom.app.conducting.inventory import Inventory
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.programs import RunningPrograms
from tuneloom.app.conducting.underway import StepUnderway, Underway, call_id
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Raised, Returned
from tuneloom.errors import SchedulingError
from tuneloom.scheduling import Core
from tuneloom.scheduling.messages import (
    Command,
    Event,
    FinishJob,
    JobCancelled,
    JobSubmitted,
    RefuseJob,
    StageFinished,
    StartStage,
    StopStage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """A job holds nothing any more: it finished, was cancelled, was refused, or its own code raised."""

    job: str
    cancelled: bool = False
    refusal: str = ""
    error: Exception | None = None

    def tell(self, listener: Listener) -> None:
        """Let somebody know."""
        if self.error is not None:
            listener.job_failed(self.job, self.error)
        elif self.refusal:
            listener.job_refused(self.job, self.refusal)
        else:
            listener.job_ended(self.job, cancelled=self.cancelled)


class Outbox:
    """Commands in the order in which they came; what could not be carried out because of an error waits.

    Whoever iterates takes out: nothing is carried out twice, and whatever happens meanwhile may add more.
    """

    def __init__(self) -> None:
        self._starts: dict[str, StartStage] = {}
        self._ends: deque[JobEnd] = deque()

    def __bool__(self) -> bool:
        return bool(self._starts or self._ends)

    def start(self, call_id: str, command: StartStage) -> None:
        """A stage is to be started."""
        self._starts[call_id] = command

    def drop_start(self, call_id: str) -> bool:
        """A stage is not to be started after all; whether it was to be."""
        return self._starts.pop(call_id, None) is not None

    def end(self, end: JobEnd) -> None:
        """The end of a job is to be told."""
        self._ends.append(end)

    def drop_end(self, job: str) -> None:
        """The end of a job is not to be told after all."""
        self._ends = deque(end for end in self._ends if end.job != job)

    def starts(self) -> Iterator[tuple[str, StartStage]]:
        """The stages to start; they are not here any more."""
        while self._starts:
            call_id = next(iter(self._starts))
            yield call_id, self._starts.pop(call_id)

    def ends(self) -> Iterator[JobEnd]:
        """The ends to tell; they are not here any more."""
        while self._ends:
            yield self._ends.popleft()


class Dispatch:
    """Tells the core what happened, notes what it answers, and carries that out when asked to.

    Noting changes tables in memory and stops calls; nothing is started or written. Carrying out has three
    parts: what programs kept is committed, stages are started, and ends of jobs are told. An error in one
    of them leaves the rest noted: the next `carry_out` goes on with it.
    """

    def __init__(self, core: Core, engine: Engine, listener: Listener) -> None:
        self.core = core
        self.inbox = Inbox(engine)
        self.programs = RunningPrograms()
        self.underway = Underway()
        self.zero_s = engine.now_s()
        self.inventory = Inventory(engine, listener, self.programs, self.tell, self.now_s)
        self._engine = engine
        self._listener = listener
        self._outbox = Outbox()

    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._engine.now_s() - self.zero_s

    def tell(self, event: Event) -> None:
        """Let the core decide what follows from an event; an event that makes no sense is its job's error."""
        try:
            commands = self.core.handle(event)
        except SchedulingError as error:
            if not isinstance(event, JobSubmitted | StageFinished):
                raise
            self.programs.blame(event.ticket.id if isinstance(event, JobSubmitted) else event.job, error)
            return
        self._listener.happened(event, commands)
        for command in commands:
            self._note(command)

    def note_end(self, end: JobEnd) -> None:
        """Let the end of a job be told that never began."""
        self._outbox.end(end)

    def abandon(self, job: str) -> None:
        """End a job that is not ours any more; nobody is told."""
        self.programs.remove(job)
        self._outbox.drop_end(job)
        if job in self.core.jobs:
            self.tell(JobCancelled(at_s=self.now_s(), job=job))

    def back_in_line(self, out: StepUnderway) -> None:
        """A step was lost: it waits again, and what its worker kept is gone."""
        call = out.wait_again(self.now_s())
        if call is not None and call.worker is not None and call.place is not None:
            self.inventory.worker_gone(call.worker, call.place.machine)

    def carry_out(self) -> None:
        """Commit what programs kept, then start stages, then tell of jobs that ended."""
        self._end_broken()
        self._listener.commit()
        while self._outbox:
            for id, command in self._outbox.starts():
                self._start(id, command)
            for end in self._outbox.ends():
                end.tell(self._listener)
            self._end_broken()

    def _note(self, command: Command) -> None:
        match command:
            case StartStage():
                id = call_id(command.request.job, command.request.id)
                self.underway[id].grant = command.grant
                self._outbox.start(id, command)
            case StopStage():
                self._stop(call_id(command.job, command.stage))
            case FinishJob():
                self._ended(JobEnd(job=command.job, cancelled=command.cancelled))
            case RefuseJob():
                self._ended(JobEnd(job=command.job, refusal=command.reason))
            case _:
                assert_never(command)

    def _start(self, id: str, command: StartStage) -> None:
        job, out = command.request.job, self.underway[id]
        if self.programs.is_broken(job):
            return
        try:
            out.needless = out.step.needless is not None and out.step.needless(self.now_s())
            out.call = self.inventory.placing.placed(out.step.call(), job, command.grant.resource)
        except Exception as error:
            self.programs.blame(job, error)
            return
        out.started_s = self.now_s()
        if out.needless:
            self.inbox.ended_here(id, Returned(value=None))
        elif out.losses < out.step.chances:
            self._engine.start(id, out.call)
        else:  # it takes every device or machine along: end it, before it has taken them all
            lost = f"its device or machine was lost {out.losses} times"
            self.inbox.ended_here(id, Raised(error=lost, trace=""))

    def _stop(self, id: str) -> None:
        self.inbox.stop(id)
        out = self.underway.get(id)
        if out is not None:
            out.losses += not self._outbox.drop_start(id)
            self.back_in_line(out)

    def _end_broken(self) -> None:
        """End the jobs whose code raised; the core hears that they were cancelled."""
        for job in self.programs.broken:
            if job in self.core.jobs:
                self.tell(JobCancelled(at_s=self.now_s(), job=job))
            else:
                self._ended(JobEnd(job=job))

    def _ended(self, end: JobEnd) -> None:
        """Forget a job; its end is told later, unless it was abandoned."""
        known, error = end.job in self.programs, self.programs.remove(end.job)
        for id in self.underway.remove_job(end.job):
            self._outbox.drop_start(id)
            self.inbox.stop(id)
        for worker in self.inventory.placing.forget_job(end.job):
            self._engine.release(worker)
        if known:
            self._outbox.end(end if error is None else JobEnd(job=end.job, error=error))
