"""The loop that joins core, engine and programs: ends of calls in, starts of calls out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tuneloom.app.conducting.machine import Machine
from tuneloom.app.conducting.programs import Program, Step
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallEnded
from tuneloom.model import Device, Host
from tuneloom.scheduling import Core
from tuneloom.scheduling.messages import (
    Command,
    Event,
    FinishJob,
    JobCancelled,
    JobPaused,
    JobResumed,
    JobSubmitted,
    RefuseJob,
    ResourceAdded,
    StageFinished,
    StageLost,
    StartStage,
    StopStage,
)
from tuneloom.scheduling.stages import Grant

_BEAT_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stage that ran: where, when, and since when it could have. Seconds of the run's clock."""

    job: str
    task: str
    kind: str
    resource: str
    slots: int
    ready_s: float
    start_s: float
    end_s: float


@dataclass(slots=True)
class _Out:
    """A step that is with the core or the engine."""

    step: Step
    ready_s: float
    grant: Grant | None = None


class Listener:
    """What the conductor tells; override what matters."""

    def happened(self, event: Event) -> None:
        """An event went into the core."""

    def ran(self, span: Span) -> None:
        """A stage came to its end."""

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        """A job holds nothing any more."""

    def job_refused(self, job: str, reason: str) -> None:
        """The core does not take a job."""

    def beat(self, now_s: float) -> None:
        """About four times a second, and after every event."""


class Conductor:
    """Runs programs until all have ended; one thread, no locks."""

    def __init__(self, core: Core, engine: Engine, machine: Machine, listener: Listener) -> None:
        self.core = core
        self._engine = engine
        self._cores = machine.cores
        self._residents = machine.residents
        self._listener = listener
        self._programs: dict[str, Program] = {}
        self._out: dict[str, _Out] = {}
        self._coming: list[tuple[float, Program]] = []
        self._held: set[str] = set()
        self._zero_s = engine.now_s()

    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._engine.now_s() - self._zero_s

    def add_resource(self, resource: Host | Device) -> None:
        self._tell(ResourceAdded(at_s=self.now_s(), resource=resource))

    def submit(self, program: Program, at_s: float = 0.0) -> None:
        """Take a program in, now or when its time comes."""
        self._coming.append((at_s, program))
        self._coming.sort(key=lambda pair: pair[0])

    def cancel(self, job: str) -> None:
        if any(program.ticket.id == job for _, program in self._coming):
            self._coming = [(at_s, p) for at_s, p in self._coming if p.ticket.id != job]
            self._listener.job_ended(job, cancelled=True)
        self._tell_if_known(job, JobCancelled(at_s=self.now_s(), job=job))

    def pause(self, job: str) -> None:
        """Start no new stage of a job; one that has yet to come will come paused."""
        self._held.add(job)
        self._tell_if_known(job, JobPaused(at_s=self.now_s(), job=job))

    def resume(self, job: str) -> None:
        self._held.discard(job)
        self._tell_if_known(job, JobResumed(at_s=self.now_s(), job=job))

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is to come."""
        return not self._programs and not self._coming

    def run(self, keep_waiting: Callable[[], bool] = lambda: False) -> None:
        """Go on until every job has ended and nobody asks to keep waiting."""
        while not self.idle or keep_waiting():
            self._admit()
            self._listener.beat(self.now_s())
            for ended in self._engine.poll(self._patience_s()):
                self._call_ended(ended)
                self._listener.beat(self.now_s())

    def _patience_s(self) -> float:
        if not self._coming:
            return _BEAT_S
        return max(0.0, min(_BEAT_S, self._coming[0][0] - self.now_s()))

    def _admit(self) -> None:
        while self._coming and self._coming[0][0] <= self.now_s():
            _, program = self._coming.pop(0)
            self._programs[program.ticket.id] = program
            now_s = self.now_s()
            steps = program.begin(now_s)
            self._note(program.ticket.id, steps, now_s)
            ready = tuple(step.request for step in steps)
            self._tell(JobSubmitted(at_s=now_s, ticket=program.ticket, ready=ready))
            if program.ticket.id in self._held:
                self.pause(program.ticket.id)

    def _note(self, job: str, steps: Sequence[Step], now_s: float) -> None:
        for step in steps:
            self._out[_call_id(job, step.request.id)] = _Out(step, now_s)

    def _tell_if_known(self, job: str, event: Event) -> None:
        if job in self._programs:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._listener.happened(event)
        for command in self.core.handle(event):
            self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case StartStage():
                self._start(command)
            case StopStage():
                self._engine.stop(_call_id(command.job, command.stage))
            case FinishJob():
                self._forget(command.job)
                self._listener.job_ended(command.job, cancelled=command.cancelled)
            case RefuseJob():
                self._forget(command.job)
                self._listener.job_refused(command.job, command.reason)

    def _start(self, command: StartStage) -> None:
        call_id = _call_id(command.request.job, command.request.id)
        out = self._out[call_id]
        out.grant = command.grant
        self._engine.start(call_id, self._placed(out.step.call(), command.grant.resource))

    def _placed(self, call: Call, resource: str) -> Call:
        """A call where its resource is: on its cores, or in the one process that owns a GPU."""
        if call.worker is None and resource in self._residents:
            return replace(call, worker=f"resident:{resource}", memory_bytes=None)
        return replace(call, cores=self._cores.get(resource))

    def _call_ended(self, ended: CallEnded) -> None:
        out = self._out.get(ended.id)
        if out is None or out.grant is None:
            return
        request = out.step.request
        self._report(out, ended)
        now_s = self.now_s()
        following = out.step.ended(ended.result, now_s)
        if following is None:
            out.ready_s = now_s
            self._tell(StageLost(at_s=now_s, job=request.job, stage=request.id))
            return
        del self._out[ended.id]
        self._note(request.job, following, now_s)
        ready = tuple(step.request for step in following)
        done = self._programs[request.job].done
        self._tell(StageFinished(at_s=now_s, job=request.job, stage=request.id, ready=ready, done=done))

    def _report(self, out: _Out, ended: CallEnded) -> None:
        assert out.grant is not None
        request = out.step.request
        span = Span(
            job=request.job,
            task=request.task or request.lane,
            kind=request.kind,
            resource=out.grant.resource,
            slots=out.grant.slots,
            ready_s=out.ready_s,
            start_s=ended.started_s - self._zero_s,
            end_s=ended.ended_s - self._zero_s,
        )
        self._listener.ran(span)

    def _forget(self, job: str) -> None:
        self._programs.pop(job, None)
        for call_id in [c for c in self._out if c.startswith(f"{job}\x1f")]:
            self._engine.stop(call_id)
            del self._out[call_id]


def _call_id(job: str, stage: str) -> str:
    return f"{job}\x1f{stage}"
