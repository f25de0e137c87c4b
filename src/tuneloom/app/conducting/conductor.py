"""The loop that joins core, engine and programs: ends of calls in, starts of calls out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import assert_never

from tuneloom.app.conducting.listening import Listener, Span
from tuneloom.app.conducting.placing import Placing, resident_of
from tuneloom.app.conducting.programs import Program, Step
from tuneloom.app.conducting.quarantine import Quarantine
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallEnded, CallResult, Died, Lost, Raised, ReadFiles, TimedOut
from tuneloom.engine.machine import Offer, Resources
from tuneloom.engine.reports import (
    EngineReport,
    MachineLost,
    ResourceDisturbed,
    ResourceJoined,
    ResourceLeft,
)
from tuneloom.errors import SchedulingError, StoreError
from tuneloom.scheduling import Core
from tuneloom.scheduling.messages import (
    Command,
    Event,
    FinishJob,
    JobCancelled,
    JobPaused,
    JobReprioritised,
    JobResumed,
    JobSubmitted,
    RefuseJob,
    ResourceAdded,
    ResourceLost,
    ShareUsed,
    StageFinished,
    StageLost,
    StartStage,
    StopStage,
)
from tuneloom.scheduling.stages import DeviceDemand, Grant

_BEAT_S = 0.25
_ASIDE = "\x1faside"


@dataclass(slots=True)
class _Out:
    """A step that is with the core or the engine; `grant` and `call` are set while it runs.

    `losses` counts the devices and machines that were lost while it ran there.
    """

    step: Step
    ready_s: float
    grant: Grant | None = None
    call: Call | None = None
    started_s: float = 0.0
    losses: int = 0

    def overdue(self, now_s: float) -> bool:
        """Whether it runs, and its step wants to wait no longer."""
        asked = self.step.overdue if self.grant is not None else None
        return asked is not None and asked(now_s - self.started_s, now_s)


class Conductor:
    """Runs programs until all have ended; one thread, no locks.

    An error in a program's own code ends that job; all others go on. What can't be kept
    in the store ends the run: StoreError is passed on.
    """

    def __init__(self, core: Core, engine: Engine, listener: Listener) -> None:
        self.core = core
        self._engine = engine
        self._listener = listener
        self._placing = Placing()
        self._quarantine = Quarantine()
        self._programs: dict[str, Program] = {}
        self._out: dict[str, _Out] = {}
        self._coming: list[tuple[float, Program]] = []
        self._held: set[str] = set()
        self._looked_s = 0.0
        self._broken: dict[str, Exception] = {}
        self._given_up: list[CallEnded] = []
        self._stopped: set[str] = set()
        self._unheard: list[EngineReport] = []
        self._zero_s = engine.now_s()

    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._engine.now_s() - self._zero_s

    def add_machine(self, machine: Resources) -> None:
        """Use a machine, or several, known from the start; later ones are reported by the engine."""
        for offer in machine.offers:
            self._joined(offer)

    def submit(self, program: Program, at_s: float = 0.0, reads: ReadFiles | None = None) -> None:
        """Take a program in, now or when its time comes; its calls may read these files."""
        if reads is not None:
            self._placing.note_files(program.ticket.id, reads)
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

    def prioritise(self, job: str, priority: int) -> None:
        """Give a job another priority, also one that has yet to come."""
        for _, program in self._coming:
            if program.ticket.id == job:
                program.ticket = replace(program.ticket, priority=priority)
        self._tell_if_known(job, JobReprioritised(at_s=self.now_s(), job=job, priority=priority))

    def share_used(self, share: str, key: str, seconds: float) -> None:
        """Let count here what jobs of a share used of devices elsewhere."""
        self._tell(ShareUsed(at_s=self.now_s(), share=share, key=key, seconds=seconds))

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is to come."""
        return not self._programs and not self._coming

    def run(self, keep_waiting: Callable[[], bool] = lambda: False) -> None:
        """Go on until every job has ended and nobody asks to keep waiting."""
        while reports := self._engine.poll(0):  # resources that are there already, before a job is refused
            for report in reports:
                self._hear(report)
        while not self.idle or keep_waiting():
            self._admit()
            self._end_broken()
            self._listener.beat(self.now_s())
            for report in self._next_reports():
                self._hear(report)
                self._end_broken()
                self._listener.beat(self.now_s())
            self._give_up_overdue()

    def _next_reports(self) -> list[EngineReport]:
        given_up, self._given_up = self._given_up, []
        unheard, self._unheard = self._unheard, []
        reports = self._engine.poll(0 if given_up or unheard else self._patience_s())
        self._stopped.clear()
        return [*given_up, *unheard, *reports]

    def carry_out(self, call: Call) -> CallResult | Lost:
        """Carry one call out beside the programs and wait for its end; what else ends is heard afterwards."""
        self._engine.start(_ASIDE, call)
        result: CallResult | Lost | None = None
        while result is None:
            for report in self._engine.poll(None):
                if isinstance(report, CallEnded) and report.id == _ASIDE:
                    result = report.result
                else:
                    self._unheard.append(report)
        return result

    def _give_up_overdue(self) -> None:
        """End calls whose steps want to wait no longer, about as often as the beat goes."""
        now_s = self.now_s()
        if now_s - self._looked_s < _BEAT_S:
            return
        self._looked_s = now_s
        for offer in self._quarantine.over(now_s):
            self._joined(offer)
        for call_id, out in list(self._out.items()):
            if self._out.get(call_id) is out and self._is_overdue(out, now_s):
                self._engine.stop(call_id)
                began_s, ended_s = out.started_s + self._zero_s, now_s + self._zero_s
                given_up = TimedOut(after_s=round(now_s - out.started_s, 1))
                self._call_ended(CallEnded(id=call_id, result=given_up, started_s=began_s, ended_s=ended_s))

    def _is_overdue(self, out: _Out, now_s: float) -> bool:
        with self._blaming(out.step.request.job):
            return out.overdue(now_s)
        return False

    def _patience_s(self) -> float:
        if not self._coming:
            return _BEAT_S
        return max(0.0, min(_BEAT_S, self._coming[0][0] - self.now_s()))

    def _admit(self) -> None:
        while self._coming and self._coming[0][0] <= self.now_s():
            _, program = self._coming.pop(0)
            job = program.ticket.id
            self._programs[job] = program
            now_s = self.now_s()
            steps: Sequence[Step] = ()
            with self._blaming(job):
                steps = program.begin(now_s)
            if job in self._broken:
                continue
            self._note(job, steps, now_s)
            ready = tuple(step.request for step in steps)
            self._tell(JobSubmitted(at_s=now_s, ticket=program.ticket, ready=ready))
            if job in self._held:
                self.pause(job)

    def _note(self, job: str, steps: Sequence[Step], now_s: float) -> None:
        for step in steps:
            self._out[_call_id(job, step.request.id)] = _Out(step, now_s)

    def _hear(self, report: EngineReport) -> None:
        match report:
            case CallEnded():
                self._call_ended(report)
            case ResourceJoined():
                self._quarantine.left(report.offer.resource.name)
                self._joined(report.offer)
            case ResourceLeft():
                self._quarantine.left(report.name)
                self._left(report.name, report.reason)
            case ResourceDisturbed():
                self._disturbed(report)
            case MachineLost():
                self._machine_lost(report)
            case _:
                assert_never(report)

    def _joined(self, offer: Offer) -> None:
        name, now_s = offer.resource.name, self.now_s()
        if name in self._placing:
            self._left(name, "it joined anew")
        self._placing.add(offer)
        self._listener.resource_joined(offer, now_s)
        self._tell(ResourceAdded(at_s=now_s, resource=offer.resource))

    def _left(self, name: str, reason: str) -> None:
        if name not in self._placing:
            return
        now_s = self.now_s()
        self._placing.remove(name)
        self._listener.resource_left(name, reason, now_s)
        self._tell(ResourceLost(at_s=now_s, name=name))
        self._engine.release(resident_of(name))

    def _disturbed(self, report: ResourceDisturbed) -> None:
        if report.name in self._placing:
            self._listener.resource_disturbed(report.name, report.by, self.now_s())

    def _machine_lost(self, lost: MachineLost) -> None:
        self._quarantine.machine_left(lost.name)
        for worker in self._placing.workers_on(lost.name):
            self._worker_gone(worker.name, lost.name)
        for name in self._placing.of_machine(lost.name):
            self._left(name, lost.reason)

    def _worker_gone(self, name: str, machine: str) -> None:
        """Tell a program that what a worker kept for it is gone."""
        worker = self._placing.forget_worker(name, machine)
        program = self._programs.get(worker.job) if worker is not None else None
        if program is not None:
            with self._blaming(program.ticket.id):
                program.worker_lost(name)

    def _tell_if_known(self, job: str, event: Event) -> None:
        if job in self._programs:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        try:
            commands = self.core.handle(event)
        except SchedulingError as error:
            if not isinstance(event, JobSubmitted | StageFinished):
                raise
            self._broken[event.ticket.id if isinstance(event, JobSubmitted) else event.job] = error
            return
        self._listener.happened(event, commands)
        for command in commands:
            self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case StartStage():
                self._start(command)
            case StopStage():
                self._stop(command)
            case FinishJob():
                self._finish(command)
            case RefuseJob():
                self._forget(command.job)
                self._listener.job_refused(command.job, command.reason)
            case _:
                assert_never(command)

    def _start(self, command: StartStage) -> None:
        job = command.request.job
        call_id = _call_id(job, command.request.id)
        out = self._out[call_id]
        with self._blaming(job):
            out.call = self._placing.placed(out.step.call(), job, command.grant.resource)
        if job not in self._broken:
            assert out.call is not None
            out.grant, out.started_s = command.grant, self.now_s()
            if out.losses < out.step.chances:
                self._engine.start(call_id, out.call)
            else:
                self._give_up(call_id, out)

    def _give_up(self, call_id: str, out: _Out) -> None:
        """A step takes every device or machine along: end it, before it has taken them all."""
        now_s = self._engine.now_s()
        raised = Raised(error=f"its device or machine was lost {out.losses} times", trace="")
        self._given_up.append(CallEnded(id=call_id, result=raised, started_s=now_s, ended_s=now_s))

    def _stop(self, command: StopStage) -> None:
        call_id = _call_id(command.job, command.stage)
        self._engine.stop(call_id)
        self._stopped.add(call_id)
        self._unheard = [r for r in self._unheard if not (isinstance(r, CallEnded) and r.id == call_id)]
        out = self._out.get(call_id)
        if out is not None:
            out.losses += 1
            self._back_in_line(out)

    def _back_in_line(self, out: _Out) -> None:
        """A step was lost: it waits again, and what its worker kept is gone."""
        call, out.call, out.grant, out.ready_s = out.call, None, None, self.now_s()
        if call is not None and call.worker is not None and call.place is not None:
            self._worker_gone(call.worker, call.place.machine)

    def _call_ended(self, ended: CallEnded) -> None:
        out = self._out.get(ended.id)
        if out is None or out.grant is None or ended.id in self._stopped:
            return  # it was stopped, and may have been started again since this was reported
        if isinstance(ended.result, Lost):
            self._back_in_line(out)
            request = out.step.request
            self._tell(StageLost(at_s=self.now_s(), job=request.job, stage=request.id))
        else:
            self._report(out, ended)
            resource = out.grant.resource
            self._step_ended(ended.id, out, ended.result)
            self._judge(out.step, resource, ended.result)

    def _judge(self, step: Step, resource: str, result: CallResult) -> None:
        """Hear what a canary says of its device, and put that aside if it was too often."""
        trouble = ""
        if step.judges is not None:
            with self._blaming(step.request.job):
                trouble = self._quarantine.note(resource, step.judges(result))
        if trouble and resource in self._placing:
            self._quarantine.put_aside(self._placing.offer(resource), self.now_s())
            self._left(resource, trouble)

    def _step_ended(self, call_id: str, out: _Out, result: CallResult) -> None:
        """Ask the program what follows; it hears itself that its worker died."""
        request, program, now_s = out.step.request, self._programs[out.step.request.job], self.now_s()
        if isinstance(result, Died | TimedOut) and out.call is not None and out.call.place is not None:
            self._placing.forget_worker(out.call.worker or "", out.call.place.machine)
        following: Sequence[Step] | None = None
        done = False
        with self._blaming(request.job):
            following = out.step.ended(result, now_s)
            done = program.done
        if request.job in self._broken:
            return
        if following is None:
            out.call, out.grant, out.ready_s = None, None, now_s
            self._tell(StageLost(at_s=now_s, job=request.job, stage=request.id))
            return
        del self._out[call_id]
        self._note(request.job, following, now_s)
        ready = tuple(step.request for step in following)
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
        if isinstance(request.needs, DeviceDemand):
            self._listener.device_used(request.job, request.needs.key, span.end_s - span.start_s)

    @contextmanager
    def _blaming(self, job: str) -> Iterator[None]:
        """Note an error in a job's own code, so that it ends this job alone."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            self._broken[job] = error

    def _end_broken(self) -> None:
        """End the jobs whose code raised; the core hears that they were cancelled."""
        for job in list(self._broken):
            if job in self.core.jobs:
                self._tell(JobCancelled(at_s=self.now_s(), job=job))
            else:
                self._fail(job)

    def _finish(self, command: FinishJob) -> None:
        if command.job in self._broken:
            self._fail(command.job)
            return
        self._forget(command.job)
        self._listener.job_ended(command.job, cancelled=command.cancelled)

    def _fail(self, job: str) -> None:
        self._forget(job)
        self._listener.job_failed(job, self._broken.pop(job))

    def _forget(self, job: str) -> None:
        self._programs.pop(job, None)
        for call_id in [c for c in self._out if c.startswith(f"{job}\x1f")]:
            self._engine.stop(call_id)
            del self._out[call_id]
        for worker in self._placing.forget_job(job):
            self._engine.release(worker)


def _call_id(job: str, stage: str) -> str:
    return f"{job}\x1f{stage}"
