"""The scheduling core: events in, commands out, nothing else."""

from dataclasses import replace
from typing import assert_never

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.admission import reason_to_refuse, require_acceptable, require_continuation
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.invariants import check_books
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
from tuneloom.scheduling.moves import JOB_FINISHING, JOB_RUNNING, JOB_WAITING, JobState
from tuneloom.scheduling.policies.base import Policy
from tuneloom.scheduling.records import STAGE_RUNNING, EndedJob, Job, KnownJobs
from tuneloom.scheduling.stage_queue import StageQueue


class Core:
    """Decides which stage runs where; a pure state machine used by one thread.

    It reads no clock: time comes in with the events, and an event that is older than
    its predecessor counts as happening at the same moment as that one. It does no
    I/O and uses no chance, so the same events always give the same commands. An event
    that makes no sense raises SchedulingError and changes nothing.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.floor = Floor()
        self.now_s = 0.0
        self._known = KnownJobs()
        self._queue = StageQueue(policy, self.floor)
        self._commands: list[Command] = []
        policy.attach(self.floor)

    @property
    def jobs(self) -> dict[str, Job]:
        """The jobs that have not ended, by name."""
        return self._known.jobs

    @property
    def ended(self) -> dict[str, EndedJob]:
        """What is kept of those that have."""
        return self._known.ended

    def handle(self, event: Event) -> list[Command]:
        """Take one event in; the answer is complete, nothing is postponed to a later call."""
        self._commands = []
        now_s = self.now_s
        if event.at_s > now_s:
            self.now_s = event.at_s
        try:
            self._apply(event)
        except SchedulingError:
            self.now_s = now_s
            raise
        self._start_what_can()
        return self._commands

    def check(self) -> None:
        """Raise SchedulingError if any invariant is broken; takes time linear in the state."""
        check_books(self.floor, self.jobs, self.ended, overlaps=self.policy.overlaps)
        self.policy.check()

    def _apply(self, event: Event) -> None:
        match event:
            case StageFinished():
                self._stage_finished(event)
            case JobSubmitted():
                self._job_submitted(event)
            case StageLost():
                self._stage_lost(event)
            case ResourceAdded():
                self._resource_added(event)
            case ResourceLost():
                self._resource_lost(event)
            case JobCancelled():
                self._job_cancelled(event)
            case JobPaused():
                self._job_paused(event)
            case JobResumed():
                self._job_resumed(event)
            case JobReprioritised():
                self._job_reprioritised(event)
            case ShareUsed():
                self.policy.share_used(event.share, event.key, event.seconds)
            case _:
                assert_never(event)

    def _job_submitted(self, event: JobSubmitted) -> None:
        ticket = event.ticket
        if ticket.id in self.jobs:
            raise SchedulingError(f"there is a job {ticket.id!r} already; every job needs its own id")
        require_acceptable(ticket.id, event.ready, {})
        reason = reason_to_refuse(self.floor, ticket, event.ready)
        if reason is not None:
            self._known.end(ticket.id, EndedJob(JobState.REFUSED, frozenset()))
            self._commands.append(RefuseJob(job=ticket.id, reason=reason))
            return
        job = self._known.enter(ticket, self.now_s)
        self.policy.job_entered(job)
        self._queue.queue(job, event.ready, self.now_s)
        if not job.stages:
            self._end(job, JobState.FINISHED)

    def _stage_finished(self, event: StageFinished) -> None:
        stage = self._known.running_stage(event.job, event.stage)
        if stage is None:
            return
        job = stage.job
        require_continuation(job, event)
        del job.stages[event.stage]
        self._queue.release(stage, self.now_s, finished=True)
        if event.done:
            self._queue.withdraw_all(job)
            self._queue.forget_waiting(job)
            if job.running and job.state is not JOB_FINISHING:
                job.move(JOB_FINISHING)
        elif job.state is not JOB_FINISHING:
            self._queue.queue(job, event.ready, self.now_s)
        self._settle(job, done=event.done)

    def _stage_lost(self, event: StageLost) -> None:
        stage = self._known.running_stage(event.job, event.stage)
        if stage is not None:
            self._queue.requeue(stage, self.now_s)
            self._settle(stage.job)

    def _resource_added(self, event: ResourceAdded) -> None:
        seat = self.floor.add(event.resource, self.now_s)
        self.policy.resource_came(seat)
        if seat.key is None:
            self._queue.host_came(self.jobs, self.now_s)

    def _resource_lost(self, event: ResourceLost) -> None:
        seat = self.floor.remove(event.name)
        for stage in list(seat.holders):
            self._commands.append(StopStage(job=stage.job.id, stage=stage.request.id))
            stage.job.stopped.add(stage.request.id)
            self._queue.requeue(stage, self.now_s)
            self._settle(stage.job)
        self.policy.resource_went(seat)
        if seat.key is None:
            self._queue.host_lost(event.name, self.jobs, self.now_s)

    def _job_cancelled(self, event: JobCancelled) -> None:
        job = self._known.live_job(event.job)
        if job is None:
            return
        for stage in list(job.stages.values()):
            if stage.state is STAGE_RUNNING:
                self._commands.append(StopStage(job=job.id, stage=stage.request.id))
                job.stopped.add(stage.request.id)
                self._queue.release(stage, self.now_s, finished=False)
        self._queue.withdraw_all(job)
        self._end(job, JobState.CANCELLED)

    def _job_paused(self, event: JobPaused) -> None:
        job = self._known.live_job(event.job)
        if job is not None and job.accepts_starts:
            self._queue.withdraw_all(job)
            job.move(JobState.PAUSING if job.running else JobState.PAUSED)

    def _job_resumed(self, event: JobResumed) -> None:
        job = self._known.live_job(event.job)
        if job is None or job.state not in (JobState.PAUSING, JobState.PAUSED):
            return
        job.move(JOB_RUNNING if job.running else JOB_WAITING)
        self._queue.offer_held(job, self.now_s)

    def _job_reprioritised(self, event: JobReprioritised) -> None:
        job = self._known.live_job(event.job)
        if job is None:
            return
        self._queue.withdraw_all(job)
        job.ticket = replace(job.ticket, priority=event.priority)
        if job.accepts_starts:
            self._queue.offer_held(job, self.now_s)

    def _settle(self, job: Job, *, done: bool = False) -> None:
        """Make the state agree with the number of running stages."""
        if job.running:
            return
        if done or job.state is JOB_FINISHING:
            self._end(job, JobState.FINISHED)
        elif job.state is JOB_RUNNING:
            job.move(JOB_WAITING)
        elif job.state is JobState.PAUSING:
            job.move(JobState.PAUSED)

    def _end(self, job: Job, state: JobState) -> None:
        job.move(state)
        self._known.end(job.id, EndedJob(state, frozenset(job.stopped)))
        self.policy.job_left(job)
        self._queue.forget(job)
        self._commands.append(FinishJob(job=job.id, cancelled=state is JobState.CANCELLED))

    def _start_what_can(self) -> None:
        policy, floor, now_s = self.policy, self.floor, self.now_s
        while (choice := policy.choose(now_s)) is not None:
            stage, grant = choice
            floor.take(stage, grant, now_s)
            stage.grant, stage.state, stage.started_s = grant, STAGE_RUNNING, now_s
            job = stage.job
            job.running += 1
            if job.state is JOB_WAITING:
                job.move(JOB_RUNNING)
            policy.started(stage, now_s)
            if stage.request.home:
                self._queue.started(stage, now_s)
            self._commands.append(StartStage(request=stage.request, grant=grant))
