"""The loop that joins core, engine and programs: ends of calls in, starts of calls out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never

from tuneloom.app.conducting.arrivals import Arrivals
from tuneloom.app.conducting.inbox import Answered, Inbox
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.placing import Placing, resident_of
from tuneloom.app.conducting.programs import Program, Step
from tuneloom.app.conducting.quarantine import Quarantine
from tuneloom.app.conducting.underway import StepUnderway, call_id, is_of
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
from tuneloom.scheduling.stages import DeviceDemand

_BEAT_S = 0.25


class Conductor:
    """Runs programs until all have ended; one thread, no locks.

    An error in a program's own code ends that job; all others go on. What can't be kept
    in the store ends the run: StoreError is passed on.
    """

    def __init__(self, core: Core, engine: Engine, listener: Listener) -> None:
        self.core = core
        self._engine = engine
        self._inbox = Inbox(engine)
        self._listener = listener
        self._placing = Placing()
        self._quarantine = Quarantine()
        self._programs: dict[str, Program] = {}
        self._arrivals = Arrivals()
        self._out: dict[str, StepUnderway] = {}
        self._looked_s = 0.0
        self._broken: dict[str, Exception] = {}
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
        self._arrivals.add(program, at_s)

    def ask(self, name: str, call: Call, answered: Answered) -> None:
        """Carry out one call beside the programs; what it came to is told while the others go on."""
        self._inbox.ask(name, call, answered)

    def drop_question(self, name: str) -> bool:
        """Want no answer any more; whether there was such a question."""
        return self._inbox.drop_question(name)

    def cancel(self, job: str) -> None:
        if self._arrivals.cancel(job):
            self._listener.job_ended(job, cancelled=True)
        self._tell_if_known(job, JobCancelled(at_s=self.now_s(), job=job))

    def pause(self, job: str) -> None:
        """Start no new stage of a job; one that has yet to come will come paused."""
        self._arrivals.pause(job)
        self._tell_if_known(job, JobPaused(at_s=self.now_s(), job=job))

    def resume(self, job: str) -> None:
        self._arrivals.resume(job)
        self._tell_if_known(job, JobResumed(at_s=self.now_s(), job=job))

    def prioritise(self, job: str, priority: int) -> None:
        """Give a job another priority, also one that has yet to come."""
        if job not in self._programs:
            self._arrivals.prioritise(job, priority)
        self._tell_if_known(job, JobReprioritised(at_s=self.now_s(), job=job, priority=priority))

    def share_used(self, share: str, key: str, seconds: float) -> None:
        """Let count here what jobs of a share used of devices elsewhere."""
        self._tell(ShareUsed(at_s=self.now_s(), share=share, key=key, seconds=seconds))

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is to come."""
        return not self._programs and not self._arrivals and not self._inbox.has_questions

    def run(self, keep_waiting: Callable[[], bool] = lambda: False) -> None:
        """Go on until every job has ended and nobody asks to keep waiting."""
        for report in self._inbox.present():  # resources that are there already, before a job is refused
            self._hear(report)
        while not self.idle or keep_waiting():
            self._admit()
            self._end_broken()
            self._listener.beat(self.now_s())
            for report in self._inbox.reports(self._patience_s()):
                self._hear(report)
                self._end_broken()
                self._listener.beat(self.now_s())
            self._give_up_overdue()

    def _give_up_overdue(self) -> None:
        """End calls whose steps want to wait no longer, about as often as the beat goes."""
        now_s = self.now_s()
        if now_s - self._looked_s < _BEAT_S:
            return
        self._looked_s = now_s
        for offer in self._quarantine.over(now_s):
            self._joined(offer)
        for id, out in list(self._out.items()):
            if self._out.get(id) is out and self._is_overdue(out, now_s):
                self._inbox.stop(id)
                began_s, ended_s = out.started_s + self._zero_s, now_s + self._zero_s
                given_up = TimedOut(after_s=round(now_s - out.started_s, 1))
                self._call_ended(CallEnded(id=id, result=given_up, started_s=began_s, ended_s=ended_s))

    def _is_overdue(self, out: StepUnderway, now_s: float) -> bool:
        with self._blaming(out.step.request.job):
            return out.overdue(now_s)
        return False

    def _patience_s(self) -> float:
        return max(0.0, min(_BEAT_S, self._arrivals.next_s - self.now_s()))

    def _admit(self) -> None:
        for program in self._arrivals.come(self.now_s()):
            job, now_s = program.ticket.id, self.now_s()
            self._programs[job] = program
            steps: Sequence[Step] = ()
            with self._blaming(job):
                steps = program.begin(now_s)
            if job in self._broken:
                continue
            self._note(job, steps, now_s)
            ready = tuple(step.request for step in steps)
            self._tell(JobSubmitted(at_s=now_s, ticket=program.ticket, ready=ready))
            if self._arrivals.is_paused(job):
                self.pause(job)

    def _note(self, job: str, steps: Sequence[Step], now_s: float) -> None:
        for step in steps:
            self._out[call_id(job, step.request.id)] = StepUnderway(step, now_s)

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
        id = call_id(job, command.request.id)
        out = self._out[id]
        with self._blaming(job):
            out.call = self._placing.placed(out.step.call(), job, command.grant.resource)
        if job not in self._broken:
            assert out.call is not None
            out.grant, out.started_s = command.grant, self.now_s()
            if out.losses < out.step.chances:
                self._inbox.start(id, out.call)
            else:  # it takes every device or machine along: end it, before it has taken them all
                lost = f"its device or machine was lost {out.losses} times"
                self._inbox.ended_here(id, Raised(error=lost, trace=""))

    def _stop(self, command: StopStage) -> None:
        id = call_id(command.job, command.stage)
        self._inbox.stop(id)
        out = self._out.get(id)
        if out is not None:
            out.losses += 1
            self._back_in_line(out)

    def _back_in_line(self, out: StepUnderway) -> None:
        """A step was lost: it waits again, and what its worker kept is gone."""
        call = out.wait_again(self.now_s())
        if call is not None and call.worker is not None and call.place is not None:
            self._worker_gone(call.worker, call.place.machine)

    def _call_ended(self, ended: CallEnded) -> None:
        out = self._out.get(ended.id)
        if out is None or out.grant is None:
            return  # its job has ended
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

    def _step_ended(self, id: str, out: StepUnderway, result: CallResult) -> None:
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
            out.wait_again(now_s)
            self._tell(StageLost(at_s=now_s, job=request.job, stage=request.id))
            return
        del self._out[id]
        self._note(request.job, following, now_s)
        ready = tuple(step.request for step in following)
        self._tell(StageFinished(at_s=now_s, job=request.job, stage=request.id, ready=ready, done=done))

    def _report(self, out: StepUnderway, ended: CallEnded) -> None:
        span, needs = out.span(ended, self._zero_s), out.step.request.needs
        self._listener.ran(span)
        if isinstance(needs, DeviceDemand):
            self._listener.device_used(span.job, needs.key, span.end_s - span.start_s)

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
        for id in [id for id in self._out if is_of(job, id)]:
            self._inbox.stop(id)
            del self._out[id]
        for worker in self._placing.forget_job(job):
            self._engine.release(worker)
