"""What becomes of single stages: they are offered, withdrawn, given back and queued again."""

from collections.abc import Iterable, Mapping

from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.homes import Homes
from tuneloom.scheduling.moves import JOB_FINISHING
from tuneloom.scheduling.policies.base import Policy
from tuneloom.scheduling.records import STAGE_HELD, STAGE_RUNNING, STAGE_WAITING, Job, Stage
from tuneloom.scheduling.stages import StageRequest


class StageQueue:
    """Keeps floor and policy told of every stage; the states of jobs are the core's affair."""

    def __init__(self, policy: Policy, floor: Floor) -> None:
        self._policy = policy
        self._floor = floor
        self._homes = Homes(floor)
        self._seen = 0

    def queue(self, job: Job, requests: Iterable[StageRequest], at_s: float) -> None:
        """Take new stages of a job in."""
        for request in requests:
            self._seen += 1
            stage = job.stages[request.id] = Stage(request, job, self._seen, at_s)
            self._offer(stage, at_s)

    def requeue(self, stage: Stage, at_s: float) -> None:
        """A running stage was lost: it starts over, unless its job needs nothing any more."""
        self.release(stage, at_s, finished=False)
        if stage.job.state is JOB_FINISHING:
            del stage.job.stages[stage.request.id]
            return
        stage.queued_s = at_s
        self._offer(stage, at_s)

    def started(self, stage: Stage, at_s: float) -> None:
        """A stage with a home started: others of the same home now wait for its host alone."""
        if self._homes.settle(stage):
            self._rebind(stage.job, stage.request.home, at_s)

    def host_came(self, jobs: Mapping[str, Job], at_s: float) -> None:
        """A host is new: if there was one only, it matters from now on where homes are."""
        if len(self._floor.hosts) == 2:
            for job, home in self._homes.all():
                self._rebind(jobs[job], home, at_s)

    def host_lost(self, host: str, jobs: Mapping[str, Job], at_s: float) -> None:
        """A host is gone: what had its home there may start anew anywhere."""
        for job, home in self._homes.host_lost(host):
            self._rebind(jobs[job], home, at_s)

    def forget(self, job: Job) -> None:
        """A job ended."""
        self._homes.forget(job.ticket.id)

    def _rebind(self, job: Job, home: str, at_s: float) -> None:
        for stage in job.stages.values():
            request = stage.request
            if request.home != home or stage.state is not STAGE_WAITING:
                continue
            if self._homes.at_home(request) is not request:
                self._policy.withdrawn(stage)
                self._offer(stage, at_s)

    def release(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        """A running stage gives back what it holds."""
        self._floor.release(stage, at_s)
        stage.job.running -= 1
        self._policy.ended(stage, at_s, finished=finished)
        stage.grant = stage.seat = None
        stage.state = STAGE_HELD

    def offer_held(self, job: Job, at_s: float) -> None:
        """A job goes on: its held stages stand in line again."""
        for stage in job.stages.values():
            if stage.state is STAGE_HELD:
                self._offer(stage, at_s)

    def withdraw_all(self, job: Job) -> None:
        """No stage of this job may start for now."""
        for stage in job.stages.values():
            if stage.state is STAGE_WAITING:
                stage.state = STAGE_HELD
                self._policy.withdrawn(stage)

    def forget_waiting(self, job: Job) -> None:
        """A job is done: what does not run is dropped."""
        for name, stage in list(job.stages.items()):
            if stage.state is not STAGE_RUNNING:
                del job.stages[name]

    def _offer(self, stage: Stage, at_s: float) -> None:
        if not stage.job.accepts_starts:
            stage.state = STAGE_HELD
            return
        stage.state = STAGE_WAITING
        if stage.request.home:
            stage.request = self._homes.at_home(stage.request)
        self._policy.queued(stage, at_s)
