"""The scheduling core: events in, commands out, nothing else."""

from collections.abc import Iterable
from typing import assert_never

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.admission import reason_to_refuse, require_acceptable
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.invariants import check_core
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
    ResourceLost,
    StageFinished,
    StageLost,
    StartStage,
    StopStage,
)
from tuneloom.scheduling.moves import JobState
from tuneloom.scheduling.policies.base import Policy
from tuneloom.scheduling.records import EndedJob, Job, Stage, StageState
from tuneloom.scheduling.stages import StageRequest


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
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, EndedJob] = {}
        self.now_s = 0.0
        self._seen_stages = 0
        self._commands: list[Command] = []
        policy.attach(self.floor)

    def handle(self, event: Event) -> list[Command]:
        """Take one event in; the answer is complete, nothing is postponed to a later call."""
        self._commands = []
        now_s = self.now_s
        self.now_s = max(now_s, event.at_s)
        try:
            self._apply(event)
        except SchedulingError:
            self.now_s = now_s
            raise
        self._start_what_can()
        return self._commands

    def check(self) -> None:
        """Raise SchedulingError if any invariant is broken; takes time linear in the state."""
        check_core(self)

    def _apply(self, event: Event) -> None:
        match event:
            case StageFinished():
                self._stage_finished(event)
            case JobSubmitted():
                self._job_submitted(event)
            case StageLost():
                self._stage_lost(event)
            case ResourceAdded():
                self.policy.resource_came(self.floor.add(event.resource, self.now_s))
            case ResourceLost():
                self._resource_lost(event)
            case JobCancelled():
                self._job_cancelled(event)
            case JobPaused():
                self._job_paused(event)
            case JobResumed():
                self._job_resumed(event)
            case _:
                assert_never(event)

    def _job_submitted(self, event: JobSubmitted) -> None:
        ticket = event.ticket
        if ticket.id in self.jobs or ticket.id in self.ended:
            raise SchedulingError(f"there is a job {ticket.id!r} already; every job needs its own id")
        require_acceptable(ticket.id, event.ready, {})
        reason = reason_to_refuse(self.floor, ticket, event.ready)
        if reason is not None:
            self.ended[ticket.id] = EndedJob(JobState.REFUSED, frozenset())
            self._commands.append(RefuseJob(job=ticket.id, reason=reason))
            return
        job = Job(ticket, len(self.jobs) + len(self.ended), self.now_s)
        self.jobs[ticket.id] = job
        self.policy.job_entered(job)
        self._queue_new(job, event.ready)
        if not job.stages:
            self._end(job, JobState.FINISHED)

    def _stage_finished(self, event: StageFinished) -> None:
        stage = self._running_stage(event.job, event.stage)
        if stage is None:
            return
        job = stage.job
        self._require_continuation(job, event)
        del job.stages[event.stage]
        self._release(stage, finished=True)
        if event.done:
            self._withdraw_all(job)
            self._forget_waiting(job)
            if job.running and job.state is not JobState.FINISHING:
                job.move(JobState.FINISHING)
        elif job.state is not JobState.FINISHING:
            self._queue_new(job, event.ready)
        self._settle(job, done=event.done)

    def _require_continuation(self, job: Job, event: StageFinished) -> None:
        if event.done and event.ready:
            raise SchedulingError(f"job {job.id!r} said it is done and gave {len(event.ready)} more stages")
        if job.state is JobState.FINISHING:
            return
        require_acceptable(job.id, event.ready, job.stages)
        if not event.done and not event.ready and len(job.stages) == 1:
            raise SchedulingError(
                f"job {job.id!r} has no stage left after {event.stage!r}; "
                "give it one in `ready` or say that it is done"
            )

    def _stage_lost(self, event: StageLost) -> None:
        stage = self._running_stage(event.job, event.stage)
        if stage is not None:
            self._requeue(stage)
            self._settle(stage.job)

    def _resource_lost(self, event: ResourceLost) -> None:
        seat = self.floor.remove(event.name)
        for stage in list(seat.holders):
            self._commands.append(StopStage(job=stage.job.id, stage=stage.request.id))
            stage.job.stopped.add(stage.request.id)
            self._requeue(stage)
            self._settle(stage.job)
        self.policy.resource_went(seat)

    def _job_cancelled(self, event: JobCancelled) -> None:
        job = self._live_job(event.job)
        if job is None:
            return
        for stage in list(job.stages.values()):
            if stage.state is StageState.RUNNING:
                self._commands.append(StopStage(job=job.id, stage=stage.request.id))
                job.stopped.add(stage.request.id)
                self._release(stage, finished=False)
        self._withdraw_all(job)
        self._end(job, JobState.CANCELLED)

    def _job_paused(self, event: JobPaused) -> None:
        job = self._live_job(event.job)
        if job is not None and job.accepts_starts:
            self._withdraw_all(job)
            job.move(JobState.PAUSING if job.running else JobState.PAUSED)

    def _job_resumed(self, event: JobResumed) -> None:
        job = self._live_job(event.job)
        if job is None or job.state not in (JobState.PAUSING, JobState.PAUSED):
            return
        job.move(JobState.RUNNING if job.running else JobState.WAITING)
        for stage in job.stages.values():
            if stage.state is StageState.HELD:
                self._offer(stage)

    def _queue_new(self, job: Job, requests: Iterable[StageRequest]) -> None:
        for request in requests:
            self._seen_stages += 1
            stage = Stage(request, job, self._seen_stages, self.now_s)
            job.stages[request.id] = stage
            self._offer(stage)

    def _offer(self, stage: Stage) -> None:
        if not stage.job.accepts_starts:
            stage.state = StageState.HELD
            return
        stage.state = StageState.WAITING
        self.policy.queued(stage, self.now_s)

    def _requeue(self, stage: Stage) -> None:
        self._release(stage, finished=False)
        if stage.job.state is JobState.FINISHING:
            del stage.job.stages[stage.request.id]
            return
        stage.queued_s = self.now_s
        self._offer(stage)

    def _release(self, stage: Stage, *, finished: bool) -> None:
        self.floor.release(stage, self.now_s)
        stage.job.running -= 1
        self.policy.ended(stage, self.now_s, finished=finished)
        stage.grant = None
        stage.state = StageState.HELD

    def _withdraw_all(self, job: Job) -> None:
        for stage in job.stages.values():
            if stage.state is StageState.WAITING:
                stage.state = StageState.HELD
                self.policy.withdrawn(stage)

    def _forget_waiting(self, job: Job) -> None:
        for name, stage in list(job.stages.items()):
            if stage.state is not StageState.RUNNING:
                del job.stages[name]

    def _settle(self, job: Job, *, done: bool = False) -> None:
        """Make the state agree with the number of running stages."""
        if job.running:
            return
        if done or job.state is JobState.FINISHING:
            self._end(job, JobState.FINISHED)
        elif job.state is JobState.RUNNING:
            job.move(JobState.WAITING)
        elif job.state is JobState.PAUSING:
            job.move(JobState.PAUSED)

    def _end(self, job: Job, state: JobState) -> None:
        job.move(state)
        del self.jobs[job.id]
        self.ended[job.id] = EndedJob(state, frozenset(job.stopped))
        self.policy.job_left(job)
        self._commands.append(FinishJob(job=job.id, cancelled=state is JobState.CANCELLED))

    def _start_what_can(self) -> None:
        policy, now_s = self.policy, self.now_s
        while (start := policy.choose(now_s)) is not None:
            stage, grant = start.stage, start.grant
            self.floor.take(stage, grant, now_s)
            stage.grant, stage.state, stage.started_s = grant, StageState.RUNNING, now_s
            job = stage.job
            job.running += 1
            if job.state is JobState.WAITING:
                job.move(JobState.RUNNING)
            policy.started(stage, now_s)
            self._commands.append(StartStage(request=stage.request, grant=grant))

    def _live_job(self, name: str) -> Job | None:
        """The job, or None if it has ended; raises SchedulingError if it was never submitted."""
        job = self.jobs.get(name)
        if job is None and name not in self.ended:
            raise SchedulingError(f"no job {name!r} was ever submitted")
        return job

    def _running_stage(self, job_name: str, stage_name: str) -> Stage | None:
        """The running stage, or None for a late result of one that was stopped."""
        job = self.jobs.get(job_name)
        stage = job.stages.get(stage_name) if job is not None else None
        if stage is not None and stage.state is StageState.RUNNING:
            return stage
        job = self._live_job(job_name)
        if stage_name in (job.stopped if job is not None else self.ended[job_name].stopped):
            return None
        raise SchedulingError(f"job {job_name!r} has no running stage {stage_name!r}")
